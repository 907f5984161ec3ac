/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/recv.h>
#include <sim/check/report.h>
#include <sim/objs/pcie.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/cq.h>
#include <sim/queue/recv_wqe.h>
#include <sim/queue/srq.h>

#include <infiniband/verbs.h>


static int mlx5sim_recv_decoded(mlx5sim_qp_obj_t *qp, const void *wqe,
                                size_t stride, uint32_t index,
                                mlx5sim_recv_wqe_t *recv_p)
{
    mlx5sim_chk_t chk;
    mlx5sim_proc_t *proc;

    proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    if (proc != NULL) {
        mlx5sim_pcie_read(proc, 1);
    }

    chk           = mlx5sim_recv_decode(wqe, stride, qp->srq != 0, recv_p);
    recv_p->index = index;
    if (chk != MLX5SIM_CHK_OK) {
        mlx5sim_report_qp(chk, qp, -1, "receive WQE %u", index);
        return -1;
    }

    return 1;
}

/* Address of a WQE in the queue of @a qp itself */
static uint64_t mlx5sim_recv_slot(const mlx5sim_qp_obj_t *qp, uint32_t index)
{
    return qp->rq + ((uint64_t)(index & (qp->qp.rq_wqe_cnt - 1)) <<
                     qp->qp.rq_wqe_shift);
}

int mlx5sim_recv_claim(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p)
{
    uint8_t wqe[MLX5SIM_RECV_WQE_MAX];
    mlx5sim_proc_t *proc;
    mlx5sim_srq_t *srq;
    uint32_t db, index;
    size_t stride;
    int ret;

    if (qp->srq != 0) {
        srq    = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1);
        stride = 1ul << srq->wqe_shift;
        ret    = (qp->prefetch > 0) ? mlx5sim_srq_fetch(srq, qp) : 0;
        if (qp->num_held > 0) {
            ret = mlx5sim_srq_claim_held(srq, qp, wqe, &index);
        } else if (ret == 0) {
            ret = mlx5sim_srq_claim(srq, qp, wqe, &index);
        }
    } else {
        if (qp->qp.rq_wqe_cnt == 0) {
            return 0;
        }

        proc   = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
        index  = qp->rq_head;
        stride = 1ul << qp->qp.rq_wqe_shift;
        if ((proc == NULL) ||
            (mlx5sim_recv_wqe_next(proc, &qp->ahead, qp->db, qp->rq,
                                   qp->qp.rq_wqe_cnt, qp->qp.rq_wqe_shift,
                                   index & (qp->qp.rq_wqe_cnt - 1), index, &db,
                                   wqe) != 0)) {
            return -2;
        }

        if ((uint16_t)db == (uint16_t)index) {
            return 0;
        }

        if ((uint16_t)(db - index) > qp->qp.rq_wqe_cnt) {
            mlx5sim_report_qp(MLX5SIM_CHK_RQ_OVERRUN, qp, -1, "doorbell record "
                              "0x%x, consumed 0x%x, %u WQEs", db & 0xffff,
                              index & 0xffff, qp->qp.rq_wqe_cnt);
            return -1;
        }

        /* whoever finds the claim takes the WQE back: not before the claim is
         * complete, not after the WQE is gone */
        qp->claim.index   = index;
        qp->claim.pushing = 0;
        atomic_thread_fence(memory_order_release);
        qp->claim.active  = 1;
        atomic_thread_fence(memory_order_release);
        ++qp->rq_head;
        ret = 1;
    }

    return (ret != 1) ? ret :
                        mlx5sim_recv_decoded(qp, wqe, stride, index, recv_p);
}

int mlx5sim_recv_again(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p)
{
    int is_mine          = atomic_load(&qp->o.owner) == mlx5sim_self_tag;
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    uint32_t index       = qp->claim.index;
    uint8_t wqe[MLX5SIM_RECV_WQE_MAX];
    const mlx5sim_srq_t *srq;
    uint64_t addr;
    uint64_t record;
    size_t stride;
    uint32_t db;

    if (qp->srq != 0) {
        srq    = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1);
        stride = 1ul << srq->wqe_shift;
        record = srq->db;
        addr   = srq->buf + ((uint64_t)index << srq->wqe_shift);
    } else {
        stride = 1ul << qp->qp.rq_wqe_shift;
        record = qp->db;
        addr   = mlx5sim_recv_slot(qp, index);
    }

    if ((proc == NULL) ||
        (mlx5sim_recv_wqe_read(proc, is_mine, record, addr, stride, &db,
                               wqe) != 0)) {
        return -2;
    }

    return mlx5sim_recv_decoded(qp, wqe, stride, index, recv_p);
}

void mlx5sim_recv_hold(mlx5sim_qp_obj_t *qp)
{
    qp->claim.held = qp->claim.active;
}

void mlx5sim_recv_release(mlx5sim_qp_obj_t *qp)
{
    if (!qp->claim.active || qp->claim.held) {
        return;
    }

    if (qp->srq == 0) {
        qp->rq_head = qp->claim.index;
        atomic_thread_fence(memory_order_release);
        qp->claim.active = 0;
    } else {
        mlx5sim_srq_unclaim(mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1), qp);
    }
}

void mlx5sim_recv_done(mlx5sim_qp_obj_t *qp)
{
    qp->claim.active = 0;
    qp->claim.held   = 0;
    ++qp->received;
}

/* A responder that has lost its place in a message, because of a page that was
 * not there or a packet out of order, completes the receive as aborted and
 * takes another one when the requester repeats the message. The QP stays in
 * RTS. UCX issue 1963; uct_rc_mlx5_iface_check_rx_completion(). */
int mlx5sim_recv_inject(mlx5sim_qp_obj_t *qp, uint16_t index)
{
    mlx5sim_recv_fault_t *fault = &qp->recv_fault;
    mlx5sim_cqe_t cqe;

    if ((fault->nth == 0) || (++fault->count < fault->nth) ||
        ((fault->count > fault->nth) && !fault->onwards)) {
        return 0;
    }

    mlx5sim_cqe_flush(&qp->qp, 1, index, 0, &cqe);
    cqe.syndrome   = fault->syndrome;
    cqe.vendor_err = fault->vendor;
    if (mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq), &cqe,
                        &qp->claim) != 0) {
        return -1;
    }

    mlx5sim_recv_done(qp);
    return fault->is_abort ? 1 : -1;
}

void mlx5sim_rq_lock(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_srq_t *srq;
    mlx5sim_cq_t *cq;

    if (mlx5sim_lock(&qp->rq_lock) == 0) {
        return;
    }

    /* A requester was killed while it delivered here. Locking repairs the
     * queues it may have been in the middle of. Then the receive WQE it had
     * claimed is either reported by a CQE or goes back. */
    if (qp->srq != 0) {
        srq = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1);
        mlx5sim_srq_lock(srq);
        mlx5sim_unlock(&srq->lock);
    }
    if (qp->recv_cq != 0) { /* XRC target: not yet */
        cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq);
        mlx5sim_cq_lock(cq);
        mlx5sim_unlock(&cq->lock);
    }

    if (qp->claim.active && qp->claim.pushing) {
        mlx5sim_recv_done(qp);
    } else {
        mlx5sim_recv_release(qp);
    }
}

void mlx5sim_rq_flush_held(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_cq_t *cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq);
    mlx5sim_cqe_t cqe;

    for (; qp->num_held > 0; --qp->num_held) {
        mlx5sim_cqe_flush(&qp->qp, 1, qp->held[qp->num_held - 1], 0, &cqe);
        if (mlx5sim_cq_push(cq, &cqe, NULL) != 0) {
            return;
        }
    }
}

/* Whether a QP on an SRQ goes before software can know that it has nothing of
 * the SRQ any more: from RTR on it may take receives, and it has given them
 * back when the event is read that says so (IBTA 10.3.1; what UCX waits for in
 * uct_rc_ep_cleanup_qp() is the read, too) */
static int mlx5sim_rq_is_early(const mlx5sim_qp_obj_t *qp)
{
    /* to destroy a DC target takes until it has drained (mlx5_core,
     * MLX5_EVENT_TYPE_DCT_DRAINED) */
    if ((qp->qp.type == MLX5SIM_QPT_DCT) ||
        (qp->qp.xrc == MLX5SIM_XRC_TGT)) {
        return 0;
    }

    switch (qp->qp.state) {
    case MLX5SIM_QPS_RESET:
    case MLX5SIM_QPS_INIT:
        return 0;
    case MLX5SIM_QPS_ERR:
        return !qp->last_wqe_event ||
               mlx5sim_async_is_unread(&qp->o, IBV_EVENT_QP_LAST_WQE_REACHED);
    default:
        return 1;
    }
}

void mlx5sim_rq_check_flushed(const mlx5sim_qp_obj_t *qp)
{
    if ((qp->srq != 0) && mlx5sim_rq_is_early(qp)) {
        mlx5sim_srq_note_early(mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1),
                               qp);
    }
}

void mlx5sim_rq_lose(mlx5sim_qp_obj_t *qp)
{
    if (qp->srq != 0) {
        mlx5sim_srq_lose(mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1), qp,
                         qp->num_held + qp->claim.held);
        qp->num_held     = 0;
        qp->claim.active = 0;
        qp->claim.held   = 0;
    }
}

void mlx5sim_rq_flush(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_cq_t *cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq);
    mlx5sim_recv_wqe_t recv;
    mlx5sim_cqe_t cqe;

    /* the rest of a message that has landed in part does not come any more */
    if (qp->claim.held) {
        mlx5sim_cqe_flush(&qp->qp, 1, qp->claim.index, 0, &cqe);
        if (mlx5sim_cq_push(cq, &cqe, &qp->claim) != 0) {
            return;
        }
        mlx5sim_recv_done(qp);
    }

    if (qp->qp.xrc == MLX5SIM_XRC_TGT) {
        return; /* whose SRQs these are, nobody waits for it */
    }

    if (qp->srq != 0) {
        /* IBTA: WQEs of an SRQ stay; the consumer learns once that no more of
         * them will complete through this QP */
        if (!qp->last_wqe_event && (qp->num_held == 0)) {
            qp->last_wqe_event = 1;
            mlx5sim_async_event(&qp->o, IBV_EVENT_QP_LAST_WQE_REACHED);
        }
        return;
    }

    while (mlx5sim_recv_claim(qp, &recv) == 1) {
        mlx5sim_cqe_flush(&qp->qp, 1, recv.index, 0, &cqe);
        if (mlx5sim_cq_push(cq, &cqe, &qp->claim) != 0) {
            mlx5sim_recv_release(qp);
            return;
        }
        mlx5sim_recv_done(qp);
    }
}
