/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/plan.h>

#include <string.h>

/* What follows the network header and UDP, bytes (IBTA volume 1, "Data packet
 * format") */
#define MLX5SIM_BTH_LENGTH   12
#define MLX5SIM_DETH_LENGTH  8
#define MLX5SIM_IMM_LENGTH   4
#define MLX5SIM_ICRC_LENGTH  4

MLX5SIM_ASSERT_SIZE(uint8_t[MLX5SIM_NET_MAX], MLX5SIM_GRH_LENGTH);


/** Bytes of the packet after the network header, without UDP. */
static unsigned mlx5sim_packet_length(const mlx5sim_wqe_t *wqe)
{
    unsigned imm_length = (wqe->opcode == MLX5SIM_OPCODE_SEND_IMM) ?
                          MLX5SIM_IMM_LENGTH : 0;

    return MLX5SIM_BTH_LENGTH + MLX5SIM_DETH_LENGTH + imm_length +
           ((wqe->length + 3) & ~3u) + MLX5SIM_ICRC_LENGTH;
}


void mlx5sim_plan_route(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                        mlx5sim_route_t *route_p)
{
    route_p->flow_label = wqe->av.flow_label;
    route_p->tclass     = wqe->av.tclass;
    route_p->hop_limit  = wqe->av.hop_limit;
    route_p->is_udp     = req->is_roce && !req->is_roce_v1;
    memcpy(route_p->sgid, req->sgid, sizeof(route_p->sgid));
    memcpy(route_p->dgid, wqe->av.dgid, sizeof(route_p->dgid));
}


unsigned mlx5sim_plan_grh(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          uint8_t *grh)
{
    mlx5sim_route_t route;
    uint8_t hdr[MLX5SIM_NET_MAX];
    unsigned udp_length, length;

    mlx5sim_plan_route(req, wqe, &route);
    udp_length = route.is_udp ? MLX5SIM_UDP_LENGTH : 0;
    length     = mlx5sim_route_header(&route, udp_length +
                                      mlx5sim_packet_length(wqe), hdr);

    /* The receiver gets the 20 bytes of IPv4 at the end of the 40; what is
     * ahead of it is undefined. */
    memset(grh, 0, MLX5SIM_GRH_LENGTH - length);
    memcpy(grh + MLX5SIM_GRH_LENGTH - length, hdr, length);
    if (!route.is_udp) {
        return MLX5SIM_ROCE_L3_GRH;
    }

    return MLX5SIM_ROCE_UDP | ((length == MLX5SIM_IPV4_LENGTH) ?
                               MLX5SIM_ROCE_L3_IPV4 : MLX5SIM_ROCE_L3_IPV6);
}
