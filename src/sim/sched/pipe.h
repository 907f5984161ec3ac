/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PIPE_H_
#define MLX5SIM_PIPE_H_

#include <sim/objs/obj.h>

/*
 * Deferred execution of a send queue, on the way through which a work request
 * goes: it is fetched, its packets are sent, the responder's answers come back,
 * its completion is written. The helper thread of the process moves all pipes
 * on, step by step; chance says how long each step waits.
 *
 * A pipe is in the memory of the QP's process: what is under way ends with it.
 */

typedef struct mlx5sim_pipe mlx5sim_pipe_t;

/** What a pipe did, and what it waits for. */
typedef enum {
    MLX5SIM_PIPE_IDLE,    /* nothing to do, or a time: retry_at of the QP */
    MLX5SIM_PIPE_WAITS,   /* for later rounds */
    MLX5SIM_PIPE_MOVED    /* a step was made */
} mlx5sim_pipe_state_t;

/** A pipe without work. @param die  What chance knows its QP by. @return NULL
 *  without memory. */
mlx5sim_pipe_t *mlx5sim_pipe_new(uint32_t die);

void mlx5sim_pipe_free(mlx5sim_pipe_t *pipe);

/** Note that @a qp, of this process, was rung: all up to the doorbell record is
 *  to be executed. For signal handlers. */
void mlx5sim_pipe_ring(mlx5sim_qp_obj_t *qp);

/** Make the steps of @a qp that are due. Takes its sq_lock.
 *  @param is_kicked  Something may have happened to it from outside.
 *  @param round      Number of this round of the helper thread.
 *  @param due_p      Reduced to the earliest round it waits for. */
mlx5sim_pipe_state_t mlx5sim_pipe_run(mlx5sim_pipe_t *pipe,
                                      mlx5sim_qp_obj_t *qp, int is_kicked,
                                      uint64_t round, uint64_t *due_p);

#endif
