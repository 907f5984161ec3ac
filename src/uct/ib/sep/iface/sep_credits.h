/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CREDITS_H
#define UCT_SEP_CREDITS_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_credits.h
 *
 * Credits come back with completions, and most work requests are unsignaled:
 * here is how to get a completion when one is needed. The credits themselves
 * are in the send queue (sep_txwq.h) and, for the completion queue, in the
 * interface.
 */

/**
 * Nothing can be posted because the completion queue might not have room for
 * all that could complete. Requests a completion from queues that would not
 * send one by themselves.
 */
void uct_sep_credits_stall(uct_sep_iface_t *iface);


/** There are credits again, for all who wait for them. */
static inline void uct_sep_credits_unstall(uct_sep_iface_t *iface)
{
    iface->tx.stalled = 0;
}


/** @return Whether a completion may be asked for: where no credits are left,
 *          half of @ref UCT_SEP_CQ_HEADROOM is for that. */
static inline int uct_sep_credits_may_ask(const uct_sep_iface_t *iface)
{
    return iface->tx.cq_credits > -(UCT_SEP_CQ_HEADROOM / 2);
}


/** Make sure that a completion comes when all that was posted is done. */
void uct_sep_credits_signal_last(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);

END_C_DECLS

#endif
