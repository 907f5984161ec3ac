/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/check/report.h>
#include <sim/engine/qp.h>
#include <sim/engine/stream.h>
#include <sim/objs/port.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/sched/chance.h>
#include <sim/sched/park.h>
#include <sim/sched/sq.h>

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Packets that are sent, or work requests that complete, at a time: 1 to this;
 * 2^n */
#define MLX5SIM_PIPE_BURST     4

/* Packets that a read request asks for at most: all of them */
#define MLX5SIM_PIPE_CHUNK     UINT32_MAX

/* A timeout whose cause is known, as it was the device that lost the packet,
 * takes this many rounds and not the time the QP was given */
#define MLX5SIM_PIPE_TIMEOUT   32


mlx5sim_pipe_t *mlx5sim_pipe_new(uint32_t die)
{
    mlx5sim_pipe_t *pipe = calloc(1, sizeof(*pipe));

    if (pipe != NULL) {
        pipe->die = die;
        mlx5sim_flights_begin(&pipe->flights, 0, MLX5SIM_PIPE_CHUNK);
    }
    return pipe;
}

void mlx5sim_pipe_free(mlx5sim_pipe_t *pipe)
{
    free(pipe);
}

void mlx5sim_pipe_ring(mlx5sim_qp_obj_t *qp)
{
    uint16_t pi = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
    uint16_t reported;

    reported = atomic_load_explicit(&qp->reported, memory_order_relaxed);
    if ((uint16_t)(pi - reported) > qp->qp.sq_wqe_cnt) {
        /* that they are finished is known to the device alone */
        mlx5sim_report_qp(MLX5SIM_CHK_SQ_REUSED, qp, reported, "doorbell "
                          "record 0x%x is %u blocks ahead of 0x%x, of which no "
                          "completion has told", pi, (uint16_t)(pi - reported),
                          reported);
    }

    atomic_store(&qp->rung, pi);
    mlx5sim_qp_kick(qp);
}

/* Forget what is under way; go on with the WQE at qp->sq_head */
static void mlx5sim_pipe_clear(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_clear(&pipe->flights, qp->sq_head);
    pipe->num_answers = 0;
    pipe->is_ignored  = 0;
    pipe->is_gone     = 0;
    pipe->is_parked   = 0;
    memset(pipe->is_drawn, 0, sizeof(pipe->is_drawn));
    memset(pipe->placed, 0, sizeof(pipe->placed));
}

static void mlx5sim_pipe_reset(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_begin(&pipe->flights, qp->sq_head, MLX5SIM_PIPE_CHUNK);
    pipe->messages = 0;
    pipe->resets   = qp->resets;
    mlx5sim_pipe_clear(pipe, qp);
}

/* Flush errors for all that is posted; what was under way is over, at whichever
 * packet it had come to */
static void mlx5sim_pipe_flush(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    uint16_t pi = atomic_load(&qp->rung);
    mlx5sim_wqe_t wqe;
    mlx5sim_cqe_t cqe;

    while (qp->sq_head != pi) {
        (void)mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                                 qp->sq_head, &wqe);
        mlx5sim_cqe_flush(&qp->qp, 0, qp->sq_head, wqe.opcode, &cqe);
        mlx5sim_sq_complete(qp, &cqe, NULL);
        if (wqe.num_bb > (uint16_t)(pi - qp->sq_head)) {
            wqe.num_bb = pi - qp->sq_head;
        }
        qp->sq_head += wqe.num_bb;
    }

    atomic_store(&qp->reported, qp->sq_head);
    mlx5sim_pipe_clear(pipe, qp);
    atomic_store_explicit(&qp->retry_at, 0, memory_order_relaxed);
    if (qp->qp.state == MLX5SIM_QPS_ERR) {
        mlx5sim_sq_flush_recvs(qp);
    } else {
        qp->retry_since = 0;
        qp->gone_since  = 0;
    }
}

/* A stream of a DC initiator is in error, and the queue pair is not: go on with
 * what is behind the request that has failed, which is the last one fetched */
static void mlx5sim_pipe_skip(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_pipe_clear(pipe, qp);
    atomic_store(&qp->retry_at, 0);
    qp->retry_since = 0;
    qp->gone_since  = 0;
}

/* The completion of the oldest work request. @return whether it has a CQE */
static int mlx5sim_pipe_complete(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_proc_t *self       = mlx5sim_proc_self();
    int is_skipped             = 0;
    const mlx5sim_flight_t *flight;
    mlx5sim_plan_t plan;

    /* until now its place in the queue was not to be used again */
    mlx5sim_flight_check(qp, mlx5sim_flights_at(flights, flights->head));
    flight = mlx5sim_flights_complete(flights, &qp->qp, &plan);
    if (!plan.req_error) {
        atomic_fetch_add_explicit(&self->c.bytes, flight->length,
                                  memory_order_relaxed);
    } else if (mlx5sim_stream_fail(&qp->qp, flight->stream,
                                   plan.req_cqe.syndrome)) {
        is_skipped = 1;
    } else {
        qp->qp.state    = mlx5sim_qp_is_reliable(&qp->qp) ? MLX5SIM_QPS_ERR :
                                                            MLX5SIM_QPS_SQE;
        pipe->has_flush = 1;
    }

    if (!plan.req_error ||
        (plan.req_cqe.syndrome != MLX5SIM_SYNDROME_WR_FLUSH)) {
        ++qp->wqes;
        atomic_fetch_add_explicit(&self->c.wqes, 1, memory_order_relaxed);
    }
    qp->sq_head += flight->num_bb;
    if (is_skipped) {
        mlx5sim_pipe_skip(pipe, qp);
    }
    if (plan.has_req_cqe) {
        atomic_store(&qp->reported, qp->sq_head);
        mlx5sim_sq_complete(qp, &plan.req_cqe, NULL);
    }
    return plan.has_req_cqe;
}

static void mlx5sim_pipe_complete_some(mlx5sim_pipe_t *pipe,
                                       mlx5sim_qp_obj_t *qp, unsigned burst)
{
    do {
        if (mlx5sim_pipe_complete(pipe, qp)) {
            break;
        }
    } while ((burst-- > 0) && mlx5sim_flights_can_complete(&pipe->flights));
}

/* What has been sent is not answered: try again, or give up */
static void mlx5sim_pipe_timeout(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &pipe->flights;

    if (!pipe->is_gone && !pipe->is_ignored) {
        mlx5sim_port_count(qp->dev, qp->qp.port, MLX5SIM_PORT_TIMEOUTS, 1);
        mlx5sim_pipe_retry(pipe, qp);
    } else if (pipe->is_gone ? mlx5sim_park_gone(qp) : mlx5sim_park_retry(qp)) {
        pipe->is_parked = MLX5SIM_PARKED_RETRY;
        mlx5sim_pipe_go_back(pipe);
    } else {
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_TRANSPORT_RETRY);
    }
}

/* Whether there is something to do in @a lane */
static int mlx5sim_pipe_has_work(const mlx5sim_pipe_t *pipe,
                                 const mlx5sim_qp_obj_t *qp,
                                 mlx5sim_lane_t lane)
{
    const mlx5sim_flights_t *flights = &pipe->flights;

    switch (lane) {
    case MLX5SIM_LANE_SEND:
        return mlx5sim_pipe_can_send(pipe, qp) ||
               mlx5sim_pipe_can_fetch(pipe, qp);
    case MLX5SIM_LANE_ANSWER:
        return pipe->num_answers > 0;
    case MLX5SIM_LANE_COMPLETE:
        return mlx5sim_flights_can_complete(flights);
    case MLX5SIM_LANE_PLACE:
        return mlx5sim_pipe_can_place(pipe, qp);
    default:
        if (qp->qp.type == MLX5SIM_QPT_DCI) {
            return (pipe->is_gone || pipe->is_ignored) && !pipe->is_parked &&
                   !flights->has_stop;
        }

        return (flights->una < flights->snd) && (pipe->num_answers == 0) &&
               !pipe->is_parked && (qp->qp.type == MLX5SIM_QPT_RC) &&
               (!flights->has_stop ||
                (mlx5sim_flights_oldest(flights) != flights->stop)) &&
               !mlx5sim_pipe_can_send(pipe, qp) &&
               !mlx5sim_pipe_can_fetch(pipe, qp) &&
               ((qp->qp.timeout != 0) || pipe->is_gone || pipe->is_ignored);
    }
}

static void mlx5sim_pipe_step(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                              mlx5sim_lane_t lane)
{
    unsigned burst;

    ++pipe->steps[lane];
    burst = mlx5sim_chance(MLX5SIM_CHANCE_BURST, pipe->die,
                           ((uint64_t)lane << 56) | pipe->steps[lane]) %
            MLX5SIM_PIPE_BURST;
    switch (lane) {
    case MLX5SIM_LANE_SEND:
        if (!mlx5sim_pipe_can_send(pipe, qp)) {
            mlx5sim_pipe_fetch(pipe, qp);
            break;
        }
        do {
            mlx5sim_pipe_send(pipe, qp);
        } while ((burst-- > 0) && mlx5sim_pipe_can_send(pipe, qp));
        break;
    case MLX5SIM_LANE_ANSWER:
        do {
            mlx5sim_pipe_answer(pipe, qp);
        } while ((burst-- > 0) && (pipe->num_answers > 0));
        break;
    case MLX5SIM_LANE_COMPLETE:
        mlx5sim_pipe_complete_some(pipe, qp, burst);
        break;
    case MLX5SIM_LANE_PLACE:
        do {
            mlx5sim_pipe_place(pipe, qp,
                               mlx5sim_chance(MLX5SIM_CHANCE_PLACE,
                                              pipe->die,
                                              (pipe->steps[lane] << 2) |
                                              burst));
        } while ((burst-- > 0) && mlx5sim_pipe_can_place(pipe, qp));
        break;
    default:
        mlx5sim_pipe_timeout(pipe, qp);
        break;
    }
}

static mlx5sim_pipe_state_t
mlx5sim_pipe_waits(const mlx5sim_pipe_t *pipe, mlx5sim_lane_t lane,
                   uint64_t *due_p)
{
    if (pipe->due[lane] < *due_p) {
        *due_p = pipe->due[lane];
    }
    return MLX5SIM_PIPE_WAITS;
}

/* The lane's dice are thrown when it gets work; the step comes when they say.
 * @return its state */
static mlx5sim_pipe_state_t
mlx5sim_pipe_run_lane(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                      mlx5sim_lane_t lane, uint64_t round, uint64_t *due_p)
{
    static const mlx5sim_chance_kind_t kinds[MLX5SIM_NUM_LANES] = {
        MLX5SIM_CHANCE_SEND, MLX5SIM_CHANCE_ANSWER, MLX5SIM_CHANCE_COMPLETE,
        MLX5SIM_CHANCE_TIMER, MLX5SIM_CHANCE_CONTINUE
    };
    const mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_chance_kind_t kind       = kinds[lane];

    if (!mlx5sim_pipe_has_work(pipe, qp, lane)) {
        pipe->is_drawn[lane] = 0;
        return MLX5SIM_PIPE_IDLE;
    }

    if (!pipe->is_drawn[lane]) {
        if ((lane == MLX5SIM_LANE_SEND) && (flights->snd != flights->end) &&
            (flights->snd != mlx5sim_flights_at(flights, flights->cur)->psn) &&
            !mlx5sim_flights_at(flights, flights->cur)->is_early) {
            kind = MLX5SIM_CHANCE_CONTINUE;
        }
        pipe->is_drawn[lane] = 1;
        pipe->due[lane]      = round + mlx5sim_chance_wait(kind, pipe->die,
                                                           pipe->steps[lane]);
        if ((lane == MLX5SIM_LANE_TIMER) && !pipe->is_gone) {
            pipe->due[lane] += MLX5SIM_PIPE_TIMEOUT;
        }
    }

    if (pipe->due[lane] > round) {
        return mlx5sim_pipe_waits(pipe, lane, due_p);
    }

    pipe->is_drawn[lane] = 0;
    mlx5sim_pipe_step(pipe, qp, lane);
    return MLX5SIM_PIPE_MOVED;
}

static mlx5sim_pipe_state_t
mlx5sim_pipe_run_lanes(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                       uint64_t round, uint64_t *due_p)
{
    unsigned first             = mlx5sim_chance(MLX5SIM_CHANCE_ORDER,
                                                pipe->die, round);
    mlx5sim_pipe_state_t state = mlx5sim_pipe_run_lane(pipe, qp,
                                                       MLX5SIM_LANE_PLACE,
                                                       round, due_p);
    mlx5sim_pipe_state_t lane;
    unsigned i;

    for (i = 0; i < MLX5SIM_NUM_DUTIES; ++i) {
        lane  = mlx5sim_pipe_run_lane(pipe, qp,
                                      (first + i) % MLX5SIM_NUM_DUTIES, round,
                                      due_p);
        state = (lane > state) ? lane : state;
    }

    return state;
}

/* In the error state, and in that of a send queue */
static mlx5sim_pipe_state_t
mlx5sim_pipe_run_flush(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                       uint64_t round, uint64_t *due_p)
{
    uint64_t at = atomic_load(&qp->retry_at);

    if ((at != 0) && (at <= mlx5sim_now_ns())) {
        pipe->has_flush = 1;
    }

    if (!pipe->has_flush) {
        return MLX5SIM_PIPE_IDLE;
    }

    if (!pipe->is_drawn[MLX5SIM_LANE_COMPLETE]) {
        pipe->is_drawn[MLX5SIM_LANE_COMPLETE] = 1;
        pipe->due[MLX5SIM_LANE_COMPLETE]      =
                round + mlx5sim_chance_wait(MLX5SIM_CHANCE_FLUSH, pipe->die,
                                            pipe->steps[MLX5SIM_LANE_COMPLETE]);
    }

    if (pipe->due[MLX5SIM_LANE_COMPLETE] > round) {
        return mlx5sim_pipe_waits(pipe, MLX5SIM_LANE_COMPLETE, due_p);
    }

    ++pipe->steps[MLX5SIM_LANE_COMPLETE];
    pipe->has_flush = 0;
    mlx5sim_pipe_flush(pipe, qp);
    return MLX5SIM_PIPE_MOVED;
}

static mlx5sim_pipe_state_t
mlx5sim_pipe_run_locked(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                        int is_kicked, uint64_t round, uint64_t *due_p)
{
    uint64_t at;

    if (!qp->o.ready || mlx5sim_qp_is_dead(qp) ||
        (qp->qp.type == MLX5SIM_QPT_DCT)) {
        return MLX5SIM_PIPE_IDLE;
    }

    if (pipe->resets != qp->resets) {
        mlx5sim_pipe_reset(pipe, qp);
    }

    if ((qp->qp.state == MLX5SIM_QPS_ERR) ||
        (qp->qp.state == MLX5SIM_QPS_SQE)) {
        pipe->has_flush |= is_kicked;
        return mlx5sim_pipe_run_flush(pipe, qp, round, due_p);
    }

    if ((qp->qp.state != MLX5SIM_QPS_RTS) &&
        (qp->qp.state != MLX5SIM_QPS_SQD)) {
        return MLX5SIM_PIPE_IDLE;
    }

    if (qp->has_sigerr &&
        mlx5sim_flights_drain(&pipe->flights, qp->sq_head)) {
        mlx5sim_sq_drained(qp);
    }

    /* a peer that has become ready need not be waited for; one that asked for a
     * pause must be */
    at = atomic_load(&qp->retry_at);
    if (pipe->is_parked &&
        ((at <= mlx5sim_now_ns()) ||
         (is_kicked && (pipe->is_parked == MLX5SIM_PARKED_RETRY)))) {
        pipe->is_parked = MLX5SIM_PARKED_NOT;
        atomic_store(&qp->retry_at, 0);
    }

    return mlx5sim_pipe_run_lanes(pipe, qp, round, due_p);
}

mlx5sim_pipe_state_t mlx5sim_pipe_run(mlx5sim_pipe_t *pipe,
                                      mlx5sim_qp_obj_t *qp, int is_kicked,
                                      uint64_t round, uint64_t *due_p)
{
    mlx5sim_pipe_state_t state;

    (void)mlx5sim_lock(&qp->sq_lock);
    state = mlx5sim_pipe_run_locked(pipe, qp, is_kicked, round, due_p);
    mlx5sim_unlock(&qp->sq_lock);
    return state;
}
