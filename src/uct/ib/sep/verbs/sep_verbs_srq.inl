/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_VERBS_SRQ_INL
#define UCT_SEP_VERBS_SRQ_INL

#include <uct/ib/sep/recv/sep_srq.h>
#include <ucs/sys/compiler.h>

/** A receive, prepared once and posted again and again. */
typedef struct uct_sep_verbs_rx_wr {
    struct ibv_recv_wr wr;
    struct ibv_sge     sge;
} uct_sep_verbs_rx_wr_t;


static UCS_F_ALWAYS_INLINE uct_sep_verbs_rx_wr_t *
uct_sep_verbs_srq_wr(const uct_sep_srq_t *srq, uint16_t index)
{
    return (uct_sep_verbs_rx_wr_t*)srq->buf + index;
}


/** Append a receive to those to be posted next. */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_srq_append(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_verbs_rx_wr_t *rx = uct_sep_verbs_srq_wr(srq, index);

    if (srq->published == srq->counter) {
        srq->head = index;
    } else {
        uct_sep_verbs_srq_wr(srq, srq->tail)->wr.next = &rx->wr;
    }
    rx->wr.next = NULL;
    srq->tail   = index;
    ++srq->counter;
}

#endif
