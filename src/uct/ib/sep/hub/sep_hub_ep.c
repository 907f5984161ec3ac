/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/hub/sep_hub_ep.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/hub/sep_hub_ops.h>
#include <uct/ib/sep/port/sep_addr_rdmacm.h>

#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>


static uct_ep_h uct_sep_hub_ep_core(uct_sep_hub_ep_t *ep)
{
    return &ep->peer->ep->super.super;
}

ucs_status_t
uct_sep_hub_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(params->iface,
                                                uct_sep_hub_iface_t);
    const uct_sep_hub_addr_t *addr;
    ucs_status_t status;
    uct_sep_hub_ep_t *ep;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);

    addr = (const void*)params->iface_addr;
    if (!uct_sep_addr_is_hub(addr)) {
        ucs_error("%s: this process has UCX_SEP_CATEGORY=mpi_threads and the "
                  "peer does not: set it in all processes or in none",
                  iface->hub->dev_name);
        return UCS_ERR_UNREACHABLE;
    }

    ep = ucs_calloc(1, sizeof(*ep), "sep_hub_ep");
    if (ep == NULL) {
        ucs_error("%s: no memory for an endpoint", iface->hub->dev_name);
        return UCS_ERR_NO_MEMORY;
    }

    status = UCS_CLASS_INIT(uct_base_ep_t, &ep->super, &iface->super);
    if (status != UCS_OK) {
        goto err_free;
    }

    ep->route = uct_sep_hub_addr_route(addr);
    ucs_queue_head_init(&ep->pending);
    ucs_list_head_init(&ep->ops);
    ucs_list_head_init(&ep->sched);
    ucs_list_head_init(&ep->failed);

    uct_sep_hub_lock(iface->hub);
    status = uct_sep_hub_connect(iface->hub, params->dev_addr, addr, ep);
    uct_sep_hub_unlock(iface->hub);
    if (status != UCS_OK) {
        goto err_cleanup;
    }

    ucs_list_add_tail(&iface->eps, &ep->list);
    *ep_p = &ep->super.super;
    return UCS_OK;

err_cleanup:
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
err_free:
    ucs_free(ep);
    return status;
}

/* Nobody waits for the endpoint's operations any more; tell those who did */
static void
uct_sep_hub_ep_cancel_ops(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep)
{
    uct_completion_t *user;
    ucs_status_t status;
    uct_sep_hub_op_t *op;

    while (!ucs_list_is_empty(&ep->ops)) {
        op     = ucs_list_extract_head(&ep->ops, uct_sep_hub_op_t, list);
        user   = op->user;
        status = UCS_ERR_CANCELED;
        --iface->num_ops;

        uct_sep_hub_lock(iface->hub);
        op->ep = NULL; /* If it is not done, somebody may release it now */
        if (op->is_done) {
            op->user = NULL;
            status   = op->comp.status;
        }
        uct_sep_hub_unlock(iface->hub);

        if ((status == UCS_OK) && (op->finish != NULL)) {
            op->finish(op);
        }
        if (user != NULL) {
            uct_invoke_completion(user, status);
        }
    }
}

void uct_sep_hub_ep_destroy(uct_ep_h tl_ep)
{
    uct_sep_hub_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);

    uct_sep_hub_ep_pending_purge(tl_ep, uct_sep_ep_purge_warn, ep);

    /* Completions may progress, and the error handler must not be called with
     * it any more */
    uct_sep_hub_lock(iface->hub);
    ep->is_destroyed = 1;
    ucs_list_del(&ep->failed);
    ucs_list_head_init(&ep->failed);
    uct_sep_hub_unlock(iface->hub);

    uct_sep_hub_ep_cancel_ops(iface, ep);
    ucs_list_del(&ep->list);

    uct_sep_hub_lock(iface->hub);
    if (!ep->is_failed && !uct_sep_hub_ep_send_packed(ep)) {
        ucs_diag("endpoint %p is destroyed with an unsent message", (void*)ep);
    }
    uct_sep_hub_disconnect(iface->hub, ep);
    uct_sep_hub_unlock(iface->hub);

    uct_sep_hub_ep_drop_packed(ep);
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
    if (ep->in_dispatch > 0) {
        ep->peer = NULL; /* uct_sep_hub_ep_dispatch() does the rest */
    } else {
        ucs_free(ep);
    }
}

/*
 * Pending requests are kept here; the core only tells when to try.
 */

int uct_sep_hub_ep_unblock(uct_sep_hub_ep_t *ep)
{
    if (ep->is_failed) {
        return 1; /* The core has the status */
    }

    if (!uct_sep_hub_ep_send_packed(ep)) {
        return 0;
    }

    ep->is_blocked = !ucs_queue_is_empty(&ep->pending);
    return !ep->is_blocked || ep->in_dispatch;
}

ucs_status_t uct_sep_hub_ep_pending_add(uct_ep_h tl_ep,
                                        uct_pending_req_t *req,
                                        unsigned flags)
{
    uct_sep_hub_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);
    ucs_status_t status        = UCS_OK;

    uct_sep_hub_lock(iface->hub);
    if (ep->is_failed) {
        /* Waits to be purged */
    } else if (!ucs_queue_is_empty(&ep->pending)) {
        /* Waits for the one in front of it */
    } else if (uct_sep_hub_ep_send_packed(ep) &&
               uct_sep_ep_can_send(ep->peer->ep)) {
        status = UCS_ERR_BUSY;
    } else if (ucs_list_is_empty(&ep->sched)) {
        status = uct_sep_hub_wait(iface->hub, ep);
    }
    uct_sep_hub_unlock(iface->hub);

    if (status != UCS_OK) {
        return UCS_ERR_BUSY;
    }

    UCT_TL_EP_STAT_PEND(&ep->super);
    uct_pending_req_queue_push(&ep->pending, req);
    ++iface->num_pending;
    ep->is_blocked = 1;
    return UCS_OK;
}

void uct_sep_hub_ep_pending_purge(uct_ep_h tl_ep,
                                  uct_pending_purge_callback_t cb, void *arg)
{
    uct_sep_hub_ep_t *ep = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);

    uct_sep_ep_purge(&ep->pending, &uct_sep_hub_ep_iface(ep)->num_pending, cb,
                     arg);
}

/* Have it called again: when the core can send or, if it can, with those that
 * are ready */
static void
uct_sep_hub_ep_reschedule(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep)
{
    uct_sep_hub_lock(iface->hub);
    if (!ep->is_failed && ucs_list_is_empty(&ep->sched) &&
        (uct_sep_hub_wait(iface->hub, ep) != UCS_OK)) {
        ucs_list_add_tail(&iface->inbox.ready, &ep->sched);
    }
    uct_sep_hub_unlock(iface->hub);
}

unsigned uct_sep_hub_ep_dispatch(uct_sep_hub_ep_t *ep)
{
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);
    unsigned count             = 0;
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;
    ucs_status_t status;
    int can_send;

    uct_sep_hub_lock(iface->hub);
    can_send = ep->is_failed || uct_sep_hub_ep_send_packed(ep);
    uct_sep_hub_unlock(iface->hub);
    if (!can_send) {
        uct_sep_hub_ep_reschedule(iface, ep);
        return 0;
    }

    if (ucs_queue_is_empty(&ep->pending)) {
        return 0;
    }

    priv = ucs_queue_pull_elem_non_empty(&ep->pending,
                                         uct_pending_req_priv_queue_t,
                                         queue_elem);
    req  = ucs_container_of(priv, uct_pending_req_t, priv);

    /* Off the queue while it is called: the callback may release it or add it
     * again */
    --iface->num_pending;
    ++ep->in_dispatch;
    status = req->func(req);
    --ep->in_dispatch;
    if (ep->peer == NULL) {
        if (ep->in_dispatch == 0) {
            ucs_free(ep);
        }
        return 1;
    }

    if (status != UCS_OK) {
        ucs_queue_push_head(&ep->pending, &priv->queue_elem);
        ++iface->num_pending;
    }
    count = !UCS_STATUS_IS_ERR(status);

    if (!ucs_queue_is_empty(&ep->pending)) {
        uct_sep_hub_ep_reschedule(iface, ep);
    }
    return count;
}

/*
 * Flush, fence, check
 */

int uct_sep_hub_ep_is_complete(uct_sep_hub_ep_t *ep)
{
    const uct_sep_txwq_t *txwq = ep->peer->ep->txwq;

    if (!ep->is_dirty) {
        return 1;
    }

    /* An index that was passed long ago may seem to be ahead again: then we
     * wait needlessly, which does no harm. One that was not passed is never
     * further ahead than the queue is long. Requests that have failed are
     * passed, too: then it is not complete before it hears of that. */
    if (ep->is_failed || uct_sep_txwq_is_empty(txwq) ||
        (!txwq->conn.is_lost && ((int16_t)(txwq->hw_ci - ep->mark) >= 0))) {
        ep->is_dirty = 0;
        return 1;
    }

    return 0;
}

/* The queue pair is stopped as a whole, so only if no other interface uses
 * it. */
static UCT_SEP_REQUIRES(uct_sep_hub_mutex) int
uct_sep_hub_ep_cancel(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep)
{
    ucs_status_t status;

    if (!ucs_list_is_only(&ep->peer->eps, &ep->peer_list)) {
        return 0;
    }

    status = uct_ep_flush(uct_sep_hub_ep_core(ep), UCT_FLUSH_FLAG_CANCEL,
                          NULL);
    if (status != UCS_OK) {
        return 0;
    }

    uct_sep_hub_peer_fail(iface->hub, ep->peer, UCS_ERR_CANCELED, 0);
    uct_sep_hub_mail_take(iface);
    return 1;
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_ep_flush_core(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep,
                          uct_completion_t *comp)
{
    uct_sep_hub_op_t *op = NULL;
    ucs_status_t status;

    if (comp != NULL) {
        op = uct_sep_hub_op_get(&iface->hub->op_mp, ep, comp);
        if (op == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    if (uct_sep_hub_ep_is_complete(ep)) {
        /* Completed operations are still in the mail: this comes behind them */
        status = UCS_INPROGRESS;
        if (op != NULL) {
            uct_invoke_completion(&op->comp, uct_sep_hub_ep_is_untold(ep) ?
                                             ep->failure : UCS_OK);
        }
        uct_sep_hub_mail_notify(iface);
    } else {
        status = uct_ep_flush(uct_sep_hub_ep_core(ep), 0,
                              (op != NULL) ? &op->comp : NULL);
        if ((status != UCS_INPROGRESS) && (op != NULL)) {
            uct_sep_hub_op_cancel(iface->hub, op);
        }
    }

    return status;
}

ucs_status_t uct_sep_hub_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                  uct_completion_t *comp)
{
    uct_sep_hub_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);
    int is_cancelled           = 0;
    ucs_status_t status;

    uct_sep_hub_lock(iface->hub);
    if (ucs_unlikely(!ep->is_failed && !uct_sep_hub_ep_send_packed(ep))) {
        status = UCS_ERR_NO_RESOURCE;
    } else if (ucs_unlikely(!ucs_queue_is_empty(&ep->pending)) &&
               !ep->in_dispatch && !ep->is_failed &&
               !(flags & UCT_FLUSH_FLAG_CANCEL)) {
        /* It queues behind them; a pending one does not wait for those behind
         * it */
        status = UCS_ERR_NO_RESOURCE;
    } else if (uct_sep_hub_ep_is_complete(ep) &&
               ucs_list_is_empty(&ep->ops) && !uct_sep_hub_ep_is_untold(ep)) {
        status = UCS_OK;
    } else if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL) &&
               !ep->is_failed && uct_sep_hub_ep_cancel(iface, ep)) {
        is_cancelled = 1;
        status       = UCS_OK;
    } else {
        status = uct_sep_hub_ep_flush_core(iface, ep, comp);
    }
    uct_sep_hub_unlock(iface->hub);

    if (ucs_unlikely(is_cancelled)) {
        uct_sep_hub_ep_drop_packed(ep);
        uct_sep_hub_mail_finish_ops(iface);
    }

    if (status == UCS_OK) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
    } else if (status == UCS_INPROGRESS) {
        UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    }
    return status;
}

ucs_status_t uct_sep_hub_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    uct_sep_hub_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);
    ucs_status_t status;

    uct_sep_hub_lock(iface->hub);
    ep->is_fenced |= (ep->packed != NULL);
    status         = uct_ep_fence(uct_sep_hub_ep_core(ep), flags);
    uct_sep_hub_unlock(iface->hub);
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return status;
}

ucs_status_t uct_sep_hub_ep_check(uct_ep_h tl_ep, unsigned flags,
                                  uct_completion_t *comp)
{
    uct_sep_hub_ep_t *ep       = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    uct_sep_hub_iface_t *iface = uct_sep_hub_ep_iface(ep);
    ucs_status_t status;

    UCT_SEP_COMPAT_KEEPALIVE_CHECK(flags, comp);

    uct_sep_hub_lock(iface->hub);
    status = uct_ep_check(uct_sep_hub_ep_core(ep), flags, NULL);
    if (status == UCS_OK) {
        uct_sep_hub_ep_mark(ep);
    }
    uct_sep_hub_unlock(iface->hub);
    return status;
}

int uct_sep_hub_ep_is_connected(uct_ep_h tl_ep,
                                const uct_device_addr_t *dev_addr,
                                const uct_iface_addr_t *iface_addr)
{
    uct_sep_hub_ep_t *ep           = ucs_derived_of(tl_ep, uct_sep_hub_ep_t);
    const uct_sep_hub_addr_t *addr = (const void*)iface_addr;
    uct_sep_iface_addr_t hub_iface;
    uct_sep_device_addr_t dev;

    if (addr != NULL) {
        if (!uct_sep_addr_is_hub(addr) ||
            (ep->route != uct_sep_hub_addr_route(addr))) {
            return 0;
        }
        hub_iface = uct_sep_hub_addr_iface(addr);
    }

    /* Neither the peer nor its address change while the endpoint is there */
    uct_sep_device_addr_read(&uct_sep_hub_ep_iface(ep)->hub->core->port.addr,
                             dev_addr, &dev);
    return uct_sep_peer_addr_is(&ep->peer->addr, &dev,
                                (addr == NULL) ? NULL : &hub_iface);
}
