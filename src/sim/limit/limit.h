/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_LIMIT_H_
#define MLX5SIM_LIMIT_H_

#include <sim/objs/obj.h>

/*
 * Limits of objects per device, as reported in ibv_device_attr.
 */

/** Entries at the start of the tables that are no objects. */
#define MLX5SIM_LIMIT_SLACK 64

/** Largest number of objects of a kind on each device. */
unsigned mlx5sim_limit(mlx5sim_obj_kind_t kind);

/** As mlx5sim_obj_alloc(), within the limit. @return NULL with errno = ENOMEM
 *  if it is reached. */
void *mlx5sim_limit_alloc(mlx5sim_ctx_t *ctx, mlx5sim_obj_kind_t kind);

#endif
