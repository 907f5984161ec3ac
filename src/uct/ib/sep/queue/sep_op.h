/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OP_H
#define UCT_SEP_OP_H

#include <uct/ib/sep/queue/sep_txwq.h>
#include <uct/api/uct.h>
#include <ucs/datastruct/mpool.h>

BEGIN_C_DECLS

/**
 * @file sep_op.h
 *
 * Descriptor of an operation that needs something done on completion.
 * Operations of a send queue complete in order; those that need nothing have no
 * descriptor.
 */

typedef struct uct_sep_op uct_sep_op_t;
typedef struct uct_sep_ep uct_sep_ep_t;


/**
 * Finish an operation: deliver the result, call the user's completion, release
 * the operation. Called once, whether it succeeded or not.
 *
 * @param op      Operation, not in a queue any more.
 * @param cqe     Completion of the operation, or of a later one if this has
 *                asked for none; a result may be in it.
 *                @ref uct_sep_op_no_cqe if that is not so in any case.
 * @param status  UCS_OK, or why there is no result.
 */
typedef void (*uct_sep_op_handler_t)(uct_sep_op_t *op,
                                     const struct mlx5_cqe64 *cqe,
                                     ucs_status_t status);


/** A completion without a result. */
extern const struct mlx5_cqe64 uct_sep_op_no_cqe;


/** Operation. Comes from a memory pool. */
struct uct_sep_op {
    ucs_queue_elem_t     queue;     /**< In uct_sep_txwq_t::outstanding */
    uct_sep_op_handler_t handler;
    uct_completion_t     *comp;     /**< User's completion, or NULL */
    uct_sep_ep_t         *ep;       /**< Set if a callback or memory of the user
                                         is involved, to find the operations of
                                         an endpoint that is destroyed */
    uint16_t             end;       /**< Index behind the last BB */
    uint32_t             length;    /**< get_bcopy: bytes */
    union {
        void             *result;   /**< Fetching atomic: where to put it */
        struct {
            uct_unpack_callback_t unpack_cb;
            void                  *arg;
        } get;                      /**< get_bcopy */
        uct_sep_op_t     *next;     /**< Endpoint destroyed: list of those whose
                                         user is still to be told */
    };
};


/** Operation with a buffer in registered memory behind it. */
typedef struct uct_sep_desc {
    uct_sep_op_t super;
    uint32_t     lkey;  /**< If invalid, super.result is the memory handle of
                             the buffer */
} uct_sep_desc_t;


/** The buffer of a descriptor. */
static inline void *uct_sep_desc_buffer(uct_sep_desc_t *desc)
{
    return desc + 1;
}


/** Operands of an atomic; opcode and masks are those of the device. */
typedef struct uct_sep_wr_atomic {
    unsigned opcode;        /**< MLX5_OPCODE_ATOMIC_xx */
    uint64_t value;         /**< To swap in or to add */
    uint64_t compare;       /**< To compare with, or the field boundary */
    uint64_t swap_mask;
    uint64_t compare_mask;
} uct_sep_wr_atomic_t;


/** Handlers. */
#define UCT_SEP_OP_DECLARE(_name) \
    void _name(uct_sep_op_t *op, const struct mlx5_cqe64 *cqe, \
               ucs_status_t status);

UCT_SEP_OP_DECLARE(uct_sep_op_release)
UCT_SEP_OP_DECLARE(uct_sep_op_complete) /* There is a user's completion */
UCT_SEP_OP_DECLARE(uct_sep_op_complete_flush)
UCT_SEP_OP_DECLARE(uct_sep_op_complete_get_bcopy)
UCT_SEP_OP_DECLARE(uct_sep_op_complete_fetch32)
UCT_SEP_OP_DECLARE(uct_sep_op_complete_fetch64)


/** Memory pool of operations without a buffer. */
ucs_status_t uct_sep_op_mpool_init(ucs_mpool_t *mp);


/**
 * Finish all operations of a queue, e.g. because the QP has failed.
 *
 * @param status Passed to the users.
 */
void uct_sep_txwq_purge(uct_sep_txwq_t *txwq, ucs_status_t status);


/**
 * Finish, as cancelled, all operations that an endpoint's user would hear of.
 * The descriptors stay in the queue: the device has their work requests.
 */
void uct_sep_txwq_disown(uct_sep_txwq_t *txwq, uct_sep_ep_t *ep);

END_C_DECLS

#endif
