/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_GRH_H_
#define MLX5SIM_GRH_H_

#include <stdint.h>

/*
 * Network headers of packets: GRH (IBTA volume 1, "Global route header"), and
 * the IPv6 or IPv4 header of RoCE v2 (IBTA annex A17). Pure.
 */

/** Largest network header, bytes: that of GRH and IPv6. */
#define MLX5SIM_NET_MAX 40

#define MLX5SIM_IPV4_LENGTH 20
#define MLX5SIM_UDP_LENGTH  8

/** What the network header of a packet says. */
typedef struct mlx5sim_route {
    uint8_t  sgid[16];
    uint8_t  dgid[16];
    uint32_t flow_label; /* 20 bits */
    uint8_t  tclass;
    uint8_t  hop_limit;
    uint8_t  is_udp;     /* RoCE v2: UDP follows, else IBA's transport */
} mlx5sim_route_t;


/** Whether the header is one of IPv4: RoCE v2, of an IPv4-mapped GID. */
int mlx5sim_route_is_ipv4(const mlx5sim_route_t *route);


/** GID of an IPv4 address: IPv4-mapped. */
void mlx5sim_route_map_ipv4(const uint8_t address[4], uint8_t gid_p[16]);


/**
 * Write the header.
 *
 * @param length  Bytes of the packet behind it, UDP's header and the ICRC
 *                among them.
 * @param out_p   Room for MLX5SIM_NET_MAX bytes.
 *
 * @return bytes of the header: MLX5SIM_IPV4_LENGTH or MLX5SIM_NET_MAX.
 */
unsigned mlx5sim_route_header(const mlx5sim_route_t *route, unsigned length,
                              uint8_t *out_p);

#endif
