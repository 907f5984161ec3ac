/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SELECT_H
#define UCT_SEP_SELECT_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_select.h
 *
 * Which way of posting an interface uses. It is chosen when the interface is
 * opened, and again when a queue pair turns out not to support it.
 */

/**
 * Find the data path that costs least of those that can do all that a mode of
 * sep_ops.h asks for. There is one for any.
 */
const uct_sep_ops_t *uct_sep_select_find(unsigned mode);


/**
 * Install the operations of one way of posting.
 *
 * @param post       UCT_SEP_TX_POST_BF, _DB or _AUTO.
 * @param is_shared  Whether other threads may ring uUARs, too.
 */
void uct_sep_select_ops(uct_sep_iface_t *iface, int post, int is_shared);


/**
 * Make sure that the interface's operations can post to a send queue: it may
 * have no BlueFlame, or a shared uUAR. Before anything is posted to it.
 */
void uct_sep_select_for_txwq(uct_sep_iface_t *iface,
                             const uct_sep_txwq_t *txwq);

END_C_DECLS

#endif
