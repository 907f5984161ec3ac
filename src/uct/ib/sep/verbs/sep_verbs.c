/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/verbs/sep_verbs.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/stubs.h>
#include <string.h>

/*
 * Objects of the data path through libibverbs.
 */

static ucs_status_t uct_sep_verbs_init(uct_sep_iface_t *iface,
                                       const uct_sep_iface_config_t *config)
{
    if (config->tx.post != UCT_SEP_TX_POST_AUTO) {
        ucs_error("%s: UCX_SEP_TX_POST has no effect with UCX_SEP_API=verbs, "
                  "where libmlx5 decides: unset it, or set UCX_SEP_API=dv",
                  iface->port.name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->tx.postlist > 1) {
        ucs_error("%s: UCX_SEP_TX_POSTLIST has no effect with "
                  "UCX_SEP_API=verbs: unset it, or set UCX_SEP_API=dv",
                  iface->port.name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->cq_sharing > 1) {
        ucs_error("%s: completion queues can't be shared with "
                  "UCX_SEP_API=verbs: set UCX_SEP_CQ_SHARING=1, or "
                  "UCX_SEP_API=dv", iface->port.name);
        return UCS_ERR_UNSUPPORTED;
    }

    iface->verbs = ucs_calloc(1, sizeof(*iface->verbs), "sep_verbs");
    if (iface->verbs == NULL) {
        ucs_error("%s: no memory for an interface with UCX_SEP_API=verbs",
                  iface->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    return UCS_OK;
}

static void uct_sep_verbs_cleanup(uct_sep_iface_t *iface)
{
    ucs_free(iface->verbs);
}

static ucs_status_t
uct_sep_verbs_cq_create(uct_sep_cq_t *cq, struct ibv_context *context,
                        unsigned length, const char *name)
{
    cq->cq     = ibv_create_cq(context, length, NULL, cq->channel, 0);
    cq->length = length;
    return (cq->cq == NULL) ? UCS_ERR_NO_RESOURCE : UCS_OK;
}

static struct ibv_qp *
uct_sep_verbs_qp_create(const uct_sep_iface_t *iface, struct ibv_pd *pd,
                        struct ibv_qp_init_attr_ex *attr)
{
    attr->cap.max_send_wr     = ucs_roundup_pow2(attr->cap.max_send_wr);
    attr->cap.max_send_sge    = UCT_SEP_VERBS_MAX_SGE;
    attr->cap.max_inline_data = UCT_SEP_VERBS_MAX_INLINE;
    attr->send_ops_flags      = IBV_QP_EX_WITH_SEND |
                                IBV_QP_EX_WITH_RDMA_WRITE |
                                IBV_QP_EX_WITH_RDMA_READ |
                                IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    return ibv_create_qp_ex(pd->context, attr);
}

static struct ibv_qp *
uct_sep_verbs_responder_create(const uct_sep_iface_t *iface, struct ibv_pd *pd,
                               struct ibv_qp_init_attr_ex *attr)
{
    return ibv_create_qp_ex(pd->context, attr);
}

static ucs_status_t
uct_sep_verbs_qp_map(uct_sep_iface_t *iface, struct ibv_qp *qp,
                     uct_sep_uuar_use_t use, uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_mem_t mem = {};
    ucs_status_t status;

    mem.bb_count   = ucs_roundup_pow2(iface->config.tx_queue_len);
    mem.qpn        = qp->qp_num;
    mem.moderation = iface->config.moderation;
    status         = uct_sep_txwq_init(txwq, &mem);
    if (status == UCS_OK) {
        txwq->qp_ex = ibv_qp_to_qp_ex(qp);
    }

    return status;
}

static ucs_status_t uct_sep_verbs_notify(uct_sep_iface_t *iface,
                                         struct ibv_cq *cq, int solicited)
{
    int ret;

    ret = ibv_req_notify_cq(cq, solicited);
    if (ret != 0) {
        ucs_error("%s: ibv_req_notify_cq() failed: %s", iface->port.name,
                  strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    /* Verbs does not promise an event for what arrived between the caller's
     * poll and this */
    return (uct_sep_verbs_poll(iface) > 0) ? UCS_ERR_BUSY : UCS_OK;
}

static ucs_status_t
uct_sep_verbs_cq_arm(uct_sep_iface_t *iface, int solicited)
{
    return (uct_sep_verbs_poll(iface) > 0) ? UCS_ERR_BUSY :
           uct_sep_verbs_notify(iface, iface->cq.cq, solicited);
}

static ucs_status_t
uct_sep_verbs_own_cq_arm(uct_sep_iface_t *iface, int is_wanted)
{
    if (uct_sep_verbs_poll(iface) > 0) {
        return UCS_ERR_BUSY;
    }

    return is_wanted ? uct_sep_verbs_notify(iface, iface->own_cq.cq, 0) :
                       UCS_OK;
}

void uct_sep_verbs_post_failed(const uct_sep_iface_t *iface,
                               const uct_sep_txwq_t *txwq, int error)
{
    ucs_fatal("%s: posting to QP 0x%x failed: %s (index %u, %d credits)",
              iface->port.name, txwq->qpn, strerror(error), txwq->sw_pi,
              txwq->credits);
}

static uct_iface_progress_func_t
uct_sep_verbs_progress_func(const uct_sep_iface_t *iface)
{
    return uct_sep_verbs_progress;
}

static int uct_sep_verbs_cq_is_empty(uct_sep_iface_t *iface)
{
    return uct_sep_verbs_poll(iface) == 0;
}

const uct_sep_api_t uct_sep_api_verbs = {
    .ops_mode         = UCT_SEP_OPS_VERBS,
    .progress         = uct_sep_verbs_progress_func,
    .init             = uct_sep_verbs_init,
    .cleanup          = uct_sep_verbs_cleanup,
    .cq_create        = uct_sep_verbs_cq_create,
    .srq_ops          = &uct_sep_verbs_srq_ops,
    .qp_create        = uct_sep_verbs_qp_create,
    .responder_create = uct_sep_verbs_responder_create,
    .qp_map           = uct_sep_verbs_qp_map,
    .txwq_check       = (void (*)(uct_sep_iface_t*, const uct_sep_txwq_t*))
                        ucs_empty_function,
    .cq_is_empty      = uct_sep_verbs_cq_is_empty,
    .cq_arm           = uct_sep_verbs_cq_arm,
    .own_cq_arm       = uct_sep_verbs_own_cq_arm
};
