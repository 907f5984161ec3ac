/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQE_INL
#define UCT_SEP_CQE_INL

#include <uct/ib/sep/progress/sep_cqe.h>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/recv/sep_srq.inl>
#include <uct/ib/sep/post/sep_wqe.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>

/**
 * @file sep_cqe.inl
 *
 * What a successful completion means, for the polling loops.
 */


/* Index behind the work request that starts at an index */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_txwq_wqe_end(const uct_sep_txwq_t *txwq, uint16_t pi)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = uct_sep_txwq_bb(txwq, pi);

    return pi + uct_sep_wqe_num_bb(be32toh(ctrl->qpn_ds) & UINT8_MAX);
}

/* Finish operations up to an index. There is one at least. Users' callbacks may
 * progress and cancel what is outstanding; the queue survives that. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_finish_non_empty(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                              const struct mlx5_cqe64 *cqe, uint16_t end)
{
    uct_sep_op_t *op = ucs_queue_head_elem_non_empty(&txwq->outstanding,
                                                     uct_sep_op_t, queue);

    if (ucs_unlikely((op->end != end) && uct_sep_cqe_has_data(cqe))) {
        /* The operation that the data are of may be finished with another
         * completion, by a callback that progresses, and others with this:
         * results that were in memory when their own came. */
        uct_sep_cqe_keep_data(txwq, cqe, end);
        cqe = &uct_sep_op_no_cqe;
    }

    uct_sep_iface_begin_finish(iface);
    do {
        op = ucs_queue_head_elem_non_empty(&txwq->outstanding, uct_sep_op_t,
                                           queue);
        if ((int16_t)(end - op->end) < 0) {
            break;
        }
        uct_sep_txwq_pull(txwq);
        op->handler(iface, cqe, &op->queue, UCS_OK);
    } while (!ucs_queue_is_empty(&txwq->outstanding));
    uct_sep_iface_end_finish(iface);
}

/* Finish operations up to an index. Only the last can have a result in the
 * completion, since whatever has a result asks for one of its own. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_finish(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    const struct mlx5_cqe64 *cqe, uint16_t end)
{
    if (!ucs_queue_is_empty(&txwq->outstanding)) {
        uct_sep_txwq_finish_non_empty(iface, txwq, cqe, end);
    }
}

/* Give credits back up to an index */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_release(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint16_t end)
{
    uct_sep_iface_add_cq_credits(iface, uct_sep_txwq_complete(txwq, end));
}

/* The send queue of a completion, or NULL */
static UCS_F_ALWAYS_INLINE uct_sep_txwq_t *
uct_sep_cqe_txwq(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    return uct_sep_qp_table_find_key(&iface->qps, UCT_SEP_QP_KEY_CQE(cqe));
}

/* Whether a completion does more than finish operations and give back
 * credits */
static UCS_F_ALWAYS_INLINE int
uct_sep_cqe_needs_follow_up(uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq)
{
    return (txwq->flags & UCT_SEP_TXWQ_FLAGS_FOLLOW_UP) || iface->tx.stalled;
}

/* Credits come back after users' callbacks: what these send must not take the
 * credits of requests that have waited and are next. If a callback has
 * progressed, later credits are back already. */
static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_release_send(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         uint16_t end)
{
    if (ucs_likely((int16_t)(end - txwq->hw_ci) > 0)) {
        uct_sep_txwq_release(iface, txwq, end);
    }
    if (ucs_unlikely(uct_sep_cqe_needs_follow_up(iface, txwq))) {
        uct_sep_cqe_follow_up(iface, txwq);
    }
}

/* All up to an index has been sent */
static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_handle_sent(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                        const struct mlx5_cqe64 *cqe, uint16_t end)
{
    uct_sep_txwq_finish(iface, txwq, cqe, end);
    uct_sep_cqe_release_send(iface, txwq, end);
}

static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_handle_send(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uct_sep_txwq_t *txwq = uct_sep_cqe_txwq(iface, cqe);

    if (ucs_unlikely(txwq == NULL)) {
        uct_sep_cqe_handle_unknown(iface, cqe);
        return;
    }

    uct_sep_cqe_handle_sent(iface, txwq, cqe,
                            uct_sep_txwq_wqe_end(txwq,
                                                 be16toh(cqe->wqe_counter)));
}

/* Give a message to its handler; returns whether the buffer is free again and
 * not the application's */
static UCS_F_ALWAYS_INLINE int
uct_sep_cqe_invoke_am(uct_sep_iface_t *iface, uct_sep_rx_desc_t *desc,
                      uct_sep_am_hdr_t *hdr, uint8_t am_id, uint32_t length)
{
    ucs_status_t status;
    void *user_desc;

    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, hdr + 1,
                       length - sizeof(*hdr), "RX: %s", iface->port.name);
    status = uct_iface_invoke_am(&iface->super, am_id, hdr + 1,
                                 length - sizeof(*hdr), UCT_CB_PARAM_FLAG_DESC);
    if (ucs_likely(status == UCS_OK)) {
        return 1;
    }

    user_desc                = UCS_PTR_BYTE_OFFSET(desc,
                                                   iface->rx.headroom_offset);
    uct_recv_desc(user_desc) = &iface->rx.release;
    return 0;
}

/* Give a message in a completion, which has room for size bytes, to its
 * handler. The handler gets a copy: if it progresses, through as many
 * completions as the queue holds, the device writes others there. */
static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_invoke_am_inline(uct_sep_iface_t *iface,
                             const uct_sep_am_hdr_t *hdr, uint8_t am_id,
                             uint32_t length, size_t size)
{
    uint8_t copy[UCT_SEP_CQE_MAX_DATA(UCT_SEP_CQ_STRIDE_128)] UCS_V_ALIGNED(16);
    ucs_status_t UCS_V_UNUSED status;

    memcpy(copy, hdr, size);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id,
                       copy + sizeof(*hdr), length - sizeof(*hdr), "RX: %s",
                       iface->port.name);
    status = uct_iface_invoke_am(&iface->super, am_id, copy + sizeof(*hdr),
                                 length - sizeof(*hdr), 0);
    ucs_assert(status == UCS_OK);
}

/* A message was received, on QP qpn; returns whether the buffer is free
 * again */
static UCS_F_ALWAYS_INLINE int
uct_sep_cqe_deliver(uct_sep_iface_t *iface, uint16_t index, uint32_t length,
                    uint32_t qpn)
{
    uct_sep_rx_desc_t *desc = iface->srq.descs[index];
    uct_sep_am_hdr_t *hdr   = UCS_PTR_BYTE_OFFSET(desc, iface->srq.hdr_offset);

    VALGRIND_MAKE_MEM_DEFINED(hdr, length);

    /* Whatever was sent, stay inside the buffer and the table of handlers */
    if (ucs_unlikely(length < sizeof(*hdr))) {
        uct_sep_cqe_handle_short(iface);
        return 1;
    }

    if (ucs_unlikely(hdr->am_id & UCT_SEP_AM_FC_MASK)) {
        return !uct_sep_cqe_receive_fc(iface, hdr, length, qpn) ||
               uct_sep_cqe_invoke_am(iface, desc, hdr,
                                     hdr->am_id & ~UCT_SEP_AM_FC_MASK, length);
    }

    return uct_sep_cqe_invoke_am(iface, desc, hdr, hdr->am_id, length);
}

/* A message was received in its buffer */
static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_handle_recv(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint16_t index = be16toh(cqe->wqe_counter);

    uct_sep_srq_prefetch(&iface->srq, index);
    if (ucs_likely(uct_sep_cqe_deliver(iface, index,
                                       be32toh(cqe->byte_cnt),
                                       be32toh(cqe->sop_drop_qpn) &
                                       UCT_SEP_QPN_MASK))) {
        uct_sep_srq_append(&iface->srq, index);
    } else {
        uct_sep_srq_replace(&iface->srq, index);
    }
}

/* A message was received in the completion; its buffer is as it was, and free
 * before the handler is called */
static UCS_F_ALWAYS_INLINE void
uct_sep_cqe_handle_recv_inline(uct_sep_iface_t *iface,
                               const struct mlx5_cqe64 *cqe, size_t size)
{
    const uct_sep_am_hdr_t *hdr = uct_sep_cqe_data(cqe);
    uint32_t length             = be32toh(cqe->byte_cnt);

    uct_sep_srq_append_be(&iface->srq, cqe->wqe_counter);
    if (ucs_unlikely(length < sizeof(*hdr))) {
        uct_sep_cqe_handle_short(iface);
    } else if (ucs_likely(!(hdr->am_id & UCT_SEP_AM_FC_MASK))) {
        uct_sep_cqe_invoke_am_inline(iface, hdr, hdr->am_id, length, size);
    } else if (uct_sep_cqe_receive_fc(iface, hdr, length,
                                      be32toh(cqe->sop_drop_qpn) &
                                      UCT_SEP_QPN_MASK)) {
        uct_sep_cqe_invoke_am_inline(iface, hdr,
                                     hdr->am_id & ~UCT_SEP_AM_FC_MASK, length,
                                     size);
    }
}

#endif
