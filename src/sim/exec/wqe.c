/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/wqe.h>
#include <sim/config/identity.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/engine/qp.h>
#include <sim/exec/fabric.h>
#include <sim/exec/responder.h>
#include <sim/exec/signature.h>
#include <sim/exec/traffic.h>
#include <sim/exec/transfer.h>
#include <sim/exec/window.h>
#include <sim/instance/instance.h>
#include <sim/objs/port.h>
#include <sim/objs/store.h>
#include <sim/queue/recv.h>

#include <errno.h>
#include <string.h>


/* Do what the plan says on the responder. @return 0, or -errno as transfer */
static int mlx5sim_wqe_apply(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                             mlx5sim_plan_t *plan)
{
    mlx5sim_qp_obj_t *resp = run->resp;
    mlx5sim_proc_t *proc;
    mlx5sim_side_t side = MLX5SIM_SIDE_RESPONDER;
    int ret = 0;

    if (resp == NULL) {
        return 0;
    }

    proc = mlx5sim_proc_by_tag(atomic_load(&resp->o.owner));
    if (proc == NULL) {
        return -ESRCH;
    }

    if ((plan->atomic_size != 0) ||
        ((plan->length != 0) && !plan->is_answered)) {
        ret = mlx5sim_transfer(run->req, resp, proc, wqe, plan, &side);
    } else if (!mlx5sim_responder_is_alive(resp, proc)) {
        ret = -ESRCH;
    }

    if (ret == -EFAULT) {
        mlx5sim_plan_fault(&run->req->qp, wqe, &resp->qp, side, plan);
    } else if (ret != 0) {
        return ret;
    }

    mlx5sim_responder_deliver(resp, plan);
    return 0;
}

/* All packets of the message have been sent and taken */
static void mlx5sim_wqe_count_packets(mlx5sim_run_t *run,
                                      const mlx5sim_wqe_t *wqe)
{
    uint32_t packets;

    if (mlx5sim_opcode_is_local(wqe->opcode)) {
        return;
    }

    packets          = mlx5sim_packet_count(&run->req->qp, wqe->length);
    run->req->qp.psn = mlx5sim_psn_add(run->req->qp.psn, packets);
    if (run->req->qp.type == MLX5SIM_QPT_RC) {
        run->resp->qp.epsn = run->req->qp.psn;
    }
}

/* Whether nobody will ever answer */
static int mlx5sim_wqe_is_gone(const mlx5sim_run_t *run,
                               const mlx5sim_plan_t *plan)
{
    const mlx5sim_qp_obj_t *resp = run->resp;
    const mlx5sim_proc_t *proc;

    if ((plan->verdict != MLX5SIM_VERDICT_RETRY) || (resp == NULL)) {
        return run->recv_gone;
    }

    proc = mlx5sim_proc_by_tag(atomic_load(&resp->o.owner));
    return !mlx5sim_responder_is_alive(resp, proc);
}

/* The network header of a datagram has the GID that its address vector names,
 * and is of its type (PRM: src_addr_index of the address vector, and its entry
 * in the GID table; libmlx5, mlx5_create_ah(), puts sgid_index there) */
static void mlx5sim_wqe_set_source(mlx5sim_qp_obj_t *qp,
                                   const mlx5sim_wqe_t *wqe)
{
    uint8_t gid[MLX5SIM_GID_LEN];

    if ((qp->qp.type == MLX5SIM_QPT_UD) && wqe->has_av && wqe->av.has_grh &&
        mlx5sim_port_gid(mlx5sim_instance_config(), qp->dev, qp->qp.port,
                         wqe->av.sgid_index, gid)) {
        memcpy(qp->qp.sgid, gid, sizeof(qp->qp.sgid));
        qp->qp.is_roce_v1 = qp->qp.is_roce &&
                            !mlx5sim_gid_is_roce_v2(mlx5sim_instance_config(),
                                                    wqe->av.sgid_index);
    }
}

unsigned mlx5sim_wqe_local(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    switch (wqe->opcode) {
    case MLX5SIM_OPCODE_UMR:
        return mlx5sim_window_set(qp, wqe);
    case MLX5SIM_OPCODE_SET_PSV:
        return mlx5sim_psv_set(qp, wqe);
    default:
        return 0;
    }
}

/* A message as a whole is for the responder if its first packet is */
static void mlx5sim_wqe_bind(const mlx5sim_qp_obj_t *qp,
                             mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe)
{
    if ((resp != NULL) && (qp->qp.xrc == MLX5SIM_XRC_INI) &&
        mlx5sim_qp_answers(&resp->qp, &qp->qp, wqe) &&
        (resp->qp.epsn == qp->qp.psn)) {
        mlx5sim_fabric_bind(resp, wqe);
    }
}

mlx5sim_verdict_t
mlx5sim_wqe_execute(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                    mlx5sim_plan_t *plan_p, uint64_t *rnr_timer_p)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);
    mlx5sim_qp_obj_t *resp;
    int is_done, is_gone, is_taken;
    unsigned syndrome;

    *rnr_timer_p = 0;
    if (mlx5sim_opcode_is_local(wqe->opcode)) {
        syndrome = mlx5sim_wqe_local(qp, wqe);
        if (syndrome == 0) {
            mlx5sim_plan_success(&qp->qp, wqe, plan_p);
        } else {
            mlx5sim_plan_fail_local(&qp->qp, wqe, syndrome, plan_p);
        }
        return plan_p->verdict;
    }

    if (mlx5sim_fabric_is_down(qp, wqe)) {
        plan_p->verdict = MLX5SIM_VERDICT_RETRY;
        return plan_p->verdict;
    }

    if (mlx5sim_fabric_is_too_long(qp, wqe)) {
        mlx5sim_wqe_lose(qp, wqe, plan_p);
        return plan_p->verdict;
    }

    mlx5sim_wqe_set_source(qp, wqe);
    run.resp = resp = mlx5sim_fabric_find(qp, wqe);
    mlx5sim_wqe_bind(qp, resp, wqe);
    mlx5sim_plan_make(&qp->qp, wqe, (resp != NULL) ? &resp->qp : NULL, &env,
                      plan_p);
    is_done      = plan_p->verdict == MLX5SIM_VERDICT_DONE;
    is_gone      = is_done ? (mlx5sim_wqe_apply(&run, wqe, plan_p) != 0) :
                             mlx5sim_wqe_is_gone(&run, plan_p);
    is_taken     = is_done && (!plan_p->req_error || plan_p->is_answered);
    *rnr_timer_p = 0;
    if (is_taken && !is_gone && !qp->is_remote) {
        mlx5sim_traffic_message(qp, wqe, resp);
    }
    if (resp != NULL) {
        *rnr_timer_p = mlx5sim_rnr_timer_ns(resp->qp.min_rnr_timer);
        mlx5sim_recv_release(resp);
        if (plan_p->verdict == MLX5SIM_VERDICT_RNR) {
            mlx5sim_port_count(resp->dev, resp->qp.port,
                               MLX5SIM_PORT_NO_RECEIVE, 1);
        }
        if (is_taken) {
            mlx5sim_wqe_count_packets(&run, wqe);
        }
        if (is_done && !is_gone && plan_p->resp_error) {
            mlx5sim_responder_fail(resp, plan_p->resp_event);
            if (resp->qp.state == MLX5SIM_QPS_ERR) {
                mlx5sim_rq_flush(resp); /* it is nothing to wait for */
            }
        }
        mlx5sim_unlock(&resp->rq_lock);
    }

    if (is_gone) {
        run.resp = NULL;
        mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, plan_p);
        return plan_p->verdict;
    }

    return plan_p->verdict;
}

void mlx5sim_wqe_lose(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                      mlx5sim_plan_t *plan_p)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);

    mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, plan_p);
}
