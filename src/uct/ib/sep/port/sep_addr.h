/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ADDR_H
#define UCT_SEP_ADDR_H

#include <uct/ib/sep/port/sep_addr_def.h>
#include <infiniband/verbs.h>
#include <string.h>

BEGIN_C_DECLS

/**
 * @file sep_addr.h
 *
 * Packing, checking and reading the addresses of an interface, and turning a
 * device address into the address vector of a queue pair.
 */

/** Longest text of @ref uct_sep_device_addr_str and others, with the
 *  terminating zero. */
#define UCT_SEP_ADDR_STR_MAX 128

/** P_Key: 15 bits name the partition, the top bit is full membership (IBA
 *  10.9.1). Two limited members must not talk to each other. */
#define UCT_SEP_PKEY_PARTITION_MASK  0x7fffu
#define UCT_SEP_PKEY_MEMBERSHIP_MASK 0x8000u

/** UDP source ports of RoCE v2 are 0xc000 and up (IBA annex A17). */
#define UCT_SEP_ROCE_UDP_SPORT_MASK 0x3fffu


/**
 * What a local port needs to talk to another one. Filled by the transport when
 * it opens the interface.
 */
typedef struct uct_sep_port {
    uint8_t       port_num;      /**< Port number, from 1 */
    uint8_t       is_roce;       /**< Link layer is Ethernet */
    uint8_t       is_roce_v2;    /**< GID type is RoCE v2 */
    uint8_t       force_global;  /**< Send a GRH on InfiniBand as well. Must be
                                      set if the port has
                                      IBV_QPF_GRH_REQUIRED */
    uint8_t       gid_index;     /**< Index of gid in the port's table */
    uint8_t       sl;            /**< Service level, 0..15 (0..7 on RoCE) */
    uint8_t       traffic_class; /**< GRH traffic class */
    uint8_t       hop_limit;     /**< GRH hop limit */
    uint8_t       subnet_prefix_len; /**< Bits in which GIDs of RoCE v2 must
                                          agree, 0 to 128 */
    uint8_t       num_paths;     /**< Connections to a peer that pay off */
    uint8_t       path_bits_count; /**< Entries of path_bits; 0 means one entry,
                                        of 0 */
    uint8_t       path_bits[UCT_SEP_MAX_PATHS]; /**< Low bits added to both LIDs
                                      (LMC), by path, cyclically */
    uint32_t      roce_path_factor; /**< Distance of the RoCE v2 UDP source
                                         ports of neighbouring paths */
    uint16_t      pkey;          /**< P_Key value, host order */
    uint16_t      lid;           /**< Base LID, host order; 0 on RoCE */
    uint8_t       lmc;           /**< It has 2^lmc LIDs; 0 on RoCE */
    union ibv_gid gid;           /**< Local GID at gid_index; all zero if the
                                      port has none (InfiniBand only) */
} uct_sep_port_t;


/**
 * Pack the device address of a port.
 *
 * @param [in]  port    Local port.
 * @param [out] addr_p  Filled with the address.
 */
void uct_sep_device_addr_pack(const uct_sep_port_t *port,
                              uct_sep_device_addr_t *addr_p);


/**
 * Flags of the address of an Ethernet port.
 *
 * @param [in]  is_v2  Version of RoCE.
 * @param [in]  gid    16 bytes; without FLAG_GID if zero.
 */
uint8_t uct_sep_device_addr_roce_flags(int is_v2, const uint8_t *gid);


/**
 * Check that a device address is one that @ref uct_sep_device_addr_pack can
 * produce. Looks only at the bytes.
 *
 * @param [in]  addr  Address, any alignment.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_ADDR: contradictory flags, an impossible
 *         path, no LID and no GID, a LID that is not the first one of its port
 *         or not unicast, or a GID of zero.
 */
ucs_status_t uct_sep_device_addr_check(const uct_sep_device_addr_t *addr);


/**
 * Whether packets from @a port can arrive at @a addr: same link layer, P_Key
 * partition with at least one full member, and same subnet (InfiniBand) or same
 * RoCE version and address family, and subnet if the port asks for it
 * (Ethernet).
 *
 * @param [in]  port  Local port.
 * @param [in]  addr  Remote address; checked first, an invalid one is not
 *                    reachable.
 *
 * @return Non-zero if reachable.
 */
int uct_sep_device_addr_is_reachable(const uct_sep_port_t *port,
                                     const uct_sep_device_addr_t *addr);


/**
 * Whether a datagram comes from the port that it claims to come from, as far as
 * the device tells: by its source LID on InfiniBand, and by the source address
 * of its network header where it has one, which is always so on Ethernet.
 *
 * The network header is the GRH, or in its place the header of IPv6, which has
 * the addresses where the GRH has them, or that of IPv4 in the last 20 of the
 * 40 bytes (IBA annex A17; union rdma_network_hdr of the kernel and
 * ibv_init_ah_from_wc() of libibverbs read it in the same way).
 *
 * The LID is that of any port of a subnet, also of our own: the permissive LID
 * occurs only with management packets (IBA 4.1.3), and behind a router, where
 * it would be the router's, nobody is reachable for us.
 *
 * @param [in]  addr  What the sender claims; checked.
 * @param [in]  slid  Of the completion; not looked at on Ethernet, where it is
 *                    undefined.
 * @param [in]  grh   The 40 bytes in front of the payload; NULL if the
 *                    completion says that there is no network header.
 *
 * @return Non-zero if it does.
 */
int uct_sep_device_addr_is_source(const uct_sep_device_addr_t *addr,
                                  uint16_t slid, const uint8_t *grh);


/**
 * Address vector for a remote port, for ibv_create_ah() and for the
 * IBV_QP_AV of an RC QP's transition to RTR.
 *
 * @param [in]  port       Local port.
 * @param [in]  addr       Remote address, valid, and the path to it.
 * @param [out] ah_attr_p  Filled.
 */
void uct_sep_device_addr_to_ah_attr(const uct_sep_port_t *port,
                                    const uct_sep_device_addr_t *addr,
                                    struct ibv_ah_attr *ah_attr_p);


/** Whether a GID is an IPv4 address (::ffff:a.b.c.d). */
int uct_sep_gid_is_ipv4(const uint8_t *raw);

/** Whether it is none. */
int uct_sep_gid_is_zero(const uint8_t *raw);


/**
 * Text of a device address for messages.
 *
 * @param [in]  addr  Address.
 * @param [out] buf   Filled with the text.
 * @param [in]  max   Size of @a buf, UCT_SEP_ADDR_STR_MAX is always enough.
 *
 * @return @a buf.
 */
const char *uct_sep_device_addr_str(const uct_sep_device_addr_t *addr,
                                    char *buf, size_t max);


/**
 * Pack an interface address.
 *
 * @param [in]  ud_qpn  UD QP number, 24 bits.
 * @param [in]  id      Random id, 1 to UCT_SEP_ADDR_MAX_ID.
 * @param [in]  flags   UCT_SEP_IFACE_ADDR_FLAG_xx.
 * @param [out] addr_p  Filled with the address.
 */
void uct_sep_iface_addr_pack(uint32_t ud_qpn, uint64_t id, uint8_t flags,
                             uct_sep_iface_addr_t *addr_p);


/**
 * Check an interface address.
 *
 * @param [in]  addr  Address, any alignment.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED: another protocol version;
 *         UCS_ERR_INVALID_ADDR: QP number 0 or 1 (management), or zero id.
 */
ucs_status_t uct_sep_iface_addr_check(const uct_sep_iface_addr_t *addr);


/** @return UD QP number in an interface address. */
uint32_t uct_sep_iface_addr_qpn(const uct_sep_iface_addr_t *addr);


/** @return Random id in an interface address, host order. */
uint64_t uct_sep_iface_addr_id(const uct_sep_iface_addr_t *addr);


/** @return UCT_SEP_IFACE_ADDR_FLAG_xx in an interface address. */
uint8_t uct_sep_iface_addr_flags(const uct_sep_iface_addr_t *addr);


/**
 * Q_Key of the UD QP of the interface with this id: the lower 31 bits of it.
 *
 * They are as random as a Q_Key of its own would be, and known to the same
 * processes, as both were in the address: whoever has not got it has 31 bits to
 * guess, as ever, before anything of his is heard. What is left of the id then,
 * 24 bits, is no secret to rely on.
 */
static inline uint32_t uct_sep_addr_qkey(uint64_t id)
{
    return (uint32_t)id & UCT_SEP_ADDR_MAX_QKEY;
}


/** @return Q_Key of the interface at an address, host order. */
static inline uint32_t
uct_sep_iface_addr_qkey(const uct_sep_iface_addr_t *addr)
{
    return uct_sep_addr_qkey(uct_sep_iface_addr_id(addr));
}


/** Text of a peer's address for messages; as @ref uct_sep_device_addr_str. */
const char *uct_sep_peer_addr_str(const uct_sep_peer_addr_t *addr, char *buf,
                                  size_t max);


/**
 * Whether a peer is an interface on a device, by whichever path.
 *
 * @param [in]  dev    As @ref uct_sep_device_addr_read makes it: no path.
 * @param [in]  iface  NULL: any interface on the device.
 */
int uct_sep_peer_addr_is(const uct_sep_peer_addr_t *peer,
                         const uct_sep_device_addr_t *dev,
                         const uct_sep_iface_addr_t *iface);


/** Whether somebody else than the peer has told its address. */
static inline int
uct_sep_device_addr_is_hearsay(const uct_sep_device_addr_t *addr)
{
    return addr->pkey == 0;
}


/**
 * Whether two addresses are those of one port, on the same path. All of them is
 * compared, unless one is hearsay (@ref uct_sep_device_addr_is_hearsay): that
 * may name another GID of an Ethernet port, and another LID of an InfiniBand
 * port that has several.
 */
int uct_sep_device_addr_is_same(const uct_sep_device_addr_t *addr1,
                                const uct_sep_device_addr_t *addr2);


/** For tables of peers. What is hearsay is equal to any address of the peer; a
 *  table with it has no other one of that peer. */
static inline uint32_t uct_sep_peer_addr_hash(const uct_sep_peer_addr_t *addr)
{
    /* Random already */
    return (uint32_t)uct_sep_iface_addr_id(&addr->iface);
}

static inline int uct_sep_peer_addr_equal(const uct_sep_peer_addr_t *addr1,
                                          const uct_sep_peer_addr_t *addr2)
{
    return (memcmp(&addr1->iface, &addr2->iface, sizeof(addr1->iface)) == 0) &&
           uct_sep_device_addr_is_same(&addr1->dev, &addr2->dev);
}


/** @return Whether an address is that of an interface on a hub. */
int uct_sep_addr_is_hub(const void *iface_addr);


/**
 * Whether an interface's address is of our version and of the same kind. If it
 * is not, a warning says why the peer can't be reached: because it has another
 * version of the transport, or because only one side is of category
 * mpi_threads. Each is said once in a process.
 *
 * @param [in]  name        For the message, e.g. "mlx5_0:1".
 * @param [in]  is_hub      Our kind.
 * @param [in]  iface_addr  At least one byte.
 */
int uct_sep_addr_check_kind(const char *name, int is_hub,
                            const void *iface_addr);

END_C_DECLS

#endif
