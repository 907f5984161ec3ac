/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_addr.h>

#include <ucs/arch/bitops.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

static const uint8_t uct_sep_gid_zero[16];

int uct_sep_gid_is_zero(const uint8_t *raw)
{
    return memcmp(raw, uct_sep_gid_zero, sizeof(uct_sep_gid_zero)) == 0;
}

/* RoCE v2 GIDs are IPv6 addresses; those of IPv4 interfaces are ::ffff:a.b.c.d
 */
int uct_sep_gid_is_ipv4(const uint8_t *raw)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(raw, prefix, sizeof(prefix)) == 0;
}

/* Of a port that has several LIDs, the bits in which they differ */
static uint16_t uct_sep_device_addr_lid_mask(const uct_sep_device_addr_t *addr)
{
    return UCS_MASK((addr->flags & UCT_SEP_DEVICE_ADDR_LMC_MASK) >>
                    UCT_SEP_DEVICE_ADDR_LMC_SHIFT);
}

static int uct_sep_gid_is_same_subnet(const uint8_t *raw1, const uint8_t *raw2)
{
    return memcmp(raw1, raw2, sizeof(uint64_t)) == 0;
}

uint8_t uct_sep_device_addr_roce_flags(int is_v2, const uint8_t *gid)
{
    uint8_t flags = UCT_SEP_DEVICE_ADDR_FLAG_ETH;

    if (!uct_sep_gid_is_zero(gid)) {
        flags |= UCT_SEP_DEVICE_ADDR_FLAG_GID;
    }

    if (!is_v2) {
        return flags | UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V1;
    }

    return flags | UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V2 |
           (uct_sep_gid_is_ipv4(gid) ? UCT_SEP_DEVICE_ADDR_FLAG_IPV4 : 0);
}

void uct_sep_device_addr_pack(const uct_sep_port_t *port,
                              uct_sep_device_addr_t *addr_p)
{
    memset(addr_p, 0, sizeof(*addr_p));

    addr_p->pkey = htobe16(port->pkey);
    if (!uct_sep_gid_is_zero(port->gid.raw)) {
        addr_p->flags |= UCT_SEP_DEVICE_ADDR_FLAG_GID;
        memcpy(addr_p->gid, port->gid.raw, sizeof(addr_p->gid));
    }

    if (!port->is_roce) {
        addr_p->lid    = htobe16(port->lid);
        addr_p->flags |= port->lmc << UCT_SEP_DEVICE_ADDR_LMC_SHIFT;
        return;
    }

    addr_p->flags |= uct_sep_device_addr_roce_flags(port->is_roce_v2,
                                                    port->gid.raw);
}

ucs_status_t uct_sep_device_addr_check(const uct_sep_device_addr_t *addr)
{
    int has_gid = !!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_GID);
    int is_eth  = !!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ETH);
    int is_v1   = !!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V1);
    int is_v2   = !!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V2);
    int is_ipv4 = !!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_IPV4);

    if ((addr->path >= UCT_SEP_MAX_PATHS) ||
        (has_gid == uct_sep_gid_is_zero(addr->gid))) {
        return UCS_ERR_INVALID_ADDR;
    }

    if (is_eth) {
        if (!has_gid || (addr->lid != 0) || (is_v1 == is_v2) ||
            (addr->flags & UCT_SEP_DEVICE_ADDR_LMC_MASK) ||
            (is_ipv4 != (is_v2 && uct_sep_gid_is_ipv4(addr->gid)))) {
            return UCS_ERR_INVALID_ADDR;
        }
    } else if (is_v1 || is_v2 || is_ipv4 || (!has_gid && (addr->lid == 0)) ||
               (be16toh(addr->lid) & uct_sep_device_addr_lid_mask(addr)) ||
               (be16toh(addr->lid) > UCT_SEP_ADDR_MAX_LID)) {
        return UCS_ERR_INVALID_ADDR;
    }

    return UCS_OK;
}

int uct_sep_device_addr_is_same(const uct_sep_device_addr_t *addr1,
                                const uct_sep_device_addr_t *addr2)
{
    uint16_t lid_mask;

    if (!uct_sep_device_addr_is_hearsay(addr1) &&
        !uct_sep_device_addr_is_hearsay(addr2)) {
        return memcmp(addr1, addr2, sizeof(*addr1)) == 0;
    }

    lid_mask = uct_sep_device_addr_lid_mask(addr1) |
               uct_sep_device_addr_lid_mask(addr2);
    return (addr1->path == addr2->path) &&
           !((addr1->flags ^ addr2->flags) & UCT_SEP_DEVICE_ADDR_FLAG_ETH) &&
           !(be16toh(addr1->lid ^ addr2->lid) & ~lid_mask);
}

int uct_sep_device_addr_is_reachable(const uct_sep_port_t *port,
                                     const uct_sep_device_addr_t *addr)
{
    uint16_t pkey = be16toh(addr->pkey);
    uct_sep_device_addr_t local;

    if (uct_sep_device_addr_check(addr) != UCS_OK) {
        return 0;
    }

    if (!uct_sep_device_addr_is_hearsay(addr) &&
        (((pkey ^ port->pkey) & UCT_SEP_PKEY_PARTITION_MASK) ||
         !((pkey | port->pkey) & UCT_SEP_PKEY_MEMBERSHIP_MASK))) {
        return 0;
    }

    uct_sep_device_addr_pack(port, &local);
    if (port->is_roce) {
        /* Same link layer, RoCE version and address family. Only the network
         * knows whether there is a route between two IP subnets, unless the
         * user says that there is none. */
        return (local.flags == addr->flags) &&
               ucs_bitwise_is_equal(local.gid, addr->gid,
                                    port->subnet_prefix_len);
    }

    if (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ETH) {
        return 0;
    }

    if ((local.flags & addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_GID) &&
        !uct_sep_gid_is_same_subnet(local.gid, addr->gid)) {
        return 0;
    }

    if (port->force_global && !(local.flags & addr->flags &
                                UCT_SEP_DEVICE_ADDR_FLAG_GID)) {
        return 0;
    }

    /* Within a subnet packets are routed by LID, with or without GRH */
    return addr->lid != 0;
}

int uct_sep_device_addr_is_source(const uct_sep_device_addr_t *addr,
                                  uint16_t slid, const uint8_t *grh)
{
    /* Offsets in the 40 bytes */
    enum {
        SOURCE_GID = 8,
        IPV4       = 20,
        IPV4_SADDR = IPV4 + 12
    };

    if (!(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ETH)) {
        if ((slid & ~uct_sep_device_addr_lid_mask(addr)) !=
            be16toh(addr->lid)) {
            return 0;
        }

        return (grh == NULL) || !(addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_GID) ||
               (memcmp(grh + SOURCE_GID, addr->gid, sizeof(addr->gid)) == 0);
    }

    if (grh == NULL) {
        return 0;
    }

    if (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_IPV4) {
        /* Version 4, without options */
        return (grh[IPV4] == 0x45) &&
               (memcmp(grh + IPV4_SADDR, addr->gid + 12, 4) == 0);
    }

    return memcmp(grh + SOURCE_GID, addr->gid, sizeof(addr->gid)) == 0;
}

/*
 * Flow label for the UDP source port of a path. The kernel and libmlx5 derive
 * the port from the label: the lower 14 bits, xor the upper 6
 * (ibv_flow_label_to_udp_sport() of libibverbs). With zero they choose one by
 * the QP numbers, which is better if there is only one path. What is added here
 * keeps every path's label from being zero, and undoes its own effect on the
 * lower bits.
 */
static uint32_t
uct_sep_port_flow_label(const uct_sep_port_t *port, unsigned path)
{
    const uint32_t upper = 1;

    if ((port->num_paths <= 1) && (path == 0)) {
        return 0;
    }

    return (upper << 14) | (((port->roce_path_factor * path) ^ upper) &
                            UCT_SEP_ROCE_UDP_SPORT_MASK);
}

void uct_sep_device_addr_to_ah_attr(const uct_sep_port_t *port,
                                    const uct_sep_device_addr_t *addr,
                                    struct ibv_ah_attr *ah_attr_p)
{
    unsigned path_bits;

    memset(ah_attr_p, 0, sizeof(*ah_attr_p));

    ah_attr_p->port_num    = port->port_num;
    ah_attr_p->sl          = port->sl;
    ah_attr_p->static_rate = 0; /* As fast as the port */

    if (!port->is_roce) {
        path_bits = (port->path_bits_count == 0) ? 0 :
                    port->path_bits[addr->path % port->path_bits_count];
        ah_attr_p->dlid          = be16toh(addr->lid) | path_bits;
        ah_attr_p->src_path_bits = path_bits;
    }

    if (port->is_roce || port->force_global) {
        ah_attr_p->is_global         = 1;
        ah_attr_p->grh.sgid_index    = port->gid_index;
        ah_attr_p->grh.hop_limit     = port->hop_limit;
        ah_attr_p->grh.traffic_class = port->traffic_class;
        ah_attr_p->grh.flow_label    = port->is_roce ?
                                       uct_sep_port_flow_label(port,
                                                               addr->path) : 0;
        memcpy(ah_attr_p->grh.dgid.raw, addr->gid, sizeof(addr->gid));
    }
}

const char *uct_sep_device_addr_str(const uct_sep_device_addr_t *addr,
                                    char *buf, size_t max)
{
    char gid[INET6_ADDRSTRLEN] = "";
    char path[16]              = "";

    if (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_GID) {
        inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid));
    }

    if (addr->path != 0) {
        snprintf(path, sizeof(path), " path %u", addr->path);
    }

    if (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ETH) {
        snprintf(buf, max, "%s gid %s pkey 0x%x%s",
                 (addr->flags & UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V2) ? "roce_v2" :
                                                                    "roce_v1",
                 gid, be16toh(addr->pkey), path);
    } else {
        snprintf(buf, max, "ib lid %u%s%s pkey 0x%x%s", be16toh(addr->lid),
                 gid[0] ? " gid " : "", gid, be16toh(addr->pkey), path);
    }

    return buf;
}

void uct_sep_iface_addr_pack(uint32_t ud_qpn, uint64_t id, uint8_t flags,
                             uct_sep_iface_addr_t *addr_p)
{
    uint64_t flags_id = htobe64(((uint64_t)flags << UCT_SEP_ADDR_ID_BITS) | id);

    ucs_assert(id <= UCT_SEP_ADDR_MAX_ID);
    addr_p->version   = UCT_SEP_ADDR_VERSION;
    addr_p->ud_qpn[0] = (ud_qpn >> 16) & 0xff;
    addr_p->ud_qpn[1] = (ud_qpn >> 8) & 0xff;
    addr_p->ud_qpn[2] = ud_qpn & 0xff;
    memcpy(addr_p->flags_id, (uint8_t*)&flags_id + 1, sizeof(addr_p->flags_id));
}

ucs_status_t uct_sep_iface_addr_check(const uct_sep_iface_addr_t *addr)
{
    if (addr->version != UCT_SEP_ADDR_VERSION) {
        return UCS_ERR_UNSUPPORTED;
    }

    /* QPs 0 and 1 are the management QPs of a port, all ones is multicast */
    if ((uct_sep_iface_addr_qpn(addr) < 2) ||
        (uct_sep_iface_addr_qpn(addr) == UCT_SEP_ADDR_MAX_24BIT) ||
        (uct_sep_iface_addr_id(addr) == 0)) {
        return UCS_ERR_INVALID_ADDR;
    }

    return UCS_OK;
}

uint32_t uct_sep_iface_addr_qpn(const uct_sep_iface_addr_t *addr)
{
    return ((uint32_t)addr->ud_qpn[0] << 16) |
           ((uint32_t)addr->ud_qpn[1] << 8) | addr->ud_qpn[2];
}

static uint64_t uct_sep_iface_addr_flags_id(const uct_sep_iface_addr_t *addr)
{
    uint64_t flags_id = 0;

    memcpy((uint8_t*)&flags_id + 1, addr->flags_id, sizeof(addr->flags_id));
    return be64toh(flags_id);
}

uint64_t uct_sep_iface_addr_id(const uct_sep_iface_addr_t *addr)
{
    return uct_sep_iface_addr_flags_id(addr) & UCT_SEP_ADDR_MAX_ID;
}

uint8_t uct_sep_iface_addr_flags(const uct_sep_iface_addr_t *addr)
{
    return uct_sep_iface_addr_flags_id(addr) >> UCT_SEP_ADDR_ID_BITS;
}

const char *uct_sep_peer_addr_str(const uct_sep_peer_addr_t *addr, char *buf,
                                  size_t max)
{
    char dev[UCT_SEP_ADDR_STR_MAX];

    snprintf(buf, max, "%s ud_qp 0x%x id %016llx",
             uct_sep_device_addr_str(&addr->dev, dev, sizeof(dev)),
             uct_sep_iface_addr_qpn(&addr->iface),
             (unsigned long long)uct_sep_iface_addr_id(&addr->iface));
    return buf;
}

int uct_sep_addr_is_hub(const void *iface_addr)
{
    return *(const uint8_t*)iface_addr ==
           (UCT_SEP_ADDR_HUB_FLAG | UCT_SEP_ADDR_VERSION);
}

int uct_sep_peer_addr_is(const uct_sep_peer_addr_t *peer,
                         const uct_sep_device_addr_t *dev,
                         const uct_sep_iface_addr_t *iface)
{
    uct_sep_device_addr_t peer_dev = peer->dev;

    peer_dev.path = dev->path;
    return uct_sep_device_addr_is_same(&peer_dev, dev) &&
           ((iface == NULL) ||
            (memcmp(&peer->iface, iface, sizeof(*iface)) == 0));
}

static void uct_sep_addr_warn_mixed(const char *name, int is_ours)
{
    static int is_told = 0;

    if (!__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED)) {
        ucs_warn("%s: %s has UCX_SEP_CATEGORY=mpi_threads and %s does not, so "
                 "they can't reach each other: set it in all processes or in "
                 "none (said once)", name,
                 is_ours ? "this process" : "a peer",
                 is_ours ? "a peer" : "this process");
    }
}

static void uct_sep_addr_warn_version(const char *name, unsigned version)
{
    static int is_told = 0;

    if (!__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED)) {
        ucs_warn("%s: a peer has version %u of the connection protocol, this "
                 "is version %u: all processes of a job must use the same "
                 "version of the transport (said once)", name, version,
                 UCT_SEP_ADDR_VERSION);
    }
}

int uct_sep_addr_check_kind(const char *name, int is_hub,
                            const void *iface_addr)
{
    unsigned version = *(const uint8_t*)iface_addr & ~UCT_SEP_ADDR_HUB_FLAG;

    if (version != UCT_SEP_ADDR_VERSION) {
        uct_sep_addr_warn_version(name, version);
        return 0;
    }

    if (uct_sep_addr_is_hub(iface_addr) != is_hub) {
        uct_sep_addr_warn_mixed(name, is_hub);
        return 0;
    }

    return 1;
}
