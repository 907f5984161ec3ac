/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ABI_H_
#define UCT_SEP_ABI_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>


/** Classes of UCX whose size is compared. */
#define UCT_SEP_ABI_NUM_CLASSES 6

/**
 * The properties of a UCX build that show in the structures it shares with a
 * transport. The module is compiled with the macros of one UCX, and may be
 * loaded by another: each difference that is compared would corrupt memory.
 */
typedef struct uct_sep_abi {
    const char *version;         /**< "1.13.1", or NULL where the process has
                                      not loaded libucp, which knows it */
    int        stats;            /**< ENABLE_STATS: adds a member to
                                      uct_base_iface_t and uct_base_ep_t */
    int        assertions;       /**< ENABLE_ASSERT: not compared, for the
                                      module fits either kind, see
                                      sep_compat_async.h */
    uint32_t   symbols;          /**< Which of uct_sep_compat_symbols there are.
                                      Of them depend the types of functions */
    size_t     sizes[UCT_SEP_ABI_NUM_CLASSES]; /**< Of interfaces, endpoints and
                                                    workers, UCT's own of each
                                                    included */
} uct_sep_abi_t;


/**
 * The UCX this file was compiled for.
 *
 * @param [out] abi_p  Filled with compile-time values. Strings are static.
 */
void uct_sep_abi_get_built(uct_sep_abi_t *abi_p);


/**
 * The UCX that is loaded in this process, determined without touching a
 * structure whose layout is in question: class sizes are read from the class
 * descriptors that libuct exports, statistics and versions are known from
 * functions that exist only with them, assertions from how far
 * ucs_arbiter_group_init() writes.
 *
 * @param [out] abi_p  Filled with what was found. Strings belong to libucp.
 */
void uct_sep_abi_get_loaded(uct_sep_abi_t *abi_p);


/**
 * Compare two of them. Versions may differ in the third number: of the releases
 * of a series, all that the transport shares with UCX has been the same
 * (docs/ucx-releases.md).
 *
 * @param [in]  built   What the module was built for.
 * @param [in]  loaded  What has loaded it. An unknown version is not compared.
 * @param [out] diff    One phrase per difference, each naming both sides;
 *                      empty if there is none.
 * @param [in]  max     Size of @a diff in bytes.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED if they differ.
 */
ucs_status_t uct_sep_abi_compare(const uct_sep_abi_t *built,
                                 const uct_sep_abi_t *loaded, char *diff,
                                 size_t max);


/**
 * Check that the loaded UCX is of the series that this module was built for,
 * and tell compat/ the rest. To be called before anything is registered with
 * UCX.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED after an error message that names both
 *         sides and what to do about it.
 */
ucs_status_t uct_sep_abi_check(void);

#endif
