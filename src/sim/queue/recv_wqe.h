/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RECV_WQE_H_
#define MLX5SIM_RECV_WQE_H_

#include <sim/objs/obj.h>

#include <stddef.h>

/*
 * Receives that software has posted, in the memory of the process that owns the
 * queue.
 */

/** Largest receive WQE: 512 bytes of an RQ, 16 + 31 * 16 of an SRQ, rounded. */
#define MLX5SIM_RECV_WQE_MAX 1024

/**
 * Read a doorbell record and a WQE of a queue, in one call if it belongs to
 * another process.
 * @param db_p  Host order.
 * @return 0 or -1.
 */
int mlx5sim_recv_wqe_read(const mlx5sim_proc_t *proc, int is_mine, uint64_t db,
                          uint64_t wqe, size_t stride, uint32_t *db_p,
                          void *wqe_p);

#endif
