/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/place.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/def.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

/* Any port but 0 */
#define MLX5SIM_CM_PORT_DISCARD 9


size_t mlx5sim_cm_addr_size(unsigned family)
{
    switch (family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    case AF_IB:
        return sizeof(mlx5sim_cm_sockaddr_ib_t);
    default:
        return 0;
    }
}

int mlx5sim_cm_addr_is_any(const mlx5sim_cm_addr_t *addr)
{
    switch (addr->sa.sa_family) {
    case AF_INET:
        return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
    case AF_INET6:
        return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
    default:
        return 1;
    }
}

int mlx5sim_cm_addr_is_same(const mlx5sim_cm_addr_t *a,
                            const mlx5sim_cm_addr_t *b)
{
    if (a->sa.sa_family != b->sa.sa_family) {
        return 0;
    }

    switch (a->sa.sa_family) {
    case AF_INET:
        return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
    case AF_INET6:
        return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
    default:
        return 1;
    }
}

uint16_t mlx5sim_cm_addr_port(const mlx5sim_cm_addr_t *addr)
{
    switch (addr->sa.sa_family) {
    case AF_INET:
        return ntohs(addr->in.sin_port);
    case AF_INET6:
        return ntohs(addr->in6.sin6_port);
    default:
        return 0;
    }
}

void mlx5sim_cm_addr_set_port(mlx5sim_cm_addr_t *addr, uint16_t port)
{
    if (addr->sa.sa_family == AF_INET) {
        addr->in.sin_port = htons(port);
    } else if (addr->sa.sa_family == AF_INET6) {
        addr->in6.sin6_port = htons(port);
    }
}

void mlx5sim_cm_addr_loopback(unsigned family, mlx5sim_cm_addr_t *addr_p)
{
    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->sa.sa_family = family;
    if (family == AF_INET) {
        addr_p->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        addr_p->in6.sin6_addr = in6addr_loopback;
    }
}

static int mlx5sim_cm_addr_is_loopback(const mlx5sim_cm_addr_t *addr)
{
    return (addr->sa.sa_family == AF_INET) ?
           (ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) :
           !!IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

void mlx5sim_cm_addr_gid(const mlx5sim_cm_addr_t *addr, uint8_t gid[16])
{
    if (addr->sa.sa_family == AF_INET6) {
        memcpy(gid, &addr->in6.sin6_addr, 16);
        return;
    }

    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, &addr->in.sin_addr, 4);
}

int mlx5sim_cm_is_roce(void)
{
    return mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE;
}

uint16_t mlx5sim_cm_addr_lid(const mlx5sim_cm_addr_t *addr,
                             const mlx5sim_cm_place_t *place)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    const mlx5sim_netif_t *netif   = mlx5sim_port_netif(config, place->dev,
                                                        place->port);
    mlx5sim_netif_t peer           = {.has_ipv4 = 1};
    uint8_t back[4];
    uint16_t lid;

    if ((addr->sa.sa_family != AF_INET) || (netif == NULL)) {
        return 0;
    }

    memcpy(peer.ipv4, &addr->in.sin_addr, sizeof(peer.ipv4));
    lid = mlx5sim_netif_lid(&peer, config->lmc);
    mlx5sim_netif_at_lid(netif, config->lmc, lid, back);
    return !memcmp(back, peer.ipv4, sizeof(back)) ? lid : 0;
}

/* Fill in a port. Of its GIDs that with the address is preferred, then one of
 * an IPv4 address, all of RoCE v2: cma.c, cma_set_default_gid_type().
 * @return 0, or -ENODEV if it has none, or its link is down */
static int mlx5sim_cm_place_fill(unsigned dev, unsigned port,
                                 const uint8_t wanted[16],
                                 mlx5sim_cm_place_t *place_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int rank, best                 = -1;
    uint8_t gid[16];
    unsigned i;

    if (atomic_load(&mlx5sim_store->ports_down[dev]) & (1u << port)) {
        return -ENODEV;
    }

    memset(place_p, 0, sizeof(*place_p));
    for (i = 0; i < mlx5sim_gid_table_len(config, dev, port); ++i) {
        if (!mlx5sim_port_gid(config, dev, port, i, gid)) {
            break;
        }

        rank = !memcmp(gid, wanted, sizeof(gid)) ? 3 : (gid[10] == 0xff) ? 2 :
                                                                           1;
        if ((rank > best) && ((config->link != MLX5SIM_LINK_ROCE) ||
                              mlx5sim_gid_is_roce_v2(config, i))) {
            best               = rank;
            place_p->gid_index = i;
            memcpy(place_p->gid, gid, sizeof(gid));
        }
    }

    if (best < 0) {
        return -ENODEV;
    }

    place_p->dev  = dev;
    place_p->port = port;
    place_p->mtu  = mlx5sim_port_mtu(config, dev, port);
    place_p->lid  = mlx5sim_port_lid(config, dev, port);
    return 0;
}

/* Whether a network interface has an address */
static int mlx5sim_cm_netif_has(const mlx5sim_netif_t *netif,
                                const mlx5sim_cm_addr_t *addr)
{
    return (addr->sa.sa_family == AF_INET) ?
           (netif->has_ipv4 &&
            !memcmp(netif->ipv4, &addr->in.sin_addr, sizeof(netif->ipv4))) :
           (netif->has_ipv6 &&
            !memcmp(netif->ipv6, &addr->in6.sin6_addr, sizeof(netif->ipv6)));
}

/* Whether an interface of this network namespace has an address */
static int mlx5sim_cm_addr_is_local(const mlx5sim_cm_addr_t *addr)
{
    struct ifaddrs *addrs, *ifa;
    int found = 0;

    if (mlx5sim_cm_addr_is_loopback(addr)) {
        return 1;
    }

    if (getifaddrs(&addrs) != 0) {
        return 0;
    }

    for (ifa = addrs; (ifa != NULL) && !found; ifa = ifa->ifa_next) {
        found = (ifa->ifa_addr != NULL) &&
                (ifa->ifa_addr->sa_family == addr->sa.sa_family) &&
                mlx5sim_cm_addr_is_same((void*)ifa->ifa_addr, addr);
    }
    freeifaddrs(addrs);
    return found;
}

int mlx5sim_cm_place_find(const mlx5sim_cm_addr_t *addr,
                          mlx5sim_cm_place_t *place_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    const mlx5sim_netif_t *netif;
    uint8_t gid[16], own[16];
    unsigned dev, port, i;

    if (addr->sa.sa_family == AF_IB) {
        return -EADDRNOTAVAIL;
    }

    mlx5sim_cm_addr_gid(addr, gid);
    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            netif = mlx5sim_port_netif(config, dev, port);
            if ((netif != NULL) && mlx5sim_cm_netif_has(netif, addr)) {
                return mlx5sim_cm_place_fill(dev, port, gid, place_p);
            }

            for (i = 0; mlx5sim_port_gid(config, dev, port, i, own); ++i) {
                if (!memcmp(own, gid, sizeof(gid))) {
                    return mlx5sim_cm_place_fill(dev, port, gid, place_p);
                }
            }
        }
    }

    if (!mlx5sim_cm_addr_is_local(addr)) {
        return -EADDRNOTAVAIL;
    }

    /* an interface that no port belongs to */
    if (mlx5sim_config_has_wire(config) && !mlx5sim_cm_addr_is_loopback(addr)) {
        return -ENODEV;
    }

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            if (mlx5sim_cm_place_fill(dev, port, gid, place_p) == 0) {
                return 0;
            }
        }
    }
    return -ENODEV;
}

/* A UDP socket that is connected sends nothing, but has the address */
int mlx5sim_cm_place_route(const mlx5sim_cm_addr_t *dst,
                           mlx5sim_cm_addr_t *src_p)
{
    size_t size          = mlx5sim_cm_addr_size(dst->sa.sa_family);
    uint16_t port        = mlx5sim_cm_addr_port(src_p);
    mlx5sim_cm_addr_t to = *dst, from = *src_p;
    socklen_t length     = sizeof(from);
    int fd, ret;

    fd = socket(dst->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }

    mlx5sim_cm_addr_set_port(&to, MLX5SIM_CM_PORT_DISCARD);
    mlx5sim_cm_addr_set_port(&from, 0);
    ret = ((bind(fd, &from.sa, size) != 0) ||
           (connect(fd, &to.sa, size) != 0) ||
           (getsockname(fd, &from.sa, &length) != 0)) ? -errno : 0;
    mlx5sim_raw_close(fd);
    if (ret == 0) {
        *src_p = from;
        mlx5sim_cm_addr_set_port(src_p, port);
    }
    return ret;
}
