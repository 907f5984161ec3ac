/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/progress/sep_cqe.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_stack.h>

#include <ucs/datastruct/mpool.inl>
#include <ucs/debug/log.h>
#include <limits.h>
#include <string.h>


static_assert(UCT_SEP_RING_HANDLERS == UCT_AM_ID_MAX, "handlers of a tail");


/* A peer has broken the rules: its connection fails, nothing else */
static void uct_sep_progress_eager_fail(uct_sep_iface_t *iface,
                                        uct_sep_txwq_t *txwq)
{
    if ((txwq->eager != NULL) && (txwq->eager->ring != NULL)) {
        uct_sep_eager_unwatch(iface, txwq->eager->ring);
    }
    if (!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        uct_sep_link_fail(iface, txwq, UCS_ERR_CONNECTION_RESET);
    }
}

static void uct_sep_progress_eager_bad(uct_sep_iface_t *iface,
                                       uct_sep_eager_ring_t *ring,
                                       uint64_t word, const char *what)
{
    uint32_t rest = uct_sep_ring_word_rest(word);

    ucs_error("%s: QP 0x%x: the peer has written a message into our ring with "
              "%s: number 0x%x (expected: 0x%x), %u bytes, handler %u, "
              "%u slots returned", iface->port.name, ring->txwq->qpn, what,
              (uint32_t)word, uct_sep_ring_rx_key(&ring->rx),
              UCT_SEP_RING_REST_LENGTH(rest), UCT_SEP_RING_REST_AM_ID(rest),
              UCT_SEP_RING_REST_CREDITS(rest));
    uct_sep_progress_eager_fail(iface, ring->txwq);
}

/* Give a message to a handler that may keep the buffer */
static void
uct_sep_progress_eager_invoke_copy(uct_sep_iface_t *iface, uint8_t am_id,
                                   const void *payload, uint32_t length,
                                   uct_sep_rx_desc_t *desc)
{
    void *data = UCS_PTR_BYTE_OFFSET(desc, iface->srq.hdr_offset +
                                           sizeof(uct_sep_am_hdr_t));
    void *user_desc;

    memcpy(data, payload, length);
    if (uct_iface_invoke_am(&iface->super, am_id, data, length,
                            UCT_CB_PARAM_FLAG_DESC) == UCS_OK) {
        ucs_mpool_put(desc);
        return;
    }

    user_desc                = UCS_PTR_BYTE_OFFSET(desc,
                                                   iface->rx.headroom_offset);
    uct_recv_desc(user_desc) = &iface->rx.release;
}

/* Give a message in its slot to a handler */
static UCS_F_ALWAYS_INLINE void
uct_sep_progress_eager_invoke(uct_sep_iface_t *iface, uint8_t am_id,
                              uct_sep_ring_word_t *tail, uint32_t length)
{
    void *payload = uct_sep_ring_payload(tail, length);
    ucs_status_t UCS_V_UNUSED status;

    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, payload,
                       length, "RX: %s ring", iface->port.name);
    status = uct_iface_invoke_am(&iface->super, am_id, payload, length, 0);
    ucs_assert(status == UCS_OK);
}

/* A message was handled after which there is more to do than to step over it;
 * returns whether the ring was used up, and others may have waited */
static int uct_sep_progress_eager_step(uct_sep_eager_ring_t *ring)
{
    int is_lap = uct_sep_ring_rx_stop(&ring->rx);

    if (ring->txwq == NULL) {
        return 0; /* The handler has destroyed the connection */
    }

    if (!uct_sep_ring_tx_is_sane(&ring->txwq->ring)) {
        ucs_error("%s: QP 0x%x: the peer returns %u slots of its ring, which "
                  "is more than were used", ring->iface->port.name,
                  ring->txwq->qpn, ring->txwq->ring.credits);
        uct_sep_progress_eager_fail(ring->iface, ring->txwq);
        return 0;
    }

    uct_sep_eager_return_slots(ring->iface, ring->txwq);
    return is_lap;
}

/* Look for the next message of a ring, whatever it is, and handle it; returns
 * the number of messages */
static unsigned uct_sep_progress_eager_take(uct_sep_iface_t *iface,
                                            uct_sep_eager_ring_t *ring)
{
    uct_sep_ring_word_t *tail = uct_sep_ring_rx_next(&ring->rx);
    uint64_t word             = uct_sep_ring_rx_look(tail);
    uct_sep_rx_desc_t *desc   = NULL;
    uint8_t is_inner          = ring->rx.busy;
    uint32_t rest, length;
    uint8_t am_id;

    if (!uct_sep_ring_rx_is_next(&ring->rx, word)) {
        if (!uct_sep_ring_rx_may_wait(&ring->rx, word)) {
            uct_sep_progress_eager_bad(iface, ring, word, "a wrong number");
        }
        return 0;
    }

    rest = uct_sep_ring_rx_accept(word);
    if (rest > ring->rx.max_rest) {
        uct_sep_progress_eager_bad(iface, ring, word, "a wrong length");
        return 0;
    }

    if (iface->eager.copies) {
        desc = ucs_mpool_get_inline(&iface->rx.mp);
        if (desc == NULL) {
            return 0; /* It stays where it is until there is memory */
        }
    } else if (!iface->eager.hot->rx.busy) {
        uct_sep_eager_set_hot(iface, ring);
    }

    am_id              = UCT_SEP_RING_REST_AM_ID(rest);
    length             = UCT_SEP_RING_REST_LENGTH(rest);
    uct_sep_ring_rx_credit(&ring->rx, UCT_SEP_RING_REST_CREDITS(rest));
    if (is_inner) {
        *tail = 0;
        uct_sep_ring_rx_count_ahead(&ring->rx);
    } else {
        uct_sep_ring_rx_begin(&ring->rx, tail);
    }

    /* The handler may progress, and wait for the next one. Of the ring that is
     * looked at first, that is found without the table. */
    if ((desc == NULL) && (ring != iface->eager.hot)) {
        uct_sep_ring_poll_move(&iface->eager.places,
                               uct_sep_eager_index(iface, ring),
                               uct_sep_ring_rx_next(&ring->rx));
    }

    if (desc != NULL) {
        uct_sep_progress_eager_invoke_copy(
                iface, am_id, uct_sep_ring_payload(tail, length), length,
                desc);
    } else {
        uct_sep_progress_eager_invoke(iface, am_id, tail, length);
    }

    if (!is_inner) {
        if (!uct_sep_ring_rx_end(&ring->rx)) {
            (void)uct_sep_progress_eager_step(ring);
        }
        uct_sep_eager_sync(ring);
    }
    return 1;
}

/* All rings, from one on: one message, if there is any. Then completions:
 * whoever writes into a ring must not keep others waiting. */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_from(uct_sep_iface_t *iface, unsigned index)
{
    unsigned left  = iface->eager.places.count;
    unsigned count = 0;

    for (; (left > 0) && (count == 0); --left) {
        if (index >= iface->eager.places.count) {
            index = 0;
        }
        if (*iface->eager.places.places[index] != 0) {
            count = uct_sep_progress_eager_take(iface,
                                                &iface->eager.rings[index]);
        }
        ++index;
    }

    uct_sep_eager_set_turn(iface, index);
    return count + uct_sep_stack_next(iface, UCT_SEP_STACK_RINGS);
}

/* The last message of a call was in the last slot of its ring, or in the middle
 */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_stop(uct_sep_eager_ring_t *ring)
{
    uct_sep_iface_t *iface = ring->iface;

    if (!uct_sep_progress_eager_step(ring)) {
        return 1;
    }

    /* It stays the first to be looked at, unless there is another one */
    return 1 + uct_sep_progress_eager_from(iface, 1 + uct_sep_eager_index(
                                                              iface, ring));
}

/*
 * Messages by send/receive
 */

/* Take a control message; @a length is that of the message with its header */
static void
uct_sep_progress_eager_control_in(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                  const uct_sep_am_hdr_t *hdr, uint32_t length)
{
    if (uct_sep_eager_receive(iface, txwq, hdr->am_id & ~UCT_SEP_AM_FC_MASK,
                              hdr + 1, length - sizeof(*hdr)) != UCS_OK) {
        uct_sep_progress_eager_fail(iface, txwq);
    }
}

void uct_sep_progress_eager_control(uct_sep_iface_t *iface, uint32_t qpn,
                                    const uct_sep_am_hdr_t *hdr,
                                    uint32_t length)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, qpn);

    /* Unknown if it has gone. A peer offers nothing before it has heard of us,
     * so it is not that we don't know it yet. */
    if (txwq != NULL) {
        uct_sep_progress_eager_control_in(iface, txwq, hdr, length);
    }
}

/* In order now: apply what comes with a message, then handle it */
static void uct_sep_progress_eager_deliver(uct_sep_iface_t *iface,
                                           uct_sep_txwq_t *txwq,
                                           const uct_sep_eager_recv_t *recv)
{
    const uct_sep_am_hdr_t *hdr = uct_sep_cqe_imm_hdr(iface, recv);
    uint8_t bits                = UCT_SEP_RING_IMM_FC(recv->imm);

    uct_sep_ring_rx_count_send(&txwq->eager->ring->rx);
    uct_sep_ring_tx_credit(&txwq->ring, UCT_SEP_RING_IMM_CREDITS(recv->imm));
    if (!uct_sep_ring_tx_is_sane(&txwq->ring)) {
        ucs_error("%s: QP 0x%x: the peer returns %u slots, more than it was "
                  "sent messages", iface->port.name, recv->qpn,
                  txwq->ring.credits);
        uct_sep_progress_eager_fail(iface, txwq);
        iface->srq.ops->append(&iface->srq, recv->index);
        return;
    }

    if (bits == UCT_SEP_AM_RING) {
        uct_sep_progress_eager_control_in(iface, txwq, hdr, recv->length);
        iface->srq.ops->append(&iface->srq, recv->index);
        return;
    }

    if (bits != 0) {
        uct_sep_cqe_apply_fc(iface, recv->qpn, &bits);
    }
    uct_sep_cqe_deliver_imm(iface, recv, hdr->am_id & ~UCT_SEP_AM_FC_MASK);
}

/* The connection on which a message has come, and how many messages of its ring
 * come before it; UINT_MAX if the peer has none */
static uct_sep_txwq_t *
uct_sep_progress_eager_sender(uct_sep_iface_t *iface,
                              const uct_sep_eager_recv_t *recv,
                              unsigned *before_p)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, recv->qpn);

    if ((txwq == NULL) || (txwq->eager == NULL) ||
        (txwq->eager->ring == NULL) || !txwq->eager->ring->is_watched) {
        *before_p = UINT_MAX;
    } else {
        *before_p = (uint16_t)(UCT_SEP_RING_IMM_SEQ(recv->imm) -
                               uct_sep_ring_rx_seq(&txwq->eager->ring->rx));
    }
    return txwq;
}

/* A message that the peer must not have sent, or of one that has gone */
static void uct_sep_progress_eager_refuse(uct_sep_iface_t *iface,
                                          uct_sep_txwq_t *txwq,
                                          const uct_sep_eager_recv_t *recv)
{
    if ((txwq != NULL) && !(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        ucs_error("%s: QP 0x%x: the peer has sent a message of %u bytes that "
                  "comes before message %u in our ring, which can't be",
                  iface->port.name, recv->qpn, recv->length,
                  UCT_SEP_RING_IMM_SEQ(recv->imm));
        uct_sep_progress_eager_fail(iface, txwq);
    }
    iface->srq.ops->append(&iface->srq, recv->index);
}

/* Instead of looking for completions: a message has to wait for those in its
 * peer's ring. They are there, since it was sent behind them on the same
 * connection. */
static unsigned uct_sep_progress_eager_held(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface    = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_eager_recv_t recv = iface->eager.held;
    const uct_sep_ring_rx_t *rx;
    uct_sep_txwq_t *txwq;
    unsigned before;

    txwq = uct_sep_progress_eager_sender(iface, &recv, &before);
    if ((before > 0) && (before != UINT_MAX)) {
        rx = &txwq->eager->ring->rx;
        if (uct_sep_ring_rx_is_next(
                    rx, uct_sep_ring_rx_look(uct_sep_ring_rx_next(rx)))) {
            return uct_sep_progress_eager_take(iface, txwq->eager->ring);
        }
        before = UINT_MAX; /* It is missing */
    }

    uct_sep_eager_release(iface);
    if (before == UINT_MAX) {
        uct_sep_progress_eager_refuse(iface, txwq, &recv);
        return 0;
    }

    uct_sep_progress_eager_deliver(iface, txwq, &recv);
    return 1;
}

void uct_sep_progress_eager_receive(uct_sep_iface_t *iface,
                                    const uct_sep_eager_recv_t *recv)
{
    uct_sep_txwq_t *txwq;
    unsigned before;

    txwq = uct_sep_progress_eager_sender(iface, recv, &before);
    if ((recv->length < sizeof(uct_sep_am_hdr_t)) ||
        (before == UINT_MAX) || (before > txwq->eager->ring->rx.slots)) {
        uct_sep_progress_eager_refuse(iface, txwq, recv);
    } else if (before == 0) {
        uct_sep_progress_eager_deliver(iface, txwq, recv);
    } else {
        /* One call of progress delivers no more messages than it may */
        uct_sep_eager_hold(iface, recv, uct_sep_progress_eager_held);
    }
}

/*
 * Looking at rings. All calls but those of users are tail calls: nothing is
 * saved for them.
 */

/* Rings from an index on, one of which has something */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_found(uct_iface_h tl_iface, unsigned index)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count         = 0;

    if (iface->eager.copies) {
        return uct_sep_progress_eager_from(iface, iface->eager.turn);
    }

    while (*iface->eager.places.places[index] == 0) {
        if (++index >= iface->eager.places.count) {
            return 0; /* Can't be */
        }
    }

    count = uct_sep_progress_eager_take(iface, &iface->eager.rings[index]);

    if (count > 0) {
        return count;
    }

    /* What was found may have to wait for a completion, or its sender may never
     * complete it: others must not wait with it */
    return uct_sep_progress_eager_from(iface, index + 1);
}

/* Where the last message came from there is no other one that is usual */
static UCS_F_NOINLINE unsigned uct_sep_progress_eager_all(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface       = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_ring_place_t *places = iface->eager.places.places;
    unsigned num                 = iface->eager.places.count;
    unsigned i                   = 0;

    for (; i + UCT_SEP_RING_POLL_GROUP <= num; i += UCT_SEP_RING_POLL_GROUP) {
        if (uct_sep_ring_poll_any(&places[i], UCT_SEP_RING_POLL_GROUP)) {
            return uct_sep_progress_eager_found(tl_iface, i);
        }
    }
    if ((i < num) && uct_sep_ring_poll_any(&places[i],
                                           UCT_SEP_RING_POLL_TAIL)) {
        return uct_sep_progress_eager_found(tl_iface, i);
    }

    return uct_sep_stack_next(iface, UCT_SEP_STACK_RINGS);
}

/* There is something in the ring from which the last message came: an unusual
 * one, or one that has to wait for a completion. Or a handler of that message
 * has called progress, and waits perhaps for the next one. */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_unusual(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count;

    count = uct_sep_progress_eager_take(iface, iface->eager.hot);
    return (count > 0) ? count : uct_sep_progress_eager_all(tl_iface);
}

/* A message of the ring from which the last one came, as most are */
unsigned uct_sep_progress_eager(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface     = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_eager_ring_t *ring = iface->eager.hot;
    uct_sep_ring_word_t *tail  = ring->rx.tail;
    uint64_t word              = uct_sep_ring_rx_look(tail);
    uint32_t rest;

    if ((uint32_t)word != ring->rx.key) {
        if (ucs_unlikely((word | ring->rx.busy) != 0)) {
            return uct_sep_progress_eager_unusual(tl_iface);
        }
        return uct_sep_progress_eager_all(tl_iface);
    }

    rest = uct_sep_ring_rx_accept(word);
    if (ucs_unlikely(rest > ring->rx.max_rest)) {
        return uct_sep_progress_eager_unusual(tl_iface);
    }

    uct_sep_ring_rx_credit(&ring->rx, UCT_SEP_RING_REST_CREDITS(rest));
    uct_sep_ring_rx_begin(&ring->rx, tail);
    uct_sep_progress_eager_invoke(iface, UCT_SEP_RING_REST_AM_ID(rest), tail,
                                  UCT_SEP_RING_REST_LENGTH(rest));
    if (ucs_unlikely(!uct_sep_ring_rx_end(&ring->rx))) {
        return uct_sep_progress_eager_stop(ring);
    }
    return 1;
}
