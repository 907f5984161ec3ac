/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_import.h>
#include <sim/limit/inject.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

/* Of mlx5_ib_create_qp: up to the version that kernels take at least */
#define MLX5SIM_IMPORT_QP_MIN 40


/* @return the object that an attribute names, or NULL */
static void *mlx5sim_import_obj(mlx5sim_ctx_t *ctx,
                                struct ib_uverbs_ioctl_hdr *hdr, uint16_t id,
                                mlx5sim_obj_kind_t kind)
{
    const struct ib_uverbs_attr *handle = mlx5sim_attr_find(hdr, id);
    const mlx5sim_cmd_t cmd             = {.ctx = ctx};

    return (handle != NULL) ? mlx5sim_cmd_obj(&cmd, kind, handle->data) : NULL;
}

static void mlx5sim_import_tell(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id,
                                const void *value, size_t size)
{
    const struct ib_uverbs_attr *attr = mlx5sim_attr_find(hdr, id);

    if ((attr != NULL) && (attr->data != 0)) {
        mlx5sim_cmd_reply(mlx5sim_attr_out(attr), attr->len, value, size);
    }
}

int mlx5sim_method_query_mr(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_import_obj(ctx, hdr,
                                                    UVERBS_ATTR_QUERY_MR_HANDLE,
                                                    MLX5SIM_OBJ_MR);

    if ((mr == NULL) || (mr->window.type != 0)) {
        return -ENOENT;
    }

    mlx5sim_import_tell(hdr, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->mr.key,
                        sizeof(mr->mr.key));
    mlx5sim_import_tell(hdr, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->mr.key,
                        sizeof(mr->mr.key));
    mlx5sim_import_tell(hdr, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->mr.length,
                        sizeof(mr->mr.length));
    mlx5sim_import_tell(hdr, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->mr.iova,
                        sizeof(mr->mr.iova));
    return 0;
}

int mlx5sim_method_query_pd(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const mlx5sim_pd_t *pd = mlx5sim_import_obj(ctx, hdr,
                                                MLX5_IB_ATTR_QUERY_PD_HANDLE,
                                                MLX5SIM_OBJ_PD);
    uint32_t pdn;

    if (pd == NULL) {
        return -ENOENT;
    }

    pdn = mlx5sim_obj_index(MLX5SIM_OBJ_PD, pd);
    mlx5sim_import_tell(hdr, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pdn, sizeof(pdn));
    return 0;
}

/* A number, @a none if it is not given */
static uint64_t mlx5sim_import_number(struct ib_uverbs_ioctl_hdr *hdr,
                                      uint16_t id, uint64_t none)
{
    const struct ib_uverbs_attr *attr = mlx5sim_attr_find(hdr, id);
    uint64_t value                    = 0;

    if ((attr == NULL) || (attr->len > sizeof(value))) {
        return none;
    }

    memcpy(&value, mlx5sim_attr_in(attr), attr->len);
    return value;
}

/* A handle or a descriptor, -1 if it is not given */
static int64_t mlx5sim_import_handle(struct ib_uverbs_ioctl_hdr *hdr,
                                     uint16_t id)
{
    const struct ib_uverbs_attr *attr = mlx5sim_attr_find(hdr, id);

    return (attr != NULL) ? attr->data_s64 : -1;
}

/* What libmlx5 adds to a command. @return 0 or -errno */
static int mlx5sim_import_uhw(struct ib_uverbs_ioctl_hdr *hdr, size_t in_size,
                              size_t out_size, mlx5sim_fault_object_t fault,
                              mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_attr *in  = mlx5sim_attr_find(hdr,
                                                         UVERBS_ATTR_UHW_IN);
    const struct ib_uverbs_attr *out = mlx5sim_attr_find(hdr,
                                                         UVERBS_ATTR_UHW_OUT);

    if ((in == NULL) || (in->len < in_size) ||
        ((out_size > 0) && ((out == NULL) || (out->len < out_size)))) {
        return -EINVAL;
    }

    if (((in->len > sizeof(in->data)) && (in->data == 0)) ||
        ((out != NULL) && (out->len > 0) && (out->data == 0))) {
        return -EFAULT;
    }

    cmd->uin      = mlx5sim_attr_in(in);
    cmd->uin_size = in->len;
    if (out != NULL) {
        cmd->uout      = mlx5sim_attr_out(out);
        cmd->uout_size = out->len;
        memset(cmd->uout, 0, cmd->uout_size);
    }
    return mlx5sim_inject(fault);
}

int mlx5sim_method_create_cq(mlx5sim_ctx_t *ctx, int fd,
                             struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    struct ib_uverbs_create_cq_resp reply = {0};
    mlx5sim_cmd_t cmd                     = {.ctx = ctx, .fd = fd};
    int ret;

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_CREATE_CQ_HANDLE);
    ret    = (handle == NULL) ? -EINVAL :
             mlx5sim_import_uhw(hdr, sizeof(struct mlx5_ib_create_cq),
                                sizeof(struct mlx5_ib_create_cq_resp),
                                MLX5SIM_FAULT_CQ, &cmd);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_cq_create(
            &cmd,
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_CQ_CQE, 0),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0),
            mlx5sim_import_handle(hdr, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_CQ_FLAGS, 0), &reply);
    if (ret == 0) {
        mlx5sim_attr_set_handle(handle, reply.cq_handle);
        mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &reply.cqe,
                            sizeof(reply.cqe));
    }
    return ret;
}

int mlx5sim_method_create_srq(mlx5sim_ctx_t *ctx, int fd,
                              struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    struct ib_uverbs_create_srq_resp reply = {0};
    mlx5sim_cmd_t cmd                      = {.ctx = ctx, .fd = fd};
    int ret;

    if (mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_SRQ_TYPE,
                              IBV_SRQT_BASIC) != IBV_SRQT_BASIC) {
        return mlx5sim_refuse(MLX5SIM_MISSING_IMPORT);
    }

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_CREATE_SRQ_HANDLE);
    ret    = (handle == NULL) ? -EINVAL :
             mlx5sim_import_uhw(hdr, sizeof(struct mlx5_ib_create_srq) - 8,
                                sizeof(struct mlx5_ib_create_srq_resp),
                                MLX5SIM_FAULT_SRQ, &cmd);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_srq_create(
            &cmd,
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 0),
            mlx5sim_import_handle(hdr, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 0),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 0),
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0),
            &reply);
    if (ret == 0) {
        mlx5sim_attr_set_handle(handle, reply.srq_handle);
        mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR,
                            &reply.max_wr, sizeof(reply.max_wr));
        mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE,
                            &reply.max_sge, sizeof(reply.max_sge));
        mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM,
                            &reply.srqn, sizeof(reply.srqn));
    }
    return ret;
}

int mlx5sim_method_create_qp(mlx5sim_ctx_t *ctx, int fd,
                             struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *cap_attr;
    struct ib_uverbs_create_qp_resp reply = {0};
    struct ib_uverbs_create_qp caps       = {0};
    struct ib_uverbs_qp_cap cap;
    mlx5sim_cmd_t cmd = {.ctx = ctx, .fd = fd};
    int64_t srq;
    uint64_t flags;
    int ret;

    flags        = mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_QP_FLAGS, 0);
    caps.qp_type = mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_QP_TYPE, 0);
    if ((flags & ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL) ||
        (mlx5sim_attr_find(hdr, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE) != NULL)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_QP_OPTIONS);
    }

    handle   = mlx5sim_attr_find(hdr, UVERBS_ATTR_CREATE_QP_HANDLE);
    cap_attr = mlx5sim_attr_find(hdr, UVERBS_ATTR_CREATE_QP_CAP);
    if ((handle == NULL) || (cap_attr == NULL) ||
        (cap_attr->len < sizeof(cap))) {
        return -EINVAL;
    }

    if (cap_attr->data == 0) {
        return -EFAULT;
    }

    ret = mlx5sim_import_uhw(hdr, MLX5SIM_IMPORT_QP_MIN, 0, MLX5SIM_FAULT_QP,
                             &cmd);
    if (ret != 0) {
        return ret;
    }

    memcpy(&cap, mlx5sim_attr_in(cap_attr), sizeof(cap));
    srq                  = mlx5sim_import_handle(
            hdr, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
    caps.max_send_wr     = cap.max_send_wr;
    caps.max_recv_wr     = cap.max_recv_wr;
    caps.max_send_sge    = cap.max_send_sge;
    caps.max_recv_sge    = cap.max_recv_sge;
    caps.max_inline_data = cap.max_inline_data;
    caps.sq_sig_all      = !!(flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL);
    caps.is_srq          = srq >= 0;
    ret = mlx5sim_qp_create(
            &cmd,
            mlx5sim_import_number(hdr, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0),
            mlx5sim_import_handle(hdr, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
            mlx5sim_import_handle(hdr, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
            mlx5sim_import_handle(hdr, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
            srq, &caps, &reply);
    if (ret != 0) {
        return ret;
    }

    cap.max_send_wr     = reply.max_send_wr;
    cap.max_recv_wr     = reply.max_recv_wr;
    cap.max_send_sge    = reply.max_send_sge;
    cap.max_recv_sge    = reply.max_recv_sge;
    cap.max_inline_data = reply.max_inline_data;
    mlx5sim_attr_set_handle(handle, reply.qp_handle);
    mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
    mlx5sim_import_tell(hdr, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &reply.qpn,
                        sizeof(reply.qpn));
    return 0;
}
