/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_H_
#define MLX5SIM_UVERBS_H_

#include <stddef.h>
#include <stdint.h>

/*
 * The uverbs character device as libibverbs and libmlx5 use it: every command
 * is an ioctl; the verbs themselves are INVOKE_WRITE.
 */

/** RDMA_VERBS_IOCTL of rdma/rdma_user_ioctl.h. */
#define MLX5SIM_VERBS_IOCTL 0xc0181b01ul

/**
 * Open device uverbs@a index.
 *
 * @param flags  As of open(2).
 * @return A descriptor whose mmap(2) gives UAR pages, or -1 with errno.
 */
int mlx5sim_uverbs_open(unsigned index, int flags);

/** Device index behind a descriptor of ours, -1 if it is not one.
 *  @param inode  Of the file that the descriptor is of: another one may have
 *                come to its number. */
int mlx5sim_uverbs_fd_device(int fd, uint64_t inode);

/** The ioctl(2) of a descriptor of ours. @return 0, or -1 with errno. */
int mlx5sim_uverbs_ioctl(int fd, void *arg);

/**
 * The application maps a page of @a fd. Those of clocks can't be written
 * (mlx5_ib_mmap of the kernel). If the number of a device has come to another
 * file, the device is closed now.
 *
 * @param prot   As of mmap(2).
 * @param uar_p  UAR that this allocated, 0 if none.
 * @return 0 if it may, or if @a fd is not ours; or -errno.
 */
int mlx5sim_uverbs_map(int fd, size_t length, int prot, uint64_t offset,
                       uint32_t *uar_p);

/** The mapping failed: undo what mlx5sim_uverbs_map() allocated. */
void mlx5sim_uverbs_map_failed(int fd, uint64_t offset);

/** The application closes @a fd, which may be a device or a channel. */
void mlx5sim_uverbs_close(int fd);

#endif
