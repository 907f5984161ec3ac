/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/wire/roce.h>
#include <sim/engine/opcode.h>
#include <sim/engine/qp.h>
#include <sim/wire/roce_def.h>

#include <stddef.h>
#include <string.h>


/* A request, and where it is in its message */
typedef struct mlx5sim_roce_operation {
    uint8_t opcode;   /* MLX5SIM_OPCODE_*; 0: it is an answer */
    uint8_t is_first;
    uint8_t is_last;
} mlx5sim_roce_operation_t;


static const mlx5sim_roce_operation_t
mlx5sim_roce_operations[MLX5SIM_BTH_OPERATION + 1] = {
    [MLX5SIM_BTH_SEND_FIRST]     = {MLX5SIM_OPCODE_SEND, 1, 0},
    [MLX5SIM_BTH_SEND_MIDDLE]    = {MLX5SIM_OPCODE_SEND, 0, 0},
    [MLX5SIM_BTH_SEND_LAST]      = {MLX5SIM_OPCODE_SEND, 0, 1},
    [MLX5SIM_BTH_SEND_LAST_IMM]  = {MLX5SIM_OPCODE_SEND_IMM, 0, 1},
    [MLX5SIM_BTH_SEND_ONLY]      = {MLX5SIM_OPCODE_SEND, 1, 1},
    [MLX5SIM_BTH_SEND_ONLY_IMM]  = {MLX5SIM_OPCODE_SEND_IMM, 1, 1},
    [MLX5SIM_BTH_WRITE_FIRST]    = {MLX5SIM_OPCODE_RDMA_WRITE, 1, 0},
    [MLX5SIM_BTH_WRITE_MIDDLE]   = {MLX5SIM_OPCODE_RDMA_WRITE, 0, 0},
    [MLX5SIM_BTH_WRITE_LAST]     = {MLX5SIM_OPCODE_RDMA_WRITE, 0, 1},
    [MLX5SIM_BTH_WRITE_LAST_IMM] = {MLX5SIM_OPCODE_RDMA_WRITE_IMM, 0, 1},
    [MLX5SIM_BTH_WRITE_ONLY]     = {MLX5SIM_OPCODE_RDMA_WRITE, 1, 1},
    [MLX5SIM_BTH_WRITE_ONLY_IMM] = {MLX5SIM_OPCODE_RDMA_WRITE_IMM, 1, 1},
    [MLX5SIM_BTH_READ_REQUEST]   = {MLX5SIM_OPCODE_RDMA_READ, 1, 1},
    [MLX5SIM_BTH_COMPARE_SWAP]   = {MLX5SIM_OPCODE_ATOMIC_CS, 1, 1},
    [MLX5SIM_BTH_FETCH_ADD]      = {MLX5SIM_OPCODE_ATOMIC_FA, 1, 1},
    [MLX5SIM_BTH_SEND_LAST_INV]  = {MLX5SIM_OPCODE_SEND_INVAL, 0, 1},
    [MLX5SIM_BTH_SEND_ONLY_INV]  = {MLX5SIM_OPCODE_SEND_INVAL, 1, 1}
};


static int mlx5sim_roce_is_foreign(const mlx5sim_qp_t *qp, uint8_t opcode)
{
    switch (opcode & MLX5SIM_BTH_SERVICE) {
    case MLX5SIM_BTH_RC:
    case MLX5SIM_BTH_OWN:
        return qp->type != MLX5SIM_QPT_RC;
    case MLX5SIM_BTH_UC:
        return qp->type != MLX5SIM_QPT_UC;
    case MLX5SIM_BTH_UD:
        return qp->type != MLX5SIM_QPT_UD;
    default:
        return 1;
    }
}


static void mlx5sim_roce_to_atomic(const mlx5sim_roce_t *packet,
                                   mlx5sim_wqe_t *wqe_p)
{
    int is_masked = (packet->opcode & MLX5SIM_BTH_SERVICE) == MLX5SIM_BTH_OWN;
    int is_cas    = wqe_p->opcode == MLX5SIM_OPCODE_ATOMIC_CS;
    uint64_t all  = UINT64_MAX;

    if (is_masked) {
        wqe_p->opcode = is_cas ? MLX5SIM_OPCODE_ATOMIC_MASKED_CS :
                                 MLX5SIM_OPCODE_ATOMIC_MASKED_FA;
    }

    /* those of other atomics are as mlx5sim_wqe_decode() has them */
    wqe_p->atomic_size         = is_masked ? packet->atomic_size : 8;
    wqe_p->atomic.is_cas       = is_cas;
    wqe_p->atomic.swap_add     = packet->swap_add;
    wqe_p->atomic.compare      = is_cas ? packet->compare : 0;
    wqe_p->atomic.swap_mask    = is_masked ? packet->swap_mask : all;
    wqe_p->atomic.compare_mask = is_masked ? packet->compare_mask :
                                 is_cas ? all : 0;
    wqe_p->length              = wqe_p->atomic_size;
}


/* Reads and atomics: the packet has no payload */
static mlx5sim_roce_fit_t
mlx5sim_roce_fit_request(const mlx5sim_roce_t *packet, unsigned length,
                         mlx5sim_wqe_t *wqe_p)
{
    if (wqe_p->opcode == MLX5SIM_OPCODE_RDMA_READ) {
        wqe_p->length = packet->dma_length;
    } else {
        mlx5sim_roce_to_atomic(packet, wqe_p);
        if (wqe_p->atomic_size == 0) {
            return MLX5SIM_ROCE_OPERAND;
        }
    }

    return ((length > 0) || (wqe_p->length > MLX5SIM_MAX_MESSAGE)) ?
           MLX5SIM_ROCE_BEYOND : MLX5SIM_ROCE_FITS;
}


/* Sends and writes */
static mlx5sim_roce_fit_t
mlx5sim_roce_fit_payload(const mlx5sim_qp_t *qp, unsigned length,
                         const mlx5sim_roce_place_t *place,
                         mlx5sim_wqe_t *wqe_p)
{
    const mlx5sim_roce_message_t *next = &place->next;
    unsigned mtu                       = mlx5sim_qp_mtu(qp);
    uint64_t end                       = (uint64_t)place->offset + length;
    uint64_t max                       = next->is_write ? next->dma_length :
                                                          MLX5SIM_MAX_MESSAGE;

    if ((length > mtu) || (!place->is_last && (length < mtu)) ||
        (!place->is_first && (length == 0))) {
        return MLX5SIM_ROCE_NOT_MTU;
    }

    if ((max > MLX5SIM_MAX_MESSAGE) || (end + !place->is_last > max)) {
        return MLX5SIM_ROCE_BEYOND;
    }

    if (place->is_last && next->is_write && (end < max)) {
        return MLX5SIM_ROCE_INCOMPLETE;
    }

    wqe_p->length = next->is_write ? max : end;
    wqe_p->later  = wqe_p->length - end;
    return MLX5SIM_ROCE_FITS;
}


mlx5sim_roce_fit_t
mlx5sim_roce_to_wqe(const mlx5sim_qp_t *qp, const mlx5sim_roce_t *packet,
                    unsigned length, const mlx5sim_roce_message_t *message,
                    mlx5sim_wqe_t *wqe_p, mlx5sim_roce_place_t *place_p)
{
    const mlx5sim_roce_operation_t *operation =
            &mlx5sim_roce_operations[packet->opcode & MLX5SIM_BTH_OPERATION];
    unsigned flags               = mlx5sim_opcode_flags(operation->opcode);
    mlx5sim_roce_message_t *next = &place_p->next;
    int is_write                 = (flags & MLX5SIM_OP_RADDR) &&
                                   !(flags & MLX5SIM_OP_SCATTER);
    mlx5sim_roce_fit_t fit;

    if ((operation->opcode == 0) ||
        mlx5sim_roce_is_foreign(qp, packet->opcode)) {
        return MLX5SIM_ROCE_FOREIGN;
    }

    memset(place_p, 0, sizeof(*place_p));
    place_p->is_first = operation->is_first;
    place_p->is_last  = operation->is_last;
    if (!place_p->is_first) {
        if (!message->is_open || (message->is_write != is_write)) {
            return MLX5SIM_ROCE_SEQUENCE;
        }
        *next = *message;
    } else if (message->is_open && (qp->type == MLX5SIM_QPT_RC)) {
        return MLX5SIM_ROCE_SEQUENCE;
    } else {
        next->is_write   = is_write;
        next->raddr      = packet->raddr;
        next->rkey       = packet->rkey;
        next->dma_length = packet->dma_length;
    }
    place_p->offset = next->offset;

    /* all but the segments, which are kilobytes */
    memset(wqe_p, 0, offsetof(mlx5sim_wqe_t, segs));
    wqe_p->opcode    = operation->opcode;
    wqe_p->solicited = packet->solicited && place_p->is_last &&
                       (flags & MLX5SIM_OP_RECV);
    wqe_p->has_raddr = !!(flags & MLX5SIM_OP_RADDR);
    wqe_p->raddr     = next->raddr;
    wqe_p->rkey      = next->rkey;
    wqe_p->imm       = (operation->opcode == MLX5SIM_OPCODE_SEND_INVAL) ?
                       packet->inv_rkey : packet->imm;
    if (qp->type == MLX5SIM_QPT_UD) {
        wqe_p->has_av  = 1;
        wqe_p->av.dqpn = packet->dqpn;
        wqe_p->av.qkey = packet->qkey;
    }

    fit = (flags & MLX5SIM_OP_SCATTER) ?
          mlx5sim_roce_fit_request(packet, length, wqe_p) :
          mlx5sim_roce_fit_payload(qp, length, place_p, wqe_p);
    if (place_p->is_last) {
        memset(next, 0, sizeof(*next));
    } else {
        next->is_open = 1;
        next->offset += length;
    }

    return fit;
}
