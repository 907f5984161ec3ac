/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/identity.h>
#include <sim/devx/opcode.h>
#include <sim/instance/instance.h>
#include <sim/net/frame.h>
#include <sim/queue/recv.h>
#include <sim/sched/sq.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_objs.h>
#include <sim/uverbs/uverbs_sched.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

/* qpc.state, qpc.st and qpc.rq_type (MLX5_QP_STATE_*, MLX5_QP_ST_*, MLX5_*_RQ)
 */
static const uint8_t mlx5sim_devx_qp_states[] = {
    [MLX5SIM_QPS_RESET] = 0, [MLX5SIM_QPS_INIT] = 1, [MLX5SIM_QPS_RTR] = 2,
    [MLX5SIM_QPS_RTS]   = 3, [MLX5SIM_QPS_SQE]  = 4, [MLX5SIM_QPS_SQD] = 5,
    [MLX5SIM_QPS_ERR]   = 6
};
enum {
    MLX5SIM_DEVX_ST_DCI  = 5,
    MLX5SIM_DEVX_RQ_OWN  = 0,
    MLX5SIM_DEVX_RQ_SRQ  = 1,
    MLX5SIM_DEVX_RQ_NONE = 3,
    MLX5SIM_DEVX_LOG_WQEBB = 6,
    MLX5SIM_DEVX_LOG_RECV  = 4
};
static const uint8_t mlx5sim_devx_qp_types[] = {
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, [MLX5SIM_DEVX_ST_DCI] = IBV_QPT_DRIVER
};

/* opt_param_mask (MLX5_QP_OPTPAR_*) */
enum {
    MLX5SIM_DEVX_OPT_RRE  = 1 << 1,
    MLX5SIM_DEVX_OPT_RAE  = 1 << 2,
    MLX5SIM_DEVX_OPT_RWE  = 1 << 3,
    MLX5SIM_DEVX_OPT_PKEY = 1 << 4,
    MLX5SIM_DEVX_OPT_QKEY = 1 << 5,
    MLX5SIM_DEVX_OPT_RNR  = 1 << 6,
    MLX5SIM_DEVX_OPT_DRAIN_SIGERR = 1 << 11, /* libmlx5,
                                                MLX5_QPC_OPT_MASK_INIT2INIT_* */
    MLX5SIM_DEVX_OPT_LAG  = 1 << 15,
    MLX5SIM_DEVX_OPT_ACCESS = MLX5SIM_DEVX_OPT_RRE | MLX5SIM_DEVX_OPT_RAE |
                              MLX5SIM_DEVX_OPT_RWE
};

/* opt_param_mask_95_32 (libmlx5, MLX5_QPC_OPT_MASK_32_*) */
enum {
    MLX5SIM_DEVX_OPT_EXT_STREAM = 1 << 0,
    MLX5SIM_DEVX_OPT_EXT_LEAVES = 1 << 1,
    MLX5SIM_DEVX_OPT_EXT_SPORT  = 1 << 2
};

/* Transitions, with the optional parameters that are taken */
static const struct {
    uint16_t opcode;
    uint8_t  from, to;
    uint32_t opt_mask;
} mlx5sim_devx_transitions[] = {
    {MLX5SIM_FW_RST2INIT_QP, MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT,
     MLX5SIM_DEVX_OPT_ACCESS | MLX5SIM_DEVX_OPT_PKEY | MLX5SIM_DEVX_OPT_QKEY},
    {MLX5SIM_FW_INIT2INIT_QP, MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT,
     MLX5SIM_DEVX_OPT_LAG | MLX5SIM_DEVX_OPT_DRAIN_SIGERR},
    {MLX5SIM_FW_INIT2RTR_QP, MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR,
     MLX5SIM_DEVX_OPT_ACCESS | MLX5SIM_DEVX_OPT_PKEY | MLX5SIM_DEVX_OPT_QKEY |
     MLX5SIM_DEVX_OPT_LAG},
    {MLX5SIM_FW_RTR2RTS_QP, MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS,
     MLX5SIM_DEVX_OPT_ACCESS | MLX5SIM_DEVX_OPT_QKEY | MLX5SIM_DEVX_OPT_RNR |
     MLX5SIM_DEVX_OPT_LAG},
    {MLX5SIM_FW_RTS2RTS_QP, MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS,
     MLX5SIM_DEVX_OPT_LAG}
};


/* A field of the QPC in the command */
static uint64_t
mlx5sim_devx_qpc(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_QPC, field);
}

/* Queues and doorbell record of a new QP. @return status */
static unsigned mlx5sim_devx_qp_queues(mlx5sim_devx_t *devx, unsigned rq_type,
                                       struct mlx5_ib_create_qp *uin)
{
    unsigned status;
    uint64_t size;

    uin->rq_wqe_shift = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_LOG_RQ_STRIDE) +
                        MLX5SIM_DEVX_LOG_RECV;
    uin->rq_wqe_count = (rq_type == MLX5SIM_DEVX_RQ_OWN) ?
                        1u << mlx5sim_devx_qpc(devx,
                                               MLX5SIM_FW_QPC_LOG_RQ_SIZE) : 0;
    uin->sq_wqe_count = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_NO_SQ) ? 0 :
                        1u << mlx5sim_devx_qpc(devx,
                                               MLX5SIM_FW_QPC_LOG_SQ_SIZE);
    size = ((uint64_t)uin->rq_wqe_count << uin->rq_wqe_shift) +
           ((uint64_t)uin->sq_wqe_count << MLX5SIM_DEVX_LOG_WQEBB);
    status = mlx5sim_devx_umem(devx->ctx,
                               mlx5sim_fw_get(devx->fw.in,
                                              MLX5SIM_FW_QP_UMEM),
                               mlx5sim_fw_get(devx->fw.in,
                                              MLX5SIM_FW_QP_UMEM_OFFSET),
                               size, 0, (uint64_t*)&uin->buf_addr,
                               &devx->umems[0]);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    return mlx5sim_devx_umem(devx->ctx,
                             mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_DBR_UMEM),
                             mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_DBR_ADDR),
                             sizeof(uint64_t), 0, (uint64_t*)&uin->db_addr,
                             &devx->umems[1]);
}

/* Whether what a new QP names is there. @return status */
static unsigned mlx5sim_devx_qp_others(const mlx5sim_devx_t *devx,
                                       unsigned rq_type)
{
    const struct {
        mlx5sim_obj_kind_t kind;
        mlx5sim_fw_field_t field;
        int                is_used;
    } others[] = {
        {MLX5SIM_OBJ_PD, MLX5SIM_FW_QPC_PD, 1},
        {MLX5SIM_OBJ_CQ, MLX5SIM_FW_QPC_CQN_SND, 1},
        {MLX5SIM_OBJ_CQ, MLX5SIM_FW_QPC_CQN_RCV, 1},
        {MLX5SIM_OBJ_UAR, MLX5SIM_FW_QPC_UAR, 1},
        {MLX5SIM_OBJ_SRQ, MLX5SIM_FW_QPC_SRQN, rq_type == MLX5SIM_DEVX_RQ_SRQ}
    };
    unsigned i;

    for (i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        if (others[i].is_used &&
            (mlx5sim_obj_mine(others[i].kind,
                              mlx5sim_devx_qpc(devx, others[i].field),
                              mlx5sim_obj_index(MLX5SIM_OBJ_CTX,
                                                devx->ctx)) == NULL)) {
            return MLX5SIM_FW_BAD_RES;
        }
    }

    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_create_qp(mlx5sim_devx_t *devx)
{
    unsigned st      = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_ST);
    unsigned rq_type = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RQ_TYPE);
    struct ib_uverbs_create_qp_resp reply = {0};
    struct ib_uverbs_create_qp caps       = {0};
    struct mlx5_ib_create_qp uin          = {0};
    mlx5sim_cmd_t cmd                     = {.ctx = devx->ctx, .uin = &uin,
                                             .uin_size = sizeof(uin),
                                             .is_devx = 1};
    mlx5sim_qp_obj_t *qp;
    unsigned status;
    int ret;

    if ((st >= sizeof(mlx5sim_devx_qp_types)) ||
        (mlx5sim_devx_qp_types[st] == 0)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if ((mlx5sim_devx_qp_types[st] == IBV_QPT_DRIVER) &&
        (rq_type == MLX5SIM_DEVX_RQ_OWN)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_WQ_SIGNATURE) ||
        mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_DBR_MODE) ||
        ((rq_type != MLX5SIM_DEVX_RQ_OWN) && (rq_type != MLX5SIM_DEVX_RQ_SRQ) &&
         (rq_type != MLX5SIM_DEVX_RQ_NONE))) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    status = mlx5sim_devx_qp_others(devx, rq_type);
    if (status == MLX5SIM_FW_OK) {
        status = mlx5sim_devx_qp_queues(devx, rq_type, &uin);
    }
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    uin.flags       = MLX5_QP_FLAG_UAR_PAGE_INDEX;
    uin.bfreg_index = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_UAR);
    uin.uidx        = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_USER_INDEX);
    caps.qp_type    = mlx5sim_devx_qp_types[st];
    caps.is_srq     = rq_type == MLX5SIM_DEVX_RQ_SRQ;
    uin.flags      |= (caps.qp_type == IBV_QPT_DRIVER) ?
                      MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM : 0;
    uin.dci_streams.log_num_concurent =
            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_LOG_STREAMS);
    uin.dci_streams.log_num_errored   =
            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_LOG_ERRORED);
    ret = mlx5sim_qp_create(&cmd, 0,
                            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_PD),
                            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_CQN_SND),
                            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_CQN_RCV),
                            mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_SRQN), &caps,
                            &reply);
    if (ret != 0) {
        return mlx5sim_devx_status(ret);
    }

    /* as verbs have it: not for datagrams, requester's for RC and DC only */
    qp                     = mlx5sim_obj_at(MLX5SIM_OBJ_QP, reply.qp_handle);
    qp->qp.scatter_cqe     = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_CS_RES) &&
                             (caps.qp_type != IBV_QPT_UD) &&
                             (caps.qp_type != IBV_QPT_DRIVER);
    qp->qp.scatter_req_cqe = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_CS_REQ) &&
                             ((caps.qp_type == IBV_QPT_RC) ||
                              (caps.qp_type == IBV_QPT_DRIVER));
    devx->obj              = qp;
    devx->number           = reply.qpn;
    return MLX5SIM_FW_OK;
}

/* qpc.rre, rwe, rae as IBV_ACCESS_*: those that @a mask names, the rest as it
 * was. Atomics need a mode. */
static unsigned mlx5sim_devx_access(const mlx5sim_devx_t *devx, uint32_t mask,
                                    unsigned access)
{
    static const struct {
        uint32_t opt;
        unsigned access;
    } rights[] = {
        {MLX5SIM_DEVX_OPT_RRE, IBV_ACCESS_REMOTE_READ},
        {MLX5SIM_DEVX_OPT_RWE, IBV_ACCESS_REMOTE_WRITE},
        {MLX5SIM_DEVX_OPT_RAE, IBV_ACCESS_REMOTE_ATOMIC}
    };
    unsigned given[] = {
        mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RRE),
        mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RWE),
        mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RAE)
    };
    unsigned i;

    for (i = 0; i < 3; ++i) {
        if (mask & rights[i].opt) {
            access = given[i] ? access | rights[i].access :
                                access & ~rights[i].access;
        }
    }

    return access;
}

/* The way to the peer, as verbs have it */
static void
mlx5sim_devx_path(const mlx5sim_devx_t *devx, struct ib_uverbs_qp_dest *dest)
{
    int is_roce = mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE;

    memcpy(dest->dgid, devx->fw.in + MLX5SIM_FW_QPC + MLX5SIM_FW_QPC_RGID_BYTE,
           sizeof(dest->dgid));
    dest->dlid          = mlx5sim_devx_qpc(devx, is_roce ?
                                                 MLX5SIM_FW_QPC_UDP_SPORT :
                                                 MLX5SIM_FW_QPC_RLID);
    dest->sgid_index    = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_SGID_INDEX);
    dest->hop_limit     = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_HOP_LIMIT);
    dest->flow_label    = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_FLOW_LABEL);
    dest->traffic_class = is_roce ?
                          mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_DSCP) << 2 :
                          mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_TCLASS);
    dest->sl            = mlx5sim_devx_qpc(devx, is_roce ?
                                                 MLX5SIM_FW_QPC_ETH_PRIO :
                                                 MLX5SIM_FW_QPC_SL);
    dest->src_path_bits = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_MLID);
    dest->static_rate   = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_STAT_RATE);
    dest->is_global     = is_roce || mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_GRH);
}

/* Those of a DC initiator, whose targets are told by its work requests */
static uint32_t mlx5sim_devx_dci_mask(unsigned next, uint32_t opt_mask)
{
    switch (next) {
    case MLX5SIM_QPS_INIT:
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    case MLX5SIM_QPS_RTR:
        return IBV_QP_PATH_MTU |
               ((opt_mask & MLX5SIM_DEVX_OPT_PKEY) ? IBV_QP_PKEY_INDEX : 0);
    default:
        return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN |
               ((opt_mask & MLX5SIM_DEVX_OPT_RNR) ? IBV_QP_MIN_RNR_TIMER : 0);
    }
}

/* Attributes of a transition that leads to @a next: all that verbs ask for */
static void mlx5sim_devx_attributes(const mlx5sim_devx_t *devx, unsigned next,
                                    uint32_t opt_mask,
                                    struct ib_uverbs_modify_qp *in)
{
    const mlx5sim_qp_obj_t *qp = devx->obj;

    in->attr_mask          = IBV_QP_STATE;
    in->qp_state           = next;
    in->pkey_index         = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_PKEY_INDEX);
    in->port_num           = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_PORT);
    in->qkey               = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_Q_KEY);
    in->path_mtu           = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_MTU);
    in->dest_qp_num        = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_REMOTE_QPN);
    in->rq_psn             = mlx5sim_devx_qpc(devx,
                                              MLX5SIM_FW_QPC_NEXT_RCV_PSN);
    in->sq_psn             = mlx5sim_devx_qpc(devx,
                                              MLX5SIM_FW_QPC_NEXT_SEND_PSN);
    in->max_dest_rd_atomic = 1u << mlx5sim_devx_qpc(devx,
                                                    MLX5SIM_FW_QPC_LOG_RRA_MAX);
    in->max_rd_atomic      = 1u << mlx5sim_devx_qpc(devx,
                                                    MLX5SIM_FW_QPC_LOG_SRA_MAX);
    in->min_rnr_timer      = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_MIN_RNR_NAK);
    in->timeout            = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_ACK_TIMEOUT);
    in->retry_cnt          = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RETRY_COUNT);
    in->rnr_retry          = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_RNR_RETRY);
    mlx5sim_devx_path(devx, &in->dest);

    if (qp->qp.type == MLX5SIM_QPT_DCI) {
        in->attr_mask |= mlx5sim_devx_dci_mask(next, opt_mask);
        return; /* it does not say what others may do */
    }

    if (next == MLX5SIM_QPS_INIT) {
        /* all of these are taken, whether named or not */
        opt_mask      |= MLX5SIM_DEVX_OPT_ACCESS;
        in->attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
        in->attr_mask |= (qp->qp.type == MLX5SIM_QPT_UD) ? IBV_QP_QKEY : 0;
    } else if (qp->qp.type == MLX5SIM_QPT_UD) {
        in->attr_mask |= (next == MLX5SIM_QPS_RTS) ? IBV_QP_SQ_PSN : 0;
        in->attr_mask |= (opt_mask & MLX5SIM_DEVX_OPT_QKEY) ? IBV_QP_QKEY : 0;
    } else if (next == MLX5SIM_QPS_RTR) {
        in->attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN;
        in->attr_mask |= (qp->qp.type == MLX5SIM_QPT_RC) ?
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
        in->attr_mask |= (opt_mask & MLX5SIM_DEVX_OPT_PKEY) ?
                         IBV_QP_PKEY_INDEX : 0;
    } else if (next == MLX5SIM_QPS_RTS) {
        in->attr_mask |= IBV_QP_SQ_PSN;
        in->attr_mask |= (qp->qp.type == MLX5SIM_QPT_RC) ?
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MAX_QP_RD_ATOMIC : 0;
        in->attr_mask |= ((opt_mask & MLX5SIM_DEVX_OPT_RNR) &&
                          (qp->qp.type == MLX5SIM_QPT_RC)) ?
                         IBV_QP_MIN_RNR_TIMER : 0;
    }

    if ((opt_mask & MLX5SIM_DEVX_OPT_ACCESS) &&
        (qp->qp.type != MLX5SIM_QPT_UD)) {
        in->attr_mask      |= IBV_QP_ACCESS_FLAGS;
        in->qp_access_flags = mlx5sim_devx_access(devx, opt_mask,
                                                  qp->qp.access);
    }
}

/* To RESET or to error. @return status */
static unsigned mlx5sim_devx_leave(mlx5sim_devx_t *devx, unsigned next)
{
    mlx5sim_qp_obj_t *qp          = devx->obj;
    struct ib_uverbs_modify_qp in = {.qp_handle = 0};
    mlx5sim_cmd_t cmd             = {.ctx = devx->ctx, .in = &in,
                                     .is_devx = 1};

    if (mlx5sim_qp_modify_check(qp->qp.type, qp->qp.state, next,
                                IBV_QP_STATE) != MLX5SIM_CHK_OK) {
        return MLX5SIM_FW_BAD_QP_STATE;
    }

    in.qp_handle = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    in.attr_mask = IBV_QP_STATE;
    in.qp_state  = next;
    return mlx5sim_devx_status(mlx5sim_cmd_modify_qp(&cmd));
}

/* Another UDP source port. RoCE v1 has none, and an address vector has its own.
 * libmlx5 takes it for queue pairs in RTS only. @return status */
static unsigned mlx5sim_devx_set_sport(const mlx5sim_devx_t *devx,
                                       unsigned opcode)
{
    mlx5sim_qp_obj_t *qp = devx->obj;
    uint16_t sport       = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_UDP_SPORT);

    if ((opcode != MLX5SIM_FW_RTS2RTS_QP) || (sport == 0) ||
        ((qp->qp.type != MLX5SIM_QPT_RC) && (qp->qp.type != MLX5SIM_QPT_UC)) ||
        !mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(), qp->sgid_index)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    qp->udp_sport = sport;
    return MLX5SIM_FW_OK;
}

/* Optional parameters of the other mask: of the QPC a UDP source port, of the
 * extended one that a stream is reset, and leaves of the send scheduler.
 * Together nobody asks for them. @return status */
static unsigned mlx5sim_devx_extended(const mlx5sim_devx_t *devx,
                                      unsigned opcode)
{
    int is_ext    = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_QPC_EXT);
    uint64_t mask = 0;

    if (is_ext && (devx->fw.in_size < MLX5SIM_FW_QPC_EXT_END)) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    if (devx->fw.in_size >= MLX5SIM_FW_OPT_MASK_EXT_END) {
        mask = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_OPT_MASK_EXT);
    }

    switch (mask) {
    case 0:
        return MLX5SIM_FW_OK;
    case MLX5SIM_DEVX_OPT_EXT_SPORT:
        return mlx5sim_devx_set_sport(devx, opcode);
    case MLX5SIM_DEVX_OPT_EXT_LEAVES:
        return (is_ext && ((opcode == MLX5SIM_FW_INIT2INIT_QP) ||
                           (opcode == MLX5SIM_FW_RTS2RTS_QP))) ?
               mlx5sim_sched_bind(devx) : MLX5SIM_FW_BAD_PARAM;
    case MLX5SIM_DEVX_OPT_EXT_STREAM:
        return (is_ext && (opcode == MLX5SIM_FW_RTS2RTS_QP) &&
                (mlx5sim_sq_reset_stream(devx->obj,
                                         mlx5sim_fw_get(
                                                 devx->fw.in,
                                                 MLX5SIM_FW_QPC_EXT_STREAM))
                 == 0)) ? MLX5SIM_FW_OK : MLX5SIM_FW_BAD_PARAM;
    default:
        return MLX5SIM_FW_BAD_PARAM;
    }
}

unsigned mlx5sim_devx_modify_qp(mlx5sim_devx_t *devx)
{
    unsigned opcode               = mlx5sim_fw_get(devx->fw.in,
                                                   MLX5SIM_FW_OPCODE);
    mlx5sim_qp_obj_t *qp          = devx->obj;
    struct ib_uverbs_modify_qp in = {.qp_handle = 0};
    mlx5sim_cmd_t cmd             = {.ctx = devx->ctx, .in = &in,
                                     .is_devx = 1};
    unsigned i, port, status;
    uint32_t opt_mask;
    int ret;

    if (opcode == MLX5SIM_FW_2ERR_QP) {
        return mlx5sim_devx_leave(devx, MLX5SIM_QPS_ERR);
    } else if (opcode == MLX5SIM_FW_2RST_QP) {
        return mlx5sim_devx_leave(devx, MLX5SIM_QPS_RESET);
    }

    for (i = 0; mlx5sim_devx_transitions[i].opcode != opcode; ++i) {
    }

    if (qp->qp.state != mlx5sim_devx_transitions[i].from) {
        return MLX5SIM_FW_BAD_QP_STATE;
    }

    opt_mask = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_OPT_MASK);
    port     = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_LAG);
    if ((opt_mask & ~mlx5sim_devx_transitions[i].opt_mask) ||
        ((opt_mask & MLX5SIM_DEVX_OPT_LAG) &&
         (port > mlx5sim_lag_ports(mlx5sim_instance_config())))) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    status = mlx5sim_devx_extended(devx, opcode);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    if (mlx5sim_devx_transitions[i].from != mlx5sim_devx_transitions[i].to) {
        in.qp_handle = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
        mlx5sim_devx_attributes(devx, mlx5sim_devx_transitions[i].to, opt_mask,
                                &in);
        ret = mlx5sim_cmd_modify_qp(&cmd);
        if (ret != 0) {
            return mlx5sim_devx_status(ret);
        }
    }

    if ((qp->qp.type == MLX5SIM_QPT_DCI) && (qp->qp.state == MLX5SIM_QPS_RTR)) {
        qp->qp.sl = in.dest.sl; /* for who asks: requests have their own */
    }

    if ((opcode == MLX5SIM_FW_INIT2RTR_QP) &&
        mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(), qp->sgid_index)) {
        qp->udp_sport = mlx5sim_devx_qpc(devx, MLX5SIM_FW_QPC_UDP_SPORT);
    }

    if (opt_mask & MLX5SIM_DEVX_OPT_LAG) {
        qp->lag_port = port;
    }
    if (opt_mask & MLX5SIM_DEVX_OPT_DRAIN_SIGERR) {
        qp->drain_sigerr = mlx5sim_devx_qpc(devx,
                                            MLX5SIM_FW_QPC_DRAIN_SIGERR);
    }
    return MLX5SIM_FW_OK;
}

/* The UDP source port of a QPC. It has none until it knows its peer, and for
 * datagrams and DC the work request has it. */
static uint16_t mlx5sim_devx_sport(const mlx5sim_qp_obj_t *qp)
{
    if ((qp->qp.state == MLX5SIM_QPS_RESET) ||
        (qp->qp.state == MLX5SIM_QPS_INIT) ||
        ((qp->qp.type != MLX5SIM_QPT_RC) && (qp->qp.type != MLX5SIM_QPT_UC)) ||
        !mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(), qp->sgid_index)) {
        return 0;
    }

    return mlx5sim_frame_sport(qp);
}

/* The path of a QPC */
static void
mlx5sim_devx_query_path(const mlx5sim_qp_obj_t *qp, uint8_t *qpc)
{
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_PKEY_INDEX, qp->pkey_index);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_GRH, qp->qp.has_grh);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_MLID, qp->qp.path_bits);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_ACK_TIMEOUT, qp->qp.timeout);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_SGID_INDEX, qp->sgid_index);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_STAT_RATE, qp->static_rate);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_HOP_LIMIT, qp->hop_limit);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_FLOW_LABEL, qp->flow_label);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_PORT, qp->qp.port);
    memcpy(qpc + MLX5SIM_FW_QPC_RGID_BYTE, qp->qp.dgid, sizeof(qp->qp.dgid));
    if (qp->qp.is_roce) {
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_DSCP, qp->traffic_class >> 2);
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_UDP_SPORT,
                       mlx5sim_devx_sport(qp));
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_ETH_PRIO, qp->qp.sl);
    } else {
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_TCLASS, qp->traffic_class);
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RLID, qp->qp.dlid);
        mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_SL, qp->qp.sl);
    }
}

/* The largest power of 2 that is not above */
static unsigned mlx5sim_devx_log(unsigned value)
{
    return (value > 0) ? 31 - __builtin_clz(value) : 0;
}

unsigned mlx5sim_devx_query_qp(mlx5sim_devx_t *devx)
{
    mlx5sim_qp_obj_t *qp = devx->obj;
    uint8_t *qpc         = devx->fw.out + MLX5SIM_FW_QPC;

    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_rq_lock(qp);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_STATE,
                   mlx5sim_devx_qp_states[qp->qp.state]);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LAG, qp->lag_port);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_ST,
                   (qp->qp.type == MLX5SIM_QPT_DCI) ? MLX5SIM_DEVX_ST_DCI :
                                                      qp->qp.type - IBV_QPT_RC);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_DRAIN_SIGERR, qp->drain_sigerr);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_SQ_COUNTER, qp->sq_head);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_PD, qp->qp.pdn);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_MTU, qp->qp.path_mtu);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_MSG_MAX, 30);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_RQ_SIZE,
                   mlx5sim_devx_log(qp->qp.rq_wqe_cnt));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_NO_SQ, qp->qp.sq_wqe_cnt == 0);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_SQ_SIZE,
                   mlx5sim_devx_log(qp->qp.sq_wqe_cnt));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_DATA_IN_ORDER,
                   (mlx5sim_instance_config()->data_in_order !=
                    MLX5SIM_DATA_IN_ORDER_UNKNOWN) &&
                   mlx5sim_sl_is_in_order(mlx5sim_instance_config(),
                                          qp->qp.sl));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_UAR, qp->uar);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_USER_INDEX, qp->qp.uidx);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_REMOTE_QPN, qp->qp.dest_qpn);
    mlx5sim_devx_query_path(qp, qpc);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_SRA_MAX,
                   mlx5sim_devx_log(qp->qp.max_rd_atomic));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RETRY_COUNT, qp->qp.retry_cnt);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RNR_RETRY, qp->qp.rnr_retry);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_NEXT_SEND_PSN, qp->qp.psn);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_STREAMS, qp->qp.log_streams);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_CQN_SND, qp->send_cq);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_ERRORED, qp->qp.log_errored);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_LOG_RRA_MAX,
                   mlx5sim_devx_log(qp->qp.max_dest_rd_atomic));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RRE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_READ));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RWE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_WRITE));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RAE,
                   !!(qp->qp.access & MLX5SIM_ACCESS_REMOTE_ATOMIC));
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_MIN_RNR_NAK, qp->qp.min_rnr_timer);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_NEXT_RCV_PSN, qp->qp.epsn);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_CQN_RCV, qp->recv_cq);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_Q_KEY, qp->qp.qkey);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_RQ_TYPE,
                   (qp->srq != 0) ? MLX5SIM_DEVX_RQ_SRQ :
                   (qp->qp.rq_wqe_cnt > 0) ? MLX5SIM_DEVX_RQ_OWN :
                                             MLX5SIM_DEVX_RQ_NONE);
    mlx5sim_fw_set(qpc, MLX5SIM_FW_QPC_SRQN,
                   (qp->srq != 0) ? qp->qp.srqn : 0);
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_unlock(&qp->sq_lock);
    return MLX5SIM_FW_OK;
}
