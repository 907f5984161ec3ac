/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_FC_H
#define UCT_SEP_FC_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_fc.h
 *
 * Flow control of active messages, so that a receiver does not get more than it
 * can take: its receive queue is shared by all senders, and finding it empty
 * costs the sender a pause. Each connection has a window of messages that may
 * be sent. When half of it is left, a message carries a soft request for a
 * grant, which comes with the next message of the other side; when a quarter is
 * left, a hard request, whose grant is a message of its own. A grant restores
 * the window. Requests and grants are bits of the id in front of each message;
 * a grant needs no window itself, so the two sides never wait for each other.
 * With flow control switched off a side requests nothing, but grants.
 *
 * The first message of a connection has a mark: a soft request that asks for
 * nothing. It tells a receiver to whom the queue pair is still unknown that the
 * connection is there.
 *
 * The data path has one counter for all this: messages that may be sent without
 * any of it. The credit check includes it.
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


/** Start with a full window. */
void uct_sep_fc_start(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** The next message is the first one of a connection, and so is the peer's. */
void uct_sep_fc_announce(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** A message with bits of flow control has arrived.
 *
 *  @return The bits without the mark of the first one. */
uint8_t uct_sep_fc_take_mark(uct_sep_txwq_t *txwq, uint8_t bits);


/** The queue goes out of use. */
void uct_sep_fc_stop(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** @return Messages by send/receive that are not in the interface's count yet:
 *          those since the last grant. */
static inline unsigned uct_sep_fc_num_sent(const uct_sep_iface_t *iface,
                                           const uct_sep_txwq_t *txwq)
{
    return iface->config.fc.window - uct_sep_fc_window(txwq);
}


/** Add the receives that were used since the last call to the interface's
 *  count: fewer than 65536. That is so if it is called with each request for a
 *  grant, and fewer than 256 peers send in step. */
void uct_sep_fc_count_received(uct_sep_iface_t *iface);


/**
 * The next message has to do something about flow control; counts it.
 *
 * @return Bits for its header.
 */
uint8_t uct_sep_fc_take_slow(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Count the next message, which needs no flow control. */
static UCS_F_ALWAYS_INLINE void uct_sep_fc_count(uct_sep_txwq_t *txwq)
{
    --txwq->fc.left;
}


/** Count the next message; returns bits for its header. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_sep_fc_take(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (ucs_likely(txwq->fc.left >= 0)) {
        uct_sep_fc_count(txwq);
        return 0;
    }

    return uct_sep_fc_take_slow(iface, txwq);
}


/** There is a ring now, or no ring any more: UCT_SEP_FC_FLAG_RING. */
void uct_sep_fc_set_ring(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         int is_open);


/**
 * A message has arrived with flow control bits.
 *
 * @param [in]  qpn      On which queue pair.
 * @param [in]  am_id    First byte of its header.
 * @param [out] woken_p  Send queue that can go on, to be woken by the caller
 *                       before anything else; or NULL.
 *
 * @return Whether it carries a message, too.
 */
int uct_sep_fc_receive(uct_sep_iface_t *iface, uint32_t qpn, uint8_t am_id,
                       uct_sep_txwq_t **woken_p);


/** Send grants that have waited for credits. */
void uct_sep_fc_send_due(uct_sep_iface_t *iface);

END_C_DECLS

#endif
