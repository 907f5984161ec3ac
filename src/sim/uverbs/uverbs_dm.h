/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_DM_H_
#define MLX5SIM_UVERBS_DM_H_

#include <sim/objs/obj.h>

#include <rdma/rdma_user_ioctl_cmds.h>

/*
 * Device memory (MLX5SIM_DM).
 */

/** Bytes that a device has, 0 if it is off. */
uint64_t mlx5sim_dm_max(void);

/** UVERBS_METHOD_DM_ALLOC, _DM_FREE, _DM_MR_REG and MLX5_IB_METHOD_DM_QUERY,
 *  which tells who imports it where it is. @return 0 or -errno */
int mlx5sim_method_dm_alloc(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_dm_free(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_dm_query(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_dm_reg_mr(mlx5sim_ctx_t *ctx,
                             struct ib_uverbs_ioctl_hdr *hdr);

#endif
