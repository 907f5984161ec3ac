/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/exec/wqe.h"
#include "sim/exec/fabric.h"
#include "sim/exec/transfer.h"
#include "sim/objs/mem.h"
#include "sim/objs/proc.h"
#include "sim/objs/store.h"
#include "sim/queue/chan.h"
#include "sim/queue/cq.h"
#include "sim/queue/recv.h"

#include <errno.h>

/* What the engine's lookups need */
typedef struct {
    mlx5sim_qp_obj_t *req;
    mlx5sim_qp_obj_t *resp;      /* rq_lock is held; NULL: no responder */
    int               recv_gone; /* responder's process died under way */
} mlx5sim_wqe_run_t;


static const mlx5sim_mr_t *
mlx5sim_wqe_mr_find(void *arg, mlx5sim_side_t side, uint32_t key)
{
    mlx5sim_wqe_run_t *run = arg;
    mlx5sim_qp_obj_t *qp;
    mlx5sim_mr_obj_t *mr;

    qp = (side == MLX5SIM_SIDE_REQUESTER) ? run->req : run->resp;
    mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);
    if ((mr == NULL) ||
        (atomic_load(&mr->o.owner) != atomic_load(&qp->o.owner)) ||
        !mr->o.ready || (mr->mr.key != key)) {
        return NULL;
    }

    return &mr->mr;
}

static int mlx5sim_wqe_recv_peek(void *arg, mlx5sim_recv_wqe_t *recv_p)
{
    mlx5sim_wqe_run_t *run = arg;
    int ret;

    ret = mlx5sim_recv_claim(run->resp, recv_p);
    if (ret == 1) {
        switch (mlx5sim_recv_inject(run->resp, recv_p->index)) {
        case 0:
            break;
        case 1:
            ret = mlx5sim_recv_claim(run->resp, recv_p);
            break;
        default:
            ret = -1;
            break;
        }
    }
    if (ret == -2) {
        run->recv_gone = 1;
        return 0;
    }

    return ret;
}

/* Whether the process of @a resp still answers; costs a system call, and is
 * only needed if nothing else touches its memory. */
static int mlx5sim_wqe_resp_alive(const mlx5sim_qp_obj_t *resp,
                                  const mlx5sim_proc_t *proc)
{
    uint32_t db;

    return (atomic_load(&resp->o.owner) == mlx5sim_self_tag) ||
           (mlx5sim_mem_read(proc, resp->db, &db, sizeof(db)) != -ESRCH);
}

/* Invalidate the responder's key @a rkey */
static void mlx5sim_wqe_invalidate(const mlx5sim_qp_obj_t *resp, uint32_t rkey)
{
    mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, rkey >> 8);

    if ((mr != NULL) &&
        (atomic_load(&mr->o.owner) == atomic_load(&resp->o.owner)) &&
        (mr->mr.key == rkey)) {
        mr->mr.access = 0;
    }
}

/* Do what the plan says on the responder. @return 0, or -errno as transfer */
static int mlx5sim_wqe_apply(mlx5sim_wqe_run_t *run, const mlx5sim_wqe_t *wqe,
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

    if ((plan->atomic_size != 0) || (plan->length != 0)) {
        ret = mlx5sim_transfer(run->req, resp, proc, wqe, plan, &side);
    } else if (!mlx5sim_wqe_resp_alive(resp, proc)) {
        ret = -ESRCH;
    }

    if (ret == -EFAULT) {
        mlx5sim_plan_fault(&run->req->qp, wqe, &resp->qp, side, plan);
    } else if (ret != 0) {
        return ret;
    }

    if (plan->invalidate) {
        mlx5sim_wqe_invalidate(resp, plan->inv_rkey);
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
static void mlx5sim_wqe_resp_error(mlx5sim_qp_obj_t *resp, unsigned event)
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

/* Whether retrying is pointless because nobody will ever answer */
static int mlx5sim_wqe_is_gone(const mlx5sim_wqe_run_t *run,
                               const mlx5sim_plan_t *plan)
{
    const mlx5sim_qp_obj_t *resp = run->resp;

    return run->recv_gone ||
           ((plan->verdict == MLX5SIM_VERDICT_RETRY) && (resp != NULL) &&
            !mlx5sim_wqe_resp_alive(resp, mlx5sim_proc_by_tag(resp->o.owner)));
}

mlx5sim_verdict_t
mlx5sim_wqe_execute(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                    mlx5sim_plan_t *plan_p, uint64_t *rnr_timer_p)
{
    mlx5sim_wqe_run_t run   = {.req = qp};
    const mlx5sim_env_t env = {&run, mlx5sim_wqe_mr_find,
                               mlx5sim_wqe_recv_peek};
    mlx5sim_qp_obj_t *resp;
    int is_done, is_gone;

    run.resp = resp = mlx5sim_fabric_find(qp, wqe);
    mlx5sim_plan_make(&qp->qp, wqe, (resp != NULL) ? &resp->qp : NULL, &env,
                      plan_p);
    is_done      = plan_p->verdict == MLX5SIM_VERDICT_DONE;
    is_gone      = is_done ? (mlx5sim_wqe_apply(&run, wqe, plan_p) != 0) :
                             mlx5sim_wqe_is_gone(&run, plan_p);
    *rnr_timer_p = 0;
    if (resp != NULL) {
        *rnr_timer_p = mlx5sim_rnr_timer_ns(resp->qp.min_rnr_timer);
        mlx5sim_recv_release(resp);
        if (is_done && !is_gone && plan_p->resp_error) {
            mlx5sim_wqe_resp_error(resp, plan_p->resp_event);
        }
        mlx5sim_unlock(&resp->rq_lock);
    }

    if (is_gone) {
        run.resp = NULL;
        mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, plan_p);
        return MLX5SIM_VERDICT_DONE;
    }

    if (is_done && !plan_p->req_error) {
        atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.bytes, wqe->length,
                                  memory_order_relaxed);
    }
    return plan_p->verdict;
}
