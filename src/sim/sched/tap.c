/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/tap.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/engine/plan.h>
#include <sim/exec/fabric.h>
#include <sim/exec/responder.h>
#include <sim/exec/transfer.h>
#include <sim/instance/instance.h>
#include <sim/net/frame.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/sched/chance.h>
#include <sim/sched/park.h>
#include <sim/wire/capture.h>
#include <sim/wire/roce.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int mlx5sim_tap_enabled;

/* One thread at a time runs pipes, or has the lock of tap_message.c */
static uint8_t mlx5sim_tap_payload[MLX5SIM_MAX_MTU];
static uint8_t mlx5sim_tap_frame[MLX5SIM_ROCE_MAX];


int mlx5sim_tap_open(void)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    char path[MLX5SIM_CONFIG_STRING_MAX + 16];
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    if (config->pcap[0] == '\0') {
        return 0;
    }

    snprintf(path, sizeof(path), "%s.%d", config->pcap, (int)getpid());
    if (mlx5sim_capture_open(path, (config->link == MLX5SIM_LINK_ROCE) ?
                                   MLX5SIM_CAPTURE_ETHERNET :
                                   MLX5SIM_CAPTURE_INFINIBAND,
                             error, sizeof(error)) != 0) {
        fprintf(stderr, "mlx5sim: MLX5SIM_PCAP: %s\n", error);
        return -1;
    }

    mlx5sim_tap_enabled = 1;
    return 0;
}

void mlx5sim_tap_forget(void)
{
    mlx5sim_tap_enabled = 0;
    mlx5sim_tap_forget_lock();
    mlx5sim_capture_close();
}

/* A stepped device has a time of its own, so that a seed makes the same file */
static uint64_t mlx5sim_tap_now(void)
{
    struct timespec ts;

    if (mlx5sim_chance_is_stepped()) {
        return mlx5sim_now_ns();
    }

    clock_gettime(CLOCK_REALTIME, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000ul) + ts.tv_nsec;
}

static void mlx5sim_tap_write(const mlx5sim_roce_path_t *path,
                              const mlx5sim_roce_t *packet, unsigned length)
{
    unsigned size = mlx5sim_roce_encode(path, packet, mlx5sim_tap_payload,
                                        length, mlx5sim_tap_frame);

    mlx5sim_capture_write(mlx5sim_tap_frame, size, mlx5sim_tap_now());
}

/* Read a part of a list of @a proc into the payload. @return 0 or -errno */
static int mlx5sim_tap_fetch(const mlx5sim_proc_t *proc, mlx5sim_plan_t *plan,
                             uint32_t offset, uint32_t length)
{
    unsigned num;

    if (length == 0) {
        return 0;
    }

    mlx5sim_plan_cut(plan, offset, length);
    return mlx5sim_transfer_fetch(NULL, proc, plan, mlx5sim_tap_payload, &num);
}

void mlx5sim_tap_request(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_packet_t *packet)
{
    uint32_t offset = packet->offset;
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t roce;

    /* XRC has opcodes and a header of its own, which are not written yet */
    if (mlx5sim_qp_is_cut_off(qp) || (qp->qp.xrc != MLX5SIM_XRC_NONE) ||
        (mlx5sim_frame_gather(qp, wqe, offset, packet->length,
                              mlx5sim_tap_payload) != 0)) {
        return;
    }

    if (mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_SCATTER) {
        /* a read that comes again asks for what is missing */
        offset = (mlx5sim_packet_count(&qp->qp, wqe->length) -
                  packet->packets) * mlx5sim_qp_mtu(&qp->qp);
    }

    mlx5sim_frame_path(qp, &path);
    mlx5sim_roce_request(&qp->qp, wqe, packet->psn, offset, packet->is_first,
                         packet->is_last, &roce);
    mlx5sim_tap_write(&path, &roce, packet->length);
}

void mlx5sim_tap_datagram(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn)
{
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t roce;

    if (mlx5sim_qp_is_cut_off(qp) || !wqe->has_av ||
        (mlx5sim_frame_gather(qp, wqe, 0, wqe->length,
                              mlx5sim_tap_payload) != 0)) {
        return;
    }

    mlx5sim_frame_datagram(qp, wqe, psn, &path, &roce);
    mlx5sim_tap_write(&path, &roce, wqe->length);
}

/* A packet of the responder without payload, or with the payload that was
 * read */
static void mlx5sim_tap_answer(const mlx5sim_qp_obj_t *qp,
                               const mlx5sim_roce_t *packet, unsigned length)
{
    const mlx5sim_qp_obj_t *peer;
    mlx5sim_roce_path_t path;

    if (qp->qp.xrc != MLX5SIM_XRC_NONE) {
        return;
    }

    mlx5sim_frame_path(qp, &path);
    mlx5sim_roce_return(&path);
    peer = mlx5sim_qp_by_num(qp->qp.dest_qpn);
    if (peer != NULL) {
        path.sport = mlx5sim_frame_sport(peer); /* its answer, not ours */
    }
    mlx5sim_tap_write(&path, packet, length);
}

uint8_t mlx5sim_tap_nak(unsigned syndrome)
{
    switch (syndrome) {
    case MLX5SIM_SYNDROME_REMOTE_INVAL_REQ:
        return MLX5SIM_AETH_NAK_INVALID;
    case MLX5SIM_SYNDROME_REMOTE_ACCESS:
        return MLX5SIM_AETH_NAK_ACCESS;
    default:
        return MLX5SIM_AETH_NAK_OPERATION;
    }
}

void mlx5sim_tap_ack(const mlx5sim_qp_obj_t *qp, uint32_t psn, uint8_t syndrome,
                     uint32_t msn)
{
    mlx5sim_roce_t roce;

    mlx5sim_roce_answer(&qp->qp, MLX5SIM_BTH_ACK, psn, syndrome, msn, &roce);
    mlx5sim_tap_answer(qp, &roce, 0);
}

void mlx5sim_tap_atomic(const mlx5sim_qp_obj_t *qp, uint32_t psn, uint32_t msn,
                        uint64_t old)
{
    mlx5sim_roce_t roce;

    mlx5sim_roce_answer(&qp->qp, MLX5SIM_BTH_ATOMIC_ACK, psn, MLX5SIM_AETH_ACK,
                        msn, &roce);
    roce.old = old;
    mlx5sim_tap_answer(qp, &roce, 0);
}

void mlx5sim_tap_read(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                      const mlx5sim_packet_t *packet, uint32_t msn,
                      int is_nak_next)
{
    static const uint8_t opcodes[2][2] = {
        {MLX5SIM_BTH_READ_MIDDLE, MLX5SIM_BTH_READ_LAST},
        {MLX5SIM_BTH_READ_FIRST, MLX5SIM_BTH_READ_ONLY}
    };
    mlx5sim_run_t run = {.req = qp};
    mlx5sim_proc_t *proc;
    mlx5sim_plan_t plan;
    mlx5sim_roce_t roce;
    int ret = -ESRCH;

    if (mlx5sim_fabric_is_down(qp, wqe)) {
        return;
    }

    proc = mlx5sim_packet_plan_read(&run, wqe, is_nak_next, &plan);
    if ((proc != NULL) && (plan.verdict == MLX5SIM_VERDICT_DONE) &&
        (!plan.req_error || plan.is_answered)) {
        ret = mlx5sim_tap_fetch(proc, &plan, packet->offset, packet->length);
    }
    if (run.resp != NULL) {
        mlx5sim_unlock(&run.resp->rq_lock);
    }
    if (ret != 0) {
        return;
    }

    mlx5sim_roce_answer(&qp->qp, opcodes[packet->is_first][packet->is_last],
                        packet->psn, MLX5SIM_AETH_ACK, msn, &roce);
    mlx5sim_tap_answer(qp, &roce, packet->length);
}
