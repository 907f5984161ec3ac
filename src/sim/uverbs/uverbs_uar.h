/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_UAR_H_
#define MLX5SIM_UVERBS_UAR_H_

#include <sim/objs/store.h>

#include <rdma/rdma_user_ioctl.h>

/** Methods of the UAR object: MLX5_IB_OBJECT_UAR. @return 0 or -errno. */
int mlx5sim_cmd_uar_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_cmd_uar_destroy(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);

#endif
