/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_WINDOW_H_
#define MLX5SIM_WINDOW_H_

#include <sim/insn/insn.h>
#include <sim/objs/obj.h>

/*
 * Which UAR an address belongs to.
 */

/**
 * Find the UAR behind an address. Callable from the signal handler.
 *
 * @param addr     Faulting address.
 * @param page_p   The page around it.
 * @param avoid_p  At most two ranges that cover every other UAR page.
 * @param num_p    How many.
 * @return The UAR object, NULL if no UAR of this process is mapped there.
 */
mlx5sim_uar_t *mlx5sim_window_find(uintptr_t addr,
                                   mlx5sim_insn_window_t *page_p,
                                   mlx5sim_insn_window_t avoid_p[2],
                                   unsigned *num_p);

/** Like mlx5sim_window_find(), of pages that were known before: NULL for one
 *  that has just been mapped, too. */
mlx5sim_uar_t *mlx5sim_window_find_known(uintptr_t addr,
                                         mlx5sim_insn_window_t *page_p,
                                         mlx5sim_insn_window_t avoid_p[2],
                                         unsigned *num_p);

/** Whether a UAR page of a context is, or was, mapped at an address: of this
 *  process, or of the parent that it was forked from. Callable from the signal
 *  handler. */
int mlx5sim_window_is_mapped(uintptr_t addr);

/** Number of the page that is mapped at an address in the file of its context,
 *  or -1. Callable from the signal handler.
 *  @param page_p  Address of the page. */
int64_t mlx5sim_window_file_page(uintptr_t addr, uintptr_t *page_p);

/**
 * Find the page that shows the clock (@ref MLX5SIM_UAR_PAGE_CORE_CLOCK) behind
 * an address, also of the parent that this process was forked from. Callable
 * from the signal handler. What is not known to be one takes a look at all
 * mappings: this is for loads, which nobody makes from UAR pages.
 *
 * @param page_p, avoid_p, num_p  As for mlx5sim_window_find().
 * @return Whether it is one.
 */
int mlx5sim_window_find_clock(uintptr_t addr, mlx5sim_insn_window_t *page_p,
                              mlx5sim_insn_window_t avoid_p[2],
                              unsigned *num_p);

/** Like mlx5sim_window_find(), for when its answer seems wrong: the page may
 *  have been remapped since somebody last looked. */
mlx5sim_uar_t *mlx5sim_window_refresh(uintptr_t addr);

#endif
