/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_INSTANCE_H_
#define MLX5SIM_INSTANCE_H_

#include "sim/config/config.h"

/*
 * An instance is a directory: the hardware that a group of processes shares.
 *
 *   config      MLX5SIM_* values it was created with; its presence says that
 *               the trees are complete
 *   lock        flock()ed while the instance is being created
 *   sysfs, dev  the trees of tree.h
 *   violations  strict mode reports, one per line
 *
 * The object store and whatever else the device needs is put there, too.
 */

#define MLX5SIM_INSTANCE_CONFIG     "config"
#define MLX5SIM_INSTANCE_LOCK       "lock"
#define MLX5SIM_INSTANCE_VIOLATIONS "violations"

/**
 * Directory of this process's instance, without symbolic links: $MLX5SIM_DIR or
 * /dev/shm/mlx5sim.UID. The first call creates the instance if need be and
 * configures path mapping (@ref mlx5sim_path_set_root).
 *
 * @return the path, or NULL with errno after the reason was written to standard
 *         error (once per process; later calls fail likewise).
 */
const char *mlx5sim_instance_dir(void);

/**
 * Configuration of this process: what the instance was created with and the
 * per-process variables.
 *
 * @return never NULL; defaults if @ref mlx5sim_instance_dir fails.
 */
const mlx5sim_config_t *mlx5sim_instance_config(void);

/**
 * Whether the device is switched off in this process (MLX5SIM_DISABLE).
 * Evaluated once.
 */
int mlx5sim_instance_is_disabled(void);

/**
 * Join the instance in @a dir, creating it if need be. What the two above do,
 * without keeping anything in the process.
 *
 * @param dir             Directory; its parent must exist.
 * @param follow          Whether @a dir may be a symbolic link.
 * @param [out] config_p  Configuration as of @ref mlx5sim_instance_config.
 * @param [out] error     Reason of a failure, or of a warning when the result
 *                        is 0: empty if there is none.
 *
 * @return 0, or -1 with errno: EPERM if the directory is somebody else's,
 *         EINVAL if a variable has a bad value.
 */
int mlx5sim_instance_join(const char *dir, int follow,
                          mlx5sim_config_t *config_p, char *error,
                          size_t error_size);

#endif
