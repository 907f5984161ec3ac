/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_fc.h>

#include <uct/ib/sep/iface/sep_credits.h>

#include <ucs/debug/log.h>


/* Set the window, and the value at which something has to be done next */
static void uct_sep_fc_set_window(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                  int32_t window)
{
    if (txwq->fc.flags & (UCT_SEP_FC_FLAG_GRANT | UCT_SEP_FC_FLAG_RING |
                          UCT_SEP_FC_FLAG_FIRST)) {
        /* The next message carries the grant or the mark, or knows of the ring
         */
        txwq->fc.next = window;
    } else if ((txwq->fc.flags & UCT_SEP_FC_FLAG_EARLY) &&
               (window >= iface->config.fc.early)) {
        txwq->fc.next = iface->config.fc.early;
    } else if (window >= iface->config.fc.soft) {
        txwq->fc.next = iface->config.fc.soft;
    } else if (window >= iface->config.fc.hard) {
        txwq->fc.next = iface->config.fc.hard;
    } else {
        txwq->fc.next = 0;
    }
    txwq->fc.left = window - txwq->fc.next - 1;
}

/* The window is full again */
static void
uct_sep_fc_restore_window(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    iface->count.sent += uct_sep_fc_num_sent(iface, txwq);
    uct_sep_fc_set_window(iface, txwq, iface->config.fc.window);
}

void uct_sep_fc_count_received(uct_sep_iface_t *iface)
{
    uint16_t count = uct_sep_srq_num_used(&iface->srq);

    iface->count.received += (uint16_t)(count - iface->count.counted);
    iface->count.counted   = count;
}

uint8_t uct_sep_fc_take_slow(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int32_t window = uct_sep_fc_window(txwq);
    uint8_t bits   = 0;

    ucs_assert((txwq->fc.left < 0) && (window > 0));

    if (txwq->fc.flags & UCT_SEP_FC_FLAG_GRANT) {
        txwq->fc.flags &= ~UCT_SEP_FC_FLAG_GRANT;
        bits           |= UCT_SEP_AM_FC_GRANT;
    }

    if (!iface->config.fc.enable) {
        iface->count.sent += uct_sep_fc_num_sent(iface, txwq);
        window                   = iface->config.fc.window;
    } else if (window == iface->config.fc.hard) {
        bits |= UCT_SEP_AM_FC_HARD_REQ;
    } else if (window == iface->config.fc.soft) {
        bits |= UCT_SEP_AM_FC_SOFT_REQ;
    } else if ((txwq->fc.flags & UCT_SEP_FC_FLAG_EARLY) &&
               (window <= iface->config.fc.early)) {
        txwq->fc.flags &= ~UCT_SEP_FC_FLAG_EARLY;
        bits           |= UCT_SEP_AM_FC_SOFT_REQ;
    }

    if (txwq->fc.flags & UCT_SEP_FC_FLAG_FIRST) {
        txwq->fc.flags &= ~UCT_SEP_FC_FLAG_FIRST;
        if (!(bits & UCT_SEP_AM_FC_HARD_REQ)) {
            bits |= UCT_SEP_AM_FC_SOFT_REQ;
        }
    }

    uct_sep_fc_set_window(iface, txwq, window - 1);
    return bits;
}

/* Send a grant at once, or as soon as there are credits */
static void uct_sep_fc_grant(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    static const uct_sep_wr_am_t grant = {.id = UCT_SEP_AM_FC_PURE_GRANT};

    if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
        /* It is as good as a grant that a message carries */
        if (txwq->fc.flags & UCT_SEP_FC_FLAG_GRANT) {
            txwq->fc.flags &= ~UCT_SEP_FC_FLAG_GRANT;
            uct_sep_fc_set_window(iface, txwq, uct_sep_fc_window(txwq));
        }

        if (txwq->fc.flags & UCT_SEP_FC_FLAG_DUE) {
            txwq->fc.flags &= ~UCT_SEP_FC_FLAG_DUE;
            ucs_list_del(&txwq->fc.list);
        }

        iface->tx.ops->post_header(iface, txwq, grant, NULL, 0);
        return;
    }

    if (!(txwq->fc.flags & UCT_SEP_FC_FLAG_DUE)) {
        txwq->fc.flags |= UCT_SEP_FC_FLAG_DUE;
        ucs_list_add_tail(&iface->tx.fc_due, &txwq->fc.list);
    }

    /* Retried at the queue's next completion, or at any if CQ credits are
     * short */
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_WAITING);
    if (iface->tx.cq_credits < 0) {
        uct_sep_credits_stall(iface);
    }
}

void uct_sep_fc_send_due(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *tmp;

    ucs_list_for_each_safe(txwq, tmp, &iface->tx.fc_due, fc.list) {
        uct_sep_fc_grant(iface, txwq);
    }
}

/* Returns whether somebody waits for what it has brought */
static int uct_sep_fc_apply(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint8_t am_id, int is_pure)
{
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) {
        return 0;
    }

    if (!is_pure && (am_id & (UCT_SEP_AM_FC_SOFT_REQ |
                              UCT_SEP_AM_FC_HARD_REQ))) {
        /* Post the buffers of previous messages before a grant lets more be
         * sent */
        uct_sep_srq_refill(&iface->srq);
        uct_sep_fc_count_received(iface);
        if (am_id & UCT_SEP_AM_FC_HARD_REQ) {
            uct_sep_fc_grant(iface, txwq);
        } else if ((am_id & UCT_SEP_AM_FC_SOFT_REQ) &&
                   !(txwq->fc.flags & UCT_SEP_FC_FLAG_GRANT)) {
            txwq->fc.flags |= UCT_SEP_FC_FLAG_GRANT;
            uct_sep_fc_set_window(iface, txwq, uct_sep_fc_window(txwq));
        }
    }

    if (!(am_id & UCT_SEP_AM_FC_GRANT)) {
        return 0;
    }

    uct_sep_fc_restore_window(iface, txwq);
    return !!(txwq->flags & UCT_SEP_TXWQ_FLAG_WAITING);
}

int uct_sep_fc_receive(uct_sep_iface_t *iface, uint32_t qpn, uint8_t am_id,
                       uct_sep_txwq_t **woken_p)
{
    int is_pure = (am_id & UCT_SEP_AM_FC_MASK) == UCT_SEP_AM_FC_PURE_GRANT;
    uct_sep_txwq_t *txwq;

    txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    *woken_p = NULL;
    if (txwq != NULL) {
        if (uct_sep_fc_apply(iface, txwq, am_id, is_pure)) {
            *woken_p = txwq;
        }
    }

    return !is_pure;
}

void uct_sep_fc_start(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    txwq->fc.flags = (iface->config.fc.early > iface->config.fc.soft) ?
                     UCT_SEP_FC_FLAG_EARLY : 0;
    uct_sep_fc_set_window(iface, txwq, iface->config.fc.window);
}

void uct_sep_fc_announce(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int32_t window = uct_sep_fc_window(txwq);

    txwq->fc.flags |= UCT_SEP_FC_FLAG_FIRST | UCT_SEP_FC_FLAG_FRESH;
    uct_sep_fc_set_window(iface, txwq, window);
}

uint8_t uct_sep_fc_take_mark(uct_sep_txwq_t *txwq, uint8_t bits)
{
    if (!(txwq->fc.flags & UCT_SEP_FC_FLAG_FRESH) ||
        (bits == UCT_SEP_AM_FC_PURE_GRANT)) {
        return bits;
    }

    txwq->fc.flags &= ~UCT_SEP_FC_FLAG_FRESH;
    return bits & ~UCT_SEP_AM_FC_SOFT_REQ;
}

void uct_sep_fc_set_ring(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         int is_open)
{
    int32_t window = uct_sep_fc_window(txwq);

    if (is_open) {
        txwq->fc.flags |= UCT_SEP_FC_FLAG_RING;
    } else {
        txwq->fc.flags &= ~UCT_SEP_FC_FLAG_RING;
    }
    uct_sep_fc_set_window(iface, txwq, window);
}

void uct_sep_fc_stop(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    iface->count.sent += uct_sep_fc_num_sent(iface, txwq);
    if (txwq->fc.flags & UCT_SEP_FC_FLAG_DUE) {
        ucs_list_del(&txwq->fc.list);
    }
    txwq->fc.flags = 0;
}
