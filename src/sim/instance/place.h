/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PLACE_H_
#define MLX5SIM_PLACE_H_

#include <stddef.h>

/*
 * The directory of an instance: whose it is, and whether what is in it is ours.
 *
 * A directory becomes an instance's by a mark, a file that is written before
 * any other, and only while the directory is empty. Nothing is removed from a
 * directory without it. All of this goes by the descriptor of the directory
 * that was checked: its name may lead elsewhere a moment later.
 */

#define MLX5SIM_PLACE_MARK "mlx5sim-instance"

/** How a directory is opened. */
enum {
    MLX5SIM_PLACE_CREATE = 1 << 0, /**< make it if there is none */
    MLX5SIM_PLACE_FOLLOW = 1 << 1  /**< it may be a symbolic link, if that is
                                        the user's own or root's */
};

/**
 * Open a directory, and check that it belongs to this user and that nobody else
 * can write to it.
 *
 * @param [out] error  Reason of a failure.
 *
 * @return its descriptor, or -1 with errno: EPERM if somebody else can tamper
 *         with it.
 */
int mlx5sim_place_open(const char *dir, unsigned flags, char *error,
                       size_t error_size);

/**
 * Mark a directory as ours, unless it is. Several processes may do so at once.
 *
 * @param dir_fd       As of @ref mlx5sim_place_open.
 * @param dir          Its name, for messages.
 * @param [out] error  Reason of a failure.
 *
 * @return 0, or -1 with errno: ENOTEMPTY if it holds what is not ours.
 */
int mlx5sim_place_claim(int dir_fd, const char *dir, char *error,
                        size_t error_size);

/**
 * Require the mark.
 *
 * @return 0, or -1 with errno ENOTEMPTY and @a error, as of
 *         @ref mlx5sim_place_claim.
 */
int mlx5sim_place_check(int dir_fd, const char *dir, char *error,
                        size_t error_size);

/**
 * Path of an open directory, without symbolic links.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_place_path(int dir_fd, char *path, size_t size);

/**
 * Remove an entry of a directory, with all that is in it. Symbolic links are
 * removed, not followed.
 *
 * @return 0, also if there is none, or -1 with errno.
 */
int mlx5sim_place_remove(int dir_fd, const char *name);

/**
 * Remove the entries of a directory for which @a is_ours says so; all if it is
 * NULL. The mark is not among them: it goes with @ref mlx5sim_place_abandon.
 *
 * @return how many are left, apart from the mark, or -1 with errno.
 */
int mlx5sim_place_clear(int dir_fd, int (*is_ours)(const char *name));

/**
 * Remove the mark, and then the directory, if it is empty.
 *
 * @return 0, or -1 with errno: ENOTEMPTY.
 */
int mlx5sim_place_abandon(int dir_fd);

#endif
