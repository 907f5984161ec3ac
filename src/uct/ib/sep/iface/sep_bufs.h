/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_BUFS_H
#define UCT_SEP_BUFS_H

#include <uct/ib/sep/iface/sep_config.h>

BEGIN_C_DECLS

/**
 * @file sep_bufs.h
 *
 * An interface's pools of registered buffers and their first users, and local
 * keys of memory in a worker's own context.
 */

/**
 * Create the pools for sending and the lists of send queues.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t
uct_sep_bufs_init_tx(uct_sep_iface_t *iface,
                     const uct_sep_iface_config_t *config);


/** Release them. */
void uct_sep_bufs_cleanup_tx(uct_sep_iface_t *iface);


/**
 * Create the shared receive queue and its pool, and post as many receives as
 * are needed until progress is enabled.
 *
 * @param params  Of uct_iface_open(): headroom and alignment of messages.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t
uct_sep_bufs_init_rx(uct_sep_iface_t *iface, const uct_iface_params_t *params,
                     const uct_sep_iface_config_t *config);


/** Release them. */
void uct_sep_bufs_cleanup_rx(uct_sep_iface_t *iface);


/**
 * Make the local keys of memory in the worker's own context.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_bufs_make_lkeys(uct_sep_iface_t *iface,
                                     const uct_iov_t *iov, size_t iovcnt);


/**
 * Get a descriptor from its pool, which may have none in its list.
 *
 * @return The descriptor; or, as UCS_STATUS_PTR(), UCS_ERR_NO_RESOURCE, or
 *         UCS_ERR_NO_MEMORY after a message: it has no local key in the
 *         worker's own context.
 */
uct_sep_desc_t *uct_sep_bufs_get_desc(uct_sep_iface_t *iface, ucs_mpool_t *mp);


/** @return Local key of memory where the interface posts, or
 *          UCT_SEP_INVALID_LKEY if the worker has its own context and the key
 *          does not exist there yet. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_sep_bufs_lkey(const uct_sep_iface_t *iface, uct_mem_h memh)
{
    const uct_sep_context_t *own = iface->channel.own;

    return ucs_unlikely(own != NULL) ? uct_sep_own_keys_lkey(&own->keys, memh) :
                                       uct_sep_mem_lkey(memh);
}

END_C_DECLS

#endif
