/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SQ_H_
#define MLX5SIM_SQ_H_

#include <sim/objs/obj.h>

/*
 * Send queues. Each is run only by the process that owns it, in the thread that
 * rang the doorbell, or in deferred execution by the helper thread (pipe.h).
 * What cannot be finished at once (receiver not ready, peer
 * not connected yet, a flush that another process caused) is left to the helper
 * thread of the owner; a doorbell never waits.
 */

/** Execute what is posted on @a qp, which belongs to this process, now or
 *  later. */
void mlx5sim_sq_run(mlx5sim_qp_obj_t *qp);

/** If @a qp, of this process, has a peer on another node: let what is posted
 *  fail if mlx5sim-wire has been missing for as long as an answer is waited
 *  for. */
void mlx5sim_sq_look_after(mlx5sim_qp_obj_t *qp);

/** Move @a qp (of this process) to the error state and flush both queues, now
 *  or later. Takes sq_lock and rq_lock. */
void mlx5sim_qp_flush(mlx5sim_qp_obj_t *qp);

/** Write a completion to the send CQ; sq_lock is held.
 *  @param claim  wire_claim, or NULL. */
void mlx5sim_sq_complete(mlx5sim_qp_obj_t *qp, const mlx5sim_cqe_t *cqe,
                         mlx5sim_claim_t *claim);

/** A wrong signature is to stop the send queue, and all that was begun is
 *  complete: SQD, and an event. sq_lock is held. */
void mlx5sim_sq_drained(mlx5sim_qp_obj_t *qp);

/** Let a stream of a DC initiator go on.
 *  @return 0, or -1: it is not in error. */
int mlx5sim_sq_reset_stream(mlx5sim_qp_obj_t *qp, uint16_t stream);

/** Flush the receives of a QP in error; sq_lock is held. */
void mlx5sim_sq_flush_recvs(mlx5sim_qp_obj_t *qp);

/** Write the completions of @a qp, of this process, that are held back to be
 *  compressed: software is about to look for the last ones of this QP. */
void mlx5sim_qp_settle(mlx5sim_qp_obj_t *qp);

/** Make sure that nobody executes or delivers to @a qp (of this process) any
 *  more. */
void mlx5sim_qp_withdraw(mlx5sim_qp_obj_t *qp);

#endif
