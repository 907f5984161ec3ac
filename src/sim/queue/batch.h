/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_BATCH_H_
#define MLX5SIM_BATCH_H_

#include <sim/objs/obj.h>

/*
 * Completions that a thread holds back, to write several of them as one block:
 * only in CQs that ask for compression, and only between open and close. The
 * completions themselves are in the CQ, for whoever needs them to be written.
 */

/** From now on completions may be held back in this thread. */
void mlx5sim_batch_open(void);

/** Write what this thread holds back, and hold nothing back any more. */
void mlx5sim_batch_close(void);

/** Note that a completion of @a cq is going to be held back.
 *  @return whether it may. */
int mlx5sim_batch_join(const mlx5sim_cq_t *cq);

/** Whether to write what is held back of CQ @a index now.
 *  @param calls  How often this was asked since it is held back. */
typedef int (*mlx5sim_batch_due_t)(uint32_t index, unsigned calls, void *arg);

/** Ask for each CQ. */
void mlx5sim_batch_settle(mlx5sim_batch_due_t due, void *arg);

/** Write what is held back in CQs of other processes: before a requester
 *  learns that its message has been received, whereupon it may exit. */
void mlx5sim_batch_settle_others(void);

#endif
