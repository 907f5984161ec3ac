/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_NET_DEF_H_
#define MLX5SIM_NET_DEF_H_

#include <sim/engine/grh.h>
#include <sim/engine/mlx5_def.h>

/*
 * Network headers. All fields are big endian.
 */

#define MLX5SIM_NEXT_HDR_IBA  0x1b   /* GRH NxtHdr: IBA transport follows */
#define MLX5SIM_IPPROTO_UDP   17
#define MLX5SIM_IPV6_FRAGMENT 44     /* next header: of a fragment */
#define MLX5SIM_IPV4_DF       0x4000 /* do not fragment */
#define MLX5SIM_IPV4_OFFSET   0x3fff /* of a fragment, and that more follow */


/** GRH or IPv6 header, the same layout */
typedef struct mlx5sim_grh {
    __be32  version_tclass_flow;
    __be16  payload_length;
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t sgid[16];
    uint8_t dgid[16];
} MLX5SIM_PACKED mlx5sim_grh_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_grh_t, MLX5SIM_NET_MAX);


typedef struct mlx5sim_ipv4 {
    uint8_t version_ihl;
    uint8_t tos;
    __be16  total_length;
    __be16  id;
    __be16  fragment;
    uint8_t ttl;
    uint8_t protocol;
    __be16  checksum;
    uint8_t saddr[4];
    uint8_t daddr[4];
} MLX5SIM_PACKED mlx5sim_ipv4_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_ipv4_t, MLX5SIM_IPV4_LENGTH);

#endif
