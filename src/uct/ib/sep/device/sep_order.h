/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ORDER_H
#define UCT_SEP_ORDER_H

#include <infiniband/verbs.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @file sep_order.h
 *
 * Whether an adapter places the data of a write in the order of its bytes, so
 * that who finds the last one has all of them. IBTA does not say so (9.5);
 * adapters did, until packets took several paths. Firmware tells for each queue
 * pair.
 */

/** What is known about the order of data. */
typedef enum {
    UCT_SEP_ORDER_UNKNOWN, /**< Nobody can be asked */
    UCT_SEP_ORDER_KEPT,    /**< In order */
    UCT_SEP_ORDER_BROKEN   /**< Not in order */
} uct_sep_order_t;


/**
 * Ask about RDMA writes of others into memory, by the queue pair that receives
 * them.
 *
 * libibverbs has the question (ibv_query_qp_data_in_order(3), rdma-core 36),
 * but no answer apart from yes: libmlx5 says 0 as well if it does not know, or
 * if the queue pair is not in RTS, in which one that only receives never is. So
 * if it says 0, firmware is asked as libmlx5 does: bit data_in_order of the
 * queue pair's context (mlx5 PRM: QUERY_QP), which needs a context with DEVX.
 * libmlx5 opens all contexts with it where the kernel allows that.
 *
 * @param qp  In RTR or RTS.
 *
 * @return What is known. Always UCT_SEP_ORDER_UNKNOWN on processors other than
 *         x86, whose memory may be written in another order (libmlx5 does not
 *         answer there either).
 */
uct_sep_order_t uct_sep_order_query(struct ibv_qp *qp);

END_C_DECLS

#endif
