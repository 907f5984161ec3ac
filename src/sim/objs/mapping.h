/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MAPPING_H_
#define MLX5SIM_MAPPING_H_

#include <stdint.h>

/*
 * The last mappings that the program has made, each by one call of mmap(), and
 * has left as they were made. What it then registers as a whole is no part of
 * something else, such as an allocator's. Without locks: programs map memory in
 * handlers of signals, and while they hold locks of their own.
 */

/** Nobody will ask: nothing is kept from now on. */
void mlx5sim_mapping_stop(void);

/** A mapping was made: private, of no file, to be read and written, and
 *  without any other flag of mmap(). */
void mlx5sim_mapping_note(uint64_t addr, uint64_t length);

/** What is there, or a part of it, is unmapped, moved, replaced, or is to have
 *  properties that a mapping does not have when it is made. */
void mlx5sim_mapping_forget(uint64_t addr, uint64_t length);

/** A child of the program is not to have that, or is to have it again:
 *  libibverbs wants it so of what it registers (ibv_fork_init(3)). Such a
 *  mapping is still known if that is all of it. */
void mlx5sim_mapping_set_fork(uint64_t addr, uint64_t length, int is_forked);

/**
 * Whether that is all of one of the mappings, up to the end of its last page.
 *
 * @param is_forked_p  Whether a child is to have it.
 */
int mlx5sim_mapping_is_one(uint64_t addr, uint64_t length, int *is_forked_p);

#endif
