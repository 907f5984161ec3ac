/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/wire/roce.h>
#include <sim/engine/net_def.h>
#include <sim/engine/qp.h>
#include <sim/wire/roce_def.h>

#include <endian.h>
#include <string.h>


/* Bytes that are left of a packet. Whoever takes some knows that they are
 * there. */
typedef struct mlx5sim_roce_rest {
    const uint8_t *bytes;
    unsigned      length;
} mlx5sim_roce_rest_t;


/* Operations of each transport service, a bit for each: RC, UC, UD, CNP, and
 * those that are our own */
static const uint32_t mlx5sim_roce_known[] = {
    [MLX5SIM_BTH_RC >> 5]  = 0x00dfffff,
    [MLX5SIM_BTH_UC >> 5]  = 0x00000fff,
    [MLX5SIM_BTH_UD >> 5]  = (1u << MLX5SIM_BTH_SEND_ONLY) |
                             (1u << MLX5SIM_BTH_SEND_ONLY_IMM),
    [MLX5SIM_BTH_CNP >> 5] = 1u << (MLX5SIM_BTH_CNP & MLX5SIM_BTH_OPERATION),
    [MLX5SIM_BTH_OWN >> 5] = (1u << MLX5SIM_BTH_COMPARE_SWAP) |
                             (1u << MLX5SIM_BTH_FETCH_ADD),
    [MLX5SIM_BTH_SERVICE >> 5] = 0
};


static void
mlx5sim_roce_get(mlx5sim_roce_rest_t *rest, void *out_p, unsigned length)
{
    memcpy(out_p, rest->bytes, length);
    rest->bytes  += length;
    rest->length -= length;
}


static int mlx5sim_roce_is_mapped(const uint8_t *gid)
{
    mlx5sim_route_t route = {.is_udp = 1};

    memcpy(route.dgid, gid, sizeof(route.dgid));
    return mlx5sim_route_is_ipv4(&route);
}


static void
mlx5sim_roce_get_route(const mlx5sim_grh_t *grh, mlx5sim_route_t *route_p)
{
    uint32_t word = be32toh(grh->version_tclass_flow);

    route_p->tclass     = (word >> 20) & 0xff;
    route_p->flow_label = word & 0xfffff;
    route_p->hop_limit  = grh->hop_limit;
    memcpy(route_p->sgid, grh->sgid, sizeof(route_p->sgid));
    memcpy(route_p->dgid, grh->dgid, sizeof(route_p->dgid));
}


/* @param length_p  Of the packet behind the header. */
static mlx5sim_roce_verdict_t
mlx5sim_roce_get_ipv4(mlx5sim_roce_rest_t *rest, mlx5sim_route_t *route_p,
                      unsigned *length_p)
{
    mlx5sim_ipv4_t ip;

    if (rest->length < sizeof(ip)) {
        return MLX5SIM_ROCE_SHORT;
    }

    mlx5sim_roce_get(rest, &ip, sizeof(ip));
    if ((ip.version_ihl & 0xf) != (sizeof(ip) / 4)) {
        return MLX5SIM_ROCE_NOT_IP;
    } else if (be16toh(ip.fragment) & MLX5SIM_IPV4_OFFSET) {
        return MLX5SIM_ROCE_FRAGMENT;
    } else if (ip.protocol != MLX5SIM_IPPROTO_UDP) {
        return MLX5SIM_ROCE_NOT_UDP;
    } else if (be16toh(ip.total_length) < sizeof(ip)) {
        return MLX5SIM_ROCE_BAD_LENGTH;
    }

    route_p->tclass    = ip.tos;
    route_p->hop_limit = ip.ttl;
    mlx5sim_route_map_ipv4(ip.saddr, route_p->sgid);
    mlx5sim_route_map_ipv4(ip.daddr, route_p->dgid);
    *length_p = be16toh(ip.total_length) - sizeof(ip);
    return MLX5SIM_ROCE_VALID;
}


static mlx5sim_roce_verdict_t
mlx5sim_roce_get_ipv6(mlx5sim_roce_rest_t *rest, mlx5sim_route_t *route_p,
                      unsigned *length_p)
{
    mlx5sim_grh_t ip;

    if (rest->length < sizeof(ip)) {
        return MLX5SIM_ROCE_SHORT;
    }

    mlx5sim_roce_get(rest, &ip, sizeof(ip));
    /* such a route would have a header of IPv4 */
    if (mlx5sim_roce_is_mapped(ip.sgid) || mlx5sim_roce_is_mapped(ip.dgid)) {
        return MLX5SIM_ROCE_NOT_IP;
    } else if (ip.next_header == MLX5SIM_IPV6_FRAGMENT) {
        return MLX5SIM_ROCE_FRAGMENT;
    } else if (ip.next_header != MLX5SIM_IPPROTO_UDP) {
        return MLX5SIM_ROCE_NOT_UDP;
    }

    mlx5sim_roce_get_route(&ip, route_p);
    *length_p = be16toh(ip.payload_length);
    return MLX5SIM_ROCE_VALID;
}


/* LRH and GRH, and the VCRC at the end. Leaves what is between them. */
static mlx5sim_roce_verdict_t
mlx5sim_roce_get_ib(mlx5sim_roce_rest_t *rest, mlx5sim_roce_path_t *path_p)
{
    mlx5sim_lrh_t lrh;
    mlx5sim_grh_t grh;
    unsigned length;
    uint16_t vcrc;

    if (rest->length < sizeof(lrh) + MLX5SIM_VCRC_LENGTH) {
        return MLX5SIM_ROCE_SHORT;
    }

    length = rest->length - MLX5SIM_VCRC_LENGTH;
    memcpy(&vcrc, rest->bytes + length, sizeof(vcrc));
    if (le16toh(vcrc) != mlx5sim_roce_vcrc(rest->bytes, length)) {
        return MLX5SIM_ROCE_BAD_VCRC;
    }

    rest->length = length;
    mlx5sim_roce_get(rest, &lrh, sizeof(lrh));
    path_p->has_grh = (lrh.sl_lnh & MLX5SIM_LRH_LNH) == MLX5SIM_LNH_GRH;
    path_p->sl      = lrh.sl_lnh >> 4;
    path_p->slid    = be16toh(lrh.slid);
    path_p->dlid    = be16toh(lrh.dlid);
    if ((lrh.vl_lver & MLX5SIM_LRH_VERSION) ||
        (!path_p->has_grh &&
         ((lrh.sl_lnh & MLX5SIM_LRH_LNH) != MLX5SIM_LNH_BTH))) {
        return MLX5SIM_ROCE_NOT_IB;
    } else if ((be16toh(lrh.length) & ~MLX5SIM_LRH_RESERVED) * 4u != length) {
        return MLX5SIM_ROCE_BAD_LENGTH;
    } else if (!path_p->has_grh) {
        return MLX5SIM_ROCE_VALID;
    } else if (rest->length < sizeof(grh)) {
        return MLX5SIM_ROCE_SHORT;
    }

    mlx5sim_roce_get(rest, &grh, sizeof(grh));
    mlx5sim_roce_get_route(&grh, &path_p->route);
    if (((be32toh(grh.version_tclass_flow) >> 28) != 6) ||
        (grh.next_header != MLX5SIM_NEXT_HDR_IBA)) {
        return MLX5SIM_ROCE_NOT_IB;
    }

    return (be16toh(grh.payload_length) == rest->length) ?
           MLX5SIM_ROCE_VALID : MLX5SIM_ROCE_BAD_LENGTH;
}


/* Leaves what is between UDP's header, or LRH and GRH, and the end of the ICRC.
 * @param covered_p  Where that begins which the ICRC covers. */
static mlx5sim_roce_verdict_t
mlx5sim_roce_get_path(mlx5sim_roce_rest_t *rest, mlx5sim_roce_path_t *path_p,
                      const uint8_t **covered_p)
{
    mlx5sim_roce_verdict_t verdict;
    mlx5sim_udp_t udp;
    unsigned length;
    int is_ib;

    *covered_p = rest->bytes;

    memset(path_p, 0, sizeof(*path_p));
    path_p->has_grh      = 1;
    path_p->route.is_udp = 1;
    if (rest->length == 0) {
        return MLX5SIM_ROCE_SHORT;
    }

    switch (rest->bytes[0] >> 4) {
    case 4:
        verdict = mlx5sim_roce_get_ipv4(rest, &path_p->route, &length);
        break;
    case 6:
        verdict = mlx5sim_roce_get_ipv6(rest, &path_p->route, &length);
        break;
    default:
        verdict = MLX5SIM_ROCE_NOT_IP;
        break;
    }

    if (verdict != MLX5SIM_ROCE_VALID) {
        return verdict;
    }

    if ((rest->length < length) || (length < sizeof(udp))) {
        return MLX5SIM_ROCE_SHORT;
    }

    rest->length = length;
    mlx5sim_roce_get(rest, &udp, sizeof(udp));
    is_ib = (be16toh(udp.dport) == MLX5SIM_ROCE_IB_PORT) &&
            mlx5sim_route_is_ipv4(&path_p->route);
    if (!is_ib && (be16toh(udp.dport) != MLX5SIM_UDP_PORT)) {
        return MLX5SIM_ROCE_NOT_UDP;
    }

    path_p->sport = be16toh(udp.sport);
    if (be16toh(udp.length) != length) {
        return MLX5SIM_ROCE_BAD_LENGTH;
    } else if (!is_ib) {
        return MLX5SIM_ROCE_VALID;
    }

    path_p->is_ib = 1;
    memcpy(path_p->from, path_p->route.sgid + 12, sizeof(path_p->from));
    memcpy(path_p->to, path_p->route.dgid + 12, sizeof(path_p->to));
    memset(&path_p->route, 0, sizeof(path_p->route));
    *covered_p = rest->bytes;
    return mlx5sim_roce_get_ib(rest, path_p);
}


static unsigned mlx5sim_roce_extended_length(unsigned headers)
{
    static const uint8_t lengths[] = {
        sizeof(mlx5sim_deth_t),  sizeof(mlx5sim_reth_t),
        sizeof(mlx5sim_atomiceth_t), sizeof(mlx5sim_maeth_t),
        sizeof(__be32),          sizeof(__be64),
        sizeof(__be32),          sizeof(__be32)
    };
    unsigned length = 0;
    unsigned i;

    for (i = 0; i < sizeof(lengths); ++i) {
        length += (headers & (1u << i)) ? lengths[i] : 0;
    }

    return length;
}


/* The headers behind BTH, in their order */
static void mlx5sim_roce_get_extended(mlx5sim_roce_rest_t *rest,
                                      unsigned headers,
                                      mlx5sim_roce_t *packet_p)
{
    mlx5sim_atomiceth_t atomic;
    mlx5sim_maeth_t masks;
    mlx5sim_deth_t deth;
    mlx5sim_reth_t reth;
    uint32_t size;
    __be32 word;
    __be64 old;

    if (headers & MLX5SIM_HAS_DETH) {
        mlx5sim_roce_get(rest, &deth, sizeof(deth));
        packet_p->qkey = be32toh(deth.qkey);
        packet_p->sqpn = be32toh(deth.sqpn) & MLX5SIM_BTH_24_BITS;
    }
    if (headers & MLX5SIM_HAS_RETH) {
        mlx5sim_roce_get(rest, &reth, sizeof(reth));
        packet_p->raddr      = be64toh(reth.raddr);
        packet_p->rkey       = be32toh(reth.rkey);
        packet_p->dma_length = be32toh(reth.length);
    }
    if (headers & MLX5SIM_HAS_ATOMIC) {
        mlx5sim_roce_get(rest, &atomic, sizeof(atomic));
        packet_p->raddr    = be64toh(atomic.raddr);
        packet_p->rkey     = be32toh(atomic.rkey);
        packet_p->swap_add = be64toh(atomic.swap_add);
        packet_p->compare  = be64toh(atomic.compare);
    }
    if (headers & MLX5SIM_HAS_MASKS) {
        mlx5sim_roce_get(rest, &masks, sizeof(masks));
        size                   = be32toh(masks.size);
        packet_p->swap_mask    = be64toh(masks.swap_mask);
        packet_p->compare_mask = be64toh(masks.compare_mask);
        packet_p->atomic_size  = ((size == 4) || (size == 8)) ? size : 0;
    }
    if (headers & MLX5SIM_HAS_AETH) {
        mlx5sim_roce_get(rest, &word, sizeof(word));
        packet_p->syndrome = be32toh(word) >> 24;
        packet_p->msn      = be32toh(word) & MLX5SIM_BTH_24_BITS;
    }
    if (headers & MLX5SIM_HAS_ATOMIC_ACK) {
        mlx5sim_roce_get(rest, &old, sizeof(old));
        packet_p->old = be64toh(old);
    }
    if (headers & MLX5SIM_HAS_IMM) {
        mlx5sim_roce_get(rest, &packet_p->imm, sizeof(packet_p->imm));
    }
    if (headers & MLX5SIM_HAS_IETH) {
        mlx5sim_roce_get(rest, &word, sizeof(word));
        packet_p->inv_rkey = be32toh(word);
    }
}


/* BTH and what follows it. Leaves the payload, without pad. */
static mlx5sim_roce_verdict_t
mlx5sim_roce_get_transport(mlx5sim_roce_rest_t *rest, mlx5sim_roce_t *packet_p)
{
    unsigned headers, pad;
    mlx5sim_bth_t bth;
    uint32_t ack_psn;

    mlx5sim_roce_get(rest, &bth, sizeof(bth));
    if (bth.flags & MLX5SIM_BTH_VERSION) {
        return MLX5SIM_ROCE_VERSION;
    }

    if (!((mlx5sim_roce_known[bth.opcode >> 5] >>
           (bth.opcode & MLX5SIM_BTH_OPERATION)) & 1)) {
        return MLX5SIM_ROCE_OPCODE;
    }

    headers = mlx5sim_roce_extended(bth.opcode);
    if (rest->length < mlx5sim_roce_extended_length(headers)) {
        return MLX5SIM_ROCE_SHORT;
    }

    ack_psn = be32toh(bth.ack_psn);
    memset(packet_p, 0, sizeof(*packet_p));
    packet_p->opcode    = bth.opcode;
    packet_p->solicited = !!(bth.flags & MLX5SIM_BTH_SOLICITED);
    packet_p->ack_req   = !!(ack_psn & MLX5SIM_BTH_ACK_REQ);
    packet_p->pkey      = be16toh(bth.pkey);
    packet_p->dqpn      = be32toh(bth.dqpn) & MLX5SIM_BTH_24_BITS;
    packet_p->psn       = ack_psn & MLX5SIM_BTH_24_BITS;
    mlx5sim_roce_get_extended(rest, headers, packet_p);

    pad = (bth.flags >> MLX5SIM_BTH_PAD_SHIFT) & 3;
    if (rest->length < pad) {
        return MLX5SIM_ROCE_BAD_PAD;
    }

    rest->length -= pad;
    return (rest->length <= MLX5SIM_MAX_MTU) ? MLX5SIM_ROCE_VALID :
                                               MLX5SIM_ROCE_BAD_LENGTH;
}


mlx5sim_roce_verdict_t
mlx5sim_roce_decode(const void *bytes, unsigned length,
                    mlx5sim_roce_path_t *path_p, mlx5sim_roce_t *packet_p,
                    const uint8_t **payload_p, unsigned *payload_length_p)
{
    mlx5sim_roce_rest_t rest = {bytes, length};
    mlx5sim_roce_verdict_t verdict;
    const uint8_t *covered, *end;
    uint32_t icrc;

    verdict = mlx5sim_roce_get_path(&rest, path_p, &covered);
    if (verdict != MLX5SIM_ROCE_VALID) {
        return verdict;
    }

    if (rest.length < sizeof(mlx5sim_bth_t) + MLX5SIM_ICRC_LENGTH) {
        return MLX5SIM_ROCE_SHORT;
    } else if (rest.length % 4) {
        return MLX5SIM_ROCE_BAD_LENGTH;
    }

    rest.length -= MLX5SIM_ICRC_LENGTH;
    end          = rest.bytes + rest.length;
    memcpy(&icrc, end, sizeof(icrc));
    if (le32toh(icrc) != mlx5sim_roce_icrc(path_p, covered, end - covered)) {
        return MLX5SIM_ROCE_BAD_ICRC;
    }

    verdict           = mlx5sim_roce_get_transport(&rest, packet_p);
    *payload_p        = rest.bytes;
    *payload_length_p = rest.length;
    return verdict;
}
