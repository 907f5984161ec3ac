/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/limit/limit.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/srq.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>
#include <sim/uverbs/uverbs_xrc.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>


/* All of an SRQ but that it is ready. @return 0 or -errno */
static int mlx5sim_srq_make(mlx5sim_cmd_t *cmd, uint64_t user_handle,
                            uint32_t pd_handle, uint32_t max_wr,
                            uint32_t max_sge, uint32_t limit,
                            mlx5sim_srq_t **srq_p)
{
    const struct mlx5_ib_create_srq *uin = cmd->uin;
    mlx5sim_srq_t *srq;
    mlx5sim_pd_t *pd;
    uint32_t size;

    pd = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, pd_handle);
    if (uin->flags & MLX5_SRQ_FLAG_SIGNATURE) {
        return mlx5sim_refuse(MLX5SIM_MISSING_SIGNATURE);
    }

    if ((pd == NULL) || (max_wr > 32767) || (max_sge > 31)) {
        return -EINVAL;
    }

    srq = mlx5sim_limit_alloc(cmd->ctx, MLX5SIM_OBJ_SRQ);
    if (srq == NULL) {
        return -errno;
    }

    atomic_fetch_add(&pd->refs, 1);
    srq->o.user_handle = user_handle;
    srq->pd            = pd_handle;
    srq->buf           = uin->buf_addr;
    srq->db            = uin->db_addr;
    srq->max_wr        = max_wr;
    srq->max_sge       = max_sge;
    srq->limit         = limit;
    srq->srqn          = mlx5sim_obj_index(MLX5SIM_OBJ_SRQ, srq);

    /* geometry as libmlx5 (mlx5_alloc_srq_buf) and the kernel compute it */
    for (srq->num_wqes = 1; srq->num_wqes < max_wr + 1; srq->num_wqes <<= 1) {
    }
    size = 16 + (16 * max_sge);
    for (srq->wqe_shift = 5; (1u << srq->wqe_shift) < size;
         ++srq->wqe_shift) {
    }

    *srq_p = srq;
    return 0;
}

static void mlx5sim_srq_finish(mlx5sim_cmd_t *cmd, mlx5sim_srq_t *srq,
                               struct ib_uverbs_create_srq_resp *reply_p)
{
    struct mlx5_ib_create_srq_resp ureply = {0};

    atomic_thread_fence(memory_order_release);
    srq->o.ready = 1;

    reply_p->srq_handle = srq->srqn;
    reply_p->max_wr     = srq->num_wqes - 1;
    reply_p->max_sge    = srq->max_sge;
    reply_p->srqn       = srq->srqn;
    ureply.srqn         = srq->srqn;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, reply_p, sizeof(*reply_p));
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
}

int mlx5sim_srq_create(mlx5sim_cmd_t *cmd, uint64_t user_handle,
                       uint32_t pd_handle, uint32_t max_wr, uint32_t max_sge,
                       uint32_t limit,
                       struct ib_uverbs_create_srq_resp *reply_p)
{
    mlx5sim_srq_t *srq;
    int ret;

    ret = mlx5sim_srq_make(cmd, user_handle, pd_handle, max_wr, max_sge, limit,
                           &srq);
    if (ret == 0) {
        mlx5sim_srq_finish(cmd, srq, reply_p);
    }
    return ret;
}

static int mlx5sim_cmd_create_srq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_create_srq *in  = cmd->in;
    struct ib_uverbs_create_srq_resp reply = {0};

    return mlx5sim_srq_create(cmd, in->user_handle, in->pd_handle, in->max_wr,
                              in->max_sge, in->srq_limit, &reply);
}

static int mlx5sim_cmd_create_xsrq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_create_xsrq *in = cmd->in;
    struct ib_uverbs_create_srq_resp reply = {0};
    int is_xrc                             = in->srq_type == IBV_SRQT_XRC;
    mlx5sim_srq_t *srq;
    int ret;

    if (in->srq_type == IBV_SRQT_TM) {
        return mlx5sim_refuse(MLX5SIM_MISSING_TM);
    }

    if ((in->srq_type != IBV_SRQT_BASIC) && !is_xrc) {
        return -EINVAL;
    }

    ret = is_xrc ? mlx5sim_xrc_check_srq(cmd, in->xrcd_handle,
                                         in->cq_handle) : 0;
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_srq_make(cmd, in->user_handle, in->pd_handle, in->max_wr,
                           in->max_sge, in->srq_limit, &srq);
    if (ret != 0) {
        return ret;
    }

    if (is_xrc) {
        mlx5sim_xrc_init_srq(cmd, srq, in->xrcd_handle, in->cq_handle);
    }
    mlx5sim_srq_finish(cmd, srq, &reply);
    return 0;
}

static mlx5sim_srq_t *mlx5sim_srq_get(mlx5sim_cmd_t *cmd, uint32_t handle)
{
    return mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_SRQ, handle);
}

static int mlx5sim_cmd_modify_srq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_modify_srq *in = cmd->in;
    mlx5sim_srq_t *srq                    = mlx5sim_srq_get(cmd,
                                                            in->srq_handle);

    if (srq == NULL) {
        return -EINVAL;
    }

    if (in->attr_mask & IBV_SRQ_MAX_WR) {
        return -EINVAL; /* mlx5 cannot resize an SRQ */
    }

    if (in->attr_mask & IBV_SRQ_LIMIT) {
        if (in->srq_limit >= srq->num_wqes) {
            return -EINVAL;
        }

        mlx5sim_srq_set_limit(srq, in->srq_limit);
    }

    return 0;
}

static int mlx5sim_cmd_query_srq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_query_srq *in  = cmd->in;
    struct ib_uverbs_query_srq_resp reply = {0};
    mlx5sim_srq_t *srq                    = mlx5sim_srq_get(cmd,
                                                            in->srq_handle);

    if (srq == NULL) {
        return -EINVAL;
    }

    reply.max_wr    = srq->num_wqes - 1;
    reply.max_sge   = srq->max_sge;
    reply.srq_limit = srq->limit;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

int mlx5sim_cmd_destroy_srq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_destroy_srq *in  = cmd->in;
    struct ib_uverbs_destroy_srq_resp reply = {0};
    mlx5sim_srq_t *srq                      = mlx5sim_srq_get(cmd,
                                                              in->srq_handle);

    if (srq == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&srq->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_xrc_withdraw_srq(srq);
    reply.events_reported = mlx5sim_async_reported(&srq->o,
                                                   offsetof(struct ibv_srq,
                                                            events_completed));
    atomic_fetch_sub(&((mlx5sim_pd_t*)mlx5sim_obj_at(MLX5SIM_OBJ_PD,
                                                     srq->pd))->refs, 1);
    mlx5sim_xrc_leave_srq(srq);
    mlx5sim_obj_free(MLX5SIM_OBJ_SRQ, srq);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_srq[] = {
    {IB_USER_VERBS_CMD_CREATE_SRQ, "CREATE_SRQ",
     sizeof(struct ib_uverbs_create_srq), sizeof(struct mlx5_ib_create_srq) - 8,
     sizeof(struct ib_uverbs_create_srq_resp),
     sizeof(struct mlx5_ib_create_srq_resp), mlx5sim_cmd_create_srq,
     MLX5SIM_FAULT_SRQ},
    {IB_USER_VERBS_CMD_CREATE_XSRQ, "CREATE_XSRQ",
     sizeof(struct ib_uverbs_create_xsrq),
     sizeof(struct mlx5_ib_create_srq) - 8,
     sizeof(struct ib_uverbs_create_srq_resp),
     sizeof(struct mlx5_ib_create_srq_resp), mlx5sim_cmd_create_xsrq,
     MLX5SIM_FAULT_SRQ},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, "MODIFY_SRQ",
     sizeof(struct ib_uverbs_modify_srq), 0, 0, 0, mlx5sim_cmd_modify_srq,
     MLX5SIM_FAULT_MODIFY_SRQ},
    {IB_USER_VERBS_CMD_QUERY_SRQ, "QUERY_SRQ",
     sizeof(struct ib_uverbs_query_srq), 0,
     sizeof(struct ib_uverbs_query_srq_resp), 0, mlx5sim_cmd_query_srq,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, "DESTROY_SRQ",
     sizeof(struct ib_uverbs_destroy_srq), 0,
     sizeof(struct ib_uverbs_destroy_srq_resp), 0, mlx5sim_cmd_destroy_srq,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
