/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/wire/roce.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/opcode.h>
#include <sim/engine/qp.h>
#include <sim/engine/crc.h>
#include <sim/wire/roce_def.h>

#include <endian.h>
#include <stddef.h>
#include <string.h>

#define MLX5SIM_ETHERTYPE_IPV4  0x0800
#define MLX5SIM_ETHERTYPE_IPV6  0x86dd
#define MLX5SIM_ETHERTYPE_ROCE  0x8915  /* v1 */

/* Of IPv4 around InfiniBand: IPDEFTTL of the kernel */
#define MLX5SIM_ROCE_IB_TTL     64

#define MLX5SIM_PKEY_DEFAULT    0xffff


/* IBTA volume 1, table "OpCode field": which each operation has */
static const uint8_t mlx5sim_roce_headers[MLX5SIM_BTH_OPERATION + 1] = {
    [MLX5SIM_BTH_SEND_LAST_IMM]  = MLX5SIM_HAS_IMM,
    [MLX5SIM_BTH_SEND_ONLY_IMM]  = MLX5SIM_HAS_IMM,
    [MLX5SIM_BTH_WRITE_FIRST]    = MLX5SIM_HAS_RETH,
    [MLX5SIM_BTH_WRITE_LAST_IMM] = MLX5SIM_HAS_IMM,
    [MLX5SIM_BTH_WRITE_ONLY]     = MLX5SIM_HAS_RETH,
    [MLX5SIM_BTH_WRITE_ONLY_IMM] = MLX5SIM_HAS_RETH | MLX5SIM_HAS_IMM,
    [MLX5SIM_BTH_READ_REQUEST]   = MLX5SIM_HAS_RETH,
    [MLX5SIM_BTH_READ_FIRST]     = MLX5SIM_HAS_AETH,
    [MLX5SIM_BTH_READ_LAST]      = MLX5SIM_HAS_AETH,
    [MLX5SIM_BTH_READ_ONLY]      = MLX5SIM_HAS_AETH,
    [MLX5SIM_BTH_ACK]            = MLX5SIM_HAS_AETH,
    [MLX5SIM_BTH_ATOMIC_ACK]     = MLX5SIM_HAS_AETH | MLX5SIM_HAS_ATOMIC_ACK,
    [MLX5SIM_BTH_COMPARE_SWAP]   = MLX5SIM_HAS_ATOMIC,
    [MLX5SIM_BTH_FETCH_ADD]      = MLX5SIM_HAS_ATOMIC,
    [MLX5SIM_BTH_SEND_LAST_INV]  = MLX5SIM_HAS_IETH,
    [MLX5SIM_BTH_SEND_ONLY_INV]  = MLX5SIM_HAS_IETH
};

/* CRCs of four bits, least significant bit first: of the polynomial 0x100b with
 * its bits in that order */
static const uint16_t mlx5sim_vcrc_table[16] = {
    0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
    0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f
};


/* Copy a network header with ones in place of what routers change.
 * @return its length */
static unsigned mlx5sim_roce_mask_route(const mlx5sim_roce_path_t *path,
                                        const uint8_t *net, uint8_t *out_p)
{
    if (mlx5sim_route_is_ipv4(&path->route)) {
        memcpy(out_p, net, MLX5SIM_IPV4_LENGTH);
        out_p[1] = 0xff;            /* TOS */
        out_p[8] = 0xff;            /* TTL */
        memset(out_p + 10, 0xff, 2); /* checksum */
        return MLX5SIM_IPV4_LENGTH;
    }

    memcpy(out_p, net, MLX5SIM_NET_MAX);
    out_p[0] |= 0x0f;               /* traffic class, flow label */
    memset(out_p + 1, 0xff, 3);
    out_p[7] = 0xff;                /* hop limit */
    return MLX5SIM_NET_MAX;
}


uint32_t mlx5sim_roce_icrc(const mlx5sim_roce_path_t *path,
                           const uint8_t *packet, unsigned length)
{
    uint8_t head[sizeof(mlx5sim_lrh_t) + MLX5SIM_NET_MAX +
                 sizeof(mlx5sim_udp_t) + sizeof(mlx5sim_bth_t)];
    const uint8_t *in = packet;
    uint8_t *out      = head;
    unsigned net_length;
    uint32_t crc;

    /* Routers replace LRH, and Ethernet has ones in its place */
    memset(out, 0xff, sizeof(mlx5sim_lrh_t));
    if (path->is_ib) {
        if (!path->has_grh) {
            memcpy(out, in, sizeof(mlx5sim_lrh_t));
            out[0] |= 0xf0;         /* VL */
        }
        in += sizeof(mlx5sim_lrh_t);
    }
    out += sizeof(mlx5sim_lrh_t);

    if (path->has_grh) {
        net_length = mlx5sim_roce_mask_route(path, in, out);
        in        += net_length;
        out       += net_length;
    }

    if (path->route.is_udp) {
        memcpy(out, in, sizeof(mlx5sim_udp_t));
        memset(out + offsetof(mlx5sim_udp_t, checksum), 0xff, 2);
        in  += sizeof(mlx5sim_udp_t);
        out += sizeof(mlx5sim_udp_t);
    }

    memcpy(out, in, sizeof(mlx5sim_bth_t));
    out[offsetof(mlx5sim_bth_t, dqpn)] = 0xff; /* FECN, BECN, reserved */
    in                                += sizeof(mlx5sim_bth_t);
    out                               += sizeof(mlx5sim_bth_t);

    crc = mlx5sim_crc_add(0xffffffff, head, out - head);
    return ~mlx5sim_crc_add(crc, in, packet + length - in);
}


uint16_t mlx5sim_roce_vcrc(const uint8_t *packet, unsigned length)
{
    uint16_t crc = 0xffff;
    unsigned i;

    for (i = 0; i < length; ++i) {
        crc ^= packet[i];
        crc  = (crc >> 4) ^ mlx5sim_vcrc_table[crc & 15];
        crc  = (crc >> 4) ^ mlx5sim_vcrc_table[crc & 15];
    }

    return ~crc;
}


unsigned mlx5sim_roce_extended(uint8_t opcode)
{
    unsigned headers = mlx5sim_roce_headers[opcode & MLX5SIM_BTH_OPERATION];

    switch (opcode & MLX5SIM_BTH_SERVICE) {
    case MLX5SIM_BTH_UD:
        return headers | MLX5SIM_HAS_DETH;
    case MLX5SIM_BTH_OWN:
        return headers | MLX5SIM_HAS_MASKS;
    default:
        return headers;
    }
}


/* Append @a length bytes. @return the end */
static uint8_t *
mlx5sim_roce_put(uint8_t *out, const void *bytes, unsigned length)
{
    memcpy(out, bytes, length);
    return out + length;
}


/* The headers behind BTH, in their order (IBTA volume 1, "Extended transport
 * headers"). @return the end */
static uint8_t *mlx5sim_roce_put_extended(const mlx5sim_roce_t *packet,
                                          uint8_t *out)
{
    unsigned headers = mlx5sim_roce_extended(packet->opcode);
    mlx5sim_atomiceth_t atomic;
    mlx5sim_maeth_t masks;
    mlx5sim_deth_t deth;
    mlx5sim_reth_t reth;
    __be32 word;
    __be64 old;

    if (headers & MLX5SIM_HAS_DETH) {
        deth.qkey = htobe32(packet->qkey);
        deth.sqpn = htobe32(packet->sqpn);
        out       = mlx5sim_roce_put(out, &deth, sizeof(deth));
    }
    if (headers & MLX5SIM_HAS_RETH) {
        reth.raddr  = htobe64(packet->raddr);
        reth.rkey   = htobe32(packet->rkey);
        reth.length = htobe32(packet->dma_length);
        out         = mlx5sim_roce_put(out, &reth, sizeof(reth));
    }
    if (headers & MLX5SIM_HAS_ATOMIC) {
        atomic.raddr    = htobe64(packet->raddr);
        atomic.rkey     = htobe32(packet->rkey);
        atomic.swap_add = htobe64(packet->swap_add);
        atomic.compare  = htobe64(packet->compare);
        out             = mlx5sim_roce_put(out, &atomic, sizeof(atomic));
    }
    if (headers & MLX5SIM_HAS_MASKS) {
        masks.swap_mask    = htobe64(packet->swap_mask);
        masks.compare_mask = htobe64(packet->compare_mask);
        masks.size         = htobe32(packet->atomic_size);
        out                = mlx5sim_roce_put(out, &masks, sizeof(masks));
    }
    if (headers & MLX5SIM_HAS_AETH) {
        word = htobe32(((uint32_t)packet->syndrome << 24) |
                       (packet->msn & 0xffffff));
        out  = mlx5sim_roce_put(out, &word, sizeof(word));
    }
    if (headers & MLX5SIM_HAS_ATOMIC_ACK) {
        old = htobe64(packet->old);
        out = mlx5sim_roce_put(out, &old, sizeof(old));
    }
    if (headers & MLX5SIM_HAS_IMM) {
        out = mlx5sim_roce_put(out, &packet->imm, sizeof(packet->imm));
    }
    if (headers & MLX5SIM_HAS_IETH) {
        word = htobe32(packet->inv_rkey);
        out  = mlx5sim_roce_put(out, &word, sizeof(word));
    }

    return out;
}


/* BTH, what follows it, payload and pad. @return bytes, without ICRC */
static unsigned
mlx5sim_roce_put_transport(const mlx5sim_roce_t *packet, const void *payload,
                           unsigned length, uint8_t *out_p)
{
    unsigned pad   = -length & 3;
    uint8_t *out   = out_p + sizeof(mlx5sim_bth_t);
    uint32_t flags = packet->ack_req ? MLX5SIM_BTH_ACK_REQ : 0;
    mlx5sim_bth_t bth;

    bth.opcode  = packet->opcode;
    bth.flags   = (packet->solicited ? MLX5SIM_BTH_SOLICITED : 0) |
                  MLX5SIM_BTH_MIGRATED | (pad << MLX5SIM_BTH_PAD_SHIFT);
    bth.pkey    = htobe16(packet->pkey);
    bth.dqpn    = htobe32(packet->dqpn);
    bth.ack_psn = htobe32(flags | packet->psn);
    memcpy(out_p, &bth, sizeof(bth));

    out = mlx5sim_roce_put_extended(packet, out);
    if (length > 0) {
        out = mlx5sim_roce_put(out, payload, length);
    }
    memset(out, 0, pad);
    return out + pad - out_p;
}


static unsigned mlx5sim_roce_put_eth(const mlx5sim_roce_path_t *path,
                                     uint8_t *out_p)
{
    mlx5sim_eth_t eth;

    memcpy(eth.dmac, path->dmac, sizeof(eth.dmac));
    memcpy(eth.smac, path->smac, sizeof(eth.smac));
    eth.type = htobe16(!path->route.is_udp ? MLX5SIM_ETHERTYPE_ROCE :
                       mlx5sim_route_is_ipv4(&path->route) ?
                       MLX5SIM_ETHERTYPE_IPV4 : MLX5SIM_ETHERTYPE_IPV6);
    memcpy(out_p, &eth, sizeof(eth));
    return sizeof(eth);
}


/* @param length  Bytes behind LRH, with ICRC. */
static unsigned mlx5sim_roce_put_lrh(const mlx5sim_roce_path_t *path,
                                     unsigned length, uint8_t *out_p)
{
    mlx5sim_lrh_t lrh;

    lrh.vl_lver = 0;
    lrh.sl_lnh  = (path->sl << 4) |
                  (path->has_grh ? MLX5SIM_LNH_GRH : MLX5SIM_LNH_BTH);
    lrh.dlid    = htobe16(path->dlid);
    lrh.length  = htobe16((sizeof(lrh) + length) / 4);
    lrh.slid    = htobe16(path->slid);
    memcpy(out_p, &lrh, sizeof(lrh));
    return sizeof(lrh);
}


/* @param length  Bytes behind UDP's header. */
static unsigned mlx5sim_roce_put_udp(const mlx5sim_roce_path_t *path,
                                     unsigned length, uint8_t *out_p)
{
    mlx5sim_udp_t udp;

    udp.sport    = htobe16(path->sport);
    udp.dport    = htobe16(path->is_ib ? MLX5SIM_ROCE_IB_PORT :
                                         MLX5SIM_UDP_PORT);
    udp.length   = htobe16(sizeof(udp) + length);
    udp.checksum = 0;
    memcpy(out_p, &udp, sizeof(udp));
    return sizeof(udp);
}


/* A packet without the Ethernet header or the VCRC. @return its length */
static unsigned mlx5sim_roce_put_packet(const mlx5sim_roce_path_t *path,
                                        const mlx5sim_roce_t *packet,
                                        const void *payload, unsigned length,
                                        uint8_t *out_p)
{
    unsigned udp_length = path->route.is_udp ? sizeof(mlx5sim_udp_t) : 0;
    uint8_t transport[MLX5SIM_ROCE_MAX];
    unsigned behind, end;
    uint32_t icrc;

    end    = mlx5sim_roce_put_transport(packet, payload, length, transport);
    behind = end + MLX5SIM_ICRC_LENGTH;
    end    = 0;
    if (path->is_ib) {
        end += mlx5sim_roce_put_lrh(path, (path->has_grh ? MLX5SIM_NET_MAX :
                                                           0) + behind, out_p);
    }
    if (path->has_grh) {
        end += mlx5sim_route_header(&path->route, udp_length + behind,
                                    out_p + end);
    }
    if (path->route.is_udp) {
        end += mlx5sim_roce_put_udp(path, behind, out_p + end);
    }

    memcpy(out_p + end, transport, behind - MLX5SIM_ICRC_LENGTH);
    end += behind - MLX5SIM_ICRC_LENGTH;
    icrc = htole32(mlx5sim_roce_icrc(path, out_p, end));
    memcpy(out_p + end, &icrc, sizeof(icrc));
    return end + sizeof(icrc);
}


unsigned mlx5sim_roce_encode(const mlx5sim_roce_path_t *path,
                             const mlx5sim_roce_t *packet, const void *payload,
                             unsigned length, uint8_t *out_p)
{
    unsigned end = path->is_ib ? 0 : mlx5sim_roce_put_eth(path, out_p);
    uint16_t vcrc;

    end += mlx5sim_roce_put_packet(path, packet, payload, length, out_p + end);
    if (path->is_ib) {
        vcrc = htole16(mlx5sim_roce_vcrc(out_p, end));
        memcpy(out_p + end, &vcrc, sizeof(vcrc));
        end += sizeof(vcrc);
    }

    return end;
}


unsigned mlx5sim_roce_encode_net(const mlx5sim_roce_path_t *path,
                                 const mlx5sim_roce_t *packet,
                                 const void *payload, unsigned length,
                                 uint8_t *out_p)
{
    uint8_t *udp          = out_p + MLX5SIM_IPV4_LENGTH;
    mlx5sim_route_t route = {.hop_limit = MLX5SIM_ROCE_IB_TTL, .is_udp = 1};
    unsigned end;

    if (!path->is_ib) {
        return mlx5sim_roce_put_packet(path, packet, payload, length, out_p);
    }

    mlx5sim_route_map_ipv4(path->from, route.sgid);
    mlx5sim_route_map_ipv4(path->to, route.dgid);
    end  = mlx5sim_roce_encode(path, packet, payload, length,
                               udp + MLX5SIM_UDP_LENGTH);
    end += mlx5sim_roce_put_udp(path, end, udp);
    return end + mlx5sim_route_header(&route, end, out_p);
}


/* Opcode of a packet of a send or a write */
static uint8_t mlx5sim_roce_message_opcode(unsigned opcode, int is_first,
                                           int is_last)
{
    int is_write = (opcode == MLX5SIM_OPCODE_RDMA_WRITE) ||
                   (opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM);
    uint8_t base = is_write ? MLX5SIM_BTH_WRITE_FIRST : MLX5SIM_BTH_SEND_FIRST;

    if (!is_last) {
        return base + (is_first ? MLX5SIM_BTH_SEND_FIRST :
                                  MLX5SIM_BTH_SEND_MIDDLE);
    }

    switch (opcode) {
    case MLX5SIM_OPCODE_SEND_INVAL:
        return is_first ? MLX5SIM_BTH_SEND_ONLY_INV : MLX5SIM_BTH_SEND_LAST_INV;
    case MLX5SIM_OPCODE_SEND_IMM:
    case MLX5SIM_OPCODE_RDMA_WRITE_IMM:
        return base + (is_first ? MLX5SIM_BTH_SEND_ONLY_IMM :
                                  MLX5SIM_BTH_SEND_LAST_IMM);
    default:
        return base + (is_first ? MLX5SIM_BTH_SEND_ONLY :
                                  MLX5SIM_BTH_SEND_LAST);
    }
}


static uint8_t mlx5sim_roce_opcode(const mlx5sim_qp_t *qp,
                                   const mlx5sim_wqe_t *wqe, int is_first,
                                   int is_last)
{
    static const uint8_t services[] = {
        [MLX5SIM_QPT_RC] = MLX5SIM_BTH_RC,
        [MLX5SIM_QPT_UC] = MLX5SIM_BTH_UC,
        [MLX5SIM_QPT_UD] = MLX5SIM_BTH_UD
    };

    switch (wqe->opcode) {
    case MLX5SIM_OPCODE_RDMA_READ:
        return MLX5SIM_BTH_READ_REQUEST;
    case MLX5SIM_OPCODE_ATOMIC_CS:
        return MLX5SIM_BTH_COMPARE_SWAP;
    case MLX5SIM_OPCODE_ATOMIC_FA:
        return MLX5SIM_BTH_FETCH_ADD;
    case MLX5SIM_OPCODE_ATOMIC_MASKED_CS:
        return MLX5SIM_BTH_OWN | MLX5SIM_BTH_COMPARE_SWAP;
    case MLX5SIM_OPCODE_ATOMIC_MASKED_FA:
        return MLX5SIM_BTH_OWN | MLX5SIM_BTH_FETCH_ADD;
    default:
        return services[qp->type] |
               mlx5sim_roce_message_opcode(wqe->opcode, is_first, is_last);
    }
}


static uint16_t mlx5sim_roce_pkey(const mlx5sim_qp_t *qp)
{
    return (qp->pkey != 0) ? qp->pkey : MLX5SIM_PKEY_DEFAULT;
}


void mlx5sim_roce_request(const mlx5sim_qp_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn, uint32_t offset, int is_first,
                          int is_last, mlx5sim_roce_t *packet_p)
{
    int is_ud      = qp->type == MLX5SIM_QPT_UD;
    unsigned flags = mlx5sim_opcode_flags(wqe->opcode);

    memset(packet_p, 0, sizeof(*packet_p));
    packet_p->opcode       = mlx5sim_roce_opcode(qp, wqe, is_first, is_last);
    packet_p->solicited    = is_last && wqe->solicited &&
                             (flags & MLX5SIM_OP_RECV);
    packet_p->ack_req      = is_last && (qp->type == MLX5SIM_QPT_RC);
    packet_p->pkey         = mlx5sim_roce_pkey(qp);
    packet_p->dqpn         = is_ud ? wqe->av.dqpn : qp->dest_qpn;
    packet_p->psn          = psn;
    packet_p->qkey         = wqe->av.qkey;
    packet_p->sqpn         = qp->qpn;
    packet_p->raddr        = wqe->raddr + offset;
    packet_p->rkey         = wqe->rkey;
    packet_p->dma_length   = wqe->length - offset;
    packet_p->swap_add     = wqe->atomic.swap_add;
    packet_p->compare      = wqe->atomic.compare;
    packet_p->swap_mask    = wqe->atomic.swap_mask;
    packet_p->compare_mask = wqe->atomic.compare_mask;
    packet_p->atomic_size  = wqe->atomic_size;
    packet_p->imm          = wqe->imm;
    packet_p->inv_rkey     = wqe->imm;
}


void mlx5sim_roce_answer(const mlx5sim_qp_t *qp, uint8_t opcode, uint32_t psn,
                         uint8_t syndrome, uint32_t msn,
                         mlx5sim_roce_t *packet_p)
{
    memset(packet_p, 0, sizeof(*packet_p));
    packet_p->opcode   = opcode;
    packet_p->pkey     = mlx5sim_roce_pkey(qp);
    packet_p->dqpn     = qp->qpn;
    packet_p->psn      = psn;
    packet_p->syndrome = syndrome;
    packet_p->msn      = msn;
}


void mlx5sim_roce_return(mlx5sim_roce_path_t *path)
{
    mlx5sim_roce_path_t way = *path;

    memcpy(path->route.sgid, way.route.dgid, sizeof(path->route.sgid));
    memcpy(path->route.dgid, way.route.sgid, sizeof(path->route.dgid));
    memcpy(path->smac, way.dmac, sizeof(path->smac));
    memcpy(path->dmac, way.smac, sizeof(path->dmac));
    memcpy(path->from, way.to, sizeof(path->from));
    memcpy(path->to, way.from, sizeof(path->to));
    path->slid = way.dlid;
    path->dlid = way.slid;
}


uint16_t mlx5sim_roce_sport(uint32_t flow_label, uint32_t qpn, uint32_t dqpn)
{
    uint64_t product = (uint64_t)qpn * dqpn;

    if (flow_label == 0) {
        product   ^= product >> 20;
        product   ^= product >> 40;
        flow_label = product & 0xfffff;
    }

    return 0xc000 | ((flow_label & 0x3fff) ^ (flow_label >> 14));
}
