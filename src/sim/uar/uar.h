/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_H_
#define MLX5SIM_UAR_H_

#include "sim/objs/store.h"

#include <rdma/rdma_user_ioctl.h>

/*
 * UAR pages. A device has a limited number of them (MLX5SIM_UARS); what a
 * context uses comes, as with kernels since 5.8, from UAR objects of libmlx5.
 */

/** mlx5 PRM, "UAR page format": size of a page, and its BlueFlame registers
 *  (uUARs) for user space; the kernel's MLX5_NON_FP_BFREGS_PER_UAR. */
#define MLX5SIM_UAR_PAGE_SIZE 4096
#define MLX5SIM_UUARS_PER_UAR 2

/**
 * Take UAR pages of the context's device.
 *
 * @param num      How many: all or none.
 * @param index_p  Their numbers.
 * @return 0, or -ENOMEM when the device has not so many left (what the kernel
 *         makes of the firmware's "limit exceeded", mlx5_core cmd.c).
 */
int mlx5sim_uar_take(mlx5sim_ctx_t *ctx, mlx5sim_uar_kind_t kind, unsigned num,
                     uint32_t *index_p);

/** Methods of the UAR object: MLX5_IB_OBJECT_UAR. @return 0 or -errno. */
int mlx5sim_uar_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_uar_destroy(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

#endif
