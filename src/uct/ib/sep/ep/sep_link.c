/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_link_int.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <string.h>


/* Use a send queue from now on; with the async context blocked */
static void uct_sep_link_bind(uct_sep_ep_t *ep, uct_sep_txwq_t *txwq)
{
    ep->txwq           = txwq;
    ep->flags         &= ~UCT_SEP_EP_FLAG_CONNECTING;
    ep->link->is_bound = 1;
    if (!ucs_queue_is_empty(&ep->pending)) {
        uct_sep_dispatch_add(ep);
    }
}

/* Use the queue for those without a connection */
void uct_sep_link_unbind(uct_sep_ep_t *ep)
{
    ep->txwq   = &uct_sep_ep_iface(ep)->tx.idle;
    ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
    uct_sep_dispatch_remove(ep);
}

void uct_sep_link_unbind_all(uct_sep_link_t *link)
{
    uct_sep_ep_t *ep;

    ucs_list_for_each(ep, &link->eps, list) {
        uct_sep_link_unbind(ep);
    }
}

/* The endpoint is one of the connection's, and has the reference. The manager
 * does not know its address any more, which is overwritten. */
static void uct_sep_link_add(uct_sep_link_t *link, uct_sep_ep_t *ep)
{
    ep->link   = link;
    ep->flags &= ~UCT_SEP_EP_FLAG_NO_LINK;
    ucs_list_add_tail(&link->eps, &ep->list);
}

ucs_status_t
uct_sep_link_attach(uct_sep_ep_t *ep, const uct_ep_params_t *params)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    uct_sep_conn_t *conn   = NULL; /* Compilers with -flto want it */
    ucs_status_t status;

    status = uct_sep_cm_peer_add(iface->conn.cm, params->dev_addr,
                                 params->iface_addr,
                                 UCT_EP_PARAMS_GET_PATH_INDEX(params),
                                 &ep->peer, &conn);
    if (status != UCS_OK) {
        return status;
    }

    ep->txwq  = &iface->tx.idle;
    ep->flags = UCT_SEP_EP_FLAG_NO_LINK;
    if (conn == NULL) {
        return UCS_OK;
    }

    uct_sep_link_add(uct_sep_link(conn), ep);

    uct_sep_compat_async_block(iface->super.worker->async);
    if ((ep->link->txwq != NULL) &&
        (ep->link->txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE) &&
        uct_sep_cm_conn_is_usable(conn)) {
        uct_sep_link_bind(ep, ep->link->txwq);
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);
    return UCS_OK;
}

/* The peer has connected, or another endpoint of it has: so does one that had
 * only the address. There is one at most; with the async context blocked. */
static void
uct_sep_link_attach_known(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_peer_addr_t *peer = uct_sep_cm_conn_take_peer(iface->conn.cm,
                                                          &link->super);

    if (peer != NULL) {
        uct_sep_link_add(link, ucs_container_of(peer, uct_sep_ep_t, peer));
    }
}

void uct_sep_link_detach(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);

    if (ep->flags & UCT_SEP_EP_FLAG_NO_LINK) {
        uct_sep_cm_peer_remove(iface->conn.cm, &ep->peer);
        return;
    }

    ucs_list_del(&ep->list);
    if (ep->txwq != &iface->tx.idle) {
        uct_sep_txwq_disown(ep->txwq, ep);
    }

    uct_sep_cm_conn_put(iface->conn.cm, &ep->link->super);
}

/* While a connection is being made for us, the main thread does not leave it to
 * the async thread, which may wake up late, to look for packets */
static unsigned uct_sep_link_connect_progress(void *arg)
{
    uct_sep_iface_t *iface = arg;

    if (!uct_sep_cm_progress(iface->conn.cm)) {
        uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                            &iface->conn.connect_id);
    }

    return uct_sep_link_has_events(iface) ? uct_sep_link_handle_events(iface) :
                                            0;
}

ucs_status_t uct_sep_link_start(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    ucs_status_t status = uct_sep_cm_conn_start(iface->conn.cm, &link->super);

    if ((status == UCS_OK) || (status == UCS_INPROGRESS)) {
        uct_worker_progress_register_safe(&iface->super.worker->super,
                                          uct_sep_link_connect_progress, iface,
                                          0, &iface->conn.connect_id);
    }
    return status;
}

ucs_status_t uct_sep_link_connect(uct_sep_ep_t *ep)
{
    uct_sep_iface_t *iface = uct_sep_ep_iface(ep);
    ucs_async_context_t *async = iface->super.worker->async;
    uct_sep_conn_t *conn;
    ucs_status_t status;

    if (iface->conn.async.is_dead) {
        return UCS_ERR_IO_ERROR;
    }

    if (ep->flags & UCT_SEP_EP_FLAG_NO_LINK) {
        status = uct_sep_cm_peer_get_conn(iface->conn.cm, &ep->peer, &conn);
        if (status != UCS_OK) {
            return status;
        }

        uct_sep_link_add(uct_sep_link(conn), ep);
    }

    if (!(ep->flags & UCT_SEP_EP_FLAG_CONNECTING)) {
        ep->flags |= UCT_SEP_EP_FLAG_CONNECTING;
        status     = uct_sep_evict_start(iface, ep->link);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
            return status;
        }
    }

    if (uct_sep_compat_async_mode(async) == UCS_ASYNC_MODE_POLL) {
        /* Nobody else handles the packets then */
        ucs_async_poll(async);
    }

    return UCS_ERR_NO_RESOURCE;
}

/* The peer wants to go on with a connection that was to be given up */
static void uct_sep_link_resume(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_ep_t *ep;

    ucs_list_for_each(ep, &link->eps, list) {
        if (ep->txwq == &iface->tx.idle) {
            uct_sep_link_bind(ep, link->txwq);
        }
    }
}

/* Whether completions are left that were there when it was first asked about
 * the next message in the ring. Those of others may follow without end. */
static int
uct_sep_link_has_completions(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uint16_t seq = uct_sep_eager_next_seq(txwq);

    if (!txwq->conn.has_cq_end || (txwq->conn.waiting_seq != seq)) {
        txwq->conn.has_cq_end  = 1;
        txwq->conn.waiting_seq = seq;
        txwq->conn.cq_end      = iface->api->cq_end(iface);
    }

    return !iface->api->cq_has_passed(iface, txwq->conn.cq_end);
}

/* Whether a message in its ring is going to be handled. What that waits for is
 * in the completion queue, or held. Who has lied about it, or has lost it, has
 * others wait until what was in the queue has been taken. */
static int
uct_sep_link_has_message(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    return uct_sep_eager_has_message(txwq) &&
           (!uct_sep_eager_is_drained(txwq) ||
            uct_sep_eager_is_held(iface, txwq) ||
            uct_sep_link_has_completions(iface, txwq));
}

int uct_sep_link_is_idle(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_is_empty(txwq)) {
        return !uct_sep_link_has_message(iface, txwq);
    }

    /* Not only with credits: who has none may wait for this one */
    if (uct_sep_txwq_has_credits(txwq) && uct_sep_credits_may_ask(iface)) {
        uct_sep_credits_signal_last(iface, txwq);
        uct_sep_postlist_ring(iface, txwq);
    }
    return 0;
}

void uct_sep_link_probe(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_has_credits(txwq) && uct_sep_credits_may_ask(iface)) {
        iface->tx.ops->post_empty(iface, txwq, 1, UCT_SEP_FM_SIGNALED);
        uct_sep_postlist_ring(iface, txwq);
    }
}

/*
 * A connection that no endpoint uses has been idle: ask the peer whether it can
 * be given up. A peer that was killed does not answer. Whether one that doesn't
 * is alive is for its adapter to say: it answers even if the process sleeps.
 */
static void
uct_sep_link_handle_unused(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;

    if ((txwq == NULL) || !(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE) ||
        !ucs_list_is_empty(&link->eps)) {
        return;
    }

    if (!uct_sep_link_is_idle(iface, txwq)) {
        return; /* Again in the next period */
    }

    if (!uct_sep_cm_conn_is_usable(&link->super)) {
        uct_sep_link_probe(iface, txwq);
    }

    uct_sep_cm_conn_disconnect(iface->conn.cm, &link->super, 0);
}

/* The queue pair can be used; if not, the endpoints waiting for it fail */
static void uct_sep_link_activate(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;
    uct_sep_ep_t *ep;

    if ((uct_sep_qp_table_add(&iface->qps, txwq->qpn, txwq) != UCS_OK) ||
        ((txwq->conn.responder != NULL) &&
         (uct_sep_qp_table_add(&iface->qps, txwq->conn.responder->qp_num,
                               txwq) != UCS_OK))) {
        ucs_error("%s: no memory for the table of %u queue pairs",
                  iface->port.name, iface->qps.count);
        uct_sep_qp_table_remove(&iface->qps, txwq->qpn);
        uct_sep_link_drop(iface, link, UCS_ERR_NO_MEMORY, 1);
        return;
    }

    link->is_active = 1;
    iface->api->txwq_check(iface, txwq);
    uct_sep_evict_handle_made(iface, link);
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_ACTIVE);
    ucs_list_add_tail(&iface->conn.active, &txwq->conn.list);
    uct_sep_fc_start(iface, txwq);
    uct_sep_fc_announce(iface, txwq);

    ucs_list_for_each(ep, &link->eps, list) {
        uct_sep_link_bind(ep, txwq);
    }
}

/* Whether a connection has been made that the main thread does not use yet, and
 * receives on a queue pair */
static int uct_sep_link_is_early(const uct_sep_link_t *link, uint32_t qpn)
{
    const uct_sep_txwq_t *txwq = link->txwq;

    return (txwq != NULL) &&
           ((txwq->flags & (UCT_SEP_TXWQ_FLAG_ESTABLISHED |
                            UCT_SEP_TXWQ_FLAG_ACTIVE)) ==
            UCT_SEP_TXWQ_FLAG_ESTABLISHED) &&
           (qpn == uct_sep_link_recv_qpn(txwq)) &&
           uct_sep_cm_conn_is_usable(&link->super);
}

/* The link's event stays in the queue, and finds nothing to do */
static int uct_sep_link_activate_early(uct_sep_iface_t *iface, uint32_t qpn)
{
    uct_sep_link_t *link;

    ucs_queue_for_each(link, &iface->conn.events, event) {
        if (uct_sep_link_is_early(link, qpn)) {
            uct_sep_link_attach_known(iface, link);
            uct_sep_link_activate(iface, link);
            return 1;
        }
    }
    return 0;
}

/* MPI's libraries rely on this order: see test_sep_uct_order */
void uct_sep_link_handle_early(uct_sep_iface_t *iface, uint32_t qpn)
{
    uct_sep_compat_async_block(iface->super.worker->async);
    if (!uct_sep_link_activate_early(iface, qpn) &&
        uct_sep_cm_heard(iface->conn.cm, qpn)) {
        (void)uct_sep_link_activate_early(iface, qpn);
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);

    uct_sep_dispatch(iface);
}

/*
 * The peer's queue pair is gone. Which requests it has answered is not known,
 * as most ask for no completion. In error, the device ends the others at once:
 * the first one that fails is the first that was lost. A request of ours behind
 * them has a completion in any case.
 */
static void uct_sep_link_settle(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int is_returning;

    uct_sep_txwq_block(txwq);
    if (txwq->conn.is_settled || uct_sep_txwq_is_empty(txwq)) {
        return;
    }

    is_returning          = uct_sep_eager_is_returning_last(txwq);
    txwq->conn.is_settled = 1;
    /* Slots that do not come back are nobody's loss */
    txwq->conn.settled_pi = txwq->sw_pi - is_returning;
    uct_sep_link_end_requests(iface, txwq,
                              is_returning || !uct_sep_txwq_is_signaled(txwq));
}

int uct_sep_link_note_error(uct_sep_txwq_t *txwq, uint16_t pi)
{
    int is_first = !txwq->conn.is_lost;

    txwq->conn.is_lost |= !txwq->conn.is_settled ||
                          ((int16_t)(pi - txwq->conn.settled_pi) < 0);
    return is_first;
}

int uct_sep_link_take_error(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint16_t end)
{
    if (!txwq->conn.is_settled) {
        return 0;
    }

    if (txwq->conn.is_lost && (end == txwq->sw_pi)) {
        txwq->conn.is_over = 1; /* A flush must not find the queue empty */
    } else if ((int16_t)(end - txwq->hw_ci) > 0) {
        uct_sep_link_release(iface, txwq, end);
    }
    return 1;
}

/* Whether something of a connection is under way that both sides give up, or
 * that the peer has lost. The next connection may be made at once: what comes
 * on that must not overtake messages in this one's ring. */
static int
uct_sep_link_must_wait(uct_sep_iface_t *iface, const uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;

    if ((txwq == NULL) || !(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE)) {
        return 0;
    }

    if (!txwq->conn.is_ending) {
        txwq->conn.is_ending  = 1;
        txwq->conn.has_cq_end = 0;
    }

    if (uct_sep_cm_conn_is_ending(&link->super)) {
        return !uct_sep_link_is_idle(iface, txwq);
    }

    uct_sep_link_settle(iface, txwq);
    return (!uct_sep_txwq_is_empty(txwq) && !txwq->conn.is_over) ||
           uct_sep_link_has_message(iface, txwq);
}

/* Returns whether it has to be called again */
static int
uct_sep_link_handle_failure(uct_sep_iface_t *iface, uct_sep_link_t *link,
                            ucs_status_t status)
{
    uct_sep_txwq_t *txwq = link->txwq;
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep, *tmp;

    if (status == UCS_ERR_CONNECTION_RESET) {
        if (link->super.state != UCT_SEP_CONN_STATE_RESETTING) {
            return 0; /* Ours has failed as well, and this is the next one */
        }

        if (uct_sep_link_must_wait(iface, link)) {
            /* What would be sent meanwhile waits for the next connection */
            if (uct_sep_txwq_is_empty(txwq)) {
                uct_sep_link_unbind_all(link);
            }
            return 1;
        }

        /* Endpoints that have lost nothing continue on the new connection */
        uct_sep_link_drop(iface, link, status,
                          (txwq != NULL) && txwq->conn.is_lost);
        return 0;
    }

    if ((txwq != NULL) && (txwq->flags & UCT_SEP_TXWQ_FLAG_ESTABLISHED)) {
        return 0; /* Our attempt failed, and then the peer's succeeded */
    }

    uct_sep_link_str(link, conn_str, sizeof(conn_str));
    ucs_list_for_each_safe(ep, tmp, &link->eps, list) {
        if (ep->flags & UCT_SEP_EP_FLAG_CONNECTING) {
            uct_sep_link_mark_failed(ep, &failed);
        }
    }
    uct_sep_link_report(iface, &failed, status, conn_str);
    return 0;
}

void uct_sep_link_init(uct_sep_iface_t *iface)
{
    memset(&iface->conn, 0, sizeof(iface->conn));
    ucs_list_head_init(&iface->conn.active);
    ucs_list_head_init(&iface->conn.retired);
    ucs_list_head_init(&iface->conn.orphans);
    ucs_list_head_init(&iface->conn.sched);
    ucs_queue_head_init(&iface->conn.events);
    iface->conn.reap_id     = UCS_CALLBACKQ_ID_NULL;
    iface->conn.dispatch_id = UCS_CALLBACKQ_ID_NULL;
    iface->conn.event_id    = UCS_CALLBACKQ_ID_NULL;
    iface->conn.connect_id  = UCS_CALLBACKQ_ID_NULL;
    iface->conn.budget.progress_id = UCS_CALLBACKQ_ID_NULL;
}

ucs_status_t uct_sep_link_open(uct_sep_iface_t *iface,
                               const uct_sep_cm_params_t *params)
{
    ucs_status_t status;

    status = uct_sep_evict_open(iface, params->timeout);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_link_add_async(iface, &uct_sep_iface_md(iface)->async,
                           &iface->conn.async.main);
    if (iface->channel.own != NULL) {
        uct_sep_link_add_async(iface, &iface->channel.own->async,
                               &iface->conn.async.own);
    }

    status = uct_sep_cm_init(params, &iface->conn.cm);
    if (status != UCS_OK) {
        uct_sep_link_cleanup_async(iface);
        uct_sep_evict_close(iface);
    }
    return status;
}

void uct_sep_link_close(uct_sep_iface_t *iface)
{
    uct_worker_h worker = &iface->super.worker->super;

    uct_sep_cm_cleanup(iface->conn.cm);
    uct_sep_evict_stop(iface);
    uct_sep_link_adopt(iface);

    uct_worker_progress_unregister_safe(worker, &iface->conn.event_id);
    uct_worker_progress_unregister_safe(worker, &iface->conn.connect_id);
    uct_worker_progress_unregister_safe(worker, &iface->conn.dispatch_id);
    uct_worker_progress_unregister_safe(worker, &iface->conn.reap_id);

    uct_sep_link_destroy_all(iface);
    uct_sep_link_cleanup_async(iface);
    uct_sep_evict_close(iface);

    ucs_assert(ucs_list_is_empty(&iface->conn.active));
    if ((iface->conn.num_links != 0) || (iface->conn.num_qp != 0)) {
        ucs_warn("%s: %u connections and %u queue pairs were not released",
                 iface->port.name, iface->conn.num_links, iface->conn.num_qp);
    }
}

int uct_sep_link_has_events(uct_sep_iface_t *iface)
{
    int has_events;

    uct_sep_compat_async_block(iface->super.worker->async);
    has_events = !ucs_queue_is_empty(&iface->conn.events);
    uct_sep_compat_async_unblock(iface->super.worker->async);
    return has_events;
}

/* Whether the end of a connection waits for sends, and for nothing else */
static int
uct_sep_link_is_sending(uct_sep_iface_t *iface, const uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;

    return (txwq != NULL) && txwq->conn.is_ending &&
           !uct_sep_txwq_is_empty(txwq) && !txwq->conn.is_over &&
           uct_sep_txwq_is_signaled(txwq) &&
           !uct_sep_link_has_message(iface, txwq);
}

int uct_sep_link_waits_for_sends(uct_sep_iface_t *iface)
{
    int is_sending = 1;
    uct_sep_link_t *link;

    uct_sep_compat_async_block(iface->super.worker->async);
    ucs_queue_for_each(link, &iface->conn.events, event) {
        is_sending = is_sending && uct_sep_link_is_sending(iface, link);
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);
    return is_sending;
}

unsigned uct_sep_link_handle_events(uct_sep_iface_t *iface)
{
    unsigned count = 0;
    ucs_status_t status;
    uct_sep_link_t *link;
    int is_unused, is_asked, is_refused;
    size_t left;

    uct_sep_compat_async_block(iface->super.worker->async);

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.event_id);

    uct_sep_link_adopt(iface);

    /* Those that come back have to wait for something */
    for (left = ucs_queue_length(&iface->conn.events);
         (left > 0) && !ucs_queue_is_empty(&iface->conn.events); --left) {
        link             = ucs_queue_pull_elem_non_empty(&iface->conn.events,
                                                         uct_sep_link_t, event);
        status           = link->failure;
        is_unused        = link->is_unused;
        is_asked         = link->is_asked;
        is_refused       = link->is_refused;
        link->has_event  = 0;
        link->is_unused  = 0;
        link->is_asked   = 0;
        link->is_refused = 0;
        link->failure    = UCS_OK;
        ++count;

        uct_sep_link_attach_known(iface, link);

        /* Users who are told about a failure may destroy the last endpoint */
        uct_sep_cm_conn_hold(iface->conn.cm, &link->super);

        /* First, because a connection can come back after it has failed */
        if ((status != UCS_OK) &&
            uct_sep_link_handle_failure(iface, link, status)) {
            --count;
            link->failure = status;
            uct_sep_link_queue_event(iface, link);
        }

        if ((link->txwq != NULL) &&
            ((link->txwq->flags & (UCT_SEP_TXWQ_FLAG_ESTABLISHED |
                                   UCT_SEP_TXWQ_FLAG_ACTIVE)) ==
             UCT_SEP_TXWQ_FLAG_ESTABLISHED)) {
            uct_sep_link_activate(iface, link);
        } else if ((link->txwq != NULL) &&
                   uct_sep_cm_conn_is_usable(&link->super)) {
            uct_sep_link_resume(iface, link);
            if (is_refused) {
                uct_sep_evict_handle_refused(link);
            }
        }

        if (is_asked && !uct_sep_evict_handle_asked(iface, link)) {
            count         -= !link->has_event;
            link->is_asked = 1;
            uct_sep_link_queue_event(iface, link);
        }

        if (is_unused) {
            uct_sep_link_handle_unused(iface, link);
        }

        uct_sep_cm_conn_put(iface->conn.cm, &link->super);
    }

    uct_sep_compat_async_unblock(iface->super.worker->async);

    uct_sep_dispatch(iface);
    return count;
}
