/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_uar.h>
#include <sim/instance/instance.h>
#include <sim/uar/layout.h>
#include <sim/uar/uar.h>
#include <sim/uverbs/attr.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>


int mlx5sim_cmd_uar_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *type, *offset, *length, *page;
    mlx5sim_uar_kind_t kind;
    uint64_t mmap_offset;
    uint32_t index;
    int ret;

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
    type   = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
    offset = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET);
    length = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH);
    page   = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID);
    if ((handle == NULL) || (type == NULL) || (offset == NULL) ||
        (length == NULL) || (page == NULL)) {
        return -EINVAL;
    }

    switch (type->data) {
    case MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF:
        if (!mlx5sim_instance_config()->bf) {
            return -EOPNOTSUPP; /* mlx5_ib without wc_support */
        }
        kind = MLX5SIM_UAR_BF;
        break;
    case MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC:
        kind = MLX5SIM_UAR_NC;
        break;
    default:
        return -EINVAL;
    }

    ret = mlx5sim_uar_take(ctx, kind, 1, &index);
    if (ret != 0) {
        return ret;
    }

    mmap_offset = (MLX5SIM_UAR_PAGE_BASE + index) * MLX5SIM_UAR_PAGE_SIZE;
    mlx5sim_attr_set_handle(handle, index);
    memcpy(mlx5sim_attr_out(offset), &mmap_offset, sizeof(mmap_offset));
    memcpy(mlx5sim_attr_out(length), &(uint32_t){MLX5SIM_UAR_PAGE_SIZE},
           sizeof(uint32_t));
    memcpy(mlx5sim_attr_out(page), &index, sizeof(index));
    return 0;
}

int mlx5sim_cmd_uar_destroy(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    mlx5sim_uar_t *uar;

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE);
    if (handle == NULL) {
        return -EINVAL;
    }

    uar = mlx5sim_obj_mine(MLX5SIM_OBJ_UAR, handle->data,
                           mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if (uar == NULL) {
        return -ENOENT;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_UAR, uar);
    return 0;
}
