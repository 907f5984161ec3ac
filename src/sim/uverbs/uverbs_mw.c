/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/limit/limit.h>
#include <sim/objs/store.h>
#include <sim/sched/helper.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>


/* ib_uverbs_alloc_mw(), mlx5_ib_alloc_mw(): a key that is free. Work requests
 * do the rest. */
static int mlx5sim_cmd_alloc_mw(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_alloc_mw *in  = cmd->in;
    struct ib_uverbs_alloc_mw_resp reply = {0};
    mlx5sim_mr_obj_t *window;
    mlx5sim_pd_t *pd;

    pd = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, in->pd_handle);
    if ((pd == NULL) || ((in->mw_type != IBV_MW_TYPE_1) &&
                         (in->mw_type != IBV_MW_TYPE_2))) {
        return -EINVAL;
    }

    window = mlx5sim_limit_alloc(cmd->ctx, MLX5SIM_OBJ_MR);
    if (window == NULL) {
        return -errno;
    }

    atomic_fetch_add(&pd->refs, 1);
    window->pd          = in->pd_handle;
    window->window.type = in->mw_type;
    window->mr.pdn      = in->pd_handle;
    window->mr.key      = (mlx5sim_obj_index(MLX5SIM_OBJ_MR, window) << 8) |
                          (window->o.gen & 0xff);
    atomic_thread_fence(memory_order_release);
    window->o.ready     = 1;

    reply.mw_handle = mlx5sim_obj_index(MLX5SIM_OBJ_MR, window);
    reply.rkey      = window->mr.key;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

/* Bound or not: nobody counts windows of a region, either */
static int mlx5sim_cmd_dealloc_mw(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_dealloc_mw *in = cmd->in;
    mlx5sim_mr_obj_t *window;

    window = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_MR, in->mw_handle);
    if ((window == NULL) || (window->window.type == 0)) {
        return -ENOENT;
    }

    /* no new access from here on; then wait for those under way */
    window->o.ready = 0;
    atomic_thread_fence(memory_order_seq_cst);
    mlx5sim_helper_quiesce();

    atomic_fetch_sub(&((mlx5sim_pd_t*)mlx5sim_obj_at(MLX5SIM_OBJ_PD,
                                                     window->pd))->refs, 1);
    mlx5sim_obj_free(MLX5SIM_OBJ_MR, window);
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_mw[] = {
    {IB_USER_VERBS_CMD_ALLOC_MW, "ALLOC_MW", sizeof(struct ib_uverbs_alloc_mw),
     0, sizeof(struct ib_uverbs_alloc_mw_resp), 0, mlx5sim_cmd_alloc_mw,
     MLX5SIM_FAULT_MR},
    {IB_USER_VERBS_CMD_DEALLOC_MW, "DEALLOC_MW",
     sizeof(struct ib_uverbs_dealloc_mw), 0, 0, 0, mlx5sim_cmd_dealloc_mw,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
