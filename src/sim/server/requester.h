/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REQUESTER_H_
#define MLX5SIM_REQUESTER_H_

#include <sim/objs/obj.h>
#include <sim/wire/roce.h>

/*
 * Requesters: queue pairs of this node whose peers are on others. What they
 * send is kept until it is acknowledged (go-back-N: IBTA volume 1, "Requester
 * side RC behaviour"), with the timeout and the retry counts of the queue pair.
 *
 * Differences from an adapter: a read of more than MLX5SIM_REQUESTER_CHUNK
 * packets is asked for piece by piece, as responders can't be slowed down and
 * sockets drop what is too much.
 */

enum {
    /* packets of a queue pair that are under way: what the buffer of a socket
     * holds without privileges */
    MLX5SIM_REQUESTER_WINDOW = 32,
    /* packets from one to the next that asks for an acknowledgement */
    MLX5SIM_REQUESTER_ACKS   = 8,
    /* packets that a read request asks for at most */
    MLX5SIM_REQUESTER_CHUNK  = 16,
    /* packets that a queue pair sends before it is another one's turn */
    MLX5SIM_REQUESTER_BURST  = 16
};

/** Look at the queue pair: it was rung. */
void mlx5sim_requester_wake(uint32_t qpn);

/** Look at all queue pairs: another mlx5sim-wire may have been killed. */
void mlx5sim_requester_resume(void);

/** Hear an answer that came for a queue pair.
 *  @param payload  @a length bytes, of a read. */
void mlx5sim_requester_hear(const mlx5sim_roce_path_t *path,
                            const mlx5sim_roce_t *packet,
                            const uint8_t *payload, unsigned length);

/** Send what can be sent, complete what is complete, give up what has waited
 *  too long.
 *  @param now  mlx5sim_now_ns().
 *  @return when to call it again, on that clock; UINT64_MAX: never. */
uint64_t mlx5sim_requester_progress(uint64_t now);

#endif
