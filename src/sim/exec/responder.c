/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/responder.h>
#include <sim/exec/layout.h>
#include <sim/exec/window.h>
#include <sim/objs/mem.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/cq.h>
#include <sim/queue/recv.h>

#include <errno.h>


static const mlx5sim_mr_t *
mlx5sim_responder_mr_find(void *arg, mlx5sim_side_t side, uint32_t key)
{
    mlx5sim_run_t *run = arg;
    mlx5sim_qp_obj_t *qp;
    mlx5sim_mr_obj_t *mr, *base;
    const mlx5sim_klm_t *klm;
    uint32_t next;

    qp = (side == MLX5SIM_SIDE_REQUESTER) ? run->req : run->resp;
    mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);
    if ((mr == NULL) ||
        (atomic_load(&mr->o.owner) != atomic_load(&qp->o.owner)) ||
        !mr->o.ready || (mr->mr.key != key)) {
        return NULL;
    }

    if ((mr->window.type != 0) || (mr->layout.room != 0)) {
        return (mlx5sim_window_map(mr, key, qp, &run->window) == 0) ?
               &run->window : NULL;
    }

    /* an indirect key ends with the first of those that it leads to */
    for (next = mr->list; next != 0; next = klm->next) {
        klm  = mlx5sim_obj_at(MLX5SIM_OBJ_KLM, next);
        base = mlx5sim_obj_find(MLX5SIM_OBJ_MR, klm->key >> 8);
        if ((base == NULL) || !base->o.ready || (base->mr.key != klm->key) ||
            (atomic_load(&base->o.owner) != atomic_load(&qp->o.owner))) {
            return NULL;
        }
    }

    return &mr->mr;
}

static uint64_t
mlx5sim_responder_layout_find(void *arg, mlx5sim_side_t side, uint32_t key,
                              uint32_t access, uint64_t addr, uint64_t length,
                              uint64_t *va_p)
{
    const mlx5sim_run_t *run = arg;

    return mlx5sim_layout_find((side == MLX5SIM_SIDE_REQUESTER) ? run->req :
                                                                  run->resp,
                               key, access, addr, length, va_p);
}

/* Claim a receive, or the one after it if it fails on request */
static int mlx5sim_responder_recv_next(mlx5sim_qp_obj_t *resp,
                                       mlx5sim_recv_wqe_t *recv_p)
{
    int ret = mlx5sim_recv_claim(resp, recv_p);

    if (ret == 1) {
        switch (mlx5sim_recv_inject(resp, recv_p->index)) {
        case 0:
            break;
        case 1:
            ret = mlx5sim_recv_claim(resp, recv_p);
            break;
        default:
            ret = -1;
            break;
        }
    }

    return ret;
}

static int mlx5sim_responder_recv_peek(void *arg, mlx5sim_recv_wqe_t *recv_p)
{
    mlx5sim_run_t *run = arg;
    int ret;

    if (run->resp->claim.held) {
        ret = mlx5sim_recv_again(run->resp, recv_p);
    } else {
        ret = mlx5sim_responder_recv_next(run->resp, recv_p);
    }
    if (ret == -2) {
        run->recv_gone = 1;
        return 0;
    }

    return ret;
}

mlx5sim_env_t mlx5sim_responder_env(mlx5sim_run_t *run)
{
    return (mlx5sim_env_t){run, mlx5sim_responder_mr_find,
                           mlx5sim_responder_recv_peek,
                           mlx5sim_responder_layout_find};
}

int mlx5sim_responder_is_alive(const mlx5sim_qp_obj_t *resp,
                               const mlx5sim_proc_t *proc)
{
    uint32_t db;

    return (atomic_load(&resp->o.owner) == mlx5sim_self_tag) ||
           (mlx5sim_mem_read(proc, resp->db, &db, sizeof(db)) != -ESRCH);
}

void mlx5sim_responder_deliver(mlx5sim_qp_obj_t *resp, mlx5sim_plan_t *plan)
{
    if (plan->invalidate) {
        mlx5sim_window_invalidate(mlx5sim_obj_at(MLX5SIM_OBJ_MR,
                                                 plan->inv_rkey >> 8),
                                  plan->inv_rkey);
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
}

void mlx5sim_responder_fail(mlx5sim_qp_obj_t *resp, unsigned event)
{
    if ((resp->qp.state == MLX5SIM_QPS_ERR) ||
        (resp->qp.type == MLX5SIM_QPT_DCT)) {
        return;
    }

    resp->qp.state = MLX5SIM_QPS_ERR;
    if (event != MLX5SIM_EVENT_NONE) {
        mlx5sim_async_event(&resp->o, event);
    }

    mlx5sim_qp_kick(resp);
}
