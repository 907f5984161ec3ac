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


/** If @a resp is an XRC target, have it receive from the SRQ that a request
 *  names. The request is one that it takes: from its peer, with the PSN that it
 *  expects. rq_lock is held. */
void mlx5sim_fabric_bind(mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe);


/** What the engine must know about @a resp for a request that it has taken
 *  before, or takes later: as mlx5sim_fabric_bind() would leave it, but nothing
 *  changes. rq_lock is held. */
mlx5sim_qp_t
mlx5sim_fabric_view(const mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe);


/** Whether @a wqe is a datagram that is longer than the MTU of its port (IBTA
 *  C10-93.1.1): no packet is sent, and that is no error. Longer ones than the
 *  QP has for its MTU, which Linux says is 4096, are one. */
int mlx5sim_fabric_is_too_long(const mlx5sim_qp_obj_t *req,
                               const mlx5sim_wqe_t *wqe);


/** Whether an RC QP, or a DC initiator, gets no answer for now, because its
 *  port or that of its peer is down: it repeats its requests. */
int mlx5sim_fabric_is_down(const mlx5sim_qp_obj_t *req,
                           const mlx5sim_wqe_t *wqe);

#endif
