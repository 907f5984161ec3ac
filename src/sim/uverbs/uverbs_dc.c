/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_dc.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/queue/recv.h>
#include <sim/uverbs/refuse.h>

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <stddef.h>

/*
 * The rules are those of the kernel: drivers/infiniband/hw/mlx5/qp.c. What may
 * be modified when is in the engine.
 */

/* Reads and atomics of an initiator that a target works on at a time */
#define MLX5SIM_DC_RD_ATOMIC 16

/* so that those in error have room */
static_assert(1 << MLX5SIM_LOG_MAX_ERRORED == MLX5SIM_MAX_ERRORED + 1,
              "streams in error");

/* What a target can be asked for (mlx5_ib_dct_query_qp()) */
#define MLX5SIM_DC_QUERY (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | \
                          IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | \
                          IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX)


/* Streams that an initiator is asked to have. What an older libmlx5 does not
 * know of is 0 (process_udata_size()). */
static struct mlx5_ib_create_qp_dci_streams
mlx5sim_dc_streams(const mlx5sim_cmd_t *cmd)
{
    const struct mlx5_ib_create_qp *uin = cmd->uin;

    return ((uin->flags & MLX5_QP_FLAG_DCI_STREAM) &&
            (cmd->uin_size >= offsetof(struct mlx5_ib_create_qp, reserved))) ?
           uin->dci_streams : (struct mlx5_ib_create_qp_dci_streams){0};
}

int mlx5sim_dc_type(mlx5sim_cmd_t *cmd, const struct ib_uverbs_create_qp *caps,
                    unsigned *type_p)
{
    const mlx5sim_config_t *config      = mlx5sim_instance_config();
    const struct mlx5_ib_create_qp *uin = cmd->uin;
    struct mlx5_ib_create_qp_dci_streams streams;

    if (!mlx5sim_config_has_dc(config)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DC);
    }

    /* process_vendor_flags(), check_qp_attr() */
    switch (uin->flags & (MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI)) {
    case MLX5_QP_FLAG_TYPE_DCT:
        *type_p = MLX5SIM_QPT_DCT;
        return (caps->is_srq && (uin->sq_wqe_count == 0) &&
                (cmd->uin_size >= offsetof(struct mlx5_ib_create_qp,
                                           ece_options))) ? 0 : -EINVAL;
    case MLX5_QP_FLAG_TYPE_DCI:
        *type_p = MLX5SIM_QPT_DCI;
        streams = mlx5sim_dc_streams(cmd);
        return ((caps->max_recv_wr == 0) && (caps->max_recv_sge == 0) &&
                (streams.log_num_concurent <= MLX5SIM_LOG_MAX_STREAMS) &&
                (streams.log_num_errored <= MLX5SIM_LOG_MAX_ERRORED)) ?
               0 : -EINVAL;
    default:
        return -EINVAL;
    }
}

void mlx5sim_dc_init(const mlx5sim_cmd_t *cmd, mlx5sim_qp_obj_t *qp)
{
    const struct mlx5_ib_create_qp *uin = cmd->uin;
    const mlx5sim_cq_t *cq              = mlx5sim_obj_at(MLX5SIM_OBJ_CQ,
                                                         qp->send_cq);

    if (qp->qp.type == MLX5SIM_QPT_DCT) {
        qp->qp.dc_key             = uin->access_key;
        qp->qp.max_dest_rd_atomic = MLX5SIM_DC_RD_ATOMIC;
        return;
    }

    qp->qp.log_streams = mlx5sim_dc_streams(cmd).log_num_concurent;
    qp->qp.log_errored = mlx5sim_dc_streams(cmd).log_num_errored;

    /* configure_requester_scat_cqe(): in CQEs of 64 bytes it takes a capability
     * that this device does not have (dc_req_scat_data_cqe) */
    qp->qp.scatter_cqe     = 0;
    qp->qp.scatter_req_cqe = (uin->flags & MLX5_QP_FLAG_SCATTER_CQE) &&
                             ((uin->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE) ||
                              qp->sq_sig_all) &&
                             (cq->cqe_size == 128);
}

int mlx5sim_dc_query(mlx5sim_cmd_t *cmd, mlx5sim_qp_obj_t *qp)
{
    const struct ib_uverbs_query_qp *in  = cmd->in;
    struct ib_uverbs_query_qp_resp reply = {.qkey = 0};
    uint32_t mask                        = in->attr_mask;

    mlx5sim_rq_lock(qp);
    if ((mask & ~MLX5SIM_DC_QUERY) || (qp->qp.state != MLX5SIM_QPS_RTR)) {
        mlx5sim_unlock(&qp->rq_lock);
        return -EINVAL;
    }

    if (mask & IBV_QP_STATE) {
        reply.qp_state = IBV_QPS_RTR;
    }
    if (mask & IBV_QP_ACCESS_FLAGS) {
        reply.qp_access_flags = qp->qp.access & (IBV_ACCESS_REMOTE_WRITE |
                                                 IBV_ACCESS_REMOTE_READ |
                                                 IBV_ACCESS_REMOTE_ATOMIC);
    }
    if (mask & IBV_QP_PORT) {
        reply.port_num = qp->qp.port;
    }
    if (mask & IBV_QP_MIN_RNR_TIMER) {
        reply.min_rnr_timer = qp->qp.min_rnr_timer;
    }
    if (mask & IBV_QP_AV) {
        reply.dest.traffic_class = qp->traffic_class;
        reply.dest.flow_label    = qp->flow_label;
        reply.dest.sgid_index    = qp->sgid_index;
        reply.dest.hop_limit     = qp->hop_limit;
    }
    if (mask & IBV_QP_PATH_MTU) {
        reply.path_mtu = qp->qp.path_mtu;
    }
    if (mask & IBV_QP_PKEY_INDEX) {
        reply.pkey_index = qp->pkey_index;
    }
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}
