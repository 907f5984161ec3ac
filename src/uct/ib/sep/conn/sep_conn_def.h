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

/**
 * Q_Key of the UD queue pairs. The top bit is clear: keys with it set are
 * "controlled" and need privileges to send with (IBA 10.2.5).
 */
#define UCT_SEP_CONN_QKEY          0x5e9c0de1u

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
    UCT_SEP_CONN_REJ_LAST
} uct_sep_conn_rej_t;


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
 * arithmetic; it fits an inline send and the smallest MTU.
 *
 * Epochs number all QPs that an interface uses for connections, starting at 1
 * and only growing, so "newer" is decided without a clock. Zero means none.
 */
typedef struct uct_sep_conn_packet {
    __be32                 magic;        /**< UCT_SEP_CONN_MAGIC */
    uint8_t                version;      /**< UCT_SEP_ADDR_VERSION */
    uint8_t                type;         /**< uct_sep_conn_msg_type_t */
    __be16                 length;       /**< sizeof(uct_sep_conn_packet_t) */
    __be32                 crc;          /**< CRC32 of all with this zero */
    uint8_t                reason;       /**< uct_sep_conn_rej_t, REJ only */
    uint8_t                reserved0[3]; /**< Zero */
    __be64                 dst_id;       /**< Interface it is meant for */
    uct_sep_peer_addr_t    src;          /**< Interface it comes from */
    uint8_t                reserved1;    /**< Zero */
    __be32                 src_epoch;    /**< Sender's QP; zero in REJ */
    __be32                 dst_epoch;    /**< Receiver's QP; zero in REQ */
    uct_sep_conn_wire_qp_t qp;           /**< REQ and REP; zero otherwise */
} UCS_S_PACKED uct_sep_conn_packet_t;

static_assert(offsetof(uct_sep_conn_packet_t, dst_id) == 16, "dst_id offset");
static_assert(offsetof(uct_sep_conn_packet_t, src) == 24, "src offset");
static_assert(offsetof(uct_sep_conn_packet_t, src_epoch) == 60, "epoch offset");
static_assert(sizeof(uct_sep_conn_packet_t) == 84, "packet size");

#endif
