/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/server/mads.h>
#include <sim/config/identity.h>
#include <sim/engine/packet.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/hear.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/remote.h>
#include <sim/server/socket.h>

#include <string.h>

/* When ids are to be looked at: at once */
static uint64_t mlx5sim_mads_at;


void mlx5sim_mads_wake(void)
{
    mlx5sim_mads_at = 0;
}

static int mlx5sim_mads_port_is_down(unsigned dev, unsigned port)
{
    return !!(atomic_load(&mlx5sim_store->ports_down[dev]) & (1u << port));
}

static void mlx5sim_mads_send(const mlx5sim_cm_way_t *way,
                              const uint8_t mad[MLX5SIM_CM_MAD_LENGTH])
{
    static uint32_t psn;
    mlx5sim_roce_path_t path = {
        .route   = {
            .tclass    = way->tclass,
            .hop_limit = MLX5SIM_CM_HOP_LIMIT,
            .is_udp    = 1
        },
        .has_grh = 1,
        .sport   = mlx5sim_roce_sport(0, MLX5SIM_CM_MAD_QPN,
                                      MLX5SIM_CM_MAD_QPN)
    };
    mlx5sim_roce_t packet    = {
        .opcode = MLX5SIM_BTH_UD | MLX5SIM_BTH_SEND_ONLY,
        .pkey   = MLX5SIM_PKEY,
        .dqpn   = MLX5SIM_CM_MAD_QPN,
        .psn    = psn,
        .qkey   = MLX5SIM_CM_MAD_QKEY,
        .sqpn   = MLX5SIM_CM_MAD_QPN
    };

    if (mlx5sim_mads_port_is_down(way->dev, way->port)) {
        return;
    }

    psn = mlx5sim_psn_add(psn, 1);
    memcpy(path.route.sgid, way->sgid, sizeof(way->sgid));
    memcpy(path.route.dgid, way->dgid, sizeof(way->dgid));
    mlx5sim_socket_send(way->dev, way->port, &path, &packet, mad,
                        MLX5SIM_CM_MAD_LENGTH);
}

int mlx5sim_mads_is(const mlx5sim_roce_path_t *path,
                    const mlx5sim_roce_t *packet)
{
    return !path->is_ib && (packet->dqpn == MLX5SIM_CM_MAD_QPN);
}

int mlx5sim_mads_take(unsigned dev, unsigned port,
                      const mlx5sim_roce_path_t *path,
                      const mlx5sim_roce_t *packet, const uint8_t *payload,
                      unsigned length)
{
    mlx5sim_cm_way_t way = {
        .dev    = dev,
        .port   = port,
        .tclass = path->route.tclass
    };
    int ret;

    /* any service but UD, and any key but that of QP 1 */
    if ((packet->opcode != (MLX5SIM_BTH_UD | MLX5SIM_BTH_SEND_ONLY)) ||
        (packet->qkey != MLX5SIM_CM_MAD_QKEY) ||
        ((packet->pkey ^ MLX5SIM_PKEY) & 0x7fff)) {
        return -1;
    }

    if (mlx5sim_mads_port_is_down(dev, port)) {
        return 0;
    }

    /* from here to there */
    memcpy(way.sgid, path->route.dgid, sizeof(way.sgid));
    memcpy(way.dgid, path->route.sgid, sizeof(way.dgid));
    mlx5sim_cm_lock();
    ret = mlx5sim_cm_hear(&way, payload, length, mlx5sim_mads_send);
    mlx5sim_cm_unlock();
    mlx5sim_mads_wake();
    return ret;
}

uint64_t mlx5sim_mads_progress(uint64_t now)
{
    if (now >= mlx5sim_mads_at) {
        mlx5sim_cm_lock();
        mlx5sim_mads_at = mlx5sim_cm_remote_progress(now, mlx5sim_mads_send);
        mlx5sim_cm_unlock();
    }
    return mlx5sim_mads_at;
}
