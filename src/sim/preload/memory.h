/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MEMORY_H_
#define MLX5SIM_MEMORY_H_

#include <stddef.h>

/**
 * The program has mapped memory (objs/mapping.h). Called by mmap().
 *
 * @param caller  Who called mmap(). What the object with malloc() maps does not
 *                count: it hands out parts, and the whole again when it was
 *                freed.
 */
void mlx5sim_memory_mapped(const void *caller, void *addr, size_t length,
                           int protection, int flags);

#endif
