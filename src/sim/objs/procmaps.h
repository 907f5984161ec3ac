/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PROCMAPS_H_
#define MLX5SIM_PROCMAPS_H_

#include <stdint.h>
#include <sys/types.h>

/** A mapping of a process. */
typedef struct mlx5sim_procmaps_line {
    uint64_t   addr, length;
    int        protection;   /**< Of PROT_ */
    int        is_private;
    uint64_t   offset;       /**< In the file */
    uint64_t   dev, inode;   /**< Of the file; 0: there is none */
    const char *text;        /**< All of it, without its end */
} mlx5sim_procmaps_line_t;

/**
 * Read the mappings of a process, /proc/PID/maps. Without stdio and memory of
 * its own: it runs in signal handlers of arbitrary programs.
 *
 * @param line_cb  Called for each of them, in order of addresses; it returns
 *                 whether to go on.
 *
 * @return 0, or -1: they can't be read, as without a free descriptor, and not
 *         all of them were told.
 */
int mlx5sim_procmaps_read(pid_t pid,
                          int (*line_cb)(void *arg,
                                         const mlx5sim_procmaps_line_t *line),
                          void *arg);

#endif
