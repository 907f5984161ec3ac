/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/config.h>
#include <sim/limit/limit.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_sched.h>

#include <errno.h>

/*
 * General objects of the firmware: one command makes those of all types, which
 * a field tells apart. Layouts are in libmlx5's mlx5_ifc.h.
 */


uint32_t mlx5sim_devx_general_number(const mlx5sim_general_t *general)
{
    uint32_t index = mlx5sim_obj_index(MLX5SIM_OBJ_GENERAL, general);

    return (general->type == MLX5SIM_FW_TYPE_RESERVED_QPN) ?
           MLX5SIM_QPN_RESERVED + (index << MLX5SIM_LOG_QPN_RESERVED) : index;
}

int mlx5sim_devx_general_is(const mlx5sim_devx_t *devx,
                            const mlx5sim_general_t *general)
{
    return (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_GENERAL_TYPE) ==
            general->type) &&
           (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_GENERAL_NUMBER) ==
            mlx5sim_devx_general_number(general));
}

/* A block of numbers that no queue pair gets. Where it begins is the number of
 * the object (libmlx5, reserved_qpn_blk_alloc()). */
static unsigned mlx5sim_devx_check_reserved_qpn(const mlx5sim_devx_t *devx)
{
    if (devx->fw.in_size < MLX5SIM_FW_RESERVED_QPN_SIZE) {
        return MLX5SIM_FW_BAD_IN_LEN;
    }

    return (mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_GENERAL_RANGE) ==
            MLX5SIM_LOG_QPN_RESERVED) ? MLX5SIM_FW_OK : MLX5SIM_FW_BAD_PARAM;
}

/* Of a type that the device does not have, or for what it has not.
 * @return status */
static unsigned mlx5sim_devx_refuse_type(void)
{
    (void)mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    return MLX5SIM_FW_BAD_OP;
}

unsigned mlx5sim_devx_create_general(mlx5sim_devx_t *devx)
{
    uint32_t type = mlx5sim_fw_get(devx->fw.in, MLX5SIM_FW_GENERAL_TYPE);
    mlx5sim_general_t *general;
    unsigned status;

    if ((type != MLX5SIM_FW_TYPE_RESERVED_QPN) &&
        (type != MLX5SIM_FW_TYPE_SCHED)) {
        return mlx5sim_devx_refuse_type();
    }

    general = mlx5sim_limit_alloc(devx->ctx, MLX5SIM_OBJ_GENERAL);
    if (general == NULL) {
        return mlx5sim_devx_status(-errno);
    }

    status = (type == MLX5SIM_FW_TYPE_SCHED) ?
             mlx5sim_sched_create(devx, general) :
             mlx5sim_devx_check_reserved_qpn(devx);
    if (status != MLX5SIM_FW_OK) {
        mlx5sim_obj_free(MLX5SIM_OBJ_GENERAL, general);
        return status;
    }

    general->type    = type;
    general->o.ready = 1;
    devx->obj        = general;
    devx->number     = mlx5sim_devx_general_number(general);
    return MLX5SIM_FW_OK;
}

unsigned mlx5sim_devx_modify_general(mlx5sim_devx_t *devx)
{
    const mlx5sim_general_t *general = devx->obj;

    return (general->type == MLX5SIM_FW_TYPE_SCHED) ?
           mlx5sim_sched_modify(devx) : mlx5sim_devx_refuse_type();
}

unsigned mlx5sim_devx_query_general(mlx5sim_devx_t *devx)
{
    const mlx5sim_general_t *general = devx->obj;

    return (general->type == MLX5SIM_FW_TYPE_SCHED) ?
           mlx5sim_sched_query(devx) : mlx5sim_devx_refuse_type();
}

int mlx5sim_devx_destroy_general(mlx5sim_general_t *general)
{
    if (atomic_load(&general->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_sched_drop(general);
    mlx5sim_obj_free(MLX5SIM_OBJ_GENERAL, general);
    return 0;
}
