/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/pipe_int.h>
#include <sim/engine/packet.h>
#include <sim/exec/packet.h>

/*
 * Data of RDMA writes that reach memory before their turn. A packet takes
 * effect on the responder in order, whatever happens here: PSNs,
 * acknowledgements and errors are as always, and sends, writes with immediate,
 * reads and atomics find all before them in memory. Only bytes of writes behind
 * those that are sent next come earlier, as if these had taken a longer way:
 * through the network (QPC field data_in_order; rdma-core,
 * ibv_query_qp_data_in_order(3)), or through the PCIe fabric. A fence does not
 * order writes: it waits for reads and atomics.
 */

enum {
    MLX5SIM_PLACE_FLIGHTS  = 16, /* writes that mix at a time */
    MLX5SIM_PLACE_FETCH    = 2   /* 2^n: one step of so many fetches */
};


uint32_t mlx5sim_pipe_placed(const mlx5sim_pipe_t *pipe, uint64_t psn)
{
    const mlx5sim_flights_t *flights = &pipe->flights;

    return (psn - flights->una < MLX5SIM_PIPE_WINDOW) ?
           pipe->placed[psn % MLX5SIM_PIPE_WINDOW] : 0;
}

/* First flight from the current one on that has to wait for its turn, or tail.
 * The first of all is never passed by others if it is a send, say. */
static uint32_t mlx5sim_pipe_place_end(const mlx5sim_pipe_t *pipe)
{
    const mlx5sim_flights_t *flights = &pipe->flights;
    uint32_t i;

    for (i = flights->cur; i != flights->tail; ++i) {
        if (!mlx5sim_flights_at(flights, i)->is_early ||
            mlx5sim_flights_is_stop(flights, i)) {
            break;
        }
    }

    return i;
}

/* First packet of the writes in a row to which the current one belongs: the
 * responder has to have taken all in front of it, which may have been lost,
 * before data of any of these come. Acknowledged ones need no second look. */
static uint64_t mlx5sim_pipe_place_begin(const mlx5sim_pipe_t *pipe)
{
    const mlx5sim_flights_t *flights = &pipe->flights;
    uint32_t i                       = flights->cur;
    uint64_t psn;

    while ((i != flights->head) &&
           mlx5sim_flights_at(flights, i - 1)->is_early) {
        --i;
    }

    psn = mlx5sim_flights_at(flights, i)->psn;
    return (psn > flights->una) ? psn : flights->una;
}

/* A write that is posted, and may mix with those that are being sent */
static int mlx5sim_pipe_can_fetch_early(const mlx5sim_pipe_t *pipe,
                                        const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_flights_t *flights = &pipe->flights;

    return mlx5sim_flights_have_room(flights) &&
           (mlx5sim_pipe_place_end(pipe) == flights->tail) &&
           (flights->tail - flights->cur < MLX5SIM_PLACE_FLIGHTS) &&
           (flights->end - flights->una < MLX5SIM_PIPE_WINDOW) &&
           ((uint16_t)atomic_load(&qp->rung) != flights->fetched);
}

int mlx5sim_pipe_can_place(const mlx5sim_pipe_t *pipe,
                           const mlx5sim_qp_obj_t *qp)
{
    const mlx5sim_flights_t *flights = &pipe->flights;

    return (flights->snd != flights->end) &&
           mlx5sim_flights_at(flights, flights->cur)->is_early &&
           (flights->snd - flights->una < MLX5SIM_PIPE_WINDOW) &&
           mlx5sim_pipe_can_send(pipe, qp);
}

/* A packet of flight @a number has some or all of its data written */
static void mlx5sim_pipe_place_packet(mlx5sim_pipe_t *pipe,
                                      mlx5sim_qp_obj_t *qp, uint32_t number,
                                      uint64_t psn, uint64_t dice)
{
    mlx5sim_flights_t *flights = &pipe->flights;
    mlx5sim_flight_t *flight   = mlx5sim_flights_at(flights, number);
    unsigned mtu               = mlx5sim_qp_mtu(&qp->qp);
    uint32_t *placed_p         = &pipe->placed[psn % MLX5SIM_PIPE_WINDOW];
    uint64_t begin             = mlx5sim_pipe_place_begin(pipe);
    mlx5sim_packet_t packet    = {0};
    mlx5sim_wqe_t wqe;

    if (mlx5sim_flight_read(qp, flight, &wqe) != 0) {
        return; /* an error when it is its turn */
    }

    packet.psn     = mlx5sim_psn_add(qp->sq_psn, psn);
    packet.offset  = (psn - flight->psn) * mtu;
    packet.length  = flight->length - packet.offset;
    packet.length  = (packet.length < mtu) ? packet.length : mtu;
    packet.packets = 1;
    packet.placed  = *placed_p;
    *placed_p      = mlx5sim_packet_place(qp, &wqe, &packet,
                                          mlx5sim_psn_add(qp->sq_psn, begin),
                                          flights->snd - begin, dice);
}

void mlx5sim_pipe_place(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                        uint64_t dice)
{
    const mlx5sim_flights_t *flights = &pipe->flights;
    uint64_t last                    = flights->una + MLX5SIM_PIPE_WINDOW;
    const mlx5sim_flight_t *flight;
    uint32_t number, end;
    uint64_t psn;

    if (((dice & ((1 << MLX5SIM_PLACE_FETCH) - 1)) == 0) &&
        mlx5sim_pipe_can_fetch_early(pipe, qp)) {
        mlx5sim_pipe_fetch(pipe, qp);
        return;
    }

    end    = mlx5sim_pipe_place_end(pipe);
    flight = mlx5sim_flights_at(flights, end - 1);
    if (mlx5sim_flight_end(flight) < last) {
        last = mlx5sim_flight_end(flight);
    }

    psn = flights->snd + ((dice >> 8) % (last - flights->snd));
    for (number = flights->cur; number != end - 1; ++number) {
        flight = mlx5sim_flights_at(flights, number);
        if (psn < mlx5sim_flight_end(flight)) {
            break;
        }
    }

    mlx5sim_pipe_place_packet(pipe, qp, number, psn, dice >> 32);
}
