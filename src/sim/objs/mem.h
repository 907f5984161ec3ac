/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MEM_H_
#define MLX5SIM_MEM_H_

#include <sim/objs/obj.h>

#include <sys/uio.h>

/*
 * Access to processes' memory. Nothing here touches user memory directly unless
 * it is a queue of this very process, so that a buffer that the application has
 * unmapped is a reported error and not a crash. Protection (mprotect) is not
 * for the device, as registered pages are pinned; what was unmapped is lost.
 */

/**
 * Copy @a length bytes from / to @a addr in the memory of @a proc. If that has
 * gone, whoever has its pid now is left alone.
 *
 * @return 0, -EFAULT (not mapped), -ESRCH (process is gone) or -EPERM.
 */
int mlx5sim_mem_read(const mlx5sim_proc_t *proc, uint64_t addr, void *buf,
                     size_t length);
int mlx5sim_mem_write(const mlx5sim_proc_t *proc, uint64_t addr,
                      const void *buf, size_t length);

/** Whether pieces can be read by the process itself: like mlx5sim_mem_readv(),
 *  but memory that is protected is as good as unmapped. */
int mlx5sim_mem_probev(const mlx5sim_proc_t *proc, const struct iovec *local,
                       unsigned num_local, const struct iovec *remote,
                       unsigned num_remote, size_t length);

/** Whether pieces could be written by the process itself: like
 *  mlx5sim_mem_writev(), but memory that is protected is as good as
 *  unmapped. */
int mlx5sim_mem_probe_writev(const mlx5sim_proc_t *proc,
                             const struct iovec *local, unsigned num_local,
                             const struct iovec *remote, unsigned num_remote,
                             size_t length);

/** Like mlx5sim_mem_read(), for several pieces in one call; all or -errno. */
int mlx5sim_mem_readv(const mlx5sim_proc_t *proc, const struct iovec *local,
                      unsigned num_local, const struct iovec *remote,
                      unsigned num_remote, size_t length);
int mlx5sim_mem_writev(const mlx5sim_proc_t *proc, const struct iovec *local,
                       unsigned num_local, const struct iovec *remote,
                       unsigned num_remote, size_t length);

#endif
