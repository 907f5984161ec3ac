/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_INJECT_H_
#define MLX5SIM_INJECT_H_

#include <sim/config/fault.h>
#include <sim/config/quirk.h>

/** Count a command of this process on @a object. MLX5SIM_FAIL is read each
 *  time; counting starts over when it has changed.
 *  @return 0, or -errno if MLX5SIM_FAIL says that it fails. */
int mlx5sim_inject(mlx5sim_fault_object_t object);

/** Receives of a new QP that fail: MLX5SIM_RECV_ERROR, read each time. */
void mlx5sim_inject_recv(mlx5sim_quirk_recv_t *recv_p);

/** GIDs that can't be used, a set of indices: MLX5SIM_BAD_GIDS, read each
 *  time. */
uint32_t mlx5sim_inject_gids(void);

/** Start afresh in a child of fork(). */
void mlx5sim_inject_fork_child(void);

#endif
