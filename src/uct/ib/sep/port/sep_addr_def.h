/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ADDR_DEF_H
#define UCT_SEP_ADDR_DEF_H

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>
#include <linux/types.h>
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file sep_addr_def.h
 *
 * The two UCT addresses of an interface, as others get to see them. Everything
 * here is big endian and has no padding, so an address can be hashed and
 * compared as a string of bytes. The sizes of hardware fields come from the
 * InfiniBand architecture (24-bit QP number and PSN, 16-bit LID and P_Key,
 * 128-bit GID).
 */

/** Version of the addresses and of the packets; peers must have the same. */
#define UCT_SEP_ADDR_VERSION       7

/** Largest QP number and PSN. */
#define UCT_SEP_ADDR_MAX_24BIT     0xffffffu

/** Largest Q_Key. Those with the top bit set are "controlled", and need
 *  privileges to send with (IBA 10.2.5). */
#define UCT_SEP_ADDR_MAX_QKEY      0x7fffffffu

/** Bits of an interface's id, and the largest one. */
#define UCT_SEP_ADDR_ID_BITS       55
#define UCT_SEP_ADDR_MAX_ID        ((1ull << UCT_SEP_ADDR_ID_BITS) - 1)

/** Largest LID of a port: those above are for multicast (IBA 4.1.3). */
#define UCT_SEP_ADDR_MAX_LID       0xbfffu


/** Paths of a connection: as many as an LMC allows (7 bits). */
#define UCT_SEP_MAX_PATHS          128


/** Flags of @ref uct_sep_device_addr_t. */
enum {
    /** The port's link layer is Ethernet (RoCE); InfiniBand otherwise. */
    UCT_SEP_DEVICE_ADDR_FLAG_ETH     = 1 << 0,
    /** The gid field is valid. Always set together with FLAG_ETH. */
    UCT_SEP_DEVICE_ADDR_FLAG_GID     = 1 << 1,
    /** RoCE v2 (routable, UDP). Only with FLAG_ETH. */
    UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V2 = 1 << 2,
    /** RoCE v2 GID is an IPv4-mapped address. Only with FLAG_ROCE_V2. */
    UCT_SEP_DEVICE_ADDR_FLAG_IPV4    = 1 << 3,
    /** LMC of the port (IBA 4.1.3): it has 2^LMC LIDs from lid on, and may send
     *  from each. Zero on Ethernet. */
    UCT_SEP_DEVICE_ADDR_LMC_SHIFT    = 4,
    UCT_SEP_DEVICE_ADDR_LMC_MASK     = 7 << UCT_SEP_DEVICE_ADDR_LMC_SHIFT,
    /** RoCE v1. With FLAG_ETH always this or FLAG_ROCE_V2: so it is no address
     *  of UCX's own (sep_addr_rdmacm.h). */
    UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V1 = 1 << 7
};


/**
 * Device address: where the port is. Enough for an address handle on both
 * InfiniBand (LID, with or without GRH) and RoCE (GID only).
 */
typedef struct uct_sep_device_addr {
    uint8_t flags;    /**< UCT_SEP_DEVICE_ADDR_FLAG_xx */
    uint8_t path;     /**< Which of the paths to the port, less than
                           UCT_SEP_MAX_PATHS; zero in the address of an
                           interface. Each is a connection of its own, for both
                           sides the same one, so this is part of its key */
    __be16  pkey;     /**< P_Key in use, with its membership bit; zero, never
                           on the wire, if a connection manager has told the
                           address, which does not know it (sep_addr_rdmacm.h)
                           */
    __be16  lid;      /**< LID; zero on Ethernet */
    uint8_t gid[16];  /**< GID in network order; zero without FLAG_GID */
} UCS_S_PACKED uct_sep_device_addr_t;

static_assert(sizeof(uct_sep_device_addr_t) == 22, "device address size");


/** Flags of @ref uct_sep_iface_addr_t. */
enum {
    /** Sending and receiving queue pairs differ: a connection has two on each
     *  side. */
    UCT_SEP_IFACE_ADDR_FLAG_SPLIT = 1 << 0
};


/**
 * Interface address: who listens there. The random id makes an interface unique
 * for ever, even if a later process reuses its UD QP number. The Q_Key of the
 * UD QP follows from it (@ref uct_sep_addr_qkey), so it is known to those who
 * were given the address: the device drops what others send (IBA 10.2.5).
 *
 * Every byte counts. A client of UCX's connection manager sends the address in
 * private data of 54 bytes (UCX's rdmacm_cm.h), in which UCX itself takes up to
 * 43: UCX 1.14 and 1.15, of a port with several paths, if the client sends its
 * id as well.
 */
typedef struct uct_sep_iface_addr {
    uint8_t version;     /**< UCT_SEP_ADDR_VERSION */
    uint8_t ud_qpn[3];   /**< UD QP number, most significant byte first */
    uint8_t flags_id[7]; /**< The same: UCT_SEP_IFACE_ADDR_FLAG_xx, one bit, and
                              in the others the id, random, never zero */
} UCS_S_PACKED uct_sep_iface_addr_t;

static_assert(sizeof(uct_sep_iface_addr_t) == 11, "iface address size");


/**
 * An interface. All of it is the key of the peers table: who claims other flags
 * than the owner of an address is another peer, and can't make the connection
 * to the owner useless.
 */
typedef struct uct_sep_peer_addr {
    uct_sep_device_addr_t dev;
    uct_sep_iface_addr_t  iface;
} UCS_S_PACKED uct_sep_peer_addr_t;

static_assert(sizeof(uct_sep_peer_addr_t) == 33, "peer address size");


/** Set in the first byte of the address of an interface on a hub, where others
 *  have their version only: neither kind takes the other for its own. What
 *  follows there is known to the hub (sep_hub_addr.h). */
#define UCT_SEP_ADDR_HUB_FLAG      0x80

#endif
