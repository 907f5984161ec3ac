/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TRAFFIC_H_
#define MLX5SIM_TRAFFIC_H_

#include <sim/objs/obj.h>

/*
 * Packets of queue pairs of one instance, in the counters of their ports. Those
 * between nodes are counted where they are: by mlx5sim-wire.
 */

/** Packets of a work request that are sent.
 *  @param resp      Who receives them; NULL: nobody.
 *  @param length    Bytes of payload in them.
 *  @param is_first  Of the message. */
void mlx5sim_traffic_request(const mlx5sim_qp_obj_t *req,
                             const mlx5sim_wqe_t *wqe,
                             const mlx5sim_qp_obj_t *resp, uint32_t packets,
                             uint32_t length, int is_first, int is_last);

/** Packets of an answer to it, an acknowledgement or one with data. */
void mlx5sim_traffic_answer(const mlx5sim_qp_obj_t *req,
                            const mlx5sim_wqe_t *wqe,
                            const mlx5sim_qp_obj_t *resp, uint32_t packets,
                            uint32_t length);

/** A message that is carried out as a whole, with its answer. */
void mlx5sim_traffic_message(const mlx5sim_qp_obj_t *req,
                             const mlx5sim_wqe_t *wqe,
                             const mlx5sim_qp_obj_t *resp);

/** A responder has taken a request. */
void mlx5sim_traffic_taken(const mlx5sim_qp_obj_t *resp,
                           const mlx5sim_wqe_t *wqe);

#endif
