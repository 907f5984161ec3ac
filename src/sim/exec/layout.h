/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_LAYOUT_H_
#define MLX5SIM_LAYOUT_H_

#include <sim/objs/obj.h>

/*
 * Keys whose list leads to pieces of memory apart from each other: entries of
 * other keys, one behind the other, or such of strides, in turns. The list is
 * looked at anew each time, and so are the keys in it, which nobody looks at
 * before (as with memory windows): max_indirection is 1, so these have to be of
 * plain memory. Remote access is the key's to give; the others only have to let
 * the adapter write.
 */

/** Change the key that a UMR names, which has been found to be one that may be
 *  changed so. Its lock is held. */
void mlx5sim_layout_set(mlx5sim_mr_obj_t *mr, const mlx5sim_wqe_t *wqe);

/** Where a key leads with these bytes: mlx5sim_env_t.layout_find().
 *  @param qp  Who uses it. */
uint64_t mlx5sim_layout_find(const mlx5sim_qp_obj_t *qp, uint32_t key,
                             uint32_t access, uint64_t addr, uint64_t length,
                             uint64_t *va_p);

/**
 * The pieces of memory that a list of a plan consists of, from a byte on.
 *
 * @param is_write  Whether they are written.
 * @param offset    How many bytes to leave out.
 * @param length    Up to how many there are to be.
 * @param out       MLX5SIM_MAX_SGE pieces, with the keys of their memory.
 * @param num_p     Their number.
 *
 * @return Bytes in them, fewer than @a length if there is no room for more
 *         pieces; 0 if a key does not lead there any more.
 */
uint64_t mlx5sim_layout_pieces(const mlx5sim_seg_t *segs, unsigned num_segs,
                               int is_write, uint64_t offset, uint64_t length,
                               mlx5sim_seg_t *out, unsigned *num_p);

/** Whether a list of a plan has a part with a layout. */
int mlx5sim_layout_is_in(const mlx5sim_seg_t *segs, unsigned num_segs);

/**
 * What a plan moves from byte @a offset on, as it is without layouts.
 *
 * @param part    Room for it.
 * @param side_p  Whose key does not lead there any more, if the result is NULL.
 *
 * @return The plan itself, @a offset being 0, if it has no layout; else
 *         @a part, with as much as there is room for: its length tells.
 */
const mlx5sim_plan_t *
mlx5sim_layout_part(const mlx5sim_plan_t *plan, uint64_t offset,
                    mlx5sim_plan_t *part, mlx5sim_side_t *side_p);

#endif
