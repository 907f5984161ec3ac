/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/queue/recv.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_objs.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

/*
 * Targets of the dynamically connected transport. A command makes one that is
 * ready, where verbs take two transitions to get there: these are made here.
 */

/* dctc.state */
enum {
    MLX5SIM_DEVX_DCT_ACTIVE  = 0,
    MLX5SIM_DEVX_DCT_DRAINED = 2
};


/* A field of the DCTC in the command */
static uint64_t
mlx5sim_devx_dctc(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_DCTC, field);
}

/* Whether what a new target names is there */
static int mlx5sim_devx_dct_has_others(const mlx5sim_devx_t *devx)
{
    uint32_t ctx = mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx);

    return (mlx5sim_obj_mine(MLX5SIM_OBJ_PD,
                             mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_PD),
                             ctx) != NULL) &&
           (mlx5sim_obj_mine(MLX5SIM_OBJ_CQ,
                             mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_CQN),
                             ctx) != NULL) &&
           (mlx5sim_obj_mine(MLX5SIM_OBJ_SRQ,
                             mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_SRQN),
                             ctx) != NULL);
}

/* Make the target that a command asks for ready. @return 0 or -errno */
static int mlx5sim_devx_dct_start(const mlx5sim_devx_t *devx, uint32_t handle)
{
    struct ib_uverbs_modify_qp in = {.qp_handle = handle};
    mlx5sim_cmd_t cmd             = {.ctx = devx->ctx, .in = &in,
                                     .is_devx = 1};
    int ret;

    in.attr_mask        = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          IBV_QP_ACCESS_FLAGS;
    in.qp_state         = IBV_QPS_INIT;
    in.pkey_index       = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_PKEY_INDEX);
    in.port_num         = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_PORT);
    in.qp_access_flags  = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_RRE) ?
                          IBV_ACCESS_REMOTE_READ : 0;
    in.qp_access_flags |= mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_RWE) ?
                          IBV_ACCESS_REMOTE_WRITE : 0;
    in.qp_access_flags |= mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_RAE) ?
                          IBV_ACCESS_REMOTE_ATOMIC : 0;
    ret = mlx5sim_cmd_modify_qp(&cmd);
    if (ret != 0) {
        return ret;
    }

    in.attr_mask          = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
                            IBV_QP_PATH_MTU;
    in.qp_state           = IBV_QPS_RTR;
    in.min_rnr_timer      = mlx5sim_devx_dctc(devx,
                                              MLX5SIM_FW_DCTC_MIN_RNR_NAK);
    in.path_mtu           = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_MTU);
    in.dest.is_global     = mlx5sim_instance_config()->link ==
                            MLX5SIM_LINK_ROCE;
    in.dest.sgid_index    = mlx5sim_devx_dctc(devx,
                                              MLX5SIM_FW_DCTC_SGID_INDEX);
    in.dest.hop_limit     = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_HOP_LIMIT);
    in.dest.traffic_class = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_TCLASS);
    in.dest.flow_label    = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_FLOW_LABEL);
    return mlx5sim_cmd_modify_qp(&cmd);
}

unsigned mlx5sim_devx_create_dct(mlx5sim_devx_t *devx)
{
    struct ib_uverbs_create_qp_resp reply = {0};
    struct ib_uverbs_create_qp caps       = {0};
    struct ib_uverbs_destroy_qp destroy   = {0};
    struct mlx5_ib_create_qp uin          = {0};
    mlx5sim_cmd_t cmd                     = {.ctx = devx->ctx, .uin = &uin,
                                             .uin_size = sizeof(uin),
                                             .is_devx = 1};
    uint32_t cqn;
    mlx5sim_qp_obj_t *qp;
    int ret;

    if (!mlx5sim_config_has_dc(mlx5sim_instance_config())) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DC);
        return MLX5SIM_FW_BAD_OP;
    }

    /* rendezvous in hardware is part of its tag matching */
    if (mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_OFFLOAD) != 0) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_TM);
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (!mlx5sim_devx_dct_has_others(devx)) {
        return MLX5SIM_FW_BAD_RES;
    }

    uin.flags      = MLX5_QP_FLAG_TYPE_DCT;
    uin.uidx       = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_USER_INDEX);
    uin.access_key = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_KEY);
    caps.qp_type   = IBV_QPT_DRIVER;
    caps.is_srq    = 1;
    cqn            = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_CQN);
    ret = mlx5sim_qp_create(&cmd, 0,
                            mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_PD), cqn,
                            cqn, mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_SRQN),
                            &caps, &reply);
    if (ret != 0) {
        return mlx5sim_devx_status(ret);
    }

    ret = mlx5sim_devx_dct_start(devx, reply.qp_handle);
    if (ret != 0) {
        destroy.qp_handle = reply.qp_handle;
        cmd.in            = &destroy;
        (void)mlx5sim_cmd_destroy_qp(&cmd);
        return mlx5sim_devx_status(ret);
    }

    qp                 = mlx5sim_obj_at(MLX5SIM_OBJ_QP, reply.qp_handle);
    qp->qp.scatter_cqe = mlx5sim_devx_dctc(devx, MLX5SIM_FW_DCTC_CS_RES) != 0;
    devx->obj          = qp;
    devx->number       = qp->qp.qpn;
    return MLX5SIM_FW_OK;
}

/* What is under way here is over when its initiator's process has executed it,
 * which holds the lock meanwhile. From then on nobody is answered. */
unsigned mlx5sim_devx_drain_dct(mlx5sim_devx_t *devx)
{
    mlx5sim_qp_obj_t *qp = devx->obj;

    mlx5sim_rq_lock(qp);
    qp->qp.state = MLX5SIM_QPS_ERR;
    mlx5sim_unlock(&qp->rq_lock);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_query_dct(mlx5sim_devx_t *devx)
{
    mlx5sim_qp_obj_t *qp = devx->obj;
    uint8_t *dctc        = devx->fw.out + MLX5SIM_FW_DCTC;

    mlx5sim_rq_lock(qp);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_STATE,
                   (qp->qp.state == MLX5SIM_QPS_ERR) ?
                   MLX5SIM_DEVX_DCT_DRAINED : MLX5SIM_DEVX_DCT_ACTIVE);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_USER_INDEX, qp->qp.uidx);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_CQN, qp->recv_cq);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_RRE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_READ));
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_RWE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_WRITE));
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_RAE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_ATOMIC));
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_MIN_RNR_NAK, qp->qp.min_rnr_timer);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_SRQN, qp->qp.srqn);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_PD, qp->qp.pdn);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_TCLASS, qp->traffic_class);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_FLOW_LABEL, qp->flow_label);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_KEY, qp->qp.dc_key);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_MTU, qp->qp.path_mtu);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_PORT, qp->qp.port);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_PKEY_INDEX, qp->pkey_index);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_SGID_INDEX, qp->sgid_index);
    mlx5sim_fw_set(dctc, MLX5SIM_FW_DCTC_HOP_LIMIT, qp->hop_limit);
    mlx5sim_unlock(&qp->rq_lock);
    return MLX5SIM_FW_OK;
}
