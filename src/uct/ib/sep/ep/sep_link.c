/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/ib/sep/port/sep_path.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>
#include <sched.h>
#include <string.h>


static uct_sep_link_t *uct_sep_link(uct_sep_conn_t *conn)
{
    return ucs_container_of(conn, uct_sep_link_t, super);
}

static const char *
uct_sep_link_str(const uct_sep_link_t *link, char *buf, size_t max)
{
    return uct_sep_cm_conn_str(&link->super, buf, max);
}

int uct_sep_link_is_split(const uct_sep_iface_t *iface,
                          const uct_sep_conn_t *conn)
{
    return (iface->channel.own != NULL) ||
           (conn->peer.iface.flags & UCT_SEP_IFACE_ADDR_FLAG_SPLIT);
}

/*
 * Called by the connection manager, with the async context blocked
 */

static ucs_status_t uct_sep_link_alloc(void *arg, uct_sep_conn_t **conn_p)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_link_t *link;

    link = ucs_calloc(1, sizeof(*link), "sep_link");
    if (link == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_list_head_init(&link->eps);
    link->failure = UCS_OK;
    ++iface->conn.num_links;
    *conn_p = &link->super;
    return UCS_OK;
}

static void uct_sep_link_free(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_link_t *link   = uct_sep_link(conn);

    ucs_assert(link->txwq == NULL);
    ucs_assert(ucs_list_is_empty(&link->eps));
    if (link->has_event) {
        ucs_queue_remove(&iface->conn.events, &link->event);
    }

    --iface->conn.num_links;
    ucs_free(link);
}

static ucs_status_t uct_sep_link_qp_create(void *arg, uct_sep_conn_t *conn,
                                           uct_sep_conn_qp_info_t *local_p)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_link_t *link   = uct_sep_link(conn);
    int is_split           = uct_sep_link_is_split(iface, conn);
    ucs_time_t begin       = ucs_get_time();
    ucs_status_t status;
    uct_sep_txwq_t *txwq;
    int ret;

    ucs_assert(link->txwq == NULL);

    status = uct_sep_evict_take(iface, link, is_split);
    if (status != UCS_OK) {
        return status;
    }

    ret = ucs_posix_memalign((void**)&txwq, UCS_SYS_CACHE_LINE_SIZE,
                             sizeof(*txwq), "sep_txwq");
    if (ret != 0) {
        ucs_error("%s: no memory for a send queue", iface->port.name);
        status = UCS_ERR_NO_MEMORY;
        goto err_give;
    }

    status = uct_sep_link_txwq_open(iface, is_split, txwq);
    if (status != UCS_OK) {
        goto err_free;
    }

    if (uct_sep_iface_shares_cq(iface)) {
        status = uct_sep_cq_member_add_qp(&iface->cq_member, txwq);
        if (status != UCS_OK) {
            ucs_error("%s: no memory for the table of queue pairs",
                      iface->port.name);
            goto err_close;
        }
    }

    txwq->conn.link      = link;
    txwq->conn.begun     = begin;
    link->txwq           = txwq;
    link->is_established = 0;
    ++iface->conn.num_qp;

    memset(local_p, 0, sizeof(*local_p));
    local_p->qpn                = txwq->qpn;
    local_p->psn                = ucs_generate_uuid((uintptr_t)txwq) &
                                  UCT_SEP_ADDR_MAX_24BIT;
    local_p->path_mtu           = iface->config.path_mtu;
    local_p->max_rd_atomic      = iface->config.max_rd_atomic;
    local_p->max_dest_rd_atomic = iface->config.max_dest_rd_atomic;
    local_p->responder_qpn      = (txwq->conn.responder != NULL) ?
                                  txwq->conn.responder->qp_num : 0;
    return UCS_OK;

err_close:
    uct_sep_link_txwq_close(iface, txwq, 0);
err_free:
    ucs_free(txwq);
err_give:
    uct_sep_evict_give(iface, is_split);
    return status;
}

static ucs_status_t
uct_sep_link_qp_connect(void *arg, uct_sep_conn_t *conn,
                        const uct_sep_conn_qp_info_t *remote,
                        const struct ibv_ah_attr *ah_attr)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_txwq_t *txwq   = uct_sep_link(conn)->txwq;
    ucs_status_t status;

    status = uct_sep_link_txwq_connect(iface, txwq, conn->local.psn, remote,
                                       ah_attr);
    if (status == UCS_OK) {
        uct_sep_path_bind(&iface->port, txwq->conn.qp, conn->peer.dev.path);
    }
    return status;
}

static unsigned uct_sep_link_event_progress(void *arg)
{
    return uct_sep_link_handle_events(arg);
}

static void uct_sep_link_schedule(uct_sep_iface_t *iface)
{
    uct_worker_progress_register_safe(&iface->super.worker->super,
                                      uct_sep_link_event_progress, iface, 0,
                                      &iface->conn.event_id);
}

/* Let the main thread progress what was left to it, even if it sleeps */
static void uct_sep_link_wake(uct_sep_iface_t *iface)
{
    uct_sep_link_schedule(iface);
    uct_sep_event_signal(iface);
}

static void
uct_sep_link_queue_event(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    if (!link->has_event) {
        link->has_event = 1;
        ucs_queue_push(&iface->conn.events, &link->event);
    }

    uct_sep_link_schedule(iface);
}

/* Leave a note for the main thread */
static void
uct_sep_link_post_event(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_link_queue_event(iface, link);
    uct_sep_event_signal(iface);
}

static void uct_sep_link_established(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_link_t *link = uct_sep_link(conn);

    if (!link->is_established) {
        link->is_established  = 1;
        link->txwq->conn.took = ucs_get_time() - link->txwq->conn.begun;
        uct_sep_txwq_set_flags(link->txwq, UCT_SEP_TXWQ_FLAG_ESTABLISHED);
    } else {
        link->is_refused = 1; /* The flags are the main thread's */
    }
    uct_sep_link_post_event(arg, link);
}

static void
uct_sep_link_failed(void *arg, uct_sep_conn_t *conn, ucs_status_t status)
{
    uct_sep_link_t *link = uct_sep_link(conn);

    link->failure = status;
    uct_sep_link_post_event(arg, link);
}

static void uct_sep_link_unused(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_link_t *link = uct_sep_link(conn);

    link->is_unused = 1;
    uct_sep_link_post_event(arg, link);
}

static void uct_sep_link_asked(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_link_t *link = uct_sep_link(conn);

    link->is_asked = 1;
    uct_sep_link_post_event(arg, link);
}

static void uct_sep_link_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                ucs_status_t status);

/* Leave it to the main thread to destroy a QP once it has given back the
 * receives that it had taken */
static void uct_sep_link_orphan(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_RETIRED);
    txwq->conn.link = NULL;
    uct_sep_link_qp_to_error(iface, txwq);
    ucs_list_add_tail(&iface->conn.orphans, &txwq->conn.list);
    uct_sep_link_wake(iface);
}

static void uct_sep_link_qp_destroy(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_link_t *link   = uct_sep_link(conn);
    uct_sep_txwq_t *txwq   = link->txwq;

    if (txwq == NULL) {
        return; /* The main thread has released it already */
    }

    link->txwq = NULL;
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE) {
        /* Only in the main thread */
        uct_sep_link_retire(iface, txwq, UCS_ERR_CONNECTION_RESET);
        return;
    }

    /* Nothing was ever sent on it, and received messages need no QP */
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_CONNECTED) {
        uct_sep_link_orphan(iface, txwq);
        return;
    }

    --iface->conn.num_qp;
    uct_sep_evict_give(iface, txwq->conn.responder != NULL);
    uct_sep_link_txwq_close(iface, txwq, 0);
    ucs_free(txwq);
}

const uct_sep_cm_ops_t uct_sep_link_cm_ops = {
    .conn_alloc  = uct_sep_link_alloc,
    .conn_free   = uct_sep_link_free,
    .qp_create   = uct_sep_link_qp_create,
    .qp_connect  = uct_sep_link_qp_connect,
    .qp_destroy  = uct_sep_link_qp_destroy,
    .established = uct_sep_link_established,
    .failed      = uct_sep_link_failed,
    .unused      = uct_sep_link_unused,
    .asked       = uct_sep_link_asked
};

/*
 * Main thread
 */

/* Use a send queue from now on */
static void uct_sep_link_bind(uct_sep_ep_t *ep, uct_sep_txwq_t *txwq)
{
    ep->txwq   = txwq;
    ep->flags &= ~UCT_SEP_EP_FLAG_CONNECTING;
    if (!ucs_queue_is_empty(&ep->pending)) {
        uct_sep_dispatch_add(ep);
    }
}

/* Use the queue for those without a connection */
static void uct_sep_link_unbind(uct_sep_ep_t *ep)
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

/* Make endpoints fail: nothing can be sent from here on */
static void uct_sep_link_mark_failed(uct_sep_ep_t *ep, ucs_list_link_t *failed)
{
    uct_sep_link_unbind(ep);
    ep->flags |= UCT_SEP_EP_FLAG_FAILED;
    ucs_list_del(&ep->list);
    ucs_list_add_tail(failed, &ep->list);
}

/* Tell users about failed endpoints; they may destroy any of them */
static void
uct_sep_link_report(uct_sep_iface_t *iface, ucs_list_link_t *failed,
                    ucs_status_t ep_status, const char *reason)
{
    ucs_log_level_t level;
    ucs_status_t status;
    uct_sep_ep_t *ep;

    while (!ucs_list_is_empty(failed)) {
        ep = ucs_list_extract_head(failed, uct_sep_ep_t, list);
        ucs_list_head_init(&ep->list);

        status = uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                         ep_status);
        /* The handler decides whether it is worth mentioning */
        level  = (status == UCS_OK) ? iface->super.config.failure_level :
                                      UCS_LOG_LEVEL_FATAL;
        ucs_log(level, "%s: endpoint %p failed: %s: %s", iface->port.name,
                (void*)ep, ucs_status_string(ep_status), reason);
    }
}

/* From now on the connection manager finds no queue pair to destroy */
static void
uct_sep_link_detach_txwq(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_compat_async_block(iface->super.worker->async);
    link->txwq = NULL;
    uct_sep_compat_async_unblock(iface->super.worker->async);
}

void uct_sep_link_destroy_txwq(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int is_split;

    uct_sep_qp_table_remove(&iface->qps, txwq->qpn);
    if (txwq->conn.responder != NULL) {
        uct_sep_qp_table_remove(&iface->qps, txwq->conn.responder->qp_num);
    }
    ucs_list_del(&txwq->conn.list);
    is_split = txwq->conn.responder != NULL;
    uct_sep_link_txwq_close(iface, txwq, 1);
    uct_sep_eager_forget(iface, txwq);
    ucs_free(txwq);

    uct_sep_compat_async_block(iface->super.worker->async);
    --iface->conn.num_qp;
    uct_sep_evict_give(iface, is_split);
    uct_sep_compat_async_unblock(iface->super.worker->async);
}

/* In the worker's progress: destroy what could not be destroyed on the spot. A
 * completion callback that progresses can get here as well. */
static unsigned uct_sep_link_reap_progress(void *arg)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_txwq_t *txwq, *tmp;

    if (iface->tx.in_finish > 0) {
        return 0;
    }

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.reap_id);
    ucs_list_for_each_safe(txwq, tmp, &iface->conn.retired, conn.list) {
        uct_sep_link_reap_txwq(iface, txwq);
    }

    return 1;
}

/* Whether all that a retired queue's QPs had is accounted for. Before that, its
 * QPs would keep receives that they have taken, and their number could be
 * given to others while completions still have it: IBTA 10.3.1. */
static int
uct_sep_link_is_flushed(uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq)
{
    return uct_sep_link_is_dead(iface) ||
           (uct_sep_txwq_is_empty(txwq) &&
            uct_sep_async_is_flushed(&txwq->conn.flush));
}

/* Whether no completion of a flushed queue's QPs is left. Those of others may
 * follow without end. */
static int
uct_sep_link_has_passed(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (!txwq->conn.has_cq_end) {
        txwq->conn.has_cq_end = 1;
        txwq->conn.cq_end     = iface->api->cq_end(iface);
    }

    return iface->api->cq_has_passed(iface, txwq->conn.cq_end) &&
           !uct_sep_eager_is_held(iface, txwq);
}

void uct_sep_link_reap_txwq(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (!uct_sep_link_is_flushed(iface, txwq)) {
        return; /* Called again by the completion or the event */
    }

    if ((iface->tx.in_finish == 0) &&
        (uct_sep_link_is_dead(iface) ||
         uct_sep_link_has_passed(iface, txwq)) &&
        uct_sep_eager_is_drained(txwq)) {
        uct_sep_link_destroy_txwq(iface, txwq);
    } else {
        /* A caller further up the stack may still use it, or there are
         * completions to be taken first */
        uct_worker_progress_register_safe(&iface->super.worker->super,
                                          uct_sep_link_reap_progress, iface, 0,
                                          &iface->conn.reap_id);
    }
}

/* Take a queue out of use, and end all that is outstanding */
static void uct_sep_link_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                ucs_status_t status)
{
    ucs_assert(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
    ucs_assert(!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED));

    uct_sep_txwq_clear_flags(txwq, UCT_SEP_TXWQ_FLAG_ACTIVE);
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_RETIRED);
    txwq->conn.link = NULL;
    uct_sep_eager_stop(iface, txwq);
    uct_sep_fc_stop(iface, txwq);
    ucs_list_del(&txwq->conn.list);
    ucs_list_add_tail(&iface->conn.retired, &txwq->conn.list);

    uct_sep_link_qp_to_error(iface, txwq);
    if (!uct_sep_txwq_is_signaled(txwq) && !uct_sep_link_is_dead(iface)) {
        /* The device does not flush what it has done, and nothing tells of
         * requests that asked for no completion: this one does */
        iface->tx.ops->post_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED);
    }
    uct_sep_postlist_ring(iface, txwq);

    uct_sep_iface_begin_finish(iface);
    uct_sep_txwq_purge(iface, txwq, status);
    uct_sep_iface_end_finish(iface);

    uct_sep_link_reap_txwq(iface, txwq);
}

void uct_sep_link_cancel(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_link_t *link = txwq->conn.link;
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep;

    ucs_assert(link->txwq == txwq);

    /* A failure that was asked for is not reported */
    ep = ucs_list_head(&link->eps, uct_sep_ep_t, list);
    uct_sep_link_mark_failed(ep, &failed);
    ucs_list_del(&ep->list);
    ucs_list_head_init(&ep->list);

    uct_sep_link_detach_txwq(iface, link);
    uct_sep_link_retire(iface, txwq, UCS_ERR_CANCELED);
    uct_sep_cm_conn_error(iface->conn.cm, &link->super);
}

/*
 * The order matters: endpoints must refuse operations before the first
 * completion is called, and the connection manager must be ready to start over
 * before the first user is told.
 */
static void uct_sep_link_drop(uct_sep_iface_t *iface, uct_sep_link_t *link,
                              ucs_status_t status, int fail_eps)
{
    uct_sep_txwq_t *txwq = link->txwq;
    int is_active        = (txwq != NULL) &&
                           (txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep, *tmp;
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];

    uct_sep_link_str(link, conn_str, sizeof(conn_str));

    /* It may be without references, and then goes with its queue pair */
    uct_sep_cm_conn_hold(iface->conn.cm, &link->super);

    ucs_list_for_each_safe(ep, tmp, &link->eps, list) {
        /* Those that wait for the next connection have lost nothing */
        if (fail_eps && (!is_active || (ep->txwq == txwq))) {
            uct_sep_link_mark_failed(ep, &failed);
        } else {
            uct_sep_link_unbind(ep);
        }
    }

    if (is_active) {
        uct_sep_link_detach_txwq(iface, link);
        uct_sep_link_retire(iface, txwq, status);
    }

    uct_sep_cm_conn_error(iface->conn.cm, &link->super);

    /* Waiting endpoints must hear of it if the new attempt fails too, at once
     * or later */
    ucs_list_for_each_safe(ep, tmp, &link->eps, list) {
        if (!ucs_queue_is_empty(&ep->pending) &&
            (uct_sep_link_connect(ep) != UCS_ERR_NO_RESOURCE)) {
            uct_sep_link_mark_failed(ep, &failed);
        }
    }

    uct_sep_cm_conn_put(iface->conn.cm, &link->super);
    uct_sep_link_report(iface, &failed, status, conn_str);
}

void uct_sep_link_fail(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                       ucs_status_t status)
{
    ucs_assert(txwq->conn.link->txwq == txwq);
    uct_sep_link_drop(iface, txwq->conn.link, status, 1);
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

/* Whether a message in its ring is going to be handled. What that waits for is
 * in the completion queue, or held. Who has lied about it, or has lost it, has
 * others wait until the queue is empty. */
static int
uct_sep_link_has_message(uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq)
{
    return uct_sep_eager_has_message(txwq) &&
           (!uct_sep_eager_is_drained(txwq) ||
            uct_sep_eager_is_held(iface, txwq) ||
            !iface->api->cq_has_passed(iface, iface->api->cq_end(iface)));
}

int uct_sep_link_is_idle(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_is_empty(txwq)) {
        return !uct_sep_link_has_message(iface, txwq);
    }

    if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
        uct_sep_credits_signal_last(iface, txwq);
        uct_sep_postlist_ring(iface, txwq);
    }
    return 0;
}

void uct_sep_link_probe(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
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

    uct_sep_cm_conn_disconnect(iface->conn.cm, &link->super);
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
           (qpn == ((txwq->conn.responder != NULL) ?
                    txwq->conn.responder->qp_num : txwq->qpn)) &&
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

    return uct_sep_cm_conn_is_ending(&link->super) ?
           !uct_sep_link_is_idle(iface, txwq) :
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
    int is_outstanding;

    if (status == UCS_ERR_CONNECTION_RESET) {
        if (link->super.state != UCT_SEP_CONN_STATE_RESETTING) {
            return 0; /* Ours has failed as well, and this is the next one */
        }

        if (uct_sep_link_must_wait(iface, link)) {
            if (!uct_sep_cm_conn_is_ending(&link->super)) {
                /* Slots given back, or a grant, would end in an error, which
                 * does not wait for the ring */
                uct_sep_txwq_block(txwq);
            }
            /* What would be sent meanwhile waits for the next connection */
            if (uct_sep_txwq_is_empty(txwq)) {
                uct_sep_link_unbind_all(link);
            }
            return 1;
        }

        /* Endpoints with nothing outstanding have lost nothing, and continue on
         * the new connection */
        is_outstanding = (txwq != NULL) && !uct_sep_txwq_is_empty(txwq);
        uct_sep_link_drop(iface, link, status, is_outstanding);
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

/* Those that were never active; with the async context blocked */
static void uct_sep_link_adopt(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq;

    while (!ucs_list_is_empty(&iface->conn.orphans)) {
        txwq = ucs_list_extract_head(&iface->conn.orphans, uct_sep_txwq_t,
                                     conn.list);
        ucs_list_add_tail(&iface->conn.retired, &txwq->conn.list);
        uct_sep_link_reap_txwq(iface, txwq);
    }
}

/* The device has failed. What is outstanding is not going to complete. */
static void uct_sep_link_fail_all(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *tmp;

    iface->conn.async.is_dead = 1;
    while (!ucs_list_is_empty(&iface->conn.active)) {
        txwq = ucs_list_head(&iface->conn.active, uct_sep_txwq_t, conn.list);
        uct_sep_link_fail(iface, txwq, UCS_ERR_IO_ERROR);
    }

    uct_sep_cm_fail(iface->conn.cm, UCS_ERR_IO_ERROR);
    ucs_list_for_each_safe(txwq, tmp, &iface->conn.retired, conn.list) {
        uct_sep_link_reap_txwq(iface, txwq);
    }
}

static unsigned uct_sep_link_async_progress(void *arg)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_txwq_t *txwq, *tmp;

    uct_sep_async_user_begin(&iface->conn.async.main);
    if (iface->channel.own != NULL) {
        uct_sep_async_user_begin(&iface->conn.async.own);
    }

    if (uct_sep_link_is_dead(iface) && !iface->conn.async.is_dead) {
        uct_sep_link_fail_all(iface);
        return 1;
    }

    ucs_list_for_each_safe(txwq, tmp, &iface->conn.retired, conn.list) {
        uct_sep_link_reap_txwq(iface, txwq);
    }
    return 1;
}

/* Time for the device to flush queue pairs when an interface is closed */
#define UCT_SEP_LINK_FLUSH_TIMEOUT  1.0

/* All queues go. The manager is gone already. */
static void uct_sep_link_destroy_all(uct_sep_iface_t *iface)
{
    ucs_time_t deadline = ucs_get_time() +
                          ucs_time_from_sec(UCT_SEP_LINK_FLUSH_TIMEOUT);
    unsigned missing    = 0;
    uct_sep_txwq_t *txwq, *tmp;

    ucs_list_splice_tail(&iface->conn.retired, &iface->conn.orphans);
    ucs_list_head_init(&iface->conn.orphans);
    ucs_list_for_each_safe(txwq, tmp, &iface->conn.retired, conn.list) {
        while (!uct_sep_async_is_flushed(&txwq->conn.flush) &&
               !uct_sep_link_is_dead(iface) && (ucs_get_time() < deadline)) {
            sched_yield(); /* Events are read by another thread */
        }
        missing += !uct_sep_async_is_flushed(&txwq->conn.flush) &&
                   !uct_sep_link_is_dead(iface);
        uct_sep_link_destroy_txwq(iface, txwq);
    }

    if (missing > 0) {
        ucs_warn("%s: the device has not flushed %u queue pairs within %.0f s, "
                 "they were destroyed nevertheless", iface->port.name, missing,
                 UCT_SEP_LINK_FLUSH_TIMEOUT);
    }
}

/* The worker may sleep */
static void uct_sep_link_async_wake(void *arg)
{
    uct_sep_event_signal(arg);
}

static void uct_sep_link_add_async(uct_sep_iface_t *iface,
                                   uct_sep_async_t *async,
                                   uct_sep_async_user_t *user)
{
    uct_sep_async_user_add(async, user, &iface->super.worker->super.progress_q,
                           uct_sep_link_async_progress, uct_sep_link_async_wake,
                           iface);
}

static void uct_sep_link_cleanup_async(uct_sep_iface_t *iface)
{
    if (iface->channel.own != NULL) {
        uct_sep_async_user_remove(&iface->conn.async.own);
    }
    uct_sep_async_user_remove(&iface->conn.async.main);
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

        if (is_asked) {
            uct_sep_evict_handle_asked(iface, link);
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
