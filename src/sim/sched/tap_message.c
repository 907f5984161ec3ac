/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/tap.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/engine/qp.h>
#include <sim/exec/fabric.h>
#include <sim/wire/roce.h>

#include <pthread.h>
#include <string.h>

/* Threads that ring execute at the same time */
static pthread_mutex_t mlx5sim_tap_mutex = PTHREAD_MUTEX_INITIALIZER;


void mlx5sim_tap_forget_lock(void)
{
    pthread_mutex_init(&mlx5sim_tap_mutex, NULL);
}

/* The field of an RNR NAK that stands for a time */
static uint8_t mlx5sim_tap_rnr_timer(uint64_t ns)
{
    uint8_t timer = 0;

    while ((timer < 31) && (mlx5sim_rnr_timer_ns(timer) != ns)) {
        ++timer;
    }
    return timer;
}

/* How a message ends on the wire */
typedef enum {
    MLX5SIM_TAP_TAKEN,
    MLX5SIM_TAP_REFUSED,
    MLX5SIM_TAP_NO_ANSWER,
    MLX5SIM_TAP_NOT_SENT
} mlx5sim_tap_end_t;

static mlx5sim_tap_end_t mlx5sim_tap_end(const mlx5sim_plan_t *plan)
{
    switch (plan->verdict) {
    case MLX5SIM_VERDICT_DONE:
        break;
    case MLX5SIM_VERDICT_RNR:
        return MLX5SIM_TAP_REFUSED;
    default:
        return MLX5SIM_TAP_NO_ANSWER;
    }

    /* what the requester alone finds in an answer, the wire does not show */
    if (!plan->req_error || plan->is_answered) {
        return MLX5SIM_TAP_TAKEN;
    }

    switch (plan->req_cqe.syndrome) {
    case MLX5SIM_SYNDROME_REMOTE_INVAL_REQ:
    case MLX5SIM_SYNDROME_REMOTE_ACCESS:
    case MLX5SIM_SYNDROME_REMOTE_OP:
        return MLX5SIM_TAP_REFUSED;
    default:
        return MLX5SIM_TAP_NOT_SENT;
    }
}

/* Write the packets of a request from its first one on */
static void mlx5sim_tap_requests(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                                 uint32_t psn, uint32_t packets, uint32_t num)
{
    int is_request = !!(mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_SCATTER);
    unsigned mtu   = mlx5sim_qp_mtu(&qp->qp);
    mlx5sim_packet_t packet;
    uint32_t i;

    for (i = 0; i < (is_request ? 1 : num); ++i) {
        memset(&packet, 0, sizeof(packet));
        packet.psn      = mlx5sim_psn_add(psn, i);
        packet.packets  = is_request ? packets : 1;
        packet.is_first = (i == 0);
        packet.is_last  = is_request || (i + 1 == packets);
        packet.offset   = i * mtu;
        packet.length   = is_request ? 0 :
                          packet.is_last ? (wqe->length - packet.offset) : mtu;
        mlx5sim_tap_request(qp, wqe, &packet);
    }
}

static void mlx5sim_tap_reads(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                              uint32_t psn, uint32_t packets)
{
    unsigned mtu = mlx5sim_qp_mtu(&qp->qp);
    mlx5sim_packet_t packet;
    uint32_t i;

    for (i = 0; i < packets; ++i) {
        memset(&packet, 0, sizeof(packet));
        packet.psn      = mlx5sim_psn_add(psn, i);
        packet.is_first = (i == 0);
        packet.is_last  = (i + 1 == packets);
        packet.offset   = i * mtu;
        packet.length   = packet.is_last ? (wqe->length - packet.offset) : mtu;
        mlx5sim_tap_read(qp, wqe, &packet, qp->messages, 0);
    }
}

static void mlx5sim_tap_connected(mlx5sim_qp_obj_t *qp,
                                  const mlx5sim_wqe_t *wqe, uint32_t psn,
                                  const mlx5sim_plan_t *plan,
                                  uint64_t rnr_timer)
{
    uint32_t packets      = mlx5sim_packet_count(&qp->qp, wqe->length);
    mlx5sim_tap_end_t end = mlx5sim_tap_end(plan);
    unsigned flags        = mlx5sim_opcode_flags(wqe->opcode);

    if (end == MLX5SIM_TAP_NOT_SENT) {
        return;
    }

    /* a responder refuses the first packet, as far as one can tell, and one
     * that does not answer may do so for long */
    mlx5sim_tap_requests(qp, wqe, psn, packets,
                         (end == MLX5SIM_TAP_TAKEN) ? packets : 1);
    if ((qp->qp.type != MLX5SIM_QPT_RC) || (end == MLX5SIM_TAP_NO_ANSWER)) {
        return;
    }

    if (plan->verdict == MLX5SIM_VERDICT_RNR) {
        mlx5sim_tap_ack(qp, psn,
                        MLX5SIM_AETH_RNR | mlx5sim_tap_rnr_timer(rnr_timer),
                        qp->messages);
    } else if (end == MLX5SIM_TAP_REFUSED) {
        mlx5sim_tap_ack(qp, psn, mlx5sim_tap_nak(plan->req_cqe.syndrome),
                        qp->messages);
    } else {
        qp->messages = (qp->messages + 1) & MLX5SIM_PSN_MASK;
        if (flags & MLX5SIM_OP_ATOMIC) {
            mlx5sim_tap_atomic(qp, psn, qp->messages, plan->atomic_old);
        } else if (flags & MLX5SIM_OP_SCATTER) {
            mlx5sim_tap_reads(qp, wqe, psn, packets);
        } else {
            mlx5sim_tap_ack(qp, mlx5sim_psn_add(psn, packets - 1),
                            MLX5SIM_AETH_ACK, qp->messages);
        }
    }
}

void mlx5sim_tap_message(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         uint32_t psn, const mlx5sim_plan_t *plan,
                         uint64_t rnr_timer)
{
    if (mlx5sim_opcode_is_local(wqe->opcode)) {
        return;
    }

    pthread_mutex_lock(&mlx5sim_tap_mutex);
    switch (qp->qp.type) {
    case MLX5SIM_QPT_RC:
    case MLX5SIM_QPT_UC:
        mlx5sim_tap_connected(qp, wqe, psn, plan, rnr_timer);
        break;
    case MLX5SIM_QPT_UD:
        if ((plan->verdict == MLX5SIM_VERDICT_DONE) && !plan->req_error &&
            !mlx5sim_fabric_is_too_long(qp, wqe)) {
            mlx5sim_tap_datagram(qp, wqe, psn);
        }
        break;
    default:
        break; /* initiators of DC have headers that are not published */
    }
    pthread_mutex_unlock(&mlx5sim_tap_mutex);
}
