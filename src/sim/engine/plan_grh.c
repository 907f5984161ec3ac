/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/plan.h>

#include <endian.h>
#include <string.h>

/* What follows the network header, bytes (IBTA volume 1, "Data packet format";
 * annex A17 for RoCE v2) */
#define MLX5SIM_UDP_LENGTH   8
#define MLX5SIM_BTH_LENGTH   12
#define MLX5SIM_DETH_LENGTH  8
#define MLX5SIM_IMM_LENGTH   4
#define MLX5SIM_ICRC_LENGTH  4

#define MLX5SIM_NEXT_HDR_IBA 0x1b   /* GRH NxtHdr: IBA transport follows */
#define MLX5SIM_IPPROTO_UDP  17


/** GRH or IPv6 header, the same layout */
typedef struct mlx5sim_grh {
    __be32  version_tclass_flow;
    __be16  payload_length;
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t sgid[16];
    uint8_t dgid[16];
} MLX5SIM_PACKED mlx5sim_grh_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_grh_t, MLX5SIM_GRH_LENGTH);


typedef struct mlx5sim_ipv4 {
    uint8_t version_ihl;
    uint8_t tos;
    __be16  total_length;
    __be16  id;
    __be16  fragment;
    uint8_t ttl;
    uint8_t protocol;
    __be16  checksum;
    uint8_t saddr[4];
    uint8_t daddr[4];
} MLX5SIM_PACKED mlx5sim_ipv4_t;

MLX5SIM_ASSERT_SIZE(mlx5sim_ipv4_t, 20);


static int mlx5sim_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}


/** Bytes of the packet after the network header, without UDP. */
static unsigned mlx5sim_packet_length(const mlx5sim_wqe_t *wqe)
{
    unsigned imm_length = (wqe->opcode == MLX5SIM_OPCODE_SEND_IMM) ?
                          MLX5SIM_IMM_LENGTH : 0;

    return MLX5SIM_BTH_LENGTH + MLX5SIM_DETH_LENGTH + imm_length +
           ((wqe->length + 3) & ~3u) + MLX5SIM_ICRC_LENGTH;
}


static uint16_t mlx5sim_ipv4_checksum(const mlx5sim_ipv4_t *ip)
{
    const uint8_t *bytes = (const uint8_t*)ip;
    uint32_t sum         = 0;
    unsigned i;

    for (i = 0; i < sizeof(*ip); i += 2) {
        sum += ((uint32_t)bytes[i] << 8) | bytes[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}


/* The receiver gets the 20 bytes of the header at the end of the 40; what is
 * ahead of it is undefined. */
static void mlx5sim_grh_ipv4(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                             uint8_t *grh)
{
    mlx5sim_ipv4_t ip;

    ip.version_ihl  = 0x45;
    ip.tos          = wqe->av.tclass;
    ip.total_length = htobe16(sizeof(ip) + MLX5SIM_UDP_LENGTH +
                              mlx5sim_packet_length(wqe));
    ip.id           = 0;
    ip.fragment     = htobe16(0x4000);
    ip.ttl          = wqe->av.hop_limit;
    ip.protocol     = MLX5SIM_IPPROTO_UDP;
    ip.checksum     = 0;
    memcpy(ip.saddr, &req->sgid[12], sizeof(ip.saddr));
    memcpy(ip.daddr, &wqe->av.dgid[12], sizeof(ip.daddr));
    ip.checksum     = htobe16(mlx5sim_ipv4_checksum(&ip));

    memset(grh, 0, MLX5SIM_GRH_LENGTH - sizeof(ip));
    memcpy(grh + MLX5SIM_GRH_LENGTH - sizeof(ip), &ip, sizeof(ip));
}


unsigned mlx5sim_plan_grh(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          uint8_t *grh)
{
    int is_udp          = req->is_roce && !req->is_roce_v1;
    unsigned udp_length = is_udp ? MLX5SIM_UDP_LENGTH : 0;
    mlx5sim_grh_t hdr;

    if (is_udp && mlx5sim_gid_is_ipv4(wqe->av.dgid)) {
        mlx5sim_grh_ipv4(req, wqe, grh);
        return MLX5SIM_ROCE_UDP | MLX5SIM_ROCE_L3_IPV4;
    }

    hdr.version_tclass_flow = htobe32((6u << 28) |
                                      ((uint32_t)wqe->av.tclass << 20) |
                                      wqe->av.flow_label);
    hdr.payload_length      = htobe16(udp_length + mlx5sim_packet_length(wqe));
    hdr.next_header         = is_udp ? MLX5SIM_IPPROTO_UDP :
                                       MLX5SIM_NEXT_HDR_IBA;
    hdr.hop_limit           = wqe->av.hop_limit;
    memcpy(hdr.sgid, req->sgid, sizeof(hdr.sgid));
    memcpy(hdr.dgid, wqe->av.dgid, sizeof(hdr.dgid));
    memcpy(grh, &hdr, sizeof(hdr));
    return is_udp ? (MLX5SIM_ROCE_UDP | MLX5SIM_ROCE_L3_IPV6) :
                    MLX5SIM_ROCE_L3_GRH;
}
