/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OP_DONE_H
#define UCT_SEP_OP_DONE_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_op_done.h
 *
 * What finishes an operation of each kind: see uct_sep_op_handler_t. Each
 * belongs to a pool of the interface, to whose list it releases the operation.
 */

/** @return An operation without a buffer, or NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_op_t *uct_sep_op_get(uct_sep_iface_t *iface)
{
    return ucs_likely(iface->tx.free_ops.head != NULL) ?
           uct_sep_op_list_pop(&iface->tx.free_ops) :
           (uct_sep_op_t*)ucs_mpool_get(&iface->tx.op_mp);
}


#define UCT_SEP_OP_DONE_DECLARE(_name) \
    void _name(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe, \
               ucs_queue_elem_t *elem, ucs_status_t status);

/* Without a buffer; there is a user's completion */
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete)
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete_flush)

/* With a buffer of a segment */
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_release_desc)
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete_desc)
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete_get_bcopy)

/* With a buffer of 8 bytes */
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete_fetch32)
UCT_SEP_OP_DONE_DECLARE(uct_sep_op_complete_fetch64)


/** Take an operation's result, if it has one, from its completion: it may be
 *  finished with another one.
 *
 *  @param cqe  Has data. */
void uct_sep_op_keep_result(uct_sep_op_t *op, const struct mlx5_cqe64 *cqe);

END_C_DECLS

#endif
