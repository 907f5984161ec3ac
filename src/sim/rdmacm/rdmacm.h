/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_H_
#define MLX5SIM_RDMACM_H_

#include <stddef.h>
#include <sys/types.h>

/*
 * The character device /dev/infiniband/rdma_cm, as librdmacm uses it: each
 * command is a write of struct rdma_ucm_cmd_hdr and what belongs to it
 * (rdma/rdma_user_cm.h), the answer is written to memory of the caller, and the
 * descriptor can be polled for events.
 */

/**
 * Open the device.
 *
 * @param flags  As of open(2).
 * @return A descriptor, or -1 with errno.
 */
int mlx5sim_rdmacm_open(int flags);

/** Whether a descriptor is one of ours. */
int mlx5sim_rdmacm_is_fd(int fd);

/** Whether one of ours still has its file.
 *  @param inode  Of the file that it has now. */
int mlx5sim_rdmacm_is_file(int fd, ino_t inode);

/** The same of any descriptor. */
int mlx5sim_rdmacm_is_same(int fd);

/** The same. If another file has come to the number of one of ours, by a
 *  system call that was not seen, the device is closed now. */
int mlx5sim_rdmacm_is_open(int fd);

/** The write(2) of a descriptor of ours. @return @a size, or -1 with errno. */
ssize_t mlx5sim_rdmacm_write(int fd, const void *buf, size_t size);

/** The application closes @a fd, which need not be ours: its ids go, and who is
 *  connected to one is told. The channel is left to mlx5sim_uverbs_close(). */
void mlx5sim_rdmacm_close(int fd);

#endif
