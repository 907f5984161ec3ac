/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/server/conflict.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

typedef struct mlx5sim_conflict {
    int                   fd;
    int                   is_told;
    const mlx5sim_netif_t *netif;
} mlx5sim_conflict_t;

static mlx5sim_conflict_t mlx5sim_conflicts[MLX5SIM_NETIFS_MAX];
static unsigned mlx5sim_num_conflicts;


/* "Who has this address?", of a host that has none yet. A host that has it
 * answers, and one that asks the same at this moment learns of it. */
static void mlx5sim_conflict_ask(const mlx5sim_conflict_t *conflict)
{
    struct sockaddr_ll to    = {.sll_family   = AF_PACKET,
                                .sll_protocol = htons(ETH_P_ARP),
                                .sll_halen    = ETH_ALEN};
    struct ether_arp request = {.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
                                           .ar_pro = htons(ETH_P_IP),
                                           .ar_hln = ETH_ALEN,
                                           .ar_pln = sizeof(request.arp_tpa),
                                           .ar_op  = htons(ARPOP_REQUEST)}};

    to.sll_ifindex = if_nametoindex(conflict->netif->name);
    memset(to.sll_addr, 0xff, ETH_ALEN);
    memcpy(request.arp_sha, conflict->netif->mac, ETH_ALEN);
    memcpy(request.arp_tpa, conflict->netif->ipv4, sizeof(request.arp_tpa));
    (void)sendto(conflict->fd, &request, sizeof(request), 0,
                 (struct sockaddr*)&to, sizeof(to));
}

int mlx5sim_conflict_open(void)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    struct sockaddr_ll addr        = {.sll_family   = AF_PACKET,
                                      .sll_protocol = htons(ETH_P_ARP)};
    int on                         = 1;
    const mlx5sim_netif_t *netif;
    mlx5sim_conflict_t *conflict;
    unsigned dev, port;
    int fd;

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            netif = mlx5sim_port_netif(config, dev, port);
            if (!netif->has_ipv4) {
                continue;
            }

            addr.sll_ifindex = if_nametoindex(netif->name);
            fd               = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC |
                                      SOCK_NONBLOCK, 0);
            if ((fd < 0) ||
                (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on,
                            sizeof(on)) != 0) ||
                (bind(fd, (struct sockaddr*)&addr, sizeof(addr)) != 0)) {
                fprintf(stderr, "mlx5sim-wire: %s: socket for ARP: %s\n",
                        netif->name, strerror(errno));
                return -1;
            }

            conflict        = &mlx5sim_conflicts[mlx5sim_num_conflicts++];
            conflict->fd    = fd;
            conflict->netif = netif;
            mlx5sim_conflict_ask(conflict);
        }
    }

    return 0;
}

/* Interfaces on one network may answer for each other */
static int mlx5sim_conflict_is_own(const uint8_t mac[ETH_ALEN])
{
    unsigned i;

    for (i = 0; i < mlx5sim_num_conflicts; ++i) {
        if (memcmp(mlx5sim_conflicts[i].netif->mac, mac, ETH_ALEN) == 0) {
            return 1;
        }
    }

    return 0;
}

static int mlx5sim_conflict_is(const mlx5sim_netif_t *netif,
                               const struct ether_arp *arp)
{
    static const uint8_t none[4];
    const uint8_t *address = (memcmp(arp->arp_spa, none, sizeof(none)) == 0) ?
                             arp->arp_tpa : arp->arp_spa;

    return (arp->ea_hdr.ar_pro == htons(ETH_P_IP)) &&
           (memcmp(address, netif->ipv4, sizeof(netif->ipv4)) == 0) &&
           !mlx5sim_conflict_is_own(arp->arp_sha);
}

static void mlx5sim_conflict_tell(const mlx5sim_netif_t *netif,
                                  const uint8_t mac[ETH_ALEN])
{
    char address[INET_ADDRSTRLEN];

    fprintf(stderr, "mlx5sim-wire: %s: another host (%02x:%02x:%02x:%02x:%02x:"
            "%02x) has the address %s, too, and packets will reach one of them "
            "only; give each its own (ip address), and make a new instance "
            "(mlx5sim-run --reset)\n", netif->name, mac[0], mac[1], mac[2],
            mac[3], mac[4], mac[5],
            inet_ntop(AF_INET, netif->ipv4, address, sizeof(address)));
}

void mlx5sim_conflict_take(void)
{
    mlx5sim_conflict_t *conflict;
    struct ether_arp arp;
    unsigned i;

    for (i = 0; i < mlx5sim_num_conflicts; ++i) {
        conflict = &mlx5sim_conflicts[i];
        while (recv(conflict->fd, &arp, sizeof(arp), 0) == sizeof(arp)) {
            if (!conflict->is_told &&
                mlx5sim_conflict_is(conflict->netif, &arp)) {
                mlx5sim_conflict_tell(conflict->netif, arp.arp_sha);
                conflict->is_told = 1;
            }
        }
    }
}
