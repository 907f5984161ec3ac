/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PROCMAPS_H_
#define MLX5SIM_PROCMAPS_H_

/**
 * Read the mappings of this process, /proc/self/maps. Without stdio and memory
 * of its own: it runs in signal handlers of arbitrary programs.
 *
 * @param line_cb  Called for each line, without its end, in order of addresses;
 *                 it returns whether to go on.
 */
void mlx5sim_procmaps_read(int (*line_cb)(void *arg, const char *line),
                           void *arg);

#endif
