/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>


/* How many entries a polling member hands out before it looks at its own */
#define UCT_SEP_CQ_GROUP_POLL  64


static UCT_SEP_REQUIRES(uct_sep_cq_group_spinlock) void
uct_sep_cq_group_set_hint(uct_sep_cq_group_t *group)
{
    UCS_STATIC_ASSERT(MLX5_CQE_OWNER_MASK == 1);
    __atomic_store_n(&group->hint, (uintptr_t)group->cq.next | group->cq.owner,
                     __ATOMIC_RELAXED);
}

/*
 * Groups of a memory domain
 */

/* Nobody else knows it yet */
static UCT_SEP_REQUIRES(uct_sep_cq_groups_mutex)
UCT_SEP_NO_LOCK_ANALYSIS ucs_status_t
uct_sep_cq_group_create(uct_sep_md_t *md, struct ibv_context *context,
                        unsigned sharing, unsigned share, const char *name,
                        uct_sep_cq_group_t **group_p)
{
    unsigned long length = (unsigned long)sharing * share;
    unsigned long max    = md->dev.attr.orig_attr.max_cqe;
    uct_sep_cq_group_t *group;
    ucs_status_t status;

    if (length > max) {
        ucs_error("%s: a completion queue for %u workers with %u entries each "
                  "is longer than the device's limit (%lu): reduce "
                  "UCX_SEP_CQ_SHARING or UCX_SEP_TX_CQ_LEN", name, sharing,
                  share, max);
        status = UCS_ERR_INVALID_PARAM;
        goto err;
    }

    group = ucs_calloc(1, sizeof(*group), "sep_cq_group");
    if (group == NULL) {
        ucs_error("%s: no memory for a shared completion queue", name);
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    status = uct_sep_cq_group_spinlock_init(&group->lock);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_qp_table_init(&group->qps);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the table of queue pairs", name);
        goto err_destroy_lock;
    }

    status = uct_sep_cq_init(&group->cq, context, length,
                             UCT_SEP_CQ_STRIDE_64, uct_sep_cq_create_dv, name);
    if (status != UCS_OK) {
        goto err_cleanup_qps;
    }

    group->max_members = sharing;
    group->share       = share;
    group->context     = context;
    group->num_members = 0;
    uct_sep_cq_group_set_hint(group);
    ucs_list_add_tail(&md->sharing->cq_groups, &group->list);
    *group_p = group;
    return UCS_OK;

err_cleanup_qps:
    uct_sep_qp_table_cleanup(&group->qps);
err_destroy_lock:
    uct_sep_cq_group_spinlock_destroy(&group->lock);
err_free:
    ucs_free(group);
err:
    return status;
}

/* Nobody else knows it any more */
static UCT_SEP_REQUIRES(uct_sep_cq_groups_mutex) UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_cq_group_destroy(uct_sep_cq_group_t *group)
{
    if (group->qps.count != 0) {
        ucs_warn("CQ 0x%x is destroyed with %u queue pairs", group->cq.cqn,
                 group->qps.count);
    }

    ucs_list_del(&group->list);
    uct_sep_cq_cleanup(&group->cq);
    uct_sep_qp_table_cleanup(&group->qps);
    uct_sep_cq_group_spinlock_destroy(&group->lock);
    ucs_free(group);
}

static ucs_status_t
uct_sep_cq_group_join(uct_sep_md_t *md, struct ibv_context *context,
                      unsigned sharing, unsigned share, const char *name,
                      uct_sep_cq_group_t **group_p)
{
    ucs_status_t status = UCS_OK;
    uct_sep_cq_group_t *group;

    uct_sep_cq_groups_mutex_lock(&md->sharing->group_lock);
    ucs_list_for_each(group, &md->sharing->cq_groups, list) {
        if ((group->context == context) && (group->max_members == sharing) &&
            (group->share == share) && (group->num_members < sharing)) {
            goto out_join;
        }
    }

    status = uct_sep_cq_group_create(md, context, sharing, share, name, &group);
    if (status != UCS_OK) {
        goto out_unlock;
    }

out_join:
    ++group->num_members;
    *group_p = group;
out_unlock:
    uct_sep_cq_groups_mutex_unlock(&md->sharing->group_lock);
    return status;
}

static void uct_sep_cq_group_leave(uct_sep_md_t *md, uct_sep_cq_group_t *group)
{
    uct_sep_cq_groups_mutex_lock(&md->sharing->group_lock);
    if (--group->num_members == 0) {
        uct_sep_cq_group_destroy(group);
    }
    uct_sep_cq_groups_mutex_unlock(&md->sharing->group_lock);
}

/*
 * Handing out
 */

static UCT_SEP_REQUIRES(uct_sep_cq_group_spinlock) void
uct_sep_cq_member_deliver(uct_sep_cq_member_t *member,
                          const struct mlx5_cqe64 *cqe)
{
    uint64_t value = 1;

    ucs_assert(member->inbox_count < member->group->share);
    member->inbox[member->inbox_count] = *cqe;
    __atomic_store_n(&member->inbox_count, member->inbox_count + 1,
                     __ATOMIC_RELAXED);

    if (member->is_armed) {
        /* The event that was requested does not help the sleeper: somebody else
         * has taken what it announces */
        member->is_armed = 0;
        if ((write(member->event_fd, &value, sizeof(value)) < 0) &&
            (errno != EAGAIN)) {
            ucs_warn("CQ 0x%x: could not signal an event: %m",
                     member->group->cq.cqn);
        }
    }
}

static UCT_SEP_REQUIRES(uct_sep_cq_group_spinlock) void
uct_sep_cq_group_drain(uct_sep_cq_group_t *group, unsigned max)
{
    struct mlx5_cqe64 *cqe;
    uct_sep_txwq_t *txwq;
    unsigned count;
    uint32_t qpn;

    for (count = 0; count < max; ++count) {
        cqe = uct_sep_cq_peek(&group->cq);
        if (cqe == NULL) {
            break;
        }

        qpn  = be32toh(cqe->sop_drop_qpn) & UCT_SEP_QPN_MASK;
        txwq = uct_sep_qp_table_find(&group->qps, qpn);
        if (ucs_likely(txwq != NULL)) {
            uct_sep_cq_member_deliver(txwq->cq_member, cqe);
        } else {
            ucs_diag("CQ 0x%x: completion of unknown QP 0x%x", group->cq.cqn,
                     qpn);
        }
        uct_sep_cq_pop(&group->cq, cqe, UCT_SEP_CQ_STRIDE_64);
    }

    if (count > 0) {
        /* Before any of them returns credits */
        uct_sep_cq_publish(&group->cq);
        uct_sep_cq_group_set_hint(group);
    }
}

/* Forget the entries of a queue pair; returns the new number */
static unsigned
uct_sep_cq_member_purge(struct mlx5_cqe64 *cqes, unsigned head, unsigned count,
                        uint32_t qpn)
{
    unsigned i, kept;

    for (i = kept = head; i < count; ++i) {
        if ((be32toh(cqes[i].sop_drop_qpn) & UCT_SEP_QPN_MASK) != qpn) {
            cqes[kept++] = cqes[i];
        }
    }
    return kept;
}

/*
 * Members
 */

/* Nobody else knows it before it joins */
UCT_SEP_NO_LOCK_ANALYSIS ucs_status_t
uct_sep_cq_member_init(uct_sep_cq_member_t *member, uct_sep_md_t *md,
                       struct ibv_context *context, unsigned sharing,
                       unsigned share, const char *name)
{
    ucs_status_t status;

    memset(member, 0, sizeof(*member));
    member->event_fd = -1;
    member->batch    = ucs_malloc(share * sizeof(*member->batch),
                                  "sep_cq_batch");
    member->inbox    = ucs_malloc(share * sizeof(*member->inbox),
                                  "sep_cq_inbox");
    if ((member->batch == NULL) || (member->inbox == NULL)) {
        ucs_error("%s: no memory for %u completions: reduce "
                  "UCX_SEP_TX_CQ_LEN", name, share);
        status = UCS_ERR_NO_MEMORY;
        goto err_free;
    }

    status = uct_sep_cq_group_join(md, context, sharing, share, name,
                                   &member->group);
    if (status != UCS_OK) {
        goto err_free;
    }

    return UCS_OK;

err_free:
    ucs_free(member->inbox);
    ucs_free(member->batch);
    member->group = NULL;
    return status;
}

/* Nobody else knows it, as it has no queue pairs */
UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_cq_member_cleanup(uct_sep_cq_member_t *member, uct_sep_md_t *md)
{
    uct_sep_cq_group_leave(md, member->group);
    ucs_free(member->inbox);
    ucs_free(member->batch);
}

ucs_status_t uct_sep_cq_member_add_qp(uct_sep_cq_member_t *member,
                                      uct_sep_txwq_t *txwq)
{
    uct_sep_cq_group_t *group = member->group;
    ucs_status_t status;

    txwq->cq_member = member;
    uct_sep_cq_group_spinlock_lock(&group->lock);
    status = uct_sep_qp_table_add(&group->qps, txwq->qpn, txwq);
    uct_sep_cq_group_spinlock_unlock(&group->lock);
    return status;
}

int uct_sep_cq_member_destroy_qp(uct_sep_cq_member_t *member,
                                 struct ibv_qp *qp, int has_sent)
{
    uct_sep_cq_group_t *group = member->group;
    uint32_t qpn              = qp->qp_num;
    int ret;

    /* Whoever gets the number next can't enter it into the table before this is
     * over, and so finds nothing of this queue pair */
    uct_sep_cq_group_spinlock_lock(&group->lock);
    ret = ibv_destroy_qp(qp);
    uct_sep_cq_group_drain(group, UINT_MAX);
    uct_sep_qp_table_remove(&group->qps, qpn);
    if (has_sent) {
        member->batch_count = uct_sep_cq_member_purge(member->batch,
                                                      member->batch_head,
                                                      member->batch_count, qpn);
        __atomic_store_n(&member->inbox_count,
                         uct_sep_cq_member_purge(member->inbox, 0,
                                                 member->inbox_count, qpn),
                         __ATOMIC_RELAXED);
    }
    uct_sep_cq_group_spinlock_unlock(&group->lock);
    return ret;
}

int uct_sep_cq_member_fetch(uct_sep_cq_member_t *member)
{
    uct_sep_cq_group_t *group = member->group;
    struct mlx5_cqe64 *batch;

    ucs_assert(member->batch_head == member->batch_count);

    if (__atomic_load_n(&member->inbox_count, __ATOMIC_RELAXED) > 0) {
        uct_sep_cq_group_spinlock_lock(&group->lock);
    } else if (!uct_sep_cq_group_spinlock_trylock(&group->lock)) {
        return 0; /* Somebody else is handing out */
    }

    uct_sep_cq_group_drain(group, UCT_SEP_CQ_GROUP_POLL);

    batch               = member->batch;
    member->batch       = member->inbox;
    member->batch_head  = 0;
    member->batch_count = member->inbox_count;
    member->inbox       = batch;
    __atomic_store_n(&member->inbox_count, 0, __ATOMIC_RELAXED);
    uct_sep_cq_group_spinlock_unlock(&group->lock);

    return member->batch_count > 0;
}

ucs_status_t uct_sep_cq_member_arm(uct_sep_cq_member_t *member, int event_fd)
{
    uct_sep_cq_group_t *group = member->group;
    ucs_status_t status;
    unsigned count;

    uct_sep_cq_group_spinlock_lock(&group->lock);
    status = uct_sep_cq_read_events(&group->cq, &count);
    if (status != UCS_OK) {
        goto out_unlock;
    }

    uct_sep_cq_group_drain(group, UINT_MAX);
    if ((member->inbox_count > 0) ||
        (member->batch_head < member->batch_count)) {
        status = UCS_ERR_BUSY;
    } else {
        member->event_fd = event_fd;
        member->is_armed = 1;
    }

    /* Even if busy: the event just consumed may be the one on which another
     * member sleeps */
    uct_sep_cq_arm(&group->cq, 0);

out_unlock:
    uct_sep_cq_group_spinlock_unlock(&group->lock);
    return status;
}
