/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_progress.inl
 *
 * Poll the completion queue of an interface. Template: each function has an
 * argument rx, a uct_sep_rx_mode_t, which is a constant where sep_progress.c
 * generates the functions of a mode: where short messages arrive, and how large
 * completions are.
 *
 * Receives and sends come through the same queue: an idle call looks at one
 * byte. A call that finds one completion, as a waiting caller usually does,
 * goes without the loop.
 */

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/progress/sep_cqe.inl>

#include <ucs/sys/math.h>


/* Handles what is there, from a completion on, up to limits of receives and
 * sends */
typedef unsigned (*uct_sep_progress_loop_func_t)(uct_sep_iface_t *iface,
                                                 const struct mlx5_cqe64 *cqe,
                                                 unsigned rx_left,
                                                 unsigned tx_left);


/* Handles the first completion of a call, and what else is there */
typedef unsigned (*uct_sep_progress_first_func_t)(uct_sep_iface_t *iface,
                                                  const struct mlx5_cqe64 *cqe);


/* Finishes the operation of a completion, given by its place in a queue, and
 * handles what else is there */
typedef unsigned (*uct_sep_progress_finish_func_t)(uct_sep_iface_t *iface,
                                                   const struct mlx5_cqe64 *cqe,
                                                   ucs_queue_elem_t *elem);


/* How often to look whether messages pile up, in completions */
#define UCT_SEP_PROGRESS_BURST  16


/* After receives: give the device their buffers back, or new ones */
static UCS_F_ALWAYS_INLINE void
uct_sep_progress_return_buffers(uct_sep_iface_t *iface)
{
    if (ucs_unlikely(uct_sep_srq_is_due(&iface->srq))) {
        uct_sep_srq_refill(&iface->srq);
    }
}

static UCS_F_ALWAYS_INLINE void
uct_sep_progress_pop(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                     uct_sep_rx_mode_t rx)
{
    uct_sep_cq_pop(&iface->cq, cqe, uct_sep_rx_mode_stride(rx));
}

/* More messages have come than one call handles: add buffers if they have used
 * up half of the queue. Of a burst that has used up a short one, some may have
 * been handled before anybody looks. */
static UCS_F_NOINLINE void uct_sep_progress_grow_srq(uct_sep_iface_t *iface)
{
    unsigned filled = uct_sep_srq_num_filled(&iface->srq);
    unsigned burst  = (filled > UCT_SEP_PROGRESS_BURST) ?
                      ucs_min(filled / 2, filled - UCT_SEP_PROGRESS_BURST) : 1;

    if ((filled < iface->config.rx_queue_len) &&
        uct_sep_cq_has(&iface->cq, burst)) {
        uct_sep_srq_fill(&iface->srq, ucs_min(2 * filled,
                                              iface->config.rx_queue_len));
        ucs_debug("%s: receive queue has %u buffers", iface->port.name,
                  uct_sep_srq_num_filled(&iface->srq));
    }
}

/* Look for a burst where each call handles one message: there is one only if it
 * covers one of these places */
static UCS_F_ALWAYS_INLINE void
uct_sep_progress_check_burst(uct_sep_iface_t *iface, uct_sep_rx_mode_t rx)
{
    const size_t size = uct_sep_rx_mode_stride(rx) * sizeof(*iface->cq.next);

    if (ucs_unlikely(((uintptr_t)iface->cq.next %
                      (UCT_SEP_PROGRESS_BURST * size)) < size)) {
        uct_sep_progress_grow_srq(iface);
    }
}

/* Handle completions up to what is left of the limits, at least one of each */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_loop(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                      unsigned rx_left, unsigned tx_left, uct_sep_rx_mode_t rx)
{
    unsigned opcode;

    do {
        /* A callback of the completion before this has progressed, and left a
         * message that comes first */
        if (ucs_unlikely(iface->eager.is_held)) {
            break;
        }

        /* Before any callback, which may progress as well */
        uct_sep_progress_pop(iface, cqe, rx);

        opcode = cqe->op_own >> 4;
        if (ucs_likely(opcode == MLX5_CQE_RESP_SEND)) {
            if ((rx != UCT_SEP_RX_MODE_BUF) && uct_sep_cqe_has_data(cqe)) {
                uct_sep_cqe_handle_recv_inline(iface, cqe,
                                               uct_sep_rx_mode_data(rx));
            } else {
                uct_sep_cqe_handle_recv(iface, cqe);
            }
            --rx_left;
        } else {
            if (ucs_likely(opcode == MLX5_CQE_REQ)) {
                uct_sep_cqe_handle_send(iface, cqe);
            } else {
                uct_sep_cqe_handle_other(iface, cqe);
                if (opcode == MLX5_CQE_RESP_SEND_IMM) {
                    /* It may be that nothing behind it can be handled */
                    --rx_left;
                    break;
                }
            }
            --tx_left;
        }

        if (rx_left == 0) {
            uct_sep_progress_grow_srq(iface);
            break;
        }
        if (tx_left == 0) {
            break;
        }
        cqe = uct_sep_cq_peek(&iface->cq);
    } while (cqe != NULL);

    uct_sep_progress_return_buffers(iface);
    return iface->config.rx_max_poll + iface->config.tx_max_poll - rx_left -
           tx_left;
}

/*
 * The first completion of a call. What is unusual is left to the loop, before
 * anything is changed; all calls but those of users are tail calls. So the
 * usual cases save no registers that they don't need.
 */

static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_loop_full(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                           uct_sep_progress_loop_func_t loop)
{
    return loop(iface, cqe, iface->config.rx_max_poll,
                iface->config.tx_max_poll);
}

/* After a send that was the first, look for others at a place */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_after_send(uct_sep_iface_t *iface, struct mlx5_cqe64 *next,
                            uct_sep_progress_loop_func_t loop)
{
    const struct mlx5_cqe64 *cqe = uct_sep_cq_peek_at(&iface->cq, next);

    if (ucs_likely(cqe == NULL) || (iface->config.tx_max_poll == 1)) {
        return 1;
    }

    return loop(iface, cqe, iface->config.rx_max_poll,
                iface->config.tx_max_poll - 1);
}

/* A send that has completed an operation, which is not in its queue any more */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_finish(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                        ucs_queue_elem_t *elem,
                        uct_sep_progress_loop_func_t loop)
{
    uct_sep_op(elem)->handler(iface, cqe, elem, UCS_OK);
    return uct_sep_progress_after_send(iface, iface->cq.next, loop);
}

/* A send. Nobody waits for its credits, so these come back at once: nobody can
 * be overtaken by what the user's callback sends. After that there is nothing
 * to be done with the send queue. */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_first_send(uct_sep_iface_t *iface,
                            const struct mlx5_cqe64 *cqe,
                            uct_sep_progress_loop_func_t loop,
                            uct_sep_progress_finish_func_t finish,
                            uct_sep_rx_mode_t rx)
{
    struct mlx5_cqe64 *next = uct_sep_cq_next(cqe, uct_sep_rx_mode_stride(rx));
    ucs_queue_elem_t *elem;
    uct_sep_txwq_t *txwq;
    uint16_t end;

    txwq = uct_sep_qp_table_find_first(&iface->qps, UCT_SEP_QP_KEY_CQE(cqe));
    if (ucs_unlikely(txwq == NULL) ||
        ucs_unlikely(uct_sep_cqe_needs_follow_up(iface, txwq)) ||
        ucs_unlikely(uct_sep_cq_is_first(next, uct_sep_rx_mode_stride(rx)))) {
        return uct_sep_progress_loop_full(iface, cqe, loop);
    }

    end = be16toh(cqe->wqe_counter) + 1;
    if (ucs_queue_is_empty(&txwq->outstanding)) {
        uct_sep_cq_set_next(&iface->cq, next);
        uct_sep_txwq_release(iface, txwq, uct_sep_txwq_wqe_end(txwq, end - 1));
        return uct_sep_progress_after_send(iface, next, loop);
    }

    /* Most work requests have one BB, and most that have completed an
     * operation. If the first one ends behind this BB, it is the only one to be
     * finished: earlier ones end before it, later ones further on. Only a flush
     * may end at the same place. */
    elem = txwq->outstanding.head;
    if (ucs_unlikely(uct_sep_op(elem)->end != end)) {
        return uct_sep_progress_loop_full(iface, cqe, loop);
    }

    if (ucs_unlikely(!uct_sep_txwq_pull_only(txwq, elem, end))) {
        return uct_sep_progress_loop_full(iface, cqe, loop);
    }

    uct_sep_cq_set_next(&iface->cq, next);
    uct_sep_txwq_release(iface, txwq, end);
    return finish(iface, cqe, elem);
}

/* After a receive that was the first */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_after_recv(uct_sep_iface_t *iface,
                            uct_sep_progress_loop_func_t loop,
                            uct_sep_rx_mode_t rx)
{
    const struct mlx5_cqe64 *cqe = uct_sep_cq_peek(&iface->cq);

    if (ucs_unlikely(cqe != NULL)) {
        if (iface->config.rx_max_poll > 1) {
            return loop(iface, cqe, iface->config.rx_max_poll - 1,
                        iface->config.tx_max_poll);
        }
        uct_sep_progress_check_burst(iface, rx);
    }

    uct_sep_progress_return_buffers(iface);
    return 1;
}

/* A receive whose message is in the completion */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_first_inline(uct_sep_iface_t *iface,
                              const struct mlx5_cqe64 *cqe,
                              uct_sep_progress_loop_func_t loop,
                              uct_sep_rx_mode_t rx)
{
    struct mlx5_cqe64 *next = uct_sep_cq_next(cqe, uct_sep_rx_mode_stride(rx));
    /* The smaller completions have room for the shorter data only */
    const uct_sep_am_hdr_t *hdr = (rx == UCT_SEP_RX_MODE_CQE32) ?
                                  (const void*)cqe : uct_sep_cqe_data(cqe);
    uint32_t length             = be32toh(cqe->byte_cnt);

    if (ucs_unlikely(length < sizeof(*hdr)) ||
        ucs_unlikely(hdr->am_id & UCT_SEP_AM_FC_MASK) ||
        ucs_unlikely(uct_sep_cq_is_first(next, uct_sep_rx_mode_stride(rx)))) {
        return uct_sep_progress_loop_full(iface, cqe, loop);
    }

    uct_sep_cq_set_next(&iface->cq, next);
    uct_sep_srq_append_be(&iface->srq, cqe->wqe_counter);
    uct_sep_cqe_invoke_am_inline(iface, hdr, hdr->am_id, length,
                                 uct_sep_rx_mode_data(rx));
    return uct_sep_progress_after_recv(iface, loop, rx);
}

/* A receive in a buffer, or something unusual */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_first_recv(uct_sep_iface_t *iface,
                            const struct mlx5_cqe64 *cqe,
                            uct_sep_progress_loop_func_t loop,
                            uct_sep_rx_mode_t rx)
{
    if (ucs_unlikely((cqe->op_own >> 4) != MLX5_CQE_RESP_SEND)) {
        return uct_sep_progress_loop_full(iface, cqe, loop);
    }

    uct_sep_progress_pop(iface, cqe, rx);
    uct_sep_cqe_handle_recv(iface, cqe);
    return uct_sep_progress_after_recv(iface, loop, rx);
}

/* Which it is, if there is any */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_poll(uct_iface_h tl_iface,
                      uct_sep_progress_first_func_t first_send,
                      uct_sep_progress_first_func_t first_inline,
                      uct_sep_progress_first_func_t first_recv,
                      uct_sep_rx_mode_t rx)
{
    uct_sep_iface_t *iface       = ucs_derived_of(tl_iface, uct_sep_iface_t);
    const struct mlx5_cqe64 *cqe = iface->cq.next;
    uint8_t op_own               = cqe->op_own ^ iface->cq.owner;

    if (ucs_likely(op_own & MLX5_CQE_OWNER_MASK)) {
        return 0;
    }

    /* As in uct_sep_cq_peek_at() */
    uct_sep_fence_from_device();

    UCS_STATIC_ASSERT(MLX5_CQE_REQ == 0);
    if (op_own < UCS_BIT(4)) {
        return first_send(iface, cqe);
    }

    if ((rx != UCT_SEP_RX_MODE_BUF) &&
        (op_own & (MLX5_INLINE_SCATTER_32 | MLX5_INLINE_SCATTER_64))) {
        return first_inline(iface, cqe);
    }

    return first_recv(iface, cqe);
}
