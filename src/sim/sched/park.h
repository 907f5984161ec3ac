/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PARK_H_
#define MLX5SIM_PARK_H_

#include <sim/objs/obj.h>

/*
 * When to look again at a QP of this process that can't go on now. The helper
 * thread does it, at mlx5sim_qp_obj_t.retry_at; the sq_lock is held.
 */

/** CLOCK_MONOTONIC, in ns, or what it was set to. */
uint64_t mlx5sim_now_ns(void);

/** Stepped execution: it is @a now, in ns and not 0, until this is called
 *  again. */
void mlx5sim_now_set(uint64_t now);

/** The responder has no receive: try again later, or give up.
 *  @param timer  Pause it asks for, in ns.
 *  @return Whether to wait. */
int mlx5sim_park_rnr(mlx5sim_qp_obj_t *qp, uint64_t timer);

/** The responder has no receive, and there are retries left.
 *  @param timer  Pause it asks for, in ns. */
void mlx5sim_park_pause(mlx5sim_qp_obj_t *qp, uint64_t timer);

/** The responder does not answer: try again later, or give up.
 *  @return Whether to wait. */
int mlx5sim_park_retry(mlx5sim_qp_obj_t *qp);

/** The responder is gone: nobody will answer, but hardware does not know. It
 *  finds out after its last retry; we wait as long, but not longer than
 *  MLX5SIM_GONE_AFTER. @return Whether to wait. */
int mlx5sim_park_gone(mlx5sim_qp_obj_t *qp);

/** What was posted waits for mlx5sim-wire: look whether that lives, later. */
void mlx5sim_park_server(mlx5sim_qp_obj_t *qp);

/** The QP is in error and still has receives of its SRQ: flushing these takes a
 *  while. @return Whether to wait. */
int mlx5sim_park_flush(mlx5sim_qp_obj_t *qp);

/** No doorbell announces receives, but those posted in the error state must be
 *  flushed too: look for them, ever less often. */
void mlx5sim_park_watch(mlx5sim_qp_obj_t *qp);

#endif
