/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/ib/sep/iface/sep_stack.h>

#include <uct/ib/sep/post/sep_post.inl>

void uct_sep_postlist_ring(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_bf_t *bf = txwq->bf;
    const void *wqe;

    if (txwq->list_count == 0) {
        return;
    }

    /* The device reads a list from where the previous one ended. The doorbell
     * is the beginning of the last work request; if that is the only one,
     * BlueFlame can carry it whole. */
    wqe = uct_sep_txwq_bb(txwq, txwq->last_pi);
    if ((txwq->list_count == 1) && (iface->tx.post != UCT_SEP_TX_POST_DB)) {
        uct_sep_txwq_ring_dbrec(txwq, bf, txwq->dbrec, txwq->sw_pi, wqe,
                                (uint16_t)(txwq->sw_pi - txwq->last_pi), NULL,
                                0, UCT_SEP_TX_POST_BF, 1);
    } else {
        uct_sep_txwq_ring_dbrec(txwq, bf, txwq->dbrec, txwq->sw_pi, wqe, 0,
                                NULL, 0, UCT_SEP_TX_POST_DB, 1);
    }

    uct_sep_txwq_list_end(txwq);
}

void uct_sep_postlist_ring_all(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *tmp;

    ucs_list_for_each_safe(txwq, tmp, &iface->tx.unrung, unrung) {
        uct_sep_postlist_ring(iface, txwq);
    }
}

unsigned uct_sep_postlist_progress(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count;

    uct_sep_postlist_ring_any(iface);
    count = uct_sep_stack_next(iface, UCT_SEP_STACK_LISTS);
    /* Ring for what callbacks and pending requests have posted */
    uct_sep_postlist_ring_any(iface);
    return count;
}
