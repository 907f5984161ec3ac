/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_WINDOW_EXEC_H_
#define MLX5SIM_WINDOW_EXEC_H_

#include <sim/objs/obj.h>

/*
 * Memory windows: keys that lead to a part of a region, which one of verbs'
 * work requests says. What is looked at when a window is bound, and what not
 * before it is used, is as the kernel's mlx5_ib_alloc_mw() and libmlx5's
 * set_bind_wr() make the key: its list has the region's key, which is none of
 * the adapter's business until somebody needs it.
 */

/** Lock of a key that work requests change: a window, or one with a layout. */
mlx5sim_lock_t *mlx5sim_window_lock_of(const mlx5sim_mr_obj_t *window);

/**
 * Bind or free the window that a UMR names, or change a key with a layout, on
 * behalf of its queue pair.
 *
 * @return 0 or a syndrome.
 */
unsigned mlx5sim_window_set(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe);

/**
 * What a window gives a queue pair access to, which is nothing if its region
 * has gone; or a key with a layout.
 *
 * @param mr_p  Filled in.
 * @return 0, or -1 if the key is not the window's, or not for @a qp.
 */
int mlx5sim_window_map(const mlx5sim_mr_obj_t *window, uint32_t key,
                       const mlx5sim_qp_obj_t *qp, mlx5sim_mr_t *mr_p);

/** Free a window that has @a key, as a peer has asked. */
void mlx5sim_window_invalidate(mlx5sim_mr_obj_t *window, uint32_t key);

#endif
