/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_H_
#define MLX5SIM_UAR_H_

#include "sim/objs/obj.h"

/*
 * UAR pages. A device has a limited number of them (MLX5SIM_UARS); what a
 * context uses comes, as with kernels since 5.8, from UAR objects of libmlx5.
 */

/** Pages of a device that are in use. They are counted and not kept count of,
 *  so that nobody who is killed can make the number wrong. */
unsigned mlx5sim_uar_count(uint32_t dev);

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

#endif
