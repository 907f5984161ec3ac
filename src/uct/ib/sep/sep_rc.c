/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_rc.h"
#include "sep_api.h"
#include "sep_account.h"
#include "sep_ep.h"
#include "sep_fc.h"
#include "sep_postlist.h"

#include <ucs/async/async.h>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>


static uct_sep_rc_t *uct_sep_rc(uct_sep_conn_t *conn)
{
    return ucs_container_of(conn, uct_sep_rc_t, super);
}

static const char *
uct_sep_rc_str(const uct_sep_rc_t *rc, char *buf, size_t max)
{
    return uct_sep_cm_conn_str(&rc->super, buf, max);
}

/*
 * Queue pairs
 */

static ucs_status_t
uct_sep_rc_qp_to_init(uct_sep_iface_t *iface, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {};
    int ret;

    attr.qp_state        = IBV_QPS_INIT;
    attr.pkey_index      = iface->port.pkey_index;
    attr.port_num        = iface->port.addr.port_num;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                   IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (ret != 0) {
        ucs_error("%s: QP 0x%x could not be initialised: %s", iface->port.name,
                  qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* Whether the QPs of a connection that send are not those that receive, because
 * one side has them in different contexts */
static int
uct_sep_rc_is_split(const uct_sep_iface_t *iface, const uct_sep_conn_t *conn)
{
    return (iface->channel.own != NULL) ||
           (conn->peer.iface.flags & UCT_SEP_IFACE_ADDR_FLAG_SPLIT);
}

/* Make a QP that sends, and unless that is split off, receives */
static struct ibv_qp *uct_sep_rc_qp_new(uct_sep_iface_t *iface,
                                        struct ibv_pd *pd, int is_split)
{
    struct ibv_qp_init_attr_ex attr = {};
    struct ibv_qp *qp;

    attr.qp_type             = IBV_QPT_RC;
    attr.send_cq             = uct_sep_iface_send_cq(iface);
    attr.recv_cq             = is_split ? attr.send_cq : iface->cq.cq;
    attr.srq                 = is_split ? NULL : iface->srq.srq;
    attr.cap.max_send_wr     = iface->config.tx_queue_len;
    attr.cap.max_send_sge    = 1;
    attr.cap.max_inline_data = iface->config.tx_min_inline;
    attr.sq_sig_all          = 0;
    attr.comp_mask           = IBV_QP_INIT_ATTR_PD |
                               IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd                  = pd;

    qp = iface->api->qp_create(pd, &attr);
    if (qp != NULL) {
        uct_sep_account_add_qp(qp);
    }

    return qp;
}

ucs_status_t
uct_sep_rc_map_txwq(uct_sep_iface_t *iface, struct ibv_qp *qp,
                    uct_sep_uuar_use_t use, uct_sep_txwq_t *txwq)
{
    struct mlx5dv_qp dv_qp = {.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET};
    struct mlx5dv_obj dv   = {};
    uct_sep_txwq_mem_t mem;
    ucs_status_t status;
    int ret;

    dv.qp.in  = qp;
    dv.qp.out = &dv_qp;
    ret       = mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP);
    if (ret != 0) {
        ucs_error("%s: mlx5dv_init_obj(QP 0x%x) failed: %s", iface->port.name,
                  qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    status = uct_sep_uuars_get(iface->channel.uuars, &dv_qp, use,
                               &mem.bf);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the uUAR of QP 0x%x", iface->port.name,
                  qp->qp_num);
        return status;
    }

    mem.sq         = dv_qp.sq.buf;
    mem.bb_count   = dv_qp.sq.wqe_cnt;
    mem.dbrec      = &dv_qp.dbrec[MLX5_SND_DBR];
    mem.qpn        = qp->qp_num;
    mem.moderation = iface->config.moderation;
    status         = uct_sep_txwq_init(txwq, &mem);
    if (status != UCS_OK) {
        uct_sep_uuars_put(iface->channel.uuars, mem.bf);
    }

    return status;
}

static void uct_sep_rc_qp_delete(uct_sep_iface_t *iface, struct ibv_qp *qp,
                                 int has_sent)
{
    int ret;

    uct_sep_account_remove_qp(qp);
    if (uct_sep_iface_shares_cq(iface)) {
        ret = uct_sep_cq_member_destroy_qp(&iface->cq_member, qp, has_sent);
    } else {
        ret = ibv_destroy_qp(qp);
    }

    if (ret != 0) {
        ucs_warn("%s: ibv_destroy_qp() failed: %s", iface->port.name,
                 strerror(ret));
    }
}

/* Make the QP of a send queue on a domain */
static ucs_status_t
uct_sep_rc_txwq_open_on(uct_sep_iface_t *iface, struct ibv_pd *pd,
                        uct_sep_uuar_use_t use, int is_split,
                        uct_sep_txwq_t *txwq)
{
    uct_sep_uuars_t *uuars = iface->channel.uuars;
    ucs_status_t status;
    struct ibv_qp *qp;

    uct_sep_uuars_enter(uuars, use);

    qp = uct_sep_rc_qp_new(iface, pd, is_split);
    if (qp == NULL) {
        /* Not "no resource": that would have users wait for completions */
        status = UCS_ERR_NO_MEMORY;
        goto out_leave;
    }

    status = iface->api->qp_map(iface, qp, use, txwq);
    if (status != UCS_OK) {
        uct_sep_rc_qp_delete(iface, qp, 0);
        goto out_leave;
    }

    txwq->qp = qp;

out_leave:
    uct_sep_uuars_leave(uuars, use);
    return status;
}

/* Make the QP that receives what the peer's QP that sends has to say */
static ucs_status_t
uct_sep_rc_responder_open(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    struct ibv_qp_init_attr attr = {};
    ucs_status_t status;
    struct ibv_pd *pd;

    status = uct_sep_channel_get_responder_pd(&iface->channel,
                                              uct_sep_iface_md(iface), &pd);
    if (status != UCS_OK) {
        ucs_error("%s: no UAR page for a queue pair that receives: %s",
                  iface->port.name, ucs_status_string(status));
        return UCS_ERR_NO_MEMORY;
    }

    attr.qp_type          = IBV_QPT_RC;
    attr.send_cq          = iface->cq.cq;
    attr.recv_cq          = iface->cq.cq;
    attr.srq              = iface->srq.srq;
    attr.cap.max_send_wr  = 1; /* None is ever posted */
    attr.cap.max_send_sge = 1;
    txwq->responder       = ibv_create_qp(pd, &attr);
    if (txwq->responder == NULL) {
        ucs_error("%s: could not create a queue pair that receives: %m",
                  iface->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    uct_sep_account_add_qp(txwq->responder);
    return UCS_OK;
}

static void
uct_sep_rc_responder_close(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int ret;

    uct_sep_account_remove_qp(txwq->responder);
    ret = ibv_destroy_qp(txwq->responder);
    if (ret != 0) {
        ucs_warn("%s: ibv_destroy_qp(responder) failed: %s", iface->port.name,
                 strerror(ret));
    }
}

static void uct_sep_rc_txwq_close(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                  int has_sent)
{
    if (txwq->responder != NULL) {
        uct_sep_rc_responder_close(iface, txwq);
    }
    uct_sep_rc_qp_delete(iface, txwq->qp, has_sent);
    if (txwq->bf != NULL) {
        uct_sep_uuars_put(iface->channel.uuars, txwq->bf);
    }
}

static ucs_status_t
uct_sep_rc_txwq_open(uct_sep_iface_t *iface, int is_split, uct_sep_txwq_t *txwq)
{
    const uct_sep_channel_t *channel = &iface->channel;
    ucs_status_t status;

    status = uct_sep_rc_txwq_open_on(iface, channel->pd, channel->use, is_split,
                                     txwq);
    if ((status == UCS_ERR_NO_MEMORY) && (channel->spare_pd != NULL)) {
        status = uct_sep_rc_txwq_open_on(iface, channel->spare_pd,
                                         UCT_SEP_UUAR_SHARED, is_split, txwq);
    }
    if (status == UCS_ERR_NO_MEMORY) {
        ucs_error("%s: could not create a queue pair with a send queue of %u: "
                  "%m. Reduce UCX_SEP_TX_QUEUE_LEN", iface->port.name,
                  iface->config.tx_queue_len);
    }
    if ((status != UCS_OK) || !is_split) {
        return status;
    }

    status = uct_sep_rc_responder_open(iface, txwq);
    if (status != UCS_OK) {
        uct_sep_rc_txwq_close(iface, txwq, 0);
    }

    return status;
}

void uct_sep_rc_destroy_txwq(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_qp_table_remove(&iface->qps, txwq->qpn);
    if (txwq->responder != NULL) {
        uct_sep_qp_table_remove(&iface->qps, txwq->responder->qp_num);
    }
    ucs_list_del(&txwq->list);
    uct_sep_rc_txwq_close(iface, txwq, 1);
    ucs_free(txwq);

    UCS_ASYNC_BLOCK(iface->super.worker->async);
    --iface->conn.num_qp;
    UCS_ASYNC_UNBLOCK(iface->super.worker->async);
}

static void uct_sep_rc_move_to_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int ret;

    ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    if (ret != 0) {
        ucs_warn("QP 0x%x could not be brought to the error state: %s",
                 qp->qp_num, strerror(ret));
    }
}

void uct_sep_rc_qp_to_error(uct_sep_txwq_t *txwq)
{
    uct_sep_rc_move_to_error(txwq->qp);
    if (txwq->responder != NULL) {
        uct_sep_rc_move_to_error(txwq->responder);
    }
}

/*
 * Called by the connection manager, with the async context blocked
 */

static ucs_status_t uct_sep_rc_alloc(void *arg, uct_sep_conn_t **conn_p)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_rc_t *rc;

    rc = ucs_calloc(1, sizeof(*rc), "sep_rc");
    if (rc == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_list_head_init(&rc->eps);
    rc->failure = UCS_OK;
    ++iface->conn.num_rc;
    *conn_p = &rc->super;
    return UCS_OK;
}

static void uct_sep_rc_free(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_rc_t *rc       = uct_sep_rc(conn);

    ucs_assert(rc->txwq == NULL);
    ucs_assert(ucs_list_is_empty(&rc->eps));
    if (rc->has_event) {
        ucs_queue_remove(&iface->conn.events, &rc->event);
    }

    --iface->conn.num_rc;
    ucs_free(rc);
}

static ucs_status_t uct_sep_rc_qp_create(void *arg, uct_sep_conn_t *conn,
                                         uct_sep_conn_qp_info_t *local_p)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_rc_t *rc       = uct_sep_rc(conn);
    ucs_status_t status;
    uct_sep_txwq_t *txwq;
    int ret;

    ucs_assert(rc->txwq == NULL);

    ret = ucs_posix_memalign((void**)&txwq, UCS_SYS_CACHE_LINE_SIZE,
                             sizeof(*txwq), "sep_txwq");
    if (ret != 0) {
        ucs_error("%s: no memory for a send queue", iface->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_sep_rc_txwq_open(iface, uct_sep_rc_is_split(iface, conn), txwq);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_rc_qp_to_init(iface, txwq->qp);
    if (status != UCS_OK) {
        goto err_close;
    }

    if (txwq->responder != NULL) {
        status = uct_sep_rc_qp_to_init(iface, txwq->responder);
        if (status != UCS_OK) {
            goto err_close;
        }
    }

    if (uct_sep_iface_shares_cq(iface)) {
        status = uct_sep_cq_member_add_qp(&iface->cq_member, txwq);
        if (status != UCS_OK) {
            ucs_error("%s: no memory for the table of queue pairs",
                      iface->port.name);
            goto err_close;
        }
    }

    txwq->rc = rc;
    rc->txwq = txwq;
    ++iface->conn.num_qp;

    memset(local_p, 0, sizeof(*local_p));
    local_p->qpn                = txwq->qpn;
    local_p->psn                = ucs_generate_uuid((uintptr_t)txwq) &
                                  UCT_SEP_CONN_MAX_24BIT;
    local_p->path_mtu           = iface->config.path_mtu;
    local_p->max_rd_atomic      = iface->config.max_rd_atomic;
    local_p->max_dest_rd_atomic = iface->config.max_dest_rd_atomic;
    local_p->responder_qpn      = (txwq->responder != NULL) ?
                                  txwq->responder->qp_num : 0;
    return UCS_OK;

err_close:
    uct_sep_rc_txwq_close(iface, txwq, 0);
err_free:
    ucs_free(txwq);
    return status;
}

/* Have a QP receive from another one */
static ucs_status_t
uct_sep_rc_qp_to_rtr(uct_sep_iface_t *iface, struct ibv_qp *qp,
                     const uct_sep_conn_qp_info_t *remote, uint32_t remote_qpn,
                     const struct ibv_ah_attr *ah_attr)
{
    struct ibv_qp_attr attr = {};
    int ret;

    attr.qp_state           = IBV_QPS_RTR;
    attr.ah_attr            = *ah_attr;
    attr.path_mtu           = ucs_min(remote->path_mtu,
                                      iface->config.path_mtu);
    attr.dest_qp_num        = remote_qpn;
    attr.rq_psn             = remote->psn;
    attr.max_dest_rd_atomic = iface->config.max_dest_rd_atomic;
    attr.min_rnr_timer      = iface->config.min_rnr_timer;

    ret = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                        IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (ret != 0) {
        ucs_error("%s: QP 0x%x could not be connected to QP 0x%x: %s",
                  iface->port.name, qp->qp_num, remote_qpn, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* ... and send to it */
static ucs_status_t
uct_sep_rc_qp_to_rts(uct_sep_iface_t *iface, struct ibv_qp *qp, uint32_t psn,
                     const uct_sep_conn_qp_info_t *remote)
{
    struct ibv_qp_attr attr = {};
    int ret;

    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = iface->config.timeout;
    attr.retry_cnt     = iface->config.retry_cnt;
    attr.rnr_retry     = iface->config.rnr_retry;
    attr.sq_psn        = psn;
    attr.max_rd_atomic = ucs_min(iface->config.max_rd_atomic,
                                 remote->max_dest_rd_atomic);

    ret = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC);
    if (ret != 0) {
        ucs_error("%s: QP 0x%x could not be made ready to send: %s",
                  iface->port.name, qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

static ucs_status_t
uct_sep_rc_qp_connect(void *arg, uct_sep_conn_t *conn,
                      const uct_sep_conn_qp_info_t *remote,
                      const struct ibv_ah_attr *ah_attr)
{
    uct_sep_iface_t *iface     = arg;
    const uct_sep_txwq_t *txwq = uct_sep_rc(conn)->txwq;
    uint32_t remote_qpn        = remote->qpn;
    ucs_status_t status;

    if ((txwq->responder != NULL) != (remote->responder_qpn != 0)) {
        ucs_error("%s: peer offers %s queue pair for a connection that needs "
                  "%s", iface->port.name, remote->responder_qpn ? "a second" :
                  "one", (txwq->responder != NULL) ? "two" : "one");
        return UCS_ERR_INVALID_PARAM;
    }

    /* Crosswise: who sends is connected to who receives */
    if (txwq->responder != NULL) {
        remote_qpn = remote->responder_qpn;
        status     = uct_sep_rc_qp_to_rtr(iface, txwq->responder, remote,
                                          remote->qpn, ah_attr);
        if (status != UCS_OK) {
            return status;
        }
    }

    status = uct_sep_rc_qp_to_rtr(iface, txwq->qp, remote, remote_qpn, ah_attr);
    if (status != UCS_OK) {
        return status;
    }

    return uct_sep_rc_qp_to_rts(iface, txwq->qp, conn->local.psn, remote);
}

static unsigned uct_sep_rc_event_progress(void *arg)
{
    return uct_sep_rc_handle_events(arg);
}

/* Leave word for the main thread */
static void uct_sep_rc_post_event(uct_sep_iface_t *iface, uct_sep_rc_t *rc)
{
    if (!rc->has_event) {
        rc->has_event = 1;
        ucs_queue_push(&iface->conn.events, &rc->event);
    }

    uct_worker_progress_register_safe(&iface->super.worker->super,
                                      uct_sep_rc_event_progress, iface, 0,
                                      &iface->conn.event_id);
    uct_sep_iface_event_signal(iface);
}

static void uct_sep_rc_established(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_rc_t *rc = uct_sep_rc(conn);

    rc->txwq->flags |= UCT_SEP_TXWQ_FLAG_ESTABLISHED;
    uct_sep_rc_post_event(arg, rc);
}

static void
uct_sep_rc_failed(void *arg, uct_sep_conn_t *conn, ucs_status_t status)
{
    uct_sep_rc_t *rc = uct_sep_rc(conn);

    rc->failure = status;
    uct_sep_rc_post_event(arg, rc);
}

static void uct_sep_rc_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                              ucs_status_t status);

static void uct_sep_rc_qp_destroy(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_iface_t *iface = arg;
    uct_sep_rc_t *rc       = uct_sep_rc(conn);
    uct_sep_txwq_t *txwq   = rc->txwq;

    if (txwq == NULL) {
        return; /* The main thread has let go of it already */
    }

    rc->txwq = NULL;
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE) {
        /* Only in the main thread */
        uct_sep_rc_retire(iface, txwq, UCS_ERR_CONNECTION_RESET);
        return;
    }

    /* Nothing was ever sent on it, and what was received on it needs no QP */
    --iface->conn.num_qp;
    uct_sep_rc_txwq_close(iface, txwq, 0);
    ucs_free(txwq);
}

const uct_sep_cm_ops_t uct_sep_rc_cm_ops = {
    .conn_alloc  = uct_sep_rc_alloc,
    .conn_free   = uct_sep_rc_free,
    .qp_create   = uct_sep_rc_qp_create,
    .qp_connect  = uct_sep_rc_qp_connect,
    .qp_destroy  = uct_sep_rc_qp_destroy,
    .established = uct_sep_rc_established,
    .failed      = uct_sep_rc_failed
};

/*
 * Main thread
 */

/* Before anything was posted to it */
static void uct_sep_rc_check_bf(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int post = iface->tx.post;

    if (iface->api != &uct_sep_api_dv) {
        return;
    }

    if ((txwq->bf->size != UCT_SEP_MAX_WQE) && (post != UCT_SEP_TX_POST_DB)) {
        if (iface->config.post == UCT_SEP_TX_POST_BF) {
            ucs_warn("%s: QP 0x%x has BlueFlame buffers of %zu bytes instead "
                     "of %d, UCX_SEP_TX_POST=bf has no effect",
                     iface->port.name, txwq->qpn, txwq->bf->size,
                     UCT_SEP_MAX_WQE);
        }
        post = UCT_SEP_TX_POST_DB;
    }

    uct_sep_iface_set_ops(iface, post,
                          iface->tx.is_locked || txwq->bf->is_shared);
}

/* Make endpoints fail: nothing can be sent from here on */
static void uct_sep_rc_mark_failed(uct_sep_ep_t *ep, ucs_list_link_t *failed)
{
    uct_sep_ep_detach(ep);
    ep->flags |= UCT_SEP_EP_FLAG_FAILED;
    ucs_list_del(&ep->list);
    ucs_list_add_tail(failed, &ep->list);
}

/* Tell the users of failed endpoints, who may destroy any of them */
static void
uct_sep_rc_report(uct_sep_iface_t *iface, ucs_list_link_t *failed,
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
        /* Who has handled it decides whether it is worth mentioning */
        level  = (status == UCS_OK) ? iface->super.config.failure_level :
                                      UCS_LOG_LEVEL_FATAL;
        ucs_log(level, "%s: endpoint %p failed: %s: %s", iface->port.name,
                (void*)ep, ucs_status_string(ep_status), reason);
    }
}

/* From here on the connection manager finds no queue pair to destroy */
static void uct_sep_rc_detach_txwq(uct_sep_iface_t *iface, uct_sep_rc_t *rc)
{
    UCS_ASYNC_BLOCK(iface->super.worker->async);
    rc->txwq = NULL;
    UCS_ASYNC_UNBLOCK(iface->super.worker->async);
}

/* Take a queue out of use, and end all that is outstanding */
static void uct_sep_rc_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                              ucs_status_t status)
{
    ucs_assert(txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE);
    ucs_assert(!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED));

    txwq->flags &= ~UCT_SEP_TXWQ_FLAG_ACTIVE;
    txwq->flags |= UCT_SEP_TXWQ_FLAG_RETIRED;
    txwq->rc     = NULL;
    uct_sep_fc_stop(txwq);
    ucs_list_del(&txwq->list);
    ucs_list_add_tail(&iface->tx.retired, &txwq->list);

    uct_sep_rc_qp_to_error(txwq);
    if (!uct_sep_txwq_is_signaled(txwq)) {
        /* Whether the device completes work requests that asked for no
         * completion is not relied on: this one asks */
        iface->tx.ops->post_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED);
    }
    uct_sep_postlist_ring(iface, txwq);

    uct_sep_txwq_purge(txwq, status);

    if (txwq->hw_ci == txwq->sw_pi) {
        uct_sep_rc_destroy_txwq(iface, txwq);
    }
}

void uct_sep_rc_cancel(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_rc_t *rc = txwq->rc;
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep;

    ucs_assert(rc->txwq == txwq);

    /* Nobody is told of a failure that was asked for */
    ep = ucs_list_head(&rc->eps, uct_sep_ep_t, list);
    uct_sep_rc_mark_failed(ep, &failed);
    ucs_list_del(&ep->list);
    ucs_list_head_init(&ep->list);

    uct_sep_rc_detach_txwq(iface, rc);
    uct_sep_rc_retire(iface, txwq, UCS_ERR_CANCELED);
    uct_sep_cm_conn_error(iface->conn.cm, &rc->super);
}

/*
 * The order matters: the endpoints do not accept anything any more when the
 * first completion is called, and the connection manager is ready to start over
 * when the first user is told.
 */
static void uct_sep_rc_drop(uct_sep_iface_t *iface, uct_sep_rc_t *rc,
                            ucs_status_t status, int fail_eps)
{
    uct_sep_txwq_t *txwq = rc->txwq;
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep, *tmp;
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];

    uct_sep_rc_str(rc, conn_str, sizeof(conn_str));

    ucs_list_for_each_safe(ep, tmp, &rc->eps, list) {
        if (fail_eps) {
            uct_sep_rc_mark_failed(ep, &failed);
        } else {
            uct_sep_ep_detach(ep);
        }
    }

    if ((txwq != NULL) && (txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE)) {
        uct_sep_rc_detach_txwq(iface, rc);
        uct_sep_rc_retire(iface, txwq, status);
    }

    uct_sep_cm_conn_error(iface->conn.cm, &rc->super);

    /* Those that wait want to hear of it if the new attempt fails as well, at
     * once or later */
    ucs_list_for_each_safe(ep, tmp, &rc->eps, list) {
        if (!ucs_queue_is_empty(&ep->pending) &&
            (uct_sep_ep_connect(ep) != UCS_ERR_NO_RESOURCE)) {
            uct_sep_rc_mark_failed(ep, &failed);
        }
    }

    uct_sep_rc_report(iface, &failed, status, conn_str);
}

void uct_sep_rc_fail(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     ucs_status_t status)
{
    ucs_assert(txwq->rc->txwq == txwq);
    uct_sep_rc_drop(iface, txwq->rc, status, 1);
}

/* The queue pair can be used; if not, those who wait for it fail */
static void uct_sep_rc_activate(uct_sep_iface_t *iface, uct_sep_rc_t *rc)
{
    uct_sep_txwq_t *txwq = rc->txwq;
    uct_sep_ep_t *ep;

    if ((uct_sep_qp_table_add(&iface->qps, txwq->qpn, txwq) != UCS_OK) ||
        ((txwq->responder != NULL) &&
         (uct_sep_qp_table_add(&iface->qps, txwq->responder->qp_num, txwq) !=
          UCS_OK))) {
        ucs_error("%s: no memory for the table of %u queue pairs",
                  iface->port.name, iface->qps.count);
        uct_sep_qp_table_remove(&iface->qps, txwq->qpn);
        uct_sep_rc_drop(iface, rc, UCS_ERR_NO_MEMORY, 1);
        return;
    }

    uct_sep_rc_check_bf(iface, txwq);
    txwq->flags |= UCT_SEP_TXWQ_FLAG_ACTIVE;
    ucs_list_add_tail(&iface->tx.active, &txwq->list);
    uct_sep_fc_start(iface, txwq);

    ucs_list_for_each(ep, &rc->eps, list) {
        uct_sep_ep_attach(ep, txwq);
    }
}

static void uct_sep_rc_handle_failure(uct_sep_iface_t *iface, uct_sep_rc_t *rc,
                                      ucs_status_t status)
{
    uct_sep_txwq_t *txwq = rc->txwq;
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];
    UCS_LIST_HEAD(failed);
    uct_sep_ep_t *ep, *tmp;
    int is_outstanding;

    if (status == UCS_ERR_CONNECTION_RESET) {
        /* Endpoints that have nothing outstanding have lost nothing, and go on
         * when the new connection is there */
        is_outstanding = (txwq != NULL) && (txwq->hw_ci != txwq->sw_pi);
        uct_sep_rc_drop(iface, rc, status, is_outstanding);
        return;
    }

    if ((txwq != NULL) && (txwq->flags & UCT_SEP_TXWQ_FLAG_ESTABLISHED)) {
        return; /* Our attempt has failed, and then the peer's succeeded */
    }

    uct_sep_rc_str(rc, conn_str, sizeof(conn_str));
    ucs_list_for_each_safe(ep, tmp, &rc->eps, list) {
        if (ep->flags & UCT_SEP_EP_FLAG_CONNECTING) {
            uct_sep_rc_mark_failed(ep, &failed);
        }
    }
    uct_sep_rc_report(iface, &failed, status, conn_str);
}

unsigned uct_sep_rc_handle_events(uct_sep_iface_t *iface)
{
    unsigned count = 0;
    ucs_status_t status;
    uct_sep_rc_t *rc;

    UCS_ASYNC_BLOCK(iface->super.worker->async);

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.event_id);

    while (!ucs_queue_is_empty(&iface->conn.events)) {
        rc            = ucs_queue_pull_elem_non_empty(&iface->conn.events,
                                                      uct_sep_rc_t, event);
        status        = rc->failure;
        rc->has_event = 0;
        rc->failure   = UCS_OK;
        ++count;

        /* Users who are told of a failure may destroy the last endpoint */
        uct_sep_cm_conn_hold(iface->conn.cm, &rc->super);

        /* First, because a connection can come back after it has failed */
        if (status != UCS_OK) {
            uct_sep_rc_handle_failure(iface, rc, status);
        }

        if ((rc->txwq != NULL) &&
            ((rc->txwq->flags & (UCT_SEP_TXWQ_FLAG_ESTABLISHED |
                                 UCT_SEP_TXWQ_FLAG_ACTIVE)) ==
             UCT_SEP_TXWQ_FLAG_ESTABLISHED)) {
            uct_sep_rc_activate(iface, rc);
        }

        uct_sep_cm_conn_put(iface->conn.cm, &rc->super);
    }

    UCS_ASYNC_UNBLOCK(iface->super.worker->async);

    uct_sep_iface_dispatch(iface);
    return count;
}
