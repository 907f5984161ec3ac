/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_WQE_H_
#define MLX5SIM_WQE_H_

#include <sim/objs/obj.h>

/**
 * Carry out a work request: everything it does to its responder, which another
 * process may own. The caller handles the requester's side.
 *
 * @param qp           Requester, of this process; its sq_lock is held.
 * @param plan_p       The engine's plan, with the outcome.
 * @param rnr_timer_p  Pause, in ns, that the responder asks for if it has no
 *                     receive.
 * @return MLX5SIM_VERDICT_DONE, else nothing was done and the work request is
 *         to be retried.
 */
mlx5sim_verdict_t
mlx5sim_wqe_execute(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                    mlx5sim_plan_t *plan_p, uint64_t *rnr_timer_p);

/** Carry out what is for this side alone. @return 0 or a syndrome. */
unsigned
mlx5sim_wqe_local(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe);

/** Have a datagram vanish on its way. Arguments as above. */
void mlx5sim_wqe_lose(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                      mlx5sim_plan_t *plan_p);

#endif
