/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PRIVATE_H_
#define MLX5SIM_PRIVATE_H_

#include <sys/types.h>

/*
 * What mlx5sim-run does with whole instances: private ones, and removal.
 */

/**
 * Make a directory for a private instance, and remove those whose mlx5sim-run
 * was killed together with all that could have done so.
 *
 * Of these, only directories of this user are touched that carry our mark and
 * the name of their mlx5sim-run (its pid, start time, and PID namespace), when
 * that has gone and no process has a file of theirs mapped.
 *
 * @param owner  Process that removes it at its end, of this PID namespace.
 *
 * @return 0 after the path was written to standard output, or 1 after a
 *         message.
 */
int mlx5sim_private_create(pid_t owner);

/**
 * Remove the instance of this process.
 *
 * @param force  It is a private one whose command has ended: remove it with all
 *               that is in the directory, even if a process still has it.
 *               Otherwise it is refused if one has, and only what belongs to an
 *               instance is removed.
 *
 * @return 0, or 1 after a message.
 */
int mlx5sim_private_remove(int force);

#endif
