/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/id.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/place.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* Ports for who does not care: ip(7), ip_local_port_range */
#define MLX5SIM_CM_PORT_FIRST 32768
#define MLX5SIM_CM_PORT_LAST  60999


void mlx5sim_cm_lock(void)
{
    (void)mlx5sim_lock(&mlx5sim_store->cm_lock);
}

void mlx5sim_cm_unlock(void)
{
    mlx5sim_unlock(&mlx5sim_store->cm_lock);
}

static uint32_t mlx5sim_cm_id_index(const mlx5sim_cm_id_t *id)
{
    return mlx5sim_obj_index(MLX5SIM_OBJ_CM_ID, id);
}

mlx5sim_cm_id_t *mlx5sim_cm_id_new(const mlx5sim_chan_t *chan, uint16_t ps,
                                   uint8_t qp_type)
{
    static _Atomic int warned;
    mlx5sim_cm_id_t *id;

    id = mlx5sim_obj_alloc(MLX5SIM_OBJ_CM_ID, 0);
    if (id == NULL) {
        mlx5sim_proc_reap_dead();
        id = mlx5sim_obj_alloc(MLX5SIM_OBJ_CM_ID, 0);
    }
    if (id == NULL) {
        if ((errno == ENOMEM) && !atomic_exchange(&warned, 1)) {
            fprintf(stderr, "mlx5sim: the processes of this instance have %d "
                    "ids of the connection manager (rdma_create_id), that is "
                    "its limit\n", MLX5SIM_MAX_CM_IDS - 1);
            errno = ENOMEM;
        }
        return NULL;
    }

    mlx5sim_store->cm_ports[mlx5sim_cm_id_index(id)] = 0;
    id->chan     = mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, chan);
    id->chan_gen = chan->o.gen;
    id->ps       = ps;
    id->qp_type  = qp_type;
    id->timeout  = MLX5SIM_CM_ACK_TIMEOUT;
    if (getrandom(&id->psn, sizeof(id->psn), GRND_NONBLOCK) < 0) {
        id->psn = mlx5sim_cm_id_index(id) * 0x10001u;
    }
    id->psn    &= 0xffffff;
    id->o.ready = 1;
    return id;
}

int mlx5sim_cm_id_give(mlx5sim_cm_id_t *id, const mlx5sim_chan_t *chan)
{
    uint32_t owner;
    int ret = -1;

    (void)mlx5sim_lock(&mlx5sim_store->reap_lock);
    owner = atomic_load(&chan->o.owner);
    if ((mlx5sim_proc_by_tag(owner) != NULL) &&
        (chan->o.gen == id->chan_gen)) {
        atomic_store(&id->o.owner, owner);
        ret = 0;
    }
    mlx5sim_unlock(&mlx5sim_store->reap_lock);

    if (ret != 0) {
        mlx5sim_cm_id_free(id);
    }
    return ret;
}

void mlx5sim_cm_port_free(const mlx5sim_cm_id_t *id)
{
    mlx5sim_store->cm_ports[mlx5sim_cm_id_index(id)] = 0;
}

void mlx5sim_cm_id_free(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_port_free(id);
    mlx5sim_obj_free(MLX5SIM_OBJ_CM_ID, id);
}

/* Who reaps has perhaps looked at the owner already, and would free what has
 * the slot next */
void mlx5sim_cm_id_take(mlx5sim_cm_id_t *id)
{
    (void)mlx5sim_lock(&mlx5sim_store->reap_lock);
    if (atomic_load(&id->o.owner) != 0) {
        mlx5sim_cm_id_free(id);
    }
    mlx5sim_unlock(&mlx5sim_store->reap_lock);
}

mlx5sim_cm_ref_t mlx5sim_cm_id_ref(const mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_ref_t ref = {mlx5sim_cm_id_index(id), id->o.gen};

    return ref;
}

static int mlx5sim_cm_id_is_live(const mlx5sim_cm_id_t *id)
{
    uint32_t owner             = atomic_load(&id->o.owner);
    const mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(owner);

    return id->o.ready && (proc != NULL) && !mlx5sim_proc_is_gone(proc);
}

mlx5sim_cm_id_t *mlx5sim_cm_id_get(mlx5sim_cm_ref_t ref)
{
    mlx5sim_cm_id_t *id = mlx5sim_obj_find(MLX5SIM_OBJ_CM_ID, ref.index);

    return ((ref.index != 0) && (id != NULL) && (id->o.gen == ref.gen) &&
            mlx5sim_cm_id_is_live(id)) ? id : NULL;
}

mlx5sim_cm_id_t *mlx5sim_cm_id_peer(const mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_get(id->peer);

    return ((peer != NULL) && (peer->peer.index == mlx5sim_cm_id_index(id)) &&
            (peer->peer.gen == id->o.gen)) ? peer : NULL;
}

mlx5sim_cm_id_t *mlx5sim_cm_id_next(uint32_t index, uint32_t owner)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CM_ID].high);
    mlx5sim_cm_id_t *id;

    while (++index < high) {
        id = mlx5sim_obj_at(MLX5SIM_OBJ_CM_ID, index);
        if (((owner == 0) || (atomic_load(&id->o.owner) == owner)) &&
            mlx5sim_cm_id_is_live(id)) {
            return id;
        }
    }

    return NULL;
}

/* What stands for a port in cm_ports */
static uint32_t mlx5sim_cm_port_key(uint16_t ps, uint16_t port)
{
    return ((uint32_t)ps << 16) | port;
}

mlx5sim_cm_id_t *mlx5sim_cm_port_next(uint32_t index, uint16_t ps,
                                      uint16_t port)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CM_ID].high);
    uint32_t key  = mlx5sim_cm_port_key(ps, port);
    mlx5sim_cm_id_t *id;

    while (++index < high) {
        id = (mlx5sim_store->cm_ports[index] == key) ?
             mlx5sim_obj_at(MLX5SIM_OBJ_CM_ID, index) : NULL;
        if ((id != NULL) && mlx5sim_cm_id_is_live(id)) {
            return id;
        }
    }

    return NULL;
}

/* Whether an id may have a port beside those that have it: cma_check_port() */
static int mlx5sim_cm_port_try(const mlx5sim_cm_id_t *id, uint16_t port,
                               int reuse_addr)
{
    const mlx5sim_cm_id_t *other;
    uint32_t index;

    for (index = 0;
         (other = mlx5sim_cm_port_next(index, id->ps, port)) != NULL;
         index = mlx5sim_cm_id_index(other)) {
        if ((other == id) || (reuse_addr && other->reuse_addr) ||
            (id->af_only && other->af_only &&
             (id->src.sa.sa_family != other->src.sa.sa_family))) {
            continue;
        }

        if (mlx5sim_cm_addr_is_any(&id->src) ||
            mlx5sim_cm_addr_is_any(&other->src)) {
            return -EADDRNOTAVAIL;
        } else if (mlx5sim_cm_addr_is_same(&id->src, &other->src)) {
            return -EADDRINUSE;
        }
    }

    return 0;
}

static uint16_t mlx5sim_cm_port_pick(const mlx5sim_cm_id_t *id)
{
    const uint32_t count = MLX5SIM_CM_PORT_LAST - MLX5SIM_CM_PORT_FIRST + 1;
    uint32_t tries;
    uint16_t port;

    for (tries = 0; tries < count; ++tries) {
        port = MLX5SIM_CM_PORT_FIRST + (mlx5sim_store->cm_next_port++ % count);
        if (mlx5sim_cm_port_next(0, id->ps, port) == NULL) {
            return port;
        }
    }
    return 0;
}

int mlx5sim_cm_port_bind(mlx5sim_cm_id_t *id)
{
    uint16_t port = mlx5sim_cm_addr_port(&id->src);
    int ret;

    if (id->src.sa.sa_family == AF_IB) {
        return 0;
    }

    if (port == 0) {
        port = mlx5sim_cm_port_pick(id);
        if (port == 0) {
            return -EADDRNOTAVAIL;
        }
    } else if ((port < IPPORT_RESERVED) && (geteuid() != 0)) {
        return -EACCES;
    } else {
        ret = mlx5sim_cm_port_try(id, port, id->reuse_addr);
        if (ret != 0) {
            return ret;
        }
    }

    mlx5sim_cm_addr_set_port(&id->src, port);
    mlx5sim_store->cm_ports[mlx5sim_cm_id_index(id)] =
            mlx5sim_cm_port_key(id->ps, port);
    return 0;
}

int mlx5sim_cm_port_check(const mlx5sim_cm_id_t *id, int reuse_addr)
{
    return (id->src.sa.sa_family == AF_IB) ? 0 :
           mlx5sim_cm_port_try(id, mlx5sim_cm_addr_port(&id->src), reuse_addr);
}
