/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CQ_H_
#define MLX5SIM_CQ_H_

#include <sim/objs/obj.h>

/*
 * Completion queues, in the memory of the process that owns them.
 */

/** Have peers write to the ring of a CQ of this process without a call, if that
 *  can be done: before they know it. */
void mlx5sim_cq_share(mlx5sim_cq_t *cq);

/** Give the memory of the ring back to the program. Nothing may be put into the
 *  CQ any more. */
void mlx5sim_cq_unshare(mlx5sim_cq_t *cq);

/** Take the lock of a CQ; repairs what a killed process left behind. */
void mlx5sim_cq_lock(mlx5sim_cq_t *cq);

/** Put a completion into @a cq, which may belong to any process. If the CQ asks
 *  for compression, it may be held back until mlx5sim_cq_settle().
 *  @param claim  Receive WQE it completes, or wire_claim; NULL for other send
 *                completions.
 *  @return 0, or -1 if the CQ is full or its process is gone. */
int mlx5sim_cq_push(mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe,
                    mlx5sim_claim_t *claim);

/** Write what is held back, if there is anything. Any process may do that, also
 *  after the CQ was destroyed. */
void mlx5sim_cq_settle(mlx5sim_cq_t *cq);

/** Continue in another ring. CQEs that were not polled stay in the old one,
 *  followed by one that says so (PRM: RESIZE_CQ), for the driver to copy them.
 *  Not for CQs with compression.
 *  @param buf       Address of the new ring in this process, the CQ's owner.
 *  @param num_cqes  Its length, 2^n.
 *  @param cqe_size  64 or 128.
 *  @return 0, -EINVAL if the new ring can't hold what was not polled, or if the
 *          old one is full. */
int mlx5sim_cq_resize(mlx5sim_cq_t *cq, uint64_t buf, uint32_t num_cqes,
                      uint32_t cqe_size);

/** Tell the timeline what the program has polled, which it does without the
 *  device. For queues of this process. */
void mlx5sim_cq_trace_polled(mlx5sim_cq_t *cq);

/** Arm doorbell: @a sn_cmd_ci is the first word as stored, host order. */
void mlx5sim_cq_arm(mlx5sim_cq_t *cq, uint32_t sn_cmd_ci);

#endif
