/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/category/sep_cq_group.h>
#include <uct/ib/sep/progress/sep_cqe.inl>

/*
 * Progress of a worker that shares its send completion queue: receives as
 * always, then what has completed for it.
 */

static UCS_F_NOINLINE unsigned
uct_sep_progress_group_sends(uct_sep_iface_t *iface)
{
    uct_sep_cq_member_t *member = &iface->cq_member;
    unsigned count              = 0;
    struct mlx5_cqe64 cqe;

    do {
        if ((member->batch_head == member->batch_count) &&
            !uct_sep_cq_member_fetch(member)) {
            break;
        }

        /* Copied and counted before any callback, which may progress as well
         * and continue from here */
        cqe = member->batch[member->batch_head++];
        if (ucs_likely((cqe.op_own >> 4) == MLX5_CQE_REQ)) {
            uct_sep_cqe_handle_send(iface, &cqe);
        } else {
            uct_sep_cqe_handle_other(iface, &cqe);
        }
    } while (++count < iface->config.tx_max_poll);

    return count;
}

static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_group(uct_iface_h tl_iface, unsigned count)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    if (ucs_unlikely(uct_sep_cq_member_has_news(&iface->cq_member))) {
        count += uct_sep_progress_group_sends(iface);
    }
    return count;
}

#define UCT_SEP_PROGRESS_DEFINE_GROUP(_name, _mode) \
    unsigned uct_sep_progress_group_##_name(uct_iface_h tl_iface) \
    { \
        return uct_sep_progress_group(tl_iface, \
                                      uct_sep_progress_##_name(tl_iface)); \
    }

UCT_SEP_RX_MODE_FOREACH(UCT_SEP_PROGRESS_DEFINE_GROUP)
