/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DISPATCH_H_
#define MLX5SIM_DISPATCH_H_

#include <sim/objs/obj.h>

/** Carry out one ioctl. @return 0 or -errno. */
int mlx5sim_uverbs_dispatch(mlx5sim_ctx_t *ctx, int fd, void *arg);

#endif
