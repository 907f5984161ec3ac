/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <ucs/datastruct/queue.h>


void uct_sep_dispatch_add(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_add_tail(&uct_sep_ep_iface(ep)->conn.sched, &ep->sched);
}

void uct_sep_dispatch_wait(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_add_tail(&ep->txwq->conn.waiting, &ep->sched);
    uct_sep_txwq_set_flags(ep->txwq, UCT_SEP_TXWQ_FLAG_WAITING);
}

void uct_sep_dispatch_remove(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_head_init(&ep->sched);
}

/* Call an endpoint's first pending request, and put the endpoint where it waits
 * for what the next one needs; returns whether anything was sent */
static int uct_sep_dispatch_first(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;
    ucs_status_t status;

    if (ucs_queue_is_empty(&ep->pending)) {
        return 0;
    }

    priv = ucs_queue_pull_elem_non_empty(&ep->pending,
                                         uct_pending_req_priv_queue_t,
                                         queue_elem);
    req  = ucs_container_of(priv, uct_pending_req_t, priv);

    /* Off the queue while it is called: the callback may release it or add it
     * again */
    --iface->conn.num_pending;
    iface->conn.dispatched = ep;
    status               = req->func(req);
    if (iface->conn.dispatched == NULL) {
        return 1; /* The request's callback has destroyed the endpoint */
    }

    if (status != UCS_OK) {
        ucs_queue_push_head(&ep->pending, &priv->queue_elem);
        ++iface->conn.num_pending;
    }

    if (!ucs_queue_is_empty(&ep->pending)) {
        if (uct_sep_ep_can_send(ep) || (iface->tx.cq_credits < 0)) {
            uct_sep_dispatch_add(ep);
        } else if (ep->txwq != &iface->tx.idle) {
            uct_sep_dispatch_wait(ep);
        }
    }

    return !UCS_STATUS_IS_ERR(status);
}

static unsigned uct_sep_dispatch_retry(void *arg)
{
    uct_sep_iface_t *iface = arg;

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.dispatch_id);
    uct_sep_dispatch(iface);
    return 1;
}

void uct_sep_dispatch(uct_sep_iface_t *iface)
{
    UCS_LIST_HEAD(round);
    int progressed;
    uct_sep_ep_t *ep;

    if (iface->conn.in_dispatch) {
        return;
    }

    iface->conn.in_dispatch = 1;
    do {
        /* One request of each endpoint in turn */
        progressed = 0;
        ucs_list_splice_tail(&round, &iface->conn.sched);
        ucs_list_head_init(&iface->conn.sched);
        while (!ucs_list_is_empty(&round) && (iface->tx.cq_credits >= 0)) {
            ep = ucs_list_extract_head(&round, uct_sep_ep_t, sched);
            ucs_list_head_init(&ep->sched);
            progressed |= uct_sep_dispatch_first(ep);
        }
        ucs_list_splice_tail(&iface->conn.sched, &round);
        ucs_list_head_init(&round);
    } while (progressed && (iface->tx.cq_credits >= 0) &&
             !ucs_list_is_empty(&iface->conn.sched));
    iface->conn.in_dispatch = 0;
    uct_sep_postlist_ring_any(iface);

    if (!ucs_list_is_empty(&iface->conn.sched)) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_credits_stall(iface);
        } else {
            /* They wait for something unknown to us */
            uct_worker_progress_register_safe(&iface->super.worker->super,
                                              uct_sep_dispatch_retry,
                                              iface, 0,
                                              &iface->conn.dispatch_id);
        }
    }
}

void uct_sep_dispatch_wake(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_clear_flags(txwq, UCT_SEP_TXWQ_FLAG_WAITING);
    if (!ucs_list_is_empty(&iface->tx.fc_due)) {
        uct_sep_fc_send_due(iface);
    }
    uct_sep_eager_send_due(iface);

    ucs_list_splice_tail(&iface->conn.sched, &txwq->conn.waiting);
    ucs_list_head_init(&txwq->conn.waiting);

    if (iface->tx.stalled) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_credits_stall(iface);
            return;
        }
        uct_sep_credits_unstall(iface);
    }

    uct_sep_dispatch(iface);
}

void uct_sep_dispatch_unstall(uct_sep_iface_t *iface)
{
    if (iface->tx.stalled && (iface->tx.cq_credits >= 0)) {
        uct_sep_credits_unstall(iface);
        uct_sep_fc_send_due(iface);
        uct_sep_eager_send_due(iface);
        uct_sep_dispatch(iface);
    }
}
