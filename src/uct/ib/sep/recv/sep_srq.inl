/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SRQ_INL
#define UCT_SEP_SRQ_INL

#include <uct/ib/sep/base/sep_fence.h>
#include <uct/ib/sep/recv/sep_srq.h>
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
uct_sep_srq_append_be(uct_sep_srq_t *srq, __be16 index)
{
    srq->last->next_wqe_index = index;
    srq->last                 = uct_sep_srq_wqe(srq, be16toh(index));
    ++srq->counter;
}


/** Append the WQE with an index in the host's order of bytes. */
static UCS_F_ALWAYS_INLINE void
uct_sep_srq_append(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_srq_append_be(srq, htobe16(index));
}


/** Tell the device about the appended work requests. */
static UCS_F_ALWAYS_INLINE void uct_sep_srq_publish(uct_sep_srq_t *srq)
{
    if (srq->published != srq->counter) {
        srq->published = srq->counter;
        /* Links and buffers must be there before the count, and what was in
         * the buffers must have been read */
        uct_sep_fence_give_back();
        *srq->dbrec = htobe32(srq->counter);
    }
}


/** Whether it is time to tell the device, or to look for buffers. */
static UCS_F_ALWAYS_INLINE int uct_sep_srq_is_due(const uct_sep_srq_t *srq)
{
    return (uint16_t)(srq->counter - srq->published) >= srq->batch;
}


/** Prefetch what a receive brings next, if it goes to the buffer of the work
 *  request behind @a index: that is the order in which they are posted. */
static UCS_F_ALWAYS_INLINE void
uct_sep_srq_prefetch(const uct_sep_srq_t *srq, uint16_t index)
{
    /* The descriptor may be missing; then this is harmless */
    __builtin_prefetch(UCS_PTR_BYTE_OFFSET(srq->descs[(index + 1) &
                                                (srq->length - 1)],
                                     srq->hdr_offset));
}

#endif
