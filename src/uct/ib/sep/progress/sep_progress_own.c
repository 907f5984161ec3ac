/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/progress/sep_cqe.inl>

/*
 * Progress of a worker that sends in a device context of its own: receives as
 * always, then the sends, which complete in that context.
 */

static UCS_F_NOINLINE unsigned
uct_sep_progress_own_sends(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned count = 0;

    do {
        /* Before any callback, which may progress as well */
        uct_sep_cq_pop(&iface->own_cq, cqe, UCT_SEP_CQ_STRIDE_64);

        if (ucs_likely((cqe->op_own >> 4) == MLX5_CQE_REQ)) {
            uct_sep_cqe_handle_send(iface, cqe);
        } else {
            uct_sep_cqe_handle_other(iface, cqe);
        }

        if (++count >= iface->config.tx_max_poll) {
            break;
        }
        cqe = uct_sep_cq_peek(&iface->own_cq);
    } while (cqe != NULL);

    return count;
}

static UCS_F_ALWAYS_INLINE unsigned
uct_sep_progress_own(uct_iface_h tl_iface, unsigned count)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    struct mlx5_cqe64 *cqe;

    cqe = uct_sep_cq_peek(&iface->own_cq);
    if (ucs_likely(cqe == NULL)) {
        return count;
    }

    return count + uct_sep_progress_own_sends(iface, cqe);
}

#define UCT_SEP_PROGRESS_DEFINE_OWN(_name, _mode) \
    unsigned uct_sep_progress_own_##_name(uct_iface_h tl_iface) \
    { \
        return uct_sep_progress_own(tl_iface, \
                                    uct_sep_progress_##_name(tl_iface)); \
    }

UCT_SEP_RX_MODE_FOREACH(UCT_SEP_PROGRESS_DEFINE_OWN)
