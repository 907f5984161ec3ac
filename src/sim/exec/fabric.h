/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_FABRIC_H_
#define MLX5SIM_FABRIC_H_

#include <sim/objs/obj.h>

/*
 * The path between two QPs.
 */

/** Find the QP that a work request of @a req reaches, and take its responder
 *  lock. @return NULL if the fabric has no such QP. */
mlx5sim_qp_obj_t *
mlx5sim_fabric_find(const mlx5sim_qp_obj_t *req, const mlx5sim_wqe_t *wqe);


/** Whether an RC QP, or a DC initiator, gets no answer for now, because its
 *  port or that of its peer is down: it repeats its requests. */
int mlx5sim_fabric_is_down(const mlx5sim_qp_obj_t *req,
                           const mlx5sim_wqe_t *wqe);

#endif
