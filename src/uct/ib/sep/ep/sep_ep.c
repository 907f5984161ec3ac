/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_ep.h"
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


static uct_sep_iface_t *uct_sep_ep_iface(const uct_sep_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_sep_iface_t);
}

/* Whether there is room for a work request */
static int uct_sep_ep_can_post(uct_sep_ep_t *ep)
{
    return uct_sep_txwq_has_credits(ep->txwq) &&
           (uct_sep_ep_iface(ep)->tx.cq_credits >= 0);
}

int uct_sep_ep_can_send(uct_sep_ep_t *ep)
{
    return uct_sep_ep_can_post(ep) && !uct_sep_fc_is_blocked(ep->txwq);
}

ucs_status_t uct_sep_ep_connect(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    ucs_async_context_t *async = iface->super.worker->async;
    ucs_status_t status;

    if (!(ep->flags & UCT_SEP_EP_FLAG_CONNECTING)) {
        ep->flags |= UCT_SEP_EP_FLAG_CONNECTING;
        status     = uct_sep_cm_conn_start(iface->conn.cm, &ep->link->super);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
            return status;
        }
    }

    if (async->mode == UCS_ASYNC_MODE_POLL) {
        /* Nobody else handles the packets then */
        ucs_async_poll(async);
    }

    return UCS_ERR_NO_RESOURCE;
}

ucs_status_t UCS_F_NOINLINE uct_sep_ep_no_credits(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    uct_sep_txwq_t *txwq   = ep->txwq;
    ucs_status_t status;

    if (txwq == &iface->tx.idle) {
        if (ep->flags & UCT_SEP_EP_FLAG_FAILED) {
            return UCS_ERR_CONNECTION_RESET;
        }

        status = uct_sep_ep_connect(ep);
        if (status != UCS_ERR_NO_RESOURCE) {
            return status;
        }
    } else if (iface->tx.cq_credits < 0) {
        uct_sep_credits_stall(iface);
    } else if (uct_sep_txwq_has_credits(txwq)) {
        ucs_assert(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE);
        txwq->flags   &= ~UCT_SEP_TXWQ_FLAG_FENCE;
        txwq->credits += UCT_SEP_TXWQ_FENCE_BIAS;
        /* Not a NOP: no specification says that it waits for the fence */
        iface->tx.ops->post_empty(iface, txwq, 1, UCT_SEP_FM_FENCE);
        if ((txwq->credits >= 0) && (iface->tx.cq_credits >= 0)) {
            return UCS_OK;
        }
    }

    uct_sep_postlist_ring_any(iface);
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}

ucs_status_t UCS_F_NOINLINE uct_sep_ep_no_am_credits(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    ucs_status_t status;

    if ((ep->txwq->credits | iface->tx.cq_credits) < 0) {
        status = uct_sep_ep_no_credits(ep);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (!uct_sep_fc_is_blocked(ep->txwq)) {
        return UCS_OK; /* A message that has to do something about the window */
    }

    uct_sep_postlist_ring_any(iface);
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}

/* Have the dispatcher call the pending requests */
static void uct_sep_ep_schedule(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_add_tail(&uct_sep_ep_iface(ep)->tx.sched, &ep->sched);
}

/* Have a completion of the send queue call them */
static void uct_sep_ep_wait(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_add_tail(&ep->txwq->waiting, &ep->sched);
    ep->txwq->flags |= UCT_SEP_TXWQ_FLAG_WAITING;
}

static void uct_sep_ep_unschedule(uct_sep_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_head_init(&ep->sched);
}

void uct_sep_ep_attach(uct_sep_ep_t *ep, uct_sep_txwq_t *txwq)
{
    ep->txwq   = txwq;
    ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
    if (!ucs_queue_is_empty(&ep->pending)) {
        uct_sep_ep_schedule(ep);
    }
}

void uct_sep_ep_detach(uct_sep_ep_t *ep)
{
    ep->txwq   = &uct_sep_ep_iface(ep)->tx.idle;
    ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
    uct_sep_ep_unschedule(ep);
}

ucs_status_t uct_sep_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_sep_iface_t *iface = ucs_derived_of(params->iface, uct_sep_iface_t);
    uct_sep_conn_t *conn;
    ucs_status_t status;
    uct_sep_ep_t *ep;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);

    ep = ucs_malloc(sizeof(*ep), "sep_ep");
    if (ep == NULL) {
        ucs_error("%s: no memory for an endpoint", iface->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    status = UCS_CLASS_INIT(uct_base_ep_t, &ep->super, &iface->super);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_cm_conn_get(iface->conn.cm, params->dev_addr,
                                 params->iface_addr,
                                 UCT_EP_PARAMS_GET_PATH_INDEX(params), &conn);
    if (status != UCS_OK) {
        goto err_cleanup;
    }

    ep->link  = ucs_container_of(conn, uct_sep_link_t, super);
    ep->txwq  = &iface->tx.idle;
    ep->flags = 0;
    ucs_queue_head_init(&ep->pending);
    ucs_list_head_init(&ep->sched);
    ucs_list_add_tail(&ep->link->eps, &ep->list);

    UCS_ASYNC_BLOCK(iface->super.worker->async);
    if ((ep->link->txwq != NULL) &&
        (ep->link->txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE)) {
        uct_sep_ep_attach(ep, ep->link->txwq);
    }
    UCS_ASYNC_UNBLOCK(iface->super.worker->async);

    *ep_p = &ep->super.super;
    return UCS_OK;

err_cleanup:
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
err_free:
    ucs_free(ep);
    return status;
}

void uct_sep_ep_purge_warn(uct_pending_req_t *req, void *arg)
{
    ucs_warn("endpoint %p is destroyed with pending request %p", arg,
             (void*)req);
}

void uct_sep_ep_destroy(uct_ep_h tl_ep)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);

    uct_sep_postlist_ring_any(iface);
    uct_sep_ep_pending_purge(tl_ep, uct_sep_ep_purge_warn, ep);
    if (iface->tx.dispatched == ep) {
        iface->tx.dispatched = NULL;
    }

    /* Before any completion is called: if that progresses and the queue pair
     * fails, the endpoint's user is no longer told */
    uct_sep_ep_unschedule(ep);
    ucs_list_del(&ep->list);
    if (ep->txwq != &iface->tx.idle) {
        uct_sep_txwq_disown(ep->txwq, ep);
    }

    uct_sep_cm_conn_put(iface->conn.cm, &ep->link->super);
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
    ucs_free(ep);
}

ucs_status_t uct_sep_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                    unsigned flags)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_queue_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);

    if (uct_sep_ep_can_send(ep)) {
        return UCS_ERR_BUSY;
    }

    /* Nothing was refused yet: the operation starts the connection, or learns
     * why there is none. A request would wait for ever. */
    if ((ep->txwq == &iface->tx.idle) &&
        !(ep->flags & (UCT_SEP_EP_FLAG_FAILED |
                       UCT_SEP_EP_FLAG_CONNECTING))) {
        return UCS_ERR_BUSY;
    }

    UCT_TL_EP_STAT_PEND(&ep->super);
    uct_pending_req_queue_push(&ep->pending, req);
    ++iface->tx.num_pending;

    if (ep->txwq == &iface->tx.idle) {
        /* Attaching or failing the endpoint continues with it */
    } else if (iface->tx.cq_credits < 0) {
        uct_sep_ep_schedule(ep);
    } else {
        uct_sep_ep_wait(ep);
    }

    return UCS_OK;
}

void uct_sep_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                              void *arg)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;

    while (!ucs_queue_is_empty(&ep->pending)) {
        priv = ucs_queue_pull_elem_non_empty(&ep->pending,
                                             uct_pending_req_priv_queue_t,
                                             queue_elem);
        req  = ucs_container_of(priv, uct_pending_req_t, priv);
        --iface->tx.num_pending;
        if (cb != NULL) {
            cb(req, arg);
        } else {
            ucs_debug("endpoint %p: pending request %p is dropped", (void*)ep,
                      (void*)req);
        }
    }

    uct_sep_ep_unschedule(ep);
}

int uct_sep_ep_dispatch(uct_sep_ep_t *ep)
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
    --iface->tx.num_pending;
    iface->tx.dispatched = ep;
    status               = req->func(req);
    if (iface->tx.dispatched == NULL) {
        return 1; /* The request's callback has destroyed the endpoint */
    }

    if (status != UCS_OK) {
        ucs_queue_push_head(&ep->pending, &priv->queue_elem);
        ++iface->tx.num_pending;
    }

    if (!ucs_queue_is_empty(&ep->pending)) {
        if (uct_sep_ep_can_send(ep) || (iface->tx.cq_credits < 0)) {
            uct_sep_ep_schedule(ep);
        } else if (ep->txwq != &iface->tx.idle) {
            uct_sep_ep_wait(ep);
        }
    }

    return !UCS_STATUS_IS_ERR(status);
}

ucs_status_t uct_sep_ep_flush_track(uct_sep_ep_t *ep, uct_completion_t *comp)
{
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_op_t *op;

    if (comp != NULL) {
        op = ucs_mpool_get_inline(&uct_sep_ep_iface(ep)->tx.op_mp);
        if (op == NULL) {
            return UCS_ERR_NO_MEMORY;
        }

        op->handler = uct_sep_op_complete_flush;
        op->comp    = comp;
        op->ep      = ep;
        op->end     = txwq->sw_pi;
        ucs_queue_push(&txwq->outstanding, &op->queue);
    }

    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}

ucs_status_t uct_sep_ep_flush(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    uct_sep_txwq_t *txwq   = ep->txwq;

    uct_sep_postlist_ring_any(iface);

    /* Waiting requests come first even if there is room, since they may wait
     * for a window. Unless it is one of them that flushes: it would wait for
     * those behind it. */
    if (ucs_unlikely(!ucs_queue_is_empty(&ep->pending) &&
                     !iface->tx.in_dispatch &&
                     !(flags & UCT_FLUSH_FLAG_CANCEL) &&
                     !(ep->flags & UCT_SEP_EP_FLAG_FAILED))) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_credits_stall(iface);
        }
        return UCS_ERR_NO_RESOURCE;
    }

    if (uct_sep_txwq_is_empty(txwq)) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    /* Only the queue pair as a whole can be stopped. If other endpoints use it,
     * we must not break off their operations; this one's then complete too, at
     * the latest by the transport's timeout. */
    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL) &&
        ucs_list_is_only(&ep->link->eps, &ep->list)) {
        uct_sep_link_cancel(iface, txwq);
        return UCS_OK;
    }

    if (!uct_sep_ep_can_post(ep)) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_credits_stall(iface);
        }
        return UCS_ERR_NO_RESOURCE;
    }

    uct_sep_credits_signal_last(iface, txwq);

    return uct_sep_ep_flush_track(ep, comp);
}

static void uct_sep_txwq_set_fence(uct_sep_txwq_t *txwq)
{
    /* Work requests execute in order, but the next one does not wait for the
     * answers to reads and atomics. Nothing outstanding, nothing to do. */
    if (!uct_sep_txwq_is_empty(txwq) &&
        !(txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE)) {
        txwq->flags   |= UCT_SEP_TXWQ_FLAG_FENCE;
        txwq->credits -= UCT_SEP_TXWQ_FENCE_BIAS;
    }
}

ucs_status_t uct_sep_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    uct_sep_ep_t *ep = ucs_derived_of(tl_ep, uct_sep_ep_t);

    uct_sep_postlist_ring_any(uct_sep_ep_iface(ep));
    if (uct_sep_ep_iface(ep)->config.has_fence) {
        uct_sep_txwq_set_fence(ep->txwq);
    }
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}

ucs_status_t
uct_sep_ep_check(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    ucs_status_t status;

    UCT_EP_KEEPALIVE_CHECK_PARAM(flags, comp);

    uct_sep_postlist_ring_any(iface);

    if (ep->txwq == &iface->tx.idle) {
        /* Connecting will find out */
        status = uct_sep_ep_no_credits(ep);
        return (status == UCS_ERR_NO_RESOURCE) ? UCS_OK : status;
    }

    /* A signaled work request will tell. An unsignaled one may have succeeded
     * long ago. */
    if ((uct_sep_txwq_is_empty(ep->txwq) ||
         !uct_sep_txwq_is_signaled(ep->txwq)) && uct_sep_ep_can_post(ep)) {
        iface->tx.ops->post_empty(iface, ep->txwq, 1, UCT_SEP_FM_SIGNALED);
    }

    return UCS_OK;
}

ucs_status_t uct_sep_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                 uct_completion_t *comp)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count         = 0;
    uct_sep_txwq_t *txwq;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_sep_postlist_ring_any(iface);

    if (iface->tx.cq_credits < 0) {
        uct_sep_credits_stall(iface);
    }

    ucs_list_for_each(txwq, &iface->tx.active, list) {
        if (!uct_sep_txwq_is_empty(txwq)) {
            ++count;
            if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
                uct_sep_credits_signal_last(iface, txwq);
            }
        }
    }

    if ((count > 0) || (iface->tx.num_pending > 0)) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
        return UCS_INPROGRESS;
    }

    UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    return UCS_OK;
}

ucs_status_t uct_sep_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_txwq_t *txwq;

    uct_sep_postlist_ring_any(iface);
    if (iface->config.has_fence) {
        ucs_list_for_each(txwq, &iface->tx.active, list) {
            uct_sep_txwq_set_fence(txwq);
        }
    }

    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}
