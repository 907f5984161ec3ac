/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/packet.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/engine/plan.h>
#include <sim/exec/fabric.h>
#include <sim/exec/pieces.h>
#include <sim/exec/responder.h>
#include <sim/exec/traffic.h>
#include <sim/exec/transfer.h>
#include <sim/objs/port.h>
#include <sim/objs/store.h>
#include <sim/queue/recv.h>

#include <errno.h>
#include <string.h>

/*
 * The order of checks is that of IBTA volume 1, "Responder: receiving inbound
 * request packets": the QP, the PSN, the sequence of opcodes, resources for the
 * answer, and then what the plan of the message looks at, anew for each packet.
 */


static void mlx5sim_packet_save(mlx5sim_qp_obj_t *resp, uint32_t psn,
                                uint64_t old)
{
    unsigned depth = resp->qp.max_dest_rd_atomic;
    mlx5sim_saved_t *saved;

    /* the plan made sure that there is at least one */
    saved           = &resp->saved[resp->num_saved++ % depth];
    saved->psn      = psn;
    saved->old      = old;
    saved->is_valid = 1;
}

static const mlx5sim_saved_t *
mlx5sim_packet_find_saved(const mlx5sim_qp_obj_t *resp, uint32_t psn)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_MAX_RD_ATOMIC; ++i) {
        if (resp->saved[i].is_valid && (resp->saved[i].psn == psn)) {
            return &resp->saved[i];
        }
    }

    return NULL;
}

/* A packet that was executed already, whose answer has been lost (IBTA
 * "Duplicate request packets") */
static mlx5sim_landing_t
mlx5sim_packet_duplicate(const mlx5sim_qp_obj_t *resp, unsigned flags,
                         const mlx5sim_packet_t *packet,
                         mlx5sim_landed_t *landed_p)
{
    const mlx5sim_saved_t *saved;

    /* it comes from before the connection: a peer with other PSNs */
    if (mlx5sim_psn_ahead(resp->qp.epsn, packet->psn) > resp->accepted) {
        return MLX5SIM_LANDED_IGNORED;
    }

    mlx5sim_port_count(resp->dev, resp->qp.port, MLX5SIM_PORT_DUPLICATES, 1);
    landed_p->psn = resp->qp.epsn;
    if (flags & MLX5SIM_OP_ATOMIC) {
        saved = mlx5sim_packet_find_saved(resp, packet->psn);
        if (saved == NULL) {
            return MLX5SIM_LANDED_QUIET;
        }

        landed_p->old = saved->old;
        return MLX5SIM_LANDED_ATOMIC;
    }

    return (flags & MLX5SIM_OP_SCATTER) ? MLX5SIM_LANDED_READ :
                                          MLX5SIM_LANDED_ACK;
}

/* RC: a PSN that is not the expected one */
static mlx5sim_landing_t
mlx5sim_packet_other_psn(mlx5sim_qp_obj_t *resp, unsigned flags,
                         const mlx5sim_packet_t *packet,
                         mlx5sim_landed_t *landed_p)
{
    if (mlx5sim_psn_before(packet->psn, resp->qp.epsn)) {
        return mlx5sim_packet_duplicate(resp, flags, packet, landed_p);
    }

    /* one NAK for all that follow the missing one */
    if (resp->nak_sent) {
        return MLX5SIM_LANDED_QUIET;
    }

    mlx5sim_port_count(resp->dev, resp->qp.port, MLX5SIM_PORT_GAPS, 1);
    resp->nak_sent = 1;
    landed_p->psn  = resp->qp.epsn;
    return MLX5SIM_LANDED_GAP;
}

/* UC: a message of which a packet is missing is dropped, and its receive serves
 * the next one. @return whether the packet is of use */
static int mlx5sim_packet_uc_expected(mlx5sim_qp_obj_t *resp,
                                      const mlx5sim_packet_t *packet)
{
    if (packet->is_first) {
        resp->in_message = 0;
        return 1;
    }

    if (resp->in_message && (packet->psn == resp->qp.epsn)) {
        return 1;
    }

    resp->in_message = 0;
    return 0;
}

/* What the responder refuses before it looks at the contents. @return whether
 * it does */
static int mlx5sim_packet_refused(const mlx5sim_qp_obj_t *qp,
                                  const mlx5sim_qp_obj_t *resp,
                                  const mlx5sim_wqe_t *wqe, unsigned flags,
                                  const mlx5sim_packet_t *packet,
                                  mlx5sim_plan_t *plan)
{
    /* a first packet within a message, or one that continues none */
    int is_unexpected = packet->is_first == !!resp->in_message;
    /* IBTA "Responder resources": more requests at a time than agreed on */
    int is_too_many   = (flags & MLX5SIM_OP_SCATTER) &&
                        (packet->depth >= resp->qp.max_dest_rd_atomic);

    if (!is_unexpected && !is_too_many) {
        return 0;
    }

    mlx5sim_plan_fail_remote(&qp->qp, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                             MLX5SIM_EVENT_QP_REQ_ERR, plan);
    return 1;
}

/* The effect of a packet that the responder accepts on memory.
 * @return 0 or -errno, as mlx5sim_transfer() */
static int mlx5sim_packet_move(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                               unsigned flags, const mlx5sim_packet_t *packet,
                               mlx5sim_plan_t *plan, mlx5sim_side_t *side_p,
                               mlx5sim_landed_t *landed_p)
{
    mlx5sim_qp_obj_t *resp = run->resp;
    mlx5sim_proc_t *proc   = mlx5sim_proc_by_tag(atomic_load(&resp->o.owner));
    int ret;

    *side_p = MLX5SIM_SIDE_RESPONDER;
    if (proc == NULL) {
        return -ESRCH;
    }

    if (plan->atomic_size != 0) {
        ret = mlx5sim_transfer_atomic(proc, wqe, plan, &landed_p->old);
        if (ret == 0) {
            mlx5sim_packet_save(resp, packet->psn, landed_p->old);
        }
        return ret;
    }

    if (!packet->is_last) {
        plan->has_resp_cqe = 0;
        plan->invalidate   = 0;
    }

    if (!(flags & MLX5SIM_OP_SCATTER) && (plan->length > 0)) {
        return mlx5sim_pieces_move(run, proc, wqe, packet, ~packet->placed,
                                   plan, side_p);
    }

    return mlx5sim_responder_is_alive(resp, proc) ? 0 : -ESRCH;
}

/* What the plan, carried out, means for the responder's state and for the
 * answer */
static mlx5sim_landing_t
mlx5sim_packet_accept(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                      unsigned flags, const mlx5sim_packet_t *packet,
                      mlx5sim_plan_t *plan, mlx5sim_landed_t *landed_p)
{
    mlx5sim_qp_obj_t *resp = run->resp;

    resp->nak_sent  = 0;
    resp->accepted += packet->packets;
    resp->qp.epsn   = mlx5sim_psn_add(packet->psn, packet->packets);
    landed_p->psn   = resp->qp.epsn;
    if (packet->is_first) {
        mlx5sim_traffic_taken(resp, wqe);
    }
    if (flags & MLX5SIM_OP_SCATTER) {
        return (flags & MLX5SIM_OP_ATOMIC) ? MLX5SIM_LANDED_ATOMIC :
                                             MLX5SIM_LANDED_READ;
    }

    if (!packet->is_last) {
        /* a UC message that is lost moves nothing */
        resp->in_message = (plan->length > 0);
        mlx5sim_recv_hold(resp);
        return MLX5SIM_LANDED_QUIET;
    }

    resp->in_message = 0;
    mlx5sim_responder_deliver(resp, plan);
    if (plan->resp_error) {
        /* no room for the CQE */
        mlx5sim_responder_fail(resp, plan->resp_event);
    }
    return (run->req->qp.type == MLX5SIM_QPT_RC) ? MLX5SIM_LANDED_ACK :
                                                   MLX5SIM_LANDED_QUIET;
}

static int mlx5sim_packet_is_alive(const mlx5sim_qp_obj_t *resp)
{
    const mlx5sim_proc_t *proc;

    proc = mlx5sim_proc_by_tag(atomic_load(&resp->o.owner));
    return (proc != NULL) && mlx5sim_responder_is_alive(resp, proc);
}

/* The plan is an error. Whose? */
static mlx5sim_landing_t
mlx5sim_packet_error(mlx5sim_run_t *run, mlx5sim_plan_t *plan,
                     mlx5sim_landed_t *landed_p)
{
    landed_p->psn      = run->req->qp.psn;
    landed_p->syndrome = plan->req_error ? plan->req_cqe.syndrome : 0;
    if (!plan->resp_error) {
        return MLX5SIM_LANDED_LOCAL;
    }

    if (!mlx5sim_packet_is_alive(run->resp)) {
        return MLX5SIM_LANDED_GONE;
    }

    mlx5sim_responder_deliver(run->resp, plan);
    mlx5sim_responder_fail(run->resp, plan->resp_event);
    return plan->req_error ? MLX5SIM_LANDED_ERROR : MLX5SIM_LANDED_QUIET;
}

/* With the responder's lock held, or without a responder */
static mlx5sim_landing_t
mlx5sim_packet_land_at(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                       const mlx5sim_packet_t *packet,
                       mlx5sim_landed_t *landed_p)
{
    const mlx5sim_env_t env = mlx5sim_responder_env(run);
    mlx5sim_qp_obj_t *qp    = run->req;
    mlx5sim_qp_obj_t *resp  = run->resp;
    unsigned flags          = mlx5sim_opcode_flags(wqe->opcode);
    mlx5sim_side_t side;
    mlx5sim_plan_t plan;
    int answers, ret;

    answers = (resp != NULL) && mlx5sim_qp_answers(&resp->qp, &qp->qp, wqe);
    if (answers && (qp->qp.type == MLX5SIM_QPT_UC) &&
        !mlx5sim_packet_uc_expected(resp, packet)) {
        return MLX5SIM_LANDED_QUIET;
    }

    if (answers && (qp->qp.type == MLX5SIM_QPT_RC) &&
        (packet->psn != resp->qp.epsn)) {
        return mlx5sim_packet_other_psn(resp, flags, packet, landed_p);
    }

    if (answers && mlx5sim_packet_refused(qp, resp, wqe, flags, packet,
                                          &plan)) {
        return mlx5sim_packet_error(run, &plan, landed_p);
    }

    /* not before: others have no say in where a message goes */
    if (answers) {
        mlx5sim_fabric_bind(resp, wqe);
    }

    mlx5sim_plan_make(&qp->qp, wqe, (resp != NULL) ? &resp->qp : NULL, &env,
                      &plan);
    if (run->recv_gone) {
        return MLX5SIM_LANDED_GONE;
    } else if (plan.verdict == MLX5SIM_VERDICT_RNR) {
        mlx5sim_port_count(resp->dev, resp->qp.port, MLX5SIM_PORT_NO_RECEIVE,
                           1);
        landed_p->psn      = resp->qp.epsn;
        landed_p->syndrome = resp->qp.min_rnr_timer;
        landed_p->timer    = mlx5sim_rnr_timer_ns(resp->qp.min_rnr_timer);
        return MLX5SIM_LANDED_RNR;
    } else if (plan.verdict == MLX5SIM_VERDICT_GONE) {
        return MLX5SIM_LANDED_GONE;
    } else if (plan.verdict == MLX5SIM_VERDICT_RETRY) {
        return mlx5sim_packet_is_alive(resp) ? MLX5SIM_LANDED_IGNORED :
                                               MLX5SIM_LANDED_GONE;
    } else if ((plan.req_error && !plan.is_answered) || plan.resp_error) {
        return mlx5sim_packet_error(run, &plan, landed_p);
    } else if (!answers) {
        return MLX5SIM_LANDED_QUIET; /* UC */
    }

    ret = mlx5sim_packet_move(run, wqe, flags, packet, &plan, &side, landed_p);
    if (ret == -EFAULT) {
        mlx5sim_plan_fault(&qp->qp, wqe, &resp->qp, side, &plan);
        return mlx5sim_packet_error(run, &plan, landed_p);
    }

    return (ret != 0) ? MLX5SIM_LANDED_GONE :
                        mlx5sim_packet_accept(run, wqe, flags, packet, &plan,
                                              landed_p);
}

/* A packet that was sent, and what the responder sends for it. Whether that
 * gets lost is not known yet. */
static void mlx5sim_packet_account(const mlx5sim_run_t *run,
                                   const mlx5sim_wqe_t *wqe,
                                   const mlx5sim_packet_t *packet,
                                   mlx5sim_landing_t landing)
{
    const mlx5sim_qp_obj_t *qp = run->req;
    uint32_t skipped;

    mlx5sim_packet_sent(qp, wqe, run->resp, packet);
    switch (landing) {
    case MLX5SIM_LANDED_READ:
        /* one that comes again asks for what is missing */
        skipped = (mlx5sim_packet_count(&qp->qp, wqe->length) -
                   packet->packets) * mlx5sim_qp_mtu(&qp->qp);
        mlx5sim_traffic_answer(qp, wqe, run->resp, packet->packets,
                               wqe->length - skipped);
        break;
    case MLX5SIM_LANDED_ACK:
    case MLX5SIM_LANDED_ATOMIC:
    case MLX5SIM_LANDED_RNR:
    case MLX5SIM_LANDED_GAP:
    case MLX5SIM_LANDED_ERROR:
        mlx5sim_traffic_answer(qp, wqe, run->resp, 1, 0);
        break;
    default:
        break;
    }
}

void mlx5sim_packet_sent(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_qp_obj_t *resp,
                         const mlx5sim_packet_t *packet)
{
    uint32_t packets =
            (mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_SCATTER) ?
            1 : packet->packets;

    if (!mlx5sim_qp_is_cut_off(qp)) {
        mlx5sim_traffic_request(qp, wqe, resp, packets, packet->length,
                                packet->is_first, packet->is_last);
    }
}

mlx5sim_landing_t
mlx5sim_packet_land(mlx5sim_qp_obj_t *qp, mlx5sim_wqe_t *wqe,
                    const mlx5sim_packet_t *packet,
                    mlx5sim_landed_t *landed_p)
{
    mlx5sim_run_t run = {.req = qp};
    mlx5sim_landing_t landing;

    qp->qp.psn = packet->psn;
    wqe->later = packet->is_last ? 0 :
                 (wqe->length - packet->offset - packet->length);
    if (mlx5sim_fabric_is_down(qp, wqe)) {
        return MLX5SIM_LANDED_IGNORED;
    }

    run.resp = mlx5sim_fabric_find(qp, wqe);
    landing  = mlx5sim_packet_land_at(&run, wqe, packet, landed_p);
    if ((landing != MLX5SIM_LANDED_LOCAL) && !qp->is_remote) {
        mlx5sim_packet_account(&run, wqe, packet, landing);
    }
    if (run.resp != NULL) {
        mlx5sim_recv_release(run.resp);
        mlx5sim_unlock(&run.resp->rq_lock);
    }

    return landing;
}

/* What is to be reported with the completion */
static void mlx5sim_packet_scattered(const mlx5sim_plan_t *plan,
                                     mlx5sim_landed_t *landed_p)
{
    landed_p->scattered = plan->has_req_cqe ? plan->req_cqe.scattered : 0;
    memcpy(landed_p->data, plan->req_cqe.data, landed_p->scattered);
}

mlx5sim_proc_t *
mlx5sim_packet_plan_read(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                         int is_nak_next, mlx5sim_plan_t *plan_p)
{
    const mlx5sim_env_t env = mlx5sim_responder_env(run);
    mlx5sim_proc_t *proc;
    mlx5sim_qp_t resp;

    run->resp = mlx5sim_fabric_find(run->req, wqe);
    proc      = (run->resp == NULL) ? NULL :
                mlx5sim_proc_by_tag(atomic_load(&run->resp->o.owner));
    if (proc == NULL) {
        return NULL;
    }

    /* what comes before a NAK is still sent */
    resp = mlx5sim_fabric_view(run->resp, wqe);
    if (is_nak_next && (resp.state == MLX5SIM_QPS_ERR)) {
        resp.state = MLX5SIM_QPS_RTS;
    }

    mlx5sim_plan_answer(&run->req->qp, wqe, &resp, &env, plan_p);
    return proc;
}

mlx5sim_landing_t
mlx5sim_packet_answer_read(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                           uint32_t offset, uint32_t length, int is_nak_next,
                           mlx5sim_landed_t *landed_p)
{
    mlx5sim_run_t run         = {.req = qp};
    mlx5sim_landing_t landing = MLX5SIM_LANDED_GONE;
    mlx5sim_side_t side;
    mlx5sim_proc_t *proc;
    mlx5sim_plan_t plan;
    int ret = 0;

    if (mlx5sim_fabric_is_down(qp, wqe)) {
        return MLX5SIM_LANDED_IGNORED;
    }

    proc = mlx5sim_packet_plan_read(&run, wqe, is_nak_next, &plan);
    if (proc == NULL) {
        goto out;
    }

    if (plan.verdict != MLX5SIM_VERDICT_DONE) {
        landing = MLX5SIM_LANDED_IGNORED;
        goto out;
    }

    if (!plan.req_error && (length > 0)) {
        mlx5sim_plan_cut(&plan, offset, length);
        ret = mlx5sim_transfer(qp, run.resp, proc, wqe, &plan, &side);
        if (ret == -EFAULT) {
            mlx5sim_plan_fault(&qp->qp, wqe, &run.resp->qp, side, &plan);
            ret = 0;
        }
    }

    if ((ret == 0) && plan.req_error) {
        landing = mlx5sim_packet_error(&run, &plan, landed_p);
    } else if (ret == 0) {
        mlx5sim_packet_scattered(&plan, landed_p);
        landing = MLX5SIM_LANDED_ACK;
    }

out:
    if (run.resp != NULL) {
        mlx5sim_unlock(&run.resp->rq_lock);
    }
    return landing;
}

mlx5sim_landing_t
mlx5sim_packet_answer_atomic(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                             uint64_t old, mlx5sim_landed_t *landed_p)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);
    mlx5sim_plan_t plan;

    mlx5sim_plan_answer(&qp->qp, wqe, NULL, &env, &plan);
    if (plan.req_error ||
        (mlx5sim_transfer_result(qp, wqe, old, &plan) != 0)) {
        landed_p->syndrome = MLX5SIM_SYNDROME_LOCAL_PROT;
        return MLX5SIM_LANDED_LOCAL;
    }

    mlx5sim_packet_scattered(&plan, landed_p);
    return MLX5SIM_LANDED_ACK;
}
