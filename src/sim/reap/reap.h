/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REAP_H_
#define MLX5SIM_REAP_H_

#include <stdint.h>

/*
 * What a process held is freed after it is gone, by whoever notices first:
 * nothing is done at exit.
 */

/** Free everything @a tag owns and its slot; for exited processes, or for this
 *  one. Several processes may call this at once. */
void mlx5sim_proc_reap(uint32_t tag);

/** Reap every dead process. */
void mlx5sim_proc_reap_dead(void);

#endif
