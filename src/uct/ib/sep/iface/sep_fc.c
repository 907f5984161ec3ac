/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_fc.h>

#include <uct/ib/sep/iface/sep_credits.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/** A request on a queue pair that the main thread does not know yet: the peer
 *  sends as soon as it knows that ours can receive. */
typedef struct uct_sep_fc_early {
    ucs_list_link_t list; /**< In uct_sep_iface_t */
    uint32_t        qpn;
    uint8_t         am_id; /**< Flow control bits of all messages */
} uct_sep_fc_early_t;


/* Set the window, and the value at which something has to be done next */
static void uct_sep_fc_set_window(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                  int32_t window)
{
    if (txwq->fc.flags & (UCT_SEP_FC_FLAG_GRANT | UCT_SEP_FC_FLAG_RING)) {
        /* The next message carries the grant, or knows of the ring */
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

static void
uct_sep_fc_keep(uct_sep_iface_t *iface, uint32_t qpn, uint8_t am_id)
{
    uct_sep_fc_early_t *early;

    ucs_list_for_each(early, &iface->rx.fc_early, list) {
        if (early->qpn == qpn) {
            early->am_id |= am_id;
            return;
        }
    }

    early = ucs_malloc(sizeof(*early), "sep_fc_early");
    if (early == NULL) {
        ucs_error("%s: no memory to remember that the peer of QP 0x%x waits "
                  "for a grant; set UCX_SEP_FC_ENABLE=n to do without",
                  iface->port.name, qpn);
        return;
    }

    early->qpn   = qpn;
    early->am_id = am_id;
    ucs_list_add_tail(&iface->rx.fc_early, &early->list);
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
    } else if (!is_pure) {
        /* Then a grant is of no use: nothing was sent, or it was long ago */
        uct_sep_fc_keep(iface, qpn, am_id & (UCT_SEP_AM_FC_SOFT_REQ |
                                             UCT_SEP_AM_FC_HARD_REQ));
    }

    return !is_pure;
}

int uct_sep_fc_start(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_fc_early_t *early, *tmp;
    uint8_t am_id;

    txwq->fc.flags = (iface->config.fc.early > iface->config.fc.soft) ?
                     UCT_SEP_FC_FLAG_EARLY : 0;
    uct_sep_fc_set_window(iface, txwq, iface->config.fc.window);

    ucs_list_for_each_safe(early, tmp, &iface->rx.fc_early, list) {
        if (uct_sep_qp_table_find(&iface->qps, early->qpn) == txwq) {
            am_id = early->am_id;
            ucs_list_del(&early->list);
            ucs_free(early);
            uct_sep_fc_apply(iface, txwq, am_id, 0);
            return 1;
        }
    }
    return 0;
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

void uct_sep_fc_cleanup(uct_sep_iface_t *iface)
{
    uct_sep_fc_early_t *early, *tmp;

    ucs_list_for_each_safe(early, tmp, &iface->rx.fc_early, list) {
        ucs_list_del(&early->list);
        ucs_free(early);
    }
}
