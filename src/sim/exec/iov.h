/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_IOV_H_
#define MLX5SIM_IOV_H_

#include <sim/engine/engine.h>

#include <sys/uio.h>

/*
 * What is copied from where to where, and in which order. Pure.
 */

/** Room for the pieces of one side of a plan. */
#define MLX5SIM_IOV_MAX (MLX5SIM_MAX_SGE + 2)


/** Pieces of segments, without empty ones. @return their number. */
unsigned mlx5sim_iov_fill(const mlx5sim_seg_t *segs, unsigned num_segs,
                          struct iovec *iov);

/**
 * Pieces of both sides of a plan. The last byte at the destination is a piece
 * of its own, behind all others.
 *
 * @param src        Filled, up to MLX5SIM_IOV_MAX.
 * @param num_src_p  Number of pieces.
 * @param dst        As @a src.
 * @param num_dst_p  As @a num_src_p.
 */
void mlx5sim_iov_plan(const mlx5sim_plan_t *plan, struct iovec *src,
                      unsigned *num_src_p, struct iovec *dst,
                      unsigned *num_dst_p);

#endif
