/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/transfer.h>
#include <sim/engine/mlx5_def.h>
#include <sim/exec/iov.h>
#include <sim/exec/layout.h>
#include <sim/objs/mem.h>
#include <sim/objs/pcie.h>
#include <sim/objs/shared.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MLX5SIM_ATOMIC_LOCK_SHIFT 3

#define MLX5SIM_TRANSFER_PAGE_MASK 4095ul

/* linux/mman.h since 5.14: MADV_POPULATE_READ and _WRITE */
#define MLX5SIM_MADV_POPULATE_READ  22
#define MLX5SIM_MADV_POPULATE_WRITE 23


/* Whether an indirect key leads to some of these bytes by a region that is not
 * pinned */
static int mlx5sim_transfer_list_is_on_demand(uint32_t list, uint64_t addr,
                                              uint64_t length)
{
    const mlx5sim_mr_obj_t *mr;
    const mlx5sim_klm_t *klm;
    uint64_t va, size;

    for (; list != 0; list = klm->next) {
        klm = mlx5sim_obj_at(MLX5SIM_OBJ_KLM, list);
        mr  = mlx5sim_obj_find(MLX5SIM_OBJ_MR, klm->key >> 8);
        if ((mr != NULL) && (mr->mr.access & MLX5SIM_ACCESS_ON_DEMAND)) {
            va   = klm->is_layout ? mr->mr.va : klm->va;
            size = klm->is_layout ? mr->mr.length : klm->length;
            if ((addr < va + size) && (va < addr + length)) {
                return 1;
            }
        }
    }

    return 0;
}

/* Whether memory that a key leads to, at an address of the process, is not
 * pinned */
static int mlx5sim_transfer_key_is_on_demand(uint32_t key, uint64_t addr,
                                             uint64_t length)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);

    if ((mr != NULL) && (mr->window.type != 0)) {
        mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, mr->window.base >> 8);
        return (mr != NULL) && (mr->mr.access & MLX5SIM_ACCESS_ON_DEMAND);
    }

    if ((mr == NULL) || (mr->mr.key != key)) {
        return 0;
    }

    return (mr->list != 0) ?
           mlx5sim_transfer_list_is_on_demand(mr->list, addr, length) :
           !!(mr->mr.access & MLX5SIM_ACCESS_ON_DEMAND);
}

int
mlx5sim_transfer_has_on_demand(const mlx5sim_seg_t *segs, unsigned num_segs)
{
    unsigned i;

    for (i = 0; i < num_segs; ++i) {
        /* where the bytes of a layout are, this does not say */
        if ((segs[i].inl == NULL) &&
            mlx5sim_transfer_key_is_on_demand(segs[i].lkey,
                                              segs[i].has_layout ?
                                              0 : segs[i].addr,
                                              segs[i].has_layout ?
                                              UINT64_MAX : segs[i].length)) {
            return 1;
        }
    }

    return 0;
}

/* Whether memory of a request is not pinned. Its pages are then those that the
 * process has now, with the protection that they have now (kernel,
 * ib_umem_odp_map_dma_and_lock()). */
static int mlx5sim_transfer_is_on_demand(const mlx5sim_plan_t *plan,
                                         uint32_t rkey)
{
    /* what is written or read remotely is a piece of the plan */
    return ((plan->atomic_size != 0) &&
            mlx5sim_transfer_key_is_on_demand(rkey, plan->atomic_addr,
                                              plan->atomic_size)) ||
           mlx5sim_transfer_has_on_demand(plan->src, plan->num_src) ||
           mlx5sim_transfer_has_on_demand(plan->dst, plan->num_dst);
}

static int mlx5sim_transfer_readv(const mlx5sim_plan_t *plan,
                                  uint32_t rkey, const mlx5sim_proc_t *proc,
                                  const struct iovec *local,
                                  unsigned num_local,
                                  const struct iovec *remote,
                                  unsigned num_remote, size_t length)
{
    int ret = mlx5sim_mem_probev(proc, local, num_local, remote, num_remote,
                                 length);

    return ((ret == -EFAULT) && !mlx5sim_transfer_is_on_demand(plan, rkey)) ?
           mlx5sim_mem_readv(proc, local, num_local, remote, num_remote,
                             length) : ret;
}

static int mlx5sim_transfer_writev(const mlx5sim_plan_t *plan,
                                   uint32_t rkey, const mlx5sim_proc_t *proc,
                                   const struct iovec *local,
                                   unsigned num_local,
                                   const struct iovec *remote,
                                   unsigned num_remote, size_t length)
{
    int ret = mlx5sim_mem_probe_writev(proc, local, num_local, remote,
                                       num_remote, length);

    return ((ret == -EFAULT) && !mlx5sim_transfer_is_on_demand(plan, rkey)) ?
           mlx5sim_mem_writev(proc, local, num_local, remote, num_remote,
                              length) : ret;
}

/* The same for memory that is not pinned: have our own pages brought in. What
 * is protected is EINVAL, and so is all that to kernels before 5.14, where we
 * can't tell. */
static mlx5sim_side_t
mlx5sim_transfer_fault_on_demand(const struct iovec *local, unsigned num_local,
                                 int is_read)
{
    uintptr_t start;
    unsigned i;

    for (i = 0; i < num_local; ++i) {
        start = (uintptr_t)local[i].iov_base & ~MLX5SIM_TRANSFER_PAGE_MASK;
        if ((syscall(SYS_madvise, start,
                     (uintptr_t)local[i].iov_base + local[i].iov_len - start,
                     is_read ? MLX5SIM_MADV_POPULATE_READ :
                               MLX5SIM_MADV_POPULATE_WRITE) != 0) &&
            ((errno != EINVAL) ||
             (syscall(SYS_madvise, start, 0, MLX5SIM_MADV_POPULATE_WRITE) ==
              0))) {
            return MLX5SIM_SIDE_REQUESTER;
        }
    }

    return MLX5SIM_SIDE_RESPONDER;
}

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

/* Where a piece is that is in memory which its process shares. That process may
 * end it at any time. @return of length 0: it is not there */
static mlx5sim_shared_t
mlx5sim_transfer_shared(const mlx5sim_seg_t *seg, uint32_t tag)
{
    const mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR,
                                                  seg->lkey >> 8);
    mlx5sim_shared_t shared    = {0, 0};

    if ((mr != NULL) && (mr->mr.key == seg->lkey) &&
        (atomic_load(&mr->o.owner) == tag)) {
        shared.addr   = mr->shared.addr;
        shared.length = __atomic_load_n(&mr->shared.length, __ATOMIC_RELAXED);
    }
    if (!mlx5sim_shared_has(&shared, seg->addr, seg->length)) {
        shared.length = 0;
    }
    return shared;
}

/* Write what is in the work request to memory that the other process shares.
 * What is in memory of this one is for the kernel to copy: it may not be there.
 * @return whether that was done */
static int mlx5sim_transfer_write_shared(const mlx5sim_plan_t *plan,
                                         mlx5sim_proc_t *proc)
{
    const uint8_t *data = plan->src[0].inl;
    uint32_t tag        = atomic_load(&proc->tag);
    const mlx5sim_seg_t *seg;
    mlx5sim_shared_t shared;
    unsigned i;

    if ((plan->num_src != 1) || (data == NULL)) {
        return 0;
    }

    /* all or nothing: the program may change what it has seen */
    for (i = 0; i < plan->num_dst; ++i) {
        if (mlx5sim_transfer_shared(&plan->dst[i], tag).length == 0) {
            return 0;
        }
    }

    for (i = 0; i < plan->num_dst; ++i) {
        seg    = &plan->dst[i];
        shared = mlx5sim_transfer_shared(seg, tag);
        if ((seg->length > 0) &&
            !mlx5sim_shared_write(proc, &shared, seg->addr, data,
                                  seg->length)) {
            return 0;
        }
        data += seg->length;
    }

    return plan->num_dst > 0;
}

static int mlx5sim_transfer_copy_part(const mlx5sim_plan_t *plan, uint32_t rkey,
                                      mlx5sim_proc_t *resp_proc,
                                      mlx5sim_side_t *side_p)
{
    int is_send = plan->src_side == MLX5SIM_SIDE_REQUESTER;
    struct iovec src[MLX5SIM_IOV_MAX], dst[MLX5SIM_IOV_MAX];
    unsigned num_src, num_dst;
    int ret;

    if (is_send && mlx5sim_transfer_write_shared(plan, resp_proc)) {
        mlx5sim_transfer_count(plan, resp_proc, 0);
        return 0;
    }

    mlx5sim_iov_plan(plan, src, &num_src, dst, &num_dst);
    ret = is_send ? mlx5sim_transfer_writev(plan, rkey, resp_proc, src,
                                            num_src, dst, num_dst,
                                            plan->length) :
                    mlx5sim_transfer_readv(plan, rkey, resp_proc, dst, num_dst,
                                           src, num_src, plan->length);
    if ((ret == -EFAULT) && mlx5sim_transfer_is_on_demand(plan, rkey)) {
        *side_p = mlx5sim_transfer_fault_on_demand(is_send ? src : dst,
                                                   is_send ? num_src : num_dst,
                                                   is_send);
    } else if (ret == -EFAULT) {
        *side_p = mlx5sim_transfer_fault_side(is_send ? src : dst,
                                              is_send ? num_src : num_dst);
    }

    mlx5sim_transfer_count(plan, resp_proc, 0);
    return ret;
}

/* Apart, as it takes room on the stack of who posts */
static int __attribute__((noinline))
mlx5sim_transfer_copy_layout(const mlx5sim_plan_t *plan, uint32_t rkey,
                             mlx5sim_proc_t *resp_proc, mlx5sim_side_t *side_p)
{
    uint64_t done = 0;
    const mlx5sim_plan_t *part;
    mlx5sim_plan_t room;
    int ret;

    do {
        part = mlx5sim_layout_part(plan, done, &room, side_p);
        ret  = (part == NULL) ? -EFAULT :
               mlx5sim_transfer_copy_part(part, rkey, resp_proc, side_p);
        if (ret != 0) {
            return ret;
        }
        done += part->length;
    } while (done < plan->length);

    return 0;
}

/* Who uses the keys of a side */
static mlx5sim_sig_user_t
mlx5sim_transfer_user(const mlx5sim_qp_obj_t *req, const mlx5sim_qp_obj_t *resp,
                      mlx5sim_side_t side)
{
    const mlx5sim_qp_obj_t *qp = (side == MLX5SIM_SIDE_REQUESTER) ? req : resp;

    /* a wrong signature may stop it */
    return (mlx5sim_sig_user_t){(mlx5sim_qp_obj_t*)qp, side};
}

/* Bytes are not the same on both sides, so they go by way of ours */
static int __attribute__((noinline))
mlx5sim_transfer_copy_signed(const mlx5sim_qp_obj_t *req,
                             const mlx5sim_qp_obj_t *resp,
                             const mlx5sim_plan_t *plan,
                             mlx5sim_proc_t *resp_proc, mlx5sim_side_t *side_p)
{
    const mlx5sim_proc_t *procs[] = {
        [MLX5SIM_SIDE_REQUESTER] = mlx5sim_proc_self(),
        [MLX5SIM_SIDE_RESPONDER] = resp_proc
    };
    const mlx5sim_sig_user_t from = mlx5sim_transfer_user(req, resp,
                                                          plan->src_side);
    const mlx5sim_sig_user_t to   = mlx5sim_transfer_user(req, resp,
                                                          plan->dst_side);
    uint8_t data[4096];
    uint64_t done, part;
    int ret;

    for (done = 0; done < plan->length; done += part) {
        part    = plan->length - done;
        part    = (part < sizeof(data)) ? part : sizeof(data);
        *side_p = plan->src_side;
        ret     = mlx5sim_sig_move(&from, procs[plan->src_side], plan->src,
                                   plan->num_src, 0, done, part, data);
        if (ret == 0) {
            *side_p = plan->dst_side;
            ret     = mlx5sim_sig_move(&to, procs[plan->dst_side], plan->dst,
                                       plan->num_dst, 1, done, part, data);
        }
        if (ret != 0) {
            return ret;
        }
    }

    mlx5sim_transfer_count(plan, resp_proc, 0);
    return 0;
}

static int
mlx5sim_transfer_copy(const mlx5sim_qp_obj_t *req, const mlx5sim_qp_obj_t *resp,
                      const mlx5sim_plan_t *plan, uint32_t rkey,
                      mlx5sim_proc_t *resp_proc, mlx5sim_side_t *side_p)
{
    if (!mlx5sim_layout_is_in(plan->src, plan->num_src) &&
        !mlx5sim_layout_is_in(plan->dst, plan->num_dst)) {
        return mlx5sim_transfer_copy_part(plan, rkey, resp_proc, side_p);
    }

    return (mlx5sim_sig_is_in(plan->src, plan->num_src) ||
            mlx5sim_sig_is_in(plan->dst, plan->num_dst)) ?
           mlx5sim_transfer_copy_signed(req, resp, plan, resp_proc, side_p) :
           mlx5sim_transfer_copy_layout(plan, rkey, resp_proc, side_p);
}

/* Pieces of as few bytes as a CQE has, so that there are no more of these than
 * fit, whatever leads there. @return their number; 0: a key does not */
static unsigned
mlx5sim_transfer_fill(const mlx5sim_seg_t *segs, unsigned num_segs,
                      int is_write, uint64_t length, struct iovec *iov)
{
    mlx5sim_seg_t pieces[MLX5SIM_MAX_SGE];
    unsigned num;

    if (!mlx5sim_layout_is_in(segs, num_segs)) {
        return mlx5sim_iov_fill(segs, num_segs, iov);
    }

    return (mlx5sim_layout_pieces(segs, num_segs, is_write, 0, length, pieces,
                                  &num) == length) ?
           mlx5sim_iov_fill(pieces, num, iov) : 0;
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
mlx5sim_transfer_scatter_cqe(const mlx5sim_sig_user_t *user,
                             const mlx5sim_proc_t *src_proc, uint32_t rkey,
                             mlx5sim_cqe_t *cqe, mlx5sim_plan_t *plan,
                             mlx5sim_side_t *side_p)
{
    struct iovec local = {cqe->data, plan->length};
    struct iovec remote[MLX5SIM_IOV_MAX];
    unsigned num_remote;

    *side_p        = plan->src_side;
    cqe->scattered = plan->length;
    if ((plan->num_src == 1) && (plan->src[0].inl != NULL)) {
        memcpy(cqe->data, plan->src[0].inl, plan->length);
        return 0;
    }

    if (mlx5sim_sig_is_in(plan->src, plan->num_src)) {
        return mlx5sim_sig_move(user, src_proc, plan->src, plan->num_src, 0, 0,
                                plan->length, cqe->data);
    }

    num_remote     = mlx5sim_transfer_fill(plan->src, plan->num_src, 0,
                                           plan->length, remote);
    return ((plan->length > 0) && (num_remote == 0)) ? -EFAULT :
           mlx5sim_transfer_readv(plan, rkey, src_proc, &local, 1, remote,
                                  num_remote, plan->length);
}

int mlx5sim_transfer_fetch(const mlx5sim_sig_user_t *user,
                           const mlx5sim_proc_t *proc,
                           const mlx5sim_plan_t *plan, uint8_t *out_p,
                           unsigned *num_p)
{
    uint64_t done = 0;
    struct iovec pieces[MLX5SIM_IOV_MAX], local;
    const mlx5sim_plan_t *part;
    mlx5sim_plan_t room;
    mlx5sim_side_t side;
    unsigned num;
    int ret = 0;

    *num_p = 0;
    if (mlx5sim_sig_is_in(plan->src, plan->num_src)) {
        *num_p = plan->num_src;
        return mlx5sim_sig_move(user, proc, plan->src, plan->num_src, 0, 0,
                                plan->length, out_p);
    }

    while ((ret == 0) && (done < plan->length)) {
        part = mlx5sim_layout_part(plan, done, &room, &side);
        if (part == NULL) {
            return -EFAULT;
        }

        num   = mlx5sim_iov_fill(part->src, part->num_src, pieces);
        local = (struct iovec){out_p + done, part->length};
        ret   = mlx5sim_mem_readv(proc, &local, 1, pieces, num, part->length);
        *num_p += num;
        done   += part->length;
    }

    return ret;
}

int mlx5sim_transfer_atomic(mlx5sim_proc_t *resp_proc,
                            const mlx5sim_wqe_t *wqe,
                            const mlx5sim_plan_t *plan, uint64_t *old_p)
{
    struct iovec remote = {(void*)(uintptr_t)plan->atomic_addr,
                           plan->atomic_size};
    struct iovec local;
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
    local = (struct iovec){old_p, plan->atomic_size};
    ret   = mlx5sim_transfer_readv(plan, wqe->rkey, resp_proc, &local, 1,
                                   &remote, 1, plan->atomic_size);
    if (ret == 0) {
        new_value = mlx5sim_atomic_compute(wqe, *old_p);
        local     = (struct iovec){&new_value, plan->atomic_size};
        ret       = mlx5sim_transfer_writev(plan, wqe->rkey, resp_proc, &local,
                                            1, &remote, 1, plan->atomic_size);
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
    mlx5sim_sig_user_t user;
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
    if (mlx5sim_sig_is_in(plan->dst, plan->num_dst)) {
        user = mlx5sim_transfer_user(req, NULL, MLX5SIM_SIDE_REQUESTER);
        return mlx5sim_sig_move(&user, proc, plan->dst, plan->num_dst, 1, 0,
                                plan->atomic_size, result);
    }

    num   = mlx5sim_transfer_fill(plan->dst, plan->num_dst, 1,
                                  plan->atomic_size, scatter);
    local = (struct iovec){result, plan->atomic_size};
    return ((num != 0) &&
            (mlx5sim_transfer_writev(plan, wqe->rkey, proc, &local, 1, scatter,
                                     num, plan->atomic_size) == 0)) ?
           0 : -EFAULT;
}

int mlx5sim_transfer(const mlx5sim_qp_obj_t *req, const mlx5sim_qp_obj_t *resp,
                     mlx5sim_proc_t *resp_proc, const mlx5sim_wqe_t *wqe,
                     mlx5sim_plan_t *plan, mlx5sim_side_t *side_p)
{
    int is_in_cqe = 1;
    mlx5sim_sig_user_t user;
    int ret;

    if (plan->atomic_size != 0) {
        *side_p = MLX5SIM_SIDE_RESPONDER;
        ret     = mlx5sim_transfer_atomic(resp_proc, wqe, plan,
                                          &plan->atomic_old);
        if ((ret != 0) || plan->is_answered) {
            return ret;
        }

        *side_p = MLX5SIM_SIDE_REQUESTER;
        return mlx5sim_transfer_result(req, wqe, plan->atomic_old, plan);
    }

    user = mlx5sim_transfer_user(req, resp, plan->src_side);
    if (mlx5sim_transfer_fits_resp(resp, plan)) {
        ret = mlx5sim_transfer_scatter_cqe(&user, mlx5sim_proc_self(),
                                           wqe->rkey, &plan->resp_cqe, plan,
                                           side_p);
    } else if ((plan->src_side == MLX5SIM_SIDE_RESPONDER) &&
               mlx5sim_transfer_fits_req(req, plan->has_req_cqe, wqe->length)) {
        ret = mlx5sim_transfer_scatter_cqe(&user, resp_proc, wqe->rkey,
                                           &plan->req_cqe, plan, side_p);
    } else {
        ret       = mlx5sim_transfer_copy(req, resp, plan, wqe->rkey,
                                          resp_proc, side_p);
        is_in_cqe = 0;
    }

    if (is_in_cqe) {
        mlx5sim_transfer_count(plan, resp_proc, 1);
    }
    return ret;
}
