/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ROCE_H_
#define MLX5SIM_ROCE_H_

#include <sim/engine/engine.h>
#include <sim/engine/grh.h>
#include <sim/engine/packet.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Packets as bytes: RoCE v2 (IBTA annex A17), RoCE v1 (annex A16), and
 * InfiniBand (IBTA volume 1, chapters 5 to 9). Pure: no memory but that of the
 * caller, no system call.
 *
 * Between nodes, a packet of InfiniBand is the payload of UDP over IPv4, from
 * its LRH to its VCRC. That is this device's own: no standard has it.
 */

/** UDP port to which packets of InfiniBand go between nodes. */
#define MLX5SIM_ROCE_IB_PORT 14791

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
    /** Annex A17, "Congestion notification packet": the 16 bytes of its payload
     *  are reserved */
    MLX5SIM_BTH_CNP             = 0x81,
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
    uint16_t        sport;   /* of UDP */
    uint8_t         from[4]; /* InfiniBand between nodes: the IPv4 addresses of
                                the ports, as to */
    uint8_t         to[4];
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


/** Whether bytes are a packet, and if not, why. */
typedef enum {
    MLX5SIM_ROCE_VALID,
    MLX5SIM_ROCE_SHORT,      /* they end before it does, or it ends before its
                                headers do */
    MLX5SIM_ROCE_NOT_IP,     /* another version, IPv4 with options, IPv6 with
                                IPv4-mapped addresses */
    MLX5SIM_ROCE_FRAGMENT,
    MLX5SIM_ROCE_NOT_UDP,    /* or to another port than that of RoCE v2, and
                                with IPv4 of InfiniBand */
    MLX5SIM_ROCE_NOT_IB,     /* LRH or GRH are of another kind of packet */
    MLX5SIM_ROCE_BAD_LENGTH, /* headers say different ones, or one that no
                                packet has */
    MLX5SIM_ROCE_BAD_VCRC,
    MLX5SIM_ROCE_BAD_ICRC,
    MLX5SIM_ROCE_VERSION,    /* of BTH, not 0 */
    MLX5SIM_ROCE_OPCODE,     /* unknown */
    MLX5SIM_ROCE_BAD_PAD     /* more than there is payload */
} mlx5sim_roce_verdict_t;


/** Where a packet is in its message. */
typedef struct mlx5sim_roce_place {
    uint32_t               offset; /* of its payload in the message, bytes */
    uint8_t                is_first;
    uint8_t                is_last;
    mlx5sim_roce_message_t next;   /* the message once the packet is taken */
} mlx5sim_roce_place_t;


/** Whether a packet is the next one of a message. */
typedef enum {
    MLX5SIM_ROCE_FITS,
    MLX5SIM_ROCE_FOREIGN,    /* no request of the QP's transport service */
    /* RC answers the others with MLX5SIM_AETH_NAK_INVALID, and UC drops the
     * message (IBTA volume 1, "Responder: receiving inbound request packets")
     */
    MLX5SIM_ROCE_SEQUENCE,   /* its opcode does not continue the message */
    MLX5SIM_ROCE_NOT_MTU,    /* its payload is not the path MTU, or if it is the
                                last one, larger; or none where some must be */
    MLX5SIM_ROCE_BEYOND,     /* more bytes than the message has, or may have; or
                                it leaves none to the last packet */
    MLX5SIM_ROCE_INCOMPLETE, /* it is the last one, and bytes are missing */
    MLX5SIM_ROCE_OPERAND     /* no size of atomics */
} mlx5sim_roce_fit_t;


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
 * @param payload  @a length bytes, up to 4096; may be NULL if there are none.
 * @param out_p    Room for MLX5SIM_ROCE_MAX bytes.
 *
 * @return bytes of the packet.
 */
unsigned mlx5sim_roce_encode(const mlx5sim_roce_path_t *path,
                             const mlx5sim_roce_t *packet, const void *payload,
                             unsigned length, uint8_t *out_p);


/**
 * Write a packet for a raw socket with IP_HDRINCL, from its IP header on: of
 * RoCE v2 what mlx5sim_roce_encode() writes, but without the Ethernet header;
 * of InfiniBand all of that, behind IPv4 and UDP. The kernel leaves an
 * identification of 0 alone where fragments are forbidden, and the ICRC of
 * RoCE v2 covers both.
 */
unsigned mlx5sim_roce_encode_net(const mlx5sim_roce_path_t *path,
                                 const mlx5sim_roce_t *packet,
                                 const void *payload, unsigned length,
                                 uint8_t *out_p);


/**
 * Read a packet of RoCE v2, or of InfiniBand in UDP. The bytes may be anything:
 * none behind @a length is looked at. The checksums of IPv4 and UDP are left to
 * the kernel, and the ICRC does not cover them.
 *
 * @param bytes             From the IP header on. What is behind the length
 *                          that it has, as Ethernet's padding, is ignored.
 * @param length            Of @a bytes.
 * @param path_p            What the packet has of it: the route, in which IPv4
 *                          addresses are IPv4-mapped GIDs, and the port; the
 *                          rest is 0.
 * @param packet_p          What the opcode does not have is 0, and so is the
 *                          size of an atomic that is neither 4 nor 8.
 * @param payload_p         In @a bytes.
 * @param payload_length_p  Without pad, up to MLX5SIM_MAX_MTU. It is not
 *                          compared with the opcode.
 *
 * @return MLX5SIM_ROCE_VALID; or why it is to be dropped, and what is written
 *         is undefined then.
 */
mlx5sim_roce_verdict_t
mlx5sim_roce_decode(const void *bytes, unsigned length,
                    mlx5sim_roce_path_t *path_p, mlx5sim_roce_t *packet_p,
                    const uint8_t **payload_p, unsigned *payload_length_p);


/**
 * Make a work request of a request packet, as the responder sees it: the
 * inverse of mlx5sim_roce_request(). A send does not say how long it will be:
 * its length is that of what has come. A write has its length, and bytes of it
 * may be there later. An immediate is known with the last packet only, so that
 * the opcode is the one without until then.
 *
 * PSN, P_Key and the state of the QP are the caller's affair. A duplicate of a
 * read or an atomic continues no message: it is to be passed with one that is
 * all 0.
 *
 * @param qp       Responder, for its transport service and path MTU.
 * @param packet   Of mlx5sim_roce_decode().
 * @param length   Of its payload, bytes.
 * @param message  What came before. UC forgets it if a message begins.
 * @param wqe_p    Opcode, solicited, remote address, operands, immediate and
 *                 lengths. There are no segments, and of an address vector it
 *                 has QP number and Q_Key. If the packet does not fit, it is
 *                 undefined, as is @a place_p.
 *
 * @return MLX5SIM_ROCE_FITS or what is wrong.
 */
mlx5sim_roce_fit_t
mlx5sim_roce_to_wqe(const mlx5sim_qp_t *qp, const mlx5sim_roce_t *packet,
                    unsigned length, const mlx5sim_roce_message_t *message,
                    mlx5sim_wqe_t *wqe_p, mlx5sim_roce_place_t *place_p);


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
