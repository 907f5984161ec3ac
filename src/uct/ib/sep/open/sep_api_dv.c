/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/open/sep_api_dv.h>
#include <uct/ib/sep/open/sep_select.h>
#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/queue/sep_cq.inl>

#include <ucs/debug/log.h>
#include <ucs/sys/stubs.h>
#include <string.h>


/* Have the device put short data into completions or not. By default libmlx5
 * lets it do so with what a queue pair receives, unless MLX5_SCATTER_TO_CQE=0
 * is in the environment; "allow" is for both what it receives and results of
 * what it sends (libmlx5: create_qp; kernel: configure_requester_scat_cqe).
 * Each completion tells whether it was done. */
static struct ibv_qp *
uct_sep_api_dv_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr,
                      int rx_inline, int tx_inline)
{
    struct mlx5dv_qp_init_attr dv_attr = {};

    dv_attr.comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    dv_attr.create_flags = tx_inline ? MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE :
                           rx_inline ? 0 :
                                       MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    return mlx5dv_create_qp(pd->context, attr, &dv_attr);
}

static struct ibv_qp *
uct_sep_api_dv_responder_create(const uct_sep_iface_t *iface, struct ibv_pd *pd,
                                struct ibv_qp_init_attr_ex *attr)
{
    return uct_sep_api_dv_qp_new(pd, attr, iface->config.rx_mode !=
                                           UCT_SEP_RX_MODE_BUF, 0);
}

static struct ibv_qp *
uct_sep_api_dv_qp_create(const uct_sep_iface_t *iface, struct ibv_pd *pd,
                         struct ibv_qp_init_attr_ex *attr)
{
    /* libmlx5 sizes the queue for these limits. We write the work requests
     * ourselves, of any length. */
    attr->comp_mask     |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr->send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                           IBV_QP_EX_WITH_RDMA_READ;

    return uct_sep_api_dv_qp_new(pd, attr,
                                 (attr->srq != NULL) &&
                                 (iface->config.rx_mode != UCT_SEP_RX_MODE_BUF),
                                 iface->config.tx_inline_resp > 0);
}

static ucs_status_t
uct_sep_api_dv_qp_map(uct_sep_iface_t *iface, struct ibv_qp *qp,
                      uct_sep_uuar_use_t use, uct_sep_txwq_t *txwq)
{
    struct mlx5dv_qp dv_qp = {.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET};
    struct mlx5dv_obj dv   = {};
    uct_sep_txwq_mem_t mem;
    ucs_status_t status;
    int ret;

    dv.qp.in  = qp;
    dv.qp.out = &dv_qp;
    ret       = mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP);
    if (ret != 0) {
        ucs_error("%s: mlx5dv_init_obj(QP 0x%x) failed: %s", iface->port.name,
                  qp->qp_num, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    status = uct_sep_uuars_get(iface->channel.uuars, &dv_qp, use,
                               &mem.bf);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the uUAR of QP 0x%x", iface->port.name,
                  qp->qp_num);
        return status;
    }

    mem.sq         = dv_qp.sq.buf;
    mem.bb_count   = dv_qp.sq.wqe_cnt;
    mem.dbrec      = &dv_qp.dbrec[MLX5_SND_DBR];
    mem.qpn        = qp->qp_num;
    mem.moderation = iface->config.moderation;
    status         = uct_sep_txwq_init(txwq, &mem);
    if (status != UCS_OK) {
        uct_sep_uuars_put(iface->channel.uuars, mem.bf);
    }

    return status;
}

static ucs_status_t
uct_sep_api_dv_cq_arm(uct_sep_iface_t *iface, uct_sep_cq_t *cq,
                      uct_sep_api_arm_t arm)
{
    if (uct_sep_cq_peek(cq) != NULL) {
        return UCS_ERR_BUSY;
    }

    /* The doorbell carries the consumer index: if there is more by now, the
     * event comes at once */
    if (arm != UCT_SEP_API_ARM_NONE) {
        uct_sep_cq_arm(cq, arm == UCT_SEP_API_ARM_SOLICITED);
    }
    return UCS_OK;
}

static ucs_status_t
uct_sep_api_dv_init(uct_sep_iface_t *iface,
                    const uct_sep_iface_config_t *config)
{
    return UCS_OK;
}

static uct_iface_progress_func_t
uct_sep_api_dv_progress(const uct_sep_iface_t *iface)
{
    const uct_sep_progress_funcs_t *funcs =
            &uct_sep_progress_funcs[iface->config.rx_mode];

    return uct_sep_iface_shares_cq(iface) ? funcs->group :
           (iface->own_cq.cq != NULL)     ? funcs->own :
                                            funcs->plain;
}

static uint32_t uct_sep_api_dv_cq_end(const uct_sep_iface_t *iface)
{
    return uct_sep_cq_ci(&iface->cq) + uct_sep_cq_count(&iface->cq);
}

static int uct_sep_api_dv_cq_has_passed(uct_sep_iface_t *iface, uint32_t end)
{
    return (int32_t)(uct_sep_cq_ci(&iface->cq) - end) >= 0;
}

static int
uct_sep_api_dv_cq_may_have(const uct_sep_iface_t *iface, uint32_t qpn)
{
    return uct_sep_cq_may_have(&iface->cq, qpn);
}

const uct_sep_api_t uct_sep_api_dv = {
    .name             = "dv",
    .ops_mode         = 0,
    .progress         = uct_sep_api_dv_progress,
    .init             = uct_sep_api_dv_init,
    .cleanup          = (void (*)(uct_sep_iface_t*))ucs_empty_function,
    .cq_create        = uct_sep_cq_create_dv,
    .srq_ops          = &uct_sep_srq_ops,
    .qp_create        = uct_sep_api_dv_qp_create,
    .responder_create = uct_sep_api_dv_responder_create,
    .qp_map           = uct_sep_api_dv_qp_map,
    .txwq_check       = uct_sep_select_for_txwq,
    .cq_end           = uct_sep_api_dv_cq_end,
    .cq_has_passed    = uct_sep_api_dv_cq_has_passed,
    .cq_may_have      = uct_sep_api_dv_cq_may_have,
    .cq_arm           = uct_sep_api_dv_cq_arm
};
