/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_WINDOW_H_
#define MLX5SIM_WINDOW_H_

#include "sim/insn/insn.h"
#include "sim/objs/store.h"

/*
 * Where UAR pages are mapped in this process. The application's mmap() calls
 * are not watched (UCX's memory hooks bypass interposed ones): the truth is in
 * /proc/self/maps and is read when an access hits an address not seen before.
 */

/** A mapped run of UAR pages. */
typedef struct mlx5sim_window {
    mlx5sim_insn_window_t range;
    uint64_t              offset;  /* of range.lo in the context's file */
    uint32_t              ctx;     /* context index */
} mlx5sim_window_t;

/**
 * Find the UAR behind an address. Callable from the signal handler.
 *
 * @param addr     Faulting address.
 * @param page_p   The page around it.
 * @param avoid_p  At most two ranges that hold every other UAR page.
 * @param num_p    How many.
 * @return The UAR object, NULL if no UAR of this process is mapped there.
 */
mlx5sim_uar_t *mlx5sim_window_find(uintptr_t addr,
                                   mlx5sim_insn_window_t *page_p,
                                   mlx5sim_insn_window_t avoid_p[2],
                                   unsigned *num_p);

/** As mlx5sim_window_find(), when its answer seems wrong: the page may have been
 *  mapped anew since somebody looked last. */
mlx5sim_uar_t *mlx5sim_window_refresh(uintptr_t addr);

/** Whether a page of a context's file is mapped now. Not for the signal
 *  handler. */
int mlx5sim_window_is_mapped(uint32_t ctx, uint64_t file_page);

/** Start afresh in a child of fork(). */
void mlx5sim_window_fork_child(void);

#endif
