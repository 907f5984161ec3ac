/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_MD_H
#define UCT_SEP_MD_H

#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/base/sep_rkey.h>
#include <uct/ib/sep/device/sep_async.h>
#include <uct/ib/sep/device/sep_device.h>
#include <uct/ib/sep/port/sep_subnet.h>
#include <uct/ib/sep/queue/sep_uuar.h>
#include <uct/ib/sep/compat/sep_compat_md.h>
#include <ucs/sys/sys.h>

BEGIN_C_DECLS

/**
 * @file sep_md.h
 *
 * Memory domains of component "sep" (sep_tl.h), one for each mlx5 device.
 */

/** What the addresses of cached regions are rounded to, the least that is
 *  allowed (UCS_RCACHE_MIN_ALIGNMENT), as in UCX's ib. With more, parts of a
 *  buffer that lie next to each other but do not begin at a multiple of it
 *  overlap; then the cache replaces the regions of both by one, and that again
 *  with each part. */
#define UCT_SEP_RCACHE_ALIGN 16


/** Configuration of a memory domain; meanings are in the table. */
typedef struct uct_sep_md_config {
    uct_md_config_t          super;
    UCS_CONFIG_STRING_ARRAY_FIELD(rmtd) reg_methods;
    ucs_ternary_auto_value_t rcache_enable;
    uct_sep_compat_rcache_config_t rcache;
    ucs_ternary_auto_value_t fork_init;
    ucs_linear_func_t        reg_cost;      /**< Seconds, and per byte */
    ucs_on_off_auto_value_t  relaxed_ordering;
    UCS_CONFIG_ARRAY_FIELD(ucs_config_bw_spec_t, device) pci_bw;
    int                      prefer_nearest;
    int                      eth_pause;
    char                     *subnet_prefix;
    int                      async_events;
} uct_sep_md_config_t;


typedef struct uct_sep_mem_keys uct_sep_mem_keys_t;
typedef struct uct_sep_context uct_sep_context_t;
typedef struct uct_sep_sharing uct_sep_sharing_t;


/** Registered memory: what a uct_mem_h points to. */
typedef struct uct_sep_mem {
    uint32_t           lkey;
    uint32_t           rkey;      /**< For puts and gets: relaxed if there is
                                       such a one */
    struct ibv_mr      *mr;       /**< Has the strict remote key, and the local
                                       one unless that is relaxed */
    struct ibv_mr      *relaxed_mr; /**< Has the local key and a second remote
                                         one, with relaxed ordering; or NULL */
    uct_sep_mem_keys_t *keys; /**< Local keys in contexts of workers, or NULL;
                                   see sep_own_keys.h */
    int                is_packed; /**< Its key was packed to be invalidated one
                                       day; known only if UCX checks that */
} uct_sep_mem_t;


/** For local keys of workers' contexts, and for what workers share to come and
 *  go. */
UCT_SEP_MUTEX_DEFINE(uct_sep_own_mutex)


/** Memory domain. */
typedef struct uct_sep_md {
    uct_md_t              super;
    uct_sep_device_t      dev;
    uct_sep_async_t       async;       /**< Events of the device's context */
    struct ibv_pd         *pd;
    ucs_rcache_t          *rcache;     /**< NULL if disabled */
    ucs_linear_func_t     reg_cost;
    int                   use_rcache;  /**< Setting, see rcache */
    int                   relaxed_ordering; /**< For all writes that need
                                                 not be strict */
    double                pci_bw;      /**< Bytes per second */
    ucs_sys_cpuset_t      local_cpus;  /**< Near to the device */
    double                far_latency; /**< Seconds, if we run elsewhere */
    int                   eth_pause;   /**< Whether RoCE ports are offered */
    uct_sep_subnet_filter_t subnet_filter;
    uct_sep_uuars_t       uuars;      /**< Of the device's context */

    uct_sep_own_mutex_t   own_lock;
    uct_sep_sharing_t     *sharing;   /**< What workers share, of category/
                                           (sep_sharing.h); NULL as long as
                                           there are none */
} uct_sep_md_t;


/**
 * Check a configuration against the device, and apply it; before memory is
 * registered.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM or UCS_ERR_UNSUPPORTED after a message
 *         that names the variable.
 */
ucs_status_t uct_sep_md_init_config(uct_sep_md_t *md,
                                    const uct_sep_md_config_t *config);


/** Whether the configuration allows a port, and it is active and has an
 *  address. */
int uct_sep_md_offers_port(const uct_sep_md_t *md, unsigned port_num);


/** Table of uct_sep_md_config_t. */
extern ucs_config_field_t uct_sep_md_config_table[];


/** Open a device's memory domain; of uct_component_t. */
ucs_status_t
uct_sep_md_open(uct_component_t *component, const char *md_name,
                const uct_md_config_t *uct_config, uct_md_h *md_p);


/** Show a memory domain in the virtual file system; of uct_component_t. */
void uct_sep_md_vfs_init(uct_md_h tl_md);


/**
 * Register memory of the transport's own: with the rights that it needs, of
 * which it has all of those of users' memory otherwise, and past the cache.
 *
 * @param access  IBV_ACCESS_xx. If the device may only be told to write by us,
 *                writes have relaxed ordering if that is configured: we look at
 *                what they have brought after their completion.
 * @param mem_p   Filled; released by uct_sep_mem_dereg_own().
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_mem_reg_own(uct_sep_md_t *md, void *address, size_t length,
                                 int access, uct_sep_mem_t **mem_p);

/** Undo it. Its keys are of no use to anybody any more. */
void uct_sep_mem_dereg_own(uct_sep_md_t *md, uct_sep_mem_t *mem);


/** @return Local key of registered memory. */
static inline uint32_t uct_sep_mem_lkey(uct_mem_h memh)
{
    return ((const uct_sep_mem_t*)memh)->lkey;
}

END_C_DECLS

#endif
