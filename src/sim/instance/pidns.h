/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PIDNS_H_
#define MLX5SIM_PIDNS_H_

#include <stddef.h>

/*
 * The PID namespace of an instance. Its processes know each other by pid, which
 * says nothing, or names another process, in another namespace
 * (pid_namespaces(7)): there, those that live would be taken for dead.
 */

/** Room for @ref mlx5sim_pidns_name. */
#define MLX5SIM_PIDNS_MAX 64

/** File of the instance that names it. */
#define MLX5SIM_PIDNS_FILE "namespace"

/**
 * Name of this process' PID namespace: device and inode of /proc/self/ns/pid,
 * as namespaces(7) has it, and a newline.
 *
 * @param name         MLX5SIM_PIDNS_MAX bytes.
 * @param [out] error  Reason of a failure.
 *
 * @return 0, or -1 with errno: there is no /proc, or it shows the processes of
 *         another namespace (EXDEV).
 */
int mlx5sim_pidns_name(char *name, char *error, size_t error_size);

/**
 * Write the name of this process' namespace to a directory.
 *
 * @param dir          Its name, for messages.
 * @param [out] error  Reason of a failure.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_pidns_save(int dir_fd, const char *dir, char *error,
                       size_t error_size);

/**
 * Require that the instance in a directory is of this process' namespace.
 *
 * @return 0, or -1 with errno (EXDEV: it is of another) and @a error.
 */
int mlx5sim_pidns_check(int dir_fd, const char *dir, char *error,
                        size_t error_size);

#endif
