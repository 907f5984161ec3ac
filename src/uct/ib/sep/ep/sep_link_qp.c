/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_link_qp.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_rarely.h>
#include <uct/ib/sep/base/sep_shortage.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <errno.h>
#include <string.h>


/* A peer's requests may be the cause. With the async context blocked. */
#define uct_sep_link_qp_error(_iface, _fmt, ...) \
    uct_sep_log_rarely((_iface)->conn.num_errors, error, "number", _fmt, \
                       ##__VA_ARGS__)


static ucs_status_t
uct_sep_link_qp_to_init(uct_sep_iface_t *iface, struct ibv_qp *qp)
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
        uct_sep_link_qp_error(iface, "%s: QP 0x%x could not be initialised: %s",
                              iface->port.name, qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* Create a QP that sends and, unless that is split off, receives */
static struct ibv_qp *uct_sep_link_qp_new(uct_sep_iface_t *iface,
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
    attr.comp_mask           = IBV_QP_INIT_ATTR_PD;
    attr.pd                  = pd;

    qp = iface->api->qp_create(iface, pd, &attr);
    if (qp != NULL) {
        uct_sep_account_add_qp(qp);
    }

    return qp;
}

static void uct_sep_link_qp_delete(uct_sep_iface_t *iface, struct ibv_qp *qp,
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

/* Create the QP of a send queue on a domain */
static ucs_status_t
uct_sep_link_txwq_open_on(uct_sep_iface_t *iface, struct ibv_pd *pd,
                          uct_sep_uuar_use_t use, int is_split,
                          uct_sep_txwq_t *txwq)
{
    uct_sep_uuars_t *uuars = iface->channel.uuars;
    ucs_status_t status;
    struct ibv_qp *qp;

    uct_sep_uuars_enter(uuars, use);

    qp = uct_sep_link_qp_new(iface, pd, is_split);
    if (qp == NULL) {
        /* Not "no resource": that would make users wait for completions */
        status = UCS_ERR_NO_MEMORY;
        goto out_leave;
    }

    status = iface->api->qp_map(iface, qp, use, txwq);
    if (status != UCS_OK) {
        uct_sep_link_qp_delete(iface, qp, 0);
        goto out_leave;
    }

    txwq->conn.qp = qp;

out_leave:
    uct_sep_uuars_leave(uuars, use);
    return status;
}

/* Create the QP that receives from the peer's sending QP */
static ucs_status_t
uct_sep_link_responder_open(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    struct ibv_qp_init_attr_ex attr = {};
    ucs_status_t status;
    struct ibv_pd *pd;

    status = uct_sep_channel_get_responder_pd(&iface->channel,
                                              uct_sep_iface_md(iface), &pd);
    if (status != UCS_OK) {
        uct_sep_link_qp_error(iface, "%s: no UAR page for a queue pair that "
                              "receives: %s", iface->port.name,
                              ucs_status_string(status));
        return UCS_ERR_NO_MEMORY;
    }

    attr.qp_type          = IBV_QPT_RC;
    attr.send_cq          = iface->cq.cq;
    attr.recv_cq          = iface->cq.cq;
    attr.srq              = iface->srq.srq;
    attr.cap.max_send_wr  = 1; /* Sends are never posted */
    attr.cap.max_send_sge = 1;
    attr.comp_mask        = IBV_QP_INIT_ATTR_PD;
    attr.pd               = pd;
    txwq->conn.responder  = iface->api->responder_create(iface, pd, &attr);
    if (txwq->conn.responder == NULL) {
        uct_sep_link_qp_error(iface, "%s: could not create a queue pair that "
                              "receives: %m", iface->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    uct_sep_account_add_qp(txwq->conn.responder);
    return UCS_OK;
}

static void
uct_sep_link_responder_close(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    int ret;

    uct_sep_account_remove_qp(txwq->conn.responder);
    ret = ibv_destroy_qp(txwq->conn.responder);
    if (ret != 0) {
        ucs_warn("%s: ibv_destroy_qp(responder) failed: %s", iface->port.name,
                 strerror(ret));
    }
}

/* The QP on the shared receive queue */
static struct ibv_qp *uct_sep_link_receiver(const uct_sep_txwq_t *txwq)
{
    return (txwq->conn.responder != NULL) ? txwq->conn.responder :
                                            txwq->conn.qp;
}

void uct_sep_link_txwq_close(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                             int has_sent)
{
    uct_sep_async_unwatch(&txwq->conn.flush, uct_sep_link_receiver(txwq));
    if (txwq->conn.responder != NULL) {
        uct_sep_link_responder_close(iface, txwq);
    }
    if (txwq->bf != NULL) {
        uct_sep_uuars_put(iface->channel.uuars, txwq->bf);
    }
    uct_sep_link_qp_delete(iface, txwq->conn.qp, has_sent);
}

ucs_status_t
uct_sep_link_txwq_open(uct_sep_iface_t *iface, int is_split,
                       uct_sep_txwq_t *txwq)
{
    const uct_sep_channel_t *channel = &iface->channel;
    ucs_status_t status;

    status = uct_sep_link_txwq_open_on(iface, channel->pd, channel->use,
                                       is_split, txwq);
    if ((status == UCS_ERR_NO_MEMORY) && (channel->spare_pd != NULL) &&
        !(iface->api->ops_mode & UCT_SEP_OPS_VERBS)) {
        /* libmlx5 does not lock what a thread domain rings, and we can't where
         * it posts (verbs.c: need_lock) */
        status = uct_sep_link_txwq_open_on(iface, channel->spare_pd,
                                           UCT_SEP_UUAR_SHARED, is_split, txwq);
    }
    if (status == UCS_ERR_NO_MEMORY) {
        uct_sep_link_qp_error(
                iface, "%s: could not create a queue pair with a send queue of "
                "%u: %m%s", iface->port.name, iface->config.tx_queue_len,
                uct_sep_shortage_hint(
                        errno, uct_sep_uuar_use_is_driver(channel->use) ?
                        ". Reduce UCX_SEP_TX_QUEUE_LEN; if the device has no "
                        "UAR page left, use fewer workers or another "
                        "UCX_SEP_CATEGORY" :
                        ". Reduce UCX_SEP_TX_QUEUE_LEN, or use fewer "
                        "workers"));
    }
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_link_qp_to_init(iface, txwq->conn.qp);
    if (status != UCS_OK) {
        goto err_close;
    }

    if (!is_split) {
        goto out_watch;
    }

    status = uct_sep_link_responder_open(iface, txwq);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = uct_sep_link_qp_to_init(iface, txwq->conn.responder);
    if (status != UCS_OK) {
        goto err_close;
    }

out_watch:
    uct_sep_async_watch(&iface->conn.async.main, uct_sep_link_receiver(txwq),
                        &txwq->conn.flush);
    return UCS_OK;

err_close:
    uct_sep_link_txwq_close(iface, txwq, 0);
    return status;
}

/* Make a QP receive from another one */
static ucs_status_t
uct_sep_link_qp_to_rtr(uct_sep_iface_t *iface, struct ibv_qp *qp,
                       const uct_sep_txwq_t *txwq,
                       const uct_sep_conn_qp_info_t *remote,
                       uint32_t remote_qpn,
                       const struct ibv_ah_attr *ah_attr)
{
    struct ibv_qp_attr attr = {};
    int ret;

    attr.qp_state           = IBV_QPS_RTR;
    attr.ah_attr            = *ah_attr;
    attr.path_mtu           = txwq->conn.path_mtu;
    attr.dest_qp_num        = remote_qpn;
    attr.rq_psn             = remote->psn;
    attr.max_dest_rd_atomic = iface->config.max_dest_rd_atomic;
    attr.min_rnr_timer      = iface->config.min_rnr_timer;

    ret = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                        IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (ret != 0) {
        uct_sep_link_qp_error(iface, "%s: QP 0x%x could not be connected to QP "
                              "0x%x: %s", iface->port.name, qp->qp_num,
                              remote_qpn, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* Have a queue pair send to the remote one */
static ucs_status_t
uct_sep_link_qp_to_rts(uct_sep_iface_t *iface, struct ibv_qp *qp, uint32_t psn,
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
        uct_sep_link_qp_error(iface, "%s: QP 0x%x could not be made ready to "
                              "send: %s", iface->port.name, qp->qp_num,
                              strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t
uct_sep_link_txwq_connect(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uint32_t psn, const uct_sep_conn_qp_info_t *remote,
                          const struct ibv_ah_attr *ah_attr)
{
    uint32_t remote_qpn = remote->qpn;
    ucs_status_t status;

    txwq->conn.path_mtu = ucs_min(remote->path_mtu, iface->config.path_mtu);
    /* The manager drops what is not */
    ucs_assert((txwq->conn.responder != NULL) == (remote->responder_qpn != 0));

    /* Crosswise: the sender is connected to the receiver */
    if (txwq->conn.responder != NULL) {
        remote_qpn = remote->responder_qpn;
        status     = uct_sep_link_qp_to_rtr(iface, txwq->conn.responder, txwq,
                                            remote, remote->qpn, ah_attr);
        if (status != UCS_OK) {
            return status;
        }
        uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_CONNECTED);
    }

    status = uct_sep_link_qp_to_rtr(iface, txwq->conn.qp, txwq, remote,
                                    remote_qpn, ah_attr);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_CONNECTED);
    return uct_sep_link_qp_to_rts(iface, txwq->conn.qp, psn, remote);
}

static void uct_sep_link_move_to_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int ret;

    ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    if (ret != 0) {
        ucs_warn("QP 0x%x could not be brought to the error state: %s",
                 qp->qp_num, strerror(ret));
    }
}

void uct_sep_link_qp_to_error(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_link_is_dead(iface)) {
        return; /* Commands fail, and there is nothing to be flushed */
    }

    uct_sep_link_move_to_error(txwq->conn.qp);
    if (txwq->conn.responder != NULL) {
        uct_sep_link_move_to_error(txwq->conn.responder);
    }
}
