/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/check/report.h>
#include <sim/engine/opcode.h>
#include <sim/engine/stream.h>
#include <sim/exec/packet.h>
#include <sim/exec/wqe.h>
#include <sim/objs/pcie.h>
#include <sim/objs/store.h>

#include <string.h>

/* FNV-1a, in steps of 8 bytes */
#define MLX5SIM_SUM_START 0xcbf29ce484222325ul
#define MLX5SIM_SUM_PRIME 0x100000001b3ul


/* Sum of the bytes of a WQE. The device reads it when it likes, while nothing
 * is to be written there. */
__attribute__((no_sanitize("thread")))
static uint64_t mlx5sim_flight_sum(const mlx5sim_qp_obj_t *qp, uint16_t index,
                                   unsigned ds)
{
    const uint64_t *sq = (const uint64_t*)(uintptr_t)qp->sq;
    uint32_t mask      = (qp->qp.sq_wqe_cnt * MLX5SIM_WQEBB / sizeof(*sq)) - 1;
    uint32_t first     = (uint32_t)index * (MLX5SIM_WQEBB / sizeof(*sq));
    uint32_t count     = ds * (MLX5SIM_WQE_UNIT / sizeof(*sq));
    uint64_t sum       = MLX5SIM_SUM_START;
    uint32_t i;

    for (i = 0; i < count; ++i) {
        sum = (sum ^ sq[(first + i) & mask]) * MLX5SIM_SUM_PRIME;
        sum ^= sum >> 29;
    }

    return sum;
}

void mlx5sim_flight_check(mlx5sim_qp_obj_t *qp, mlx5sim_flight_t *flight)
{
    uint64_t sum;

    if (!mlx5sim_report_enabled()) {
        return;
    }

    sum = mlx5sim_flight_sum(qp, flight->index, flight->ds);
    if (sum != flight->sum) {
        flight->sum = sum; /* said once */
        mlx5sim_report_qp(MLX5SIM_CHK_SQ_REUSED, qp, flight->index, "WQE 0x%x, "
                          "opcode 0x%x, was written again before its "
                          "completion", flight->index, flight->opcode);
    }
}

int mlx5sim_flight_read(mlx5sim_qp_obj_t *qp, mlx5sim_flight_t *flight,
                        mlx5sim_wqe_t *wqe_p)
{
    mlx5sim_flight_check(qp, flight);
    (void)mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                             flight->index, wqe_p);
    return ((wqe_p->opcode == flight->opcode) &&
            (wqe_p->length == flight->length)) ? 0 : -1;
}

int mlx5sim_pipe_can_fetch(const mlx5sim_pipe_t *pipe,
                           const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_flights_t *flights = &pipe->flights;

    return (qp->qp.state == MLX5SIM_QPS_RTS) && !qp->has_sigerr &&
           mlx5sim_flights_have_room(flights) &&
           (flights->snd == flights->end) && !pipe->is_parked &&
           !pipe->is_ignored && !pipe->is_gone &&
           ((uint16_t)atomic_load(&qp->rung) != flights->fetched);
}

/* Report what decode found. @return the syndrome with which the WQE fails, or 0
 * if hardware would not notice */
static unsigned mlx5sim_pipe_rejected(mlx5sim_qp_obj_t *qp, mlx5sim_chk_t chk,
                                      const mlx5sim_wqe_t *wqe, uint16_t pi)
{
    mlx5sim_plan_t plan;

    mlx5sim_report_qp(chk, qp, wqe->index, "send WQE at 0x%x, doorbell record "
                      "0x%x", wqe->index, pi);
    if (!mlx5sim_chk_is_fatal(chk)) {
        return 0;
    }

    mlx5sim_plan_bad_wqe(&qp->qp, wqe, chk, &plan);
    return plan.req_cqe.syndrome;
}

void mlx5sim_pipe_fetch(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    uint16_t pi                = atomic_load(&qp->rung);
    uint16_t posted            = pi - flights->fetched;
    unsigned syndrome          = 0;
    mlx5sim_flight_t *flight;
    mlx5sim_chk_t chk;
    mlx5sim_wqe_t wqe;

    if ((uint16_t)(pi - qp->sq_head) > qp->qp.sq_wqe_cnt) {
        mlx5sim_report_qp(MLX5SIM_CHK_SQ_OVERRUN, qp, qp->sq_head, "doorbell "
                          "record 0x%x is more than %u blocks ahead of 0x%x",
                          pi, qp->qp.sq_wqe_cnt, qp->sq_head);
        qp->qp.state    = MLX5SIM_QPS_ERR;
        qp->sq_head     = pi;
        pipe->has_flush = 1;
        return;
    }

    if (qp->bf_wqe != flights->fetched + 1u) {
        mlx5sim_pcie_read(mlx5sim_proc_self(), 1);
    }

    chk = mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                             flights->fetched, &wqe);
    if (wqe.num_bb > posted) {
        wqe.num_bb = posted;
        chk        = MLX5SIM_CHK_WQE_DS;
    }
    if (mlx5sim_stream_is_errored(&qp->qp, wqe.stream)) {
        syndrome = MLX5SIM_SYNDROME_WR_FLUSH;
    } else if (chk != MLX5SIM_CHK_OK) {
        syndrome = mlx5sim_pipe_rejected(qp, chk, &wqe, pi);
    }
    if ((syndrome == 0) && mlx5sim_opcode_is_local(wqe.opcode)) {
        syndrome = mlx5sim_wqe_local(qp, &wqe);
    }

    flight           = mlx5sim_flights_add(flights, &qp->qp, &wqe, syndrome);
    flight->sum      = mlx5sim_flight_sum(qp, flight->index, flight->ds);
    /* One without data has none that come early, but does not hold those of
     * others up */
    flight->is_early = (syndrome == 0) &&
                       (wqe.opcode == MLX5SIM_OPCODE_RDMA_WRITE) &&
                       (qp->qp.type == MLX5SIM_QPT_RC) &&
                       mlx5sim_packet_is_early(qp, &wqe);
    pipe->messages  += flight->packets > 0;
}
