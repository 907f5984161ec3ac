/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/engine/packet.h>
#include <sim/exec/packet.h>
#include <sim/objs/port.h>
#include <sim/sched/chance.h>
#include <sim/sched/park.h>
#include <sim/sched/tap.h>

#include <string.h>


void mlx5sim_pipe_note(mlx5sim_pipe_t *pipe, const mlx5sim_answer_t *answer)
{
    unsigned num = pipe->num_answers;

    if ((num > 0) && (answer->landing == MLX5SIM_LANDED_ACK) &&
        (pipe->answers[num - 1].landing == MLX5SIM_LANDED_ACK)) {
        /* IBTA "Coalesced acknowledge messages" */
        pipe->answers[num - 1] = *answer;
        return;
    }

    pipe->answers[pipe->num_answers++] = *answer;
}

static void mlx5sim_pipe_drop_answers(mlx5sim_pipe_t *pipe, unsigned count)
{
    pipe->num_answers -= count;
    memmove(pipe->answers, pipe->answers + count,
            pipe->num_answers * sizeof(pipe->answers[0]));
}

/* What is under way comes to nothing: the requester waits for other PSNs */
static void mlx5sim_pipe_forget(mlx5sim_pipe_t *pipe)
{
    pipe->num_answers = 0;
    pipe->is_ignored  = 0;
    pipe->is_gone     = 0;
}

void mlx5sim_pipe_retry(mlx5sim_pipe_t *pipe, const mlx5sim_qp_obj_t *qp)
{
    pipe->num_answers = 0;
    if (mlx5sim_flights_retry(&pipe->flights, &qp->qp)) {
        mlx5sim_pipe_forget(pipe);
    }
}

void mlx5sim_pipe_go_back(mlx5sim_pipe_t *pipe)
{
    mlx5sim_pipe_forget(pipe);
    mlx5sim_flights_go_back(&pipe->flights);
}

/* Packets from @a una on may have been acknowledged */
static void mlx5sim_pipe_acked(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                               uint64_t una)
{
    if (pipe->flights.una == una) {
        return;
    }

    for (; una < pipe->flights.una; ++una) {
        pipe->placed[una % MLX5SIM_PIPE_WINDOW] = 0;
    }

    qp->retry_since = 0;
    qp->gone_since  = 0;
}

/* There is an answer about @a psn. @return whether it is of use */
static int mlx5sim_pipe_hear(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                             uint64_t psn)
{
    uint64_t una  = pipe->flights.una;
    int is_useful = mlx5sim_flights_hear(&pipe->flights, psn);

    mlx5sim_pipe_acked(pipe, qp, una);
    if (!is_useful) {
        mlx5sim_pipe_retry(pipe, qp);
    }
    return is_useful;
}

int mlx5sim_pipe_is_nak_next(const mlx5sim_pipe_t *pipe)
{
    return pipe->answers[pipe->num_answers - 1].landing ==
           MLX5SIM_LANDED_ERROR;
}

/* Data or an atomic's result arrive. @return 0 if nothing more is to be done
 * with the answer */
static int mlx5sim_pipe_hear_data(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                                  const mlx5sim_answer_t *answer)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    uint32_t number            = mlx5sim_flights_oldest(flights);
    mlx5sim_flight_t *flight   = mlx5sim_flights_at(flights, number);
    unsigned mtu               = mlx5sim_qp_mtu(&qp->qp);
    mlx5sim_landed_t landed    = {0};
    mlx5sim_landing_t landing;
    mlx5sim_answer_t nak;
    uint32_t offset, length;
    mlx5sim_wqe_t wqe;
    uint64_t una;

    if (mlx5sim_flights_is_stop(flights, number)) {
        return 0;
    }

    if (mlx5sim_flight_read(qp, flight, &wqe) != 0) {
        mlx5sim_flights_fail(flights, number, MLX5SIM_SYNDROME_LOCAL_QP_OP);
        return 0;
    }

    if (answer->landing == MLX5SIM_LANDED_ATOMIC) {
        landing = mlx5sim_packet_answer_atomic(qp, &wqe, answer->old, &landed);
    } else {
        offset  = (answer->psn - flight->psn) * mtu;
        length  = flight->length - offset;
        landing = mlx5sim_packet_answer_read(qp, &wqe, offset,
                                             (length < mtu) ? length : mtu,
                                             mlx5sim_pipe_is_nak_next(pipe),
                                             &landed);
    }

    switch (landing) {
    case MLX5SIM_LANDED_ACK:
        flight->scattered = landed.scattered;
        memcpy(flight->data, landed.data, landed.scattered);
        una = flights->una;
        mlx5sim_flights_acked(flights, answer->psn + 1);
        mlx5sim_pipe_acked(pipe, qp, una);
        return 1;
    case MLX5SIM_LANDED_ERROR:
        if (mlx5sim_tap_is_on()) {
            nak          = *answer;
            nak.landing  = landing;
            nak.syndrome = landed.syndrome;
            mlx5sim_pipe_tap_answer(pipe, qp, &nak);
        }
        /* fall through */
    case MLX5SIM_LANDED_LOCAL:
        mlx5sim_flights_fail(flights, number, landed.syndrome);
        return 0;
    case MLX5SIM_LANDED_GONE:
        pipe->is_gone = 1;
        return 0;
    default:
        pipe->is_ignored = 1;
        return 0;
    }
}

/* A packet of the answer to a read, or an atomic's answer */
static void mlx5sim_pipe_answer_data(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                                     int is_lost)
{
    mlx5sim_answer_t answer = pipe->answers[0];

    if (!is_lost) {
        if (!mlx5sim_pipe_hear(pipe, qp, answer.psn)) {
            return;
        }

        if (!mlx5sim_pipe_hear_data(pipe, qp, &answer)) {
            mlx5sim_pipe_drop_answers(pipe, 1);
            return;
        }
    }

    if ((answer.landing == MLX5SIM_LANDED_ATOMIC) || (answer.packets == 1)) {
        mlx5sim_pipe_drop_answers(pipe, 1);
    } else {
        pipe->answers[0].is_begun = 1;
        ++pipe->answers[0].psn;
        --pipe->answers[0].packets;
    }
}

void mlx5sim_pipe_answer(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_answer_t answer    = pipe->answers[0];
    int is_lost;

    ++pipe->heard;
    is_lost = mlx5sim_chance_is_lost(MLX5SIM_CHANCE_UNHEARD, pipe->die,
                                     pipe->heard);
    if (mlx5sim_tap_is_on() && !is_lost) {
        mlx5sim_pipe_tap_answer(pipe, qp, &answer);
    }

    if ((answer.landing == MLX5SIM_LANDED_READ) ||
        (answer.landing == MLX5SIM_LANDED_ATOMIC)) {
        mlx5sim_pipe_answer_data(pipe, qp, is_lost);
        return;
    }

    mlx5sim_pipe_drop_answers(pipe, 1);
    if (is_lost || !mlx5sim_pipe_hear(pipe, qp, answer.psn)) {
        return;
    }

    switch (answer.landing) {
    case MLX5SIM_LANDED_RNR:
        if (mlx5sim_flights_rnr(flights, &qp->qp)) {
            mlx5sim_park_pause(qp, answer.timer);
            pipe->is_parked = MLX5SIM_PARKED_RNR;
            mlx5sim_pipe_forget(pipe);
        }
        break;
    case MLX5SIM_LANDED_GAP:
        mlx5sim_port_count(qp->dev, qp->qp.port, MLX5SIM_PORT_GAPS_TOLD, 1);
        mlx5sim_pipe_retry(pipe, qp);
        break;
    case MLX5SIM_LANDED_ERROR:
        mlx5sim_flights_fail_oldest(flights, answer.syndrome);
        break;
    default:
        break;
    }
}
