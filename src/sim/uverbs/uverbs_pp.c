/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_pp.h>
#include <sim/config/config.h>
#include <sim/devx/mailbox.h>
#include <sim/reap/reap.h>
#include <sim/uverbs/attr.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

/* set_pp_rate_limit_context: kbit/s */
#define MLX5SIM_PP_RATE MLX5SIM_FW_FIELD(0, 32)


/* The entry that one like @a like shares; else the first one that is free.
 * @return its index, 0: there is none */
static uint32_t mlx5sim_pp_choose(const mlx5sim_pp_t *like)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_PP].high);
    uint8_t used[MLX5SIM_PP_RATES + 1] = {1}; /* 0 is no limit */
    const mlx5sim_pp_t *pp;
    uint32_t i;

    for (i = 0; i < high; ++i) {
        pp = mlx5sim_obj_at(MLX5SIM_OBJ_PP, i);
        if ((atomic_load(&pp->o.owner) == 0) || !pp->o.ready ||
            (pp->dev != like->dev)) {
            continue;
        }

        if (!pp->is_dedicated && !like->is_dedicated &&
            (memcmp(pp->limit, like->limit, sizeof(pp->limit)) == 0)) {
            return pp->index;
        }
        used[pp->index] = 1;
    }

    for (i = 0; i <= MLX5SIM_PP_RATES; ++i) {
        if (!used[i]) {
            return i;
        }
    }

    return 0;
}

/* @return 0 or -errno */
static int mlx5sim_pp_try(mlx5sim_ctx_t *ctx, const mlx5sim_pp_t *like,
                          mlx5sim_pp_t **pp_p)
{
    mlx5sim_pp_t *pp = NULL;
    uint32_t index;
    int ret;

    (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
    index = mlx5sim_pp_choose(like);
    ret   = (index == 0) ? -ENOSPC : 0;
    if (index != 0) {
        pp  = mlx5sim_obj_alloc(MLX5SIM_OBJ_PP,
                                mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
        ret = (pp == NULL) ? -errno : 0;
    }
    if (pp != NULL) {
        pp->dev          = like->dev;
        pp->is_dedicated = like->is_dedicated;
        pp->index        = index;
        memcpy(pp->limit, like->limit, sizeof(pp->limit));
        atomic_thread_fence(memory_order_release);
        pp->o.ready      = 1;
    }
    mlx5sim_unlock(&mlx5sim_store->limit_lock);
    *pp_p = pp;
    return ret;
}

int mlx5sim_method_pp_alloc(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *limit, *index;
    mlx5sim_pp_t like = {.dev = ctx->dev}, *pp;
    uint32_t flags, rate;
    uint16_t number;
    int ret;

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_PP_OBJ_ALLOC_HANDLE);
    limit  = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_PP_OBJ_ALLOC_CTX);
    index  = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_PP_OBJ_ALLOC_INDEX);
    if ((handle == NULL) || (limit == NULL) || (limit->len == 0) ||
        (limit->len > sizeof(like.limit)) || (index == NULL) ||
        (index->len != sizeof(number)) || !ctx->has_devx ||
        (mlx5sim_attr_flags(hdr, MLX5_IB_ATTR_PP_OBJ_ALLOC_FLAGS, &flags) !=
         0) || (flags & ~MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX)) {
        return -EINVAL;
    }

    like.is_dedicated = flags != 0;
    memcpy(like.limit, mlx5sim_attr_in(limit), limit->len);
    rate = mlx5sim_fw_get(like.limit, MLX5SIM_PP_RATE);
    if ((rate < MLX5SIM_PP_MIN_RATE) || (rate > MLX5SIM_PP_MAX_RATE)) {
        return -EINVAL;
    }

    ret = mlx5sim_pp_try(ctx, &like, &pp);
    if (ret != 0) {
        mlx5sim_proc_reap_dead(); /* what the dead held is free */
        ret = mlx5sim_pp_try(ctx, &like, &pp);
    }
    if (ret != 0) {
        return ret;
    }

    number = pp->index;
    mlx5sim_attr_set_handle(handle, mlx5sim_obj_index(MLX5SIM_OBJ_PP, pp));
    memcpy(mlx5sim_attr_out(index), &number, sizeof(number));
    return 0;
}

int mlx5sim_method_pp_destroy(mlx5sim_ctx_t *ctx,
                              struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle;
    mlx5sim_pp_t *pp;

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_PP_OBJ_DESTROY_HANDLE);
    if (handle == NULL) {
        return -EINVAL;
    }

    pp = (handle->data >> 32) ? NULL :
         mlx5sim_obj_mine(MLX5SIM_OBJ_PP, handle->data,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if (pp == NULL) {
        return -ENOENT;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_PP, pp);
    return 0;
}
