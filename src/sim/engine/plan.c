/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/opcode.h>
#include <sim/engine/plan.h>
#include <sim/engine/qp.h>

#include <string.h>

/*
 * Checks are made in the order of the hardware (IBTA volume 1, "Error
 * detection and handling"): what the requester finds in its own request, then
 * whether the responder can answer at all, then what the responder finds. A
 * plan that fails has no effect on memory.
 */


/** How an operation on the responder's queue or memory is reported there. */
static unsigned mlx5sim_resp_cqe_opcode(unsigned wqe_opcode)
{
    switch (wqe_opcode) {
    case MLX5SIM_OPCODE_RDMA_WRITE_IMM:
        return MLX5SIM_CQE_RESP_WR_IMM;
    case MLX5SIM_OPCODE_SEND_IMM:
        return MLX5SIM_CQE_RESP_SEND_IMM;
    case MLX5SIM_OPCODE_SEND_INVAL:
        return MLX5SIM_CQE_RESP_SEND_INV;
    default:
        return MLX5SIM_CQE_RESP_SEND;
    }
}


static void mlx5sim_plan_resp_cqe(const mlx5sim_qp_t *req,
                                  const mlx5sim_wqe_t *wqe,
                                  const mlx5sim_qp_t *resp,
                                  uint16_t recv_index, mlx5sim_plan_t *plan)
{
    mlx5sim_cqe_t *cqe = &plan->resp_cqe;
    int has_av         = mlx5sim_qp_has_av(req);

    memset(cqe, 0, sizeof(*cqe));
    cqe->opcode        = mlx5sim_resp_cqe_opcode(wqe->opcode);
    cqe->solicited     = wqe->solicited;
    cqe->sl            = req->sl & 0xf;
    cqe->wqe_counter   = recv_index;
    cqe->slid          = req->lid | ((has_av ? wqe->av.path_bits :
                                               req->path_bits) &
                                     req->path_mask);
    cqe->path_bits     = (has_av ? wqe->av.dlid : req->dlid) & resp->path_mask;
    cqe->byte_cnt      = wqe->length;
    cqe->imm           = wqe->imm;
    cqe->qpn           = resp->qpn;
    cqe->uidx          = resp->uidx;
    cqe->srqn          = resp->srqn;
    cqe->src_qpn       = req->qpn;
    plan->has_resp_cqe = 1;
    plan->consume_recv = 1;
}


/** Take a receive WQE. @return 1 if there is one; 0 if the plan is finished. */
static int mlx5sim_plan_take_recv(const mlx5sim_qp_t *req,
                                  const mlx5sim_wqe_t *wqe,
                                  const mlx5sim_env_t *env,
                                  mlx5sim_recv_wqe_t *recv,
                                  mlx5sim_plan_t *plan)
{
    int ret = env->recv_peek(env->arg, recv);

    if (ret > 0) {
        return 1;
    }

    if (ret < 0) {
        /* no way to tell which receive WQE to complete */
        if (mlx5sim_qp_is_reliable(req)) {
            mlx5sim_plan_fail_local(req, wqe, MLX5SIM_SYNDROME_REMOTE_OP, plan);
        } else {
            mlx5sim_plan_lost(req, wqe, plan);
        }
        plan->resp_error = 1;
        plan->resp_event = MLX5SIM_EVENT_QP_FATAL;
    } else if (mlx5sim_qp_is_reliable(req)) {
        mlx5sim_plan_reset(plan);
        plan->verdict = MLX5SIM_VERDICT_RNR;
    } else {
        mlx5sim_plan_lost(req, wqe, plan);
    }

    return 0;
}


static void mlx5sim_plan_send(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              const mlx5sim_qp_t *resp,
                              const mlx5sim_env_t *env, mlx5sim_plan_t *plan)
{
    uint32_t length = wqe->length - wqe->later;
    mlx5sim_recv_wqe_t recv;
    const mlx5sim_mr_t *mr;

    if (wqe->opcode == MLX5SIM_OPCODE_SEND_INVAL) {
        mr = env->mr_find(env->arg, MLX5SIM_SIDE_RESPONDER, wqe->imm);
        if ((mr == NULL) || (mr->pdn != resp->pdn) ||
            (mr->window_type != MLX5SIM_WINDOW_TYPE_2)) {
            mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_ACCESS,
                                     MLX5SIM_EVENT_QP_ACCESS_ERR, plan);
            return;
        }
    }

    if (!mlx5sim_plan_take_recv(req, wqe, env, &recv, plan)) {
        return;
    }

    mlx5sim_plan_resp_cqe(req, wqe, resp, recv.index, plan);
    if (length > recv.length) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_LENGTH,
                               MLX5SIM_SYNDROME_REMOTE_INVAL_REQ, plan);
        return;
    }

    if (mlx5sim_plan_recv_list(resp, &recv, env, 0, length, plan->dst,
                               &plan->num_dst) != 0) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT,
                               MLX5SIM_SYNDROME_REMOTE_OP, plan);
        return;
    }

    plan->length = length;
    if (wqe->opcode == MLX5SIM_OPCODE_SEND_INVAL) {
        plan->invalidate = 1;
        plan->inv_rkey   = wqe->imm;
    }
    mlx5sim_plan_req_success(req, wqe, plan);
}


/** Whether the responder's QP lets others do that.
 *  @return 0, or -1 if the plan is finished. */
static int mlx5sim_plan_check_access(const mlx5sim_qp_t *req,
                                     const mlx5sim_wqe_t *wqe,
                                     const mlx5sim_qp_t *resp, uint32_t access,
                                     mlx5sim_plan_t *plan)
{
    if (resp->access & access) {
        return 0;
    }

    mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                             MLX5SIM_EVENT_QP_REQ_ERR, plan);
    return -1;
}


/** Resolve the remote address of a request; one of 0 bytes has none.
 *  @return 0, or -1 if its key does not lead there. */
static int mlx5sim_plan_find_remote(const mlx5sim_wqe_t *wqe,
                                    const mlx5sim_qp_t *resp,
                                    const mlx5sim_env_t *env, uint32_t access,
                                    mlx5sim_seg_t *seg_p)
{
    /* IBTA "R_Key validation": none for a request of 0 bytes */
    return (wqe->length == 0) ? 0 :
           mlx5sim_plan_place(env, MLX5SIM_SIDE_RESPONDER, wqe->rkey, resp->pdn,
                              access, wqe->raddr, wqe->length, seg_p);
}


/** Both. @return 0, or -1 if the plan is finished. */
static int mlx5sim_plan_remote(const mlx5sim_qp_t *req,
                               const mlx5sim_wqe_t *wqe,
                               const mlx5sim_qp_t *resp,
                               const mlx5sim_env_t *env, uint32_t access,
                               mlx5sim_seg_t *seg_p, mlx5sim_plan_t *plan)
{
    if (mlx5sim_plan_check_access(req, wqe, resp, access, plan) != 0) {
        return -1;
    }

    if (mlx5sim_plan_find_remote(wqe, resp, env, access, seg_p) != 0) {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_ACCESS,
                                 MLX5SIM_EVENT_QP_ACCESS_ERR, plan);
        return -1;
    }

    return 0;
}


/** A packet that is a whole write with immediate takes a receive before its key
 *  is looked at, so that the receive ends with the error (IBTA "Completion
 *  return status", local access error, which is for that alone; rxe, too, has
 *  check_resource() in front of check_rkey()). */
static void mlx5sim_plan_write_only_imm(const mlx5sim_qp_t *req,
                                        const mlx5sim_wqe_t *wqe,
                                        const mlx5sim_qp_t *resp,
                                        const mlx5sim_env_t *env,
                                        mlx5sim_plan_t *plan)
{
    mlx5sim_recv_wqe_t recv;

    if ((mlx5sim_plan_check_access(req, wqe, resp, MLX5SIM_ACCESS_REMOTE_WRITE,
                                   plan) != 0) ||
        !mlx5sim_plan_take_recv(req, wqe, env, &recv, plan)) {
        return;
    }

    mlx5sim_plan_resp_cqe(req, wqe, resp, recv.index, plan);
    if (mlx5sim_plan_find_remote(wqe, resp, env, MLX5SIM_ACCESS_REMOTE_WRITE,
                                 plan->dst) != 0) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_ACCESS,
                               MLX5SIM_SYNDROME_REMOTE_ACCESS, plan);
        return;
    }

    plan->num_dst = (wqe->length > 0) ? 1 : 0;
    plan->length  = wqe->length;
    mlx5sim_plan_req_success(req, wqe, plan);
}


static void mlx5sim_plan_write(const mlx5sim_qp_t *req,
                               const mlx5sim_wqe_t *wqe,
                               const mlx5sim_qp_t *resp,
                               const mlx5sim_env_t *env, mlx5sim_plan_t *plan)
{
    mlx5sim_recv_wqe_t recv;

    if (mlx5sim_plan_is_only_imm(req, wqe)) {
        mlx5sim_plan_write_only_imm(req, wqe, resp, env, plan);
        return;
    }

    if (mlx5sim_plan_remote(req, wqe, resp, env, MLX5SIM_ACCESS_REMOTE_WRITE,
                            plan->dst, plan) != 0) {
        return;
    }

    /* IBTA: it is the last packet that has the immediate */
    if ((wqe->opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM) && (wqe->later == 0)) {
        if (!mlx5sim_plan_take_recv(req, wqe, env, &recv, plan)) {
            return;
        }
        mlx5sim_plan_resp_cqe(req, wqe, resp, recv.index, plan);
    }

    plan->num_dst = (wqe->length > 0) ? 1 : 0;
    plan->length  = wqe->length;
    mlx5sim_plan_req_success(req, wqe, plan);
}


/** Reads and atomics need a place to be answered from. */
static int mlx5sim_plan_check_rd_atomic(const mlx5sim_qp_t *req,
                                        const mlx5sim_wqe_t *wqe,
                                        const mlx5sim_qp_t *resp,
                                        mlx5sim_plan_t *plan)
{
    if (resp->max_dest_rd_atomic > 0) {
        return 0;
    }

    mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                             MLX5SIM_EVENT_QP_REQ_ERR, plan);
    return -1;
}


static void mlx5sim_plan_read(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              const mlx5sim_qp_t *resp,
                              const mlx5sim_env_t *env, mlx5sim_plan_t *plan)
{
    if ((mlx5sim_plan_check_rd_atomic(req, wqe, resp, plan) != 0) ||
        (mlx5sim_plan_remote(req, wqe, resp, env, MLX5SIM_ACCESS_REMOTE_READ,
                             plan->src, plan) != 0)) {
        return;
    }

    plan->num_src  = (wqe->length > 0) ? 1 : 0;
    plan->src_side = MLX5SIM_SIDE_RESPONDER;
    plan->dst_side = MLX5SIM_SIDE_REQUESTER;
    plan->length   = wqe->length;
    mlx5sim_plan_req_success(req, wqe, plan);
}


static void mlx5sim_plan_atomic(const mlx5sim_qp_t *req,
                                const mlx5sim_wqe_t *wqe,
                                const mlx5sim_qp_t *resp,
                                const mlx5sim_env_t *env, mlx5sim_plan_t *plan)
{
    mlx5sim_seg_t seg;

    if (mlx5sim_plan_check_rd_atomic(req, wqe, resp, plan) != 0) {
        return;
    }

    if (wqe->raddr & (wqe->atomic_size - 1)) {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                                 MLX5SIM_EVENT_QP_REQ_ERR, plan);
        return;
    }

    if (mlx5sim_plan_remote(req, wqe, resp, env, MLX5SIM_ACCESS_REMOTE_ATOMIC,
                            &seg, plan) != 0) {
        return;
    }

    /* What an adapter does with one that is in two pieces is not known: there
     * is nothing that would be atomic */
    if (seg.has_layout &&
        (env->layout_find(env->arg, MLX5SIM_SIDE_RESPONDER, wqe->rkey,
                          MLX5SIM_ACCESS_REMOTE_ATOMIC, wqe->raddr,
                          wqe->atomic_size, &seg.addr) != wqe->atomic_size)) {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_ACCESS,
                                 MLX5SIM_EVENT_QP_ACCESS_ERR, plan);
        return;
    }

    plan->src_side    = MLX5SIM_SIDE_RESPONDER;
    plan->dst_side    = MLX5SIM_SIDE_REQUESTER;
    plan->atomic_size = wqe->atomic_size;
    plan->atomic_addr = seg.addr;
    mlx5sim_plan_req_success(req, wqe, plan);
}


/** Packets of all but the last have the size of the path MTU, on which both
 *  sides have to agree (IBTA "Packet payload length": the responder answers
 *  others with an invalid request; a requester reports responses it did not
 *  expect). A message that fits into one packet of both shows no difference.
 *  @return 0, or -1 if the plan is finished. */
static int mlx5sim_plan_check_mtu(const mlx5sim_qp_t *req,
                                  const mlx5sim_wqe_t *wqe, unsigned flags,
                                  const mlx5sim_qp_t *resp,
                                  mlx5sim_plan_t *plan)
{
    if ((req->path_mtu == resp->path_mtu) ||
        ((wqe->length <= mlx5sim_qp_mtu(req)) &&
         (wqe->length <= mlx5sim_qp_mtu(resp)))) {
        return 0;
    }

    if (flags & MLX5SIM_OP_SCATTER) {
        mlx5sim_plan_fail_local(req, wqe, MLX5SIM_SYNDROME_BAD_RESP, plan);
    } else {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                                 MLX5SIM_EVENT_QP_REQ_ERR, plan);
    }
    return -1;
}


/** RC, UC and DC, once what the requester sends is in order. */
static void mlx5sim_plan_connected(const mlx5sim_qp_t *req,
                                   const mlx5sim_wqe_t *wqe, unsigned flags,
                                   const mlx5sim_qp_t *resp,
                                   const mlx5sim_env_t *env,
                                   mlx5sim_plan_t *plan)
{
    int is_reliable = mlx5sim_qp_is_reliable(req);

    if (resp == NULL) {
        if (is_reliable) {
            mlx5sim_plan_reset(plan);
            plan->verdict = MLX5SIM_VERDICT_GONE;
        } else {
            mlx5sim_plan_lost(req, wqe, plan);
        }
        return;
    }

    /* Other PSNs are not answered, or in a way the requester does not take for
     * an answer (IBTA "PSN verification", "ghost acknowledge"). UC starts with
     * that of any message. */
    if (!mlx5sim_qp_answers(resp, req, wqe) ||
        ((req->type == MLX5SIM_QPT_RC) && (resp->epsn != req->psn))) {
        if (is_reliable) {
            mlx5sim_plan_reset(plan);
            plan->verdict = MLX5SIM_VERDICT_RETRY;
        } else {
            mlx5sim_plan_lost(req, wqe, plan);
        }
        return;
    }

    if (mlx5sim_plan_check_mtu(req, wqe, flags, resp, plan) != 0) {
        return;
    }

    /* No SRQ of that number in the target's domain. That it is an invalid
     * request is a guess. */
    if ((req->xrc == MLX5SIM_XRC_INI) &&
        ((resp->srqn == 0) || (resp->srqn != wqe->srqn))) {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ,
                                 MLX5SIM_EVENT_QP_REQ_ERR, plan);
        return;
    }

    if (flags & MLX5SIM_OP_SEND) {
        mlx5sim_plan_send(req, wqe, resp, env, plan);
    } else if (flags & MLX5SIM_OP_ATOMIC) {
        mlx5sim_plan_atomic(req, wqe, resp, env, plan);
    } else if (flags & MLX5SIM_OP_SCATTER) {
        mlx5sim_plan_read(req, wqe, resp, env, plan);
    } else {
        mlx5sim_plan_write(req, wqe, resp, env, plan);
    }
}


/** Insert the network header ahead of the gather list. */
static void mlx5sim_plan_add_grh(const mlx5sim_qp_t *req,
                                 const mlx5sim_wqe_t *wqe, mlx5sim_plan_t *plan)
{
    unsigned packet_type = mlx5sim_plan_grh(req, wqe, plan->grh);
    unsigned i;

    for (i = plan->num_src; i > 0; --i) {
        plan->src[i] = plan->src[i - 1];
    }

    plan->src[0].addr   = (uintptr_t)plan->grh;
    plan->src[0].length = MLX5SIM_GRH_LENGTH;
    plan->src[0].lkey   = 0;
    plan->src[0].inl    = plan->grh;
    plan->src[0].has_layout = 0;
    plan->grh_length    = MLX5SIM_GRH_LENGTH;
    ++plan->num_src;

    plan->resp_cqe.has_grh = 1;
    if (req->is_roce) {
        plan->resp_cqe.sl = packet_type;
    }
}


static void mlx5sim_plan_datagram(const mlx5sim_qp_t *req,
                                  const mlx5sim_wqe_t *wqe,
                                  const mlx5sim_qp_t *resp,
                                  const mlx5sim_env_t *env,
                                  mlx5sim_plan_t *plan)
{
    uint32_t grh_length = wqe->av.has_grh ? MLX5SIM_GRH_LENGTH : 0;
    mlx5sim_recv_wqe_t recv;

    if ((resp == NULL) || (resp->type != MLX5SIM_QPT_UD) ||
        !mlx5sim_qp_is_receiving(resp) || (wqe->av.qkey != resp->qkey) ||
        !mlx5sim_pkey_matches(req->pkey, resp->pkey)) {
        mlx5sim_plan_lost(req, wqe, plan);
        return;
    }

    if (!mlx5sim_plan_take_recv(req, wqe, env, &recv, plan)) {
        return;
    }

    mlx5sim_plan_resp_cqe(req, wqe, resp, recv.index, plan);
    plan->resp_cqe.sl       = wqe->av.sl;
    plan->resp_cqe.byte_cnt = wqe->length + MLX5SIM_GRH_LENGTH;
    plan->resp_cqe.pkey     = resp->pkey;
    if (plan->resp_cqe.byte_cnt > recv.length) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_LENGTH, 0,
                               plan);
        return;
    }

    /* Without a GRH the first 40 bytes stay as they are, but count. */
    if (mlx5sim_plan_recv_list(resp, &recv, env,
                               MLX5SIM_GRH_LENGTH - grh_length,
                               grh_length + wqe->length, plan->dst,
                               &plan->num_dst) != 0) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT, 0, plan);
        return;
    }

    if (wqe->av.has_grh) {
        mlx5sim_plan_add_grh(req, wqe, plan);
    }
    plan->length = grh_length + wqe->length;
    mlx5sim_plan_req_success(req, wqe, plan);
}


/** Errors that the requester finds without its peer; 0: none. */
static unsigned mlx5sim_plan_check_request(const mlx5sim_qp_t *req,
                                           const mlx5sim_wqe_t *wqe,
                                           unsigned flags)
{
    if (!mlx5sim_opcode_allowed(flags, req->type)) {
        return MLX5SIM_SYNDROME_LOCAL_QP_OP;
    }

    if ((wqe->length > MLX5SIM_MAX_MESSAGE) ||
        ((req->type == MLX5SIM_QPT_UD) &&
         (wqe->length > mlx5sim_qp_mtu(req)))) {
        return MLX5SIM_SYNDROME_LOCAL_LENGTH;
    }

    if ((flags & MLX5SIM_OP_SCATTER) && (req->max_rd_atomic == 0)) {
        return MLX5SIM_SYNDROME_LOCAL_QP_OP;
    }

    return 0;
}


/** An answer is on its way for which the requester has no place, which it finds
 *  out when it comes (IBTA "Requester: detecting errors", local memory
 *  protection error of a response): what the responder finds is first. */
static void mlx5sim_plan_no_place(const mlx5sim_qp_t *req,
                                  const mlx5sim_wqe_t *wqe,
                                  mlx5sim_plan_t *plan)
{
    if ((plan->verdict == MLX5SIM_VERDICT_DONE) && !plan->req_error) {
        mlx5sim_plan_req_error(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT, plan);
        plan->is_answered = 1;
    }
}


void mlx5sim_plan_make(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                       const mlx5sim_qp_t *resp, const mlx5sim_env_t *env,
                       mlx5sim_plan_t *plan_p)
{
    unsigned flags    = mlx5sim_opcode_flags(wqe->opcode);
    unsigned syndrome = mlx5sim_plan_check_request(req, wqe, flags);
    int ret;

    if (syndrome != 0) {
        mlx5sim_plan_fail_local(req, wqe, syndrome, plan_p);
        return;
    }

    mlx5sim_plan_reset(plan_p);
    if (mlx5sim_opcode_is_local(wqe->opcode)) {
        mlx5sim_plan_req_success(req, wqe, plan_p);
    } else if (flags & MLX5SIM_OP_SCATTER) {
        ret = mlx5sim_plan_local_list(req, wqe, env, MLX5SIM_ACCESS_LOCAL_WRITE,
                                      plan_p->dst, &plan_p->num_dst);
        mlx5sim_plan_connected(req, wqe, flags, resp, env, plan_p);
        if (ret != 0) {
            mlx5sim_plan_no_place(req, wqe, plan_p);
        }
    } else if (mlx5sim_plan_local_list(req, wqe, env, 0, plan_p->src,
                                       &plan_p->num_src) != 0) {
        mlx5sim_plan_fail_local(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT, plan_p);
    } else if (req->type == MLX5SIM_QPT_UD) {
        mlx5sim_plan_datagram(req, wqe, resp, env, plan_p);
    } else {
        mlx5sim_plan_connected(req, wqe, flags, resp, env, plan_p);
    }
}


void mlx5sim_plan_answer(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_qp_t *resp, const mlx5sim_env_t *env,
                         mlx5sim_plan_t *plan_p)
{
    int ret;

    mlx5sim_plan_reset(plan_p);
    ret = mlx5sim_plan_local_list(req, wqe, env, MLX5SIM_ACCESS_LOCAL_WRITE,
                                  plan_p->dst, &plan_p->num_dst);
    if (mlx5sim_opcode_flags(wqe->opcode) & MLX5SIM_OP_ATOMIC) {
        plan_p->dst_side    = MLX5SIM_SIDE_REQUESTER;
        plan_p->atomic_size = wqe->atomic_size;
        mlx5sim_plan_req_success(req, wqe, plan_p);
    } else if ((resp == NULL) || !mlx5sim_qp_answers(resp, req, wqe)) {
        plan_p->verdict = MLX5SIM_VERDICT_RETRY;
    } else {
        mlx5sim_plan_read(req, wqe, resp, env, plan_p);
    }
    if (ret != 0) {
        mlx5sim_plan_no_place(req, wqe, plan_p);
    }
}
