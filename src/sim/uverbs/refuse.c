/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/refuse.h>
#include <sim/instance/instance.h>

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdio.h>

#define MLX5SIM_REFUSE_EX IB_USER_VERBS_CMD_FLAG_EXTENDED
/* Any method of an object */
#define MLX5SIM_REFUSE_ALL 0xffff

static const struct {
    uint32_t          number;
    mlx5sim_missing_t missing;
} mlx5sim_refuse_commands[] = {
    {IB_USER_VERBS_CMD_ATTACH_MCAST, MLX5SIM_MISSING_MCAST},
    {IB_USER_VERBS_CMD_OPEN_QP,      MLX5SIM_MISSING_XRC},
    {MLX5SIM_REFUSE_EX | IB_USER_VERBS_EX_CMD_CREATE_FLOW,
     MLX5SIM_MISSING_FLOW},
    {MLX5SIM_REFUSE_EX | IB_USER_VERBS_EX_CMD_CREATE_WQ,
     MLX5SIM_MISSING_WQ},
    {MLX5SIM_REFUSE_EX | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL,
     MLX5SIM_MISSING_WQ}
};

static const struct {
    uint16_t          object;
    uint16_t          method;
    mlx5sim_missing_t missing;
} mlx5sim_refuse_methods[] = {
    {UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, MLX5SIM_MISSING_DM},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, MLX5SIM_MISSING_ODP},
    {UVERBS_OBJECT_DM, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_DM},
    {UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, MLX5SIM_MISSING_WQ},
    {UVERBS_OBJECT_FLOW_ACTION, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_FLOW},
    {UVERBS_OBJECT_COUNTERS, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_COUNTERS},
    {MLX5_IB_OBJECT_DEVX, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_DEVX},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_DEVX},
    {MLX5_IB_OBJECT_DEVX_UMEM, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_DEVX},
    {MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5SIM_REFUSE_ALL,
     MLX5SIM_MISSING_DEVX},
    {MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5SIM_REFUSE_ALL,
     MLX5SIM_MISSING_DEVX},
    {MLX5_IB_OBJECT_FLOW_MATCHER, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_FLOW},
    {MLX5_IB_OBJECT_PP, MLX5SIM_REFUSE_ALL, MLX5SIM_MISSING_PACING}
};


int mlx5sim_refuse(mlx5sim_missing_t missing)
{
    static _Atomic int logged[MLX5SIM_MISSING_LAST];
    const mlx5sim_missing_row_t *row = mlx5sim_missing_row(missing);
    unsigned level = row->is_probed ? MLX5SIM_LOG_LEVEL_INFO :
                                      MLX5SIM_LOG_LEVEL_WARN;

    if ((mlx5sim_instance_config()->log >= level) &&
        !atomic_exchange(&logged[missing], 1)) {
        fprintf(stderr, "mlx5sim: not emulated: %s%s%s%s; it is refused\n",
                row->name, (row->what[0] != '\0') ? " (" : "", row->what,
                (row->what[0] != '\0') ? ")" : "");
    }

    return -EOPNOTSUPP;
}

int mlx5sim_refuse_command(uint32_t number)
{
    unsigned i;

    for (i = 0; i < sizeof(mlx5sim_refuse_commands) /
                            sizeof(mlx5sim_refuse_commands[0]); ++i) {
        if (mlx5sim_refuse_commands[i].number == number) {
            return mlx5sim_refuse(mlx5sim_refuse_commands[i].missing);
        }
    }

    if (mlx5sim_instance_config()->log >= MLX5SIM_LOG_LEVEL_WARN) {
        fprintf(stderr, "mlx5sim: not emulated: uverbs command %s%u\n",
                (number & MLX5SIM_REFUSE_EX) ? "EX " : "",
                (unsigned)(number & 0xff));
    }
    return -EOPNOTSUPP;
}

int mlx5sim_refuse_method(uint16_t object, uint16_t method)
{
    unsigned i;

    for (i = 0; i < sizeof(mlx5sim_refuse_methods) /
                            sizeof(mlx5sim_refuse_methods[0]); ++i) {
        if ((mlx5sim_refuse_methods[i].object == object) &&
            ((mlx5sim_refuse_methods[i].method == method) ||
             (mlx5sim_refuse_methods[i].method == MLX5SIM_REFUSE_ALL))) {
            (void)mlx5sim_refuse(mlx5sim_refuse_methods[i].missing);
            return -EPROTONOSUPPORT;
        }
    }

    if (mlx5sim_instance_config()->log >= MLX5SIM_LOG_LEVEL_DEBUG) {
        fprintf(stderr, "mlx5sim: uverbs object 0x%x method 0x%x is not "
                "emulated\n", object, method);
    }
    return -EPROTONOSUPPORT;
}
