/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MISSING_H_
#define MLX5SIM_MISSING_H_

#include <stdio.h>

/*
 * What adapters and their driver can do and this device refuses.
 */

typedef enum {
    MLX5SIM_MISSING_XRC,
    MLX5SIM_MISSING_DC,
    MLX5SIM_MISSING_RAW_PACKET,
    MLX5SIM_MISSING_QP_OPTIONS,
    MLX5SIM_MISSING_SIGNATURE,
    MLX5SIM_MISSING_CQ_OPTIONS,
    MLX5SIM_MISSING_CQ_RESIZE,
    MLX5SIM_MISSING_ODP,
    MLX5SIM_MISSING_ZERO_BASED,
    MLX5SIM_MISSING_DMABUF,
    MLX5SIM_MISSING_DM,
    MLX5SIM_MISSING_IMPORT,
    MLX5SIM_MISSING_FORK,
    MLX5SIM_MISSING_TM,
    MLX5SIM_MISSING_MCAST,
    MLX5SIM_MISSING_CM_WIRE,
    MLX5SIM_MISSING_FLOW,
    MLX5SIM_MISSING_WQ,
    MLX5SIM_MISSING_COUNTERS,
    MLX5SIM_MISSING_PACING,
    MLX5SIM_MISSING_DEVX,
    MLX5SIM_MISSING_LAST
} mlx5sim_missing_t;

typedef struct mlx5sim_missing_row {
    const char *name;
    const char *what;
    const char *asked;      /**< functions and flags that ask for it */
    int         is_probed;  /**< programs try it out and go on without */
} mlx5sim_missing_row_t;

/** What is known about it. */
const mlx5sim_missing_row_t *mlx5sim_missing_row(mlx5sim_missing_t missing);

/** Print all rows as a table in Markdown. */
void mlx5sim_missing_print(FILE *stream);

#endif
