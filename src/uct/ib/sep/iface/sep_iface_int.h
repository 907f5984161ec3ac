/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_IFACE_INT_H
#define UCT_SEP_IFACE_INT_H

#include <uct/ib/sep/iface/sep_iface.h>

/**
 * @file sep_iface_int.h
 *
 * Parts of an interface's life: its pools of registered buffers, and what takes
 * its first ones from them.
 */

/**
 * Make the pools of what is sent from and the lists of send queues.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t
uct_sep_bufs_init_tx(uct_sep_iface_t *iface,
                     const uct_sep_iface_config_t *config);


/** Release them. */
void uct_sep_bufs_cleanup_tx(uct_sep_iface_t *iface);


/**
 * Make the shared receive queue and its pool, and post as many receives as it
 * takes until progress is enabled.
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

#endif
