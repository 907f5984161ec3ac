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

/**
 * What a load finds in the page that shows the clock
 * (@ref MLX5SIM_UAR_PAGE_CORE_CLOCK): the time, and zeros behind it. Memory
 * can't show that, so each load ends in the signal handler, and only these
 * cost anything. See @ref mlx5sim_insn_load_cb_t.
 */
void mlx5sim_clock_page_load(void *arg, uintptr_t addr, void *data,
                             unsigned length);

#endif
