/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RESPONDER_H_
#define MLX5SIM_RESPONDER_H_

#include <sim/objs/obj.h>

/*
 * What a work request or one of its packets does at its responder, which
 * another process may own: the process of the requester does it.
 */

/** Both sides of a work request. */
typedef struct mlx5sim_run {
    mlx5sim_qp_obj_t *req;
    mlx5sim_qp_obj_t *resp;      /* rq_lock is held; NULL: no responder */
    int               recv_gone; /* responder's process died under way */
    mlx5sim_mr_t      window;    /* the last key that was looked up of those
                                    that work requests change */
} mlx5sim_run_t;

/** What the engine looks things up with, as long as @a run exists. */
mlx5sim_env_t mlx5sim_responder_env(mlx5sim_run_t *run);

/** Whether the process @a proc of @a resp still answers; costs a system call,
 *  and is only needed if nothing else touches its memory. */
int mlx5sim_responder_is_alive(const mlx5sim_qp_obj_t *resp,
                               const mlx5sim_proc_t *proc);

/** Tell the responder: invalidate a key, write the CQE, use up the receive, as
 *  @a plan says. Changes the plan if the CQE finds no room. */
void mlx5sim_responder_deliver(mlx5sim_qp_obj_t *resp, mlx5sim_plan_t *plan);

/** The responder enters the error state: raise @a event unless it is
 *  MLX5SIM_EVENT_NONE, and have its process flush its queues. A DC target goes
 *  on: it is there for other initiators, too. */
void mlx5sim_responder_fail(mlx5sim_qp_obj_t *resp, unsigned event);

#endif
