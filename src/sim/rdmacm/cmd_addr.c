/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/net/net.h>
#include <sim/rdmacm/attr.h>
#include <sim/rdmacm/cmd.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/event.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/place.h>
#include <sim/rdmacm/remote.h>
#include <sim/uverbs/refuse.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

_Static_assert(sizeof(mlx5sim_cm_sockaddr_ib_t) == 48, "sockaddr_ib");


/* Take an address from a command. Of AF_IB only the family counts: GIDs can't
 * be bound. @return 0, or -EINVAL if it is none */
static int mlx5sim_cm_addr_read(const void *from, mlx5sim_cm_addr_t *addr_p)
{
    const mlx5sim_cm_sockaddr_ib_t *ib = from;
    static const uint8_t any[16];
    sa_family_t family;

    memcpy(&family, from, sizeof(family));
    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->sa.sa_family = family;
    if (family == AF_IB) {
        return memcmp(ib->gid, any, sizeof(any)) ? -EADDRNOTAVAIL : 0;
    }

    if (mlx5sim_cm_addr_size(family) == 0) {
        return -EINVAL;
    }

    memcpy(addr_p, from, mlx5sim_cm_addr_size(family));
    return 0;
}

/* rdma_bind_addr() */
static int mlx5sim_cm_bind(mlx5sim_cm_id_t *id, const mlx5sim_cm_addr_t *addr)
{
    mlx5sim_cm_place_t place = {};
    int ret;

    if (id->state != MLX5SIM_CM_IDLE) {
        return -EINVAL;
    }

    if (!mlx5sim_cm_addr_is_any(addr)) {
        ret = mlx5sim_cm_place_find(addr, &place);
        if (ret != 0) {
            return ret;
        }
    }

    id->src = *addr;
    if (!id->has_af_only) {
        id->af_only = addr->sa.sa_family == AF_INET;
    }

    ret = mlx5sim_cm_port_bind(id);
    if (ret != 0) {
        memset(&id->src, 0, sizeof(id->src));
        return ret;
    }

    id->local = place;
    id->state = MLX5SIM_CM_BOUND;
    return 0;
}

int mlx5sim_cm_cmd_bind_ip(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_bind_ip *in = &cmd->in.bind_ip;
    mlx5sim_cm_addr_t addr;
    mlx5sim_cm_id_t *id;
    int ret;

    /* there is no room for one of AF_IB */
    ret = (in->addr.sin6_family == AF_IB) ? -EINVAL :
          mlx5sim_cm_addr_read(&in->addr, &addr);
    if (ret != 0) {
        return ret;
    }

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    return (id == NULL) ? ret : mlx5sim_cm_bind(id, &addr);
}

int mlx5sim_cm_cmd_bind(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_bind *in = &cmd->in.bind;
    mlx5sim_cm_addr_t addr;
    mlx5sim_cm_id_t *id;
    int ret;

    if (in->reserved || (in->addr_size == 0) ||
        (in->addr_size != mlx5sim_cm_addr_size(in->addr.ss_family))) {
        return -EINVAL;
    }

    id  = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    ret = (id == NULL) ? ret : mlx5sim_cm_addr_read(&in->addr, &addr);
    return (ret != 0) ? ret : mlx5sim_cm_bind(id, &addr);
}

/* Find the port from which a packet to another node goes. Whether the node is
 * there, the request finds out: who sends it asks for the MAC address. */
static int mlx5sim_cm_resolve_remote(mlx5sim_cm_id_t *id)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int is_roce                    = mlx5sim_cm_is_roce();
    mlx5sim_cm_place_t place, remote;
    mlx5sim_cm_addr_t src;
    int ret;

    if (!mlx5sim_config_has_wire(config)) {
        return -ENODEV;
    }

    if (((id->ps != RDMA_PS_TCP) && (id->ps != RDMA_PS_UDP)) ||
        (!is_roce && (id->dst.sa.sa_family != AF_INET))) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_CM_WIRE);
        return -ENODEV;
    }

    if (mlx5sim_net_server() == 0) {
        return -ENETUNREACH;
    }

    src = id->src;
    ret = mlx5sim_cm_place_route(&id->dst, &src);
    ret = (ret == 0) ? mlx5sim_cm_place_find(&src, &place) : ret;
    if (ret != 0) {
        return ret;
    }

    memset(&remote, 0, sizeof(remote));
    remote.mtu = place.mtu;
    if (is_roce) {
        mlx5sim_cm_addr_gid(&id->dst, remote.gid);
    } else {
        remote.lid = mlx5sim_cm_addr_lid(&id->dst, &place);
        if (remote.lid == 0) {
            return -EHOSTUNREACH;
        }
    }

    id->src    = src;
    id->local  = place;
    id->remote = remote;
    mlx5sim_cm_remote_begin(id);
    return 0;
}

static int mlx5sim_cm_addr_is_multicast(const mlx5sim_cm_addr_t *addr)
{
    return ((addr->sa.sa_family == AF_INET) &&
            IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr))) ||
           ((addr->sa.sa_family == AF_INET6) &&
            IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr));
}

/* Find the ports of both addresses. @return 0, or -errno for the event */
static int mlx5sim_cm_resolve_places(mlx5sim_cm_id_t *id)
{
    uint16_t port = mlx5sim_cm_addr_port(&id->src);
    int ret;

    /* who joins a group resolves its address before */
    if (mlx5sim_cm_addr_is_multicast(&id->dst)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_MCAST);
        return -ENODEV;
    }

    id->is_remote = 0;
    ret           = mlx5sim_cm_place_find(&id->dst, &id->remote);
    if (ret == -EADDRNOTAVAIL) {
        return mlx5sim_cm_resolve_remote(id);
    } else if (ret != 0) {
        return ret;
    }

    if (id->local.port != 0) {
        return 0;
    }

    /* the way to an own address starts there */
    id->src = id->dst;
    mlx5sim_cm_addr_set_port(&id->src, port);
    id->local = id->remote;
    return 0;
}

/* rdma_resolve_addr() */
static int mlx5sim_cm_resolve(mlx5sim_cm_id_t *id, const void *src,
                              const mlx5sim_cm_addr_t *dst)
{
    mlx5sim_cm_addr_t addr = {};
    int ret;

    if (id->state == MLX5SIM_CM_IDLE) {
        if (src != NULL) {
            ret = mlx5sim_cm_addr_read(src, &addr);
            if (ret != 0) {
                return ret;
            }
        } else {
            addr.sa.sa_family = dst->sa.sa_family;
        }

        ret = mlx5sim_cm_bind(id, &addr);
        if (ret != 0) {
            return ret;
        }
    }

    if ((id->state != MLX5SIM_CM_BOUND) ||
        (id->src.sa.sa_family != dst->sa.sa_family) ||
        (dst->sa.sa_family == AF_IB)) {
        return -EINVAL;
    }

    id->dst = *dst;
    if (mlx5sim_cm_addr_is_any(dst)) {
        /* cma_resolve_loopback() */
        mlx5sim_cm_addr_loopback(dst->sa.sa_family, &id->dst);
        mlx5sim_cm_addr_set_port(&id->dst, mlx5sim_cm_addr_port(dst));
    }

    ret = mlx5sim_cm_resolve_places(id);
    if (ret != 0) {
        return mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ADDR_ERROR, ret);
    }

    ret = mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ADDR_RESOLVED, 0);
    if (ret == 0) {
        id->state = MLX5SIM_CM_ADDR;
    }
    return ret;
}

int mlx5sim_cm_cmd_resolve_ip(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_resolve_ip *in = &cmd->in.resolve_ip;
    mlx5sim_cm_addr_t dst;
    mlx5sim_cm_id_t *id;
    int ret;

    ret = ((in->src_addr.sin6_family == AF_IB) ||
           (in->dst_addr.sin6_family == AF_IB)) ? -EINVAL :
          mlx5sim_cm_addr_read(&in->dst_addr, &dst);
    if (ret != 0) {
        return ret;
    }

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    return (id == NULL) ? ret :
           mlx5sim_cm_resolve(id, (in->src_addr.sin6_family != 0) ?
                                  &in->src_addr : NULL, &dst);
}

int mlx5sim_cm_cmd_resolve_addr(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_resolve_addr *in = &cmd->in.resolve_addr;
    mlx5sim_cm_addr_t dst;
    mlx5sim_cm_id_t *id;
    int ret;

    if (in->reserved || (in->dst_size == 0) ||
        (in->dst_size != mlx5sim_cm_addr_size(in->dst_addr.ss_family)) ||
        ((in->src_size != 0) &&
         (in->src_size != mlx5sim_cm_addr_size(in->src_addr.ss_family)))) {
        return -EINVAL;
    }

    id  = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    ret = (id == NULL) ? ret : mlx5sim_cm_addr_read(&in->dst_addr, &dst);
    return (ret != 0) ? ret :
           mlx5sim_cm_resolve(id, (in->src_size != 0) ? &in->src_addr : NULL,
                              &dst);
}

int mlx5sim_cm_cmd_resolve_route(mlx5sim_cm_cmd_t *cmd)
{
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, cmd->in.resolve_route.id, &ret);
    if (id == NULL) {
        return ret;
    }

    if (id->state != MLX5SIM_CM_ADDR) {
        return -EINVAL;
    }

    ret = mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ROUTE_RESOLVED, 0);
    if (ret == 0) {
        id->state = MLX5SIM_CM_ROUTE;
    }
    return ret;
}

/* GUID of the device of an id, 0 if it has none */
static uint64_t mlx5sim_cm_guid(const mlx5sim_cm_id_t *id)
{
    return (id->local.port == 0) ? 0 :
           htobe64(mlx5sim_node_guid(mlx5sim_instance_config(),
                                     id->local.dev));
}

static void mlx5sim_cm_addr_copy6(const mlx5sim_cm_addr_t *addr,
                                  struct sockaddr_in6 *to)
{
    memcpy(to, addr, sizeof(*to));
}

int mlx5sim_cm_cmd_query_route(mlx5sim_cm_cmd_t *cmd)
{
    const struct rdma_ucm_query *in      = &cmd->in.query;
    struct rdma_ucm_query_route_resp out = {};
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, in->id, &ret);
    if (id == NULL) {
        return ret;
    }

    mlx5sim_cm_addr_copy6(&id->src, &out.src_addr);
    mlx5sim_cm_addr_copy6(&id->dst, &out.dst_addr);
    if (id->local.port != 0) {
        out.node_guid   = mlx5sim_cm_guid(id);
        out.port_num    = id->local.port;
        out.ibdev_index = id->local.dev;
        out.num_paths   = mlx5sim_cm_attr_num_paths(id);
        mlx5sim_cm_attr_user_path(id, &out.ib_route[0]);
    }
    return mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}

/* What both addresses of an answer have in common */
static void mlx5sim_cm_query_begin(const mlx5sim_cm_id_t *id,
                                   struct rdma_ucm_query_addr_resp *out_p)
{
    memset(out_p, 0, sizeof(*out_p));
    if (id->local.port != 0) {
        out_p->node_guid   = mlx5sim_cm_guid(id);
        out_p->port_num    = id->local.port;
        out_p->pkey        = htons(MLX5SIM_PKEY);
        out_p->ibdev_index = id->local.dev;
    }
}

static uint16_t mlx5sim_cm_query_ip(const mlx5sim_cm_addr_t *addr, void *to)
{
    memcpy(to, addr, sizeof(*addr));
    return mlx5sim_cm_addr_size(addr->sa.sa_family);
}

/* ucma_query_gid(): as an address of AF_IB */
static uint16_t mlx5sim_cm_query_gid(const mlx5sim_cm_id_t *id,
                                     const mlx5sim_cm_addr_t *addr,
                                     const mlx5sim_cm_place_t *place, void *to)
{
    mlx5sim_cm_sockaddr_ib_t ib = {.family = AF_IB};

    ib.pkey     = (id->local.port != 0) ? htons(MLX5SIM_PKEY) : 0;
    ib.sid      = htobe64(((uint64_t)id->ps << 16) |
                          mlx5sim_cm_addr_port(addr));
    ib.sid_mask = ~0ull;
    memcpy(ib.gid, place->gid, sizeof(ib.gid));
    memcpy(to, &ib, sizeof(ib));
    return sizeof(ib);
}

static int mlx5sim_cm_query_addrs(mlx5sim_cm_cmd_t *cmd,
                                  const mlx5sim_cm_id_t *id)
{
    const struct rdma_ucm_query *in = &cmd->in.query;
    struct rdma_ucm_query_addr_resp out;

    if (cmd->out_size < offsetof(struct rdma_ucm_query_addr_resp,
                                 ibdev_index)) {
        return -ENOSPC;
    }

    mlx5sim_cm_query_begin(id, &out);
    if (in->option == RDMA_USER_CM_QUERY_ADDR) {
        out.src_size = mlx5sim_cm_query_ip(&id->src, &out.src_addr);
        out.dst_size = mlx5sim_cm_query_ip(&id->dst, &out.dst_addr);
    } else {
        out.src_size = mlx5sim_cm_query_gid(id, &id->src, &id->local,
                                            &out.src_addr);
        out.dst_size = mlx5sim_cm_query_gid(id, &id->dst, &id->remote,
                                            &out.dst_addr);
    }
    return mlx5sim_cm_reply(cmd, in->response, &out, sizeof(out));
}

static int mlx5sim_cm_query_path(mlx5sim_cm_cmd_t *cmd,
                                 const mlx5sim_cm_id_t *id)
{
    struct {
        struct rdma_ucm_query_path_resp head;
        struct ib_path_rec_data         path;
    } out = {};

    if (cmd->out_size < sizeof(out.head)) {
        return -ENOSPC;
    }

    out.head.num_paths = mlx5sim_cm_attr_num_paths(id);
    if (out.head.num_paths > 0) {
        mlx5sim_cm_attr_path(id, &out.path);
    }
    return mlx5sim_cm_reply(cmd, cmd->in.query.response, &out,
                            (out.head.num_paths > 0) ? sizeof(out) :
                                                       sizeof(out.head));
}

int mlx5sim_cm_cmd_query(mlx5sim_cm_cmd_t *cmd)
{
    mlx5sim_cm_id_t *id;
    int ret;

    id = mlx5sim_cm_cmd_id(cmd, cmd->in.query.id, &ret);
    if (id == NULL) {
        return ret;
    }

    switch (cmd->in.query.option) {
    case RDMA_USER_CM_QUERY_ADDR:
    case RDMA_USER_CM_QUERY_GID:
        return mlx5sim_cm_query_addrs(cmd, id);
    case RDMA_USER_CM_QUERY_PATH:
        return mlx5sim_cm_query_path(cmd, id);
    default:
        return -ENOSYS;
    }
}
