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
        ucs_error("%s: UCX_SEP_TX_POST has no effect with UCX_SEP_API=%s, "
                  "where libmlx5 decides: unset it, or set UCX_SEP_API=dv",
                  iface->port.name, iface->api->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->tx.postlist > 1) {
        ucs_error("%s: UCX_SEP_TX_POSTLIST has no effect with "
                  "UCX_SEP_API=%s: unset it, or set UCX_SEP_API=dv",
                  iface->port.name, iface->api->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->cq_sharing > 1) {
        ucs_error("%s: completion queues can't be shared with "
                  "UCX_SEP_API=%s: set UCX_SEP_CQ_SHARING=1, or "
                  "UCX_SEP_API=dv", iface->port.name, iface->api->name);
        return UCS_ERR_UNSUPPORTED;
    }

    iface->verbs = ucs_calloc(1, sizeof(*iface->verbs), "sep_verbs");
    if (iface->verbs == NULL) {
        ucs_error("%s: no memory for an interface with UCX_SEP_API=%s",
                  iface->port.name, iface->api->name);
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
    return ibv_create_qp_ex(pd->context, attr);
}

static struct ibv_qp *
uct_sep_verbs_qp_create_wr(const uct_sep_iface_t *iface, struct ibv_pd *pd,
                           struct ibv_qp_init_attr_ex *attr)
{
    attr->comp_mask     |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr->send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                           IBV_QP_EX_WITH_RDMA_READ |
                           IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                           IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    return uct_sep_verbs_qp_create(iface, pd, attr);
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
        txwq->qp = qp;
    }

    return status;
}

static ucs_status_t uct_sep_verbs_cq_arm(uct_sep_iface_t *iface,
                                         uct_sep_cq_t *cq,
                                         uct_sep_api_arm_t arm)
{
    int ret;

    if (uct_sep_verbs_poll(iface) > 0) {
        return UCS_ERR_BUSY;
    }

    if (arm == UCT_SEP_API_ARM_NONE) {
        return UCS_OK;
    }

    ret = ibv_req_notify_cq(cq->cq, arm == UCT_SEP_API_ARM_SOLICITED);
    if (ret != 0) {
        ucs_error("%s: ibv_req_notify_cq() failed: %s", iface->port.name,
                  strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    /* Verbs does not promise an event for what arrived between the poll and
     * this */
    return (uct_sep_verbs_poll(iface) > 0) ? UCS_ERR_BUSY : UCS_OK;
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

/* How many there are is not known, but how many there can be */
static uint32_t uct_sep_verbs_cq_end(const uct_sep_iface_t *iface)
{
    return iface->verbs->num_polled + iface->cq.cq->cqe;
}

static int uct_sep_verbs_cq_has_passed(uct_sep_iface_t *iface, uint32_t end)
{
    unsigned left = uct_sep_verbs_poll(iface);

    return (left == 0) ||
           ((int32_t)(iface->verbs->num_polled - left - end) >= 0);
}

/* To look is to take */
static int
uct_sep_verbs_cq_may_have(const uct_sep_iface_t *iface, uint32_t qpn)
{
    return 1;
}

/* A way to post through libibverbs; all but that is common to them */
#define UCT_SEP_VERBS_API(_name, _mode, _qp_create) \
    const uct_sep_api_t uct_sep_api_##_name = { \
        .name             = #_name, \
        .ops_mode         = _mode, \
        .progress         = uct_sep_verbs_progress_func, \
        .init             = uct_sep_verbs_init, \
        .cleanup          = uct_sep_verbs_cleanup, \
        .cq_create        = uct_sep_verbs_cq_create, \
        .srq_ops          = &uct_sep_verbs_srq_ops, \
        .qp_create        = _qp_create, \
        .responder_create = uct_sep_verbs_responder_create, \
        .qp_map           = uct_sep_verbs_qp_map, \
        .txwq_check       = (void (*)(uct_sep_iface_t*, \
                                      const uct_sep_txwq_t*)) \
                            ucs_empty_function, \
        .cq_end           = uct_sep_verbs_cq_end, \
        .cq_has_passed    = uct_sep_verbs_cq_has_passed, \
        .cq_may_have      = uct_sep_verbs_cq_may_have, \
        .cq_arm           = uct_sep_verbs_cq_arm \
    };

UCT_SEP_VERBS_API(verbs, UCT_SEP_OPS_VERBS, uct_sep_verbs_qp_create)
UCT_SEP_VERBS_API(wr, UCT_SEP_OPS_VERBS | UCT_SEP_OPS_WR,
                  uct_sep_verbs_qp_create_wr)
