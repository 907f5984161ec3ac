/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/verbs/sep_verbs.h>
#include <uct/ib/sep/verbs/sep_verbs_srq.inl>

#include <ucs/datastruct/mpool.inl>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>

/*
 * Shared receive queue through libibverbs. The work requests are ours; the
 * queue has only copies of them.
 */

static ucs_status_t uct_sep_verbs_srq_map(uct_sep_srq_t *srq,
                                          const uct_sep_srq_params_t *params)
{
    uct_sep_verbs_rx_wr_t *rx;
    uint32_t i;

    srq->length = params->length;
    srq->buf    = ucs_calloc(srq->length, sizeof(*rx), "sep_verbs_srq");
    if (srq->buf == NULL) {
        ucs_error("%s: no memory for a receive queue of %u", params->name,
                  srq->length);
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < srq->length; ++i) {
        rx             = uct_sep_verbs_srq_wr(srq, i);
        rx->wr.wr_id   = UCT_SEP_VERBS_WR_RECV | i;
        rx->wr.sg_list = &rx->sge;
        rx->wr.num_sge = 1;
    }

    return UCS_OK;
}

static void uct_sep_verbs_srq_unmap(uct_sep_srq_t *srq)
{
    ucs_free(srq->buf);
}

static void uct_sep_verbs_srq_set_data(uct_sep_srq_t *srq, uint16_t index,
                                       void *address, uint32_t lkey)
{
    uct_sep_verbs_rx_wr_t *rx = uct_sep_verbs_srq_wr(srq, index);

    rx->sge.addr   = (uintptr_t)address;
    rx->sge.length = srq->buf_size;
    rx->sge.lkey   = lkey;
}

static void uct_sep_verbs_srq_start(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_verbs_srq_append(srq, index);
}

void uct_sep_verbs_srq_publish(uct_sep_srq_t *srq)
{
    struct ibv_recv_wr *bad_wr;
    int ret;

    if (srq->published == srq->counter) {
        return;
    }

    ret = ibv_post_srq_recv(srq->srq, &uct_sep_verbs_srq_wr(srq, srq->head)->wr,
                            &bad_wr);
    if (ret != 0) {
        ucs_fatal("ibv_post_srq_recv() of %u receives failed: %s",
                  (uint16_t)(srq->counter - srq->published), strerror(ret));
    }
    srq->published = srq->counter;
}

#define UCT_SEP_SRQ(_name) uct_sep_verbs_srq_##_name
#include <uct/ib/sep/recv/sep_srq_fill.inl>

static void uct_sep_verbs_srq_append_op(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_verbs_srq_append(srq, index);
}

const uct_sep_srq_ops_t uct_sep_verbs_srq_ops = {
    .map     = uct_sep_verbs_srq_map,
    .unmap   = uct_sep_verbs_srq_unmap,
    .fill    = uct_sep_verbs_srq_fill_empty,
    .refill  = uct_sep_verbs_srq_refill_empty,
    .append  = uct_sep_verbs_srq_append_op,
    .replace = uct_sep_verbs_srq_replace
};
