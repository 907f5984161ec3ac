/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/opcode.h>
#include <sim/engine/plan.h>
#include <sim/engine/qp.h>

#include <string.h>


void mlx5sim_plan_reset(mlx5sim_plan_t *plan)
{
    /* a plan has kilobytes of segments: set only what is read without looking
     * at a count or a flag */
    plan->verdict      = MLX5SIM_VERDICT_DONE;
    plan->consume_recv = 0;
    plan->has_req_cqe  = 0;
    plan->has_resp_cqe = 0;
    plan->req_error    = 0;
    plan->resp_error   = 0;
    plan->is_answered  = 0;
    plan->resp_event   = MLX5SIM_EVENT_NONE;
    plan->inv_rkey     = 0;
    plan->src_side     = MLX5SIM_SIDE_REQUESTER;
    plan->dst_side     = MLX5SIM_SIDE_RESPONDER;
    mlx5sim_plan_no_transfer(plan);
}


void mlx5sim_plan_no_transfer(mlx5sim_plan_t *plan)
{
    plan->length      = 0;
    plan->num_src     = 0;
    plan->num_dst     = 0;
    plan->atomic_size = 0;
    plan->atomic_addr = 0;
    plan->invalidate  = 0;
    plan->grh_length  = 0;
}


static void mlx5sim_plan_req_cqe(const mlx5sim_qp_t *req,
                                 const mlx5sim_wqe_t *wqe, unsigned opcode,
                                 mlx5sim_plan_t *plan)
{
    mlx5sim_cqe_t *cqe = &plan->req_cqe;

    memset(cqe, 0, sizeof(*cqe));
    cqe->opcode       = opcode;
    cqe->wqe_opcode   = wqe->opcode;
    cqe->wqe_counter  = wqe->index;
    cqe->byte_cnt     = wqe->length;
    cqe->qpn          = req->qpn;
    cqe->uidx         = req->uidx;
    plan->has_req_cqe = 1;
}


void mlx5sim_plan_req_success(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              mlx5sim_plan_t *plan)
{
    if (wqe->signaled) {
        mlx5sim_plan_req_cqe(req, wqe, MLX5SIM_CQE_REQ, plan);
    }
}


static uint8_t mlx5sim_syndrome_vendor_err(unsigned syndrome)
{
    switch (syndrome) {
    case MLX5SIM_SYNDROME_LOCAL_LENGTH:
        return MLX5SIM_VENDOR_LOCAL_LENGTH;
    case MLX5SIM_SYNDROME_LOCAL_QP_OP:
        return MLX5SIM_VENDOR_LOCAL_QP_OP;
    case MLX5SIM_SYNDROME_LOCAL_PROT:
        return MLX5SIM_VENDOR_LOCAL_PROT;
    case MLX5SIM_SYNDROME_REMOTE_INVAL_REQ:
        return MLX5SIM_VENDOR_REMOTE_INVAL;
    case MLX5SIM_SYNDROME_REMOTE_ACCESS:
        return MLX5SIM_VENDOR_REMOTE_ACCESS;
    case MLX5SIM_SYNDROME_REMOTE_OP:
        return MLX5SIM_VENDOR_REMOTE_OP;
    case MLX5SIM_SYNDROME_TRANSPORT_RETRY:
        return MLX5SIM_VENDOR_TRANSPORT_RETRY;
    case MLX5SIM_SYNDROME_RNR_RETRY:
        return MLX5SIM_VENDOR_RNR_RETRY;
    case MLX5SIM_SYNDROME_WR_FLUSH:
        return MLX5SIM_VENDOR_WR_FLUSH;
    default:
        return 0;
    }
}


void mlx5sim_plan_req_error(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            unsigned syndrome, mlx5sim_plan_t *plan)
{
    mlx5sim_plan_req_cqe(req, wqe, MLX5SIM_CQE_REQ_ERR, plan);
    plan->req_cqe.syndrome   = syndrome;
    plan->req_cqe.vendor_err = mlx5sim_syndrome_vendor_err(syndrome);
    plan->req_cqe.solicited  = 1; /* errors wake up whoever waits */
    plan->req_error          = 1;
}


void mlx5sim_plan_fail_local(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                             unsigned syndrome, mlx5sim_plan_t *plan_p)
{
    mlx5sim_plan_reset(plan_p);
    mlx5sim_plan_req_error(req, wqe, syndrome, plan_p);
}


void mlx5sim_plan_success(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          mlx5sim_plan_t *plan_p)
{
    mlx5sim_plan_reset(plan_p);
    mlx5sim_plan_req_success(req, wqe, plan_p);
}


void mlx5sim_plan_fail_remote(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              unsigned syndrome, unsigned event,
                              mlx5sim_plan_t *plan)
{
    if (!mlx5sim_qp_is_reliable(req)) {
        mlx5sim_plan_lost(req, wqe, plan);
        return;
    }

    mlx5sim_plan_fail_local(req, wqe, syndrome, plan);
    plan->resp_error = 1;
    plan->resp_event = event;
}


void mlx5sim_plan_fail_recv(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            unsigned resp_syndrome, unsigned req_syndrome,
                            mlx5sim_plan_t *plan)
{
    mlx5sim_plan_no_transfer(plan);
    plan->consume_recv        = 1;
    plan->has_resp_cqe        = 1;
    plan->resp_error          = 1;
    plan->resp_cqe.opcode     = MLX5SIM_CQE_RESP_ERR;
    plan->resp_cqe.syndrome   = resp_syndrome;
    plan->resp_cqe.vendor_err = mlx5sim_syndrome_vendor_err(resp_syndrome);
    plan->resp_cqe.solicited  = 1;
    if (mlx5sim_qp_is_reliable(req)) {
        mlx5sim_plan_req_error(req, wqe, req_syndrome, plan);
    } else {
        mlx5sim_plan_req_success(req, wqe, plan);
    }
}


void mlx5sim_plan_lost(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                       mlx5sim_plan_t *plan)
{
    mlx5sim_plan_success(req, wqe, plan);
}


int mlx5sim_plan_is_only_imm(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe)
{
    return (wqe->opcode == MLX5SIM_OPCODE_RDMA_WRITE_IMM) &&
           (wqe->length <= mlx5sim_qp_mtu(req)) && mlx5sim_qp_is_reliable(req);
}


void mlx5sim_plan_fault(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                        const mlx5sim_qp_t *resp, mlx5sim_side_t side,
                        mlx5sim_plan_t *plan)
{
    unsigned flags = mlx5sim_opcode_flags(wqe->opcode);

    (void)resp; /* its CQE is in the plan already */
    if (side == MLX5SIM_SIDE_REQUESTER) {
        mlx5sim_plan_fail_local(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT, plan);
        plan->is_answered = !!(flags & MLX5SIM_OP_SCATTER);
    } else if (flags & MLX5SIM_OP_SEND) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_PROT,
                               MLX5SIM_SYNDROME_REMOTE_OP, plan);
    } else if (mlx5sim_plan_is_only_imm(req, wqe)) {
        mlx5sim_plan_fail_recv(req, wqe, MLX5SIM_SYNDROME_LOCAL_ACCESS,
                               MLX5SIM_SYNDROME_REMOTE_ACCESS, plan);
    } else {
        mlx5sim_plan_fail_remote(req, wqe, MLX5SIM_SYNDROME_REMOTE_ACCESS,
                                 MLX5SIM_EVENT_QP_ACCESS_ERR, plan);
    }
}


void mlx5sim_plan_retry_exceeded(const mlx5sim_qp_t *req,
                                 const mlx5sim_wqe_t *wqe, int is_rnr,
                                 mlx5sim_plan_t *plan_p)
{
    mlx5sim_plan_fail_local(req, wqe,
                            is_rnr ? MLX5SIM_SYNDROME_RNR_RETRY :
                                     MLX5SIM_SYNDROME_TRANSPORT_RETRY, plan_p);
}


void mlx5sim_plan_bad_wqe(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          mlx5sim_chk_t chk, mlx5sim_plan_t *plan_p)
{
    int is_length = (chk == MLX5SIM_CHK_WQE_UD_LENGTH) ||
                    (chk == MLX5SIM_CHK_WQE_LENGTH);

    mlx5sim_plan_fail_local(req, wqe,
                            is_length ? MLX5SIM_SYNDROME_LOCAL_LENGTH :
                                        MLX5SIM_SYNDROME_LOCAL_QP_OP, plan_p);
}
