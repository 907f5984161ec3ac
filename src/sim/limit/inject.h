/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_INJECT_H_
#define MLX5SIM_INJECT_H_

#include "sim/config/fault.h"

/** Count a command of this process on @a object. MLX5SIM_FAIL is read each
 *  time; counting starts over when it has changed.
 *  @return 0, or -errno if MLX5SIM_FAIL says that it fails. */
int mlx5sim_inject(mlx5sim_fault_object_t object);

/** Start afresh in a child of fork(). */
void mlx5sim_inject_fork_child(void);

#endif
