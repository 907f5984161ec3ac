/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/engine/packet.h>
#include <sim/exec/fabric.h>
#include <sim/exec/packet.h>
#include <sim/exec/traffic.h>
#include <sim/exec/wqe.h>
#include <sim/net/net.h>
#include <sim/sched/chance.h>
#include <sim/sched/park.h>
#include <sim/sched/tap.h>
#include <sim/trace/trace.h>

#include <string.h>


int mlx5sim_pipe_can_send(const mlx5sim_pipe_t *pipe,
                          const mlx5sim_qp_obj_t *qp)
{
    /* an answer or two for each packet */
    return (qp->qp.state == MLX5SIM_QPS_RTS) && !pipe->is_parked &&
           !pipe->is_ignored && !pipe->is_gone &&
           (pipe->num_answers < MLX5SIM_PIPE_ANSWERS - 2) &&
           mlx5sim_flights_can_send(&pipe->flights, &qp->qp) &&
           !(qp->has_sigerr && mlx5sim_flights_is_new(&pipe->flights));
}

/* Datagrams are gone when they are sent. @return 0 or a syndrome */
static unsigned mlx5sim_pipe_send_datagram(mlx5sim_qp_obj_t *qp,
                                           const mlx5sim_wqe_t *wqe,
                                           int is_lost)
{
    mlx5sim_plan_t plan;
    uint64_t timer;

    if (mlx5sim_fabric_is_too_long(qp, wqe)) {
        mlx5sim_wqe_lose(qp, wqe, &plan);
    } else if (is_lost) {
        mlx5sim_wqe_lose(qp, wqe, &plan);
        mlx5sim_traffic_message(qp, wqe, NULL);
    } else if (mlx5sim_net_is_datagram(qp, wqe)) {
        mlx5sim_net_datagram(qp, wqe, &plan);
    } else {
        (void)mlx5sim_wqe_execute(qp, wqe, &plan, &timer);
    }

    return plan.req_error ? plan.req_cqe.syndrome : 0;
}

/* A request of a DC initiator is executed as a whole, by which its answer is
 * there, too. @return whether it is done, or fails */
static int
mlx5sim_pipe_send_dc(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                     mlx5sim_flight_t *flight, const mlx5sim_wqe_t *wqe,
                     int is_lost)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_plan_t plan;
    uint64_t timer;

    if (is_lost) {
        mlx5sim_traffic_message(qp, wqe, NULL);
        return !mlx5sim_flights_retry(flights, &qp->qp);
    }

    switch (mlx5sim_wqe_execute(qp, wqe, &plan, &timer)) {
    case MLX5SIM_VERDICT_DONE:
        break;
    case MLX5SIM_VERDICT_RNR:
        if (!mlx5sim_flights_rnr(flights, &qp->qp)) {
            return 1;
        }
        mlx5sim_park_pause(qp, timer);
        pipe->is_parked = MLX5SIM_PARKED_RNR;
        return 0;
    case MLX5SIM_VERDICT_GONE:
        pipe->is_gone = 1;
        return 0;
    default:
        pipe->is_ignored = 1;
        return 0;
    }

    if (plan.req_error) {
        mlx5sim_flights_fail(flights, flights->cur, plan.req_cqe.syndrome);
        return 1;
    }

    if (plan.has_req_cqe) {
        flight->scattered = plan.req_cqe.scattered;
        memcpy(flight->data, plan.req_cqe.data, flight->scattered);
    }
    flights->retries     = 0;
    flights->rnr_retries = 0;
    qp->retry_since      = 0;
    qp->gone_since       = 0;
    return 1;
}

static void mlx5sim_pipe_landed(mlx5sim_pipe_t *pipe,
                                const mlx5sim_qp_obj_t *qp,
                                const mlx5sim_packet_t *packet,
                                mlx5sim_landing_t landing,
                                const mlx5sim_landed_t *landed)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    uint64_t reach             = flights->snd + packet->packets;
    uint64_t next              = flights->una +
                                 mlx5sim_flights_ahead(flights, qp->sq_psn,
                                                       landed->psn);
    mlx5sim_answer_t answer    = {.landing  = landing,
                                  .syndrome = landed->syndrome,
                                  .timer    = landed->timer,
                                  .old      = landed->old};

    switch (landing) {
    case MLX5SIM_LANDED_QUIET:
        return;
    case MLX5SIM_LANDED_LOCAL:
        mlx5sim_flights_fail(flights, flights->cur, landed->syndrome);
        return;
    case MLX5SIM_LANDED_GONE:
        pipe->is_gone = (qp->qp.type == MLX5SIM_QPT_RC);
        return;
    case MLX5SIM_LANDED_IGNORED:
        pipe->is_ignored = 1;
        return;
    case MLX5SIM_LANDED_READ:
        answer.psn     = flights->snd;
        answer.packets = packet->packets;
        break;
    case MLX5SIM_LANDED_ATOMIC:
    case MLX5SIM_LANDED_ERROR:
        answer.psn = flights->snd;
        break;
    default:
        /* An acknowledgement of what was never sent is none (IBTA "ghost
         * acknowledge"): the peer expects other PSNs. */
        if ((next > flights->max_snd) && (next > reach)) {
            pipe->is_ignored = 1;
            return;
        }
        answer.psn = next;
        break;
    }

    if (mlx5sim_tap_is_on()) {
        answer.msn = mlx5sim_pipe_msn(pipe, next);
    }
    mlx5sim_pipe_note(pipe, &answer);
}

/* Send the packet of a connected QP. @return PSNs it takes */
static uint32_t mlx5sim_pipe_send_packet(mlx5sim_pipe_t *pipe,
                                         mlx5sim_qp_obj_t *qp,
                                         const mlx5sim_flight_t *flight,
                                         mlx5sim_wqe_t *wqe, int is_lost)
{
    const mlx5sim_flights_t *flights = &pipe->flights;
    uint32_t done                    = flights->snd - flight->psn;
    unsigned mtu                     = mlx5sim_qp_mtu(&qp->qp);
    mlx5sim_landed_t landed          = {0};
    mlx5sim_packet_t packet;
    mlx5sim_landing_t landing;

    packet.psn     = mlx5sim_psn_add(qp->sq_psn, flights->snd);
    packet.packets = mlx5sim_flights_next(flights);
    if (flight->is_request) {
        packet.offset   = 0;
        packet.length   = 0;
        packet.is_first = 1;
        packet.is_last  = 1;
        packet.depth    = mlx5sim_flights_depth(flights);
        packet.placed   = 0;
    } else {
        packet.offset   = done * mtu;
        packet.is_first = (done == 0);
        packet.is_last  = (done + 1 == flight->packets);
        packet.length   = packet.is_last ? (flight->length - packet.offset) :
                                           mtu;
        packet.depth    = 0;
        packet.placed   = mlx5sim_pipe_placed(pipe, flights->snd);
    }

    /* what is there in part has not been lost */
    if (!is_lost || (packet.placed != 0)) {
        landing = mlx5sim_packet_land(qp, wqe, &packet, &landed);
        mlx5sim_pipe_landed(pipe, qp, &packet, landing, &landed);
    } else {
        mlx5sim_packet_sent(qp, wqe, NULL, &packet);
    }

    if (mlx5sim_tap_is_on() &&
        !mlx5sim_flights_is_stop(flights, flights->cur)) {
        mlx5sim_tap_request(qp, wqe, &packet);
    }
    if (mlx5sim_trace_is_on()) {
        mlx5sim_trace_packet(qp, wqe, packet.psn, is_lost);
    }

    return packet.packets;
}

void mlx5sim_pipe_send(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_flight_t *flight   = mlx5sim_flights_at(flights, flights->cur);
    uint32_t packets           = 1;
    unsigned syndrome          = 0;
    mlx5sim_wqe_t wqe;
    int is_lost;

    ++pipe->sends;
    is_lost = mlx5sim_chance_is_lost(MLX5SIM_CHANCE_LOST, pipe->die,
                                     pipe->sends);
    if (mlx5sim_flight_read(qp, flight, &wqe) != 0) {
        syndrome = MLX5SIM_SYNDROME_LOCAL_QP_OP;
    } else if (qp->qp.type == MLX5SIM_QPT_UD) {
        syndrome = mlx5sim_pipe_send_datagram(qp, &wqe, is_lost);
        if (mlx5sim_tap_is_on() && (syndrome == 0) &&
            !mlx5sim_fabric_is_too_long(qp, &wqe)) {
            mlx5sim_tap_datagram(qp, &wqe,
                                 mlx5sim_psn_add(qp->sq_psn, flights->snd));
        }
    } else if (qp->qp.type == MLX5SIM_QPT_DCI) {
        if (mlx5sim_trace_is_on()) {
            mlx5sim_trace_packet(qp, &wqe,
                                 mlx5sim_psn_add(qp->sq_psn, flights->snd),
                                 is_lost);
        }
        if (!mlx5sim_pipe_send_dc(pipe, qp, flight, &wqe, is_lost)) {
            return;
        }
    } else {
        packets = mlx5sim_pipe_send_packet(pipe, qp, flight, &wqe, is_lost);
    }

    if (syndrome != 0) {
        mlx5sim_flights_fail(flights, flights->cur, syndrome);
    }

    if (mlx5sim_flights_is_stop(flights, flights->cur)) {
        return; /* found out before it was sent */
    }

    mlx5sim_flights_sent(flights, &qp->qp, packets);
}
