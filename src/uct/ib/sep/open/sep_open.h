/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OPEN_H
#define UCT_SEP_OPEN_H

#include <uct/ib/sep/iface/sep_iface.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>
#include <ucs/sys/stubs.h>

BEGIN_C_DECLS

/**
 * @file sep_open.h
 *
 * What opening has in common for the two kinds of interfaces, with queues of
 * their own (sep_iface_open.c) and on a hub (sep_hub_iface.c).
 */

/** Initialisers of uct_iface_ops_t for operations that neither kind has, and
 *  for UCT's own. Connections are made to interfaces, not to endpoints; there
 *  are no short gets. */
#define UCT_SEP_OPS_COMMON \
    UCT_SEP_COMPAT_UNSUPPORTED(ep_get_short, uct_ep_get_short_func_t), \
    UCT_SEP_COMPAT_UNSUPPORTED(ep_get_address, uct_ep_get_address_func_t), \
    UCT_SEP_COMPAT_UNSUPPORTED(ep_connect_to_ep, \
                               uct_ep_connect_to_ep_func_t), \
    .iface_progress_disable = uct_base_iface_progress_disable


/**
 * Check what a user asks for when opening an interface, before anything exists.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED (not on a device) or
 *         UCS_ERR_INVALID_PARAM (no open mode; an invalid alignment, or an
 *         offset without an alignment) after a message.
 */
ucs_status_t uct_sep_open_check(const uct_iface_params_t *params);


/** Withdraw capabilities whose maximum length is 0: short messages, gets. */
void uct_sep_open_drop_unusable(uct_iface_attr_t *attr);


/** Put the operations of a data path into an interface's table. */
void uct_sep_open_set_ops(const uct_sep_ops_t *tx_ops, uct_iface_ops_t *ops);

END_C_DECLS

#endif
