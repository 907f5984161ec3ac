/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/ep/sep_link_qp.h>

#include <ucs/sys/stubs.h>

/*
 * Direct verbs: objects are made so that their queues can be worked on.
 */

/* libmlx5's default is that what is received, of up to 32 bytes, may be in the
 * completion: we look for it in buffers only */
static struct ibv_qp *uct_sep_api_dv_responder_create(
        struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr)
{
    struct mlx5dv_qp_init_attr dv_attr = {};

    dv_attr.comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    dv_attr.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    return mlx5dv_create_qp(pd->context, attr, &dv_attr);
}

static struct ibv_qp *
uct_sep_api_dv_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr)
{
    /* What the queue is made for decides how large libmlx5 makes it. We write
     * the work requests ourselves, of any length. */
    attr->send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                           IBV_QP_EX_WITH_RDMA_READ;

    return uct_sep_api_dv_responder_create(pd, attr);
}

static ucs_status_t
uct_sep_api_dv_cq_arm(uct_sep_iface_t *iface, int solicited)
{
    if (uct_sep_cq_peek(&iface->cq) != NULL) {
        return UCS_ERR_BUSY;
    }

    /* The doorbell says up to where the queue was read: if there is more by
     * now, the event comes at once */
    uct_sep_cq_arm(&iface->cq, solicited);
    return UCS_OK;
}

static ucs_status_t
uct_sep_api_dv_own_cq_arm(uct_sep_iface_t *iface, int is_wanted)
{
    if (uct_sep_cq_peek(&iface->own_cq) != NULL) {
        return UCS_ERR_BUSY;
    }

    if (is_wanted) {
        uct_sep_cq_arm(&iface->own_cq, 0);
    }
    return UCS_OK;
}

static ucs_status_t
uct_sep_api_dv_init(uct_sep_iface_t *iface,
                    const uct_sep_iface_config_t *config)
{
    return UCS_OK;
}

const uct_sep_api_t uct_sep_api_dv = {
    .ops_mode         = 0,
    .progress         = uct_sep_progress,
    .own_progress     = uct_sep_progress_own,
    .init             = uct_sep_api_dv_init,
    .cleanup          = (void (*)(uct_sep_iface_t*))ucs_empty_function,
    .cq_create        = uct_sep_cq_create_dv,
    .srq_ops          = &uct_sep_srq_ops,
    .qp_create        = uct_sep_api_dv_qp_create,
    .responder_create = uct_sep_api_dv_responder_create,
    .qp_map           = uct_sep_link_map_txwq,
    .cq_arm           = uct_sep_api_dv_cq_arm,
    .own_cq_arm       = uct_sep_api_dv_own_cq_arm
};
