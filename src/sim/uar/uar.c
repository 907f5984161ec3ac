/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/uar.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>

#include <errno.h>


unsigned mlx5sim_uar_count(uint32_t dev)
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
    unsigned i, limit = mlx5sim_instance_config()->uars;
    mlx5sim_uar_t *uar;
    int ret;

    if (mlx5sim_uar_count(ctx->dev) + num > limit) {
        return -ENOMEM;
    }

    for (i = 0; i < num; ++i) {
        uar = mlx5sim_obj_alloc(MLX5SIM_OBJ_UAR,
                                mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
        if (uar == NULL) {
            ret = -errno;
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
    return ret;
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
            /* what the dead held is free */
            mlx5sim_proc_reap_dead();
        }

        (void)mlx5sim_lock(&mlx5sim_store->limit_lock);
        ret = mlx5sim_uar_try(ctx, kind, num, index_p);
        mlx5sim_unlock(&mlx5sim_store->limit_lock);
    }

    return ret;
}
