/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TRANSFER_H_
#define MLX5SIM_TRANSFER_H_

#include <sim/exec/signature.h>
#include <sim/objs/obj.h>

/**
 * Move the payload between two processes, or carry out an atomic operation.
 *
 * @param req        Requester.
 * @param resp       Responder, whose lock is held.
 * @param resp_proc  Its process.
 * @param plan       What to move; a payload that goes into a CQE, the
 *                   responder's or the requester's, is put into the plan.
 * @param side_p     Whose memory is not mapped, if the result is -EFAULT.
 * @return 0, -EFAULT, or another -errno: the responder's process is gone.
 */
int mlx5sim_transfer(const mlx5sim_qp_obj_t *req, const mlx5sim_qp_obj_t *resp,
                     mlx5sim_proc_t *resp_proc, const mlx5sim_wqe_t *wqe,
                     mlx5sim_plan_t *plan, mlx5sim_side_t *side_p);

/** Whether memory of a list is not pinned. */
int
mlx5sim_transfer_has_on_demand(const mlx5sim_seg_t *segs, unsigned num_segs);

/** Read what a plan moves from the memory of a process.
 *  @param user   Who checks signatures, NULL: nobody.
 *  @param num_p  Number of pieces that it was in.
 *  @return 0 or -errno. */
int mlx5sim_transfer_fetch(const mlx5sim_sig_user_t *user,
                           const mlx5sim_proc_t *proc,
                           const mlx5sim_plan_t *plan, uint8_t *out_p,
                           unsigned *num_p);

/** Carry out an atomic on the memory of @a resp_proc. @return as
 *  mlx5sim_transfer(), and the old value. */
int mlx5sim_transfer_atomic(mlx5sim_proc_t *resp_proc,
                            const mlx5sim_wqe_t *wqe,
                            const mlx5sim_plan_t *plan, uint64_t *old_p);

/** Whether @a length bytes of an answer go into the CQE of a request, which may
 *  have none. */
int mlx5sim_transfer_fits_req(const mlx5sim_qp_obj_t *req, int has_cqe,
                              uint64_t length);

/** Hand the old value of an atomic to the requester: to the memory of its
 *  process, or into the completion in @a plan. @return 0, or -EFAULT. */
int mlx5sim_transfer_result(const mlx5sim_qp_obj_t *req,
                            const mlx5sim_wqe_t *wqe, uint64_t old,
                            mlx5sim_plan_t *plan);

#endif
