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
 * Try again to find the local key of a descriptor that has none. If that fails,
 * the descriptor goes back to its pool.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY after a message.
 */
ucs_status_t uct_sep_bufs_make_desc_lkey(uct_sep_iface_t *iface,
                                         uct_sep_desc_t *desc);

END_C_DECLS

#endif
