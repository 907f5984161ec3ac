/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/iov.h>


/* The last byte of a write is copied after all others: PCIe writes words, in
 * order, and programs poll on the last one. Here, words are copied by the
 * kernel, which may do it byte by byte. */
#define MLX5SIM_IOV_TAIL 1


unsigned mlx5sim_iov_fill(const mlx5sim_seg_t *segs, unsigned num_segs,
                          struct iovec *iov)
{
    unsigned n = 0, i;

    for (i = 0; i < num_segs; ++i) {
        if (segs[i].length > 0) {
            iov[n].iov_base = (segs[i].inl != NULL) ?
                              (void*)segs[i].inl :
                              (void*)(uintptr_t)segs[i].addr;
            iov[n].iov_len  = segs[i].length;
            ++n;
        }
    }

    return n;
}

/* The last byte becomes a piece of its own */
static unsigned mlx5sim_iov_split(struct iovec *iov, unsigned num)
{
    struct iovec *last;

    if ((num == 0) || (iov[num - 1].iov_len <= MLX5SIM_IOV_TAIL)) {
        return num;
    }

    last           = &iov[num - 1];
    last->iov_len -= MLX5SIM_IOV_TAIL;
    iov[num]       = (struct iovec){(char*)last->iov_base + last->iov_len,
                                    MLX5SIM_IOV_TAIL};
    return num + 1;
}

void mlx5sim_iov_plan(const mlx5sim_plan_t *plan, struct iovec *src,
                      unsigned *num_src_p, struct iovec *dst,
                      unsigned *num_dst_p)
{
    *num_src_p = mlx5sim_iov_fill(plan->src, plan->num_src, src);
    *num_dst_p = mlx5sim_iov_split(
            dst, mlx5sim_iov_fill(plan->dst, plan->num_dst, dst));
}
