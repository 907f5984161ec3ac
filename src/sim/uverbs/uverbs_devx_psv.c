/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/uverbs/uverbs_devx.h>

#include <errno.h>


unsigned mlx5sim_devx_create_psv(mlx5sim_devx_t *devx)
{
    uint32_t pdn = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_NUMBER);
    mlx5sim_psv_t *psv;
    mlx5sim_pd_t *pd;

    /* the kernel knows how to destroy one alone (devx_is_obj_create_cmd()) */
    if (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_PSV_COUNT) != 1) {
        return -EINVAL;
    }

    pd = mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pdn,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, devx->ctx));
    if (pd == NULL) {
        return MLX5SIM_FW_BAD_RES;
    }

    psv = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_PSV);
    if (psv == NULL) {
        return mlx5sim_devx_status(-errno);
    }

    atomic_fetch_add(&pd->refs, 1);
    psv->pdn = pdn;
    atomic_thread_fence(memory_order_release);
    psv->o.ready = 1;
    devx->obj    = psv;
    mlx5sim_fw_set(devx->fw.out, MLX5SIM_FW_PSV_NUMBER,
                   mlx5sim_obj_index(MLX5SIM_OBJ_PSV, psv));
    return MLX5SIM_FW_OK;
}

int mlx5sim_devx_destroy_psv(mlx5sim_psv_t *psv)
{
    mlx5sim_pd_t *pd = mlx5sim_obj_at(MLX5SIM_OBJ_PD, psv->pdn);

    atomic_fetch_sub(&pd->refs, 1);
    mlx5sim_obj_free(MLX5SIM_OBJ_PSV, psv);
    return 0;
}
