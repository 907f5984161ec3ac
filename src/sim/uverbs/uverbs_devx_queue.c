/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/cq.h>
#include <sim/queue/srq.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_objs.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

enum {
    /* cqc.st: state of the arming (MLX5_CQC_ST_*) */
    MLX5SIM_DEVX_CQ_SOLICITED = 6,
    MLX5SIM_DEVX_CQ_ARMED     = 9,
    MLX5SIM_DEVX_CQ_FIRED     = 10,
    /* wq.wq_type (MLX5_WQ_TYPE_*), rmpc.state */
    MLX5SIM_DEVX_WQ_LIST      = 0,
    MLX5SIM_DEVX_WQ_CYCLIC    = 1,
    MLX5SIM_DEVX_RMP_READY    = 1,
    /* op_mod (MLX5_ARM_XRC_SRQ_IN_OP_MOD_XRC_SRQ) */
    MLX5SIM_DEVX_ARM_XRC_SRQ  = 1,
    /* a receive's scatter element, and the shortest WQE of a shared queue */
    MLX5SIM_DEVX_SEG          = 16,
    MLX5SIM_DEVX_LOG_SEG      = 4,
    MLX5SIM_DEVX_LOG_WQE_MIN  = 5
};


/* A field of the CQC in the command */
static uint64_t
mlx5sim_devx_cqc(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_CQC, field);
}

/* Ring and doorbell record of a new CQ. @return status */
static unsigned mlx5sim_devx_cq_ring(mlx5sim_devx_t *devx, unsigned num_cqes,
                                     struct mlx5_ib_create_cq *uin)
{
    unsigned status;

    status = mlx5sim_devx_umem(devx->ctx,
                               mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_CQ_UMEM),
                               mlx5sim_fw_get(devx->fw.in,
                                              MLX5SIM_FW_CQ_UMEM_OFFSET),
                               (uint64_t)num_cqes * uin->cqe_size,
                               IBV_ACCESS_LOCAL_WRITE,
                               (uint64_t*)&uin->buf_addr, &devx->umems[0]);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    return mlx5sim_devx_umem(devx->ctx,
                             mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_DBR_UMEM),
                             mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_DBR_ADDR),
                             sizeof(uint64_t), 0, (uint64_t*)&uin->db_addr,
                             &devx->umems[1]);
}

unsigned mlx5sim_devx_create_cq(mlx5sim_devx_t *devx)
{
    unsigned log_size = mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_LOG_CQ_SIZE);
    unsigned cqe_size = mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_CQE_SZ);
    unsigned eqn      = mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_EQN);
    struct ib_uverbs_create_cq_resp reply = {0};
    struct mlx5_ib_create_cq uin          = {0};
    mlx5sim_cmd_t cmd                     = {.ctx = devx->ctx, .uin = &uin,
                                             .is_devx = 1};
    mlx5sim_cq_t *cq;
    unsigned status;
    int ret;

    if (mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_COMP_EN)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_CQ_OPTIONS);
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (((log_size == 0) && !mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_OI)) ||
        (log_size > 22) || (cqe_size > 1) || (eqn < MLX5SIM_DEVX_EQN)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    uin.uar_page_index = mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_UAR);
    uin.flags          = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    uin.cqe_size       = (cqe_size == 1) ? 128 : 64;
    if (mlx5sim_obj_mine(MLX5SIM_OBJ_UAR, uin.uar_page_index,
                         mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx)) ==
        NULL) {
        return MLX5SIM_FW_BAD_RES;
    }

    status = mlx5sim_devx_cq_ring(devx, 1u << log_size, &uin);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    ret = mlx5sim_cq_create(&cmd, 0, (1u << log_size) - 1,
                            eqn - MLX5SIM_DEVX_EQN, -1,
                            mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_OI) ?
                            IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN : 0, &reply);
    if (ret == 0) {
        devx->obj    = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, reply.cq_handle);
        devx->number = reply.cq_handle;
        /* nobody knows the queue yet, and no CQE was under way: not the first
         * either, which clear memory would be taken for */
        cq            = devx->obj;
        cq->collapsed = mlx5sim_devx_cqc(devx, MLX5SIM_FW_CQC_CC);
        cq->writing   = MLX5SIM_CQ_NOT_WRITING;
    }
    return mlx5sim_devx_status(ret);
}

unsigned mlx5sim_devx_query_cq(mlx5sim_devx_t *devx)
{
    mlx5sim_cq_t *cq = devx->obj;
    uint8_t *cqc     = devx->fw.out + MLX5SIM_FW_CQC;

    mlx5sim_cq_lock(cq);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_CQE_SZ, cq->cqe_size == 128);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_CC, cq->collapsed);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_OI, cq->ignore_overrun);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_COMP_EN, cq->compressed);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_ST,
                   (cq->armed == 0) ? MLX5SIM_DEVX_CQ_FIRED :
                   (cq->armed == 1) ? MLX5SIM_DEVX_CQ_ARMED :
                                      MLX5SIM_DEVX_CQ_SOLICITED);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_LOG_CQ_SIZE,
                   31 - __builtin_clz(cq->num_cqes));
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_UAR, cq->uar);
    mlx5sim_fw_set(cqc, MLX5SIM_FW_CQC_PRODUCER, cq->pi & 0xffffff);
    mlx5sim_unlock(&cq->lock);
    return MLX5SIM_FW_OK;
}

/* A field of the WQ in the RMPC of the command */
static uint64_t
mlx5sim_devx_wq(const mlx5sim_devx_t *devx, mlx5sim_fw_field_t field)
{
    return mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_RMPC + MLX5SIM_FW_RMPC_WQ,
                          field);
}

/* WQEs and doorbell record of a new queue. @return status */
static unsigned mlx5sim_devx_rmp_queue(mlx5sim_devx_t *devx, uint64_t size,
                                       struct mlx5_ib_create_srq *uin)
{
    unsigned status;

    status = mlx5sim_devx_umem(devx->ctx,
                               mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_UMEM),
                               mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_UMEM_OFFSET),
                               size, 0, (uint64_t*)&uin->buf_addr,
                               &devx->umems[0]);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    status = mlx5sim_devx_umem(devx->ctx,
                               mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_DBR_UMEM),
                               mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_DBR_ADDR),
                               sizeof(uint64_t), 0, (uint64_t*)&uin->db_addr,
                               &devx->umems[1]);
    return ((status == MLX5SIM_FW_OK) && (uin->db_addr & 7)) ?
           MLX5SIM_FW_BAD_PARAM : status;
}

unsigned mlx5sim_devx_create_rmp(mlx5sim_devx_t *devx)
{
    unsigned type     = mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_TYPE);
    unsigned log_size = mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_LOG_SIZE);
    unsigned log_wqe  = mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_LOG_STRIDE);
    unsigned pd       = mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_PD);
    struct ib_uverbs_create_srq_resp reply = {0};
    struct mlx5_ib_create_srq uin          = {0};
    mlx5sim_cmd_t cmd                      = {.ctx = devx->ctx, .uin = &uin,
                                              .is_devx = 1};
    unsigned status;
    int ret;

    if ((mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_RMPC,
                        MLX5SIM_FW_RMPC_STATE) != MLX5SIM_DEVX_RMP_READY) ||
        ((type != MLX5SIM_DEVX_WQ_LIST) && (type != MLX5SIM_DEVX_WQ_CYCLIC)) ||
        mlx5sim_devx_wq(devx, MLX5SIM_FW_WQ_SIGNATURE) || (log_size == 0) ||
        (log_size > 15) || (log_wqe < MLX5SIM_DEVX_LOG_WQE_MIN) ||
        (log_wqe > 9)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    if (mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pd,
                         mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx)) ==
        NULL) {
        return MLX5SIM_FW_BAD_RES;
    }

    status = mlx5sim_devx_rmp_queue(devx, 1ull << (log_size + log_wqe), &uin);
    if (status != MLX5SIM_FW_OK) {
        return status;
    }

    /* verbs' geometry: one WQE stays free, and one element is the link */
    ret = mlx5sim_srq_create(&cmd, 0, pd, (1u << log_size) - 1,
                             (1u << log_wqe) / MLX5SIM_DEVX_SEG - 1, 0, &reply);
    if (ret == 0) {
        devx->obj    = mlx5sim_obj_at(MLX5SIM_OBJ_SRQ, reply.srq_handle);
        devx->number = reply.srqn;
        ((mlx5sim_srq_t*)devx->obj)->is_cyclic = type == MLX5SIM_DEVX_WQ_CYCLIC;
    }
    return mlx5sim_devx_status(ret);
}

unsigned mlx5sim_devx_query_rmp(mlx5sim_devx_t *devx)
{
    mlx5sim_srq_t *srq = devx->obj;
    uint8_t *rmpc      = devx->fw.out + MLX5SIM_FW_RMPC;
    uint8_t *wq        = rmpc + MLX5SIM_FW_RMPC_WQ;
    mlx5sim_srq_pos_t pos;

    mlx5sim_srq_lock(srq);
    pos.word = atomic_load(&srq->pos);
    mlx5sim_fw_set(rmpc, MLX5SIM_FW_RMPC_STATE, MLX5SIM_DEVX_RMP_READY);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_TYPE, srq->is_cyclic);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_LWM, srq->limit);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_PD, srq->pd);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_HW_COUNTER, pos.consumed);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_LOG_STRIDE, srq->wqe_shift);
    mlx5sim_fw_set(wq, MLX5SIM_FW_WQ_LOG_SIZE,
                   31 - __builtin_clz(srq->num_wqes));
    mlx5sim_unlock(&srq->lock);
    return MLX5SIM_FW_OK;
}

/* Set the limit below which an event comes, as ibv_modify_srq() does.
 * @return status */
static unsigned mlx5sim_devx_arm(mlx5sim_srq_t *srq, uint64_t lwm)
{
    if (lwm >= srq->num_wqes) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    mlx5sim_srq_set_limit(srq, lwm);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_modify_rmp(mlx5sim_devx_t *devx)
{
    uint64_t mask = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_MODIFY_RMP_MASK);

    /* one in error, which is the other state, is not there */
    if ((mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_MODIFY_RMP_STATE) !=
         MLX5SIM_DEVX_RMP_READY) ||
        (mlx5sim_fw_get(devx->fw.in + MLX5SIM_FW_RMPC, MLX5SIM_FW_RMPC_STATE) !=
         MLX5SIM_DEVX_RMP_READY) ||
        (mask & ~(uint64_t)MLX5SIM_FW_MODIFY_RMP_LWM)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    return (mask & MLX5SIM_FW_MODIFY_RMP_LWM) ?
           mlx5sim_devx_arm(devx->obj, mlx5sim_devx_wq(devx,
                                                       MLX5SIM_FW_WQ_LWM)) :
           MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_query_xrc_srq(mlx5sim_devx_t *devx)
{
    mlx5sim_srq_t *srq = devx->obj;
    uint8_t *srqc      = devx->fw.out + MLX5SIM_FW_XRC_SRQC;

    mlx5sim_srq_lock(srq);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_LOG_SIZE,
                   31 - __builtin_clz(srq->num_wqes));
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_LOG_STRIDE,
                   srq->wqe_shift - MLX5SIM_DEVX_LOG_SEG);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_XRCD,
                   atomic_load(&srq->xrcd) - 1);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_CQN, srq->cq);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_USER_INDEX, srq->uidx);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_PD, srq->pd);
    mlx5sim_fw_set(srqc, MLX5SIM_FW_XRC_SRQC_LWM, srq->limit);
    mlx5sim_unlock(&srq->lock);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_arm_xrc_srq(mlx5sim_devx_t *devx)
{
    if (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_OP_MOD) !=
        MLX5SIM_DEVX_ARM_XRC_SRQ) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    return mlx5sim_devx_arm(devx->obj,
                            mlx5sim_fw_get(devx->fw.in,
                                           MLX5SIM_FW_ARM_XRC_SRQ_LWM));
}
