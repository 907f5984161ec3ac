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
 * What shared.c, which has the ranges of this process, shared_look.c, which
 * knows what may be one, shared_fork.c, which copies them for children, and
 * shared_peer.c, which has those of others, need.
 */

#define MLX5SIM_SHARED_PAGE  4096ul

/** User space ends there (Documentation/arch/x86/x86_64/mm.rst; with five
 *  levels of page tables, who wants more has to ask mmap() for it). */
#define MLX5SIM_SHARED_SPACE (1ul << 47)

/** Ranges of a process. Each is a mapping, of which Linux grants 65530. */
#define MLX5SIM_SHARED_MAX   256

/** A range of this process. */
typedef struct {
    mlx5sim_shared_t what;     /**< Of length 0: there is none */
    int              is_queue;
    int              no_fork;  /**< MADV_DONTFORK, as far as we know */
} mlx5sim_shared_own_t;

extern mlx5sim_shared_own_t mlx5sim_shared_own[MLX5SIM_SHARED_MAX];

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

/** What there is where a range is to be shared. */
typedef enum {
    MLX5SIM_SHARED_OTHER,
    MLX5SIM_SHARED_PRIVATE, /**< Private memory that can be written to, of no
                                 file, and no stack that grows. For a memory
                                 region: not what becomes something else when it
                                 is none, and without a place in the machine
                                 that the program has chosen. */
    MLX5SIM_SHARED_TOO_MANY /**< So many mappings that no region is shared */
} mlx5sim_shared_found_t;

/** Look that up. */
mlx5sim_shared_found_t
mlx5sim_shared_find_private(const mlx5sim_shared_t *what, int is_queue);

/** Whether the program has never used pages: there is nothing to copy, and
 *  nothing that it could write meanwhile in good order. */
int mlx5sim_shared_is_untouched(uint64_t addr, uint64_t length);

/** The mutex of all that is shared. Who has it is not cancelled, and handlers
 *  of signals that are not the device's wait. */
void mlx5sim_shared_lock(void);
void mlx5sim_shared_unlock(void);

/** Descriptor of the file of this process, or -1: there is none, or the program
 *  has closed it. */
int mlx5sim_shared_file(void);

/** The first range of this process that has a part of @a addr and what follows,
 *  or NULL. */
mlx5sim_shared_own_t *mlx5sim_shared_find(uint64_t addr, uint64_t length);

/** Private pages with what a range of this process contains, whether the
 *  program may read it or not. @return NULL: there is no room, or it can't be
 *  read. */
void *mlx5sim_shared_copy_of(const mlx5sim_shared_t *what);

/**
 * Have pages in place of a range, in one step.
 *
 * @param pages  NULL: there are none.
 *
 * @return 0, or -1: the pages are given back, and the range is as it was.
 */
int mlx5sim_shared_replace(const mlx5sim_shared_t *what, void *pages);

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

/** A child wants zeros there, before it has its copy in place: in a handler of
 *  its own. */
void mlx5sim_shared_discard_copies(const mlx5sim_shared_t *what);

/** Forget the ranges of this process, in a child, and close their file. */
void mlx5sim_shared_forget_own(void);

/** Forget the ranges of other processes, in a child. */
void mlx5sim_shared_forget_peers(void);

#endif
