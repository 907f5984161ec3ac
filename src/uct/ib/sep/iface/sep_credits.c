/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_credits.h>

void uct_sep_credits_signal_last(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (!uct_sep_txwq_is_signaled(txwq)) {
        iface->tx.ops->post_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED);
    }
}

void uct_sep_credits_stall(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq;

    /* Queues hold completion credits for unsignaled work requests. With many
     * queues, all credits can be tied up like that. */
    iface->tx.stalled = 1;
    ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
        if (!uct_sep_credits_may_ask(iface)) {
            break; /* Completions of these bring the next round */
        }

        if (uct_sep_txwq_has_credits(txwq)) {
            uct_sep_credits_signal_last(iface, txwq);
        }
    }
}
