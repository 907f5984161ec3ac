/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_STRAY_H_
#define MLX5SIM_STRAY_H_

#include <stdint.h>

/** An access to @a addr is no doorbell of this process. If it would be one of
 *  somebody else or of something that is gone, say so on standard error: the
 *  signal that ends the process has no reason with it. Callable from the signal
 *  handler. */
void mlx5sim_stray_explain(uintptr_t addr);

#endif
