/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>

#include <errno.h>


unsigned mlx5sim_limit(mlx5sim_obj_kind_t kind)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();

    switch (kind) {
    case MLX5SIM_OBJ_PD:
        return config->max_pd;
    case MLX5SIM_OBJ_MR:
        return config->max_mr;
    case MLX5SIM_OBJ_CQ:
        return config->max_cq;
    case MLX5SIM_OBJ_SRQ:
        return config->max_srq;
    case MLX5SIM_OBJ_QP:
        return config->max_qp;
    default:
        return ~0u;
    }
}

/* Objects of a device. Counted each time instead of in a counter, which killed
 * processes could leave wrong. */
static unsigned mlx5sim_limit_count(mlx5sim_obj_kind_t kind, uint32_t dev)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[kind].high);
    unsigned num  = 0;
    const mlx5sim_ctx_t *ctx;
    mlx5sim_obj_t *obj;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        obj = mlx5sim_obj_at(kind, index);
        if (atomic_load(&obj->owner) != 0) {
            ctx  = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, atomic_load(&obj->ctx));
            num += ctx->dev == dev;
        }
    }

    return num;
}

/* One attempt, if the table may hold as many as the device has */
static void *mlx5sim_limit_try(mlx5sim_ctx_t *ctx, mlx5sim_obj_kind_t kind)
{
    void *obj = NULL;

    errno = ENOMEM;
    (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
    if (mlx5sim_limit_count(kind, ctx->dev) < mlx5sim_limit(kind)) {
        obj = mlx5sim_obj_alloc(kind, mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    }
    mlx5sim_unlock(&mlx5sim_store->limit_lock);
    return obj;
}

void *mlx5sim_limit_alloc(mlx5sim_ctx_t *ctx, mlx5sim_obj_kind_t kind)
{
    void *obj;

    /* the usual case: no limit but the table itself */
    if (mlx5sim_limit(kind) >= mlx5sim_store->tables[kind].capacity -
                               MLX5SIM_LIMIT_SLACK) {
        obj = mlx5sim_obj_alloc(kind, mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    } else {
        obj = mlx5sim_limit_try(ctx, kind);
    }

    if (obj == NULL) {
        /* what the dead held is free */
        mlx5sim_proc_reap_dead();
        obj = mlx5sim_limit_try(ctx, kind);
    }

    return obj;
}
