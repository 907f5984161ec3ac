/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_xrc.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
#include <sim/queue/recv.h>
#include <sim/reap/reap.h>

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/stat.h>

/* mlx5sim_qp_t.uidx of who has none */
#define MLX5SIM_XRC_NO_UIDX 0xffffff

/*
 * The rules are those of the kernel: ib_uverbs_open_xrcd(),
 * ib_uverbs_close_xrcd(), __uverbs_create_xsrq() and create_qp() of
 * drivers/infiniband/core/uverbs_cmd.c.
 */


unsigned mlx5sim_xrc_part(unsigned qp_type)
{
    switch (qp_type) {
    case IBV_QPT_XRC_SEND:
        return MLX5SIM_XRC_INI;
    case IBV_QPT_XRC_RECV:
        return MLX5SIM_XRC_TGT;
    default:
        return MLX5SIM_XRC_NONE;
    }
}

mlx5sim_xrcd_t *mlx5sim_xrcd_get(const mlx5sim_cmd_t *cmd, uint32_t handle)
{
    return mlx5sim_obj_mine(MLX5SIM_OBJ_XRCD, handle,
                            mlx5sim_cmd_ctx_index(cmd));
}

/* Whether anybody has this domain open */
static int mlx5sim_xrcd_exists(uint32_t dev, const mlx5sim_xrcd_id_t *id)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_XRCD].high);
    const mlx5sim_xrcd_t *xrcd;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        xrcd = mlx5sim_obj_at(MLX5SIM_OBJ_XRCD, i);
        if ((atomic_load(&xrcd->o.owner) != 0) && xrcd->o.ready &&
            (xrcd->dev == dev) && (xrcd->id.st_dev == id->st_dev) &&
            (xrcd->id.st_ino == id->st_ino)) {
            return 1;
        }
    }

    return 0;
}

/* Whether the domain of a file can be opened like that. @return 0 or -errno */
static int mlx5sim_xrcd_check(const mlx5sim_cmd_t *cmd, uint32_t oflags,
                              const mlx5sim_xrcd_id_t *id)
{
    int exists = mlx5sim_xrcd_exists(cmd->ctx->dev, id);

    if (!exists && !(oflags & O_CREAT)) {
        return -EAGAIN;
    }

    return (exists && (oflags & O_EXCL)) ? -EINVAL : 0;
}

/* limit_lock is held: of two that want to be the first, one is. @return 0 or
 * -errno */
static int mlx5sim_xrcd_open(const mlx5sim_cmd_t *cmd,
                             const struct ib_uverbs_open_xrcd *in,
                             mlx5sim_xrcd_id_t id, uint32_t *index_p)
{
    int is_file = in->fd != (uint32_t)-1;
    mlx5sim_xrcd_t *xrcd;
    int ret;

    ret = is_file ? mlx5sim_xrcd_check(cmd, in->oflags, &id) : 0;
    if (ret != 0) {
        return ret;
    }

    xrcd = mlx5sim_obj_alloc(MLX5SIM_OBJ_XRCD, mlx5sim_cmd_ctx_index(cmd));
    if (xrcd == NULL) {
        return -errno;
    }

    *index_p = mlx5sim_obj_index(MLX5SIM_OBJ_XRCD, xrcd);
    if (!is_file) {
        id.st_ino = ((uint64_t)xrcd->o.gen << 32) | *index_p;
    }

    xrcd->dev     = cmd->ctx->dev;
    xrcd->id      = id;
    atomic_thread_fence(memory_order_release);
    xrcd->o.ready = 1;
    return 0;
}

static int mlx5sim_cmd_open_xrcd(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_open_xrcd *in  = cmd->in;
    struct ib_uverbs_open_xrcd_resp reply = {0};
    mlx5sim_xrcd_id_t id                  = {0, 0};
    struct stat st;
    int ret;

    if (in->fd != (uint32_t)-1) {
        if (fstat((int)in->fd, &st) != 0) {
            return -EBADF;
        }
        id = (mlx5sim_xrcd_id_t){st.st_dev, st.st_ino};
    }

    /* what only the dead have open is not there */
    mlx5sim_proc_reap_dead();
    (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
    ret = mlx5sim_xrcd_open(cmd, in, id, &reply.xrcd_handle);
    mlx5sim_unlock(&mlx5sim_store->limit_lock);
    if (ret != 0) {
        return ret;
    }

    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

static int mlx5sim_cmd_close_xrcd(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_close_xrcd *in = cmd->in;
    mlx5sim_xrcd_t *xrcd = mlx5sim_xrcd_get(cmd, in->xrcd_handle);

    if (xrcd == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&xrcd->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_XRCD, xrcd);
    return 0;
}

static void mlx5sim_xrc_cq_refs_add(uint32_t cq, int diff)
{
    atomic_fetch_add(&((mlx5sim_cq_t*)mlx5sim_obj_at(MLX5SIM_OBJ_CQ,
                                                     cq))->refs, diff);
}

void mlx5sim_xrc_refs_add(uint32_t xrcd, int diff)
{
    atomic_fetch_add(&((mlx5sim_xrcd_t*)mlx5sim_obj_at(MLX5SIM_OBJ_XRCD,
                                                       xrcd))->refs, diff);
}

int mlx5sim_xrc_check_srq(const mlx5sim_cmd_t *cmd, uint32_t xrcd_handle,
                          uint32_t cq_handle)
{
    return ((mlx5sim_xrcd_get(cmd, xrcd_handle) != NULL) &&
            (mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_CQ, cq_handle) != NULL)) ?
           0 : -EINVAL;
}

void mlx5sim_xrc_init_srq(const mlx5sim_cmd_t *cmd, mlx5sim_srq_t *srq,
                          uint32_t xrcd_handle, uint32_t cq_handle)
{
    const struct mlx5_ib_create_srq *uin = cmd->uin;

    mlx5sim_xrc_refs_add(xrcd_handle, 1);
    mlx5sim_xrc_cq_refs_add(cq_handle, 1);
    srq->cq   = cq_handle;
    srq->uidx = (cmd->uin_size >= offsetof(struct mlx5_ib_create_srq,
                                           reserved1)) ?
                uin->uidx : MLX5SIM_XRC_NO_UIDX;
    srq->xrcd = xrcd_handle + 1;
}

/* A target has no reference to the SRQ of the last message. If it has a message
 * of which a part has landed there, the rest is refused. */
static void mlx5sim_xrc_unbind(mlx5sim_qp_obj_t *qp, const mlx5sim_srq_t *srq)
{
    mlx5sim_rq_lock(qp); /* which who delivers has, too */
    if (qp->srq == srq->srqn + 1) {
        qp->qp.pdn       = 0;
        qp->qp.srqn      = 0;
        qp->srq          = 0;
        qp->recv_cq      = 0;
        qp->claim.active = 0;
        qp->claim.held   = 0;
    }
    mlx5sim_unlock(&qp->rq_lock);
}

void mlx5sim_xrc_withdraw_srq(mlx5sim_srq_t *srq)
{
    mlx5sim_qp_obj_t *qp;
    uint32_t high, i;

    if (srq->xrcd == 0) {
        return;
    }

    /* no target finds it from here on; then those that have found it: they are
     * of this process, too */
    srq->o.ready = 0;
    atomic_thread_fence(memory_order_seq_cst);
    high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    for (i = 0; i < high; ++i) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, i);
        if ((atomic_load(&qp->o.owner) == mlx5sim_self_tag) && qp->o.ready &&
            (qp->xrcd != 0)) {
            mlx5sim_xrc_unbind(qp, srq);
        }
    }

    /* what a requester holds back is written before the queue can go */
    mlx5sim_cq_settle(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, srq->cq));
}

void mlx5sim_xrc_leave_srq(mlx5sim_srq_t *srq)
{
    if (srq->xrcd != 0) {
        mlx5sim_xrc_refs_add(srq->xrcd - 1, -1);
        mlx5sim_xrc_cq_refs_add(srq->cq, -1);
        srq->xrcd = 0;
    }
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_xrc[] = {
    {IB_USER_VERBS_CMD_OPEN_XRCD, "OPEN_XRCD",
     sizeof(struct ib_uverbs_open_xrcd), 0,
     sizeof(struct ib_uverbs_open_xrcd_resp), 0, mlx5sim_cmd_open_xrcd,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_CLOSE_XRCD, "CLOSE_XRCD",
     sizeof(struct ib_uverbs_close_xrcd), 0, 0, 0, mlx5sim_cmd_close_xrcd,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
