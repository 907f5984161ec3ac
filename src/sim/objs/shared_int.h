/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SHARED_INT_H_
#define MLX5SIM_SHARED_INT_H_

#include <sim/objs/proc.h>
#include <sim/objs/procmaps.h>
#include <sim/objs/shared.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * What shared.c, which has the ranges of this process, and shared_peer.c, which
 * has those of others, both need.
 */

#define MLX5SIM_SHARED_PAGE  4096ul

/** User space ends there (Documentation/arch/x86/x86_64/mm.rst; with five
 *  levels of page tables, who wants more has to ask mmap() for it). */
#define MLX5SIM_SHARED_SPACE (1ul << 47)

/* All calls here are the kernel's: programs hook mmap() and munmap(), and learn
 * from that what they themselves map */
static inline void *
mlx5sim_shared_mmap(size_t length, int flags, int fd, off_t offset)
{
    return (void*)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, flags,
                          fd, offset);
}

static inline void mlx5sim_shared_munmap(void *base, size_t length)
{
    (void)syscall(SYS_munmap, base, length);
}

/** Whether a descriptor is that of the file of a process: the program may have
 *  closed it, and have another file there. */
int mlx5sim_shared_is_file(int fd, const mlx5sim_proc_t *proc);

/** Whether a mapping is of the file of a process, as it was made. */
int mlx5sim_shared_is_of(const mlx5sim_procmaps_line_t *line,
                         const mlx5sim_proc_t *proc);

/** The part that two ranges have in common. */
mlx5sim_shared_t mlx5sim_shared_common(const mlx5sim_shared_t *a,
                                       const mlx5sim_shared_t *b);

/** Have a part of @a what, without gaps, grow by a mapping. */
void mlx5sim_shared_add(mlx5sim_shared_t *part, const mlx5sim_shared_t *what,
                        const mlx5sim_procmaps_line_t *line);

/** Forget the ranges of other processes, in a child. */
void mlx5sim_shared_forget_peers(void);

#endif
