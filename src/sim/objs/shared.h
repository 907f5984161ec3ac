/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SHARED_H_
#define MLX5SIM_SHARED_H_

#include <sim/objs/obj.h>

/*
 * Memory of a process into which its peers write without a system call. Its
 * pages are replaced by pages of a file in memory with the same contents at the
 * same address. Peers map them from there. The offset in the file is the
 * address, so the file is sparse.
 *
 * Nobody else may write to the pages while they are replaced, and so only two
 * kinds are: whole pages of a queue that is being made or destroyed, and pages
 * that nobody has touched yet, while nobody can (objs/guard.h).
 */

/**
 * Have this process share what is asked for, as long as it lives.
 *
 * @param has_mappings  Memory regions, too, if they are mappings of their own
 *                      (objs/mapping.h) that no child is to have.
 * @param has_memory    All of them.
 */
void mlx5sim_shared_enable(int has_mappings, int has_memory);

/**
 * Share a queue of this process. Where that can't be done it stays as it is:
 * parts of pages, memory that is not private and anonymous, and more than a few
 * hundred ranges.
 *
 * @param addr, length  What to share.
 * @param shared_p      What is shared now: others need it to write there.
 */
void mlx5sim_shared_begin(uint64_t addr, uint64_t length,
                          mlx5sim_shared_t *shared_p);

/** Give memory of a queue back to the program as it was: private, with the
 *  contents that it has now. Nobody may write to it at the same time. */
void mlx5sim_shared_end(mlx5sim_shared_t *shared);

/**
 * Share the whole pages of a memory region of this process, if nobody has
 * touched any of them, or if they are shared already. The last page of a
 * mapping of its own is a whole one. They stay shared until the program unmaps
 * them: it may write to them at any time.
 */
void mlx5sim_shared_memory(uint64_t addr, uint64_t length,
                           mlx5sim_shared_t *shared_p);

/** The program wants zeros in its memory, as of madvise(MADV_DONTNEED): have
 *  them in what is shared there. */
void mlx5sim_shared_discard(uint64_t addr, uint64_t length);

/** The program is about to unmap what is shared there: who writes to a region
 *  nevertheless is to find out that it has gone. */
void mlx5sim_shared_leave(uint64_t addr, uint64_t length);

/** It has: give the pages back. Later, if another thread is at it: who asks may
 *  have locks that it waits for. */
void mlx5sim_shared_left(void);

/** The program moves memory, and what is shared there can't be: have private
 *  pages in its place. Nobody may write to them at the same time. @return 0, or
 *  -1: there is no room for them, or it can't be found out what is shared. */
int mlx5sim_shared_withdraw(uint64_t addr, uint64_t length);

/** Wait for another thread that replaces pages: the kernel may be refused to
 *  touch them meanwhile (objs/guard.h). */
void mlx5sim_shared_settle(void);

/** Whether a part of that is shared, or was when one last looked. */
int mlx5sim_shared_is_in(uint64_t addr, uint64_t length);

/** Whether a range is a part of what is shared. */
static inline int mlx5sim_shared_has(const mlx5sim_shared_t *shared,
                                     uint64_t addr, uint64_t length)
{
    return (shared->length >= length) && (addr >= shared->addr) &&
           (addr - shared->addr <= shared->length - length);
}

/**
 * Write to memory that another process shares, in any order but for the last
 * word of up to 8 bytes, which is written at once and last.
 *
 * @param proc    Whose it is.
 * @param shared  What it shares; the range is a part of it.
 *
 * @return whether that was done. If not, it is to be written in another way:
 *         it is not shared, or that process has gone.
 */
int mlx5sim_shared_write(mlx5sim_proc_t *proc, const mlx5sim_shared_t *shared,
                         uint64_t addr, const void *data, size_t length);

/**
 * Read or write memory that a process shares and has protected since: adapters
 * do not see mprotect(). Slow.
 *
 * @return whether that was done.
 */
int mlx5sim_shared_force(const mlx5sim_proc_t *proc, uint64_t addr, void *data,
                         size_t length, int is_write);

/** The program has said whether a child is to have that. It is a hint: a child
 *  that has it gets a copy. */
void mlx5sim_shared_set_fork(uint64_t addr, uint64_t length, int is_forked);

/** Around fork(): a child has a copy of what its parent shares, as of other
 *  memory. */
void mlx5sim_shared_fork_prepare(void);
void mlx5sim_shared_fork_parent(void);
void mlx5sim_shared_fork_child(void);

#endif
