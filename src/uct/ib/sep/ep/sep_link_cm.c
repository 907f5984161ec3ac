/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_link_int.h>
#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/port/sep_path.h>

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>
#include <string.h>


/* Queue pairs that wait for the main thread only since the completion queue has
 * their number: as many as this, then peers wait for it, too */
#define UCT_SEP_LINK_MAX_ORPHANS  16


int uct_sep_link_is_split(const uct_sep_iface_t *iface,
                          const uct_sep_conn_t *conn)
{
    return (iface->channel.own != NULL) ||
           (uct_sep_iface_addr_flags(&conn->peer.iface) &
            UCT_SEP_IFACE_ADDR_FLAG_SPLIT);
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

/* Destroy a QP that was never active */
static void
uct_sep_link_destroy_early(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    --iface->conn.num_qp;
    uct_sep_evict_give(iface, txwq->conn.responder != NULL);
    uct_sep_link_txwq_close(iface, txwq, 0);
    ucs_free(txwq);
}

/* The main thread, which would do it as well, may be busy with other things for
 * long. Not while it could find a completion with the QP's number, which
 * others may be given. */
static void uct_sep_link_reap_orphans(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq, *tmp;

    ucs_list_for_each_safe(txwq, tmp, &iface->conn.orphans, conn.list) {
        if (uct_sep_async_is_flushed(&txwq->conn.flush) &&
            !iface->api->cq_may_have(iface, uct_sep_link_recv_qpn(txwq))) {
            ucs_list_del(&txwq->conn.list);
            uct_sep_link_destroy_early(iface, txwq);
        }
    }
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

    uct_sep_link_reap_orphans(iface);
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
    link->is_active      = 0;
    link->is_bound       = 0;
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

void uct_sep_link_queue_event(uct_sep_iface_t *iface, uct_sep_link_t *link)
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
        uct_sep_evict_handle_answered(arg, link);
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

/* Leave a QP until it has given back the receives that it had taken */
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

    uct_sep_link_destroy_early(iface, txwq);
}

/*
 * Who never had an endpoint for a connection has sent nothing on it that
 * somebody waits for. What he has received is in the completion queue, before
 * all that the next connection brings; if it can be in a ring, his thread has
 * to see.
 */
static int uct_sep_link_let_go(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_link_t *link   = uct_sep_link(conn);

    if (!link->is_active || (link->txwq == NULL)) {
        return ucs_list_length(&iface->conn.orphans) < UCT_SEP_LINK_MAX_ORPHANS;
    }

    if (link->is_bound || uct_sep_eager_is_enabled(iface)) {
        return 0;
    }

    /* The main thread may be using it: it takes it out of use */
    uct_sep_link_qp_to_error(iface, link->txwq);
    link->txwq->conn.link = NULL;
    link->txwq            = NULL;
    ++iface->conn.num_left;
    uct_sep_link_wake(iface);
    return 1;
}

const uct_sep_cm_ops_t uct_sep_link_cm_ops = {
    .conn_alloc  = uct_sep_link_alloc,
    .conn_free   = uct_sep_link_free,
    .qp_create   = uct_sep_link_qp_create,
    .qp_connect  = uct_sep_link_qp_connect,
    .qp_destroy  = uct_sep_link_qp_destroy,
    .established = uct_sep_link_established,
    .failed      = uct_sep_link_failed,
    .let_go      = uct_sep_link_let_go,
    .unused      = uct_sep_link_unused,
    .asked       = uct_sep_link_asked
};
