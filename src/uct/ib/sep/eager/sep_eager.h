/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EAGER_H
#define UCT_SEP_EAGER_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_eager.h
 *
 * Eager channel: rings offered to the peers that send most, and accepted from
 * those that offer one. What goes over the wire is in sep_ring_def.h, who owns
 * a ring when in sep_ring_state.h, who gets one in sep_ring_set.h. Messages are
 * written by the data path (sep_ops_am.inl) and taken by sep_progress_eager.c.
 *
 * Everything happens in the worker's thread. Memory is allocated with the first
 * ring. If there is none, or no place, messages go by send/receive.
 */


/**
 * Nothing is offered or accepted yet.
 *
 * @param progress  The interface's progress function while there are rings.
 */
void uct_sep_eager_init(uct_sep_iface_t *iface,
                        uct_iface_progress_func_t progress);


/** Release all. There are no connections any more. */
void uct_sep_eager_cleanup(uct_sep_iface_t *iface);


/** @return Whether an interface takes part. */
static inline int uct_sep_eager_is_enabled(const uct_sep_iface_t *iface)
{
    return iface->config.eager.mode != UCS_NO;
}


/** The peer of a connection has asked for a grant: it has sent a number of
 *  messages. May offer it a ring. */
void uct_sep_eager_report(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uint32_t messages);


/**
 * A control message has arrived, and everything that was sent before it was
 * handled.
 *
 * @param type    Not checked yet.
 * @param body    Behind the first byte.
 * @param length  Of the body.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if the peer must not have sent this,
 *         after a message.
 */
ucs_status_t uct_sep_eager_receive(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                   uint8_t type, const void *body,
                                   size_t length);


/** Post control messages that have waited for credits. */
void uct_sep_eager_send_due(uct_sep_iface_t *iface);


/**
 * Handlers have been through with so many slots of a ring that the peer, to
 * which nothing is sent, may wait for them: give them back by a write.
 */
void uct_sep_eager_return_slots(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** A connection goes out of use: nothing is sent any more, but messages in its
 *  ring are still handled. */
void uct_sep_eager_stop(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** @return Whether there is no message in its ring that can be handled now.
 *          None can before the peer has accepted it, or after a bad one. */
int uct_sep_eager_is_drained(const uct_sep_txwq_t *txwq);


/** @return Whether there is a message in its ring, which may have to wait for
 *          one that was sent. */
int uct_sep_eager_has_message(const uct_sep_txwq_t *txwq);


/** @return Number of the next message in its ring, of which there is one. */
uint16_t uct_sep_eager_next_seq(const uct_sep_txwq_t *txwq);


/** @return Whether the last work request, of one BB, was posted to give back
 *          slots. */
int uct_sep_eager_is_returning_last(const uct_sep_txwq_t *txwq);


/** @return Whether a message of its peer waits for one in a ring. */
int uct_sep_eager_is_held(const uct_sep_iface_t *iface,
                          const uct_sep_txwq_t *txwq);


/** @return Whether nothing is due to be posted for its rings, and no message of
 *          its peer waits for one in a ring. */
int uct_sep_eager_is_quiet(const uct_sep_iface_t *iface,
                           const uct_sep_txwq_t *txwq);


/** Its queue pairs were destroyed: nothing can be written any more. Its ring is
 *  free. */
void uct_sep_eager_forget(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** How a worker may sleep. */
typedef enum {
    UCT_SEP_EAGER_AWAKE, /**< Not at all: there is a message, progress has to be
                              called */
    UCT_SEP_EAGER_DOZE,  /**< For UCT_SEP_EAGER_DOZE_NSEC: peers have rings */
    UCT_SEP_EAGER_SLEEP  /**< As long as there is no event */
} uct_sep_eager_sleep_t;


/** How long a worker sleeps while peers have rings, into which messages come
 *  without an event. They give them back when they progress; that is an
 *  event. */
#define UCT_SEP_EAGER_DOZE_NSEC  1000000u


/**
 * The worker wants to sleep, and a write raises no event: ask for all rings.
 * What comes into them later than this, and who has not been asked for want of
 * credits, is found when progress is called after a short sleep.
 */
uct_sep_eager_sleep_t uct_sep_eager_prepare_sleep(uct_sep_iface_t *iface);


/** @return Which one of the interface's rings it is. */
static inline unsigned uct_sep_eager_index(const uct_sep_iface_t *iface,
                                           const uct_sep_eager_ring_t *ring)
{
    return ring - iface->eager.rings;
}


/** Keep a ring's place in the table, unless it is not watched or looked at
 *  before the table. */
static inline void uct_sep_eager_sync(uct_sep_eager_ring_t *ring)
{
    uct_sep_iface_t *iface = ring->iface;

    if (ring->is_watched && (ring != iface->eager.hot)) {
        uct_sep_ring_poll_move(&iface->eager.places,
                               uct_sep_eager_index(iface, ring), ring->rx.tail);
    }
}


/** The ring whose turn it is next, if handlers keep their buffers. */
static inline void uct_sep_eager_set_turn(uct_sep_iface_t *iface, unsigned turn)
{
    iface->eager.turn = turn;
}


/** Handlers keep their buffers: they get copies. */
static inline void uct_sep_eager_set_copies(uct_sep_iface_t *iface)
{
    iface->eager.copies = 1;
}


/** @return Immediate data of a message that goes by send/receive although there
 *          is a ring. */
static inline uint32_t
uct_sep_eager_take_send(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                        uint8_t fc_bits)
{
    ++iface->eager.stats.fallbacks;
    return uct_sep_ring_tx_take_send(&txwq->ring, fc_bits);
}


/**
 * No slot of the peer's ring is left: look for those that came back, and count.
 *
 * @return Whether there are any.
 */
int uct_sep_eager_refresh(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Look at a ring first, or with the interface's eager.none, at the table. */
static inline void
uct_sep_eager_set_hot(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring)
{
    uct_sep_eager_ring_t *old = iface->eager.hot;

    iface->eager.hot = ring;
    uct_sep_eager_sync(old);
}


/** Don't look for messages of a ring any more. */
void uct_sep_eager_unwatch(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring);


/**
 * A message by send/receive has to wait for others in the ring of its peer.
 *
 * @param held  To be called instead of looking for completions; calls
 *              uct_sep_eager_release().
 */
void uct_sep_eager_hold(uct_sep_iface_t *iface,
                        const uct_sep_eager_recv_t *recv,
                        uct_iface_progress_func_t held);


/** It need not wait any more. */
void uct_sep_eager_release(uct_sep_iface_t *iface);


END_C_DECLS

#endif
