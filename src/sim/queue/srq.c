/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/srq.h>
#include <sim/check/report.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/recv_wqe.h>

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

/*
 * A WQE leaves an SRQ when a QP claims it, and may come back if it turns out
 * not to be used. Either change concerns two objects, and the process that
 * makes it may die half way. So the change is announced in the SRQ, made by a
 * single store of the position, and the announcement withdrawn; whoever next
 * takes the lock of a dead process finds the announcement and sets the claim
 * right.
 */


static mlx5sim_srq_pos_t mlx5sim_srq_pos(const mlx5sim_srq_t *srq)
{
    return (mlx5sim_srq_pos_t){.word = atomic_load(&srq->pos)};
}

void mlx5sim_srq_lock(mlx5sim_srq_t *srq)
{
    mlx5sim_qp_obj_t *qp;
    int is_done;

    if ((mlx5sim_lock(&srq->lock) == 0) || (srq->changer == 0)) {
        return;
    }

    qp      = mlx5sim_obj_at(MLX5SIM_OBJ_QP, srq->changer - 1);
    is_done = mlx5sim_srq_pos(srq).seq == srq->change_seq;
    if (is_done != srq->change_claims) {
        qp->claim.active = 0;
    }
    atomic_thread_fence(memory_order_release);
    srq->changer = 0;
}

/* Announce that the claim of @a qp changes together with the position */
static void mlx5sim_srq_announce(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp,
                                 int claims, mlx5sim_srq_pos_t *pos)
{
    ++pos->seq;
    srq->change_seq    = pos->seq;
    srq->change_claims = claims;
    atomic_thread_fence(memory_order_release);
    srq->changer       = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp) + 1;
    atomic_thread_fence(memory_order_release);
}

static void mlx5sim_srq_withdraw(mlx5sim_srq_t *srq)
{
    atomic_thread_fence(memory_order_release);
    srq->changer = 0;
}

/* Raise the limit event if it is due; @a posted is the doorbell record */
static void mlx5sim_srq_limit_check(mlx5sim_srq_t *srq, uint16_t posted)
{
    mlx5sim_srq_pos_t pos = mlx5sim_srq_pos(srq);

    if ((srq->limit != 0) &&
        ((uint16_t)(posted - pos.consumed) + pos.num_returned < srq->limit)) {
        srq->limit = 0;
        mlx5sim_async_event(&srq->o, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
}

/* Doorbell record of an SRQ of this process */
static uint16_t mlx5sim_srq_db(const mlx5sim_srq_t *srq)
{
    return be32toh(*(volatile uint32_t*)(uintptr_t)srq->db);
}

void mlx5sim_srq_set_limit(mlx5sim_srq_t *srq, uint16_t limit)
{
    mlx5sim_srq_lock(srq);
    srq->limit = limit;
    mlx5sim_srq_limit_check(srq, mlx5sim_srq_db(srq));
    mlx5sim_unlock(&srq->lock);
}

/* The SRQ is used further, after QPs have gone that should have waited. Who
 * destroys an SRQ need not care about its receives, so a QP that may have taken
 * some is no mistake as long as none is posted any more. */
static void mlx5sim_srq_report_lost(mlx5sim_srq_t *srq, uint16_t consumed)
{
    if (srq->lost > 0) {
        mlx5sim_report_obj(MLX5SIM_CHK_SRQ_LEAK, &srq->o, "SRQ", srq->srqn,
                           "goes on without %u receives: QP 0x%x had taken "
                           "them, and was destroyed or reset before the event "
                           "was there", srq->lost, srq->lost_qpn);
        srq->lost      = 0;
        srq->early_qpn = 0;
    } else if ((srq->early_qpn != 0) &&
               ((int16_t)(consumed - srq->early_db) > 0)) {
        mlx5sim_report_obj(MLX5SIM_CHK_SRQ_LEAK, &srq->o, "SRQ", srq->srqn,
                           "goes on, and QP 0x%x was destroyed or reset before "
                           "the event was read. It had taken no receives this "
                           "time", srq->early_qpn);
        srq->early_qpn = 0;
    }
}

/* Read a WQE that may have been posted */
static int mlx5sim_srq_read(mlx5sim_srq_t *srq, uint32_t index, int is_returned,
                            uint32_t *db_p, uint8_t *wqe)
{
    uint16_t consumed    = mlx5sim_srq_pos(srq).consumed;
    uint32_t owner       = atomic_load(&srq->o.owner);
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(owner);
    uint64_t addr        = srq->buf + ((uint64_t)index << srq->wqe_shift);

    if (proc == NULL) {
        return -1;
    }

    /* What was read ahead does not know what is consumed of those that came
     * back, nor how many are left, which a limit wants to know */
    if (is_returned || (srq->limit != 0)) {
        srq->ahead.num = is_returned ? srq->ahead.num : 0;
        return mlx5sim_recv_wqe_read(proc, owner == mlx5sim_self_tag, srq->db,
                                     addr, 1ul << srq->wqe_shift, db_p, wqe);
    }

    return mlx5sim_recv_wqe_next(proc, &srq->ahead, srq->db, srq->buf,
                                 srq->num_wqes, srq->wqe_shift, index, consumed,
                                 db_p, wqe);
}

static int mlx5sim_srq_pop(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp,
                           uint8_t *wqe, uint32_t *index_p)
{
    mlx5sim_srq_pos_t pos = mlx5sim_srq_pos(srq);
    int is_returned       = pos.num_returned > 0;
    uint32_t index        = is_returned ? srq->returned[pos.num_returned - 1] :
                                          pos.head;
    uint32_t db;

    if (mlx5sim_srq_read(srq, index, is_returned, &db, wqe) != 0) {
        return -2;
    }

    if (is_returned) {
        --pos.num_returned;
    } else {
        if ((uint16_t)db == pos.consumed) {
            return 0;
        }

        if ((uint16_t)(db - pos.consumed) > srq->num_wqes) {
            mlx5sim_report_obj(MLX5SIM_CHK_RQ_OVERRUN, &srq->o, "SRQ",
                               srq->srqn, "doorbell record 0x%x, consumed 0x%x",
                               db & 0xffff, pos.consumed);
            return -1;
        }

        /* mlx5_wqe_srq_next_seg: 2 reserved bytes, then next_wqe_index */
        if (srq->is_cyclic) {
            pos.head = (index + 1) & (srq->num_wqes - 1);
        } else {
            pos.head = (wqe[2] << 8) | wqe[3];
        }
        if (pos.head >= srq->num_wqes) {
            mlx5sim_report_obj(MLX5SIM_CHK_SRQ_LIST, &srq->o, "SRQ", srq->srqn,
                               "WQE %u links to %u of %u", index, pos.head,
                               srq->num_wqes);
            return -1;
        }
        ++pos.consumed;
    }

    mlx5sim_srq_report_lost(srq, pos.consumed);
    mlx5sim_srq_announce(srq, qp, 1, &pos);
    qp->claim.index   = index;
    qp->claim.pushing = 0;
    qp->claim.active  = 1;
    atomic_store(&srq->pos, pos.word);
    mlx5sim_srq_withdraw(srq);

    ++srq->received;
    mlx5sim_srq_limit_check(srq, db);
    *index_p = index;
    return 1;
}

int mlx5sim_srq_claim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp, uint8_t *wqe,
                      uint32_t *index_p)
{
    int ret;

    mlx5sim_srq_lock(srq);
    ret = mlx5sim_srq_pop(srq, qp, wqe, index_p);
    mlx5sim_unlock(&srq->lock);
    return ret;
}

void mlx5sim_srq_unclaim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_srq_pos_t pos;

    /* this may settle the matter */
    mlx5sim_srq_lock(srq);
    pos = mlx5sim_srq_pos(srq);
    if (qp->claim.active && (pos.num_returned < MLX5SIM_SRQ_RETURNED)) {
        srq->returned[pos.num_returned++] = qp->claim.index;
        mlx5sim_srq_announce(srq, qp, 0, &pos);
        atomic_store(&srq->pos, pos.word);
        qp->claim.active = 0;
        mlx5sim_srq_withdraw(srq);
    }
    qp->claim.active = 0;
    mlx5sim_unlock(&srq->lock);
}

int mlx5sim_srq_fetch(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp)
{
    uint8_t wqe[MLX5SIM_RECV_WQE_MAX];
    uint32_t index;
    int ret = 1;

    while ((ret == 1) && (qp->num_held <= qp->prefetch) &&
           (qp->num_held < MLX5SIM_SRQ_PREFETCH)) {
        ret = mlx5sim_srq_claim(srq, qp, wqe, &index);
        if (ret == 1) {
            /* Whoever is killed here takes it along, as a QP would */
            qp->claim.active            = 0;
            qp->held[qp->num_held]      = index;
            atomic_thread_fence(memory_order_release);
            ++qp->num_held;
        }
    }

    return ret;
}

int mlx5sim_srq_claim_held(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp,
                           uint8_t *wqe, uint32_t *index_p)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&srq->o.owner));
    int is_mine          = atomic_load(&srq->o.owner) == mlx5sim_self_tag;
    uint32_t index       = qp->held[0];
    uint32_t db;

    if ((proc == NULL) ||
        (mlx5sim_recv_wqe_read(proc, is_mine, srq->db,
                               srq->buf + ((uint64_t)index << srq->wqe_shift),
                               1ul << srq->wqe_shift, &db, wqe) != 0)) {
        return -2;
    }

    --qp->num_held;
    memmove(qp->held, qp->held + 1, qp->num_held * sizeof(qp->held[0]));
    qp->claim.index   = index;
    qp->claim.pushing = 0;
    atomic_thread_fence(memory_order_release);
    qp->claim.active  = 1;
    *index_p          = index;
    return 1;
}

void mlx5sim_srq_lose(mlx5sim_srq_t *srq, const mlx5sim_qp_obj_t *qp,
                      uint32_t count)
{
    if (count > 0) {
        mlx5sim_srq_lock(srq);
        srq->lost     += count;
        srq->lost_qpn  = qp->qp.qpn;
        mlx5sim_unlock(&srq->lock);
    }
}

void mlx5sim_srq_note_early(mlx5sim_srq_t *srq, const mlx5sim_qp_obj_t *qp)
{
    mlx5sim_srq_lock(srq);
    if (srq->early_qpn == 0) {
        srq->early_qpn = qp->qp.qpn;
        srq->early_db  = mlx5sim_srq_db(srq);
    }
    mlx5sim_unlock(&srq->lock);
}
