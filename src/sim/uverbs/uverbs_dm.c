/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_dm.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/uar/dm.h>
#include <sim/uar/layout.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

/*
 * The rules are those of the kernel: drivers/infiniband/hw/mlx5/dm.c,
 * drivers/infiniband/core/uverbs_std_types_dm.c and _mr.c.
 */

/* MLX5_IB_DM_MEMIC_ALLOWED_ACCESS */
#define MLX5SIM_DM_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
                           IBV_ACCESS_REMOTE_READ | \
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

_Static_assert(MLX5SIM_DM_SIZE / MLX5SIM_UAR_PAGE_SIZE == MLX5SIM_DM_PAGES,
               "all of it in pages");
_Static_assert(MLX5SIM_DM_LOG_ALIGN <= MLX5SIM_UAR_PAGE_SHIFT, "of a page");


uint64_t mlx5sim_dm_max(void)
{
    return mlx5sim_instance_config()->dm ? MLX5SIM_DM_SIZE : 0;
}

static mlx5sim_dm_t *
mlx5sim_dm_get(const mlx5sim_ctx_t *ctx, const struct ib_uverbs_attr *handle)
{
    return (handle->data >> 32) ? NULL :
           mlx5sim_obj_mine(MLX5SIM_OBJ_DM, handle->data,
                            mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
}

int mlx5sim_method_dm_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    static const uint64_t start = 0; /* in the page */
    const struct ib_uverbs_attr *handle, *length, *align, *offset, *page, *type;
    mlx5sim_dm_t *dm;
    uint16_t index;
    int ret;

    if (mlx5sim_dm_max() == 0) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_ALLOC_DM_HANDLE);
    type   = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE);
    page   = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX);
    if ((handle == NULL) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_ALLOC_DM_LENGTH,
                                 sizeof(uint64_t), &length) != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_ALLOC_DM_ALIGNMENT,
                                 sizeof(uint32_t), &align) != 0) ||
        (mlx5sim_attr_find_sized(hdr, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET,
                                 sizeof(start), &offset) != 0) ||
        ((page != NULL) && (page->len != sizeof(index)))) {
        return -EINVAL;
    }

    if ((type != NULL) && (type->data != MLX5_IB_UAPI_DM_TYPE_MEMIC)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DM);
    }

    /* what an adapter can do is in its capabilities
     * (log_max_memic_addr_alignment) */
    if ((length->data == 0) ||
        ((uint32_t)align->data > MLX5SIM_DM_LOG_ALIGN)) {
        return -EINVAL;
    }

    if ((offset->data == 0) || ((page != NULL) && (page->data == 0))) {
        return -EFAULT;
    }

    ret = mlx5sim_dm_take(ctx, length->data, &dm);
    if (ret != 0) {
        return ret;
    }

    dm->o.ready = 1;
    memcpy(mlx5sim_attr_out(offset), &start, sizeof(start));
    if (page != NULL) {
        index = dm->page;
        memcpy(mlx5sim_attr_out(page), &index, sizeof(index));
    }
    mlx5sim_attr_set_handle(handle, mlx5sim_obj_index(MLX5SIM_OBJ_DM, dm));
    return 0;
}

int mlx5sim_method_dm_free(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    mlx5sim_dm_t *dm;

    if (mlx5sim_dm_max() == 0) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_FREE_DM_HANDLE);
    if (handle == NULL) {
        return -EINVAL;
    }

    dm = mlx5sim_dm_get(ctx, handle);
    if (dm == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&dm->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_dm_give(dm);
    return 0;
}

int mlx5sim_method_dm_query(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    static const uint64_t start = 0; /* in the page */
    const struct ib_uverbs_attr *handle, *offset, *page, *length;
    const mlx5sim_dm_t *dm;
    uint16_t index;
    int ret;

    if (mlx5sim_dm_max() == 0) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE);
    if (handle == NULL) {
        return -EINVAL;
    }

    dm = mlx5sim_dm_get(ctx, handle);
    if (dm == NULL) {
        return -ENOENT;
    }

    ret = mlx5sim_attr_find_out(hdr, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET,
                                sizeof(start), &offset);
    if (ret == 0) {
        ret = mlx5sim_attr_find_out(hdr, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX,
                                    sizeof(index), &page);
    }
    if (ret == 0) {
        ret = mlx5sim_attr_find_out(hdr, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH,
                                    sizeof(dm->length), &length);
    }
    if (ret != 0) {
        return ret;
    }

    index = dm->page;
    memcpy(mlx5sim_attr_out(offset), &start, sizeof(start));
    memcpy(mlx5sim_attr_out(page), &index, sizeof(index));
    memcpy(mlx5sim_attr_out(length), &dm->length, sizeof(dm->length));
    return 0;
}

int mlx5sim_method_dm_reg_mr(mlx5sim_ctx_t *ctx,
                             struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *offset, *length, *pd, *from;
    const struct ib_uverbs_attr *lkey, *rkey;
    mlx5sim_mr_t as = {.iova = 0};
    mlx5sim_mr_obj_t *mr;
    mlx5sim_dm_t *dm;
    int ret;

    if (mlx5sim_dm_max() == 0) {
        return mlx5sim_refuse_method(hdr->object_id, hdr->method_id);
    }

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_REG_DM_MR_HANDLE);
    pd     = mlx5sim_attr_find(hdr, UVERBS_ATTR_REG_DM_MR_PD_HANDLE);
    from   = mlx5sim_attr_find(hdr, UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
    if ((handle == NULL) || (pd == NULL) || (from == NULL) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DM_MR_OFFSET,
                                 sizeof(uint64_t), &offset) != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DM_MR_LENGTH,
                                 sizeof(uint64_t), &length) != 0) ||
        (mlx5sim_attr_flags(hdr, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS,
                            &as.access) != 0)) {
        return -EINVAL;
    }

    dm = mlx5sim_dm_get(ctx, from);
    if ((dm == NULL) || (pd->data >> 32) ||
        (mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pd->data,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx)) == NULL)) {
        return -ENOENT;
    }

    ret = mlx5sim_attr_find_out(hdr, UVERBS_ATTR_REG_DM_MR_RESP_LKEY,
                                sizeof(as.key), &lkey);
    if (ret == 0) {
        ret = mlx5sim_attr_find_out(hdr, UVERBS_ATTR_REG_DM_MR_RESP_RKEY,
                                    sizeof(as.key), &rkey);
    }
    if (ret != 0) {
        return ret;
    }

    if (!(as.access & IBV_ACCESS_ZERO_BASED) ||
        (as.access & ~MLX5SIM_DM_ACCESS) || (offset->data > dm->length) ||
        (length->data > dm->length - offset->data)) {
        return -EINVAL;
    }

    as.access &= ~IBV_ACCESS_ZERO_BASED;
    ret        = mlx5sim_mr_check_access(as.access);
    if (ret != 0) {
        return ret;
    }

    as.pdn    = pd->data;
    as.va     = dm->addr + offset->data;
    as.length = length->data;
    ret       = mlx5sim_mr_make(ctx, &as, from->data, 0, &mr);
    if (ret != 0) {
        return ret;
    }

    mlx5sim_attr_set_handle(handle, mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr));
    memcpy(mlx5sim_attr_out(lkey), &mr->mr.key, sizeof(mr->mr.key));
    memcpy(mlx5sim_attr_out(rkey), &mr->mr.key, sizeof(mr->mr.key));
    return 0;
}
