/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uar/uar.h"
#include "sim/uverbs/attr.h"
#include "sim/limit/inject.h"
#include "sim/uverbs/uverbs.h"

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>


/* Pages of a device that are in use. They are counted and not kept count of, so
 * that nobody who is killed can make the number wrong. */
static unsigned mlx5sim_uar_count(uint32_t dev)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_UAR].high);
    unsigned num  = 0;
    const mlx5sim_uar_t *uar;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        uar  = mlx5sim_obj_at(MLX5SIM_OBJ_UAR, index);
        num += (uar->dev == dev) && (atomic_load(&uar->o.owner) != 0);
    }

    return num;
}

/* One attempt; limit_lock is held */
static int mlx5sim_uar_try(mlx5sim_ctx_t *ctx, mlx5sim_uar_kind_t kind,
                           unsigned num, uint32_t *index_p)
{
    unsigned i, limit = mlx5sim_uverbs_config()->uars;
    mlx5sim_uar_t *uar;

    if (mlx5sim_uar_count(ctx->dev) + num > limit) {
        return -ENOMEM;
    }

    for (i = 0; i < num; ++i) {
        uar = mlx5sim_obj_alloc(MLX5SIM_OBJ_UAR,
                                mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
        if (uar == NULL) {
            goto err_free;
        }

        uar->kind    = kind;
        uar->dev     = ctx->dev;
        index_p[i]   = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar);
        uar->o.ready = 1;
    }

    atomic_fetch_add(&mlx5sim_proc_self()->c.uars[kind], num);
    return 0;

err_free:
    while (i > 0) {
        --i;
        mlx5sim_obj_free(MLX5SIM_OBJ_UAR,
                         mlx5sim_obj_at(MLX5SIM_OBJ_UAR, index_p[i]));
    }
    return -ENOMEM;
}

int mlx5sim_uar_take(mlx5sim_ctx_t *ctx, mlx5sim_uar_kind_t kind, unsigned num,
                     uint32_t *index_p)
{
    unsigned attempt;
    int ret;

    ret = mlx5sim_inject(MLX5SIM_FAULT_UAR);
    if (ret != 0) {
        return ret;
    }

    ret = -ENOMEM;
    for (attempt = 0; (ret != 0) && (attempt < 2); ++attempt) {
        if (attempt > 0) {
            /* what the dead had is free */
            mlx5sim_proc_reap_dead();
        }

        (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
        ret = mlx5sim_uar_try(ctx, kind, num, index_p);
        mlx5sim_unlock(&mlx5sim_store->limit_lock);
    }

    return ret;
}

int mlx5sim_uar_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
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
    ((struct ib_uverbs_attr*)handle)->data   = index;
    ((struct ib_uverbs_attr*)handle)->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    memcpy(mlx5sim_attr_out(offset), &mmap_offset, sizeof(mmap_offset));
    memcpy(mlx5sim_attr_out(length), &(uint32_t){MLX5SIM_UAR_PAGE_SIZE},
           sizeof(uint32_t));
    memcpy(mlx5sim_attr_out(page), &index, sizeof(index));
    return 0;
}

int mlx5sim_uar_destroy(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
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
        return -EINVAL;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_UAR, uar);
    return 0;
}
