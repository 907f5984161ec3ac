/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PACKET_DEF_H_
#define MLX5SIM_PACKET_DEF_H_

#include <sim/engine/qp.h>

/*
 * How messages of connected QPs are cut into packets, and how packets are
 * numbered (IBTA volume 1, "Packet sequence numbers").
 */

#define MLX5SIM_PSN_MASK 0xffffffu


/** A message of which a responder has taken packets; all 0 between messages. */
typedef struct mlx5sim_roce_message {
    uint8_t  is_open;    /* more packets are to come */
    uint8_t  is_write;   /* RDMA write, else a send */
    uint32_t offset;     /* bytes so far */
    uint64_t raddr;      /* RETH of the first packet of a write, as what
                            follows */
    uint32_t rkey;
    uint32_t dma_length;
} mlx5sim_roce_message_t;


/** How many packets @a psn is ahead of @a other, 0 to 2^24 - 1; from 2^23 on it
 *  is behind. */
static inline uint32_t mlx5sim_psn_ahead(uint32_t psn, uint32_t other)
{
    return (psn - other) & MLX5SIM_PSN_MASK;
}


static inline uint32_t mlx5sim_psn_add(uint32_t psn, uint32_t packets)
{
    return (psn + packets) & MLX5SIM_PSN_MASK;
}


/** Whether @a psn comes before @a other. */
static inline int mlx5sim_psn_before(uint32_t psn, uint32_t other)
{
    return mlx5sim_psn_ahead(psn, other) > (MLX5SIM_PSN_MASK >> 1);
}


/** PSNs that a message of @a length bytes takes: that many packets go to the
 *  responder, or come back if it is a read. */
static inline uint32_t
mlx5sim_packet_count(const mlx5sim_qp_t *qp, uint32_t length)
{
    unsigned shift = ((qp->path_mtu >= 1) && (qp->path_mtu <= 5)) ?
                     (qp->path_mtu + 7) : 12;

    return (length == 0) ? 1 : (((length - 1) >> shift) + 1);
}

#endif
