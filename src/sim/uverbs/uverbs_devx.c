/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_devx.h>
#include <sim/devx/caps.h>
#include <sim/devx/opcode.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>

/* Handles of objects that firmware commands have made: a bit, kind, index */
#define MLX5SIM_DEVX_HANDLE     (1u << 31)
#define MLX5SIM_DEVX_KIND_SHIFT 24

#define MLX5SIM_DEVX_METHOD(_object, _method) \
    (((uint32_t)(_object) << 16) | (_method))

/* Attributes of a method with a command */
typedef struct mlx5sim_devx_attrs {
    mlx5sim_fw_method_t method;
    uint16_t            handle, in, out;
} mlx5sim_devx_attrs_t;

static const mlx5sim_devx_attrs_t mlx5sim_devx_attrs[] = {
    [MLX5SIM_FW_GENERAL] = {MLX5SIM_FW_GENERAL, 0,
                            MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
                            MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT},
    [MLX5SIM_FW_CREATE]  = {MLX5SIM_FW_CREATE,
                            MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE,
                            MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                            MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT},
    [MLX5SIM_FW_MODIFY]  = {MLX5SIM_FW_MODIFY,
                            MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
                            MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                            MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT},
    [MLX5SIM_FW_QUERY]   = {MLX5SIM_FW_QUERY,
                            MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE,
                            MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                            MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT}
};

static const mlx5sim_obj_kind_t mlx5sim_devx_kinds[] = {
    [MLX5SIM_FW_ON_PD] = MLX5SIM_OBJ_PD, [MLX5SIM_FW_ON_MKEY] = MLX5SIM_OBJ_MR,
    [MLX5SIM_FW_ON_CQ] = MLX5SIM_OBJ_CQ,
    [MLX5SIM_FW_ON_RMP] = MLX5SIM_OBJ_SRQ,
    [MLX5SIM_FW_ON_XRC_SRQ] = MLX5SIM_OBJ_SRQ,
    [MLX5SIM_FW_ON_QP] = MLX5SIM_OBJ_QP, [MLX5SIM_FW_ON_DCT] = MLX5SIM_OBJ_QP,
    [MLX5SIM_FW_ON_PSV] = MLX5SIM_OBJ_PSV,
    [MLX5SIM_FW_ON_GENERAL] = MLX5SIM_OBJ_GENERAL
};


static unsigned mlx5sim_devx_query_caps(mlx5sim_devx_t *devx)
{
    return mlx5sim_fw_query_caps(mlx5sim_instance_config(), &devx->fw);
}

static unsigned mlx5sim_devx_query_vport(mlx5sim_devx_t *devx)
{
    return mlx5sim_fw_query_vport(mlx5sim_instance_config(), devx->ctx->dev,
                                  &devx->fw);
}

static unsigned mlx5sim_devx_query_lag(mlx5sim_devx_t *devx)
{
    return mlx5sim_fw_query_lag(mlx5sim_instance_config(), &devx->fw);
}

static unsigned mlx5sim_devx_query_roce(mlx5sim_devx_t *devx)
{
    return mlx5sim_fw_query_roce(mlx5sim_instance_config(), devx->ctx->dev,
                                 &devx->fw);
}

static unsigned mlx5sim_devx_nop(mlx5sim_devx_t *devx)
{
    (void)devx;
    return MLX5SIM_FW_OK;
}

static unsigned mlx5sim_devx_alloc_pd(mlx5sim_devx_t *devx)
{
    struct ib_uverbs_alloc_pd_resp reply = {0};
    mlx5sim_cmd_t cmd = {.ctx = devx->ctx, .out = &reply,
                         .out_size = sizeof(reply)};
    int ret;

    ret = mlx5sim_cmd_alloc_pd(&cmd);
    if (ret == 0) {
        devx->obj    = mlx5sim_obj_at(MLX5SIM_OBJ_PD, reply.pd_handle);
        devx->number = reply.pd_handle;
    }
    return mlx5sim_devx_status(ret);
}

/* Who carries out a command; what MLX5SIM_FAIL calls it */
static const struct {
    uint16_t               opcode;
    unsigned             (*handler)(mlx5sim_devx_t *devx);
    mlx5sim_fault_object_t fault;
} mlx5sim_devx_handlers[] = {
    {MLX5SIM_FW_QUERY_HCA_CAP, mlx5sim_devx_query_caps, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_QUERY_HCA_VPORT_CONTEXT, mlx5sim_devx_query_vport,
     MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_QUERY_ROCE_ADDRESS, mlx5sim_devx_query_roce,
     MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_QUERY_LAG, mlx5sim_devx_query_lag, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_NOP, mlx5sim_devx_nop, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_ALLOC_PD, mlx5sim_devx_alloc_pd, MLX5SIM_FAULT_PD},
    {MLX5SIM_FW_CREATE_MKEY, mlx5sim_devx_create_mkey, MLX5SIM_FAULT_MR},
    {MLX5SIM_FW_CREATE_PSV, mlx5sim_devx_create_psv, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_CREATE_CQ, mlx5sim_devx_create_cq, MLX5SIM_FAULT_CQ},
    {MLX5SIM_FW_CREATE_RMP, mlx5sim_devx_create_rmp, MLX5SIM_FAULT_SRQ},
    {MLX5SIM_FW_CREATE_QP, mlx5sim_devx_create_qp, MLX5SIM_FAULT_QP},
    {MLX5SIM_FW_RST2INIT_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_INIT2INIT_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_INIT2RTR_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_RTR2RTS_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_RTS2RTS_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_2ERR_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_2RST_QP, mlx5sim_devx_modify_qp, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_CREATE_DCT, mlx5sim_devx_create_dct, MLX5SIM_FAULT_QP},
    {MLX5SIM_FW_DRAIN_DCT, mlx5sim_devx_drain_dct, MLX5SIM_FAULT_MODIFY_QP},
    {MLX5SIM_FW_QUERY_DCT, mlx5sim_devx_query_dct, MLX5SIM_FAULT_QUERY_QP},
    {MLX5SIM_FW_QUERY_CQ, mlx5sim_devx_query_cq, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_QUERY_QP, mlx5sim_devx_query_qp, MLX5SIM_FAULT_QUERY_QP},
    {MLX5SIM_FW_QUERY_RMP, mlx5sim_devx_query_rmp, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_MODIFY_RMP, mlx5sim_devx_modify_rmp,
     MLX5SIM_FAULT_MODIFY_SRQ},
    {MLX5SIM_FW_QUERY_XRC_SRQ, mlx5sim_devx_query_xrc_srq,
     MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_ARM_XRC_SRQ, mlx5sim_devx_arm_xrc_srq,
     MLX5SIM_FAULT_MODIFY_SRQ},
    {MLX5SIM_FW_QUERY_MKEY, mlx5sim_devx_query_mkey, MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_CREATE_GENERAL_OBJECT, mlx5sim_devx_create_general,
     MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_MODIFY_GENERAL_OBJECT, mlx5sim_devx_modify_general,
     MLX5SIM_FAULT_NONE},
    {MLX5SIM_FW_QUERY_GENERAL_OBJECT, mlx5sim_devx_query_general,
     MLX5SIM_FAULT_NONE}
};


unsigned mlx5sim_devx_status(int ret)
{
    switch (ret) {
    case 0:
        return MLX5SIM_FW_OK;
    case -ENOMEM:
    case -ENOSPC:
        return MLX5SIM_FW_NO_RES;
    case -EBUSY:
        return MLX5SIM_FW_RES_BUSY;
    default:
        return MLX5SIM_FW_BAD_PARAM;
    }
}

void *mlx5sim_devx_find(const mlx5sim_ctx_t *ctx, uint64_t handle,
                        mlx5sim_obj_kind_t *kind_p)
{
    uint32_t kind = (handle & ~MLX5SIM_DEVX_HANDLE) >> MLX5SIM_DEVX_KIND_SHIFT;
    mlx5sim_obj_t *obj;

    if (!(handle & MLX5SIM_DEVX_HANDLE) || (handle >> 32) ||
        (kind >= MLX5SIM_OBJ_LAST)) {
        return NULL;
    }

    obj = mlx5sim_obj_mine(kind, handle & ((1u << MLX5SIM_DEVX_KIND_SHIFT) - 1),
                           mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if ((obj == NULL) || !obj->devx.is_made) {
        return NULL;
    }

    *kind_p = kind;
    return obj;
}

/* Number of an object in commands */
static uint32_t mlx5sim_devx_number(mlx5sim_obj_kind_t kind, const void *obj)
{
    return (kind == MLX5SIM_OBJ_QP) ?
           ((const mlx5sim_qp_obj_t*)obj)->qp.qpn :
           mlx5sim_obj_index(kind, obj);
}

/* Whether the kernel takes an object, of a kind that fits, for what a command
 * is on: DC targets and XRC's SRQs have commands of their own */
static int mlx5sim_devx_is_on(mlx5sim_obj_kind_t kind, const void *obj,
                              mlx5sim_fw_on_t on)
{
    switch (kind) {
    case MLX5SIM_OBJ_QP:
        return (((const mlx5sim_qp_obj_t*)obj)->qp.type == MLX5SIM_QPT_DCT) ==
               (on == MLX5SIM_FW_ON_DCT);
    case MLX5SIM_OBJ_SRQ:
        return (atomic_load(&((const mlx5sim_srq_t*)obj)->xrcd) != 0) ==
               (on == MLX5SIM_FW_ON_XRC_SRQ);
    default:
        return 1;
    }
}

/* The object of a command, made by verbs or by another command. The number in
 * the command has to be that of the object (kernel, devx_is_valid_obj_id()).
 * @return 0 or -errno */
static int mlx5sim_devx_get_obj(mlx5sim_devx_t *devx, uint64_t handle,
                                mlx5sim_fw_on_t on)
{
    mlx5sim_obj_kind_t kind = mlx5sim_devx_kinds[on], found;
    mlx5sim_obj_t *obj;

    if (handle & MLX5SIM_DEVX_HANDLE) {
        obj = mlx5sim_devx_find(devx->ctx, handle, &found);
        if ((obj != NULL) &&
            ((on == MLX5SIM_FW_ON_NOTHING) || (found != kind))) {
            return -EINVAL;
        }
    } else if ((on == MLX5SIM_FW_ON_NOTHING) || (on == MLX5SIM_FW_ON_MKEY) ||
               (on == MLX5SIM_FW_ON_GENERAL)) {
        return -EINVAL; /* of nothing that verbs have made */
    } else {
        obj = ((handle >> 32) == 0) ?
              mlx5sim_obj_mine(kind, handle,
                               mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx)) :
              NULL;
    }

    if (obj == NULL) {
        return -ENOENT;
    }

    if (!mlx5sim_devx_is_on(kind, obj, on)) {
        return -EINVAL;
    }

    devx->obj = obj;
    if (kind == MLX5SIM_OBJ_GENERAL) {
        return mlx5sim_devx_general_is(devx, (void*)obj) ? 0 : -EINVAL;
    }

    return (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_NUMBER) ==
            mlx5sim_devx_number(kind, obj)) ? 0 : -EINVAL;
}

/* Tell of a new object */
static void mlx5sim_devx_made(mlx5sim_devx_t *devx, mlx5sim_fw_on_t on,
                              const struct ib_uverbs_attr *handle)
{
    mlx5sim_obj_kind_t kind = mlx5sim_devx_kinds[on];
    mlx5sim_obj_t *obj      = devx->obj;
    mlx5sim_umem_t *umem;
    unsigned i;

    obj->devx.is_made = 1;
    for (i = 0; i < 2; ++i) {
        obj->devx.umems[i] = devx->umems[i];
        if (devx->umems[i] != 0) {
            umem = mlx5sim_obj_at(MLX5SIM_OBJ_UMEM, devx->umems[i] - 1);
            atomic_fetch_add(&umem->refs, 1);
        }
    }

    mlx5sim_fw_set(devx->fw.out, MLX5SIM_FW_NUMBER, devx->number);
    mlx5sim_attr_set_handle(handle, MLX5SIM_DEVX_HANDLE |
                                    (kind << MLX5SIM_DEVX_KIND_SHIFT) |
                                    mlx5sim_obj_index(kind, obj));
}

/* What firmware does with a command that the kernel has let pass.
 * @return status, or -errno of a fault that was asked for */
static int
mlx5sim_devx_exec(mlx5sim_devx_t *devx, const mlx5sim_fw_opcode_t *row)
{
    unsigned i;
    int ret;

    if (row->out_size == 0) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
        return MLX5SIM_FW_BAD_OP;
    }

    if (devx->fw.in_size < row->in_size) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    if (devx->fw.out_size < row->out_size) {
        return MLX5SIM_FW_BAD_OUT_LEN;
    }

    for (i = 0; mlx5sim_devx_handlers[i].opcode != row->opcode; ++i) {
    }

    ret = (mlx5sim_devx_handlers[i].fault != MLX5SIM_FAULT_NONE) ?
          mlx5sim_inject(mlx5sim_devx_handlers[i].fault) : 0;
    return (ret != 0) ? ret : (int)mlx5sim_devx_handlers[i].handler(devx);
}

/* Kernel, devx_is_whitelist_cmd(): these need no DEVX context */
static int mlx5sim_devx_is_allowed(const mlx5sim_ctx_t *ctx, unsigned opcode)
{
    return ctx->has_devx || (opcode == MLX5SIM_FW_QUERY_HCA_CAP) ||
           (opcode == MLX5SIM_FW_QUERY_HCA_VPORT_CONTEXT);
}

/* @return 0 or -errno */
static int
mlx5sim_devx_command(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr,
                     const mlx5sim_devx_attrs_t *attrs)
{
    const struct ib_uverbs_attr *in  = mlx5sim_attr_find(hdr, attrs->in);
    const struct ib_uverbs_attr *out = mlx5sim_attr_find(hdr, attrs->out);
    const struct ib_uverbs_attr *handle = NULL;
    mlx5sim_devx_t devx                 = {.ctx = ctx};
    const mlx5sim_fw_opcode_t *row;
    unsigned opcode;
    int ret;

    if ((in == NULL) || (out == NULL) || (in->len < MLX5SIM_FW_HEADER) ||
        (out->len < MLX5SIM_FW_HEADER)) {
        return -EINVAL;
    }

    if (attrs->method != MLX5SIM_FW_GENERAL) {
        handle = mlx5sim_attr_find(hdr, attrs->handle);
        if (handle == NULL) {
            return -EINVAL;
        }
    }

    devx.fw.in       = mlx5sim_attr_in(in);
    devx.fw.in_size  = in->len;
    devx.fw.out      = mlx5sim_attr_out(out);
    devx.fw.out_size = out->len;
    opcode           = mlx5sim_fw_get(devx.fw.in, MLX5SIM_FW_OPCODE);
    row              = mlx5sim_fw_opcode_find(attrs->method, opcode);

    /* libmlx5 asks for atomics wherever it is */
    if (!mlx5sim_instance_config()->devx &&
        !((opcode == MLX5SIM_FW_QUERY_HCA_CAP) &&
          mlx5sim_fw_is_atomic_caps(mlx5sim_fw_get(devx.fw.in,
                                                   MLX5SIM_FW_OP_MOD)))) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    if (!mlx5sim_devx_is_allowed(ctx, opcode) || (row == NULL)) {
        return -EINVAL;
    }

    if ((attrs->method == MLX5SIM_FW_MODIFY) ||
        (attrs->method == MLX5SIM_FW_QUERY)) {
        ret = mlx5sim_devx_get_obj(&devx, handle->data, row->on);
        if (ret != 0) {
            return ret;
        }
    }

    memset(devx.fw.out, 0, devx.fw.out_size);
    ret = mlx5sim_devx_exec(&devx, row);
    if (mlx5sim_instance_config()->log >= MLX5SIM_LOG_LEVEL_DEBUG) {
        fprintf(stderr, "mlx5sim: %s (0x%x) -> %d\n", row->name, opcode, ret);
    }

    if (ret < 0) {
        return ret;
    } else if (ret != MLX5SIM_FW_OK) {
        /* what is wrong, firmware tells by numbers of its own */
        memset(devx.fw.out, 0, devx.fw.out_size);
        mlx5sim_fw_set(devx.fw.out, MLX5SIM_FW_STATUS, ret);
        mlx5sim_fw_set(devx.fw.out, MLX5SIM_FW_SYNDROME, (opcode << 8) | ret);
        return -EREMOTEIO;
    }

    if (attrs->method == MLX5SIM_FW_CREATE) {
        mlx5sim_devx_made(&devx, row->on, (struct ib_uverbs_attr*)handle);
    }
    return 0;
}

static int mlx5sim_devx_destroy(mlx5sim_ctx_t *ctx,
                                struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE);
    uint32_t in[4]    = {0}; /* ib_uverbs_destroy_*: the handle comes first */
    mlx5sim_cmd_t cmd = {.ctx     = ctx,
                         .is_devx = 1,
                         .in      = in,
                         .in_size = sizeof(in)};
    mlx5sim_obj_kind_t kind;
    mlx5sim_obj_t *obj;
    uint32_t umems[2];
    unsigned i;
    int ret;

    if (handle == NULL) {
        return -EINVAL;
    }

    obj = mlx5sim_devx_find(ctx, handle->data, &kind);
    if (obj == NULL) {
        return -ENOENT;
    }

    memcpy(umems, obj->devx.umems, sizeof(umems));
    switch (kind) {
    case MLX5SIM_OBJ_PD:
        in[0] = mlx5sim_obj_index(kind, obj);
        ret   = mlx5sim_cmd_dealloc_pd(&cmd);
        break;
    case MLX5SIM_OBJ_MR:
        ((struct ib_uverbs_dereg_mr*)in)->mr_handle =
                mlx5sim_obj_index(kind, obj);
        ret = mlx5sim_cmd_dereg_mr(&cmd);
        break;
    case MLX5SIM_OBJ_CQ:
        ((struct ib_uverbs_destroy_cq*)in)->cq_handle =
                mlx5sim_obj_index(kind, obj);
        ret = mlx5sim_cmd_destroy_cq(&cmd);
        break;
    case MLX5SIM_OBJ_SRQ:
        ((struct ib_uverbs_destroy_srq*)in)->srq_handle =
                mlx5sim_obj_index(kind, obj);
        ret = mlx5sim_cmd_destroy_srq(&cmd);
        break;
    case MLX5SIM_OBJ_GENERAL:
        ret = mlx5sim_devx_destroy_general((void*)obj);
        break;
    case MLX5SIM_OBJ_PSV:
        ret = mlx5sim_devx_destroy_psv((void*)obj);
        break;
    default:
        ((struct ib_uverbs_destroy_qp*)in)->qp_handle =
                mlx5sim_obj_index(kind, obj);
        ret = mlx5sim_cmd_destroy_qp(&cmd);
        break;
    }

    for (i = 0; (ret == 0) && (i < 2); ++i) {
        if (umems[i] != 0) {
            atomic_fetch_sub(&((mlx5sim_umem_t*)mlx5sim_obj_at(
                                       MLX5SIM_OBJ_UMEM, umems[i] - 1))->refs,
                             1);
        }
    }
    return ret;
}

int mlx5sim_devx_method(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    static const struct {
        uint32_t number;
        int    (*handler)(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
    } methods[] = {
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_OBJ,
                             MLX5_IB_METHOD_DEVX_OBJ_DESTROY),
         mlx5sim_devx_destroy},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX,
                             MLX5_IB_METHOD_DEVX_QUERY_EQN),
         mlx5sim_devx_query_eqn},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX,
                             MLX5_IB_METHOD_DEVX_QUERY_UAR),
         mlx5sim_devx_query_uar},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX,
                             MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT),
         mlx5sim_devx_subscribe},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
                             MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC),
         mlx5sim_devx_event_fd},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_UMEM,
                             MLX5_IB_METHOD_DEVX_UMEM_REG),
         mlx5sim_devx_umem_reg},
        {MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_UMEM,
                             MLX5_IB_METHOD_DEVX_UMEM_DEREG),
         mlx5sim_devx_umem_dereg}
    };
    uint32_t number = MLX5SIM_DEVX_METHOD(hdr->object_id, hdr->method_id);
    unsigned i;

    if (number == MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX,
                                      MLX5_IB_METHOD_DEVX_OTHER)) {
        return mlx5sim_devx_command(ctx, hdr,
                                    &mlx5sim_devx_attrs[MLX5SIM_FW_GENERAL]);
    }

    if (!ctx->has_devx) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); ++i) {
        if (methods[i].number == number) {
            return methods[i].handler(ctx, hdr);
        }
    }

    switch (number) {
    case MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_OBJ,
                             MLX5_IB_METHOD_DEVX_OBJ_CREATE):
        return mlx5sim_devx_command(ctx, hdr,
                                    &mlx5sim_devx_attrs[MLX5SIM_FW_CREATE]);
    case MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_OBJ,
                             MLX5_IB_METHOD_DEVX_OBJ_MODIFY):
        return mlx5sim_devx_command(ctx, hdr,
                                    &mlx5sim_devx_attrs[MLX5SIM_FW_MODIFY]);
    case MLX5SIM_DEVX_METHOD(MLX5_IB_OBJECT_DEVX_OBJ,
                             MLX5_IB_METHOD_DEVX_OBJ_QUERY):
        return mlx5sim_devx_command(ctx, hdr,
                                    &mlx5sim_devx_attrs[MLX5SIM_FW_QUERY]);
    default:
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }
}
