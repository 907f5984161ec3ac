/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/control.h>
#include <sim/config/model.h>
#include <sim/config/speed.h>
#include <sim/instance/instance.h>
#include <sim/instance/tree.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

/* Port in the event of a failed device (kernel: mlx5_ib_handle_event has 1 for
 * MLX5_DEV_EVENT_SYS_ERROR) */
#define MLX5SIM_CONTROL_FATAL_PORT 1

/* IBV_EVENT_DEVICE_SPEED_CHANGE of rdma-core 62, which follows
 * IBV_EVENT_WQ_FATAL; libibverbs hands on events that it does not know. It is
 * of a device: mlx5_ib's handle_port_change() names no port. */
#define MLX5SIM_CONTROL_SPEED_CHANGE (IBV_EVENT_WQ_FATAL + 1)
#define MLX5SIM_CONTROL_NO_PORT      0


/* @return 0, or -1 after a message */
static int mlx5sim_control_parse(const char *name, int has_port,
                                 unsigned *dev_p, unsigned *port_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int end = -1;

    *port_p = 1;
    if (has_port) {
        (void)sscanf(name, "mlx5_%2u:%2u%n", dev_p, port_p, &end);
    } else {
        (void)sscanf(name, "mlx5_%2u%n", dev_p, &end);
    }

    if ((end < 0) || (name[end] != '\0') || (*dev_p >= config->devices) ||
        (*port_p < 1) || (*port_p > config->ports)) {
        fprintf(stderr, "mlx5sim-stat: '%s' is not a %s of this instance, such "
                "as mlx5_0%s (it has %u with %u)\n", name,
                has_port ? "port" : "device", has_port ? ":1" : "",
                config->devices, config->ports);
        return -1;
    }

    return 0;
}

/* Tell all who have the device open. @param fail  They can no longer use it. */
static void mlx5sim_control_tell(unsigned dev, unsigned port, unsigned event,
                                 int fail)
{
    uint32_t index, high;
    mlx5sim_ctx_t *ctx;

    high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CTX].high);
    for (index = 1; index < high; ++index) {
        ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
        if ((atomic_load(&ctx->o.owner) == 0) || (ctx->dev != dev)) {
            continue;
        }

        if (fail) {
            atomic_store(&ctx->is_dead, 1);
        }
        mlx5sim_async_port_event(ctx, port, event);
    }
}

int mlx5sim_control_port(const char *name, int is_up)
{
    unsigned dev, port;

    if (mlx5sim_control_parse(name, 1, &dev, &port) != 0) {
        return 1;
    }

    if (mlx5sim_tree_set_port(mlx5sim_instance_dir(), dev, port, is_up) != 0) {
        fprintf(stderr, "mlx5sim-stat: could not write the state of %s: %m\n",
                name);
        return 1;
    }

    if (is_up) {
        atomic_fetch_and(&mlx5sim_store->ports_down[dev], ~(1u << port));
    } else {
        atomic_fetch_or(&mlx5sim_store->ports_down[dev], 1u << port);
    }
    mlx5sim_control_tell(dev, port, is_up ? IBV_EVENT_PORT_ACTIVE :
                                            IBV_EVENT_PORT_ERR, 0);
    return 0;
}

int mlx5sim_control_speed(const char *text)
{
    const mlx5sim_model_t *model =
            mlx5sim_model_get(mlx5sim_instance_config()->model);
    const mlx5sim_speed_t full = {model->active_speed, model->active_width};
    const char *equals         = strchr(text, '=');
    char name[32]              = "", rate[MLX5SIM_SPEED_STR_MAX];
    unsigned dev, port;
    mlx5sim_speed_t speed;

    if ((equals == NULL) || (equals - text >= (int)sizeof(name)) ||
        (mlx5sim_speed_parse(equals + 1, &speed) != 0) ||
        (mlx5sim_speed_rate(&speed) > mlx5sim_speed_rate(&full))) {
        fprintf(stderr, "mlx5sim-stat: '%s' is not a port and its speed, such "
                "as mlx5_0:1=2xEDR: 1, 2, 4, 8 or 12 lanes of SDR, DDR, QDR, "
                "FDR10, FDR, EDR, HDR or NDR, and up to %s\n", text,
                mlx5sim_speed_str(&full, rate));
        return 1;
    }

    memcpy(name, text, equals - text);
    if (mlx5sim_control_parse(name, 1, &dev, &port) != 0) {
        return 1;
    }

    if (mlx5sim_tree_set_rate(mlx5sim_instance_dir(), dev, port,
                              mlx5sim_speed_str(&speed, rate)) != 0) {
        fprintf(stderr, "mlx5sim-stat: could not write the rate of %s: %m\n",
                name);
        return 1;
    }

    atomic_store(&mlx5sim_store->speeds[dev][port - 1],
                 speed.lane | (speed.width << 8));
    mlx5sim_control_tell(dev, MLX5SIM_CONTROL_NO_PORT,
                         MLX5SIM_CONTROL_SPEED_CHANGE, 0);
    return 0;
}

int mlx5sim_control_fatal(const char *name)
{
    unsigned dev, port;

    if (mlx5sim_control_parse(name, 0, &dev, &port) != 0) {
        return 1;
    }

    mlx5sim_control_tell(dev, MLX5SIM_CONTROL_FATAL_PORT,
                         IBV_EVENT_DEVICE_FATAL, 1);
    return 0;
}
