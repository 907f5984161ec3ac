/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_H_
#define MLX5SIM_UAR_H_

#include <sim/objs/obj.h>

/*
 * UAR pages. A device has a limited number of them (MLX5SIM_UARS); contexts get
 * theirs from UAR objects of libmlx5, as with kernels since 5.8.
 */

/** Pages of a device that are in use. Counted each time instead of in a
 *  counter, which killed processes could leave wrong. */
unsigned mlx5sim_uar_count(uint32_t dev);

/**
 * Take UAR pages of the context's device.
 *
 * @param num      How many: all or none.
 * @param index_p  Their numbers.
 * @return 0, or -ENOMEM if the device has fewer left (as the kernel translates
 *         the firmware's "limit exceeded", mlx5_core cmd.c), or -ENOSPC if the
 *         store has no room.
 */
int mlx5sim_uar_take(mlx5sim_ctx_t *ctx, mlx5sim_uar_kind_t kind, unsigned num,
                     uint32_t *index_p);

#endif
