/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_INSTANCE_H_
#define MLX5SIM_INSTANCE_H_

#include <sim/config/config.h>

/*
 * An instance is a directory: the hardware that a group of processes shares.
 *
 *   mlx5sim-instance  the mark of place.h: the rest may be removed
 *   config            MLX5SIM_* values it was created with; its presence says
 *                     that the trees are complete
 *   namespace         PID namespace of its processes, see pidns.h
 *   lock              flock()ed while the instance is being created
 *   sysfs, dev        the trees of tree.h
 *   violations        strict mode reports, one per line
 *   store             the object store
 *   chan.*            FIFOs of channels
 */

#define MLX5SIM_INSTANCE_CONFIG     "config"
#define MLX5SIM_INSTANCE_LOCK       "lock"
#define MLX5SIM_INSTANCE_VIOLATIONS "violations"
#define MLX5SIM_INSTANCE_STORE      "store"
#define MLX5SIM_INSTANCE_CHAN       "chan."

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
 * @param dir             Directory; its parent must exist. If it is not marked
 *                        as an instance's, it has to be empty.
 * @param follow          Whether @a dir may be a symbolic link of this user.
 * @param [out] config_p  Configuration as of @ref mlx5sim_instance_config.
 * @param [out] path_p    Path of the directory without symbolic links, of
 *                        PATH_MAX bytes.
 * @param [out] error     Reason of a failure, or of a warning when the result
 *                        is 0: empty if there is none.
 *
 * @return 0, or -1 with errno: EPERM if the directory is somebody else's,
 *         ENOTEMPTY if it holds files that are not of the device, EXDEV if the
 *         instance is of another PID namespace, EINVAL if a variable has a bad
 *         value.
 */
int mlx5sim_instance_join(const char *dir, int follow,
                          mlx5sim_config_t *config_p, char *path_p, char *error,
                          size_t error_size);

/**
 * Where the instance of this process is to be.
 *
 * @param buf             Room for the default one.
 * @param [out] follow_p  Whether it may be a symbolic link: not at the default
 *                        place, where anybody could put one.
 *
 * @return its directory.
 */
const char *mlx5sim_instance_locate(char *buf, size_t size, int *follow_p);

/**
 * Remove an instance. Nobody may be using it.
 *
 * @param dir          Directory; only one that is marked is touched.
 * @param follow       Whether @a dir may be a symbolic link of this user.
 * @param all          Whether all that is in the directory goes. Otherwise only
 *                     what belongs to an instance does, and the directory stays
 *                     if there is more.
 * @param [out] error  Reason of a failure.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_instance_remove(const char *dir, int follow, int all, char *error,
                            size_t error_size);

#endif
