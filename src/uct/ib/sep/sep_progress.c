/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_cq.inl"
#include "sep_ep.h"
#include "sep_iface.h"
#include "sep_srq.inl"
#include "sep_wqe.inl"

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>

/*
 * Completions. Receives and sends come through the same queue: an idle call
 * looks at one byte.
 */

/* How far cq_credits may go below zero for the NOPs that ask for completions;
 * part of what the completion queue is made larger by */
#define UCT_SEP_STALL_MIN_CREDITS  (-(UCT_SEP_CQ_HEADROOM / 2))


static const char *uct_sep_syndrome_str(uint8_t syndrome)
{
    switch (syndrome) {
    case MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR:
        return "local length error";
    case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR:
        return "local QP operation error";
    case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR:
        return "local protection error";
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
        return "flushed because the QP is in error";
    case MLX5_CQE_SYNDROME_MW_BIND_ERR:
        return "memory window bind error";
    case MLX5_CQE_SYNDROME_BAD_RESP_ERR:
        return "bad response";
    case MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR:
        return "local access error";
    case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
        return "remote: invalid request";
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
        return "remote access error";
    case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
        return "remote operation error";
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
        return "transport retry count exceeded";
    case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
        return "receiver-not-ready retry count exceeded";
    case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR:
        return "remote side aborted";
    default:
        return "unknown error";
    }
}

static ucs_status_t uct_sep_syndrome_status(uint8_t syndrome)
{
    switch (syndrome) {
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
        return UCS_ERR_CANCELED;
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
    case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
        return UCS_ERR_CONNECTION_RESET;
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
    case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
    case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

void uct_sep_iface_signal_last(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (!uct_sep_txwq_is_signaled(txwq)) {
        iface->tx.ops->post_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED);
    }
}

void uct_sep_iface_stall(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq;

    /* Queues hold completion credits for work requests that asked for no
     * completion. With many queues, all credits can be bound like that. */
    iface->tx.stalled = 1;
    ucs_list_for_each(txwq, &iface->tx.active, list) {
        if (iface->tx.cq_credits <= UCT_SEP_STALL_MIN_CREDITS) {
            break; /* Those asked for will bring the next round */
        }

        if (uct_sep_txwq_has_credits(txwq)) {
            uct_sep_iface_signal_last(iface, txwq);
        }
    }
}

static unsigned uct_sep_iface_dispatch_retry(void *arg)
{
    uct_sep_iface_t *iface = arg;

    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->tx.dispatch_id);
    uct_sep_iface_dispatch(iface);
    return 1;
}

void uct_sep_iface_dispatch(uct_sep_iface_t *iface)
{
    UCS_LIST_HEAD(round);
    int progressed;
    uct_sep_ep_t *ep;

    if (iface->tx.in_dispatch) {
        return;
    }

    iface->tx.in_dispatch = 1;
    do {
        /* One request of each endpoint in turn */
        progressed = 0;
        ucs_list_splice_tail(&round, &iface->tx.sched);
        ucs_list_head_init(&iface->tx.sched);
        while (!ucs_list_is_empty(&round) && (iface->tx.cq_credits >= 0)) {
            ep = ucs_list_extract_head(&round, uct_sep_ep_t, sched);
            ucs_list_head_init(&ep->sched);
            progressed |= uct_sep_ep_dispatch(ep);
        }
        ucs_list_splice_tail(&iface->tx.sched, &round);
        ucs_list_head_init(&round);
    } while (progressed && (iface->tx.cq_credits >= 0) &&
             !ucs_list_is_empty(&iface->tx.sched));
    iface->tx.in_dispatch = 0;

    if (!ucs_list_is_empty(&iface->tx.sched)) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_iface_stall(iface);
        } else {
            /* They wait for something we don't know */
            uct_worker_progress_register_safe(&iface->super.worker->super,
                                              uct_sep_iface_dispatch_retry,
                                              iface, 0,
                                              &iface->tx.dispatch_id);
        }
    }
}

/* Resources have become free for which somebody waits */
static UCS_F_NOINLINE void
uct_sep_iface_wake(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    ucs_list_splice_tail(&iface->tx.sched, &txwq->waiting);
    ucs_list_head_init(&txwq->waiting);

    if (iface->tx.stalled) {
        if (iface->tx.cq_credits < 0) {
            uct_sep_iface_stall(iface);
            return;
        }
        iface->tx.stalled = 0;
    }

    uct_sep_iface_dispatch(iface);
}

/* Index behind the work request that starts at an index */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_txwq_wqe_end(const uct_sep_txwq_t *txwq, uint16_t pi)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = uct_sep_txwq_bb(txwq, pi);

    return pi + uct_sep_wqe_num_bb(be32toh(ctrl->qpn_ds) & 0x3f);
}

/* Finish operations up to an index */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_finish(uct_sep_txwq_t *txwq, uint16_t end)
{
    uct_sep_op_t *op;

    while (!ucs_queue_is_empty(&txwq->outstanding)) {
        op = ucs_queue_head_elem_non_empty(&txwq->outstanding, uct_sep_op_t,
                                           queue);
        if ((int16_t)(end - op->end) < 0) {
            break;
        }
        ucs_queue_pull_non_empty(&txwq->outstanding);
        op->handler(op, UCS_OK);
    }
}

/* Give credits back up to an index */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_release(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint16_t end)
{
    uint16_t num_bb = end - txwq->hw_ci;

    txwq->hw_ci           = end;
    txwq->credits        += num_bb;
    iface->tx.cq_credits += num_bb;
}

static UCS_F_NOINLINE void
uct_sep_iface_drain(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_is_empty(txwq)) {
        uct_sep_rc_destroy_txwq(iface, txwq);
    }
    if (iface->tx.stalled && (iface->tx.cq_credits >= 0)) {
        iface->tx.stalled = 0;
        uct_sep_iface_dispatch(iface);
    }
}

static UCS_F_ALWAYS_INLINE void
uct_sep_iface_handle_send(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint32_t qpn = be32toh(cqe->sop_drop_qpn) & UCT_SEP_QPN_MASK;
    uct_sep_txwq_t *txwq;
    uint16_t end;

    txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    if (ucs_unlikely(txwq == NULL)) {
        ucs_diag("%s: completion of unknown QP 0x%x", iface->port.name, qpn);
        return;
    }

    end = uct_sep_txwq_wqe_end(txwq, be16toh(cqe->wqe_counter));

    /* Users' callbacks first: what they send must not find the credits that
     * those have waited for who come next */
    uct_sep_txwq_finish(txwq, end);
    uct_sep_txwq_release(iface, txwq, end);

    if (ucs_unlikely(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        uct_sep_iface_drain(iface, txwq);
    } else if (ucs_unlikely(!ucs_list_is_empty(&txwq->waiting) ||
                            iface->tx.stalled)) {
        uct_sep_iface_wake(iface, txwq);
    }
}

static UCS_F_ALWAYS_INLINE void
uct_sep_iface_handle_recv(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint16_t index          = be16toh(cqe->wqe_counter);
    uint32_t length         = be32toh(cqe->byte_cnt);
    uct_sep_rx_desc_t *desc = iface->srq.descs[index];
    uct_sep_am_hdr_t *hdr   = UCS_PTR_BYTE_OFFSET(desc, iface->srq.hdr_offset);
    ucs_status_t status;
    void *user_desc;
    uint8_t am_id;

    VALGRIND_MAKE_MEM_DEFINED(hdr, length);

    /* Whatever was sent, it does not leave the buffer or the table of
     * handlers */
    if (ucs_unlikely(length < sizeof(*hdr))) {
        ucs_diag("%s: dropped a message without a header", iface->port.name);
        uct_sep_srq_append(&iface->srq, index);
        return;
    }

    am_id = hdr->am_id & (UCT_AM_ID_MAX - 1);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, hdr + 1,
                       length - sizeof(*hdr), "RX: %s", iface->port.name);
    status = uct_iface_invoke_am(&iface->super, am_id, hdr + 1,
                                 length - sizeof(*hdr), UCT_CB_PARAM_FLAG_DESC);
    if (ucs_likely(status == UCS_OK)) {
        uct_sep_srq_append(&iface->srq, index);
    } else {
        user_desc                = UCS_PTR_BYTE_OFFSET(desc,
                                                iface->rx.headroom_offset);
        uct_recv_desc(user_desc) = &iface->rx.release;
        uct_sep_srq_replace(&iface->srq, index);
    }
}

static void uct_sep_iface_handle_send_error(uct_sep_iface_t *iface,
                                            const struct mlx5_err_cqe *cqe)
{
    uint32_t qpn = be32toh(cqe->s_wqe_opcode_qpn) & UCT_SEP_QPN_MASK;
    uint16_t pi  = be16toh(cqe->wqe_counter);
    const struct mlx5_wqe_ctrl_seg *ctrl;
    ucs_log_level_t level;
    uct_sep_txwq_t *txwq;
    ucs_status_t status;
    uint16_t end;

    txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    if (txwq == NULL) {
        ucs_diag("%s: error completion of unknown QP 0x%x", iface->port.name,
                 qpn);
        return;
    }

    end = uct_sep_txwq_wqe_end(txwq, pi);
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) {
        uct_sep_txwq_release(iface, txwq, end);
        uct_sep_iface_drain(iface, txwq);
        return;
    }

    /* What is before it has succeeded */
    uct_sep_txwq_finish(txwq, pi);
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) { /* ... and cancelled it */
        uct_sep_txwq_release(iface, txwq, end);
        uct_sep_iface_drain(iface, txwq);
        return;
    }

    status = uct_sep_syndrome_status(cqe->syndrome);
    level  = (status == UCS_ERR_CANCELED) ? UCS_LOG_LEVEL_DEBUG :
             (status == UCS_ERR_IO_ERROR) ? UCS_LOG_LEVEL_ERROR :
                                            iface->super.config.failure_level;
    ctrl   = uct_sep_txwq_bb(txwq, pi);
    ucs_log(level, "%s: QP 0x%x: %s (syndrome 0x%x vendor 0x%x) of work "
            "request %u, opcode 0x%x%s", iface->port.name, qpn,
            uct_sep_syndrome_str(cqe->syndrome), cqe->syndrome,
            cqe->vendor_err_synd, pi, be32toh(ctrl->opmod_idx_opcode) & 0xff,
            (cqe->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR) ?
            ". Is UCX_SEP_SEG_SIZE the same in all processes?" : "");

    uct_sep_txwq_release(iface, txwq, end);
    uct_sep_rc_fail(iface, txwq, status);
}

static void uct_sep_iface_handle_recv_error(uct_sep_iface_t *iface,
                                            const struct mlx5_err_cqe *cqe)
{
    uint32_t qpn = be32toh(cqe->s_wqe_opcode_qpn) & UCT_SEP_QPN_MASK;
    uct_sep_txwq_t *txwq;

    /* The buffer was taken from the queue, and can be used again */
    uct_sep_srq_append(&iface->srq, be16toh(cqe->wqe_counter));

    if (cqe->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR) {
        return;
    }

    ucs_diag("%s: QP 0x%x: receive failed: %s (syndrome 0x%x vendor 0x%x)%s",
             iface->port.name, qpn, uct_sep_syndrome_str(cqe->syndrome),
             cqe->syndrome, cqe->vendor_err_synd,
             (cqe->syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR) ?
             ". Is UCX_SEP_SEG_SIZE the same in all processes?" : "");

    txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    if ((txwq != NULL) && !(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        uct_sep_rc_fail(iface, txwq, UCS_ERR_CONNECTION_RESET);
    }
}

static UCS_F_NOINLINE void
uct_sep_iface_handle_other(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned opcode = cqe->op_own >> 4;

    switch (opcode) {
    case MLX5_CQE_REQ_ERR:
        uct_sep_iface_handle_send_error(iface, (const void*)cqe);
        break;
    case MLX5_CQE_RESP_ERR:
        uct_sep_iface_handle_recv_error(iface, (const void*)cqe);
        break;
    default:
        ucs_error("%s: completion of unexpected type %u on CQ 0x%x",
                  iface->port.name, opcode, iface->cq.cqn);
        break;
    }
}

static UCS_F_NOINLINE unsigned
uct_sep_iface_poll(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned count = 0;
    unsigned opcode;

    do {
        /* Before any callback: it may progress as well */
        uct_sep_cq_pop(&iface->cq);

        opcode = cqe->op_own >> 4;
        if (ucs_likely(opcode == MLX5_CQE_RESP_SEND)) {
            uct_sep_iface_handle_recv(iface, cqe);
        } else if (ucs_likely(opcode == MLX5_CQE_REQ)) {
            uct_sep_iface_handle_send(iface, cqe);
        } else {
            uct_sep_iface_handle_other(iface, cqe);
        }

        if (++count >= iface->config.max_poll) {
            break;
        }
        cqe = uct_sep_cq_peek(&iface->cq);
    } while (cqe != NULL);

    uct_sep_cq_update_ci(&iface->cq);
    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    } else {
        uct_sep_srq_publish(&iface->srq);
    }
    return count;
}

unsigned uct_sep_iface_progress(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    struct mlx5_cqe64 *cqe;

    cqe = uct_sep_cq_peek(&iface->cq);
    if (ucs_likely(cqe == NULL)) {
        return 0;
    }

    return uct_sep_iface_poll(iface, cqe);
}
