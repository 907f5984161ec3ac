/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/traffic.h>
#include <sim/config/identity.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/instance/instance.h>
#include <sim/objs/port.h>
#include <sim/objs/store.h>

#include <string.h>

/* Bytes of headers: IBTA volume 1, chapters 5 and 9; annexes A14 (XRC), A16 and
 * A17 (RoCE) */
enum {
    MLX5SIM_TRAFFIC_LRH        = 8,
    MLX5SIM_TRAFFIC_ETHERNET   = 14,
    MLX5SIM_TRAFFIC_GRH        = 40, /* and IPv6's */
    MLX5SIM_TRAFFIC_IPV4       = 20,
    MLX5SIM_TRAFFIC_UDP        = 8,
    MLX5SIM_TRAFFIC_BTH        = 12,
    MLX5SIM_TRAFFIC_DETH       = 8,
    MLX5SIM_TRAFFIC_XRCETH     = 4,
    MLX5SIM_TRAFFIC_RETH       = 16,
    MLX5SIM_TRAFFIC_ATOMIC     = 28,
    MLX5SIM_TRAFFIC_AETH       = 4,
    MLX5SIM_TRAFFIC_ATOMIC_ACK = 8,
    MLX5SIM_TRAFFIC_IMM        = 4,  /* and that of a key to invalidate */
    MLX5SIM_TRAFFIC_ICRC       = 4
};


/* Of each packet between two ports, what is in front of BTH, and BTH and ICRC.
 * An address vector counts if the request has one. */
static uint32_t mlx5sim_traffic_path(const mlx5sim_qp_obj_t *req,
                                     const mlx5sim_wqe_t *wqe)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *dgid  = wqe->has_av ? wqe->av.dgid : req->qp.dgid;
    unsigned sgid_index  = wqe->has_av ? wqe->av.sgid_index : req->sgid_index;
    unsigned has_grh     = wqe->has_av ? wqe->av.has_grh : req->qp.has_grh;
    uint32_t length      = MLX5SIM_TRAFFIC_BTH + MLX5SIM_TRAFFIC_ICRC;

    if (!req->qp.is_roce) {
        return length + MLX5SIM_TRAFFIC_LRH +
               (has_grh ? MLX5SIM_TRAFFIC_GRH : 0);
    }

    length += MLX5SIM_TRAFFIC_ETHERNET;
    if (!mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(), sgid_index)) {
        return length + MLX5SIM_TRAFFIC_GRH;
    }

    return length + MLX5SIM_TRAFFIC_UDP +
           (!memcmp(dgid, mapped, sizeof(mapped)) ? MLX5SIM_TRAFFIC_IPV4 :
                                                    MLX5SIM_TRAFFIC_GRH);
}

/* Headers of some packets of a message that the others do not have */
static uint32_t mlx5sim_traffic_extended(const mlx5sim_wqe_t *wqe, int is_first,
                                         int is_last)
{
    uint32_t length = 0;

    switch (wqe->opcode) {
    case MLX5SIM_OPCODE_RDMA_WRITE:
    case MLX5SIM_OPCODE_RDMA_WRITE_IMM:
    case MLX5SIM_OPCODE_RDMA_READ:
        length += is_first ? MLX5SIM_TRAFFIC_RETH : 0;
        break;
    case MLX5SIM_OPCODE_ATOMIC_CS:
    case MLX5SIM_OPCODE_ATOMIC_FA:
    case MLX5SIM_OPCODE_ATOMIC_MASKED_CS:
    case MLX5SIM_OPCODE_ATOMIC_MASKED_FA:
        return MLX5SIM_TRAFFIC_ATOMIC;
    default:
        break;
    }

    if (is_last && ((wqe->opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM) ||
                    (wqe->opcode == MLX5SIM_OPCODE_SEND_IMM) ||
                    (wqe->opcode == MLX5SIM_OPCODE_SEND_INVAL))) {
        length += MLX5SIM_TRAFFIC_IMM;
    }
    return length;
}

/* Payload is padded to words */
static uint64_t mlx5sim_traffic_padded(uint32_t length)
{
    return ((uint64_t)length + 3) & ~3ull;
}

void mlx5sim_traffic_request(const mlx5sim_qp_obj_t *req,
                             const mlx5sim_wqe_t *wqe,
                             const mlx5sim_qp_obj_t *resp, uint32_t packets,
                             uint32_t length, int is_first, int is_last)
{
    uint64_t bytes = mlx5sim_traffic_path(req, wqe);

    bytes += (req->qp.type == MLX5SIM_QPT_UD) ? MLX5SIM_TRAFFIC_DETH : 0;
    bytes += (req->qp.xrc != MLX5SIM_XRC_NONE) ? MLX5SIM_TRAFFIC_XRCETH : 0;
    bytes  = (bytes * packets) + mlx5sim_traffic_padded(length) +
             mlx5sim_traffic_extended(wqe, is_first, is_last);
    mlx5sim_port_sent(req->dev, req->qp.port, packets, bytes);
    if (resp != NULL) {
        mlx5sim_port_received(resp->dev, resp->qp.port, packets, bytes);
    }
}

void mlx5sim_traffic_answer(const mlx5sim_qp_obj_t *req,
                            const mlx5sim_wqe_t *wqe,
                            const mlx5sim_qp_obj_t *resp, uint32_t packets,
                            uint32_t length)
{
    uint64_t bytes = mlx5sim_traffic_path(req, wqe);

    /* of data, the first and the last packet have AETH */
    bytes  = (bytes * packets) + mlx5sim_traffic_padded(length) +
             (MLX5SIM_TRAFFIC_AETH * ((packets > 1) ? 2 : 1));
    bytes += (mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_ATOMIC) ?
             MLX5SIM_TRAFFIC_ATOMIC_ACK : 0;
    mlx5sim_port_sent(resp->dev, resp->qp.port, packets, bytes);
    mlx5sim_port_received(req->dev, req->qp.port, packets, bytes);
}

void mlx5sim_traffic_message(const mlx5sim_qp_obj_t *req,
                             const mlx5sim_wqe_t *wqe,
                             const mlx5sim_qp_obj_t *resp)
{
    unsigned flags   = mlx5sim_opcode_flags(wqe->opcode);
    uint32_t packets = mlx5sim_packet_count(&req->qp, wqe->length);

    if (mlx5sim_opcode_is_local(wqe->opcode) || mlx5sim_qp_is_cut_off(req)) {
        return;
    }

    if (flags & MLX5SIM_OP_SCATTER) {
        mlx5sim_traffic_request(req, wqe, resp, 1, 0, 1, 1);
    } else {
        mlx5sim_traffic_request(req, wqe, resp, packets, wqe->length, 1, 1);
    }

    if (resp == NULL) {
        return;
    }

    mlx5sim_traffic_taken(resp, wqe);
    if ((flags & MLX5SIM_OP_SCATTER) && !(flags & MLX5SIM_OP_ATOMIC)) {
        mlx5sim_traffic_answer(req, wqe, resp, packets, wqe->length);
    } else if (mlx5sim_qp_is_reliable(&req->qp)) {
        mlx5sim_traffic_answer(req, wqe, resp, 1, 0);
    }
}

void mlx5sim_traffic_taken(const mlx5sim_qp_obj_t *resp,
                           const mlx5sim_wqe_t *wqe)
{
    mlx5sim_port_counter_t counter;

    switch (wqe->opcode) {
    case MLX5SIM_OPCODE_RDMA_WRITE:
    case MLX5SIM_OPCODE_RDMA_WRITE_IMM:
        counter = MLX5SIM_PORT_RX_WRITES;
        break;
    case MLX5SIM_OPCODE_RDMA_READ:
        counter = MLX5SIM_PORT_RX_READS;
        break;
    default:
        if (!(mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_ATOMIC)) {
            return;
        }
        counter = MLX5SIM_PORT_RX_ATOMICS;
        break;
    }
    mlx5sim_port_count(resp->dev, resp->qp.port, counter, 1);
}
