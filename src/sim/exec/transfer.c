/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/transfer.h>
#include <sim/engine/mlx5_def.h>
#include <sim/exec/iov.h>
#include <sim/objs/mem.h>
#include <sim/objs/pcie.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <string.h>

#define MLX5SIM_ATOMIC_LOCK_SHIFT 3


/* Which side of a failed copy is not mapped? Reading our own buffers through
 * the kernel tells without risk. */
static mlx5sim_side_t
mlx5sim_transfer_fault_side(const struct iovec *local, unsigned num_local)
{
    const mlx5sim_proc_t *self = mlx5sim_proc_self();
    char byte;
    unsigned i;

    for (i = 0; i < num_local; ++i) {
        if ((mlx5sim_mem_read(self, (uintptr_t)local[i].iov_base, &byte,
                              1) != 0) ||
            (mlx5sim_mem_read(self, (uintptr_t)local[i].iov_base +
                              local[i].iov_len - 1, &byte, 1) != 0)) {
            return MLX5SIM_SIDE_REQUESTER;
        }
    }

    return MLX5SIM_SIDE_RESPONDER;
}

/* Count the pieces that are in memory, and not in a work request or a CQE */
static void mlx5sim_transfer_count(const mlx5sim_plan_t *plan,
                                   mlx5sim_proc_t *resp_proc, int is_in_cqe)
{
    mlx5sim_proc_t *req_proc = mlx5sim_proc_self();
    int is_send              = plan->src_side == MLX5SIM_SIDE_REQUESTER;
    unsigned num_src = 0, num_dst = 0, i;

    for (i = 0; i < plan->num_src; ++i) {
        num_src += (plan->src[i].inl == NULL) && (plan->src[i].length > 0);
    }
    for (i = 0; !is_in_cqe && (i < plan->num_dst); ++i) {
        num_dst += plan->dst[i].length > 0;
    }

    mlx5sim_pcie_read(is_send ? req_proc : resp_proc, num_src);
    mlx5sim_pcie_written(is_send ? resp_proc : req_proc, num_dst);
}

static int mlx5sim_transfer_copy(const mlx5sim_plan_t *plan,
                                 const mlx5sim_proc_t *resp_proc,
                                 mlx5sim_side_t *side_p)
{
    int is_send = plan->src_side == MLX5SIM_SIDE_REQUESTER;
    struct iovec src[MLX5SIM_IOV_MAX], dst[MLX5SIM_IOV_MAX];
    unsigned num_src, num_dst;
    int ret;

    mlx5sim_iov_plan(plan, src, &num_src, dst, &num_dst);
    ret = is_send ? mlx5sim_mem_writev(resp_proc, src, num_src, dst, num_dst,
                                       plan->length) :
                    mlx5sim_mem_readv(resp_proc, dst, num_dst, src, num_src,
                                      plan->length);
    if (ret == -EFAULT) {
        *side_p = mlx5sim_transfer_fault_side(is_send ? src : dst,
                                              is_send ? num_src : num_dst);
    }

    return ret;
}

/* Whether the payload is received into the responder's CQE (PRM, cs_res), which
 * is what libmlx5 asks for unless told not to */
static int mlx5sim_transfer_fits_resp(const mlx5sim_qp_obj_t *resp,
                                      const mlx5sim_plan_t *plan)
{
    const mlx5sim_cq_t *cq;

    if (!resp->qp.scatter_cqe || !plan->has_resp_cqe ||
        ((plan->resp_cqe.opcode != MLX5SIM_CQE_RESP_SEND) &&
         (plan->resp_cqe.opcode != MLX5SIM_CQE_RESP_SEND_IMM) &&
         (plan->resp_cqe.opcode != MLX5SIM_CQE_RESP_SEND_INV))) {
        return 0;
    }

    cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, resp->recv_cq);
    return plan->resp_cqe.byte_cnt <= mlx5sim_cqe_max_data(cq->cqe_size);
}

/* Whether the answer to a read or an atomic goes into the requester's CQE (PRM,
 * cs_req). Without a completion it goes to memory. */
int mlx5sim_transfer_fits_req(const mlx5sim_qp_obj_t *req, int has_cqe,
                              uint64_t length)
{
    const mlx5sim_cq_t *cq;

    if (!req->qp.scatter_req_cqe || !has_cqe) {
        return 0;
    }

    cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, req->send_cq);
    return length <= mlx5sim_cqe_max_data(cq->cqe_size);
}

/* The payload goes into a completion of the one side or the other */
static int
mlx5sim_transfer_scatter_cqe(const mlx5sim_proc_t *src_proc,
                             mlx5sim_cqe_t *cqe, mlx5sim_plan_t *plan,
                             mlx5sim_side_t *side_p)
{
    struct iovec local = {cqe->data, plan->length};
    struct iovec remote[MLX5SIM_IOV_MAX];
    unsigned num_remote;

    *side_p        = plan->src_side;
    cqe->scattered = plan->length;
    num_remote     = mlx5sim_iov_fill(plan->src, plan->num_src, remote);
    return mlx5sim_mem_readv(src_proc, &local, 1, remote, num_remote,
                             plan->length);
}

int mlx5sim_transfer_atomic(mlx5sim_proc_t *resp_proc,
                            const mlx5sim_wqe_t *wqe,
                            const mlx5sim_plan_t *plan, uint64_t *old_p)
{
    uint64_t new_value;
    mlx5sim_lock_t *lock;
    int ret;

    /* atomic among work requests of all processes, which is what
     * IBV_ATOMIC_HCA promises */
    lock   = &mlx5sim_store->atomic_locks[((plan->atomic_addr >>
                                            MLX5SIM_ATOMIC_LOCK_SHIFT) ^
                                           resp_proc->pid) %
                                          MLX5SIM_ATOMIC_LOCKS];
    *old_p = 0;
    (void)mlx5sim_lock(lock);
    ret = mlx5sim_mem_read(resp_proc, plan->atomic_addr, old_p,
                           plan->atomic_size);
    if (ret == 0) {
        new_value = mlx5sim_atomic_compute(wqe, *old_p);
        ret       = mlx5sim_mem_write(resp_proc, plan->atomic_addr, &new_value,
                                      plan->atomic_size);
    }
    mlx5sim_unlock(lock);
    if (ret == 0) {
        mlx5sim_pcie_read(resp_proc, 1);
        mlx5sim_pcie_written(resp_proc, 1);
    }
    return ret;
}

int mlx5sim_transfer_result(const mlx5sim_qp_obj_t *req,
                            const mlx5sim_wqe_t *wqe, uint64_t old,
                            mlx5sim_plan_t *plan)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&req->o.owner));
    struct iovec local, scatter[MLX5SIM_IOV_MAX];
    uint8_t result[8];
    unsigned num;

    if (proc == NULL) {
        return -EFAULT;
    }

    if (mlx5sim_transfer_fits_req(req, plan->has_req_cqe, plan->atomic_size)) {
        mlx5sim_atomic_result(wqe, old, 1, plan->req_cqe.data);
        plan->req_cqe.scattered = plan->atomic_size;
        return 0;
    }

    mlx5sim_atomic_result(wqe, old, 0, result);
    mlx5sim_pcie_written(proc, 1);
    num   = mlx5sim_iov_fill(plan->dst, plan->num_dst, scatter);
    local = (struct iovec){result, plan->atomic_size};
    return (mlx5sim_mem_writev(proc, &local, 1, scatter, num,
                               plan->atomic_size) == 0) ? 0 : -EFAULT;
}

int mlx5sim_transfer(const mlx5sim_qp_obj_t *req, const mlx5sim_qp_obj_t *resp,
                     mlx5sim_proc_t *resp_proc, const mlx5sim_wqe_t *wqe,
                     mlx5sim_plan_t *plan, mlx5sim_side_t *side_p)
{
    int is_in_cqe = 1;
    uint64_t old;
    int ret;

    if (plan->atomic_size != 0) {
        *side_p = MLX5SIM_SIDE_RESPONDER;
        ret     = mlx5sim_transfer_atomic(resp_proc, wqe, plan, &old);
        if (ret != 0) {
            return ret;
        }

        *side_p = MLX5SIM_SIDE_REQUESTER;
        return mlx5sim_transfer_result(req, wqe, old, plan);
    }

    if (mlx5sim_transfer_fits_resp(resp, plan)) {
        ret = mlx5sim_transfer_scatter_cqe(mlx5sim_proc_self(),
                                           &plan->resp_cqe, plan, side_p);
    } else if ((plan->src_side == MLX5SIM_SIDE_RESPONDER) &&
               mlx5sim_transfer_fits_req(req, plan->has_req_cqe, wqe->length)) {
        ret = mlx5sim_transfer_scatter_cqe(resp_proc, &plan->req_cqe, plan,
                                           side_p);
    } else {
        ret       = mlx5sim_transfer_copy(plan, resp_proc, side_p);
        is_in_cqe = 0;
    }

    mlx5sim_transfer_count(plan, resp_proc, is_in_cqe);
    return ret;
}
