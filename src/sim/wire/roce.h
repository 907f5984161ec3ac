/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ROCE_H_
#define MLX5SIM_ROCE_H_

#include <sim/engine/engine.h>
#include <sim/engine/grh.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Packets as bytes: RoCE v2 (IBTA annex A17), RoCE v1 (annex A16), and
 * InfiniBand (IBTA volume 1, chapters 5 to 9). Pure: no memory but that of the
 * caller, no system call.
 */

/** BTH opcodes (IBTA volume 1, table "OpCode field"), those of RC. The upper
 *  three bits are the transport, MLX5SIM_BTH_RC and so on. */
enum {
    MLX5SIM_BTH_SEND_FIRST      = 0x00,
    MLX5SIM_BTH_SEND_MIDDLE     = 0x01,
    MLX5SIM_BTH_SEND_LAST       = 0x02,
    MLX5SIM_BTH_SEND_LAST_IMM   = 0x03,
    MLX5SIM_BTH_SEND_ONLY       = 0x04,
    MLX5SIM_BTH_SEND_ONLY_IMM   = 0x05,
    MLX5SIM_BTH_WRITE_FIRST     = 0x06,
    MLX5SIM_BTH_WRITE_MIDDLE    = 0x07,
    MLX5SIM_BTH_WRITE_LAST      = 0x08,
    MLX5SIM_BTH_WRITE_LAST_IMM  = 0x09,
    MLX5SIM_BTH_WRITE_ONLY      = 0x0a,
    MLX5SIM_BTH_WRITE_ONLY_IMM  = 0x0b,
    MLX5SIM_BTH_READ_REQUEST    = 0x0c,
    MLX5SIM_BTH_READ_FIRST      = 0x0d, /* responses */
    MLX5SIM_BTH_READ_MIDDLE     = 0x0e,
    MLX5SIM_BTH_READ_LAST       = 0x0f,
    MLX5SIM_BTH_READ_ONLY       = 0x10,
    MLX5SIM_BTH_ACK             = 0x11,
    MLX5SIM_BTH_ATOMIC_ACK      = 0x12,
    MLX5SIM_BTH_COMPARE_SWAP    = 0x13,
    MLX5SIM_BTH_FETCH_ADD       = 0x14,
    MLX5SIM_BTH_SEND_LAST_INV   = 0x16,
    MLX5SIM_BTH_SEND_ONLY_INV   = 0x17,

    MLX5SIM_BTH_RC              = 0x00,
    MLX5SIM_BTH_UC              = 0x20,
    MLX5SIM_BTH_UD              = 0x60,
    /** Manufacturer specific. IBTA has no masked atomics, and how adapters send
     *  them is not published: with MLX5SIM_BTH_COMPARE_SWAP or _FETCH_ADD, the
     *  header of mlx5sim_maeth_t is this device's own. */
    MLX5SIM_BTH_OWN             = 0xc0
};

/** AETH syndromes (IBTA volume 1, table "AETH syndrome field"); the low five
 *  bits of an RNR NAK are the timer. */
enum {
    MLX5SIM_AETH_ACK            = 0x1f, /* credit count: invalid, as there is no
                                           end-to-end flow control */
    MLX5SIM_AETH_RNR            = 0x20,
    MLX5SIM_AETH_NAK_PSN        = 0x60,
    MLX5SIM_AETH_NAK_INVALID    = 0x61,
    MLX5SIM_AETH_NAK_ACCESS     = 0x62,
    MLX5SIM_AETH_NAK_OPERATION  = 0x63
};

/** More bytes than any packet has in front of and behind its payload. */
#define MLX5SIM_ROCE_OVERHEAD 160

/** Largest frame, bytes. */
#define MLX5SIM_ROCE_MAX (4096 + MLX5SIM_ROCE_OVERHEAD)


/** What the headers in front of BTH say. */
typedef struct mlx5sim_roce_path {
    mlx5sim_route_t route;
    uint8_t         is_ib;   /* LRH, else Ethernet */
    uint8_t         has_grh; /* InfiniBand: route is in the packet; RoCE: 1 */
    uint8_t         sl;      /* InfiniBand, as slid and dlid */
    uint16_t        slid;
    uint16_t        dlid;
    uint8_t         smac[6]; /* Ethernet, as dmac */
    uint8_t         dmac[6];
    uint16_t        sport;   /* RoCE v2 */
} mlx5sim_roce_path_t;


/** What BTH and the headers behind it say, in host byte order. */
typedef struct mlx5sim_roce {
    uint8_t  opcode;
    uint8_t  solicited;
    uint8_t  ack_req;
    uint16_t pkey;
    uint32_t dqpn;
    uint32_t psn;
    /* those that the opcode has */
    uint32_t qkey;          /* DETH */
    uint32_t sqpn;
    uint64_t raddr;         /* RETH, AtomicETH */
    uint32_t rkey;
    uint32_t dma_length;    /* RETH, bytes */
    uint64_t swap_add;      /* AtomicETH */
    uint64_t compare;
    uint64_t swap_mask;     /* masked atomics */
    uint64_t compare_mask;
    uint8_t  atomic_size;
    uint8_t  syndrome;      /* AETH */
    uint32_t msn;
    uint64_t old;           /* AtomicAckETH */
    uint32_t imm;           /* ImmDt: big endian, as posted */
    uint32_t inv_rkey;      /* IETH */
} mlx5sim_roce_t;


/**
 * Describe a request packet of a message.
 *
 * @param qp       Requester.
 * @param wqe      The message.
 * @param psn      Of the packet.
 * @param offset   Of its payload in the message, bytes; of a read: of the first
 *                 byte that it asks for.
 * @param is_first Whether it is the first packet of the message.
 */
void mlx5sim_roce_request(const mlx5sim_qp_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn, uint32_t offset, int is_first,
                          int is_last, mlx5sim_roce_t *packet_p);


/** Describe what a responder says: an acknowledgement.
 *  @param qp  Requester, to which it goes. */
void mlx5sim_roce_answer(const mlx5sim_qp_t *qp, uint8_t opcode, uint32_t psn,
                         uint8_t syndrome, uint32_t msn,
                         mlx5sim_roce_t *packet_p);


/** Turn a path round, for an answer. */
void mlx5sim_roce_return(mlx5sim_roce_path_t *path);


/** UDP source port of a path: kernel, rdma_get_udp_sport() of ib_verbs.h. The
 *  flow label chooses it, or the QP numbers if that is 0. */
uint16_t mlx5sim_roce_sport(uint32_t flow_label, uint32_t qpn, uint32_t dqpn);


/**
 * Write a packet, from its LRH or Ethernet header to its ICRC (Ethernet) or
 * VCRC (InfiniBand).
 *
 * @param payload  @a length bytes, up to 4096.
 * @param out_p    Room for MLX5SIM_ROCE_MAX bytes.
 *
 * @return bytes of the packet.
 */
unsigned mlx5sim_roce_encode(const mlx5sim_roce_path_t *path,
                             const mlx5sim_roce_t *packet, const void *payload,
                             unsigned length, uint8_t *out_p);


/**
 * Write what mlx5sim_roce_encode() writes, but without the Ethernet header or
 * the VCRC. Of RoCE v2 that is an IP packet, for a raw socket with IP_HDRINCL:
 * the kernel leaves an identification of 0 alone where fragments are forbidden,
 * and the ICRC covers both.
 */
unsigned mlx5sim_roce_encode_net(const mlx5sim_roce_path_t *path,
                                 const mlx5sim_roce_t *packet,
                                 const void *payload, unsigned length,
                                 uint8_t *out_p);


/**
 * ICRC of a packet (IBTA volume 1, "Invariant CRC"; annex A17 for RoCE v2): the
 * CRC-32 of Ethernet, in which fields that change on the way count as ones.
 *
 * @param path    For its kind: is_ib, has_grh, route.is_udp, IPv4 or IPv6.
 * @param packet  From LRH, or from the network header on Ethernet, to the pad.
 *
 * @return the value; its least significant byte is sent first.
 */
uint32_t mlx5sim_roce_icrc(const mlx5sim_roce_path_t *path,
                           const uint8_t *packet, unsigned length);


/** VCRC (IBTA volume 1, "Variant CRC"): x^16 + x^12 + x^3 + x + 1, of all bytes
 *  from LRH to ICRC. @return as mlx5sim_roce_icrc(). */
uint16_t mlx5sim_roce_vcrc(const uint8_t *packet, unsigned length);

#ifdef __cplusplus
}
#endif

#endif
