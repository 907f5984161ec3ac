/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_INCOMING_H_
#define MLX5SIM_INCOMING_H_

#include <sim/objs/obj.h>
#include <sim/wire/roce.h>

/*
 * Requests that come from other nodes. Each packet is executed as one of this
 * node would be, by mlx5sim_packet_land(), with a requester that is made of
 * what the packet and its queue pair say; and it is answered in order (IBTA
 * volume 1, "Responder side behaviour"). Acknowledgements are sent where they
 * are asked for.
 */

/** Take a request.
 *  @param path     Where it comes from.
 *  @param payload  @a length bytes. */
void mlx5sim_incoming_take(const mlx5sim_roce_path_t *path,
                           const mlx5sim_roce_t *packet,
                           const uint8_t *payload, unsigned length);

/** Send answers that take several packets, some of them.
 *  @return whether there are more. */
int mlx5sim_incoming_progress(void);

#endif
