/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONN_DEF_H
#define UCT_SEP_CONN_DEF_H

#include <uct/ib/sep/port/sep_addr_def.h>

/**
 * @file sep_conn_def.h
 *
 * Bytes that leave the process: the UD packet of the connection exchange. All
 * of it is big endian and without padding. This is a protocol of our own, of
 * which the addresses (sep_addr_def.h) are a part.
 */

/** First four bytes of every packet, "SEPc". */
#define UCT_SEP_CONN_MAGIC         0x53455063u

/** Bytes the receiving side of a UD packet finds before the payload. */
#define UCT_SEP_CONN_GRH_LEN       40


/** Packet types. */
typedef enum {
    /** "This is my QP, I would like to connect to yours." */
    UCT_SEP_CONN_MSG_REQ = 1,
    /** "This is my QP, and it is connected to your QP dst_epoch." */
    UCT_SEP_CONN_MSG_REP = 2,
    /** "My QP src_epoch is connected to your QP dst_epoch": you may send. */
    UCT_SEP_CONN_MSG_RTU = 3,
    /** "Your QP dst_epoch will not be connected, because of reason." */
    UCT_SEP_CONN_MSG_REJ = 4,
    /** "My QP src_epoch is not going to send any more: may we give up the
     *  connection?" The answer is DREP, or REJ with reason IN_USE. With
     *  UCT_SEP_CONN_TOKEN_URGENT, that it was used is no reason to refuse. */
    UCT_SEP_CONN_MSG_DREQ = 5,
    /** "My QP src_epoch is gone": the answer to a DREQ, or the last that is
     *  heard of an interface. */
    UCT_SEP_CONN_MSG_DREP = 6,
    UCT_SEP_CONN_MSG_LAST
} uct_sep_conn_msg_type_t;


/** Why a connection was rejected. */
typedef enum {
    UCT_SEP_CONN_REJ_NONE         = 0,
    /** Peer could not create or connect its QP, or had no memory. */
    UCT_SEP_CONN_REJ_NO_RESOURCES = 1,
    /** dst_epoch belongs to an earlier attempt; a new attempt may succeed. */
    UCT_SEP_CONN_REJ_STALE_EPOCH  = 2,
    /** The UD QP belongs to another interface: the addressed one is gone. */
    UCT_SEP_CONN_REJ_STALE_IFACE  = 3,
    /** Answer to a DREQ: somebody uses the connection, it goes on. */
    UCT_SEP_CONN_REJ_IN_USE       = 4,
    /** Answer to a REQ: too many others are connecting. It may be repeated as
     *  often as this is the answer. */
    UCT_SEP_CONN_REJ_BUSY         = 5,
    UCT_SEP_CONN_REJ_LAST
} uct_sep_conn_rej_t;


/** In a DREQ, the number of its attempt, and whether it is urgent. */
#define UCT_SEP_CONN_TOKEN_MASK    15
#define UCT_SEP_CONN_TOKEN_URGENT  (1 << 7)


/** RC QP as described to the peer. */
typedef struct uct_sep_conn_wire_qp {
    __be32  qpn;                /**< RC QP number, 24 bits */
    __be32  psn;                /**< First PSN this QP sends, 24 bits */
    uint8_t path_mtu;           /**< Largest MTU it can use, enum ibv_mtu */
    uint8_t max_rd_atomic;      /**< Reads/atomics it wants to have in flight */
    uint8_t max_dest_rd_atomic; /**< Reads/atomics it can answer at a time */
    uint8_t reserved;           /**< Zero */
    __be32  responder_qpn;      /**< RC QP that receives, 24 bits; 0 if it is
                                     the same one */
} UCS_S_PACKED uct_sep_conn_wire_qp_t;

static_assert(sizeof(uct_sep_conn_wire_qp_t) == 16, "wire qp size");


/**
 * The UD packet. One fixed size for all types keeps parsing free of length
 * arithmetic; it fits an inline send and the smallest MTU. It has no checksum:
 * the fabric's CRCs guard it (InfiniBand specification, 7.8: ICRC and VCRC),
 * and whatever is not exactly a packet of ours is refused.
 *
 * Epochs number all QPs that an interface uses for connections, starting at 1
 * and only growing, so "newer" is decided without a clock. Zero means none.
 *
 * Nonces are random numbers, one for each QP, never zero. Who can repeat that
 * of a QP has received a packet about it, at the address that he claims.
 */
typedef struct uct_sep_conn_packet {
    __be32                 magic;        /**< UCT_SEP_CONN_MAGIC */
    uint8_t                version;      /**< UCT_SEP_ADDR_VERSION */
    uint8_t                type;         /**< uct_sep_conn_msg_type_t */
    __be16                 length;       /**< sizeof(uct_sep_conn_packet_t) */
    uint8_t                reason;       /**< uct_sep_conn_rej_t, REJ only */
    uint8_t                token;        /**< DREQ: which attempt of its QP, 4
                                              bits, and whether it is urgent;
                                              REJ, IN_USE: of which DREQ */
    uint8_t                reserved0[6]; /**< Zero */
    __be64                 dst_id;       /**< Interface it is meant for */
    uct_sep_peer_addr_t    src;          /**< Interface it comes from */
    uint8_t                reserved1[7]; /**< Zero */
    __be32                 src_epoch;    /**< Sender's QP; zero in REJ */
    __be32                 dst_epoch;    /**< Receiver's QP; zero in REQ, and in
                                              a DREP if it is not known */
    __be64                 src_nonce;    /**< That of src_epoch; zero in REJ */
    __be64                 dst_nonce;    /**< That of dst_epoch. In REQ, the
                                              newest one that came from the
                                              receiver, or zero */
    uct_sep_conn_wire_qp_t qp;           /**< REQ and REP; zero otherwise */
} UCS_S_PACKED uct_sep_conn_packet_t;

static_assert(offsetof(uct_sep_conn_packet_t, dst_id) == 16, "dst_id offset");
static_assert(offsetof(uct_sep_conn_packet_t, src) == 24, "src offset");
static_assert(offsetof(uct_sep_conn_packet_t, src_epoch) == 64, "epoch offset");
static_assert(offsetof(uct_sep_conn_packet_t, src_nonce) == 72, "nonce offset");
static_assert(sizeof(uct_sep_conn_packet_t) == 104, "packet size");

#endif
