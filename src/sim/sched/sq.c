/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/exec/exec.h"
#include "sim/objs/mem.h"
#include "sim/check/report.h"
#include "sim/engine/mlx5_def.h"
#include "sim/uverbs/port.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

/* A QP that waits looks again after a part of the time it has waited already, in
 * these limits: many QPs that wait long must not keep the processors busy. */
#define MLX5SIM_RETRY_MIN_NS      1000000ul
#define MLX5SIM_RETRY_MAX_NS      250000000ul
#define MLX5SIM_RNR_MIN_NS        20000ul
#define MLX5SIM_RNR_MAX_NS        2000000ul
#define MLX5SIM_WATCH_MIN_NS      1000000ul
#define MLX5SIM_WATCH_MAX_NS      100000000ul
#define MLX5SIM_ATOMIC_LOCK_SHIFT 3
/* the last bytes of a write are copied after all others, as PCIe does it:
 * programs poll on them */
#define MLX5SIM_WRITE_TAIL        8

/* Outcome of one work request */
typedef enum {
    MLX5SIM_SQ_NEXT,
    MLX5SIM_SQ_WAIT    /* parked: stop here */
} mlx5sim_sq_next_t;

/* What the engine's lookups need */
typedef struct {
    mlx5sim_qp_obj_t *req;
    mlx5sim_qp_obj_t *resp;      /* rq_lock is held; NULL: nobody there */
    int               recv_gone; /* responder's process died under way */
} mlx5sim_sq_run_t;


static const mlx5sim_mr_t *
mlx5sim_sq_mr_find(void *arg, mlx5sim_side_t side, uint32_t key)
{
    mlx5sim_sq_run_t *run = arg;
    mlx5sim_qp_obj_t *qp;
    mlx5sim_mr_obj_t *mr;

    qp = (side == MLX5SIM_SIDE_REQUESTER) ? run->req : run->resp;
    if ((key >> 8) >= MLX5SIM_MAX_MRS) {
        return NULL;
    }

    mr = mlx5sim_obj_at(MLX5SIM_OBJ_MR, key >> 8);
    if ((atomic_load(&mr->o.owner) != atomic_load(&qp->o.owner)) ||
        !mr->o.ready || (mr->mr.key != key)) {
        return NULL;
    }

    return &mr->mr;
}

static int mlx5sim_sq_recv_peek(void *arg, mlx5sim_recv_wqe_t *recv_p)
{
    mlx5sim_sq_run_t *run = arg;
    int ret;

    ret = mlx5sim_recv_claim(run->resp, recv_p);
    if (ret == -2) {
        run->recv_gone = 1;
        return 0;
    }

    return ret;
}

static int mlx5sim_sq_port_matches(const mlx5sim_qp_obj_t *qp, uint16_t dlid,
                                   int has_grh, const uint8_t *dgid)
{
    if (qp->qp.port == 0) {
        return 1; /* in reset: it may be meant, but does not answer yet */
    }

    if (has_grh && mlx5sim_port_has_gid(qp->dev, qp->qp.port, dgid)) {
        return 1;
    }

    return (dlid != 0) && ((dlid & ~qp->qp.path_mask) == qp->qp.lid);
}

/* Find and lock the responder. NULL if the fabric has no such QP. */
static mlx5sim_qp_obj_t *
mlx5sim_sq_responder(const mlx5sim_qp_obj_t *req, const mlx5sim_wqe_t *wqe)
{
    int is_ud    = req->qp.type == MLX5SIM_QPT_UD;
    uint32_t qpn = is_ud ? wqe->av.dqpn : req->qp.dest_qpn;
    mlx5sim_qp_obj_t *resp;

    if (is_ud && !wqe->has_av) {
        return NULL;
    }

    resp = mlx5sim_qp_by_num(qpn);
    if (resp == NULL) {
        return NULL;
    }

    mlx5sim_rq_lock(resp);
    if (!resp->o.ready || (resp->qp.qpn != qpn) ||
        (mlx5sim_proc_by_tag(atomic_load(&resp->o.owner)) == NULL)) {
        goto err_unlock; /* destroyed while we came */
    }

    if (is_ud ? !mlx5sim_sq_port_matches(resp, wqe->av.dlid,
                                         wqe->av.has_grh, wqe->av.dgid) :
                !mlx5sim_sq_port_matches(resp, req->qp.dlid,
                                         req->qp.has_grh, req->qp.dgid)) {
        goto err_unlock;
    }

    return resp;

err_unlock:
    mlx5sim_unlock(&resp->rq_lock);
    return NULL;
}

/* Segments to iovecs; with @a tail > 0 the last bytes become a piece of their
 * own. @return number of pieces */
static unsigned mlx5sim_sq_iov(const mlx5sim_seg_t *segs, unsigned num_segs,
                               size_t tail, struct iovec *iov)
{
    unsigned n = 0, i;
    size_t length;
    void *base;

    for (i = 0; i < num_segs; ++i) {
        length = segs[i].length;
        if (length == 0) {
            continue;
        }

        base = (segs[i].inl != NULL) ? (void*)segs[i].inl :
                                       (void*)(uintptr_t)segs[i].addr;
        if ((i == num_segs - 1) && (length > tail) && (tail > 0)) {
            iov[n++] = (struct iovec){base, length - tail};
            base     = (char*)base + length - tail;
            length   = tail;
        }

        iov[n++] = (struct iovec){base, length};
    }

    return n;
}

/* Which side of a failed copy is not mapped? Reading our own buffers through
 * the kernel tells without risk. */
static mlx5sim_side_t mlx5sim_sq_fault_side(const struct iovec *local,
                                            unsigned num_local)
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

/* Move the payload. @return 0, -EFAULT with *side_p, or another -errno: the
 * responder is gone */
static int mlx5sim_sq_transfer(const mlx5sim_plan_t *plan,
                               const mlx5sim_proc_t *resp_proc,
                               mlx5sim_side_t *side_p)
{
    struct iovec local[MLX5SIM_MAX_SGE + 2], remote[MLX5SIM_MAX_SGE + 2];
    unsigned num_local, num_remote;
    int ret;

    if (plan->src_side == MLX5SIM_SIDE_REQUESTER) {
        num_local  = mlx5sim_sq_iov(plan->src, plan->num_src, 0, local);
        num_remote = mlx5sim_sq_iov(plan->dst, plan->num_dst,
                                    MLX5SIM_WRITE_TAIL, remote);
        ret        = mlx5sim_mem_writev(resp_proc, local, num_local, remote,
                                        num_remote, plan->length);
    } else {
        num_local  = mlx5sim_sq_iov(plan->dst, plan->num_dst,
                                    MLX5SIM_WRITE_TAIL, local);
        num_remote = mlx5sim_sq_iov(plan->src, plan->num_src, 0, remote);
        ret        = mlx5sim_mem_readv(resp_proc, local, num_local, remote,
                                       num_remote, plan->length);
    }

    if (ret == -EFAULT) {
        *side_p = mlx5sim_sq_fault_side(local, num_local);
    }

    return ret;
}

/* Whether the payload is received into the responder's CQE (PRM, cs_res), which
 * is what libmlx5 asks for unless told not to */
static int mlx5sim_sq_fits_cqe(const mlx5sim_qp_obj_t *resp,
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
    return plan->length <= mlx5sim_cqe_max_data(cq->cqe_size);
}

static int mlx5sim_sq_scatter_cqe(mlx5sim_plan_t *plan, mlx5sim_side_t *side_p)
{
    struct iovec local = {plan->resp_cqe.data, plan->length};
    struct iovec remote[MLX5SIM_MAX_SGE + 2];
    unsigned num_remote;

    *side_p                  = MLX5SIM_SIDE_REQUESTER;
    plan->resp_cqe.scattered = plan->length;
    num_remote               = mlx5sim_sq_iov(plan->src, plan->num_src, 0,
                                              remote);
    return mlx5sim_mem_readv(mlx5sim_proc_self(), &local, 1, remote, num_remote,
                             plan->length);
}

static int mlx5sim_sq_atomic(const mlx5sim_wqe_t *wqe,
                             const mlx5sim_plan_t *plan,
                             const mlx5sim_proc_t *resp_proc,
                             mlx5sim_side_t *side_p)
{
    uint64_t old = 0, new_value;
    struct iovec local, scatter[MLX5SIM_MAX_SGE + 2];
    mlx5sim_lock_t *lock;
    uint8_t result[8];
    unsigned num;
    int ret;

    /* atomic among work requests of all processes, which is what
     * IBV_ATOMIC_HCA promises */
    lock = &mlx5sim_store->atomic_locks[((plan->atomic_addr >>
                                          MLX5SIM_ATOMIC_LOCK_SHIFT) ^
                                         resp_proc->pid) %
                                        MLX5SIM_ATOMIC_LOCKS];
    *side_p = MLX5SIM_SIDE_RESPONDER;
    (void)mlx5sim_lock(lock);
    ret = mlx5sim_mem_read(resp_proc, plan->atomic_addr, &old,
                           plan->atomic_size);
    if (ret == 0) {
        new_value = mlx5sim_atomic_compute(wqe, old);
        ret       = mlx5sim_mem_write(resp_proc, plan->atomic_addr, &new_value,
                                      plan->atomic_size);
    }
    mlx5sim_unlock(lock);
    if (ret != 0) {
        return ret;
    }

    mlx5sim_atomic_result(wqe, old, result);
    num   = mlx5sim_sq_iov(plan->dst, plan->num_dst, 0, scatter);
    local = (struct iovec){result, plan->atomic_size};
    ret   = mlx5sim_mem_writev(mlx5sim_proc_self(), &local, 1, scatter, num,
                               plan->atomic_size);
    if (ret != 0) {
        *side_p = MLX5SIM_SIDE_REQUESTER;
        return -EFAULT;
    }

    return 0;
}

/* Whether the process of @a resp still answers; costs a system call and is only
 * needed where nothing else touches its memory. */
static int mlx5sim_sq_resp_alive(const mlx5sim_qp_obj_t *resp,
                                 const mlx5sim_proc_t *proc)
{
    uint32_t db;

    return (atomic_load(&resp->o.owner) == mlx5sim_self_tag) ||
           (mlx5sim_mem_read(proc, resp->db, &db, sizeof(db)) != -ESRCH);
}

/* Do what the plan says on the responder. @return 0, or -errno as transfer */
static int mlx5sim_sq_apply(mlx5sim_sq_run_t *run, const mlx5sim_wqe_t *wqe,
                            mlx5sim_plan_t *plan)
{
    mlx5sim_qp_obj_t *resp = run->resp;
    mlx5sim_proc_t *proc;
    mlx5sim_side_t side = MLX5SIM_SIDE_RESPONDER;
    mlx5sim_mr_obj_t *mr;
    int ret = 0;

    if (resp == NULL) {
        return 0;
    }

    proc = mlx5sim_proc_by_tag(atomic_load(&resp->o.owner));
    if (proc == NULL) {
        return -ESRCH;
    }

    if (plan->atomic_size != 0) {
        ret = mlx5sim_sq_atomic(wqe, plan, proc, &side);
    } else if ((plan->length != 0) && mlx5sim_sq_fits_cqe(resp, plan)) {
        ret = mlx5sim_sq_scatter_cqe(plan, &side);
    } else if (plan->length != 0) {
        ret = mlx5sim_sq_transfer(plan, proc, &side);
    } else if (!mlx5sim_sq_resp_alive(resp, proc)) {
        ret = -ESRCH;
    }

    if (ret == -EFAULT) {
        mlx5sim_plan_fault(&run->req->qp, wqe, &resp->qp, side, plan);
    } else if (ret != 0) {
        return ret;
    }

    if (plan->invalidate && ((plan->inv_rkey >> 8) < MLX5SIM_MAX_MRS)) {
        mr = mlx5sim_obj_at(MLX5SIM_OBJ_MR, plan->inv_rkey >> 8);
        if ((atomic_load(&mr->o.owner) == atomic_load(&resp->o.owner)) &&
            (mr->mr.key == plan->inv_rkey)) {
            mr->mr.access = 0;
        }
    }

    if (plan->has_resp_cqe &&
        (mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, resp->recv_cq),
                         &plan->resp_cqe,
                         plan->consume_recv ? &resp->claim : NULL) != 0)) {
        plan->resp_error = 1;
    }

    if (plan->consume_recv) {
        mlx5sim_recv_done(resp);
    }

    return 0;
}

/* the responder fails; its own process flushes its send queue */
static void mlx5sim_sq_resp_error(mlx5sim_qp_obj_t *resp, unsigned event)
{
    if (resp->qp.state == MLX5SIM_QPS_ERR) {
        return;
    }

    resp->qp.state = MLX5SIM_QPS_ERR;
    if (event != 0) {
        mlx5sim_async_event(&resp->o, event);
    }

    mlx5sim_rq_flush(resp);
    mlx5sim_qp_kick(resp);
}

static void mlx5sim_sq_complete(mlx5sim_qp_obj_t *qp, const mlx5sim_cqe_t *cqe)
{
    if (mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq), cqe,
                        NULL) != 0) {
        /* nobody can be told any more: IBTA moves the QP to error */
        qp->qp.state = MLX5SIM_QPS_ERR;
    }
}

/* When to look again at something that is waited for since qp->retry_since */
static uint64_t mlx5sim_sq_interval(mlx5sim_qp_obj_t *qp, uint64_t now,
                                    uint64_t min, uint64_t max)
{
    uint64_t interval;

    if (qp->retry_since == 0) {
        qp->retry_since = now;
    }

    interval = (now - qp->retry_since) / 4;
    return (interval < min) ? min : (interval > max) ? max : interval;
}

/* Try again later, or give up. @return whether to wait */
static int mlx5sim_sq_park(mlx5sim_qp_obj_t *qp, int is_rnr,
                           const mlx5sim_qp_t *resp)
{
    uint64_t now = mlx5sim_now_ns();
    uint64_t interval, timer, limit;

    if (is_rnr) {
        timer    = (resp != NULL) ? mlx5sim_rnr_timer_ns(resp->min_rnr_timer) :
                                    MLX5SIM_RNR_MIN_NS;
        interval = mlx5sim_sq_interval(qp, now, MLX5SIM_RNR_MIN_NS,
                                       MLX5SIM_RNR_MAX_NS);
        if (interval < timer) {
            interval = timer;
        }

        /* doorbells and other work requests retry earlier than the timer; only
         * timer expiries count as retries */
        if (now >= atomic_load_explicit(&qp->retry_at, memory_order_relaxed)) {
            if ((qp->qp.rnr_retry != 7) &&
                (qp->retries++ >= qp->qp.rnr_retry)) {
                return 0;
            }
            mlx5sim_helper_park(qp, now + interval);
        }
        atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.rnr_waits, 1,
                                  memory_order_relaxed);
        return 1;
    }

    interval = mlx5sim_sq_interval(qp, now, MLX5SIM_RETRY_MIN_NS,
                                   MLX5SIM_RETRY_MAX_NS);
    limit    = mlx5sim_ack_timeout_ns(qp->qp.timeout) * (qp->qp.retry_cnt + 1);
    if (qp->qp.timeout != 0) {
        if (now - qp->retry_since >= limit) {
            return 0;
        }

        if (interval > limit) {
            interval = limit;
        }
    }
    mlx5sim_helper_park(qp, now + interval);
    return 1;
}

/* Book a finished work request */
static void mlx5sim_sq_finish(mlx5sim_qp_obj_t *qp, const mlx5sim_plan_t *plan)
{
    qp->retries     = 0;
    atomic_store_explicit(&qp->retry_at, 0, memory_order_relaxed);
    qp->retry_since = 0;
    ++qp->wqes;
    atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.wqes, 1,
                              memory_order_relaxed);
    if (plan->req_error) {
        qp->qp.state = (qp->qp.type == MLX5SIM_QPT_RC) ? MLX5SIM_QPS_ERR :
                                                         MLX5SIM_QPS_SQE;
    }
    if (plan->has_req_cqe) {
        mlx5sim_sq_complete(qp, &plan->req_cqe);
    }
}

static mlx5sim_sq_next_t
mlx5sim_sq_execute(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_sq_run_t run      = {.req = qp};
    const mlx5sim_env_t env   = {&run, mlx5sim_sq_mr_find,
                                 mlx5sim_sq_recv_peek};
    mlx5sim_qp_obj_t *resp;
    mlx5sim_plan_t plan;
    int ret, wait;

    run.resp = resp = mlx5sim_sq_responder(qp, wqe);
    mlx5sim_plan_make(&qp->qp, wqe, (resp != NULL) ? &resp->qp : NULL, &env,
                      &plan);

    if (plan.verdict != MLX5SIM_VERDICT_DONE) {
        /* retrying is for those who may answer one day */
        if (run.recv_gone ||
            ((plan.verdict == MLX5SIM_VERDICT_RETRY) && (resp != NULL) &&
             !mlx5sim_sq_resp_alive(resp,
                                    mlx5sim_proc_by_tag(resp->o.owner)))) {
            goto resp_gone;
        }

        wait = mlx5sim_sq_park(qp, plan.verdict == MLX5SIM_VERDICT_RNR,
                               (resp != NULL) ? &resp->qp : NULL);
        if (resp != NULL) {
            mlx5sim_recv_release(resp);
            mlx5sim_unlock(&resp->rq_lock);
        }
        if (wait) {
            return MLX5SIM_SQ_WAIT;
        }

        mlx5sim_plan_retry_exceeded(&qp->qp, wqe,
                                    plan.verdict == MLX5SIM_VERDICT_RNR, &plan);
        goto complete;
    }

    ret = mlx5sim_sq_apply(&run, wqe, &plan);
    if (ret != 0) {
        goto resp_gone;
    }

    if (resp != NULL) {
        mlx5sim_recv_release(resp);
        if (plan.resp_error) {
            mlx5sim_sq_resp_error(resp, plan.resp_event);
        }
        mlx5sim_unlock(&resp->rq_lock);
    }

    if (!plan.req_error) {
        atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.bytes, wqe->length,
                                  memory_order_relaxed);
    }
    goto complete;

resp_gone:
    if (resp != NULL) {
        mlx5sim_recv_release(resp);
        mlx5sim_unlock(&resp->rq_lock);
    }
    run.resp = NULL;
    mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, &plan);
complete:
    mlx5sim_sq_finish(qp, &plan);
    return MLX5SIM_SQ_NEXT;
}

/* Report a WQE that decode rejected. What hardware does not see is executed all
 * the same. @return whether the WQE is finished, with an error */
static int mlx5sim_sq_rejected(mlx5sim_qp_obj_t *qp, mlx5sim_chk_t chk,
                               const mlx5sim_wqe_t *wqe, uint16_t pi)
{
    mlx5sim_plan_t plan;

    mlx5sim_report_qp(chk, qp, qp->sq_head, "send WQE at 0x%x, doorbell record "
                      "0x%x", qp->sq_head, pi);
    if (!mlx5sim_chk_is_fatal(chk)) {
        return 0;
    }

    mlx5sim_plan_bad_wqe(&qp->qp, wqe, chk, &plan);
    mlx5sim_sq_finish(qp, &plan);
    return 1;
}

/* No doorbell tells of receives, but those posted in the error state are to be
 * flushed too: look for them, ever less often */
static void mlx5sim_sq_watch_rq(mlx5sim_qp_obj_t *qp)
{
    uint64_t now = mlx5sim_now_ns();

    if (qp->qp.rq_wqe_cnt != 0) {
        mlx5sim_helper_park(qp, now +
                                mlx5sim_sq_interval(qp, now,
                                                    MLX5SIM_WATCH_MIN_NS,
                                                    MLX5SIM_WATCH_MAX_NS));
    }
}

static void mlx5sim_sq_run_locked(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_wqe_t wqe;
    mlx5sim_cqe_t cqe;
    uint16_t pi, posted;
    mlx5sim_chk_t chk;

    if (!qp->o.ready) {
        return;
    }

    for (;;) {
        pi = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
        if (pi == qp->sq_head) {
            break;
        }

        /* libmlx5 clears the record only after it has reset a QP, so before
         * this the record means nothing */
        if ((qp->qp.state != MLX5SIM_QPS_RTS) &&
            (qp->qp.state != MLX5SIM_QPS_ERR) &&
            (qp->qp.state != MLX5SIM_QPS_SQE)) {
            break;
        }

        atomic_thread_fence(memory_order_acquire);
        posted = pi - qp->sq_head;
        if (posted > qp->qp.sq_wqe_cnt) {
            mlx5sim_report_qp(MLX5SIM_CHK_SQ_OVERRUN, qp, qp->sq_head,
                              "doorbell record 0x%x is more than %u blocks "
                              "ahead of 0x%x", pi, qp->qp.sq_wqe_cnt,
                              qp->sq_head);
            qp->qp.state = MLX5SIM_QPS_ERR;
            qp->sq_head  = pi;
            break;
        }

        chk = mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                                 qp->sq_head, &wqe);
        if (wqe.num_bb > posted) {
            wqe.num_bb = posted;
            chk        = MLX5SIM_CHK_WQE_DS;
        }

        if (qp->qp.state != MLX5SIM_QPS_RTS) {
            mlx5sim_cqe_flush(&qp->qp, 0, qp->sq_head, wqe.opcode, &cqe);
            mlx5sim_sq_complete(qp, &cqe);
        } else if (((chk == MLX5SIM_CHK_OK) ||
                    !mlx5sim_sq_rejected(qp, chk, &wqe, pi)) &&
                   (mlx5sim_sq_execute(qp, &wqe) == MLX5SIM_SQ_WAIT)) {
            return;
        }

        qp->sq_head += wqe.num_bb;
    }

    /* nothing waits any more, or the QP left the state it waited in */
    qp->retries = 0;
    atomic_store_explicit(&qp->retry_at, 0, memory_order_relaxed);
    if (qp->qp.state == MLX5SIM_QPS_ERR) {
        mlx5sim_rq_lock(qp);
        mlx5sim_rq_flush(qp);
        mlx5sim_unlock(&qp->rq_lock);
        mlx5sim_sq_watch_rq(qp);
    } else {
        qp->retry_since = 0;
    }
}

void mlx5sim_sq_run(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_sq_run_locked(qp);
    mlx5sim_unlock(&qp->sq_lock);
}

void mlx5sim_qp_flush(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    qp->qp.state = MLX5SIM_QPS_ERR;
    mlx5sim_sq_run_locked(qp);
    mlx5sim_unlock(&qp->sq_lock);
}

void mlx5sim_qp_withdraw(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_rq_lock(qp);
    qp->o.ready = 0;
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_unlock(&qp->sq_lock);
}
