/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SPEED_H_
#define MLX5SIM_SPEED_H_

#include <stddef.h>

/*
 * Speeds of links: how many lanes, and how fast each is.
 */

/** As in ibv_port_attr: a lane is 1 SDR, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR,
 *  64 HDR or 128 NDR; the width is 1 for 1X, 2 for 4X, 4 for 8X, 8 for 12X, 16
 *  for 2X (kernel: enum ib_port_speed, ib_port_width in ib_verbs.h). */
typedef struct mlx5sim_speed {
    unsigned lane;
    unsigned width;
} mlx5sim_speed_t;

/** Length of what sysfs says of a speed, with its end. */
#define MLX5SIM_SPEED_STR_MAX 64

/** Read a speed such as "4xEDR". @return 0, or -1 if it is none. */
int mlx5sim_speed_parse(const char *text, mlx5sim_speed_t *speed_p);

/** All lanes together, in units of 100 Mb/s. */
unsigned mlx5sim_speed_rate(const mlx5sim_speed_t *speed);

/** What sysfs has as "rate" (kernel: rate_show() of sysfs.c), such as
 *  "100 Gb/sec (4X EDR)". @a buf holds MLX5SIM_SPEED_STR_MAX bytes. */
const char *mlx5sim_speed_str(const mlx5sim_speed_t *speed, char *buf);

#endif
