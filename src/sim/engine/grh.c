/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/grh.h>
#include <sim/engine/net_def.h>

#include <endian.h>
#include <string.h>


int mlx5sim_route_is_ipv4(const mlx5sim_route_t *route)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return route->is_udp && (memcmp(route->dgid, prefix, sizeof(prefix)) == 0);
}


void mlx5sim_route_map_ipv4(const uint8_t address[4], uint8_t gid_p[16])
{
    memset(gid_p, 0, 10);
    memset(gid_p + 10, 0xff, 2);
    memcpy(gid_p + 12, address, 4);
}


static uint16_t mlx5sim_ipv4_checksum(const mlx5sim_ipv4_t *ip)
{
    const uint8_t *bytes = (const uint8_t*)ip;
    uint32_t sum         = 0;
    unsigned i;

    for (i = 0; i < sizeof(*ip); i += 2) {
        sum += ((uint32_t)bytes[i] << 8) | bytes[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}


static unsigned mlx5sim_route_ipv4(const mlx5sim_route_t *route,
                                   unsigned length, uint8_t *out_p)
{
    mlx5sim_ipv4_t ip;

    ip.version_ihl  = 0x45;
    ip.tos          = route->tclass;
    ip.total_length = htobe16(sizeof(ip) + length);
    ip.id           = 0;
    ip.fragment     = htobe16(MLX5SIM_IPV4_DF);
    ip.ttl          = route->hop_limit;
    ip.protocol     = MLX5SIM_IPPROTO_UDP;
    ip.checksum     = 0;
    memcpy(ip.saddr, &route->sgid[12], sizeof(ip.saddr));
    memcpy(ip.daddr, &route->dgid[12], sizeof(ip.daddr));
    ip.checksum     = htobe16(mlx5sim_ipv4_checksum(&ip));

    memcpy(out_p, &ip, sizeof(ip));
    return sizeof(ip);
}


unsigned mlx5sim_route_header(const mlx5sim_route_t *route, unsigned length,
                              uint8_t *out_p)
{
    mlx5sim_grh_t hdr;

    if (mlx5sim_route_is_ipv4(route)) {
        return mlx5sim_route_ipv4(route, length, out_p);
    }

    hdr.version_tclass_flow = htobe32((6u << 28) |
                                      ((uint32_t)route->tclass << 20) |
                                      route->flow_label);
    hdr.payload_length      = htobe16(length);
    hdr.next_header         = route->is_udp ? MLX5SIM_IPPROTO_UDP :
                                              MLX5SIM_NEXT_HDR_IBA;
    hdr.hop_limit           = route->hop_limit;
    memcpy(hdr.sgid, route->sgid, sizeof(hdr.sgid));
    memcpy(hdr.dgid, route->dgid, sizeof(hdr.dgid));
    memcpy(out_p, &hdr, sizeof(hdr));
    return sizeof(hdr);
}
