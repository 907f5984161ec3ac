/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_HEAR_H_
#define MLX5SIM_RDMACM_HEAR_H_

#include <sim/rdmacm/remote.h>

/*
 * What peers on other nodes say to ids: cm_work_handler() of the kernel's cm.c.
 * In mlx5sim-wire, under the CM lock.
 */

/**
 * Take a message.
 *
 * @param way    From the port that it came to, to its sender.
 * @param bytes  Anything, @a length of them.
 * @param send   For an answer that no id gives.
 * @return 0, or -1 if it is no message: mlx5sim_cm_mad_decode().
 */
int mlx5sim_cm_hear(const mlx5sim_cm_way_t *way, const void *bytes,
                    unsigned length, mlx5sim_cm_send_t send);

#endif
