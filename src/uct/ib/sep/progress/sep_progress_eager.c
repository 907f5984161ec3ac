/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_progress_eager.h"
#include "sep_cqe.h"
#include <uct/ib/sep/ep/sep_link.h>

#include <ucs/arch/cpu.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/debug/log.h>
#include <string.h>


/* Calls that find messages in rings before one that looks for completions in
 * any case: whoever writes into a ring must not keep others waiting */
#define UCT_SEP_PROGRESS_EAGER_TURNS  16


/* A peer has broken the rules: its connection fails, nothing else */
static void uct_sep_progress_eager_fail(uct_sep_iface_t *iface,
                                        uct_sep_txwq_t *txwq)
{
    uct_sep_eager_ring_t *ring = (txwq->eager == NULL) ? NULL :
                                                         txwq->eager->ring;

    if (ring != NULL) {
        uct_sep_ring_poll_clear(&iface->eager.places,
                                ring - iface->eager.rings);
    }
    if (!(txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        uct_sep_link_fail(iface, txwq, UCS_ERR_CONNECTION_RESET);
    }
}

static void uct_sep_progress_eager_bad(uct_sep_iface_t *iface,
                                       uct_sep_eager_ring_t *ring,
                                       uint64_t word, const char *what)
{
    uct_sep_ring_tail_t tail = uct_sep_ring_word_tail(word);

    ucs_error("%s: QP 0x%x: the peer has written a message into our ring with "
              "%s: number %u (expected: %u), %u bytes, handler %u, %u slots "
              "returned", iface->port.name, ring->txwq->qpn, what, tail.seq,
              uct_sep_ring_rx_seq(&ring->rx), tail.length,
              tail.am_id & ~UCT_SEP_RING_TAIL_VALID, tail.credits);
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

static UCS_F_ALWAYS_INLINE void
uct_sep_progress_eager_invoke(uct_sep_iface_t *iface, uint8_t am_id,
                              void *payload, uint32_t length,
                              uct_sep_rx_desc_t *desc)
{
    ucs_status_t UCS_V_UNUSED status;

    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, payload,
                       length, "RX: %s ring", iface->port.name);
    if (ucs_unlikely(desc != NULL)) {
        uct_sep_progress_eager_invoke_copy(iface, am_id, payload, length, desc);
        return;
    }

    status = uct_iface_invoke_am(&iface->super, am_id, payload, length, 0);
    ucs_assert(status == UCS_OK);
}

/* Handle the next message of a ring, whose tail was found; returns whether it
 * was, and the ring can be looked at again */
static UCS_F_ALWAYS_INLINE int
uct_sep_progress_eager_next(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring,
                            uint64_t word)
{
    uct_sep_ring_tail_t tail   = uct_sep_ring_word_tail(word);
    uint8_t am_id              = tail.am_id ^ UCT_SEP_RING_TAIL_VALID;
    uct_sep_ring_word_t *place = ring->rx.tail;
    uct_sep_txwq_t *txwq       = ring->txwq;
    uct_sep_rx_desc_t *desc    = NULL;

    if (ucs_unlikely(tail.length > ring->rx.max_length) ||
        ucs_unlikely(am_id >= UCT_AM_ID_MAX)) {
        if (!uct_sep_ring_word_is_whole(word)) {
            return 0;
        }
        uct_sep_progress_eager_bad(iface, ring, word,
                                   "a wrong length or handler");
        return 0;
    }

    if ((tail.credits != 0) &&
        ucs_unlikely(uct_sep_ring_tx_is_open(&txwq->ring) &&
                     (uct_sep_ring_tx_return(&txwq->ring, tail.credits) !=
                      UCS_OK))) {
        uct_sep_progress_eager_bad(iface, ring, word, "too many slots");
        return 0;
    }

    if (ucs_unlikely(iface->eager.copies)) {
        desc = ucs_mpool_get_inline(&iface->rx.mp);
        if (desc == NULL) {
            return 0; /* It stays where it is until there is memory */
        }
    }

    /* Before the handler, which may progress as well */
    uct_sep_ring_rx_advance(&ring->rx);
    *ring->place = ring->rx.tail;
    ++ring->rx.depth;
    uct_sep_progress_eager_invoke(iface, am_id,
                                  uct_sep_ring_payload(place, tail.length),
                                  tail.length, desc);
    --ring->rx.depth;

    /* The handler may have destroyed the connection */
    if (ucs_unlikely(ring->txwq != txwq)) {
        return 0;
    }

    if (ucs_unlikely(ring->rx.depth > 0)) {
        ++ring->rx.held; /* What is in front of it is still in use */
        return 1;
    }

    txwq->ring.owed += 1 + ring->rx.held;
    ring->rx.held    = 0;
    if (ucs_unlikely(txwq->ring.owed >= ring->rx.max_owed)) {
        uct_sep_eager_return_slots(iface, txwq);
    }
    return 1;
}

/* Handle messages of a ring, up to a limit; returns their number */
static unsigned
uct_sep_progress_eager_ring(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring,
                            unsigned limit)
{
    unsigned count = 0;
    uint64_t word;

    do {
        word = *(volatile uct_sep_ring_word_t*)ring->rx.tail;
        if (!uct_sep_ring_rx_is_next(&ring->rx, word)) {
            if (ucs_unlikely(!uct_sep_ring_rx_may_wait(&ring->rx, word))) {
                uct_sep_progress_eager_bad(iface, ring, word,
                                           "a wrong number");
            }
            break;
        }

        /* The device writes the tail last */
        ucs_memory_cpu_load_fence();
        if (!uct_sep_progress_eager_next(iface, ring, word)) {
            break;
        }
    } while (++count < limit);

    return count;
}

/*
 * Messages by send/receive
 */

static uct_sep_txwq_t *
uct_sep_progress_eager_txwq(uct_sep_iface_t *iface, uint32_t qpn,
                            uct_sep_eager_ring_t **ring_p)
{
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find(&iface->qps, qpn);

    *ring_p = ((txwq == NULL) || (txwq->eager == NULL)) ? NULL :
                                                          txwq->eager->ring;
    return txwq;
}

/* Take a control message; @a length is that of the message with its header */
static void
uct_sep_progress_eager_take(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
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
        uct_sep_progress_eager_take(iface, txwq, hdr, length);
    }
}

/* In order now: apply what comes with a message, then handle it */
static void uct_sep_progress_eager_deliver(uct_sep_iface_t *iface,
                                           uct_sep_txwq_t *txwq,
                                           uct_sep_eager_ring_t *ring,
                                           const uct_sep_eager_recv_t *recv)
{
    const uct_sep_am_hdr_t *hdr = uct_sep_cqe_imm_hdr(iface, recv);
    uint8_t bits                = UCT_SEP_RING_IMM_FC(recv->imm);

    uct_sep_ring_rx_count_send(&ring->rx);
    if (uct_sep_ring_tx_is_open(&txwq->ring) &&
        (uct_sep_ring_tx_return(&txwq->ring,
                                UCT_SEP_RING_IMM_CREDITS(recv->imm)) !=
         UCS_OK)) {
        ucs_error("%s: QP 0x%x: the peer returns %u slots, more than it was "
                  "sent messages", iface->port.name, recv->qpn,
                  UCT_SEP_RING_IMM_CREDITS(recv->imm));
        uct_sep_progress_eager_fail(iface, txwq);
        iface->srq.ops->append(&iface->srq, recv->index);
        return;
    }

    if (bits == UCT_SEP_AM_RING) {
        uct_sep_progress_eager_take(iface, txwq, hdr, recv->length);
        iface->srq.ops->append(&iface->srq, recv->index);
        return;
    }

    if (bits != 0) {
        uct_sep_cqe_apply_fc(iface, recv->qpn, bits);
    }
    uct_sep_cqe_deliver_imm(iface, recv, hdr->am_id & ~UCT_SEP_AM_FC_MASK);
}

/* Messages in a ring that come before a message by send/receive */
static unsigned
uct_sep_progress_eager_before(const uct_sep_eager_ring_t *ring, uint32_t imm)
{
    return (uint16_t)(UCT_SEP_RING_IMM_SEQ(imm) -
                      uct_sep_ring_rx_seq(&ring->rx));
}

void uct_sep_progress_eager_receive(uct_sep_iface_t *iface,
                                    const uct_sep_eager_recv_t *recv)
{
    uct_sep_eager_ring_t *ring;
    uct_sep_txwq_t *txwq;

    txwq = uct_sep_progress_eager_txwq(iface, recv->qpn, &ring);
    if ((recv->length >= sizeof(uct_sep_am_hdr_t)) && (ring != NULL) &&
        (txwq->eager->state.rx == UCT_SEP_RING_OPEN) &&
        (uct_sep_progress_eager_before(ring, recv->imm) <= ring->rx.slots)) {
        if (uct_sep_progress_eager_before(ring, recv->imm) == 0) {
            uct_sep_progress_eager_deliver(iface, txwq, ring, recv);
        } else {
            /* One call of progress delivers no more messages than it may */
            iface->eager.held    = *recv;
            iface->eager.is_held = 1;
        }
        return;
    }

    if (txwq != NULL) {
        ucs_error("%s: QP 0x%x: the peer has sent a message of %u bytes that "
                  "comes before message %u in our ring, but %s",
                  iface->port.name, recv->qpn, recv->length,
                  UCT_SEP_RING_IMM_SEQ(recv->imm),
                  (ring == NULL) ? "it has none" : "that can't be");
        uct_sep_progress_eager_fail(iface, txwq);
    }
    iface->srq.ops->append(&iface->srq, recv->index);
}

/* There is a message that has to wait for those in its peer's ring: they are
 * there, since it was sent behind them on the same connection */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_held(uct_sep_iface_t *iface)
{
    uct_sep_eager_recv_t recv = iface->eager.held;
    uct_sep_eager_ring_t *ring;
    uct_sep_txwq_t *txwq;
    unsigned left;
    uint64_t word;

    txwq = uct_sep_progress_eager_txwq(iface, recv.qpn, &ring);
    left = (ring == NULL) ? 0 : uct_sep_progress_eager_before(ring, recv.imm);
    if ((left > 0) && (left <= ring->rx.slots)) {
        word = *(volatile uct_sep_ring_word_t*)ring->rx.tail;
        if (uct_sep_ring_rx_is_next(&ring->rx, word) &&
            uct_sep_ring_word_is_whole(word)) {
            return uct_sep_progress_eager_ring(iface, ring,
                                               ucs_min(left, iface->config.
                                                             rx_max_poll));
        }

        ucs_error("%s: QP 0x%x: message %u in our ring is missing, although "
                  "the peer has sent another one behind it", iface->port.name,
                  recv.qpn, uct_sep_ring_rx_seq(&ring->rx));
        uct_sep_progress_eager_fail(iface, txwq);
        ring = NULL;
    }

    iface->eager.is_held = 0;
    if ((ring == NULL) || (left > ring->rx.slots)) {
        iface->srq.ops->append(&iface->srq, recv.index);
        return 0;
    }

    uct_sep_progress_eager_deliver(iface, txwq, ring, &recv);
    return 1;
}

/* Rings from an index on, one of which has something */
static UCS_F_NOINLINE unsigned
uct_sep_progress_eager_found(uct_iface_h tl_iface, unsigned index)
{
    uct_sep_iface_t *iface       = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_ring_place_t *places = iface->eager.places.places;
    unsigned max                 = iface->config.rx_max_poll;
    unsigned end                 = ucs_min(index + UCT_SEP_RING_POLL_GROUP,
                                           iface->eager.places.count);
    unsigned count               = 0;

    if (ucs_unlikely(++iface->eager.turn >= UCT_SEP_PROGRESS_EAGER_TURNS)) {
        iface->eager.turn = 0;
        count             = iface->eager.poll(tl_iface);
        if (count > 0) {
            return count; /* Which may have changed everything */
        }
    }

    do {
        if (*places[index] != 0) {
            count += uct_sep_progress_eager_ring(iface,
                                                 &iface->eager.rings[index],
                                                 max - count);
        }
    } while ((++index < end) && (count < max));

    /* What was found may have to wait for a completion */
    return (count > 0) ? count : iface->eager.poll(tl_iface);
}

unsigned uct_sep_progress_eager(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface       = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_ring_place_t *places = iface->eager.places.places;
    unsigned num                 = iface->eager.places.count;
    unsigned i                   = 0;

    if (ucs_unlikely(iface->eager.is_held)) {
        return uct_sep_progress_eager_held(iface);
    }

    /* All calls are tail calls: nothing is saved for them */
    for (; i + UCT_SEP_RING_POLL_GROUP <= num; i += UCT_SEP_RING_POLL_GROUP) {
        if (uct_sep_ring_poll_any(&places[i], UCT_SEP_RING_POLL_GROUP)) {
            return uct_sep_progress_eager_found(tl_iface, i);
        }
    }
    if ((i < num) && uct_sep_ring_poll_any(&places[i],
                                           UCT_SEP_RING_POLL_TAIL)) {
        return uct_sep_progress_eager_found(tl_iface, i);
    }

    return iface->eager.poll(tl_iface);
}
