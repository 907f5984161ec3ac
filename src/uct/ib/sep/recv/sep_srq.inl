/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SRQ_INL
#define UCT_SEP_SRQ_INL

#include <uct/ib/sep/recv/sep_srq.h>
#include <ucs/arch/cpu.h>
#include <ucs/sys/compiler.h>


/** A work request's link, at its start. */
static UCS_F_ALWAYS_INLINE struct mlx5_wqe_srq_next_seg *
uct_sep_srq_wqe(const uct_sep_srq_t *srq, uint16_t index)
{
    return UCS_PTR_BYTE_OFFSET(srq->buf, (size_t)index << srq->shift);
}


/**
 * Append a work request that has a buffer. The device may take the one that
 * was the last until now, after @ref uct_sep_srq_publish.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_srq_append(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_srq_wqe(srq, srq->tail)->next_wqe_index = htobe16(index);
    srq->tail = index;
    ++srq->counter;
}


/** Tell the device about the appended work requests. */
static UCS_F_ALWAYS_INLINE void uct_sep_srq_publish(uct_sep_srq_t *srq)
{
    if (srq->published != srq->counter) {
        srq->published = srq->counter;
        /* Links and buffers must be there before the count */
        ucs_memory_cpu_store_fence();
        *srq->dbrec = htobe32(srq->counter);
    }
}

#endif
