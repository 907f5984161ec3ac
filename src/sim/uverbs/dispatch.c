/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/dispatch.h>
#include <sim/config/seed.h>
#include <sim/devx/opcode.h>
#include <sim/doorbell/trap.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/cmd.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_context.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_dm.h>
#include <sim/uverbs/uverbs_dmabuf.h>
#include <sim/uverbs/uverbs_import.h>
#include <sim/uverbs/uverbs_odp.h>
#include <sim/uverbs/uverbs_pp.h>
#include <sim/uverbs/uverbs_uar.h>

#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* For mlx5sim_seed_draw() */
#define MLX5SIM_DISPATCH_SEED         0x434d44

static const mlx5sim_cmd_desc_t *const mlx5sim_cmd_tables[] = {
    mlx5sim_cmds_device, mlx5sim_cmds_mr, mlx5sim_cmds_mw, mlx5sim_cmds_cq,
    mlx5sim_cmds_srq, mlx5sim_cmds_qp, mlx5sim_cmds_xrc, NULL
};


static const mlx5sim_cmd_desc_t *mlx5sim_cmd_find(uint32_t number)
{
    const mlx5sim_cmd_desc_t *const *table, *desc;

    for (table = mlx5sim_cmd_tables; *table != NULL; ++table) {
        for (desc = *table; desc->handler != NULL; ++desc) {
            if (desc->number == number) {
                return desc;
            }
        }
    }

    return NULL;
}

static int mlx5sim_invoke_write(mlx5sim_ctx_t *ctx, int fd,
                                struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *number, *in, *out, *uin, *uout;
    mlx5sim_cmd_t cmd = {.ctx = ctx, .fd = fd};
    const mlx5sim_cmd_desc_t *desc;
    unsigned log = mlx5sim_instance_config()->log;
    int ret;

    number = mlx5sim_attr_find(hdr, UVERBS_ATTR_WRITE_CMD);
    if (number == NULL) {
        return -EINVAL;
    }

    in   = mlx5sim_attr_find(hdr, UVERBS_ATTR_CORE_IN);
    out  = mlx5sim_attr_find(hdr, UVERBS_ATTR_CORE_OUT);
    uin  = mlx5sim_attr_find(hdr, UVERBS_ATTR_UHW_IN);
    uout = mlx5sim_attr_find(hdr, UVERBS_ATTR_UHW_OUT);
    desc = mlx5sim_cmd_find(number->data);

    /* libibverbs asks for this command without arguments to find out whether
     * the kernel takes verbs through ioctl; any error but these two says yes */
    if ((in == NULL) && (out == NULL) && (uin == NULL)) {
        return -ENOSPC;
    }

    if (desc == NULL) {
        return mlx5sim_refuse_command(number->data);
    }

    if (in != NULL) {
        cmd.in      = mlx5sim_attr_in(in);
        cmd.in_size = in->len;
    }
    if (uin != NULL) {
        cmd.uin      = mlx5sim_attr_in(uin);
        cmd.uin_size = uin->len;
    }
    if (out != NULL) {
        cmd.out      = mlx5sim_attr_out(out);
        cmd.out_size = out->len;
        memset(cmd.out, 0, cmd.out_size);
    }
    if (uout != NULL) {
        cmd.uout      = mlx5sim_attr_out(uout);
        cmd.uout_size = uout->len;
        memset(cmd.uout, 0, cmd.uout_size);
    }

    if ((cmd.in_size < desc->in_size) || (cmd.uin_size < desc->uin_size) ||
        (cmd.out_size < desc->out_size) ||
        (cmd.uout_size < desc->uout_size)) {
        if (log >= MLX5SIM_LOG_LEVEL_WARN) {
            fprintf(stderr, "mlx5sim: %s with sizes %zu/%zu -> %zu/%zu, wants "
                    "%u/%u -> %u/%u\n", desc->name, cmd.in_size, cmd.uin_size,
                    cmd.out_size, cmd.uout_size, desc->in_size, desc->uin_size,
                    desc->out_size, desc->uout_size);
        }
        return -EINVAL;
    }

    ret = (desc->fault != MLX5SIM_FAULT_NONE) ? mlx5sim_inject(desc->fault) : 0;
    if (ret == 0) {
        ret = desc->handler(&cmd);
    }
    if (log >= MLX5SIM_LOG_LEVEL_DEBUG) {
        fprintf(stderr, "mlx5sim: %s -> %d\n", desc->name, ret);
    }
    return ret;
}

/* What a kernel without the object or method returns; libibverbs repeats what
 * it can as INVOKE_WRITE */
static int mlx5sim_no_method(const struct ib_uverbs_ioctl_hdr *hdr)
{
    return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
}

/* Take time (MLX5SIM_CMD_DELAY). Commands of several threads do so side by
 * side. */
static void mlx5sim_dispatch_wait(void)
{
    static _Atomic uint64_t count;
    unsigned max = mlx5sim_instance_config()->cmd_delay;
    struct timespec left;
    uint64_t us;

    if (max == 0) {
        return;
    }

    us           = mlx5sim_seed_draw(MLX5SIM_DISPATCH_SEED,
                                     atomic_fetch_add(&count, 1), 0) %
                   (max + 1);
    left.tv_sec  = us / 1000000;
    left.tv_nsec = (us % 1000000) * 1000;
    while ((nanosleep(&left, &left) != 0) && (errno == EINTR)) {
    }
}

static int mlx5sim_dispatch_command(mlx5sim_ctx_t *ctx, int fd,
                                    struct ib_uverbs_ioctl_hdr *hdr)
{
    /* What is left of a device that was removed under its users: the kernel has
     * dissociated the context (ib_uverbs_disassociate_ucontext) */
    if (atomic_load(&ctx->is_dead)) {
        return -EIO;
    }

    switch (hdr->object_id) {
    case MLX5_IB_OBJECT_DEVX:
    case MLX5_IB_OBJECT_DEVX_OBJ:
    case MLX5_IB_OBJECT_DEVX_UMEM:
    case MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD:
    case MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD:
        return mlx5sim_devx_method(ctx, hdr);
    default:
        break;
    }

    switch ((hdr->object_id << 16) | hdr->method_id) {
    case (UVERBS_OBJECT_DEVICE << 16) | UVERBS_METHOD_INVOKE_WRITE:
        return mlx5sim_invoke_write(ctx, fd, hdr);
    case (UVERBS_OBJECT_DEVICE << 16) | UVERBS_METHOD_GET_CONTEXT:
        return mlx5sim_method_get_context(ctx, fd, hdr);
    case (UVERBS_OBJECT_ASYNC_EVENT << 16) | UVERBS_METHOD_ASYNC_EVENT_ALLOC:
        return mlx5sim_method_alloc_async(ctx, hdr);
    case (UVERBS_OBJECT_CQ << 16) | UVERBS_METHOD_CQ_CREATE:
        return (fd == ctx->opened_fd) ? mlx5sim_no_method(hdr) :
                                        mlx5sim_method_create_cq(ctx, fd, hdr);
    case (UVERBS_OBJECT_SRQ << 16) | UVERBS_METHOD_SRQ_CREATE:
        return (fd == ctx->opened_fd) ? mlx5sim_no_method(hdr) :
                                        mlx5sim_method_create_srq(ctx, fd, hdr);
    case (UVERBS_OBJECT_QP << 16) | UVERBS_METHOD_QP_CREATE:
        return (fd == ctx->opened_fd) ? mlx5sim_no_method(hdr) :
                                        mlx5sim_method_create_qp(ctx, fd, hdr);
    case (UVERBS_OBJECT_DEVICE << 16) | UVERBS_METHOD_QUERY_CONTEXT:
        return mlx5sim_method_query_context(ctx, fd, hdr);
    case (UVERBS_OBJECT_DEVICE << 16) | MLX5_IB_METHOD_QUERY_PORT:
        return mlx5sim_method_query_port(hdr);
    case (UVERBS_OBJECT_PD << 16) | MLX5_IB_METHOD_PD_QUERY:
        return mlx5sim_method_query_pd(ctx, hdr);
    case (UVERBS_OBJECT_MR << 16) | UVERBS_METHOD_QUERY_MR:
        return mlx5sim_method_query_mr(ctx, hdr);
    case (UVERBS_OBJECT_MR << 16) | UVERBS_METHOD_ADVISE_MR:
        return mlx5sim_method_advise_mr(ctx, hdr);
    case (UVERBS_OBJECT_DM << 16) | UVERBS_METHOD_DM_ALLOC:
        return mlx5sim_method_dm_alloc(ctx, hdr);
    case (UVERBS_OBJECT_DM << 16) | UVERBS_METHOD_DM_FREE:
        return mlx5sim_method_dm_free(ctx, hdr);
    case (UVERBS_OBJECT_DM << 16) | MLX5_IB_METHOD_DM_QUERY:
        return mlx5sim_method_dm_query(ctx, hdr);
    case (UVERBS_OBJECT_MR << 16) | UVERBS_METHOD_DM_MR_REG:
        return mlx5sim_method_dm_reg_mr(ctx, hdr);
    case (UVERBS_OBJECT_MR << 16) | UVERBS_METHOD_REG_DMABUF_MR:
        return mlx5sim_method_reg_dmabuf_mr(ctx, hdr);
    case (MLX5_IB_OBJECT_UAR << 16) | MLX5_IB_METHOD_UAR_OBJ_ALLOC:
        return ctx->is_legacy ? mlx5sim_no_method(hdr) :
                                mlx5sim_cmd_uar_alloc(ctx, hdr);
    case (MLX5_IB_OBJECT_UAR << 16) | MLX5_IB_METHOD_UAR_OBJ_DESTROY:
        return ctx->is_legacy ? mlx5sim_no_method(hdr) :
                                mlx5sim_cmd_uar_destroy(ctx, hdr);
    case (MLX5_IB_OBJECT_PP << 16) | MLX5_IB_METHOD_PP_OBJ_ALLOC:
        return mlx5sim_instance_config()->devx ?
               mlx5sim_method_pp_alloc(ctx, hdr) : mlx5sim_no_method(hdr);
    case (MLX5_IB_OBJECT_PP << 16) | MLX5_IB_METHOD_PP_OBJ_DESTROY:
        return mlx5sim_instance_config()->devx ?
               mlx5sim_method_pp_destroy(ctx, hdr) : mlx5sim_no_method(hdr);
    default:
        return mlx5sim_no_method(hdr);
    }
}

/* Whether a firmware command asks for capabilities, as libmlx5 does when it is
 * asked for the device's attributes */
static int mlx5sim_dispatch_is_caps(struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *in =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
    uint16_t opcode;

    if ((in == NULL) || (in->len <= sizeof(in->data)) || (in->data == 0)) {
        return 0;
    }

    memcpy(&opcode, mlx5sim_attr_in(in), sizeof(opcode));
    return be16toh(opcode) == MLX5SIM_FW_QUERY_HCA_CAP;
}

static int mlx5sim_dispatch_is_query(struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *number =
            mlx5sim_attr_find(hdr, UVERBS_ATTR_WRITE_CMD);

    return (number != NULL) &&
           ((number->data == IB_USER_VERBS_CMD_QUERY_DEVICE) ||
            (number->data == IB_USER_VERBS_CMD_QUERY_PORT) ||
            (number->data == (IB_USER_VERBS_CMD_FLAG_EXTENDED |
                              IB_USER_VERBS_EX_CMD_QUERY_DEVICE)));
}

int mlx5sim_uverbs_is_for_children(struct ib_uverbs_ioctl_hdr *hdr)
{
    switch ((hdr->object_id << 16) | hdr->method_id) {
    case (UVERBS_OBJECT_DM << 16) | UVERBS_METHOD_DM_ALLOC:
    case (UVERBS_OBJECT_DM << 16) | UVERBS_METHOD_DM_FREE:
        return 1;
    case (UVERBS_OBJECT_DEVICE << 16) | UVERBS_METHOD_INVOKE_WRITE:
        return mlx5sim_dispatch_is_query(hdr);
    case (MLX5_IB_OBJECT_DEVX << 16) | MLX5_IB_METHOD_DEVX_OTHER:
        return mlx5sim_dispatch_is_caps(hdr);
    default:
        return 0;
    }
}

int mlx5sim_uverbs_dispatch(mlx5sim_ctx_t *ctx, int fd, void *arg)
{
    struct ib_uverbs_ioctl_hdr *hdr = arg;
    sigset_t saved;
    int ret;

    if (hdr->length != sizeof(*hdr) +
                       (hdr->num_attrs * sizeof(hdr->attrs[0]))) {
        return -EINVAL;
    }

    mlx5sim_dispatch_wait();
    mlx5sim_trap_defer(&saved);
    ret = mlx5sim_dispatch_command(ctx, fd, hdr);
    mlx5sim_trap_allow(&saved);
    return ret;
}
