/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/server/mads.h>
#include <sim/config/identity.h>
#include <sim/engine/packet.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/hear.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/place.h>
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

/* The IPv4 address of a node, as a GID */
static void mlx5sim_mads_gid(const uint8_t ipv4[4], uint8_t gid_p[16])
{
    mlx5sim_cm_addr_t addr = {.in = {.sin_family = AF_INET}};

    memcpy(&addr.in.sin_addr, ipv4, sizeof(addr.in.sin_addr));
    mlx5sim_cm_addr_gid(&addr, gid_p);
}

/* With InfiniBand: LIDs, and the addresses that they say */
static void mlx5sim_mads_path_ib(const mlx5sim_cm_way_t *way,
                                 mlx5sim_roce_path_t *path)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    mlx5sim_netif_t peer           = {.has_ipv4 = 1};

    memcpy(peer.ipv4, way->dgid + 12, sizeof(peer.ipv4));
    memcpy(path->from, way->sgid + 12, sizeof(path->from));
    memcpy(path->to, way->dgid + 12, sizeof(path->to));
    path->is_ib = 1;
    path->slid  = mlx5sim_port_lid(config, way->dev, way->port);
    path->dlid  = mlx5sim_netif_lid(&peer, config->lmc);
}

static void mlx5sim_mads_path_roce(const mlx5sim_cm_way_t *way,
                                   mlx5sim_roce_path_t *path)
{
    path->has_grh         = 1;
    path->route.tclass    = way->tclass;
    path->route.hop_limit = MLX5SIM_CM_HOP_LIMIT;
    path->route.is_udp    = 1;
    memcpy(path->route.sgid, way->sgid, sizeof(way->sgid));
    memcpy(path->route.dgid, way->dgid, sizeof(way->dgid));
}

static void mlx5sim_mads_send(const mlx5sim_cm_way_t *way,
                              const uint8_t mad[MLX5SIM_CM_MAD_LENGTH])
{
    static uint32_t psn;
    mlx5sim_roce_path_t path = {
        .sport = mlx5sim_roce_sport(0, MLX5SIM_CM_MAD_QPN, MLX5SIM_CM_MAD_QPN)
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
    if (mlx5sim_cm_is_roce()) {
        mlx5sim_mads_path_roce(way, &path);
    } else {
        mlx5sim_mads_path_ib(way, &path);
    }
    mlx5sim_socket_send(way->dev, way->port, &path, &packet, mad,
                        MLX5SIM_CM_MAD_LENGTH);
}

int mlx5sim_mads_is(const mlx5sim_roce_t *packet)
{
    return packet->dqpn == MLX5SIM_CM_MAD_QPN;
}

int mlx5sim_mads_take(unsigned dev, unsigned port,
                      const mlx5sim_roce_path_t *path,
                      const mlx5sim_roce_t *packet, const uint8_t *payload,
                      unsigned length)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    mlx5sim_cm_way_t way           = {
        .dev    = dev,
        .port   = port,
        .tclass = path->route.tclass
    };
    const mlx5sim_netif_t *netif;
    uint8_t peer[4];
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
    netif = mlx5sim_port_netif(config, dev, port);
    if (!path->is_ib) {
        memcpy(way.sgid, path->route.dgid, sizeof(way.sgid));
        memcpy(way.dgid, path->route.sgid, sizeof(way.dgid));
    } else if (netif != NULL) {
        mlx5sim_netif_at_lid(netif, config->lmc, path->slid, peer);
        mlx5sim_mads_gid(netif->ipv4, way.sgid);
        mlx5sim_mads_gid(peer, way.dgid);
    }
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
