/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TREE_H_
#define MLX5SIM_TREE_H_

#include <sim/config/config.h>

#include <stdint.h>

/**
 * Write everything of sysfs and /dev that a kernel with mlx5 devices would show
 * about them: sysfs has the layout of /sys, dev that of /dev.
 *
 * Each of the two is built under another name and then renamed, so it is there
 * completely or not at all, and processes that do this at the same time do not
 * disturb each other. Whatever exists already is left as it is.
 *
 * Character devices can't be made without privileges: dev/infiniband/uverbsN
 * is an empty file, which the interposers present as a device.
 *
 * @param dir_fd  Directory that gets both.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_tree_create(int dir_fd, const mlx5sim_config_t *config);

/**
 * Change the state of a port in the tree of @a dir.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_tree_set_port(const char *dir, unsigned dev, unsigned port,
                          int is_up);

/**
 * Change the rate of a port in the tree of @a dir.
 *
 * @param rate  As sysfs has it.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_tree_set_rate(const char *dir, unsigned dev, unsigned port,
                          const char *rate);

/**
 * Replace the file of a counter in the tree of @a dir. Who has the old one open
 * keeps its value.
 *
 * @param name  In the directory of the port: "counters/port_rcv_data".
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_tree_set_counter(const char *dir, unsigned dev, unsigned port,
                             const char *name, uint64_t value);

/**
 * Whether a name is that of a tree, finished or not.
 */
int mlx5sim_tree_has(const char *name);

/**
 * Remove the trees in a directory, including what killed creators left
 * unfinished. Nobody may be creating or using a tree there, and the directory
 * has to be marked as ours (@ref mlx5sim_place_claim).
 */
void mlx5sim_tree_remove(int dir_fd);

#endif
