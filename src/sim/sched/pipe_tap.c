/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/engine/packet.h>
#include <sim/sched/tap.h>
#include <sim/wire/roce.h>


uint32_t mlx5sim_pipe_msn(const mlx5sim_pipe_t *pipe, uint64_t psn)
{
    const mlx5sim_flights_t *flights = &pipe->flights;
    uint32_t msn                     = pipe->messages;
    const mlx5sim_flight_t *flight;
    uint32_t i;

    for (i = flights->head; i != flights->tail; ++i) {
        flight = mlx5sim_flights_at(flights, i);
        msn   -= (flight->packets > 0) &&
                 (mlx5sim_flight_end(flight) > psn);
    }

    return msn;
}

/* A packet of the answer to a read, in the order of its data or not */
static void mlx5sim_pipe_tap_read(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                                  const mlx5sim_answer_t *answer)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    unsigned mtu               = mlx5sim_qp_mtu(&qp->qp);
    mlx5sim_packet_t packet    = {0};
    mlx5sim_flight_t *flight;
    mlx5sim_wqe_t wqe;
    uint32_t i;

    for (i = flights->head; i != flights->tail; ++i) {
        flight = mlx5sim_flights_at(flights, i);
        if (answer->psn < mlx5sim_flight_end(flight)) {
            break;
        }
    }

    if ((i == flights->tail) || (mlx5sim_flight_read(qp, flight, &wqe) != 0)) {
        return;
    }

    packet.psn      = mlx5sim_psn_add(qp->sq_psn, answer->psn);
    packet.offset   = (answer->psn - flight->psn) * mtu;
    packet.length   = flight->length - packet.offset;
    packet.length   = (packet.length < mtu) ? packet.length : mtu;
    packet.is_first = !answer->is_begun;
    packet.is_last  = (answer->packets == 1);
    mlx5sim_tap_read(qp, &wqe, &packet, answer->msn,
                     mlx5sim_pipe_is_nak_next(pipe));
}

void mlx5sim_pipe_tap_answer(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                             const mlx5sim_answer_t *answer)
{
    uint32_t psn = mlx5sim_psn_add(qp->sq_psn, answer->psn);

    switch (answer->landing) {
    case MLX5SIM_LANDED_READ:
        mlx5sim_pipe_tap_read(pipe, qp, answer);
        break;
    case MLX5SIM_LANDED_ATOMIC:
        mlx5sim_tap_atomic(qp, psn, answer->msn, answer->old);
        break;
    case MLX5SIM_LANDED_RNR:
        mlx5sim_tap_ack(qp, psn, MLX5SIM_AETH_RNR | answer->syndrome,
                        answer->msn);
        break;
    case MLX5SIM_LANDED_GAP:
        mlx5sim_tap_ack(qp, psn, MLX5SIM_AETH_NAK_PSN, answer->msn);
        break;
    case MLX5SIM_LANDED_ERROR:
        mlx5sim_tap_ack(qp, psn, mlx5sim_tap_nak(answer->syndrome),
                        answer->msn);
        break;
    default:
        /* the last one that has arrived, not the next one */
        mlx5sim_tap_ack(qp, mlx5sim_psn_add(psn, MLX5SIM_PSN_MASK),
                        MLX5SIM_AETH_ACK, answer->msn);
        break;
    }
}
