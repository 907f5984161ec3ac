/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SHARED_H_
#define MLX5SIM_SHARED_H_

#include <sim/objs/obj.h>

/*
 * Memory of a process into which its peers write without a system call. Its
 * pages, which the program has allocated for a queue, are replaced by pages of
 * a file in memory with the same contents at the same address. Peers map them
 * from there. The offset in the file is the address, so the file is sparse.
 *
 * Nobody else may write to the pages while they are replaced, and so only whole
 * pages of a queue that is being made or destroyed are.
 */

/** Have this process share what is asked for, as long as it lives. */
void mlx5sim_shared_enable(void);

/**
 * Share memory of this process. Where that can't be done it stays as it is:
 * parts of pages, memory that is not private and anonymous, and more than a few
 * hundred ranges.
 *
 * @param addr, length  What to share.
 * @param shared_p      What is shared now: others need it to write there.
 */
void mlx5sim_shared_begin(uint64_t addr, uint64_t length,
                          mlx5sim_shared_t *shared_p);

/** Give memory of this process back to the program as it was: private, with the
 *  contents that it has now. Nobody may write to it at the same time. */
void mlx5sim_shared_end(mlx5sim_shared_t *shared);

/**
 * Write to memory that another process shares, in any order but for the last
 * word of up to 8 bytes, which is written at once and last.
 *
 * @param proc    Whose it is.
 * @param shared  What it shares.
 *
 * @return whether that was done. If not, it is to be written in another way:
 *         it is not shared, or that process has gone.
 */
int mlx5sim_shared_write(mlx5sim_proc_t *proc, const mlx5sim_shared_t *shared,
                         uint64_t addr, const void *data, size_t length);

/** Around fork(): a child has a copy of what its parent shares. */
void mlx5sim_shared_fork_prepare(void);
void mlx5sim_shared_fork_parent(void);
void mlx5sim_shared_fork_child(void);

#endif
