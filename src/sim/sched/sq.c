/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/sq.h>
#include <sim/check/report.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/qp.h>
#include <sim/engine/stream.h>
#include <sim/exec/wqe.h>
#include <sim/net/net.h>
#include <sim/objs/clock.h>
#include <sim/objs/pcie.h>
#include <sim/objs/port.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/batch.h>
#include <sim/queue/chan.h>
#include <sim/queue/cq.h>
#include <sim/queue/recv.h>
#include <sim/sched/chance.h>
#include <sim/sched/park.h>
#include <sim/sched/pipe.h>
#include <sim/sched/tap.h>
#include <sim/trace/trace.h>

#include <endian.h>


/* Whether mlx5sim-wire executes what is posted; what is flushed, it does not */
static int mlx5sim_sq_is_remote(const mlx5sim_qp_obj_t *qp)
{
    return qp->is_remote && (qp->qp.state != MLX5SIM_QPS_ERR) &&
           (qp->qp.state != MLX5SIM_QPS_SQE);
}

void mlx5sim_sq_complete(mlx5sim_qp_obj_t *qp, const mlx5sim_cqe_t *cqe,
                         mlx5sim_claim_t *claim)
{
    if (cqe->opcode == MLX5SIM_CQE_REQ_ERR) {
        mlx5sim_port_count(qp->dev, qp->qp.port,
                           (cqe->syndrome == MLX5SIM_SYNDROME_WR_FLUSH) ?
                           MLX5SIM_PORT_REQ_FLUSHED : MLX5SIM_PORT_REQ_ERRORS,
                           1);
    }

    mlx5sim_batch_settle_others();
    if (mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq), cqe,
                        claim) != 0) {
        /* nobody can be notified any more: IBTA moves the QP to error */
        qp->qp.state = MLX5SIM_QPS_ERR;
    }
}

void mlx5sim_sq_drained(mlx5sim_qp_obj_t *qp)
{
    qp->has_sigerr = 0;
    if (qp->qp.state == MLX5SIM_QPS_RTS) {
        qp->qp.state = MLX5SIM_QPS_SQD;
        mlx5sim_async_event(&qp->o, MLX5SIM_EVENT_SQ_DRAINED);
    }
}

/* Account for a finished work request */
static void mlx5sim_sq_finish(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                              const mlx5sim_plan_t *plan)
{
    mlx5sim_proc_t *self = mlx5sim_proc_self();

    qp->retries     = 0;
    atomic_store_explicit(&qp->retry_at, 0, memory_order_relaxed);
    qp->retry_since = 0;
    qp->gone_since  = 0;
    ++qp->wqes;
    atomic_fetch_add_explicit(&self->c.wqes, 1, memory_order_relaxed);
    if (!plan->req_error) {
        atomic_fetch_add_explicit(&self->c.bytes, wqe->length,
                                  memory_order_relaxed);
    } else if (!mlx5sim_stream_fail(&qp->qp, wqe->stream,
                                    plan->req_cqe.syndrome)) {
        qp->qp.state = mlx5sim_qp_is_reliable(&qp->qp) ? MLX5SIM_QPS_ERR :
                                                         MLX5SIM_QPS_SQE;
    }
    if (plan->has_req_cqe) {
        mlx5sim_sq_complete(qp, &plan->req_cqe, NULL);
    }
}

/* @return whether the work request is finished, else it waits */
static int mlx5sim_sq_execute(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_verdict_t verdict;
    mlx5sim_plan_t plan;
    uint64_t begin = mlx5sim_trace_is_on() ? mlx5sim_clock_now() : 0;
    uint32_t psn   = qp->qp.psn;
    uint64_t rnr_timer;
    int is_parked;

    if (mlx5sim_net_is_datagram(qp, wqe)) {
        mlx5sim_net_datagram(qp, wqe, &plan);
        if (mlx5sim_tap_is_on()) {
            mlx5sim_tap_message(qp, wqe, psn, &plan, 0);
        }
        mlx5sim_sq_finish(qp, wqe, &plan);
        return 1;
    }

    verdict = mlx5sim_wqe_execute(qp, wqe, &plan, &rnr_timer);
    if (mlx5sim_tap_is_on()) {
        mlx5sim_tap_message(qp, wqe, psn, &plan, rnr_timer);
    }
    if (verdict != MLX5SIM_VERDICT_DONE) {
        is_parked = (verdict == MLX5SIM_VERDICT_RNR) ?
                            mlx5sim_park_rnr(qp, rnr_timer) :
                    (verdict == MLX5SIM_VERDICT_GONE) ?
                            mlx5sim_park_gone(qp) : mlx5sim_park_retry(qp);
        if (is_parked) {
            return 0;
        }
        mlx5sim_plan_retry_exceeded(&qp->qp, wqe,
                                    verdict == MLX5SIM_VERDICT_RNR, &plan);
    }

    if (mlx5sim_trace_is_on()) {
        mlx5sim_trace_wqe(qp, wqe, begin);
    }
    mlx5sim_sq_finish(qp, wqe, &plan);
    return 1;
}

/* Report a WQE that decode rejected. A WQE whose mistake hardware would not
 * notice is executed all the same. @return whether the WQE is finished, with an
 * error */
static int mlx5sim_sq_rejected(mlx5sim_qp_obj_t *qp, mlx5sim_chk_t chk,
                               const mlx5sim_wqe_t *wqe, uint16_t pi)
{
    mlx5sim_plan_t plan;

    mlx5sim_report_qp(chk, qp, qp->sq_head, "send WQE at 0x%x, doorbell record "
                      "0x%x", qp->sq_head, pi);
    if (!mlx5sim_chk_is_fatal(chk)) {
        return 0;
    }

    mlx5sim_plan_bad_wqe(&qp->qp, wqe, chk, &plan);
    mlx5sim_sq_finish(qp, wqe, &plan);
    return 1;
}

void mlx5sim_sq_flush_recvs(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_rq_lock(qp);
    if ((qp->num_held > 0) && !mlx5sim_park_flush(qp)) {
        mlx5sim_rq_flush_held(qp);
    }
    mlx5sim_rq_flush(qp);
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_park_watch(qp);
}

static void mlx5sim_sq_run_locked(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_wqe_t wqe;
    mlx5sim_cqe_t cqe;
    uint16_t pi, posted;
    mlx5sim_chk_t chk;

    if (!qp->o.ready || mlx5sim_qp_is_dead(qp) ||
        (qp->qp.type == MLX5SIM_QPT_DCT)) {
        return;
    }

    /* it has no send queue, and need not have a doorbell record */
    if (qp->qp.xrc == MLX5SIM_XRC_TGT) {
        if (qp->qp.state == MLX5SIM_QPS_ERR) {
            mlx5sim_sq_flush_recvs(qp);
        }
        return;
    }

    for (;;) {
        pi = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
        if (!atomic_load(&qp->is_rung) || (pi == qp->sq_head)) {
            break;
        }

        /* libmlx5 clears the record only after it has reset a QP, and UCX when
         * it posts anew; until then the record means nothing */
        if (((qp->qp.state != MLX5SIM_QPS_RTS) &&
             (qp->qp.state != MLX5SIM_QPS_ERR) &&
             (qp->qp.state != MLX5SIM_QPS_SQE)) ||
            mlx5sim_sq_is_remote(qp)) {
            break;
        }

        atomic_thread_fence(memory_order_acquire);
        posted = pi - qp->sq_head;
        if (posted > qp->qp.sq_wqe_cnt) {
            mlx5sim_report_qp(MLX5SIM_CHK_SQ_OVERRUN, qp, qp->sq_head,
                              "doorbell record 0x%x is more than %u blocks "
                              "ahead of 0x%x", pi, qp->qp.sq_wqe_cnt,
                              qp->sq_head);
            qp->qp.state = MLX5SIM_QPS_ERR;
            qp->sq_head  = pi;
            break;
        }

        if (qp->bf_wqe != qp->sq_head + 1u) {
            mlx5sim_pcie_read(mlx5sim_proc_self(), 1);
        }
        chk = mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                                 qp->sq_head, &wqe);
        if (wqe.num_bb > posted) {
            wqe.num_bb = posted;
            chk        = MLX5SIM_CHK_WQE_DS;
        }

        if ((qp->qp.state != MLX5SIM_QPS_RTS) ||
            mlx5sim_stream_is_errored(&qp->qp, wqe.stream)) {
            mlx5sim_cqe_flush(&qp->qp, 0, qp->sq_head, wqe.opcode, &cqe);
            mlx5sim_sq_complete(qp, &cqe, NULL);
        } else if (((chk == MLX5SIM_CHK_OK) ||
                    !mlx5sim_sq_rejected(qp, chk, &wqe, pi)) &&
                   !mlx5sim_sq_execute(qp, &wqe)) {
            return;
        }

        qp->sq_head += wqe.num_bb;
        if (qp->has_sigerr) {
            mlx5sim_sq_drained(qp);
        }
    }

    /* nothing waits any more, or the QP left the state it waited in */
    qp->retries = 0;
    atomic_store_explicit(&qp->retry_at, 0, memory_order_relaxed);
    if (qp->qp.state == MLX5SIM_QPS_ERR) {
        mlx5sim_sq_flush_recvs(qp);
    } else {
        qp->retry_since = 0;
        qp->gone_since  = 0;
    }
}

/* What was posted is mlx5sim-wire's to execute. It does not print what is wrong
 * with a WQE, as it is this process whose mistake that is. */
static void mlx5sim_sq_hand_over_locked(mlx5sim_qp_obj_t *qp)
{
    uint16_t pi    = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
    uint16_t index = atomic_load(&qp->rung);
    mlx5sim_chk_t chk;
    mlx5sim_wqe_t wqe;

    while (mlx5sim_report_enabled() && (index != pi)) {
        chk = mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq, index,
                                 &wqe);
        if (wqe.num_bb > (uint16_t)(pi - index)) {
            wqe.num_bb = pi - index;
            chk        = MLX5SIM_CHK_WQE_DS;
        }
        if (chk != MLX5SIM_CHK_OK) {
            mlx5sim_report_qp(chk, qp, index, "send WQE at 0x%x, doorbell "
                              "record 0x%x", index, pi);
        }
        index += wqe.num_bb;
    }

    atomic_store(&qp->rung, pi);
    mlx5sim_net_ring(qp);
    mlx5sim_park_server(qp);
}

/* The helper thread does this beside those that ring, and none of them may
 * store an older record over a newer one. The lock is not sq_lock, as
 * mlx5sim-wire takes that one, and must not wait for a process that is
 * stopped. */
static void mlx5sim_sq_hand_over(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->rung_lock);
    if (mlx5sim_sq_is_remote(qp)) {
        mlx5sim_sq_hand_over_locked(qp);
    }
    mlx5sim_unlock(&qp->rung_lock);
}

/* Nobody will send what is posted: UC does not notice */
static void mlx5sim_sq_give_up(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_plan_t plan;
    mlx5sim_wqe_t wqe;

    while ((qp->qp.state == MLX5SIM_QPS_RTS) &&
           ((uint16_t)atomic_load(&qp->rung) != qp->sq_head)) {
        (void)mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                                 qp->sq_head, &wqe);
        if (qp->qp.type == MLX5SIM_QPT_RC) {
            mlx5sim_plan_retry_exceeded(&qp->qp, &wqe, 0, &plan);
        } else {
            mlx5sim_wqe_lose(qp, &wqe, &plan);
        }
        mlx5sim_sq_finish(qp, &wqe, &plan);
        qp->sq_head += wqe.num_bb;
    }

    mlx5sim_sq_run_locked(qp);
}

/* Give up if mlx5sim-wire has been missing for too long */
static void mlx5sim_sq_watch_server(mlx5sim_qp_obj_t *qp)
{
    atomic_store(&qp->retry_at, 0); /* what is rung from now on sets it again */
    if ((uint16_t)atomic_load(&qp->rung) == qp->sq_head) {
        qp->retry_since = 0;
    } else if (mlx5sim_net_server() != 0) {
        qp->retry_since = 0;
        mlx5sim_park_server(qp);
    } else if ((qp->qp.type != MLX5SIM_QPT_RC) || !mlx5sim_park_retry(qp)) {
        mlx5sim_sq_give_up(qp);
    }
}

void mlx5sim_sq_look_after(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    if (qp->o.ready && !mlx5sim_qp_is_dead(qp) && qp->is_remote &&
        (qp->qp.state == MLX5SIM_QPS_RTS)) {
        mlx5sim_batch_open();
        mlx5sim_sq_watch_server(qp);
        mlx5sim_batch_close();
    }
    mlx5sim_unlock(&qp->sq_lock);
}

void mlx5sim_sq_run(mlx5sim_qp_obj_t *qp)
{
    int is_rung = atomic_load(&qp->is_rung);

    if (mlx5sim_sq_is_remote(qp)) {
        if (is_rung) {
            mlx5sim_sq_hand_over(qp);
        }
        return;
    }

    if (mlx5sim_chance_is_deferred() && !qp->is_remote &&
        (qp->qp.xrc != MLX5SIM_XRC_TGT)) {
        if (is_rung) {
            mlx5sim_pipe_ring(qp);
        }
        return;
    }

    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_batch_open();
    mlx5sim_sq_run_locked(qp);
    mlx5sim_batch_close();
    mlx5sim_unlock(&qp->sq_lock);
}

void mlx5sim_qp_flush(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    qp->qp.state = MLX5SIM_QPS_ERR;
    if (mlx5sim_chance_is_deferred() && !qp->is_remote) {
        mlx5sim_unlock(&qp->sq_lock);
        mlx5sim_qp_kick(qp);
        return;
    }

    mlx5sim_sq_run_locked(qp);
    mlx5sim_unlock(&qp->sq_lock);
}

int mlx5sim_sq_reset_stream(mlx5sim_qp_obj_t *qp, uint16_t stream)
{
    int ret;

    (void)mlx5sim_lock(&qp->sq_lock);
    ret = mlx5sim_stream_reset(&qp->qp, stream);
    mlx5sim_unlock(&qp->sq_lock);
    return ret;
}

void mlx5sim_qp_settle(mlx5sim_qp_obj_t *qp)
{
    if (qp->send_cq != 0) {
        mlx5sim_cq_settle(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq));
    }
    if ((qp->recv_cq != qp->send_cq) && (qp->recv_cq != 0)) {
        mlx5sim_cq_settle(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq));
    }
}

void mlx5sim_qp_withdraw(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_rq_lock(qp);
    mlx5sim_rq_lose(qp);
    qp->o.ready = 0;
    mlx5sim_qp_settle(qp);
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_unlock(&qp->sq_lock);
}
