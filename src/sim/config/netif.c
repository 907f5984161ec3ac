/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/config/netif.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MLX5SIM_NETIF_HEADERS (MLX5SIM_NETIF_MTU_MIN - 256)

#define MLX5SIM_NETIF_LID_BITS 16


int mlx5sim_netif_is_name(const char *name)
{
    const char *p;

    if ((name[0] == '\0') || (strlen(name) >= IF_NAMESIZE) ||
        !strcmp(name, ".") || !strcmp(name, "..")) {
        return 0;
    }

    for (p = name; *p != '\0'; ++p) {
        if (!isgraph((unsigned char)*p) || (*p == '/')) {
            return 0;
        }
    }

    return 1;
}

/* Take a name off a list. @return what follows it, NULL: the name is none */
static const char *mlx5sim_netif_next(const char *list, char *name)
{
    size_t length = strcspn(list, ",");

    if (length >= IF_NAMESIZE) {
        return NULL;
    }

    memcpy(name, list, length);
    name[length] = '\0';
    return mlx5sim_netif_is_name(name) ? list + length : NULL;
}

/* @param [out] netifs  Room for MLX5SIM_NETIFS_MAX. @return how many names
 * there are, 0: the list is none */
static unsigned mlx5sim_netif_split(const char *list, mlx5sim_netif_t *netifs)
{
    unsigned i, count = 0;

    do {
        if (count == MLX5SIM_NETIFS_MAX) {
            return 0;
        }

        list = mlx5sim_netif_next(list, netifs[count].name);
        if (list == NULL) {
            return 0;
        }

        for (i = 0; i < count; ++i) {
            if (!strcmp(netifs[i].name, netifs[count].name)) {
                return 0;
            }
        }
        ++count;
    } while (*list++ == ',');

    return count;
}

int mlx5sim_netif_check(const char *list)
{
    mlx5sim_netif_t netifs[MLX5SIM_NETIFS_MAX];

    return mlx5sim_netif_split(list, netifs) > 0;
}

static int mlx5sim_netif_is_global(const struct in6_addr *addr)
{
    return !IN6_IS_ADDR_LINKLOCAL(addr) && !IN6_IS_ADDR_LOOPBACK(addr) &&
           !IN6_IS_ADDR_UNSPECIFIED(addr) && !IN6_IS_ADDR_MULTICAST(addr) &&
           !IN6_IS_ADDR_V4MAPPED(addr);
}

static void mlx5sim_netif_add(const struct sockaddr *sa, mlx5sim_netif_t *netif)
{
    const struct sockaddr_in *in   = (const void*)sa;
    const struct sockaddr_in6 *in6 = (const void*)sa;
    const struct sockaddr_ll *ll   = (const void*)sa;

    if ((sa->sa_family == AF_INET) && !netif->has_ipv4) {
        netif->has_ipv4 = 1;
        memcpy(netif->ipv4, &in->sin_addr, sizeof(netif->ipv4));
    } else if ((sa->sa_family == AF_INET6) && !netif->has_ipv6 &&
               mlx5sim_netif_is_global(&in6->sin6_addr)) {
        netif->has_ipv6 = 1;
        memcpy(netif->ipv6, &in6->sin6_addr, sizeof(netif->ipv6));
    } else if ((sa->sa_family == AF_PACKET) &&
               (ll->sll_halen == sizeof(netif->mac))) {
        memcpy(netif->mac, ll->sll_addr, sizeof(netif->mac));
    }
}

/* Tunnels and loopback have no MAC: GUIDs need one that is nobody else's. 02 is
 * "locally administered". */
static void mlx5sim_netif_set_mac(mlx5sim_netif_t *netif)
{
    static const uint8_t none[6];

    if (memcmp(netif->mac, none, sizeof(none)) == 0) {
        netif->mac[0] = 2;
        memcpy(netif->mac + 2, netif->has_ipv4 ? netif->ipv4 : netif->ipv6 + 12,
               4);
    }
}

int mlx5sim_netif_fill(const struct ifaddrs *addrs, mlx5sim_netif_t *netif,
                       char *error, size_t error_size)
{
    const char *name = netif->name;
    int is_there     = 0;
    int is_up        = 0;

    for (; addrs != NULL; addrs = addrs->ifa_next) {
        if (!strcmp(addrs->ifa_name, name)) {
            is_there = 1;
            is_up    = !!(addrs->ifa_flags & IFF_UP);
            if (addrs->ifa_addr != NULL) {
                mlx5sim_netif_add(addrs->ifa_addr, netif);
            }
        }
    }

    errno = EINVAL;
    if (!is_there) {
        snprintf(error, error_size, "MLX5SIM_WIRE: there is no network "
                 "interface %s here; 'ip address' shows those that there are",
                 name);
        errno = ENODEV;
        return -1;
    }

    if (!is_up) {
        snprintf(error, error_size, "MLX5SIM_WIRE: network interface %s is "
                 "down; 'ip link set %s up' changes that", name, name);
        return -1;
    }

    if (!netif->has_ipv4 && !netif->has_ipv6) {
        snprintf(error, error_size, "MLX5SIM_WIRE: network interface %s has "
                 "no IPv4 and no global IPv6 address, so no GID by which other "
                 "nodes could reach it; 'ip address add ADDRESS/BITS dev %s' "
                 "adds one", name, name);
        return -1;
    }

    if (netif->mtu < MLX5SIM_NETIF_MTU_MIN) {
        snprintf(error, error_size, "MLX5SIM_WIRE: network interface %s has an "
                 "MTU of %u: packets of 256 bytes need %u with their headers; "
                 "'ip link set %s mtu 1500' changes it", name, netif->mtu,
                 MLX5SIM_NETIF_MTU_MIN, name);
        return -1;
    }

    mlx5sim_netif_set_mac(netif);
    return 0;
}

static uint32_t mlx5sim_netif_mtu(const char *name)
{
    int fd               = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {};

    strcpy(request.ifr_name, name);
    if (ioctl(fd, SIOCGIFMTU, &request) != 0) {
        request.ifr_mtu = 0; /* it is not there, as will be said */
    }
    if (fd >= 0) {
        close(fd);
    }
    return request.ifr_mtu;
}

unsigned mlx5sim_netif_lid(const mlx5sim_netif_t *netif, unsigned lmc)
{
    unsigned host = (netif->ipv4[2] << 8) | netif->ipv4[3];

    return (netif->has_ipv4 &&
            (((host + 1) << lmc) - 1 <= MLX5SIM_LID_MAX)) ?
           host << lmc : 0;
}

void mlx5sim_netif_at_lid(const mlx5sim_netif_t *netif, unsigned lmc,
                          uint16_t lid, uint8_t ipv4_p[4])
{
    memcpy(ipv4_p, netif->ipv4, 2);
    ipv4_p[2] = (lid >> lmc) >> 8;
    ipv4_p[3] = lid >> lmc;
}

/* Bits that addresses of a network have in common */
static unsigned mlx5sim_netif_prefix(const struct ifaddrs *addrs,
                                     const mlx5sim_netif_t *netif)
{
    const struct sockaddr_in *in;

    for (; addrs != NULL; addrs = addrs->ifa_next) {
        in = (const void*)addrs->ifa_addr;
        if (!strcmp(addrs->ifa_name, netif->name) && (in != NULL) &&
            (in->sin_family == AF_INET) && (addrs->ifa_netmask != NULL) &&
            (memcmp(&in->sin_addr, netif->ipv4, sizeof(netif->ipv4)) == 0)) {
            in = (const void*)addrs->ifa_netmask;
            return __builtin_popcount(in->sin_addr.s_addr);
        }
    }

    return 32;
}

int mlx5sim_netif_check_lids(const struct ifaddrs *addrs,
                             const mlx5sim_netif_t *netifs, unsigned count,
                             unsigned lmc, char *error, size_t error_size)
{
    static const char hint[] = "the lower half of the IPv4 address is the LID "
                               "of an InfiniBand port";
    const mlx5sim_netif_t *netif;
    unsigned i, lid, prefix;

    errno = EINVAL;
    for (netif = netifs; netif < netifs + count; ++netif) {
        lid    = mlx5sim_netif_lid(netif, lmc);
        prefix = mlx5sim_netif_prefix(addrs, netif);
        if (!netif->has_ipv4) {
            snprintf(error, error_size, "MLX5SIM_WIRE: network interface %s "
                     "has no IPv4 address, and %s; 'ip address add "
                     "ADDRESS/BITS dev %s' adds one, or set MLX5SIM_LINK=roce",
                     netif->name, hint, netif->name);
            return -1;
        }

        if (prefix < MLX5SIM_NETIF_LID_BITS) {
            snprintf(error, error_size, "MLX5SIM_WIRE: the network of %s (/%u) "
                     "has more addresses than there are LIDs, and %s; take one "
                     "of /16 or smaller, or set MLX5SIM_LINK=roce",
                     netif->name, prefix, hint);
            return -1;
        }

        if (lid == 0) {
            snprintf(error, error_size, "MLX5SIM_WIRE: the address of %s, "
                     "%u.%u.%u.%u, makes no LID (1 to 0xbfff, MLX5SIM_LMC=%u), "
                     "and %s; take another address, or set MLX5SIM_LINK=roce",
                     netif->name, netif->ipv4[0], netif->ipv4[1],
                     netif->ipv4[2], netif->ipv4[3], lmc, hint);
            return -1;
        }

        if (netif->mtu < MLX5SIM_NETIF_MTU_MIN + MLX5SIM_NETIF_TUNNEL) {
            snprintf(error, error_size, "MLX5SIM_WIRE: network interface %s "
                     "has an MTU of %u: InfiniBand packets of 256 bytes need "
                     "%u with their headers; 'ip link set %s mtu 1500' changes "
                     "it", netif->name, netif->mtu, MLX5SIM_NETIF_MTU_MIN +
                     MLX5SIM_NETIF_TUNNEL, netif->name);
            return -1;
        }

        for (i = 0; netifs + i < netif; ++i) {
            if (mlx5sim_netif_lid(&netifs[i], lmc) == lid) {
                snprintf(error, error_size, "MLX5SIM_WIRE: %s and %s would "
                         "have the same LID, 0x%x: %s; give one of them "
                         "another", netifs[i].name, netif->name, lid, hint);
                return -1;
            }
        }
    }

    return 0;
}

int mlx5sim_netif_find(const char *list, unsigned count, int lmc,
                       mlx5sim_netif_t *netifs, char *error, size_t error_size)
{
    mlx5sim_netif_t found[MLX5SIM_NETIFS_MAX] = {};
    struct ifaddrs *addrs;
    unsigned i, given;
    int ret = 0;

    given = mlx5sim_netif_split(list, found);
    if (given != count) {
        snprintf(error, error_size, "MLX5SIM_WIRE=%.200s has %u network "
                 "interface%s, and there %s %u port%s (MLX5SIM_DEVICES, "
                 "MLX5SIM_PORTS): each port needs one of its own", list, given,
                 (given == 1) ? "" : "s", (count == 1) ? "is" : "are", count,
                 (count == 1) ? "" : "s");
        errno = EINVAL;
        return -1;
    }

    if (getifaddrs(&addrs) != 0) {
        snprintf(error, error_size, "MLX5SIM_WIRE: cannot list the network "
                 "interfaces: %m");
        return -1;
    }

    for (i = 0; (i < count) && (ret == 0); ++i) {
        found[i].mtu = mlx5sim_netif_mtu(found[i].name);
        ret          = mlx5sim_netif_fill(addrs, &found[i], error, error_size);
    }

    if ((ret == 0) && (lmc != MLX5SIM_NETIF_NO_LIDS)) {
        ret = mlx5sim_netif_check_lids(addrs, found, count, lmc, error,
                                       error_size);
    }

    freeifaddrs(addrs);
    if (ret == 0) {
        memcpy(netifs, found, count * sizeof(*netifs));
    }
    return ret;
}

unsigned mlx5sim_netif_ib_mtu(uint32_t mtu)
{
    unsigned size;

    for (size = 5; size > 0; --size) {
        if (mtu >= (128u << size) + MLX5SIM_NETIF_HEADERS) {
            break;
        }
    }

    return size;
}

const char *mlx5sim_netif_str(const mlx5sim_netif_t *netif, char *buf)
{
    char ipv4[INET_ADDRSTRLEN] = "-", ipv6[INET6_ADDRSTRLEN] = "-";
    const uint8_t *mac         = netif->mac;

    if (netif->has_ipv4) {
        (void)inet_ntop(AF_INET, netif->ipv4, ipv4, sizeof(ipv4));
    }
    if (netif->has_ipv6) {
        (void)inet_ntop(AF_INET6, netif->ipv6, ipv6, sizeof(ipv6));
    }

    snprintf(buf, MLX5SIM_NETIF_STR_MAX,
             "%s %u %02x:%02x:%02x:%02x:%02x:%02x %s %s", netif->name,
             netif->mtu, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], ipv4,
             ipv6);
    return buf;
}

int mlx5sim_netif_parse(const char *text, mlx5sim_netif_t *netif_p)
{
    char ipv4[INET_ADDRSTRLEN], ipv6[INET6_ADDRSTRLEN];
    mlx5sim_netif_t netif = {};
    uint8_t *mac          = netif.mac;
    int end               = -1;

    if ((sscanf(text, "%15s %u %2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx %15s %45s%n",
                netif.name, &netif.mtu, &mac[0], &mac[1], &mac[2], &mac[3],
                &mac[4], &mac[5], ipv4, ipv6, &end) != 10) ||
        (text[end] != '\0') || !mlx5sim_netif_is_name(netif.name)) {
        return -1;
    }

    netif.has_ipv4 = inet_pton(AF_INET, ipv4, netif.ipv4) == 1;
    netif.has_ipv6 = inet_pton(AF_INET6, ipv6, netif.ipv6) == 1;
    if ((!netif.has_ipv4 && strcmp(ipv4, "-")) ||
        (!netif.has_ipv6 && strcmp(ipv6, "-"))) {
        return -1;
    }

    *netif_p = netif;
    return 0;
}
