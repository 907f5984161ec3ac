/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/instance/instance.h>
#include <sim/limit/limit.h>
#include <sim/objs/mem.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/cq.h>
#include <sim/trace/trace.h>
#include <sim/uar/legacy.h>
#include <sim/uverbs/fd.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>
#include <sim/uverbs/uverbs_chan.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <unistd.h>


static int mlx5sim_cmd_create_comp_channel(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_create_comp_channel_resp reply = {0};
    uint32_t chan;
    int fd;

    fd = mlx5sim_uverbs_chan_create(mlx5sim_obj_index(MLX5SIM_OBJ_CTX,
                                                      cmd->ctx), 0, &chan);
    if (fd < 0) {
        return fd;
    }

    reply.fd = fd;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

/* UAR page that the CQ is armed through: libmlx5's choice, or the first static
 * one; 0 if there is none */
static uint32_t mlx5sim_cq_uar(mlx5sim_cmd_t *cmd,
                               const struct mlx5_ib_create_cq *uin)
{
    uint32_t ctx = mlx5sim_cmd_ctx_index(cmd);

    if (uin->flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) {
        return ((!cmd->ctx->is_legacy || cmd->is_devx) &&
                (mlx5sim_obj_mine(MLX5SIM_OBJ_UAR, uin->uar_page_index, ctx) !=
                 NULL)) ? uin->uar_page_index : 0;
    }

    return cmd->ctx->is_legacy ? mlx5sim_legacy_find(ctx, 0) : 0;
}

/* Length of the ring for @a num CQEs: libmlx5 passes its ring's length less
 * one, and the kernel rounds as well */
static uint32_t mlx5sim_cq_ring(uint32_t num)
{
    uint32_t num_cqes;

    for (num_cqes = 1; num_cqes < num + 1; num_cqes <<= 1) {
    }
    return num_cqes;
}

/* Whether a ring can be at the given address: the kernel and firmware count in
 * units of 64 bytes (mlx5_umem_find_best_quantized_pgoff()) */
static int mlx5sim_cq_check(uint32_t num, uint64_t buf, uint32_t cqe_size)
{
    struct iovec local, last;
    uint64_t end;
    char probe;

    if (((cqe_size != 64) && (cqe_size != 128)) || (num > (1u << 22)) ||
        (buf & 63)) {
        return -EINVAL;
    }

    end            = buf + ((uint64_t)mlx5sim_cq_ring(num) * cqe_size);
    local.iov_base = &probe;
    local.iov_len  = 1;
    last.iov_base  = (void*)(uintptr_t)(end - 1);
    last.iov_len   = 1;
    return (mlx5sim_mem_probev(mlx5sim_proc_self(), &local, 1, &last, 1, 1) ==
            0) ? 0 : -EFAULT;
}

/* Compression as the driver asks for it. Hash or checksum makes no difference:
 * no packet has either. create_cq_user() and
 * mini_cqe_res_format_to_hw() of the kernel's mlx5_ib say what is refused. */
static int mlx5sim_cq_check_compression(const struct mlx5_ib_create_cq *uin)
{
    unsigned which = mlx5sim_instance_config()->cqe_compression;

    if (uin->cqe_comp_en != 1) {
        return 0;
    }

    if ((which == MLX5SIM_CQE_COMPRESSION_NONE) ||
        ((which == MLX5SIM_CQE_COMPRESSION_64) && (uin->cqe_size != 64))) {
        return -EOPNOTSUPP;
    }

    switch (uin->cqe_comp_res_format) {
    case MLX5_IB_CQE_RES_FORMAT_HASH:
    case MLX5_IB_CQE_RES_FORMAT_CSUM:
    case MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX:
        return 0;
    default:
        return -EINVAL;
    }
}

/* Flags of the driver; the same function of the kernel. CQEs of 128 bytes are
 * written in full anyway. */
static int mlx5sim_cq_check_flags(const struct mlx5_ib_create_cq *uin)
{
    if (uin->flags & ~(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD |
                       MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
                       MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)) {
        return -EINVAL;
    }

    return ((uin->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) &&
            (uin->cqe_size != 128)) ? -EOPNOTSUPP : 0;
}

/* Body of both create commands */
int mlx5sim_cq_create(mlx5sim_cmd_t *cmd, uint64_t user_handle, uint32_t num,
                      uint32_t comp_vector, int32_t channel_fd, uint32_t flags,
                      struct ib_uverbs_create_cq_resp *reply_p)
{
    const struct mlx5_ib_create_cq *uin = cmd->uin;
    struct mlx5_ib_create_cq_resp ureply = {0};
    uint32_t uar, chan = 0;
    mlx5sim_cq_t *cq;
    int ret;

    if (flags & ~IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) {
        return mlx5sim_refuse(MLX5SIM_MISSING_CQ_OPTIONS);
    }

    /* the vector: create_cq() of the kernel's uverbs_cmd.c; its mlx5_ib makes
     * no CQ of one place, which firmware does */
    if ((uin->db_addr & 7) || (comp_vector >= MLX5SIM_COMP_VECTORS) ||
        ((num == 0) && !cmd->is_devx)) {
        return -EINVAL;
    }

    ret = mlx5sim_cq_check(num, uin->buf_addr, uin->cqe_size);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_cq_check_compression(uin);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_cq_check_flags(uin);
    if (ret != 0) {
        return ret;
    }

    if (channel_fd >= 0) {
        chan = mlx5sim_fd_chan(channel_fd);
        if (chan == 0) {
            return -EINVAL;
        }
    }

    uar = mlx5sim_cq_uar(cmd, uin);
    if (uar == 0) {
        return -EINVAL;
    }

    cq = mlx5sim_limit_alloc(cmd->ctx, MLX5SIM_OBJ_CQ);
    if (cq == NULL) {
        return -errno;
    }

    cq->o.user_handle = user_handle;
    cq->buf           = uin->buf_addr;
    cq->db            = uin->db_addr;
    cq->num_cqes      = mlx5sim_cq_ring(num);
    cq->cqe_size      = uin->cqe_size;
    cq->uar           = uar;
    cq->compressed    = uin->cqe_comp_en == 1;
    cq->zip.has_index = uin->cqe_comp_res_format ==
                        MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX;

    cq->ignore_overrun = !!(flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN);
    if (chan != 0) {
        cq->chan = chan + 1;
        atomic_fetch_add(&((mlx5sim_chan_t*)mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                                           chan))->refs, 1);
    }
    mlx5sim_cq_share(cq);
    atomic_thread_fence(memory_order_release);
    cq->o.ready = 1;

    reply_p->cq_handle = mlx5sim_obj_index(MLX5SIM_OBJ_CQ, cq);
    reply_p->cqe       = cq->num_cqes - 1;
    ureply.cqn         = reply_p->cq_handle;
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
    return 0;
}

static int mlx5sim_cmd_create_cq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_create_cq *in  = cmd->in;
    struct ib_uverbs_create_cq_resp reply = {0};
    int ret;

    ret = mlx5sim_cq_create(cmd, in->user_handle, in->cqe, in->comp_vector,
                            in->comp_channel, 0, &reply);
    if (ret == 0) {
        mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    }
    return ret;
}

static int mlx5sim_cmd_ex_create_cq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_ex_create_cq *in  = cmd->in;
    struct ib_uverbs_ex_create_cq_resp reply = {.comp_mask = 0};
    int ret;

    if (in->comp_mask != 0) {
        return -EINVAL;
    }

    ret = mlx5sim_cq_create(cmd, in->user_handle, in->cqe, in->comp_vector,
                            in->comp_channel, in->flags, &reply.base);
    if (ret == 0) {
        reply.response_length = sizeof(reply);
        mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    }
    return ret;
}

static int mlx5sim_cmd_resize_cq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_resize_cq *in  = cmd->in;
    const struct mlx5_ib_resize_cq *uin   = cmd->uin;
    struct ib_uverbs_resize_cq_resp reply = {0};
    uint32_t num_cqes;
    mlx5sim_cq_t *cq;
    int ret;

    cq = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_CQ, in->cq_handle);
    if ((cq == NULL) || uin->reserved0 || uin->reserved1) {
        return -EINVAL;
    }

    /* mlx5_copy_cqes() of libmlx5, which moves what was not polled to the new
     * ring, takes blocks for single CQEs */
    if (cq->compressed) {
        return mlx5sim_refuse(MLX5SIM_MISSING_CQ_RESIZE);
    }

    ret = (in->cqe == 0) ? -EINVAL :
          mlx5sim_cq_check(in->cqe, uin->buf_addr, uin->cqe_size);
    if (ret != 0) {
        return ret;
    }

    num_cqes = mlx5sim_cq_ring(in->cqe);
    ret      = mlx5sim_cq_resize(cq, uin->buf_addr, num_cqes, uin->cqe_size);
    if (ret != 0) {
        return ret;
    }

    reply.cqe = num_cqes - 1;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

int mlx5sim_cmd_destroy_cq(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_destroy_cq *in  = cmd->in;
    struct ib_uverbs_destroy_cq_resp reply = {0};
    mlx5sim_chan_t *chan;
    mlx5sim_cq_t *cq;

    cq = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_CQ, in->cq_handle);
    if (cq == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&cq->refs) != 0) {
        return -EBUSY;
    }

    /* no QP, so nothing is added. Count what the application has really read:
     * it has acknowledged that by the time it may destroy the CQ. */
    if (cq->chan != 0) {
        chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, cq->chan - 1);
        /* nobody acknowledges events of CQs made by firmware commands */
        reply.comp_events_reported = cq->o.devx.is_made ? 0 :
                mlx5sim_chan_reported(chan, cq->o.user_handle, cq->unsure,
                                      cq->events,
                                      offsetof(struct ibv_cq,
                                               comp_events_completed));
        atomic_fetch_sub(&chan->refs, 1);
    }

    reply.async_events_reported =
            mlx5sim_async_reported(&cq->o, offsetof(struct ibv_cq,
                                                    async_events_completed));
    if (mlx5sim_trace_is_on()) {
        mlx5sim_cq_trace_polled(cq);
    }
    mlx5sim_cq_unshare(cq);
    mlx5sim_obj_free(MLX5SIM_OBJ_CQ, cq);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_cq[] = {
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "CREATE_COMP_CHANNEL", 8, 0,
     sizeof(struct ib_uverbs_create_comp_channel_resp), 0,
     mlx5sim_cmd_create_comp_channel,
     MLX5SIM_FAULT_CHANNEL},
    {IB_USER_VERBS_CMD_CREATE_CQ, "CREATE_CQ",
     sizeof(struct ib_uverbs_create_cq), sizeof(struct mlx5_ib_create_cq),
     sizeof(struct ib_uverbs_create_cq_resp),
     sizeof(struct mlx5_ib_create_cq_resp), mlx5sim_cmd_create_cq,
     MLX5SIM_FAULT_CQ},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ,
     "EX_CREATE_CQ", sizeof(struct ib_uverbs_ex_create_cq),
     sizeof(struct mlx5_ib_create_cq),
     sizeof(struct ib_uverbs_ex_create_cq_resp),
     sizeof(struct mlx5_ib_create_cq_resp), mlx5sim_cmd_ex_create_cq,
     MLX5SIM_FAULT_CQ},
    {IB_USER_VERBS_CMD_RESIZE_CQ, "RESIZE_CQ",
     sizeof(struct ib_uverbs_resize_cq), sizeof(struct mlx5_ib_resize_cq),
     sizeof(struct ib_uverbs_resize_cq_resp), 0, mlx5sim_cmd_resize_cq,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_DESTROY_CQ, "DESTROY_CQ",
     sizeof(struct ib_uverbs_destroy_cq), 0,
     sizeof(struct ib_uverbs_destroy_cq_resp), 0, mlx5sim_cmd_destroy_cq,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
