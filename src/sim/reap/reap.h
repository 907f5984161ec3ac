/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REAP_H_
#define MLX5SIM_REAP_H_

#include <stdint.h>

/*
 * What a process had is freed when it is gone, by whoever notices first:
 * nothing is done at exit.
 */

/** Free everything @a tag owns and its slot; for exited processes, or for this
 *  one. Safe to be called by several processes at once. */
void mlx5sim_proc_reap(uint32_t tag);

/** Reap every dead process. */
void mlx5sim_proc_reap_dead(void);

#endif
