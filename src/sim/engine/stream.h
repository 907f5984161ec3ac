/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_STREAM_H_
#define MLX5SIM_STREAM_H_

#include <sim/engine/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Streams of a DC initiator: numbers that its work requests have. An error is
 * one of the request's stream, whose further requests are flushed until it is
 * reset; the others go on (mlx5dv_dci_stream_id_reset(3)). An initiator that
 * was made without streams fails with the first one.
 */

/** Whether a stream is in error: its requests are flushed. */
int mlx5sim_stream_is_errored(const mlx5sim_qp_t *qp, uint16_t stream);

/**
 * A request of @a stream has failed with @a syndrome, or was flushed as its
 * stream is in error.
 *
 * @return Whether this concerns the stream alone; if not, it is the queue pair
 *         that fails: as many streams as it can have are in error, or the
 *         request was malformed, so that its stream is not to be believed
 *         (a guess).
 */
int mlx5sim_stream_fail(mlx5sim_qp_t *qp, uint16_t stream, unsigned syndrome);

/** Let a stream go on. @return 0, or -1: it is not in error. */
int mlx5sim_stream_reset(mlx5sim_qp_t *qp, uint16_t stream);

#ifdef __cplusplus
}
#endif

#endif
