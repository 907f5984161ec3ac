/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_context.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>
#include <sim/uar/legacy.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_chan.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

/* Limits that libmlx5 takes at open; values of a ConnectX-5 */
#define MLX5SIM_LOG_QP_TAB_SIZE 18
#define MLX5SIM_MAX_SQ_DESC     1024
#define MLX5SIM_MAX_RQ_DESC     512
#define MLX5SIM_MAX_WQEBB       32768
#define MLX5SIM_CQE_VERSION     1


/* The request is as long as the library's version of it: at first the uUARs
 * only, then flags, CQE version, capabilities (mlx5_ib_alloc_ucontext of the
 * kernel).
 * @return version of the structure, or -errno */
static int mlx5sim_context_request(const mlx5sim_cmd_t *cmd,
                                   struct mlx5_ib_alloc_ucontext_req_v2 *req_p)
{
    size_t min_v2 = offsetof(struct mlx5_ib_alloc_ucontext_req_v2,
                             max_cqe_version);

    if ((cmd->uin_size != sizeof(struct mlx5_ib_alloc_ucontext_req)) &&
        (cmd->uin_size < min_v2)) {
        return -EINVAL;
    }

    memset(req_p, 0, sizeof(*req_p));
    memcpy(req_p, cmd->uin, (cmd->uin_size < sizeof(*req_p)) ? cmd->uin_size :
                                                               sizeof(*req_p));
    if ((req_p->flags & ~MLX5_IB_ALLOC_UCTX_DEVX) || req_p->comp_mask ||
        req_p->reserved0 || req_p->reserved1 || req_p->reserved2) {
        return -EOPNOTSUPP;
    }

    /* libmlx5 then asks again without */
    if ((req_p->flags & MLX5_IB_ALLOC_UCTX_DEVX) &&
        !mlx5sim_instance_config()->devx) {
        return -EINVAL;
    }

    return (cmd->uin_size < min_v2) ? 0 : 2;
}

static void mlx5sim_context_reply(const mlx5sim_ctx_t *ctx, void *out,
                                  size_t size)
{
    struct mlx5_ib_alloc_ucontext_resp reply = {0};

    reply.qp_tab_size       = 1 << MLX5SIM_LOG_QP_TAB_SIZE;
    /* mlx5_ib: only with mlx5_ib_dev::wc_support */
    reply.bf_reg_size       = mlx5sim_instance_config()->bf ?
                              MLX5SIM_UAR_BF_REG : 0;
    reply.tot_bfregs        = ctx->static_uuars;
    reply.cache_line_size   = 64;
    reply.max_sq_desc_sz    = MLX5SIM_MAX_SQ_DESC;
    reply.max_rq_desc_sz    = MLX5SIM_MAX_RQ_DESC;
    reply.max_send_wqebb    = MLX5SIM_MAX_WQEBB;
    reply.max_recv_wr       = MLX5SIM_MAX_WQEBB;
    reply.max_srq_recv_wr   = MLX5SIM_MAX_WQEBB - 1;
    reply.num_ports         = mlx5sim_instance_config()->ports;
    reply.response_length   = sizeof(reply);
    reply.cqe_version       = ctx->cqe_version;
    reply.cmds_supp_uhw     = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
                              MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
    reply.eth_min_inline    = MLX5_USER_INLINE_MODE_NONE;
    reply.log_uar_size      = MLX5SIM_UAR_PAGE_SHIFT;
    reply.comp_mask         =
            MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE |
            MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS |
            MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
    reply.hca_core_clock_offset = MLX5SIM_UAR_OFFSET_CORE_CLOCK;
    reply.clock_info_versions   = 1 << MLX5_IB_CLOCK_INFO_V1;
    reply.num_uars_per_page = 1;
    /* 0 even if there are static ones: libmlx5 then uses the UAR object */
    reply.num_dyn_bfregs    = ctx->is_legacy ? MLX5SIM_LEGACY_DYN_UUARS : 0;
    mlx5sim_cmd_reply(out, size, &reply, sizeof(reply));
}

/* What both ways of asking for a context have in common.
 * @return 0 or -errno */
static int mlx5sim_context_open(mlx5sim_cmd_t *cmd, unsigned *cqe_version_p)
{
    mlx5sim_ctx_t *ctx = cmd->ctx;
    struct mlx5_ib_alloc_ucontext_req_v2 req;
    int version, ret;

    if (ctx->is_open) {
        return -EINVAL; /* a context is made once per open */
    }

    version = mlx5sim_context_request(cmd, &req);
    if (version < 0) {
        return version;
    }

    /* libmlx5 repeats the command with shorter requests: count one fault per
     * open */
    if (ctx->fault == MLX5SIM_CONTEXT_NEW) {
        ctx->fault = mlx5sim_inject(MLX5SIM_FAULT_CONTEXT);
    }
    if (ctx->fault != 0) {
        return ctx->fault;
    }

    if ((mlx5sim_instance_config()->uar_mode == MLX5SIM_UAR_MODE_LEGACY) ||
        !(req.lib_caps & MLX5_LIB_CAP_DYN_UAR)) {
        ret = mlx5sim_legacy_open(ctx, version, req.total_num_bfregs,
                                  req.num_low_latency_bfregs);
        if (ret != 0) {
            return ret;
        }
    }

    ctx->has_devx  = !!(req.flags & MLX5_IB_ALLOC_UCTX_DEVX);
    *cqe_version_p = (req.max_cqe_version < MLX5SIM_CQE_VERSION) ?
                     req.max_cqe_version : MLX5SIM_CQE_VERSION;
    return 0;
}

/* From here on nothing fails */
static void mlx5sim_context_finish(mlx5sim_cmd_t *cmd, unsigned cqe_version)
{
    cmd->ctx->is_open     = 1;
    cmd->ctx->cqe_version = cqe_version;
    atomic_fetch_add(&mlx5sim_proc_self()->c.created[MLX5SIM_OBJ_CTX], 1);
    mlx5sim_context_reply(cmd->ctx, cmd->uout, cmd->uout_size);
}

int mlx5sim_cmd_get_context(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_get_context_resp core_reply = {0};
    mlx5sim_ctx_t *ctx                           = cmd->ctx;
    unsigned cqe_version;
    uint32_t chan;
    int fd, ret;

    ret = mlx5sim_context_open(cmd, &cqe_version);
    if (ret != 0) {
        return ret;
    }

    fd = mlx5sim_uverbs_chan_create(mlx5sim_cmd_ctx_index(cmd), 1, &chan);
    if (fd < 0) {
        mlx5sim_legacy_close(ctx);
        return fd;
    }

    ctx->async_fifo             = chan;
    core_reply.async_fd         = fd;
    core_reply.num_comp_vectors = MLX5SIM_COMP_VECTORS;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &core_reply, sizeof(core_reply));
    mlx5sim_context_finish(cmd, cqe_version);
    return 0;
}

/* What any device's context is told */
static void mlx5sim_context_core(const struct ib_uverbs_attr *num,
                                 const struct ib_uverbs_attr *core)
{
    static const uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
    static const uint32_t vectors = MLX5SIM_COMP_VECTORS;

    if ((num != NULL) && (num->data != 0)) {
        mlx5sim_cmd_reply(mlx5sim_attr_out(num), num->len, &vectors,
                          sizeof(vectors));
    }
    if ((core != NULL) && (core->data != 0)) {
        mlx5sim_cmd_reply(mlx5sim_attr_out(core), core->len, &support,
                          sizeof(support));
    }
}

int mlx5sim_method_get_context(mlx5sim_ctx_t *ctx, int fd,
                               struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *num, *core, *in, *out;
    mlx5sim_cmd_t cmd = {.ctx = ctx, .fd = fd};
    unsigned cqe_version;
    int ret;

    num  = mlx5sim_attr_find(hdr, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS);
    core = mlx5sim_attr_find(hdr, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT);
    in   = mlx5sim_attr_find(hdr, UVERBS_ATTR_UHW_IN);
    out  = mlx5sim_attr_find(hdr, UVERBS_ATTR_UHW_OUT);
    if ((in == NULL) || (out == NULL) ||
        (in->len < sizeof(struct mlx5_ib_alloc_ucontext_req))) {
        return -EINVAL;
    }

    cmd.uin       = mlx5sim_attr_in(in);
    cmd.uin_size  = in->len;
    cmd.uout      = mlx5sim_attr_out(out);
    cmd.uout_size = out->len;
    memset(cmd.uout, 0, cmd.uout_size);
    ret           = mlx5sim_context_open(&cmd, &cqe_version);
    if (ret != 0) {
        return ret;
    }

    mlx5sim_context_core(num, core);
    mlx5sim_context_finish(&cmd, cqe_version);
    return 0;
}

int mlx5sim_method_query_context(mlx5sim_ctx_t *ctx, int fd,
                                 struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *num, *core, *resp;

    /* a second context on the same descriptor would close it, too */
    if (fd == ctx->opened_fd) {
        return mlx5sim_refuse(MLX5SIM_MISSING_IMPORT);
    }

    if (!ctx->is_open) {
        return -EINVAL;
    }

    num  = mlx5sim_attr_find(hdr, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS);
    core = mlx5sim_attr_find(hdr, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT);
    resp = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
    if (resp == NULL) {
        return -EINVAL;
    }

    if (resp->data == 0) {
        return -EFAULT;
    }

    mlx5sim_context_core(num, core);
    mlx5sim_context_reply(ctx, mlx5sim_attr_out(resp), resp->len);
    return 0;
}

/* Kernel, drivers/infiniband/hw/mlx5/std_types.c: only in switchdev mode is
 * there something to tell */
int mlx5sim_method_query_port(struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *port, *info;

    port = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM);
    info = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_QUERY_PORT);
    if ((port == NULL) || (port->len != sizeof(uint32_t)) || (info == NULL) ||
        (info->len < sizeof(struct mlx5_ib_uapi_query_port)) ||
        ((uint32_t)port->data == 0) ||
        ((uint32_t)port->data > mlx5sim_instance_config()->ports)) {
        return -EINVAL;
    }

    if (info->data == 0) {
        return -EFAULT;
    }

    memset(mlx5sim_attr_out(info), 0, info->len);
    return 0;
}

int mlx5sim_method_alloc_async(mlx5sim_ctx_t *ctx,
                               struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    uint32_t chan;
    int fd;

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
    if ((handle == NULL) || !ctx->is_open) {
        return -EINVAL;
    }

    fd = mlx5sim_uverbs_chan_create(mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx), 1,
                                    &chan);
    if (fd < 0) {
        return fd;
    }

    /* events are told by the first one; who imports a context has another */
    if (ctx->async_fifo == 0) {
        ctx->async_fifo = chan;
    }
    mlx5sim_attr_set_handle(handle, fd);
    return 0;
}
