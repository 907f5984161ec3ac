/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SEED_H_
#define MLX5SIM_SEED_H_

#include <stdint.h>

/*
 * Chance (MLX5SIM_SEED). What a device may do one way or another is decided by
 * the seed and by numbers that say what is to be decided: no state, so a
 * decision does not depend on the order in which threads come to theirs.
 */

/** Whether a text is a seed: a decimal or 0x number of 64 bits, or "random". */
int mlx5sim_seed_check(const char *value);

/** Set the seed of this process. @param value  Checked. */
void mlx5sim_seed_init(const char *value);

/** Set the seed of this process anew. */
void mlx5sim_seed_set(uint64_t seed);

/** A mode that needs the seed is on: say on standard error, once in a process,
 *  which it is. */
void mlx5sim_seed_tell(void);

/** The seed. */
uint64_t mlx5sim_seed(void);

/** What the seed says about a matter: all bits are equally good.
 *  @param what  Kind of decision, a constant of the caller's.
 *  @param a, b  Which one of that kind. */
uint64_t mlx5sim_seed_draw(uint64_t what, uint64_t a, uint64_t b);

#endif
