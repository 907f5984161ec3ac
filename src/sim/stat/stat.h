/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_STAT_H_
#define MLX5SIM_STAT_H_

#include <stdio.h>

/** Print the processes of the mapped store and their sum.
 *  @param all  Also those that have ended. */
void mlx5sim_stat_table(FILE *stream, int all);
void mlx5sim_stat_json(FILE *stream, int all);

#endif
