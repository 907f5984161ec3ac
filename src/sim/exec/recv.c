/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/exec/exec.h"
#include "sim/exec/mem.h"
#include "sim/check/report.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

#define MLX5SIM_RECV_WQE_MAX 1024


/* Read a doorbell record and a WQE of a queue, in one call if it belongs to
 * another process. @return 0 or -errno */
static int mlx5sim_recv_read(const mlx5sim_proc_t *proc, int is_mine,
                             uint64_t db, uint64_t wqe, size_t stride,
                             uint32_t *db_p, void *wqe_p)
{
    struct iovec local[2], remote[2];

    if (is_mine) {
        *db_p = be32toh(*(volatile uint32_t*)(uintptr_t)db);
        atomic_thread_fence(memory_order_acquire);
        memcpy(wqe_p, (void*)(uintptr_t)wqe, stride);
        return 0;
    }

    local[0]  = (struct iovec){db_p, sizeof(*db_p)};
    local[1]  = (struct iovec){wqe_p, stride};
    remote[0] = (struct iovec){(void*)(uintptr_t)db, sizeof(*db_p)};
    remote[1] = (struct iovec){(void*)(uintptr_t)wqe, stride};
    if (mlx5sim_mem_readv(proc, local, 2, remote, 2,
                          sizeof(*db_p) + stride) != 0) {
        return -1;
    }

    *db_p = be32toh(*db_p);
    return 0;
}

void mlx5sim_srq_limit_check(mlx5sim_srq_t *srq, uint16_t posted)
{
    if ((srq->limit != 0) && ((uint16_t)(posted - srq->consumed) +
                              srq->num_returned < srq->limit)) {
        srq->limit = 0;
        mlx5sim_async_event(&srq->o, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
}

/* Claim the head of an SRQ; its lock is held. Result as recv_claim. */
static int mlx5sim_srq_pop(mlx5sim_srq_t *srq, uint8_t *wqe, uint32_t *index_p)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&srq->o.owner));
    int is_mine          = atomic_load(&srq->o.owner) == mlx5sim_self_tag;
    size_t stride        = 1ul << srq->wqe_shift;
    uint32_t index       = srq->head;
    int returned         = srq->num_returned > 0;
    uint32_t db;

    if (proc == NULL) {
        return -2;
    }

    if (returned) {
        index = srq->returned[srq->num_returned - 1];
    }

    if (mlx5sim_recv_read(proc, is_mine, srq->db,
                          srq->buf + ((uint64_t)index << srq->wqe_shift),
                          stride, &db, wqe) != 0) {
        return -2;
    }

    if (!returned) {
        if ((uint16_t)db == srq->consumed) {
            return 0;
        }

        if ((uint16_t)((uint16_t)db - srq->consumed) > srq->num_wqes) {
            mlx5sim_report_obj(MLX5SIM_CHK_RQ_OVERRUN, &srq->o, "SRQ",
                               srq->srqn, "doorbell record 0x%x, consumed 0x%x",
                               db & 0xffff, srq->consumed);
            return -1;
        }
    }

    *index_p = index;
    if (returned) {
        --srq->num_returned;
        return 1;
    }

    /* mlx5_wqe_srq_next_seg: 2 reserved bytes, then next_wqe_index */
    srq->head = (wqe[2] << 8) | wqe[3];
    if (srq->head >= srq->num_wqes) {
        mlx5sim_report_obj(MLX5SIM_CHK_SRQ_LIST, &srq->o, "SRQ", srq->srqn,
                           "WQE %u links to %u of %u", index, srq->head,
                           srq->num_wqes);
        srq->head = index;
        return -1;
    }

    ++srq->consumed;
    ++srq->received;
    mlx5sim_srq_limit_check(srq, db);
    return 1;
}

int mlx5sim_recv_claim(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p)
{
    int is_mine = atomic_load(&qp->o.owner) == mlx5sim_self_tag;
    uint8_t wqe[MLX5SIM_RECV_WQE_MAX];
    mlx5sim_proc_t *proc;
    mlx5sim_srq_t *srq;
    mlx5sim_chk_t chk;
    uint32_t db, index;
    size_t stride;
    int ret;

    if (qp->srq != 0) {
        srq = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1);
        (void)mlx5sim_lock(&srq->lock);
        ret = mlx5sim_srq_pop(srq, wqe, &index);
        if (ret == 1) {
            qp->claim.index   = index;
            qp->claim.pushing = 0;
            qp->claim.active  = 1;
        }
        mlx5sim_unlock(&srq->lock);
        stride = 1ul << srq->wqe_shift;
    } else {
        if (qp->qp.rq_wqe_cnt == 0) {
            return 0;
        }

        proc   = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
        index  = qp->rq_head;
        stride = 1ul << qp->qp.rq_wqe_shift;
        if ((proc == NULL) ||
            (mlx5sim_recv_read(proc, is_mine, qp->db,
                               qp->rq + ((uint64_t)(index &
                                                    (qp->qp.rq_wqe_cnt - 1))
                                         << qp->qp.rq_wqe_shift),
                               stride, &db, wqe) != 0)) {
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

        qp->claim.index   = index;
        qp->claim.pushing = 0;
        qp->claim.active  = 1;
        ++qp->rq_head;
        ret = 1;
    }

    if (ret != 1) {
        return ret;
    }

    chk           = mlx5sim_recv_decode(wqe, stride, qp->srq != 0, recv_p);
    recv_p->index = index;
    if (chk != MLX5SIM_CHK_OK) {
        mlx5sim_report_qp(chk, qp, -1, "receive WQE %u", index);
        return -1;
    }

    return 1;
}

void mlx5sim_recv_release(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_srq_t *srq;

    if (!qp->claim.active) {
        return;
    }

    if (qp->srq == 0) {
        qp->rq_head = qp->claim.index;
    } else {
        srq = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, qp->srq - 1);
        (void)mlx5sim_lock(&srq->lock);
        if (srq->num_returned < MLX5SIM_SRQ_RETURNED) {
            srq->returned[srq->num_returned++] = qp->claim.index;
        }
        mlx5sim_unlock(&srq->lock);
    }

    qp->claim.active = 0;
}

void mlx5sim_recv_done(mlx5sim_qp_obj_t *qp)
{
    qp->claim.active = 0;
    ++qp->received;
}

void mlx5sim_rq_lock(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_cq_t *cq;

    if (mlx5sim_lock(&qp->rq_lock) == 0) {
        return;
    }

    /* A requester was killed while it delivered here. The receive WQE it had
     * claimed is either reported by a CQE or goes back to the queue. */
    if (qp->claim.active) {
        cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq);
        if (qp->claim.pushing &&
            (((int32_t)(cq->pi - qp->claim.cq_pi) > 0) ||
             mlx5sim_cq_slot_valid(cq, qp->claim.cq_pi))) {
            mlx5sim_recv_done(qp);
        } else {
            mlx5sim_recv_release(qp);
        }
    }
}

void mlx5sim_rq_flush(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_cq_t *cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq);
    mlx5sim_recv_wqe_t recv;
    mlx5sim_cqe_t cqe;

    if (qp->srq != 0) {
        /* IBTA: WQEs of an SRQ stay; the consumer learns once that no more of
         * them will complete through this QP */
        if (!qp->last_wqe_event) {
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
