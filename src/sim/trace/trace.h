/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TRACE_H_
#define MLX5SIM_TRACE_H_

#include <sim/objs/obj.h>

/*
 * MLX5SIM_TRACE: what the devices of an instance do, as a timeline for Perfetto
 * and Chrome (Trace Event Format, JSON Array Format: the bracket at the end may
 * be missing, so processes append whole lines). Each thread that rings, each
 * queue pair and each completion queue is a row of its process.
 *
 * All functions can be called from a signal handler, and by any process.
 */

/** Whether there is a timeline; see mlx5sim_trace_is_on(). */
extern int mlx5sim_trace_fd;

/** Open the file, if it is asked for. @return 0, or -1 with errno after the
 *  reason was written to standard error. */
int mlx5sim_trace_open(void);

static inline int mlx5sim_trace_is_on(void)
{
    return __builtin_expect(mlx5sim_trace_fd >= 0, 0);
}

/** This thread has posted a work request: it is in the queue when it rings,
 *  and was written before that. */
void mlx5sim_trace_post(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe);

/** This thread has rung for @a qp. @param index  Of the WQE in the doorbell.
 *  @param length  Bytes stored: 8, or a WQE's with BlueFlame. */
void mlx5sim_trace_doorbell(const mlx5sim_qp_obj_t *qp, unsigned index,
                            unsigned length);

/** A work request was executed.
 *  @param begin  When that began, mlx5sim_clock_now(); its end is now. */
void mlx5sim_trace_wqe(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                       uint64_t begin);

/** A packet of a work request is sent. @param is_lost  On its way. */
void mlx5sim_trace_packet(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn, int is_lost);

/** A completion is in the queue. */
void mlx5sim_trace_cqe(const mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe);

/** The program has taken completions: its consumer index has moved since the
 *  device last looked. */
void mlx5sim_trace_poll(const mlx5sim_cq_t *cq, uint32_t count);

/** A completion queue was armed. */
void mlx5sim_trace_arm(const mlx5sim_cq_t *cq);

#endif
