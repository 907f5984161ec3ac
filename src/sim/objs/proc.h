/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PROC_H_
#define MLX5SIM_PROC_H_

#include "sim/objs/obj.h"

/*
 * Processes that use the device: their slots in the store, whether they live,
 * and how their helper threads are woken.
 */

/** Give this process a slot. @return 0 or -1/errno. */
int mlx5sim_proc_attach(void);

/** Forget this process' slot without touching the objects (child of fork). */
void mlx5sim_proc_forget(void);

/** Whether there is a process, other than one that only waits for its parent to
 *  notice that it ended. */
int mlx5sim_proc_exists(pid_t pid);

/** Whether the process still runs (same pid and start time). */
int mlx5sim_proc_alive(const mlx5sim_proc_t *proc);

/** Wake the helper thread of a process. */
void mlx5sim_proc_kick(mlx5sim_proc_t *proc);

/** Ask the owner of @a qp to look at its send queue soon. */
void mlx5sim_qp_kick(mlx5sim_qp_obj_t *qp);

#endif
