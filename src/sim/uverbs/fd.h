/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_FD_H_
#define MLX5SIM_FD_H_

#include <sim/objs/obj.h>

/*
 * Descriptors of this process that are devices or channels of ours.
 */

/** Descriptors from this number on can't be ours. */
#define MLX5SIM_MAX_FD 65536

/** What a descriptor is: 0 not ours, context index, or channel index with this
 *  bit. */
#define MLX5SIM_FD_CHAN (1u << 31)

/** What a descriptor is. */
uint32_t mlx5sim_fd_get(int fd);

/** Change it; @a fd is below MLX5SIM_MAX_FD. @return what it was. */
uint32_t mlx5sim_fd_set(int fd, uint32_t entry);

/** Context behind a descriptor, NULL if it has none of this process. */
mlx5sim_ctx_t *mlx5sim_fd_ctx(int fd);

/** Context, perhaps of another process, of whose descriptor @a fd is a copy,
 *  such as dup(2) makes, NULL if it is none. */
mlx5sim_ctx_t *mlx5sim_fd_copied(int fd);

/** Context of the parent, for a child of fork() that has inherited @a fd, NULL
 *  if it is none, or is closed. */
mlx5sim_ctx_t *mlx5sim_fd_inherited(int fd);

/** Channel index behind a descriptor, 0 if none. */
uint32_t mlx5sim_fd_chan(int fd);

#endif
