/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PROGRAM_H_
#define MLX5SIM_PROGRAM_H_

#include <stddef.h>

/* Programs that the device can't be preloaded into. */

/**
 * Find out whether the dynamic linker would preload the device into a program,
 * or into the interpreter of a script.
 *
 * @param path    The file.
 * @param reason  Why not: goes behind the program's name.
 *
 * @return 1 if it would, or that can't be told; else 0.
 */
int mlx5sim_program_is_preloadable(const char *path, char *reason, size_t size);

#endif
