/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OP_H
#define UCT_SEP_OP_H

#include <uct/ib/sep/queue/sep_txwq.h>
#include <uct/api/uct.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/datastruct/queue.h>
#include <ucs/sys/compiler.h>

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
typedef struct uct_sep_iface uct_sep_iface_t;


/**
 * Finish an operation: deliver the result, call the user's completion, release
 * the operation. Called once, whether it succeeded or not. The handlers are
 * those of sep_op_done.h; the arguments are in the order in which a polling
 * loop has them at hand.
 *
 * @param iface   Interface of the operation.
 * @param cqe     Completion of the operation, or of a later one if this has
 *                asked for none; a result may be in it.
 *                @ref uct_sep_op_no_cqe if that is not so in any case.
 * @param elem    uct_sep_op_t::queue of the operation, not in a queue any more.
 * @param status  UCS_OK, or why there is no result.
 */
typedef void (*uct_sep_op_handler_t)(uct_sep_iface_t *iface,
                                     const struct mlx5_cqe64 *cqe,
                                     ucs_queue_elem_t *elem,
                                     ucs_status_t status);


/** A completion without a result. */
extern const struct mlx5_cqe64 uct_sep_op_no_cqe;


/** Operation. Comes from a memory pool. */
struct uct_sep_op {
    uct_sep_ep_t         *ep;       /**< Set if a callback or memory of the user
                                         is involved, to find the operations of
                                         an endpoint that is destroyed */
    union {
        void             *arg;      /**< get_bcopy: of unpack_cb */
        uct_sep_op_t     *next;     /**< Endpoint destroyed: list of those whose
                                         user is still to be told */
    };
    ucs_queue_elem_t     queue;     /**< In uct_sep_txwq_t::outstanding, or in a
                                         uct_sep_op_list_t */
    uct_sep_op_handler_t handler;
    union {
        void             *result;   /**< Fetching atomic: where to put it */
        uct_unpack_callback_t unpack_cb; /**< get_bcopy */
        struct mlx5_wqe_raddr_seg raddr; /**< put_bcopy: its target; reserved is
                                              always 0 in a descriptor */
    };
    union {
        uct_completion_t *comp;     /**< User's completion, or NULL */
        uct_sep_txwq_t   *txwq;     /**< While the user's data are packed */
    };
    uint16_t             end;       /**< Index behind the last BB */
    uint32_t             length;    /**< get_bcopy: bytes */
};


/**
 * Operation with a buffer in registered memory behind it. The buffer is aligned
 * to a cache line, and the line in front of it has all that a copy needs.
 *
 * Those with a buffer of a segment are, when they are free, as a copy that only
 * has to be released wants them: the handler is uct_sep_op_release_desc(), ep
 * is NULL.
 */
typedef struct uct_sep_desc {
    uct_sep_op_t             super;
    struct mlx5_wqe_data_seg data; /**< Of the buffer, of no bytes. If its key
                                        is invalid, super.result is the memory
                                        handle. */
} uct_sep_desc_t;

static_assert((sizeof(uct_sep_desc_t) - offsetof(uct_sep_desc_t, super.queue))
              == 64, "what a copy needs of a descriptor");
static_assert((offsetof(uct_sep_desc_t, super.raddr) % UCT_SEP_DS_SIZE) == 0,
              "alignment of segments");
static_assert((offsetof(uct_sep_desc_t, data) % UCT_SEP_DS_SIZE) == 0,
              "alignment of segments");


/** The buffer of a descriptor. */
static inline void *uct_sep_desc_buffer(const uct_sep_desc_t *desc)
{
    return (void*)(desc + 1);
}


/** Set what stays in a descriptor. */
static inline void uct_sep_desc_set_lkey(uct_sep_desc_t *desc, uint32_t lkey)
{
    desc->super.raddr.reserved = 0;

    desc->data.byte_count = 0;
    desc->data.lkey       = htobe32(lkey);
    desc->data.addr       = htobe64((uintptr_t)uct_sep_desc_buffer(desc));
}


/** Keep the target of a copy while that is made. */
static UCS_F_ALWAYS_INLINE void
uct_sep_desc_set_target(uct_sep_desc_t *desc, uint64_t remote_addr,
                        uct_rkey_t rkey)
{
    desc->super.raddr.raddr = htobe64(remote_addr);
    desc->super.raddr.rkey  = (uint32_t)rkey;
}


/** @return Local key of a descriptor's buffer. */
static inline uint32_t uct_sep_desc_lkey(const uct_sep_desc_t *desc)
{
    return be32toh(desc->data.lkey);
}


/** Operands of an atomic; opcode and masks are those of the device. */
typedef struct uct_sep_wr_atomic {
    unsigned opcode;        /**< MLX5_OPCODE_ATOMIC_xx */
    uint64_t value;         /**< To swap in or to add */
    uint64_t compare;       /**< To compare with, or the field boundary */
    uint64_t swap_mask;
    uint64_t compare_mask;
} uct_sep_wr_atomic_t;


/**
 * Operations of one pool that are at hand, the last one used first. In front of
 * the pool, which has an operation's next user, and its next release, find out
 * which pool it is from.
 */
typedef struct uct_sep_op_list {
    ucs_queue_elem_t *head; /**< uct_sep_op_t::queue, or NULL */
} uct_sep_op_list_t;


/** @return The operation of an element. */
static UCS_F_ALWAYS_INLINE uct_sep_op_t *uct_sep_op(ucs_queue_elem_t *elem)
{
    return ucs_container_of(elem, uct_sep_op_t, queue);
}


/** @return An operation of a list that has any. */
static UCS_F_ALWAYS_INLINE uct_sep_op_t *
uct_sep_op_list_pop(uct_sep_op_list_t *list)
{
    ucs_queue_elem_t *elem = list->head;

    list->head = elem->next;
    return uct_sep_op(elem);
}


/** Release an operation of the list's pool. */
static UCS_F_ALWAYS_INLINE void
uct_sep_op_list_push(uct_sep_op_list_t *list, ucs_queue_elem_t *elem)
{
    elem->next = list->head;
    list->head = elem;
}


/** There are none. */
static inline void uct_sep_op_list_init(uct_sep_op_list_t *list)
{
    list->head = NULL;
}


/** Finish an operation, whose end is set, when that is completed. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_push(uct_sep_txwq_t *txwq, uct_sep_op_t *op)
{
    ucs_queue_push(&txwq->outstanding, &op->queue);
}


/** Finish an operation when the work request just posted completes. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_track(uct_sep_txwq_t *txwq, uct_sep_op_t *op)
{
    op->end = txwq->sw_pi;
    uct_sep_txwq_push(txwq, op);
}


/** Take the first operation off a queue that has any. */
static UCS_F_ALWAYS_INLINE void uct_sep_txwq_pull(uct_sep_txwq_t *txwq)
{
    ucs_queue_pull_non_empty(&txwq->outstanding);
}


/** Take the first operation off a queue, unless the second one ends at the same
 *  place.
 *
 * @param elem  The first one.
 *
 * @return Whether it was taken. */
static UCS_F_ALWAYS_INLINE int
uct_sep_txwq_pull_only(uct_sep_txwq_t *txwq, ucs_queue_elem_t *elem,
                       uint16_t end)
{
    if (ucs_likely(txwq->outstanding.ptail == &elem->next)) {
        txwq->outstanding.ptail = &txwq->outstanding.head;
    } else if (ucs_unlikely(uct_sep_op(elem->next)->end == end)) {
        return 0;
    } else {
        txwq->outstanding.head = elem->next;
    }

    return 1;
}


/** Give all operations back to their pool. */
void uct_sep_op_list_drain(uct_sep_op_list_t *list);


/** Memory pool of operations without a buffer. */
ucs_status_t uct_sep_op_mpool_init(ucs_mpool_t *mp);


/**
 * Finish all operations of a queue, e.g. because the QP has failed.
 *
 * @param iface   Interface of the queue.
 * @param status  Passed to the users.
 */
void uct_sep_txwq_purge(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                        ucs_status_t status);


/**
 * Finish, as cancelled, all operations that an endpoint's user would hear of.
 * The descriptors stay in the queue: the device has their work requests.
 */
void uct_sep_txwq_disown(uct_sep_txwq_t *txwq, uct_sep_ep_t *ep);

END_C_DECLS

#endif
