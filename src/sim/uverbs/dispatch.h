/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DISPATCH_H_
#define MLX5SIM_DISPATCH_H_

#include <sim/objs/obj.h>

#include <rdma/rdma_user_ioctl_cmds.h>

/** Carry out one ioctl. @return 0 or -errno. */
int mlx5sim_uverbs_dispatch(mlx5sim_ctx_t *ctx, int fd, void *arg);

/** Whether a child of fork() may give a command by the context of its parent:
 *  one that makes, or wants, nothing that is in the parent's memory. */
int mlx5sim_uverbs_is_for_children(struct ib_uverbs_ioctl_hdr *hdr);

#endif
