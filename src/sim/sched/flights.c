/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/flights.h>
#include <sim/engine/opcode.h>
#include <sim/engine/qp.h>

#include <string.h>


void mlx5sim_flights_begin(mlx5sim_flights_t *flights, uint16_t fetched,
                           uint32_t chunk)
{
    flights->end     = 0;
    flights->max_snd = 0;
    flights->chunk   = chunk;
    mlx5sim_flights_clear(flights, fetched);
}

void mlx5sim_flights_resume(mlx5sim_flights_t *flights, uint64_t una,
                            uint64_t end)
{
    flights->una     = flights->snd = flights->end = una;
    flights->max_snd = end;
}

void mlx5sim_flights_clear(mlx5sim_flights_t *flights, uint16_t fetched)
{
    flights->head        = flights->tail = flights->cur = flights->stop = 0;
    flights->has_stop    = 0;
    flights->fetched     = fetched;
    flights->una         = flights->snd = flights->end;
    flights->gap         = 0;
    flights->retries     = 0;
    flights->rnr_retries = 0;
    flights->timer       = 0;
}

int mlx5sim_flights_have_room(const mlx5sim_flights_t *flights)
{
    return !flights->has_stop &&
           (flights->tail - flights->head < MLX5SIM_FLIGHTS_MAX);
}

static uint32_t mlx5sim_flights_packets(const mlx5sim_qp_t *qp,
                                        const mlx5sim_wqe_t *wqe,
                                        unsigned syndrome)
{
    if ((syndrome != 0) || mlx5sim_opcode_is_local(wqe->opcode)) {
        return 0;
    }

    /* DC: what its packets look like is not public, so that the request is one
     * step */
    return mlx5sim_qp_has_av(qp) ? 1 : mlx5sim_packet_count(qp, wqe->length);
}

mlx5sim_flight_t *
mlx5sim_flights_add(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                    const mlx5sim_wqe_t *wqe, unsigned syndrome)
{
    mlx5sim_flight_t *flight = mlx5sim_flights_at(flights, flights->tail);

    flight->psn        = flights->end;
    flight->packets    = mlx5sim_flights_packets(qp, wqe, syndrome);
    flight->length     = wqe->length;
    flight->index      = flights->fetched;
    flight->num_bb     = wqe->num_bb;
    flight->ds         = wqe->ds;
    flight->stream     = wqe->stream;
    flight->opcode     = wqe->opcode;
    flight->is_request = !!(mlx5sim_opcode_flags(wqe->opcode) &
                            MLX5SIM_OP_SCATTER);
    flight->signaled   = wqe->signaled;
    flight->fence      = wqe->fence;
    flight->scattered  = 0;
    if (flights->snd == flights->end) {
        /* sending goes on with this one: all before have been sent */
        flights->cur = flights->tail;
    }

    flights->end     += flight->packets;
    flights->fetched += flight->num_bb;
    ++flights->tail;
    if (syndrome != 0) {
        mlx5sim_flights_fail(flights, flights->tail - 1, syndrome);
    }

    return flight;
}

uint32_t mlx5sim_flights_oldest(const mlx5sim_flights_t *flights)
{
    uint32_t i;

    for (i = flights->head; i != flights->tail; ++i) {
        if (mlx5sim_flight_end(mlx5sim_flights_at(flights, i)) > flights->una) {
            break;
        }
    }

    return i;
}

void mlx5sim_flights_fail(mlx5sim_flights_t *flights, uint32_t number,
                          unsigned syndrome)
{
    /* the others will be flushed */
    if ((number != flights->tail) &&
        (!flights->has_stop ||
         (number - flights->head < flights->stop - flights->head))) {
        flights->has_stop = 1;
        flights->stop     = number;
        mlx5sim_flights_at(flights, number)->syndrome = syndrome;
    }
}

void mlx5sim_flights_fail_oldest(mlx5sim_flights_t *flights, unsigned syndrome)
{
    mlx5sim_flights_fail(flights, mlx5sim_flights_oldest(flights), syndrome);
}

static int mlx5sim_flight_is_new(const mlx5sim_flights_t *flights,
                                 const mlx5sim_flight_t *flight)
{
    return (flight->packets > 0) && (flight->psn >= flights->max_snd);
}

int mlx5sim_flights_is_new(const mlx5sim_flights_t *flights)
{
    return mlx5sim_flight_is_new(flights,
                                 mlx5sim_flights_at(flights, flights->cur));
}

int mlx5sim_flights_drain(mlx5sim_flights_t *flights, uint16_t fetched)
{
    uint64_t sent = flights->max_snd;
    uint64_t una  = flights->una;

    if ((flights->head != flights->tail) &&
        !mlx5sim_flight_is_new(flights, mlx5sim_flights_at(flights,
                                                           flights->head))) {
        return 0;
    }

    mlx5sim_flights_clear(flights, fetched);
    mlx5sim_flights_resume(flights, una, sent);
    return 1;
}

/* Requests that ask for the packets [begin, end) of a flight */
static unsigned mlx5sim_flights_chunks(const mlx5sim_flights_t *flights,
                                       const mlx5sim_flight_t *flight,
                                       uint64_t begin, uint64_t end)
{
    uint64_t chunk = flights->chunk;

    return (end <= begin) ? 0 :
           (((end - flight->psn + chunk - 1) / chunk) -
            ((begin - flight->psn) / chunk));
}

unsigned mlx5sim_flights_depth(const mlx5sim_flights_t *flights)
{
    unsigned depth = 0;
    const mlx5sim_flight_t *flight;
    uint64_t begin, end;
    uint32_t i;

    for (i = flights->head; i != flights->tail; ++i) {
        flight = mlx5sim_flights_at(flights, i);
        if (flight->psn >= flights->snd) {
            break;
        }

        if (flight->is_request) {
            begin  = (flights->una > flight->psn) ? flights->una : flight->psn;
            end    = mlx5sim_flight_end(flight);
            end    = (flights->snd < end) ? flights->snd : end;
            depth += mlx5sim_flights_chunks(flights, flight, begin, end);
        }
    }

    return depth;
}

int mlx5sim_flights_can_send(const mlx5sim_flights_t *flights,
                             const mlx5sim_qp_t *qp)
{
    const mlx5sim_flight_t *flight = mlx5sim_flights_at(flights, flights->cur);
    unsigned limit                 = qp->max_rd_atomic;
    unsigned depth;

    if ((flights->snd == flights->end) ||
        mlx5sim_flights_is_stop(flights, flights->cur)) {
        return 0;
    }

    if (!flight->is_request && !flight->fence) {
        return 1;
    }

    /* none at all is an error that the plan finds */
    depth = mlx5sim_flights_depth(flights);
    return !(flight->fence && (flights->snd == flight->psn) && (depth > 0)) &&
           !(flight->is_request && (depth >= ((limit > 0) ? limit : 1)));
}

uint32_t mlx5sim_flights_next(const mlx5sim_flights_t *flights)
{
    const mlx5sim_flight_t *flight = mlx5sim_flights_at(flights, flights->cur);
    uint32_t done                  = flights->snd - flight->psn;
    uint32_t packets;

    if (!flight->is_request) {
        return 1;
    }

    packets = flights->chunk - (done % flights->chunk);
    return (packets < flight->packets - done) ? packets :
                                                (flight->packets - done);
}

void mlx5sim_flights_sent(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                          uint32_t packets)
{
    flights->snd += packets;
    if (flights->snd > flights->max_snd) {
        flights->max_snd = flights->snd;
    }
    if (qp->type != MLX5SIM_QPT_RC) {
        flights->una = flights->snd;
    }

    while ((flights->snd != flights->end) &&
           (flights->snd >=
            mlx5sim_flight_end(mlx5sim_flights_at(flights, flights->cur)))) {
        ++flights->cur;
    }
}

void mlx5sim_flights_go_back(mlx5sim_flights_t *flights)
{
    flights->snd = flights->una;
    flights->cur = mlx5sim_flights_oldest(flights);
}

int mlx5sim_flights_retry(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp)
{
    if (flights->retries++ >= qp->retry_cnt) {
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_TRANSPORT_RETRY);
        return 0;
    }

    mlx5sim_flights_go_back(flights);
    return 1;
}

void mlx5sim_flights_acked(mlx5sim_flights_t *flights, uint64_t psn)
{
    if (psn > flights->una) {
        flights->una         = psn;
        flights->retries     = 0;
        flights->rnr_retries = 0;
    }
}

void mlx5sim_flights_skip(mlx5sim_flights_t *flights)
{
    if (flights->snd < flights->una) {
        mlx5sim_flights_go_back(flights);
    }
}

int mlx5sim_flights_close_gap(mlx5sim_flights_t *flights,
                              const mlx5sim_qp_t *qp)
{
    if (flights->gap == flights->una + 1) {
        return 1;
    }

    flights->gap = flights->una + 1;
    return mlx5sim_flights_retry(flights, qp);
}

int mlx5sim_flights_hear(mlx5sim_flights_t *flights, uint64_t psn)
{
    const mlx5sim_flight_t *flight;
    uint32_t i;

    for (i = mlx5sim_flights_oldest(flights); i != flights->tail; ++i) {
        flight = mlx5sim_flights_at(flights, i);
        if (flight->psn >= psn) {
            break;
        }

        if (flight->is_request && (flights->una < psn)) {
            mlx5sim_flights_acked(flights, flight->psn);
            return 0;
        }
    }

    mlx5sim_flights_acked(flights, psn);
    return 1;
}

int mlx5sim_flights_rnr(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp)
{
    if ((qp->rnr_retry != 7) && (flights->rnr_retries++ >= qp->rnr_retry)) {
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_RNR_RETRY);
        return 0;
    }

    mlx5sim_flights_go_back(flights);
    flights->timer = 0;
    return 1;
}

void mlx5sim_flights_set_timer(mlx5sim_flights_t *flights,
                               const mlx5sim_qp_t *qp, uint64_t now)
{
    flights->timer = ((flights->una < flights->snd) && (qp->timeout != 0)) ?
                     (now + mlx5sim_ack_timeout_ns(qp->timeout)) : 0;
}

void mlx5sim_flights_expire(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                            uint64_t now)
{
    if ((flights->timer != 0) && (now >= flights->timer)) {
        flights->gap = 0;
        (void)mlx5sim_flights_retry(flights, qp);
        mlx5sim_flights_set_timer(flights, qp, now);
    }
}

int mlx5sim_flights_can_complete(const mlx5sim_flights_t *flights)
{
    const mlx5sim_flight_t *flight = mlx5sim_flights_at(flights, flights->head);

    return (flights->head != flights->tail) &&
           ((mlx5sim_flight_end(flight) <= flights->una) ||
            mlx5sim_flights_is_stop(flights, flights->head));
}

const mlx5sim_flight_t *
mlx5sim_flights_complete(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                         mlx5sim_plan_t *plan_p)
{
    const mlx5sim_flight_t *flight = mlx5sim_flights_at(flights, flights->head);
    mlx5sim_wqe_t wqe;

    wqe.opcode   = flight->opcode;
    wqe.index    = flight->index;
    wqe.length   = flight->length;
    wqe.signaled = flight->signaled;
    if (mlx5sim_flights_is_stop(flights, flights->head)) {
        mlx5sim_plan_fail_local(qp, &wqe, flight->syndrome, plan_p);
    } else {
        mlx5sim_plan_success(qp, &wqe, plan_p);
        plan_p->req_cqe.scattered = flight->scattered;
        memcpy(plan_p->req_cqe.data, flight->data, flight->scattered);
    }

    ++flights->head;
    return flight;
}
