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

/**
 * Read the next WQE of a queue, if it was posted, and those behind it. Those of
 * another process that were read before are not read again, and a doorbell
 * record of before is as good as today's.
 *
 * @param ahead     Of the queue, under its lock.
 * @param buf       The queue's address in its process.
 * @param num_wqes  How many it has room for.
 * @param shift     The length of each is 2^shift bytes.
 * @param slot      Place of the next one.
 * @param consumed  How many were taken.
 * @param db_p      Doorbell record, host order: the WQE is valid if that is not
 *                  @a consumed.
 * @return 0, or -1 if the process is gone.
 */
int mlx5sim_recv_wqe_next(const mlx5sim_proc_t *proc,
                          mlx5sim_recv_ahead_t *ahead, uint64_t db,
                          uint64_t buf, uint32_t num_wqes, unsigned shift,
                          uint32_t slot, uint16_t consumed, uint32_t *db_p,
                          void *wqe_p);

#endif
