/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_link_int.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>
#include <sched.h>

/*
 * How connections end: in the main thread, woken by that of the async context.
 */

const char *
uct_sep_link_str(const uct_sep_link_t *link, char *buf, size_t max)
{
    return uct_sep_cm_conn_str(&link->super, buf, max);
}

/* Make endpoints fail: nothing can be sent from here on */
void uct_sep_link_mark_failed(uct_sep_ep_t *ep, ucs_list_link_t *failed)
{
    uct_sep_link_unbind(ep);
    ep->flags |= UCT_SEP_EP_FLAG_FAILED;
    ucs_list_del(&ep->list);
    ucs_list_add_tail(failed, &ep->list);
}

/* Tell users about failed endpoints; they may destroy any of them */
void uct_sep_link_report(uct_sep_iface_t *iface, ucs_list_link_t *failed,
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

void uct_sep_link_end_requests(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                               int is_told)
{
    uct_sep_link_qp_to_error(iface, txwq);
    if (is_told && !uct_sep_link_is_dead(iface)) {
        /* The device does not flush what it has done, and nothing tells of
         * requests that asked for no completion: this one does */
        iface->tx.ops->post_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED);
    }
    uct_sep_postlist_ring(iface, txwq);
}

/* Take a queue out of use, and end all that is outstanding */
void uct_sep_link_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         ucs_status_t status)
{
    ucs_assert(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
    ucs_assert(!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED));

    uct_sep_txwq_clear_flags(txwq, UCT_SEP_TXWQ_FLAG_ACTIVE);
    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_RETIRED);
    txwq->conn.link       = NULL;
    txwq->conn.has_cq_end = 0;
    uct_sep_eager_stop(iface, txwq);
    uct_sep_fc_stop(iface, txwq);
    ucs_list_del(&txwq->conn.list);
    ucs_list_add_tail(&iface->conn.retired, &txwq->conn.list);

    if (txwq->conn.is_over) {
        uct_sep_link_release(iface, txwq, txwq->sw_pi);
    }

    uct_sep_link_end_requests(iface, txwq, !uct_sep_txwq_is_signaled(txwq));

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
void uct_sep_link_drop(uct_sep_iface_t *iface, uct_sep_link_t *link,
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
    uct_sep_link_t *link;

    uct_sep_compat_async_block(iface->super.worker->async);
    link = txwq->conn.link;
    if (link != NULL) {
        ucs_assert(link->txwq == txwq);
        uct_sep_cm_conn_hold(iface->conn.cm, &link->super);
    } else {
        uct_sep_link_adopt(iface); /* It was over, and had no endpoints */
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);

    if (link != NULL) {
        uct_sep_link_drop(iface, link, status, 1);
        uct_sep_cm_conn_put(iface->conn.cm, &link->super);
    }
}

void uct_sep_link_adopt(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *next;

    while (!ucs_list_is_empty(&iface->conn.orphans)) {
        txwq = ucs_list_extract_head(&iface->conn.orphans, uct_sep_txwq_t,
                                     conn.list);
        ucs_list_add_tail(&iface->conn.retired, &txwq->conn.list);
        uct_sep_link_reap_txwq(iface, txwq);
    }

    if (iface->conn.num_left == 0) {
        return;
    }

    iface->conn.num_left = 0;
    ucs_list_for_each_safe(txwq, next, &iface->conn.active, conn.list) {
        if (txwq->conn.link == NULL) {
            uct_sep_link_retire(iface, txwq, UCS_ERR_CONNECTION_RESET);
        }
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
void uct_sep_link_destroy_all(uct_sep_iface_t *iface)
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

void uct_sep_link_add_async(uct_sep_iface_t *iface,
                            uct_sep_async_t *async,
                            uct_sep_async_user_t *user)
{
    uct_sep_async_user_add(async, user, &iface->super.worker->super.progress_q,
                           uct_sep_link_async_progress, uct_sep_link_async_wake,
                           iface);
}

void uct_sep_link_cleanup_async(uct_sep_iface_t *iface)
{
    if (iface->channel.own != NULL) {
        uct_sep_async_user_remove(&iface->conn.async.own);
    }
    uct_sep_async_user_remove(&iface->conn.async.main);
}
