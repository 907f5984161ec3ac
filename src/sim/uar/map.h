/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_MAP_H_
#define MLX5SIM_UAR_MAP_H_

#include <sim/insn/insn.h>

#include <stdint.h>

/*
 * Where contexts' files are mapped in this process. The application's mmap()
 * calls are not watched (UCX's memory hooks bypass interposed ones): the truth
 * is in /proc/self/maps. A snapshot of it is renewed in place when it lacks an
 * address. Readers are doorbells, so they take no lock: they read again if the
 * sequence number, odd during a change, has moved.
 */

/** A mapped run of UAR pages. */
typedef struct mlx5sim_map {
    mlx5sim_insn_window_t range;
    uint64_t              offset;  /**< of range.lo in the context's file */
    uint64_t              inode;   /**< number of the context's file */
    uint32_t              ctx;     /**< context index */
} mlx5sim_map_t;

/**
 * Look an address up in the snapshot. Callable from the signal handler.
 *
 * @param map_p  What is mapped there.
 * @param all_p  Range that covers all runs.
 * @param seq_p  Snapshot that the answer comes from.
 * @return Whether it is there.
 */
int mlx5sim_map_lookup(uintptr_t addr, mlx5sim_map_t *map_p,
                       mlx5sim_insn_window_t *all_p, unsigned *seq_p);

/** Make a new snapshot unless the one of @a seq has been replaced already.
 *  Callable from the signal handler. @return Whether it was made. */
int mlx5sim_map_rescan(unsigned seq);

/** Ensure that there is a snapshot begun after this call. */
void mlx5sim_map_renew(void);

/** Whether a page of a context's file is mapped now. Not for the signal
 *  handler. */
int mlx5sim_map_has_page(uint32_t ctx, uint64_t file_page);

/** Start afresh in a child of fork(). */
void mlx5sim_map_fork_child(void);

#endif
