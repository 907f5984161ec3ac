/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQ_GROUP_H
#define UCT_SEP_CQ_GROUP_H

#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_qp_table.h>
#include <ucs/type/spinlock.h>

BEGIN_C_DECLS

/**
 * @file sep_cq_group.h
 *
 * Send completion queue of several workers (UCX_SEP_CQ_SHARING, the x-way
 * sharing of completion queues of the paper named in sep_channel.h). Each
 * worker is a member. Who polls the queue takes its lock and hands what is not
 * his own to its owner's inbox, as a copy, so that the entries of a queue pair
 * reach their owner in order, whoever polls. Receives have a queue of each
 * worker's own.
 *
 * The queue holds what all members may have outstanding, and so does an inbox
 * for its owner: neither can overflow.
 */

typedef struct uct_sep_cq_group uct_sep_cq_group_t;


/** A worker's part of a shared send completion queue. */
typedef struct uct_sep_cq_member {
    uct_sep_cq_group_t *group;      /**< NULL if the worker does not share */
    struct mlx5_cqe64  *batch;      /**< What the worker is about to handle;
                                         only its thread touches it */
    unsigned           batch_head;  /**< Next one */
    unsigned           batch_count; /**< Behind the last one */
    struct mlx5_cqe64  *inbox;      /**< What was handed to it; group's lock */
    unsigned           inbox_count; /**< Group's lock; looked at without */
    int                event_fd;    /**< eventfd to write to if is_armed, or -1;
                                         group's lock */
    int                is_armed;    /**< The worker may sleep; group's lock */
} uct_sep_cq_member_t;


/** Shared send completion queue. */
struct uct_sep_cq_group {
    ucs_list_link_t    list;        /**< In uct_sep_md_t; its group_lock */
    unsigned           num_members; /**< Under the same lock */
    unsigned           max_members; /**< UCX_SEP_CQ_SHARING */
    unsigned           share;       /**< CQEs a member can have outstanding */
    struct ibv_context *context;
    ucs_spinlock_t     lock;        /**< For all that follows */
    uintptr_t          hint;        /**< Next CQE of the queue, and in bit 0 the
                                         owner bit that makes it valid. Read
                                         without the lock, see
                                         @ref uct_sep_cq_member_has_news */
    uct_sep_cq_t       cq;
    uct_sep_qp_table_t qps;         /**< Queue pairs of all members */
};


/**
 * Become a member of a group that has room, or of a new one.
 *
 * @param [in]  md        Memory domain; keeps the groups.
 * @param [in]  context   Device context of the queue pairs.
 * @param [in]  sharing   Members that a group has at most, 2 at least.
 * @param [in]  share     CQEs the worker can have outstanding.
 * @param [in]  name      For messages, e.g. "mlx5_0:1".
 * @param [out] member    Filled.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_cq_member_init(uct_sep_cq_member_t *member,
                                    uct_sep_md_t *md,
                                    struct ibv_context *context,
                                    unsigned sharing, unsigned share,
                                    const char *name);


/** Leave the group; the worker's queue pairs must have been destroyed. */
void uct_sep_cq_member_cleanup(uct_sep_cq_member_t *member, uct_sep_md_t *md);


/**
 * Make the queue's completions reach a member. Before anything is posted.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_cq_member_add_qp(uct_sep_cq_member_t *member,
                                      uct_sep_txwq_t *txwq);


/**
 * Destroy a queue pair, and with it all that is left of it in the completion
 * queue: its number may be given out again at once, to any member.
 *
 * @param has_sent  Whether anything was posted. If not, this may be called from
 *                  any thread, and from the member's own otherwise.
 *
 * @return What ibv_destroy_qp() returned.
 */
int uct_sep_cq_member_destroy_qp(uct_sep_cq_member_t *member,
                                 struct ibv_qp *qp, int has_sent);


/**
 * Fill the batch, which is empty: poll the queue, then take the inbox.
 *
 * @return Whether there is anything in the batch now.
 */
int uct_sep_cq_member_fetch(uct_sep_cq_member_t *member);


/**
 * Have the member's eventfd written to, or an event raised on the queue's
 * channel, when there is something for the member. Both have to be in what it
 * sleeps on.
 *
 * @param event_fd  The member's eventfd.
 *
 * @return UCS_OK; UCS_ERR_BUSY if there is something already; or
 *         UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_cq_member_arm(uct_sep_cq_member_t *member, int event_fd);


/**
 * Whether it is worth while to take the lock. The queue's next entry is found
 * by what the last one that polled has left; if that is out of date, or becomes
 * so, the answer is wrong in either direction, and right at one of the next
 * calls. Nothing else depends on it.
 */
static UCS_F_ALWAYS_INLINE int
uct_sep_cq_member_has_news(const uct_sep_cq_member_t *member)
{
    uintptr_t hint = __atomic_load_n(&member->group->hint, __ATOMIC_RELAXED);
    const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64*)
                                   (hint & ~(uintptr_t)1);
    uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_RELAXED);

    return (!((op_own ^ hint) & MLX5_CQE_OWNER_MASK)) ||
           (__atomic_load_n(&member->inbox_count, __ATOMIC_RELAXED) > 0) ||
           (member->batch_head < member->batch_count);
}

END_C_DECLS

#endif
