/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PATCH_CALL_H_
#define MLX5SIM_PATCH_CALL_H_

#include <stddef.h>
#include <stdint.h>

/*
 * Other functions in place of memcpy() (patch.h), for libraries that copy to
 * BlueFlame registers by it. A library calls what its global offset table has
 * (psABI, "Procedure Linkage Table"); that entry is replaced. So all copies of
 * this library are looked at first, and no others.
 */

/** In place of memcpy().
 *  @return 0 if the bytes are not for the device, and nothing was done. */
typedef int (*mlx5sim_patch_copy_t)(uintptr_t addr, const void *data,
                                    size_t length);

void mlx5sim_patch_call_init(mlx5sim_patch_copy_t copy);

/** Replace memcpy() or memmove() for the library that has just called it.
 *  @param back  Where the call returns to.
 *  @return 0, or -1: it was not called in a way that is known. */
int mlx5sim_patch_call_make(uintptr_t back);

#endif
