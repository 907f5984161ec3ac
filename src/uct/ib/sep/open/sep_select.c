/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/open/sep_select.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/open/sep_open.h>
#include <uct/ib/sep/ops/sep_ops_dv.h>
#include <uct/ib/sep/verbs/sep_verbs.h>

#include <ucs/debug/log.h>


const uct_sep_ops_t *uct_sep_select_find(unsigned mode)
{
    int is_shared = mode & UCT_SEP_OPS_SHARED;

    if (mode & UCT_SEP_OPS_VERBS) {
        return (mode & UCT_SEP_OPS_WR) ? &uct_sep_ops_wr : &uct_sep_ops_verbs;
    }

    if (mode & UCT_SEP_OPS_LIST) {
        return &uct_sep_ops_list;
    }

    switch (UCT_SEP_OPS_POST(mode)) {
    case UCT_SEP_TX_POST_DB:
        return &uct_sep_ops_db;
    case UCT_SEP_TX_POST_BF64:
        return is_shared ? &uct_sep_ops_bf64_shared : &uct_sep_ops_bf64;
    default:
        return is_shared ? &uct_sep_ops_bf_shared : &uct_sep_ops_bf;
    }
}

static unsigned uct_sep_select_mode(const uct_sep_iface_t *iface, int post,
                                    int is_shared)
{
    if (post != UCT_SEP_TX_POST_DB) {
        post = UCT_SEP_TX_POST_BF;
#ifdef __x86_64__
        if (__builtin_cpu_supports("avx512f")) {
            post = UCT_SEP_TX_POST_BF64;
        }
#endif
    }

    return post | iface->api->ops_mode |
           ((iface->config.postlist > 1) ? UCT_SEP_OPS_LIST : 0) |
           (is_shared ? UCT_SEP_OPS_SHARED : 0);
}

void uct_sep_select_ops(uct_sep_iface_t *iface, int post, int is_shared)
{
    unsigned mode = uct_sep_select_mode(iface, post, is_shared);

    uct_sep_iface_set_ops(iface, uct_sep_select_find(mode), post, is_shared);
    uct_sep_open_set_ops(iface->tx.ops, &iface->super.super.ops);
    if (uct_sep_eager_is_enabled(iface)) {
        iface->super.super.ops.ep_am_short = iface->tx.ops->ep_am_short_eager;
        iface->super.super.ops.ep_am_bcopy = iface->tx.ops->ep_am_bcopy_eager;
    }
}

void uct_sep_select_for_txwq(uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq)
{
    int post = iface->tx.post;

    if ((txwq->bf->size != UCT_SEP_MAX_WQE) && (post != UCT_SEP_TX_POST_DB)) {
        if (iface->config.post == UCT_SEP_TX_POST_BF) {
            ucs_warn("%s: QP 0x%x has BlueFlame buffers of %zu bytes instead "
                     "of %d, UCX_SEP_TX_POST=bf has no effect",
                     iface->port.name, txwq->qpn, txwq->bf->size,
                     UCT_SEP_MAX_WQE);
        }
        post = UCT_SEP_TX_POST_DB;
    }

    /* UCP makes of its modes MULTI and SERIALIZED the latter. A doorbell is
     * followed by a fence in any case. */
    if ((post != UCT_SEP_TX_POST_DB) &&
        (iface->super.worker->thread_mode != UCS_THREAD_MODE_SINGLE)) {
        uct_sep_bf_set_turns(txwq->bf);
    }

    uct_sep_select_ops(iface, post,
                       iface->tx.is_shared ||
                       (txwq->bf->sharing != UCT_SEP_BF_SINGLE));
}
