/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SRQ_H_
#define MLX5SIM_SRQ_H_

#include <sim/objs/obj.h>

/*
 * Shared receive queues. A WQE leaves one when a QP claims it, and may come
 * back if it turns out not to be used.
 */

/** Take the lock of an SRQ; repairs what a killed process left behind. */
void mlx5sim_srq_lock(mlx5sim_srq_t *srq);

/** Move the next WQE of @a srq to the claim of @a qp, whose responder lock is
 *  held. @return as mlx5sim_recv_claim(). */
int mlx5sim_srq_claim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp, uint8_t *wqe,
                      uint32_t *index_p);

/** Move a claimed WQE back. */
void mlx5sim_srq_unclaim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp);

/**
 * Have a QP take WQEs before it needs them, as many as its mlx5sim_qp_obj_t::
 * prefetch says and there are.
 * @return as mlx5sim_recv_claim() of what stopped it, or 1.
 */
int mlx5sim_srq_fetch(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp);

/** Move the first one that it took beforehand to its claim. @return as
 *  mlx5sim_recv_claim(). */
int mlx5sim_srq_claim_held(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp,
                           uint8_t *wqe, uint32_t *index_p);

/** A QP goes with @a count WQEs that it has taken: they never come back, which
 *  is reported when somebody else takes one. */
void mlx5sim_srq_lose(mlx5sim_srq_t *srq, const mlx5sim_qp_obj_t *qp,
                      uint32_t count);

/** A QP of this process goes although software can't know that there are no
 *  such WQEs, which is reported when somebody takes one that is posted later.
 */
void mlx5sim_srq_note_early(mlx5sim_srq_t *srq, const mlx5sim_qp_obj_t *qp);

/** Arm the limit event of an SRQ of this process; 0 disarms it. */
void mlx5sim_srq_set_limit(mlx5sim_srq_t *srq, uint16_t limit);

#endif
