/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_FC_H
#define UCT_SEP_FC_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_fc.h
 *
 * Flow control of active messages, so that a receiver is not sent more than it
 * has asked for: its receive queue is shared by all who send to it, and to run
 * into an empty one costs the sender a pause. Each connection has a window of
 * messages that may be sent. When it has come down to a half, a message asks
 * for a grant that comes with the next message of the other side; at a quarter
 * one asks for a grant in any case, which is then a message of its own. A grant
 * restores the window. Asking and granting take bits of the id in front of each
 * message; a grant needs no window itself, so both sides can't wait for each
 * other. Who has flow control switched off asks for nothing, but grants.
 *
 * The data path has one counter for all this: of the messages that need nothing
 * of it. It is in the test that looks at credits.
 */


/** @return Messages that may be sent before a grant. */
static inline int32_t uct_sep_fc_window(const uct_sep_txwq_t *txwq)
{
    return txwq->fc.next + txwq->fc.left + 1;
}


/** @return Whether an active message has to wait for a grant. */
static inline int uct_sep_fc_is_blocked(const uct_sep_txwq_t *txwq)
{
    return (txwq->fc.left < 0) && (uct_sep_fc_window(txwq) <= 0);
}


/** Start with a full window, and handle what the peer has asked for before the
 *  queue was known. The queue is active. */
void uct_sep_fc_start(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** The queue is given up. */
void uct_sep_fc_stop(uct_sep_txwq_t *txwq);


/**
 * The message that is sent next is one of those that do something about flow
 * control; counts it.
 *
 * @return Bits for its header.
 */
uint8_t uct_sep_fc_take_slow(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Count the message that is sent next; returns bits for its header. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_sep_fc_take(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (ucs_likely(txwq->fc.left >= 0)) {
        --txwq->fc.left;
        return 0;
    }

    return uct_sep_fc_take_slow(iface, txwq);
}


/**
 * A message has come with bits of flow control.
 *
 * @param qpn    On which queue pair.
 * @param am_id  First byte of its header.
 *
 * @return Whether there is a message besides.
 */
int uct_sep_fc_receive(uct_sep_iface_t *iface, uint32_t qpn, uint8_t am_id);


/** Send grants that have waited for credits. */
void uct_sep_fc_send_due(uct_sep_iface_t *iface);


/** Release what was received for queues that are not known. */
void uct_sep_fc_cleanup(uct_sep_iface_t *iface);

END_C_DECLS

#endif
