/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_select.h"
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/open/sep_open.h>
#include <uct/ib/sep/ops/sep_ops_dv.h>
#include <uct/ib/sep/verbs/sep_verbs.h>

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>


static const uct_sep_ops_t *uct_sep_select_find(unsigned mode)
{
    static const struct {
        unsigned            mode;
        const uct_sep_ops_t *ops;
    } rows[] = {
#define UCT_SEP_OPS_ROW(_name, _mode) {_mode, &uct_sep_ops_##_name},
        UCT_SEP_OPS_FOREACH(UCT_SEP_OPS_ROW)
#undef UCT_SEP_OPS_ROW
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(rows); ++i) {
        if (rows[i].mode == mode) {
            return rows[i].ops;
        }
    }
    ucs_fatal("there is no data path for mode 0x%x", mode);
}

/* Whether several threads may use the worker, in turn: UCP makes of its modes
 * MULTI and SERIALIZED this one */
static int uct_sep_select_is_fenced(const uct_sep_iface_t *iface)
{
    return iface->super.worker->thread_mode != UCS_THREAD_MODE_SINGLE;
}

static unsigned uct_sep_select_mode(const uct_sep_iface_t *iface, int post,
                                    int is_locked)
{
    unsigned own = (iface->channel.own != NULL) ? UCT_SEP_OPS_OWN : 0;
    unsigned mode;

    if (iface->api->ops_mode != 0) {
        return iface->api->ops_mode | own;
    }

    if (iface->config.postlist > 1) {
        return UCT_SEP_OPS_LIST | own;
    }

    /* Nobody else rings in a worker's own context */
    ucs_assert(!is_locked || !own);
    mode = own | (is_locked ? UCT_SEP_OPS_LOCK : 0);

    if (post != UCT_SEP_TX_POST_DB) {
        mode |= uct_sep_select_is_fenced(iface) ? UCT_SEP_OPS_FENCE : 0;
        post  = UCT_SEP_TX_POST_BF;
#ifdef __x86_64__
        if (__builtin_cpu_supports("avx512f")) {
            post = UCT_SEP_TX_POST_BF64;
        }
#endif
    }

    return post | mode;
}

void uct_sep_select_ops(uct_sep_iface_t *iface, int post, int is_locked)
{
    iface->tx.ops       = uct_sep_select_find(uct_sep_select_mode(iface, post,
                                                                  is_locked));
    iface->tx.post      = post;
    iface->tx.is_locked = is_locked;
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

    if ((iface->config.postlist > 1) && uct_sep_select_is_fenced(iface)) {
        /* There is one function that rings for lists, which flushes what
         * several threads ring */
        txwq->bf->is_shared = 1;
    }

    uct_sep_select_ops(iface, post,
                       iface->tx.is_locked || txwq->bf->is_shared);
}
