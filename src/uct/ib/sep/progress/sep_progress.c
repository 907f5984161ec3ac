/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_progress.h"
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/progress/sep_cqe.inl>

#include <ucs/sys/math.h>

/*
 * Receives and sends come through the same queue: an idle call looks at one
 * byte. A call that finds one completion, as a waiting caller usually does,
 * goes without the loop.
 */

/* How often to look whether messages pile up, in completions */
#define UCT_SEP_PROGRESS_BURST  16

/* After receives: give the device their buffers back, or new ones */
static UCS_F_ALWAYS_INLINE void
uct_sep_progress_return_buffers(uct_sep_iface_t *iface)
{
    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    } else {
        uct_sep_srq_publish(&iface->srq);
    }
}

/* More messages have come than one call handles: add buffers if they have used
 * up half of the queue */
static UCS_F_NOINLINE void
uct_sep_progress_grow_srq(uct_sep_iface_t *iface)
{
    unsigned filled = uct_sep_srq_num_filled(&iface->srq);

    if ((filled < iface->config.rx_queue_len) &&
        uct_sep_cq_has(&iface->cq, ucs_max(filled / 2, 1))) {
        uct_sep_srq_fill(&iface->srq, ucs_min(2 * filled,
                                              iface->config.rx_queue_len));
        ucs_debug("%s: receive queue has %u buffers", iface->port.name,
                  uct_sep_srq_num_filled(&iface->srq));
    }
}

/* The same where each call handles one message: there is a burst only if it
 * covers one of these places */
static UCS_F_ALWAYS_INLINE void
uct_sep_progress_check_burst(uct_sep_iface_t *iface)
{
    if (ucs_unlikely(((uintptr_t)iface->cq.next %
                      (UCT_SEP_PROGRESS_BURST * sizeof(*iface->cq.next))) ==
                     0)) {
        uct_sep_progress_grow_srq(iface);
    }
}

/* Handle completions up to what is left of the limits, at least one of each */
static UCS_F_NOINLINE unsigned
uct_sep_progress_loop(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                      unsigned rx_left, unsigned tx_left)
{
    unsigned opcode;

    do {
        /* Before any callback, which may progress as well */
        uct_sep_cq_pop(&iface->cq);

        opcode = cqe->op_own >> 4;
        if (ucs_likely(opcode == MLX5_CQE_RESP_SEND)) {
            uct_sep_cqe_handle_recv(iface, cqe);
            --rx_left;
        } else {
            if (ucs_likely(opcode == MLX5_CQE_REQ)) {
                uct_sep_cqe_handle_send(iface, cqe);
            } else {
                uct_sep_cqe_handle_other(iface, cqe);
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

/* The same when nothing was handled before in this call */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_loop_full(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    return uct_sep_progress_loop(iface, cqe, iface->config.rx_max_poll,
                                 iface->config.tx_max_poll);
}

/* After the first completion of a call, which was a send, look for others */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_after_send(uct_sep_iface_t *iface)
{
    const struct mlx5_cqe64 *cqe = uct_sep_cq_peek(&iface->cq);

    if (ucs_likely(cqe == NULL) || (iface->config.tx_max_poll == 1)) {
        return 1;
    }

    return uct_sep_progress_loop(iface, cqe, iface->config.rx_max_poll,
                                 iface->config.tx_max_poll - 1);
}

/* The first completion of a call was a send whose credits somebody waits for,
 * or of a queue that is being drained */
static UCS_F_NOINLINE unsigned
uct_sep_progress_follow_up(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_cqe_follow_up(iface, txwq);
    return uct_sep_progress_after_send(iface);
}

/* The first completion of a call is a send that finishes operations */
static UCS_F_NOINLINE unsigned
uct_sep_progress_finish_ops(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint16_t end)
{
    uct_sep_txwq_finish_non_empty(iface, txwq, end);
    uct_sep_cqe_release_send(iface, txwq, end);
    return uct_sep_progress_after_send(iface);
}

/* The first completion of a call is a receive */
static UCS_F_NOINLINE unsigned
uct_sep_progress_first_recv(uct_sep_iface_t *iface,
                            const struct mlx5_cqe64 *cqe)
{
    uct_sep_cq_pop(&iface->cq);
    uct_sep_cqe_handle_recv(iface, cqe);
    cqe = uct_sep_cq_peek(&iface->cq);
    if (cqe != NULL) {
        if (iface->config.rx_max_poll > 1) {
            return uct_sep_progress_loop(iface, cqe,
                                         iface->config.rx_max_poll - 1,
                                         iface->config.tx_max_poll);
        }
        uct_sep_progress_check_burst(iface);
    }

    uct_sep_progress_return_buffers(iface);
    return 1;
}

/* The first completion of a call */
static UCS_F_NOINLINE unsigned
uct_sep_progress_first(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned opcode = cqe->op_own >> 4;
    uct_sep_txwq_t *txwq;
    uint16_t end;

    if (opcode != MLX5_CQE_REQ) {
        return (opcode == MLX5_CQE_RESP_SEND) ?
               uct_sep_progress_first_recv(iface, cqe) :
               uct_sep_progress_loop_full(iface, cqe);
    }

    txwq = uct_sep_cqe_txwq(iface, cqe);
    if (ucs_unlikely(txwq == NULL)) {
        return uct_sep_progress_loop_full(iface, cqe);
    }

    /* All calls below are tail calls, so that no registers are saved */
    end = uct_sep_txwq_wqe_end(txwq, be16toh(cqe->wqe_counter));
    uct_sep_cq_pop(&iface->cq);
    if (!ucs_queue_is_empty(&txwq->outstanding)) {
        return uct_sep_progress_finish_ops(iface, txwq, end);
    }

    uct_sep_txwq_release(iface, txwq, end);
    if (ucs_unlikely(uct_sep_cqe_needs_follow_up(iface, txwq))) {
        return uct_sep_progress_follow_up(iface, txwq);
    }

    return uct_sep_progress_after_send(iface);
}

unsigned uct_sep_progress(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    struct mlx5_cqe64 *cqe;

    cqe = uct_sep_cq_peek(&iface->cq);
    if (ucs_likely(cqe == NULL)) {
        return 0;
    }

    return uct_sep_progress_first(iface, cqe);
}
