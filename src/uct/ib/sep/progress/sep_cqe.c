/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_cqe.inl>
#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/base/sep_rarely.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_dispatch.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_iface.h>
#include <uct/ib/sep/iface/sep_op_done.h>

/*
 * Completions with errors, and those of queues that were taken out of use.
 */

/* What a syndrome means */
static const struct {
    ucs_status_t status;
    const char   *reason;
} uct_sep_syndromes[] = {
    [MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR]        =
        {UCS_ERR_IO_ERROR, "local length error"},
    [MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR]         =
        {UCS_ERR_IO_ERROR, "local QP operation error"},
    [MLX5_CQE_SYNDROME_LOCAL_PROT_ERR]          =
        {UCS_ERR_IO_ERROR, "local protection error"},
    [MLX5_CQE_SYNDROME_WR_FLUSH_ERR]            =
        {UCS_ERR_CANCELED, "flushed because the QP is in error"},
    [MLX5_CQE_SYNDROME_MW_BIND_ERR]             =
        {UCS_ERR_IO_ERROR, "memory window bind error"},
    [MLX5_CQE_SYNDROME_BAD_RESP_ERR]            =
        {UCS_ERR_IO_ERROR, "bad response"},
    [MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR]        =
        {UCS_ERR_IO_ERROR, "local access error"},
    [MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR]    =
        {UCS_ERR_IO_ERROR, "remote: invalid request"},
    [MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR]       =
        {UCS_ERR_CONNECTION_RESET, "remote access error"},
    [MLX5_CQE_SYNDROME_REMOTE_OP_ERR]           =
        {UCS_ERR_CONNECTION_RESET, "remote operation error"},
    [MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] =
        {UCS_ERR_ENDPOINT_TIMEOUT, "transport retry count exceeded"},
    [MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR]       =
        {UCS_ERR_ENDPOINT_TIMEOUT, "receiver-not-ready retry count exceeded"},
    [MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR]      =
        {UCS_ERR_ENDPOINT_TIMEOUT, "remote side aborted"}
};

void uct_sep_cqe_keep_data(uct_sep_txwq_t *txwq, const struct mlx5_cqe64 *cqe,
                           uint16_t end)
{
    uct_sep_op_t *op;

    ucs_queue_for_each(op, &txwq->outstanding, queue) {
        if (op->end == end) {
            uct_sep_op_keep_result(op, cqe);
        }
    }
}

void uct_sep_cqe_handle_unknown(uct_sep_iface_t *iface,
                                const struct mlx5_cqe64 *cqe)
{
    ucs_diag("%s: completion of unknown QP 0x%x", iface->port.name,
             be32toh(cqe->sop_drop_qpn) & UCT_SEP_QPN_MASK);
}

void uct_sep_cqe_handle_short(uct_sep_iface_t *iface)
{
    static uint64_t num_short; /* A guess is enough */

    uct_sep_log_rarely(num_short, diag, "number",
                       "%s: dropped a message without a header",
                       iface->port.name);
}

/* What a message asks for, besides saying that it is the first one of its
 * connection. Behind another one, that is known. */
static uint8_t
uct_sep_cqe_take_mark(uct_sep_iface_t *iface, uint32_t qpn, uint8_t bits)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, qpn);

    if (ucs_unlikely(txwq == NULL)) {
        uct_sep_link_handle_early(iface, qpn);
        txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    }

    return (txwq != NULL) ? uct_sep_fc_take_mark(txwq, bits) : bits;
}

int uct_sep_cqe_apply_fc(uct_sep_iface_t *iface, uint32_t qpn, uint8_t *bits_p)
{
    uct_sep_txwq_t *woken;
    int has_message;

    *bits_p     = uct_sep_cqe_take_mark(iface, qpn, *bits_p);
    has_message = uct_sep_fc_receive(iface, qpn, *bits_p, &woken);
    if (woken != NULL) {
        uct_sep_dispatch_wake(iface, woken);
    }

    return has_message;
}

/* A peer asks for a grant: it sends much */
static void
uct_sep_cqe_report(uct_sep_iface_t *iface, uint32_t qpn, uint8_t bits)
{
    uct_sep_txwq_t *txwq;

    if (uct_sep_eager_is_enabled(iface) &&
        (bits & (UCT_SEP_AM_FC_SOFT_REQ | UCT_SEP_AM_FC_HARD_REQ))) {
        txwq = uct_sep_qp_table_find(&iface->qps, qpn);
        if (txwq != NULL) {
            uct_sep_eager_report(iface, txwq, iface->config.fc.window -
                                              iface->config.fc.soft);
        }
    }
}

int uct_sep_cqe_receive_fc(uct_sep_iface_t *iface, const uct_sep_am_hdr_t *hdr,
                           uint32_t length, uint32_t qpn)
{
    uint8_t bits = hdr->am_id & UCT_SEP_AM_FC_MASK;
    int has_message;

    if (bits == UCT_SEP_AM_RING) {
        uct_sep_progress_eager_control(iface, qpn, hdr, length);
        return 0;
    }

    has_message = uct_sep_cqe_apply_fc(iface, qpn, &bits);
    if (has_message) {
        uct_sep_cqe_report(iface, qpn, bits);
    }

    return has_message;
}

const uct_sep_am_hdr_t *
uct_sep_cqe_imm_hdr(const uct_sep_iface_t *iface,
                    const uct_sep_eager_recv_t *recv)
{
    return (recv->data != NULL) ? recv->data :
           UCS_PTR_BYTE_OFFSET(iface->srq.descs[recv->index],
                               iface->srq.hdr_offset);
}

void uct_sep_cqe_deliver_imm(uct_sep_iface_t *iface,
                             const uct_sep_eager_recv_t *recv, uint8_t am_id)
{
    uct_sep_am_hdr_t *hdr = (void*)uct_sep_cqe_imm_hdr(iface, recv);

    if (recv->data != NULL) {
        uct_sep_cqe_invoke_am_inline(iface, hdr, am_id, recv->length,
                                     UCT_SEP_CQE_MAX_DATA(
                                             UCT_SEP_CQ_STRIDE_128));
    } else if (!uct_sep_cqe_invoke_am(iface, iface->srq.descs[recv->index], hdr,
                                      am_id, recv->length)) {
        iface->srq.ops->replace(&iface->srq, recv->index);
        return;
    }

    iface->srq.ops->append(&iface->srq, recv->index);
}

/* A work request of a retired queue has completed: destroy the queue if that
 * was the last */
static void uct_sep_cqe_drain(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_link_reap_txwq(iface, txwq);
    uct_sep_dispatch_unstall(iface);
}

void uct_sep_cqe_follow_up(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) {
        uct_sep_cqe_drain(iface, txwq);
    } else {
        uct_sep_dispatch_wake(iface, txwq);
    }
}

/* Callbacks that progress may have taken later ones */
static void uct_sep_cqe_release_failed(uct_sep_iface_t *iface,
                                       uct_sep_txwq_t *txwq, uint16_t end)
{
    if ((int16_t)(end - txwq->hw_ci) > 0) {
        uct_sep_txwq_release(iface, txwq, end);
    }
}

void uct_sep_cqe_handle_send_error(uct_sep_iface_t *iface,
                                   uct_sep_txwq_t *txwq, uint16_t pi,
                                   uint16_t end,
                                   const uct_sep_cqe_error_t *error)
{
    ucs_log_level_t level;

    if (!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) &&
        uct_sep_link_note_error(txwq, pi)) {
        /* Everything before it has succeeded: it is the queue's first error.
         * After that, callbacks of what is cancelled may get here */
        uct_sep_txwq_finish(iface, txwq, &uct_sep_op_no_cqe, pi);
    }

    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) { /* Cancelled meanwhile? */
        uct_sep_cqe_release_failed(iface, txwq, end);
        uct_sep_cqe_drain(iface, txwq);
        return;
    }

    if (uct_sep_link_take_error(iface, txwq, end)) {
        uct_sep_dispatch_unstall(iface);
        return;
    }

    level = (error->status == UCS_ERR_CANCELED) ? UCS_LOG_LEVEL_DEBUG :
            (error->status == UCS_ERR_IO_ERROR) ? UCS_LOG_LEVEL_ERROR :
                                                  iface->super.config
                                                          .failure_level;
    ucs_log(level, "%s: QP 0x%x: %s (syndrome 0x%x vendor 0x%x) of work "
            "request %u%s", iface->port.name, txwq->qpn, error->reason,
            error->syndrome, error->vendor, pi,
            error->is_size ?
            ". Is UCX_SEP_SEG_SIZE the same in all processes?" : "");

    uct_sep_cqe_release_failed(iface, txwq, end);
    /* Nobody has cancelled it: it was flushed because it failed otherwise, as
     * a responder for instance. A flush must not take that for success. */
    uct_sep_link_fail(iface, txwq,
                      (error->status == UCS_ERR_CANCELED) ?
                      UCS_ERR_CONNECTION_RESET : error->status);
}

void uct_sep_cqe_handle_recv_error(uct_sep_iface_t *iface, uint32_t qpn,
                                   const uct_sep_cqe_error_t *error)
{
    uct_sep_txwq_t *txwq;

    if (error->status == UCS_ERR_CANCELED) {
        return;
    }

    if (error->is_abort && ((error->vendor == UCT_SEP_VENDOR_SYND_ODP) ||
                            (error->vendor == UCT_SEP_VENDOR_SYND_PSN))) {
        ucs_debug("%s: QP 0x%x: receive aborted (vendor 0x%x), its message is "
                  "repeated", iface->port.name, qpn, error->vendor);
        return;
    }

    ucs_diag("%s: QP 0x%x: receive failed: %s (syndrome 0x%x vendor 0x%x)%s",
             iface->port.name, qpn, error->reason, error->syndrome,
             error->vendor,
             error->is_size ?
             ". Is UCX_SEP_SEG_SIZE the same in all processes?" : "");

    txwq = uct_sep_qp_table_find(&iface->qps, qpn);
    if ((txwq != NULL) && !(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        uct_sep_link_fail(iface, txwq, UCS_ERR_CONNECTION_RESET);
    }
}

static void uct_sep_cqe_handle_req_err(uct_sep_iface_t *iface,
                                       const struct mlx5_err_cqe *cqe,
                                       uct_sep_cqe_error_t *error)
{
    uint32_t qpn         = be32toh(cqe->s_wqe_opcode_qpn) & UCT_SEP_QPN_MASK;
    uint16_t pi          = be16toh(cqe->wqe_counter);
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, qpn);

    if (txwq == NULL) {
        ucs_diag("%s: error completion of unknown QP 0x%x", iface->port.name,
                 qpn);
        return;
    }

    error->is_size = (cqe->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    uct_sep_cqe_handle_send_error(iface, txwq, pi,
                                  uct_sep_txwq_wqe_end(txwq, pi), error);
}

static void uct_sep_cqe_handle_resp_err(uct_sep_iface_t *iface,
                                        const struct mlx5_err_cqe *cqe,
                                        uct_sep_cqe_error_t *error)
{
    /* The buffer was taken from the queue, and can be used again */
    uct_sep_srq_append(&iface->srq, be16toh(cqe->wqe_counter));

    error->is_size  = (cqe->syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    error->is_abort = (cqe->syndrome == MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
    uct_sep_cqe_handle_recv_error(iface,
                                  be32toh(cqe->s_wqe_opcode_qpn) &
                                  UCT_SEP_QPN_MASK, error);
}

static void
uct_sep_cqe_handle_imm(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uct_sep_eager_recv_t recv = {
        .qpn    = be32toh(cqe->sop_drop_qpn) & UCT_SEP_QPN_MASK,
        .imm    = be32toh(cqe->imm_inval_pkey),
        .length = be32toh(cqe->byte_cnt),
        .index  = be16toh(cqe->wqe_counter),
        .data   = uct_sep_cqe_has_data(cqe) ? uct_sep_cqe_data(cqe) : NULL
    };

    uct_sep_progress_eager_receive(iface, &recv);
}

void uct_sep_cqe_handle_other(uct_sep_iface_t *iface,
                              const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err_cqe = (const void*)cqe;
    unsigned opcode                    = cqe->op_own >> 4;
    uct_sep_cqe_error_t error;

    error.status   = UCS_ERR_IO_ERROR;
    error.reason   = "unknown error";
    error.syndrome = err_cqe->syndrome;
    error.vendor   = err_cqe->vendor_err_synd;
    if ((error.syndrome < ucs_static_array_size(uct_sep_syndromes)) &&
        (uct_sep_syndromes[error.syndrome].reason != NULL)) {
        error.status = uct_sep_syndromes[error.syndrome].status;
        error.reason = uct_sep_syndromes[error.syndrome].reason;
    }

    switch (opcode) {
    case MLX5_CQE_RESP_SEND_IMM:
        uct_sep_cqe_handle_imm(iface, cqe);
        break;
    case MLX5_CQE_REQ_ERR:
        uct_sep_cqe_handle_req_err(iface, err_cqe, &error);
        break;
    case MLX5_CQE_RESP_ERR:
        uct_sep_cqe_handle_resp_err(iface, err_cqe, &error);
        break;
    default:
        ucs_error("%s: completion of unexpected type %u on CQ 0x%x",
                  iface->port.name, opcode, iface->cq.cqn);
        break;
    }
}
