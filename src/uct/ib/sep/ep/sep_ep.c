/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_op_done.h>
#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/ib/sep/port/sep_addr_rdmacm.h>

#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* As the data path looks at them */
static int uct_sep_ep_has_credits(const uct_sep_ep_t *ep)
{
    return (ep->txwq->credits | uct_sep_ep_iface(ep)->tx.cq_credits) >= 0;
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

        status = uct_sep_link_connect(ep);
        if (status != UCS_ERR_NO_RESOURCE) {
            return status;
        }
    } else if (iface->tx.cq_credits < 0) {
        uct_sep_credits_stall(iface);
    } else if (uct_sep_txwq_has_credits(txwq)) {
        ucs_assert(txwq->flags & UCT_SEP_TXWQ_FLAGS_BIASED);
        if (txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE) {
            uct_sep_txwq_unbias(txwq, UCT_SEP_TXWQ_FLAG_FENCE);
            uct_sep_ring_tx_fence(&txwq->ring);
            /* Not a NOP: no specification says that it waits for the fence */
            iface->tx.ops->post_empty(iface, txwq, 1, UCT_SEP_FM_FENCE);
        }
        if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
            return UCS_OK;
        }
    }

    uct_sep_postlist_ring_any(iface);
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}

ucs_status_t UCS_F_NOINLINE uct_sep_ep_no_op_credits(uct_sep_ep_t *ep)
{
    uct_sep_txwq_t *txwq = ep->txwq;

    /* Nothing is left to be ordered once something from behind the fence has
     * completed: who does not put must not pay for it for ever */
    if ((txwq->flags & UCT_SEP_TXWQ_FLAG_STRICT) &&
        ((int16_t)(txwq->hw_ci - txwq->strict_pi) > 0)) {
        uct_sep_txwq_unbias(txwq, UCT_SEP_TXWQ_FLAG_STRICT);
        if (uct_sep_ep_has_credits(ep)) {
            return UCS_OK;
        }
    }

    return uct_sep_ep_no_credits(ep);
}

ucs_status_t UCS_F_NOINLINE uct_sep_ep_no_am_credits(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    ucs_status_t status;

    if (!uct_sep_ep_has_credits(ep)) {
        status = uct_sep_ep_no_op_credits(ep);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (!uct_sep_fc_is_blocked(ep->txwq)) {
        return UCS_OK; /* A message that has to do something about the window */
    }

    /* It is going to be a pending request, which shorter messages that need no
     * window must not overtake in the ring */
    uct_sep_ring_tx_pause(&ep->txwq->ring);
    uct_sep_postlist_ring_any(iface);
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}

ucs_status_t uct_sep_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_sep_iface_t *iface = ucs_derived_of(params->iface, uct_sep_iface_t);
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

    ucs_queue_head_init(&ep->pending);
    ucs_list_head_init(&ep->sched);
    status = uct_sep_link_attach(ep, params);
    if (status != UCS_OK) {
        goto err_cleanup;
    }

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
    if (iface->conn.dispatched == ep) {
        iface->conn.dispatched = NULL;
    }

    /* Before any completion is called: if that progresses and the queue pair
     * fails, the endpoint's user is no longer told */
    uct_sep_dispatch_remove(ep);
    uct_sep_link_detach(ep);
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
    ++iface->conn.num_pending;

    if (ep->txwq == &iface->tx.idle) {
        /* Attaching or failing the endpoint continues with it */
    } else if (iface->tx.cq_credits < 0) {
        /* Nobody need have asked for completions yet: a fence may have taken
         * the last credit */
        uct_sep_dispatch_add(ep);
        uct_sep_credits_stall(iface);
    } else {
        uct_sep_dispatch_wait(ep);
    }

    return UCS_OK;
}

void uct_sep_ep_purge(ucs_queue_head_t *pending, unsigned *count_p,
                      uct_pending_purge_callback_t cb, void *arg)
{
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;

    while (!ucs_queue_is_empty(pending)) {
        priv = ucs_queue_pull_elem_non_empty(pending,
                                             uct_pending_req_priv_queue_t,
                                             queue_elem);
        req  = ucs_container_of(priv, uct_pending_req_t, priv);
        --*count_p;
        if (cb != NULL) {
            cb(req, arg);
        } else {
            ucs_debug("pending request %p is dropped", (void*)req);
        }
    }
}

void uct_sep_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                              void *arg)
{
    uct_sep_ep_t *ep = ucs_derived_of(tl_ep, uct_sep_ep_t);

    uct_sep_ep_purge(&ep->pending, &uct_sep_ep_iface(ep)->conn.num_pending, cb,
                     arg);
    uct_sep_dispatch_remove(ep);
}

ucs_status_t uct_sep_ep_flush_track(uct_sep_ep_t *ep, uct_completion_t *comp)
{
    uct_sep_op_t *op;

    if (comp == NULL) {
        UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
        return UCS_INPROGRESS;
    }

    op = uct_sep_op_get(uct_sep_ep_iface(ep));
    return (op == NULL) ? UCS_ERR_NO_MEMORY :
                          uct_sep_ep_flush_add(ep, comp, op);
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
                     !iface->conn.in_dispatch &&
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

    UCT_SEP_COMPAT_KEEPALIVE_CHECK(flags, comp);

    uct_sep_postlist_ring_any(iface);

    if (ep->txwq == &iface->tx.idle) {
        /* Connecting will find out */
        status = uct_sep_ep_no_credits(ep);
        return (status == UCS_ERR_NO_RESOURCE) ? UCS_OK : status;
    }

    /* A signaled work request will tell. An unsignaled one may have succeeded
     * long ago. */
    if ((uct_sep_txwq_is_empty(ep->txwq) ||
         !uct_sep_txwq_is_signaled(ep->txwq)) &&
        uct_sep_txwq_has_credits(ep->txwq) && uct_sep_credits_may_ask(iface)) {
        iface->tx.ops->post_empty(iface, ep->txwq, 1, UCT_SEP_FM_SIGNALED);
    }

    return UCS_OK;
}

int uct_sep_ep_is_connected(uct_ep_h tl_ep, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr)
{
    uct_sep_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_sep_iface_t);
    uct_sep_device_addr_t dev;

    /* The address is what the connection is found by: it does not become
     * another peer's */
    uct_sep_device_addr_read(&iface->port.addr, dev_addr, &dev);
    return uct_sep_peer_addr_is((ep->flags & UCT_SEP_EP_FLAG_NO_LINK) ?
                                &ep->peer : &ep->link->super.peer,
                                &dev, (const void*)iface_addr);
}
