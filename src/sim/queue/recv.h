/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RECV_H_
#define MLX5SIM_RECV_H_

#include <sim/objs/obj.h>

/*
 * Receives of a QP, from its own queue or from an SRQ: claimed for a message,
 * then finished or given back.
 */

/** Take a QP's responder lock; repairs what a killed peer left behind. */
void mlx5sim_rq_lock(mlx5sim_qp_obj_t *qp);

/**
 * Look at the next receive WQE of @a qp and claim it.
 * @return 1, 0 if none is posted, -1 if the queue is malformed, -2 if the
 *         process is gone.
 */
int mlx5sim_recv_claim(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p);

/** Keep what is claimed, as the message it is for has landed in part: only
 *  mlx5sim_recv_done() ends the claim then. */
void mlx5sim_recv_hold(mlx5sim_qp_obj_t *qp);

/** Read the WQE that is claimed once more. @return as mlx5sim_recv_claim(),
 *  but not 0. */
int mlx5sim_recv_again(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p);

/** Give back a claimed WQE that was not used / finish a used one. */
void mlx5sim_recv_release(mlx5sim_qp_obj_t *qp);
void mlx5sim_recv_done(mlx5sim_qp_obj_t *qp);

/**
 * Whether the receive that was just claimed is one that fails on request. Then
 * its error is completed, and the claim is over.
 * @return 0: no; 1: yes, and the QP goes on with the next receive; -1: yes, and
 *         the QP has failed.
 */
int mlx5sim_recv_inject(mlx5sim_qp_obj_t *qp, uint16_t index);

/** Complete the receives that @a qp has taken from its SRQ beforehand with
 *  flush errors; rq_lock is held. */
void mlx5sim_rq_flush_held(mlx5sim_qp_obj_t *qp);

/** Software destroys or resets @a qp: if it did not wait until it is known that
 *  the QP has nothing of its SRQ any more, the SRQ remembers. rq_lock is held.
 */
void mlx5sim_rq_check_flushed(const mlx5sim_qp_obj_t *qp);

/** @a qp is destroyed or reset: what it has taken from its SRQ, beforehand or
 *  for a message that has landed in part, is lost. rq_lock is held. */
void mlx5sim_rq_lose(mlx5sim_qp_obj_t *qp);

/** Flush all posted receive WQEs of @a qp (no SRQ); rq_lock is held. */
void mlx5sim_rq_flush(mlx5sim_qp_obj_t *qp);

#endif
