/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MADS_H_
#define MLX5SIM_MADS_H_

#include <sim/wire/roce.h>

/*
 * Queue pair 1 of each port, which no program has: management datagrams of the
 * connection manager (rdmacm/), to other nodes and from them. RoCE v2 only.
 */

/** Look at the ids: one has something to send. */
void mlx5sim_mads_wake(void);

/** Whether a packet is a management datagram. */
int mlx5sim_mads_is(const mlx5sim_roce_t *packet);

/** Take one that came to a port.
 *  @param payload  @a length bytes.
 *  @return 0, or -1 if it is none of the connection manager. */
int mlx5sim_mads_take(unsigned dev, unsigned port,
                      const mlx5sim_roce_path_t *path,
                      const mlx5sim_roce_t *packet, const uint8_t *payload,
                      unsigned length);

/** Send what can be sent.
 *  @param now  mlx5sim_now_ns().
 *  @return when to call it again, on that clock; UINT64_MAX: never. */
uint64_t mlx5sim_mads_progress(uint64_t now);

#endif
