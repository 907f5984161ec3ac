/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_DM_H_
#define MLX5SIM_UAR_DM_H_

#include <sim/objs/obj.h>

/*
 * Memory of a device. It has MLX5SIM_DM_PAGES pages for all processes together.
 * Those that a process has taken are a shared memory segment of it, to which
 * the device's own mapping and the application's lead. The segment goes with
 * the last of them, however the process ends; only one that is killed while it
 * takes the memory may leave a segment behind.
 */

/**
 * Take memory of the context's device, whole pages for each.
 *
 * @param length  Bytes, more than 0.
 * @param dm_p    The object, which is not ready yet.
 *
 * @return 0, or -ENOMEM if the device has not that much in a row.
 */
int mlx5sim_dm_take(mlx5sim_ctx_t *ctx, uint64_t length, mlx5sim_dm_t **dm_p);

/** Give it back. What the application has mapped stays memory until it is
 *  unmapped, and is nobody else's. */
void mlx5sim_dm_give(mlx5sim_dm_t *dm);

/** Memory of context number @a ctx that begins with a page of its file, or
 *  NULL. */
mlx5sim_dm_t *mlx5sim_dm_find(uint32_t ctx, uint64_t file_page);

/**
 * Handle SIGBUS at an address. Like UAR pages, device memory is mapped beyond
 * the end of its context's file. With the first access, the memory comes there.
 * Callable from the signal handler.
 *
 * @return Whether there is memory now.
 */
int mlx5sim_dm_fault(uintptr_t addr);

#endif
