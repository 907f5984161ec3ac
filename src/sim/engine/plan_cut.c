/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/plan.h>


/* The part of a list that starts at @a offset and has @a length bytes, moved to
 * the front */
static void mlx5sim_plan_cut_list(mlx5sim_seg_t *segs, unsigned *num_p,
                                  uint64_t offset, uint64_t length)
{
    unsigned num = 0, i;
    mlx5sim_seg_t seg;

    for (i = 0; (i < *num_p) && (length > 0); ++i) {
        seg = segs[i];
        if (offset >= seg.length) {
            offset -= seg.length;
            continue;
        }

        seg.addr   += offset;
        seg.length -= offset;
        if (seg.inl != NULL) {
            seg.inl = (const uint8_t*)seg.inl + offset;
        }
        if (seg.length > length) {
            seg.length = length;
        }

        offset      = 0;
        length     -= seg.length;
        segs[num++] = seg;
    }

    *num_p = num;
}


void mlx5sim_plan_cut(mlx5sim_plan_t *plan, uint64_t offset, uint64_t length)
{
    if ((offset == 0) && (length == plan->length)) {
        return;
    }

    mlx5sim_plan_cut_list(plan->src, &plan->num_src, offset, length);
    mlx5sim_plan_cut_list(plan->dst, &plan->num_dst, offset, length);
    plan->length = length;
}
