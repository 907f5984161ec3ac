/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_cqe.inl>
#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/verbs/sep_verbs.h>
#include <uct/ib/sep/verbs/sep_verbs_srq.inl>

#include <ucs/sys/math.h>

/*
 * Completions, polled through libibverbs.
 */

static ucs_status_t uct_sep_verbs_wc_status(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
        return UCS_ERR_CANCELED;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
        return UCS_ERR_CONNECTION_RESET;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

static void
uct_sep_verbs_handle_error(uct_sep_iface_t *iface, const struct ibv_wc *wc)
{
    uct_sep_cqe_error_t error = {
        .status   = uct_sep_verbs_wc_status(wc->status),
        .reason   = ibv_wc_status_str(wc->status),
        .syndrome = wc->status,
        .vendor   = wc->vendor_err
    };
    uct_sep_txwq_t *txwq;
    uint16_t end;

    /* An error completion has no opcode */
    if (wc->wr_id & UCT_SEP_VERBS_WR_RECV) {
        uct_sep_verbs_srq_append(&iface->srq, (uint16_t)wc->wr_id);
        error.is_size  = (wc->status == IBV_WC_LOC_LEN_ERR);
        error.is_abort = (wc->status == IBV_WC_REM_ABORT_ERR);
        uct_sep_cqe_handle_recv_error(iface, wc->qp_num, &error);
        return;
    }

    txwq = uct_sep_qp_table_find(&iface->qps, wc->qp_num);
    if (txwq == NULL) {
        ucs_diag("%s: error completion of unknown QP 0x%x", iface->port.name,
                 wc->qp_num);
        return;
    }

    end           = (uint16_t)wc->wr_id;
    error.is_size = (wc->status == IBV_WC_REM_INV_REQ_ERR);
    uct_sep_cqe_handle_send_error(iface, txwq, end - 1, end, &error);
}

static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_handle_recv(uct_sep_iface_t *iface, const struct ibv_wc *wc)
{
    uint16_t index = (uint16_t)wc->wr_id;

    if (ucs_likely(uct_sep_cqe_deliver(iface, index, wc->byte_len,
                                       wc->qp_num))) {
        uct_sep_verbs_srq_append(&iface->srq, index);
    } else {
        uct_sep_verbs_srq_replace(&iface->srq, index);
    }
}

static void
uct_sep_verbs_handle_imm(uct_sep_iface_t *iface, const struct ibv_wc *wc)
{
    uct_sep_eager_recv_t recv = {
        .qpn    = wc->qp_num,
        .imm    = be32toh(wc->imm_data),
        .length = wc->byte_len,
        .index  = (uint16_t)wc->wr_id
    };

    uct_sep_progress_eager_receive(iface, &recv);
}

static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_handle_send(uct_sep_iface_t *iface, const struct ibv_wc *wc)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, wc->qp_num);

    if (ucs_unlikely(txwq == NULL)) {
        ucs_diag("%s: completion of unknown QP 0x%x", iface->port.name,
                 wc->qp_num);
        return;
    }

    /* If the result was in the completion, libmlx5 has copied it */
    uct_sep_cqe_handle_sent(iface, txwq, &uct_sep_op_no_cqe,
                            (uint16_t)wc->wr_id);
}

/* Append what is in a queue to the completions to be handled */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_poll_cq(uct_sep_iface_t *iface, struct ibv_cq *cq)
{
    uct_sep_verbs_t *verbs = iface->verbs;
    int ret;

    /* Their kinds are not known beforehand. What exceeds the limit of receives
     * is left to the next call. */
    ret = ibv_poll_cq(cq, iface->config.tx_max_poll,
                      verbs->wc + verbs->count);
    if (ucs_unlikely(ret < 0)) {
        ucs_fatal("%s: ibv_poll_cq() failed: %d", iface->port.name, ret);
    }
    verbs->count += ret;
}

unsigned uct_sep_verbs_poll(uct_sep_iface_t *iface)
{
    uct_sep_verbs_t *verbs = iface->verbs;

    if (verbs->next == verbs->count) {
        verbs->next  = 0;
        verbs->count = 0;
        uct_sep_verbs_poll_cq(iface, iface->cq.cq);
        verbs->num_polled += verbs->count;
        if (iface->own_cq.cq != NULL) {
            uct_sep_verbs_poll_cq(iface, iface->own_cq.cq);
        }
    }

    return verbs->count - verbs->next;
}

unsigned uct_sep_verbs_progress(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_verbs_t *verbs = iface->verbs;
    unsigned rx_left       = iface->config.rx_max_poll;
    unsigned count         = 0;
    struct ibv_wc wc;

    if (uct_sep_verbs_poll(iface) == 0) {
        return 0;
    }

    do {
        /* Copied and removed before any callback, which may progress as well */
        wc = verbs->wc[verbs->next++];
        if (ucs_unlikely(wc.status != IBV_WC_SUCCESS)) {
            uct_sep_verbs_handle_error(iface, &wc);
        } else if (wc.opcode == IBV_WC_RECV) {
            --rx_left;
            if (ucs_unlikely(wc.wc_flags & IBV_WC_WITH_IMM)) {
                uct_sep_verbs_handle_imm(iface, &wc);
            } else {
                uct_sep_verbs_handle_recv(iface, &wc);
            }
        } else {
            uct_sep_verbs_handle_send(iface, &wc);
        }
        ++count;
        /* Also if a callback has progressed, and left a message that has to
         * wait: nothing behind it can be handled */
    } while ((verbs->next < verbs->count) && (rx_left > 0) &&
             !iface->eager.is_held);

    /* The number left is unknown: grow by what one poll has found */
    if (ucs_unlikely((verbs->next == verbs->count) &&
                     (verbs->count >= iface->config.tx_max_poll) &&
                     (uct_sep_srq_num_filled(&iface->srq) <
                      iface->config.rx_queue_len))) {
        uct_sep_srq_fill(&iface->srq,
                         ucs_min(uct_sep_srq_num_filled(&iface->srq) +
                                 verbs->count, iface->config.rx_queue_len));
    }

    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    } else {
        uct_sep_verbs_srq_publish(&iface->srq);
    }
    return count;
}
