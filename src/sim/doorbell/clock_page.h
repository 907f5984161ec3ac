/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CLOCK_PAGE_H_
#define MLX5SIM_CLOCK_PAGE_H_

#include <stdint.h>

/**
 * If @a addr is in the page that libmlx5 has mapped to turn timestamps into the
 * time of day, put there what it is to find. The page is mapped like UAR pages,
 * so the first access ends here. Callable from the signal handler.
 *
 * @return whether the access can be repeated.
 */
int mlx5sim_clock_page_fault(uintptr_t addr);

#endif
