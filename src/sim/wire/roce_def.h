/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ROCE_DEF_H_
#define MLX5SIM_ROCE_DEF_H_

#include <sim/engine/grh.h>
#include <sim/engine/mlx5_def.h>

/*
 * Headers of packets behind the network header, and that in front of it. All
 * fields are big endian.
 */

#define MLX5SIM_UDP_PORT        4791    /* annex A17 */
#define MLX5SIM_LRH_RESERVED    0xf800  /* bits of the length */
#define MLX5SIM_LRH_VERSION     0x0f
#define MLX5SIM_LRH_LNH         3       /* bits of sl_lnh: what follows */
#define MLX5SIM_LNH_BTH         2
#define MLX5SIM_LNH_GRH         3

#define MLX5SIM_BTH_SOLICITED   0x80
#define MLX5SIM_BTH_MIGRATED    0x40    /* state of paths that never migrate */
#define MLX5SIM_BTH_ACK_REQ     (1u << 31)
#define MLX5SIM_BTH_PAD_SHIFT   4
#define MLX5SIM_BTH_VERSION     0x0f
#define MLX5SIM_BTH_24_BITS     0xffffff /* of QP numbers, PSN and MSN */
#define MLX5SIM_BTH_SERVICE     0xe0    /* bits of the opcode */
#define MLX5SIM_BTH_OPERATION   0x1f

#define MLX5SIM_ICRC_LENGTH     4
#define MLX5SIM_VCRC_LENGTH     2


/** IBTA volume 1, "Local route header" */
typedef struct mlx5sim_lrh {
    uint8_t vl_lver;
    uint8_t sl_lnh;
    __be16  dlid;
    __be16  length;        /* words from here to ICRC */
    __be16  slid;
} MLX5SIM_PACKED mlx5sim_lrh_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_lrh_t, 8);


typedef struct mlx5sim_eth {
    uint8_t dmac[6];
    uint8_t smac[6];
    __be16  type;
} MLX5SIM_PACKED mlx5sim_eth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_eth_t, 14);


typedef struct mlx5sim_udp {
    __be16  sport;
    __be16  dport;
    __be16  length;
    __be16  checksum;      /* 0, as adapters send it: the ICRC protects more */
} MLX5SIM_PACKED mlx5sim_udp_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_udp_t, MLX5SIM_UDP_LENGTH);


/** IBTA volume 1, "Base transport header" */
typedef struct mlx5sim_bth {
    uint8_t opcode;
    uint8_t flags;         /* SE, M, pad count, version 0 */
    __be16  pkey;
    __be32  dqpn;          /* upper byte: FECN, BECN, reserved */
    __be32  ack_psn;       /* AckReq, reserved, PSN */
} MLX5SIM_PACKED mlx5sim_bth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_bth_t, 12);


/** IBTA volume 1, "Datagram extended transport header" */
typedef struct mlx5sim_deth {
    __be32  qkey;
    __be32  sqpn;
} MLX5SIM_PACKED mlx5sim_deth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_deth_t, 8);


/** IBTA volume 1, "RDMA extended transport header" */
typedef struct mlx5sim_reth {
    __be64  raddr;
    __be32  rkey;
    __be32  length;
} MLX5SIM_PACKED mlx5sim_reth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_reth_t, 16);


/** IBTA volume 1, "Atomic extended transport header" */
typedef struct mlx5sim_atomiceth {
    __be64  raddr;
    __be32  rkey;
    __be64  swap_add;
    __be64  compare;
} MLX5SIM_PACKED mlx5sim_atomiceth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_atomiceth_t, 28);


/** Masked atomics, behind AtomicETH: our own, see MLX5SIM_BTH_OWN */
typedef struct mlx5sim_maeth {
    __be64  swap_mask;
    __be64  compare_mask;  /* or the field boundary of an add */
    __be32  size;          /* bytes of the operand */
} MLX5SIM_PACKED mlx5sim_maeth_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_maeth_t, 20);


/** Headers behind BTH, in their order */
enum {
    MLX5SIM_HAS_DETH       = 1 << 0,
    MLX5SIM_HAS_RETH       = 1 << 1,
    MLX5SIM_HAS_ATOMIC     = 1 << 2,
    MLX5SIM_HAS_MASKS      = 1 << 3,
    MLX5SIM_HAS_AETH       = 1 << 4,
    MLX5SIM_HAS_ATOMIC_ACK = 1 << 5,
    MLX5SIM_HAS_IMM        = 1 << 6,
    MLX5SIM_HAS_IETH       = 1 << 7
};


/** Headers behind BTH that the packets of an opcode have. @return MLX5SIM_HAS_*
 */
unsigned mlx5sim_roce_extended(uint8_t opcode);

#endif
