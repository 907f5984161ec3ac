/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQ_GROUP_H
#define UCT_SEP_CQ_GROUP_H

#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/category/sep_sharing.h>
#include <uct/ib/sep/queue/sep_cq.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/queue/sep_qp_table.h>

BEGIN_C_DECLS

/**
 * @file sep_cq_group.h
 *
 * Send completion queue of several workers (UCX_SEP_CQ_SHARING, the x-way
 * sharing of completion queues of the paper named in sep_channel.h). Each
 * worker is a member. Whoever polls the queue takes its lock and copies entries
 * of others to their owners' inboxes, so that the entries of a queue pair reach
 * their owner in order, no matter who polls. For receives each worker has a
 * queue of its own.
 *
 * The queue has room for all that its members may have outstanding, and an
 * inbox for all of its owner's: neither can overflow.
 */

typedef struct uct_sep_cq_group uct_sep_cq_group_t;


/** For the queue of a group, and what is handed to members. */
UCT_SEP_SPINLOCK_DEFINE(uct_sep_cq_group_spinlock)


/** A worker's part of a shared send completion queue. */
typedef struct uct_sep_cq_member {
    uct_sep_cq_group_t *group;      /**< NULL if the worker does not share */
    struct mlx5_cqe64  *batch;      /**< Entries the worker is about to handle;
                                         only its thread touches it */
    unsigned           batch_head;  /**< Next one */
    unsigned           batch_count; /**< Behind the last one */
    /** Entries handed to it */
    struct mlx5_cqe64  *inbox UCT_SEP_GUARDED_BY(uct_sep_cq_group_spinlock);
    /** Their number; also read without the lock, as an atomic */
    unsigned           inbox_count
                       UCT_SEP_GUARDED_BY(uct_sep_cq_group_spinlock);
    /** eventfd to write to if is_armed, or -1 */
    int                event_fd UCT_SEP_GUARDED_BY(uct_sep_cq_group_spinlock);
    /** The worker may be asleep */
    int                is_armed UCT_SEP_GUARDED_BY(uct_sep_cq_group_spinlock);
} uct_sep_cq_member_t;


/** Shared send completion queue. */
struct uct_sep_cq_group {
    /** In uct_sep_sharing_t */
    ucs_list_link_t    list UCT_SEP_GUARDED_BY(uct_sep_cq_groups_mutex);
    unsigned           num_members UCT_SEP_GUARDED_BY(uct_sep_cq_groups_mutex);
    unsigned           max_members; /**< UCX_SEP_CQ_SHARING */
    unsigned           share;       /**< CQEs that a member may have
                                         outstanding */
    struct ibv_context *context;
    uct_sep_cq_group_spinlock_t lock;
    uintptr_t          hint;        /**< Next CQE of the queue, and in bit 0 the
                                         owner bit that makes it valid. Written
                                         with the lock held, read without it:
                                         @ref uct_sep_cq_member_has_news */
    uct_sep_cq_t       cq;          /**< Polled and armed with the lock held */
    /** Queue pairs of all members */
    uct_sep_qp_table_t qps UCT_SEP_GUARDED_BY(uct_sep_cq_group_spinlock);
};


/** The worker shares no queue. */
static inline void uct_sep_cq_member_init_none(uct_sep_cq_member_t *member)
{
    member->group = NULL;
}


/**
 * Join a group that has room, or a new one.
 *
 * @param [in]  md        Memory domain; keeps the groups.
 * @param [in]  context   Device context of the queue pairs.
 * @param [in]  sharing   Maximum number of members of a group, at least 2.
 * @param [in]  share     CQEs the worker may have outstanding.
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


/** Leave the group, after the worker's queue pairs were destroyed. */
void uct_sep_cq_member_cleanup(uct_sep_cq_member_t *member, uct_sep_md_t *md);


/**
 * Route a queue pair's completions to a member. Before anything is posted.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_cq_member_add_qp(uct_sep_cq_member_t *member,
                                      uct_sep_txwq_t *txwq);


/**
 * Destroy a queue pair and whatever is left of it in the completion queue: its
 * number may be reused at once, by any member.
 *
 * @param has_sent  Whether anything was posted. If not, this may be called from
 *                  any thread, otherwise only from the member's.
 *
 * @return What ibv_destroy_qp() returned.
 */
int uct_sep_cq_member_destroy_qp(uct_sep_cq_member_t *member,
                                 struct ibv_qp *qp, int has_sent);


/**
 * Fill the empty batch: poll the queue, then take the inbox.
 *
 * @return Whether there is anything in the batch now.
 */
int uct_sep_cq_member_fetch(uct_sep_cq_member_t *member);


/**
 * When there is something for the member, have its eventfd written to or an
 * event raised on the queue's channel. It must sleep on both.
 *
 * @param event_fd  The member's eventfd.
 *
 * @return UCS_OK; UCS_ERR_BUSY if there is something already; or
 *         UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_cq_member_arm(uct_sep_cq_member_t *member, int event_fd);


/**
 * Whether it is worthwhile to take the lock. The position of the queue's next
 * entry is the one left by the last poll; if it is out of date, or becomes so,
 * the answer may be wrong in either direction, and one of the next calls gets
 * it right. Nothing else depends on it.
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
