/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/stream.h>
#include <sim/engine/mlx5_def.h>


/* Place of a stream among those in error, or their number */
static unsigned mlx5sim_stream_find(const mlx5sim_qp_t *qp, uint16_t stream)
{
    unsigned i;

    for (i = 0; (i < qp->num_errored) && (qp->errored[i] != stream); ++i) {
    }

    return i;
}

int mlx5sim_stream_is_errored(const mlx5sim_qp_t *qp, uint16_t stream)
{
    return mlx5sim_stream_find(qp, stream) < qp->num_errored;
}

int mlx5sim_stream_fail(mlx5sim_qp_t *qp, uint16_t stream, unsigned syndrome)
{
    /* a flush is none of its own, and the stream may have been reset since */
    if ((syndrome == MLX5SIM_SYNDROME_WR_FLUSH) ||
        mlx5sim_stream_is_errored(qp, stream)) {
        return 1;
    }

    if ((qp->type != MLX5SIM_QPT_DCI) ||
        (syndrome == MLX5SIM_SYNDROME_LOCAL_QP_OP) ||
        (qp->num_errored + 1u >= 1u << qp->log_errored)) {
        return 0;
    }

    qp->errored[qp->num_errored++] = stream;
    return 1;
}

int mlx5sim_stream_reset(mlx5sim_qp_t *qp, uint16_t stream)
{
    unsigned i = mlx5sim_stream_find(qp, stream);

    if (i == qp->num_errored) {
        return -1;
    }

    qp->errored[i] = qp->errored[--qp->num_errored];
    return 0;
}
