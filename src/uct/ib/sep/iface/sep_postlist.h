/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_POSTLIST_H
#define UCT_SEP_POSTLIST_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_postlist.h
 *
 * Doorbell batching (UCX_SEP_TX_POSTLIST): work requests are written to the
 * send queue, and the device is told about a whole list of them at once. A list
 * ends when it is full and, at any length, when the application progresses,
 * flushes, fences, arms events, runs out of credits, or gives up an endpoint:
 * nothing waits for a doorbell longer than the application keeps posting. Lists
 * are per send queue, as doorbell records are.
 */


/** A queue has a list. */
static inline void
uct_sep_postlist_begin(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_link_unrung(txwq, &iface->tx.unrung);
}


/** Tell the device about a queue's list, if there is one. */
void uct_sep_postlist_ring(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Tell the device about all lists. */
void uct_sep_postlist_ring_all(uct_sep_iface_t *iface);


/** Tell the device about all lists, if there are any. */
static inline void uct_sep_postlist_ring_any(uct_sep_iface_t *iface)
{
    if (!ucs_list_is_empty(&iface->tx.unrung)) {
        uct_sep_postlist_ring_all(iface);
    }
}


/** Level UCT_SEP_STACK_LISTS of progress: leaves no list behind. */
unsigned uct_sep_postlist_progress(uct_iface_h tl_iface);

END_C_DECLS

#endif
