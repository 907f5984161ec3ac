/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/eager/sep_eager_mem.h>
#include <uct/ib/sep/eager/sep_eager_order.h>
#include <uct/ib/sep/eager/sep_eager_stats.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_op_done.h>
#include <uct/ib/sep/iface/sep_stack.h>

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <inttypes.h>
#include <string.h>


/* Room in a segment for a message of the ring: header, padding and tail */
#define UCT_SEP_EAGER_OVERHEAD       16u


static const char *uct_sep_eager_msg_names[] = {
    [UCT_SEP_RING_MSG_OFFER]   = "an offer",
    [UCT_SEP_RING_MSG_ACCEPT]  = "an acceptance",
    [UCT_SEP_RING_MSG_DECLINE] = "a refusal",
    [UCT_SEP_RING_MSG_REVOKE]  = "a request to return",
    [UCT_SEP_RING_MSG_RELEASE] = "a return"
};

void uct_sep_eager_init(uct_sep_iface_t *iface,
                        uct_iface_progress_func_t progress)
{
    memset(&iface->eager, 0, sizeof(iface->eager));
    ucs_list_head_init(&iface->eager.due);
    iface->eager.progress           = progress;
    iface->eager.hot                = &iface->eager.none;
    iface->eager.none.iface         = iface;
    uct_sep_ring_rx_init_empty(&iface->eager.none.rx);
    uct_sep_ring_set_init(&iface->eager.set, iface->config.eager.poll_set);
}

void uct_sep_eager_cleanup(uct_sep_iface_t *iface)
{
    const uct_sep_eager_stats_t *stats = &iface->eager.stats;

    ucs_assert(iface->eager.num_rings == 0);
    uct_sep_fc_count_received(iface);
    ucs_debug("%s: interface %p: by ring %" PRIu64 " sent, %" PRIu64
              " received; by send/receive %" PRIu64 " sent, %" PRIu64
              " received; %" PRIu64 " of these sent despite a ring, %" PRIu64
              " because it was full; %" PRIu64 " writes of credits; no ring "
              "for %" PRIu64 " peers for want of order",
              iface->port.name, (void*)iface, stats->ring_sent,
              stats->ring_received, iface->count.sent, iface->count.received,
              stats->fallbacks, stats->full, stats->writes, stats->withheld);
    uct_sep_eager_mem_cleanup(iface);
}

/*
 * What is known of a connection
 */

static uct_sep_eager_peer_t *uct_sep_eager_peer(uct_sep_txwq_t *txwq)
{
    if (txwq->eager == NULL) {
        txwq->eager = ucs_calloc(1, sizeof(*txwq->eager), "sep_eager_peer");
        if (txwq->eager != NULL) {
            ucs_list_head_init(&txwq->eager->due);
            txwq->eager->txwq = txwq;
        }
    }

    return txwq->eager;
}

static void uct_sep_eager_post(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                               uct_sep_ring_msg_type_t type)
{
    uct_sep_eager_peer_t *peer = txwq->eager;
    uct_sep_wr_am_t am         = {.id = UCT_SEP_AM_RING | type};
    uct_sep_ring_body_t body   = {};

    switch (type) {
    case UCT_SEP_RING_MSG_OFFER:
        body.offer.address   = (uintptr_t)peer->ring->rx.first -
                               peer->ring->rx.max_length;
        body.offer.rkey      = peer->ring->memh->mr->rkey;
        body.offer.slot_size = peer->ring->rx.slot_size;
        body.offer.slots     = peer->ring->rx.slots;
        break;
    case UCT_SEP_RING_MSG_ACCEPT:
        body.accept.address = (uintptr_t)peer->returned;
        body.accept.rkey    = uct_sep_eager_mem_counter_rkey(iface);
        break;
    case UCT_SEP_RING_MSG_RELEASE:
        body.release.seq = uct_sep_ring_tx_seq(&txwq->ring);
        break;
    default:
        break;
    }

    /* In order with what is in the ring */
    if (uct_sep_ring_tx_is_open(&txwq->ring)) {
        am.is_imm = 1;
        am.imm    = uct_sep_ring_tx_take_send(&txwq->ring, UCT_SEP_AM_RING);
    }

    ucs_trace("%s: QP 0x%x: sending %s", iface->port.name, txwq->qpn,
              uct_sep_eager_msg_names[type]);
    iface->tx.ops->post_header(iface, txwq, am, &body,
                               uct_sep_ring_body_size(type));
    uct_sep_ring_state_sent(&peer->state, type);

    if (type == UCT_SEP_RING_MSG_ACCEPT) {
        (void)uct_sep_ring_tx_open(&txwq->ring, &peer->offer,
                                   iface->config.seg_size -
                                   UCT_SEP_EAGER_OVERHEAD, peer->returned);
        uct_sep_eager_stats_start(txwq);
        uct_sep_fc_set_ring(iface, txwq, 1);
        ++iface->eager.stats.accepted;
    } else if (type == UCT_SEP_RING_MSG_RELEASE) {
        uct_sep_eager_stats_sent(iface, txwq);
        uct_sep_ring_tx_close(&txwq->ring);
        uct_sep_fc_set_ring(iface, txwq, 0);
        --iface->eager.stats.accepted;
    }
}

static void uct_sep_eager_flush(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);

/* A write of slots was placed: the next one may be posted */
static void
uct_sep_eager_returned(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                       ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_sep_txwq_t *txwq = uct_sep_op(elem)->arg;

    uct_sep_op_list_push(&iface->tx.free_ops, elem);
    txwq->eager->is_returning = 0;
    uct_sep_eager_flush(iface, txwq);
}

/* Give back slots by a write. Two of them could be placed in either order, and
 * the counter would stay at what the first one says: only one is under way. */
static void
uct_sep_eager_post_returned(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_eager_peer_t *peer = txwq->eager;
    uct_sep_ring_rx_t *rx      = &peer->ring->rx;
    uct_sep_op_t *op           = uct_sep_op_get(iface);

    if (op == NULL) {
        return; /* With a later message, or write */
    }

    uct_sep_ring_rx_return(rx, uct_sep_ring_tx_take_owed(&txwq->ring));
    peer->is_returning = 1;
    ++iface->eager.stats.writes;
    iface->tx.ops->post_write(iface, txwq, &rx->returned, sizeof(rx->returned),
                              peer->return_to.address,
                              htobe32(peer->return_to.rkey));
    op->handler = uct_sep_eager_returned;
    op->ep      = NULL;
    op->arg     = txwq;
    uct_sep_txwq_track(txwq, op);
}

/* Whether slots are to be given back by a write, and can be */
static int uct_sep_eager_owes(const uct_sep_txwq_t *txwq)
{
    return (txwq->eager->state.rx == UCT_SEP_RING_OPEN) &&
           !txwq->eager->is_returning &&
           (uct_sep_ring_tx_owed(&txwq->ring) >=
            uct_sep_ring_rx_max_owed(&txwq->eager->ring->rx));
}

/* Post what is due, as far as there are credits; nothing on a queue pair that
 * has failed */
static void uct_sep_eager_flush(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_eager_peer_t *peer = txwq->eager;
    uct_sep_ring_msg_type_t type;

    if (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED) {
        return;
    }

    while (((type = uct_sep_ring_state_due(&peer->state)) !=
            UCT_SEP_RING_MSG_LAST) || uct_sep_eager_owes(txwq)) {
        if (!uct_sep_txwq_has_credits(txwq) || (iface->tx.cq_credits < 0)) {
            if (ucs_list_is_empty(&peer->due)) {
                ucs_list_add_tail(&iface->eager.due, &peer->due);
            }
            uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_WAITING);
            if (iface->tx.cq_credits < 0) {
                uct_sep_credits_stall(iface);
            }
            return;
        }

        if (type != UCT_SEP_RING_MSG_LAST) {
            uct_sep_eager_post(iface, txwq, type);
        } else {
            uct_sep_eager_post_returned(iface, txwq);
            break;
        }
    }

    ucs_list_del(&peer->due);
    ucs_list_head_init(&peer->due);
}

void uct_sep_eager_send_due(uct_sep_iface_t *iface)
{
    uct_sep_eager_peer_t *peer, *tmp;

    ucs_list_for_each_safe(peer, tmp, &iface->eager.due, due) {
        uct_sep_eager_flush(iface, peer->txwq);
    }
}

/*
 * Who has a ring
 */

/* A ring that is in use neither by a peer nor by a handler that has not come
 * back yet, or NULL */
static uct_sep_eager_ring_t *
uct_sep_eager_find_free(const uct_sep_iface_t *iface)
{
    uct_sep_eager_ring_t *ring;
    unsigned i;

    for (i = 0; i < iface->config.eager.poll_set; ++i) {
        ring = &iface->eager.rings[i];
        if ((ring->txwq == NULL) && !ring->rx.busy) {
            return ring;
        }
    }

    return NULL;
}

/* A ring is in use from the offer on; it has a key */
static void uct_sep_eager_take_ring(uct_sep_iface_t *iface,
                                    uct_sep_txwq_t *txwq,
                                    uct_sep_eager_ring_t *ring)
{
    uct_sep_ring_rx_init(&ring->rx, uct_sep_eager_mem_ring(iface, ring),
                         iface->config.eager.slots, txwq->eager->slot_size,
                         &txwq->ring.credits);
    ring->iface       = iface;
    ring->txwq        = txwq;
    ring->score       = txwq->eager->score;
    ring->scored      = 0;
    ring->counted     = 0;
    txwq->eager->ring = ring;
    uct_sep_ring_tx_set_other(&txwq->ring, &ring->rx);
    ++iface->eager.num_rings;
    uct_sep_stack_set(iface, UCT_SEP_STACK_RINGS, iface->eager.progress);
}

static void
uct_sep_eager_watch(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring)
{
    ring->is_watched = 1;
    uct_sep_ring_poll_set(&iface->eager.places,
                          uct_sep_eager_index(iface, ring), ring->rx.tail);
}

void uct_sep_eager_unwatch(uct_sep_iface_t *iface, uct_sep_eager_ring_t *ring)
{
    ring->is_watched = 0;
    if (iface->eager.hot == ring) {
        iface->eager.hot = &iface->eager.none;
    }
    uct_sep_ring_poll_clear(&iface->eager.places,
                            uct_sep_eager_index(iface, ring));
}

/* Without rings, nothing is left for their progress function to do */
static void uct_sep_eager_check_progress(uct_sep_iface_t *iface)
{
    if ((iface->eager.num_rings == 0) && !iface->eager.is_held) {
        uct_sep_stack_set(iface, UCT_SEP_STACK_RINGS, NULL);
    }
}

void uct_sep_eager_hold(uct_sep_iface_t *iface,
                        const uct_sep_eager_recv_t *recv,
                        uct_iface_progress_func_t held)
{
    ucs_assert(!iface->eager.is_held);
    iface->eager.held    = *recv;
    iface->eager.is_held = 1;
    uct_sep_stack_set(iface, UCT_SEP_STACK_HELD, held);
}

void uct_sep_eager_release(uct_sep_iface_t *iface)
{
    iface->eager.is_held = 0;
    uct_sep_stack_set(iface, UCT_SEP_STACK_HELD, NULL);
    uct_sep_eager_check_progress(iface);
}

static void uct_sep_eager_drop_ring(uct_sep_iface_t *iface,
                                    uct_sep_txwq_t *txwq)
{
    uct_sep_eager_ring_t *ring = txwq->eager->ring;

    uct_sep_eager_unwatch(iface, ring);
    uct_sep_eager_mem_close_ring(iface, ring);
    uct_sep_ring_tx_set_other(&txwq->ring, NULL);
    uct_sep_eager_stats_received(iface, ring);
    iface->eager.is_revoking = 0;
    ring->txwq               = NULL;
    txwq->eager->score       = ring->score;
    txwq->eager->ring        = NULL;
    --iface->eager.num_rings;
    uct_sep_eager_check_progress(iface);
}

static uint32_t uct_sep_eager_ring_score(uct_sep_iface_t *iface,
                                         uct_sep_eager_ring_t *ring)
{
    uint64_t count = uct_sep_ring_rx_count(&ring->rx);

    uct_sep_ring_score_add(&ring->score, &iface->eager.set,
                           count - ring->scored);
    ring->scored = count;
    return uct_sep_ring_score_get(&ring->score, &iface->eager.set);
}

/* The ring with the fewest messages */
static uct_sep_eager_ring_t *
uct_sep_eager_least(uct_sep_iface_t *iface, uint32_t *score_p)
{
    uct_sep_eager_ring_t *least = NULL;
    uct_sep_eager_ring_t *ring;
    uint32_t score;
    unsigned i;

    for (i = 0; i < iface->config.eager.poll_set; ++i) {
        ring = &iface->eager.rings[i];
        if ((ring->txwq == NULL) ||
            (ring->txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
            continue; /* Its last handler still runs; or it will soon be free,
                         and nobody can be asked for it */
        }

        score = uct_sep_eager_ring_score(iface, ring);
        if ((least == NULL) || (score < *score_p)) {
            least    = ring;
            *score_p = score;
        }
    }

    return least;
}

static void uct_sep_eager_revoke(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_ring_state_revoke(&txwq->eager->state)) {
        uct_sep_eager_drop_ring(iface, txwq);
    } else {
        uct_sep_eager_flush(iface, txwq);
    }
}

void uct_sep_eager_report(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uint32_t messages)
{
    uct_sep_eager_peer_t *peer;
    uct_sep_eager_ring_t *ring;
    uint32_t least = 0;

    if (!uct_sep_eager_is_enabled(iface) ||
        (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        return;
    }

    peer = uct_sep_eager_peer(txwq);
    if ((peer == NULL) || peer->is_refused || (peer->ring != NULL) ||
        ((iface->config.eager.mode != UCS_YES) && iface->eager.is_sleepy)) {
        return;
    }

    if ((peer->slot_size == 0) &&
        !uct_sep_eager_order_offers(iface, txwq, &peer->slot_size)) {
        peer->is_refused = 1;
        ++iface->eager.stats.withheld;
        return;
    }

    uct_sep_ring_set_report(&iface->eager.set, &peer->score, messages);
    if (uct_sep_eager_mem_init_rings(iface) != UCS_OK) {
        peer->is_refused = 1; /* A message that is repeated helps nobody */
        return;
    }

    iface->eager.is_sleepy = 0;
    ring                   = uct_sep_eager_find_free(iface);
    if (ring != NULL) {
        if (uct_sep_eager_mem_open_ring(iface, ring) != UCS_OK) {
            peer->is_refused = 1;
            return;
        }
        uct_sep_eager_take_ring(iface, txwq, ring);
        uct_sep_ring_state_offer(&peer->state);
        uct_sep_eager_flush(iface, txwq);
        return;
    }

    if (iface->eager.is_revoking) {
        return;
    }

    ring = uct_sep_eager_least(iface, &least);
    if ((ring != NULL) &&
        uct_sep_ring_set_replaces(uct_sep_ring_score_get(&peer->score,
                                                         &iface->eager.set),
                                  least)) {
        iface->eager.is_revoking = 1;
        uct_sep_eager_revoke(iface, ring->txwq);
    }
}

/* Whether to write into a ring; makes the counter of what comes back */
static int uct_sep_eager_accepts(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                 const uct_sep_ring_offer_t *offer)
{
    uct_sep_eager_peer_t *peer = txwq->eager;

    if (!uct_sep_eager_is_enabled(iface) ||
        !uct_sep_eager_order_accepts(iface)) {
        return 0;
    }

    if (peer->returned == NULL) {
        peer->returned = uct_sep_eager_mem_get_counter(iface);
        if (peer->returned == NULL) {
            return 0;
        }
    }

    *peer->returned = 0;
    peer->offer     = *offer;
    return 1;
}

static ucs_status_t
uct_sep_eager_bad(uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq,
                  uint8_t type, const char *what)
{
    ucs_error("%s: QP 0x%x: the peer has sent %s of a ring %s",
              iface->port.name, txwq->qpn,
              (type < UCT_SEP_RING_MSG_LAST) ? uct_sep_eager_msg_names[type] :
                                               "an unknown message", what);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t uct_sep_eager_receive(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                                   uint8_t type, const void *body,
                                   size_t length)
{
    uct_sep_ring_body_t copy = {};
    uct_sep_eager_peer_t *peer;
    uct_sep_ring_tx_t probe  = {};
    int is_revoked;

    if ((type >= UCT_SEP_RING_MSG_LAST) ||
        (length != uct_sep_ring_body_size((uct_sep_ring_msg_type_t)type))) {
        return uct_sep_eager_bad(iface, txwq, type, "of a wrong length");
    }

    peer = uct_sep_eager_peer(txwq);
    if (peer == NULL) {
        return UCS_OK; /* The peer goes on without a ring */
    }

    ucs_trace("%s: QP 0x%x: received %s", iface->port.name, txwq->qpn,
              uct_sep_eager_msg_names[type]);
    memcpy(&copy, body, length);
    if ((type == UCT_SEP_RING_MSG_RELEASE) && (peer->ring != NULL) &&
        (copy.release.seq != uct_sep_ring_rx_seq(&peer->ring->rx))) {
        return uct_sep_eager_bad(iface, txwq, type,
                                 "that lacks some of its messages");
    }

    is_revoked = peer->state.is_revoked;
    switch (uct_sep_ring_state_receive(&peer->state,
                                       (uct_sep_ring_msg_type_t)type)) {
    case UCT_SEP_RING_ACT_DECIDE:
        uct_sep_ring_tx_close(&probe);
        if (uct_sep_ring_tx_open(&probe, &copy.offer, SIZE_MAX,
                                 &probe.credits) != UCS_OK) {
            return uct_sep_eager_bad(iface, txwq, type, "that can't be");
        }
        uct_sep_ring_state_answer(&peer->state,
                                  uct_sep_eager_accepts(iface, txwq,
                                                        &copy.offer));
        break;
    case UCT_SEP_RING_ACT_OPENED:
        peer->return_to = copy.accept;
        uct_sep_eager_watch(iface, peer->ring);
        break;
    case UCT_SEP_RING_ACT_FREED:
        /* Who was asked to give it back may want the next one */
        peer->is_refused |= (type == UCT_SEP_RING_MSG_DECLINE) && !is_revoked;
        uct_sep_eager_drop_ring(iface, txwq);
        break;
    case UCT_SEP_RING_ACT_NOTHING:
        break;
    case UCT_SEP_RING_ACT_BAD:
        return uct_sep_eager_bad(iface, txwq, type, "out of turn");
    }

    uct_sep_eager_flush(iface, txwq);
    return UCS_OK;
}

int uct_sep_eager_refresh(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    uct_sep_eager_stats_sent(iface, txwq);
    if (uct_sep_ring_tx_refresh(&txwq->ring)) {
        return 1;
    }

    iface->eager.stats.full += !txwq->ring.is_fenced;
    return 0;
}

void uct_sep_eager_return_slots(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if ((uct_sep_ring_tx_owed(&txwq->ring) <
         uct_sep_ring_rx_max_owed(&txwq->eager->ring->rx)) ||
        txwq->eager->is_returning ||
        (txwq->flags & UCT_SEP_TXWQ_FLAG_RETIRED)) {
        return;
    }

    if (ucs_likely((txwq->eager->state.due == 0) &&
                   ((txwq->credits | iface->tx.cq_credits) >= 0))) {
        uct_sep_eager_post_returned(iface, txwq);
    } else {
        uct_sep_eager_flush(iface, txwq);
    }
}

/*
 * The end
 */

void uct_sep_eager_stop(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (uct_sep_ring_tx_is_open(&txwq->ring)) {
        uct_sep_eager_stats_sent(iface, txwq);
        uct_sep_ring_tx_close(&txwq->ring);
        --iface->eager.stats.accepted;
    }

    if (txwq->eager != NULL) {
        ucs_list_del(&txwq->eager->due);
        ucs_list_head_init(&txwq->eager->due);
        txwq->eager->state.due = 0;
    }
}

int uct_sep_eager_is_drained(const uct_sep_txwq_t *txwq)
{
    const uct_sep_ring_rx_t *rx;

    if ((txwq->eager == NULL) || (txwq->eager->ring == NULL) ||
        !txwq->eager->ring->is_watched) {
        return 1;
    }

    rx = &txwq->eager->ring->rx;
    return !uct_sep_ring_rx_is_next(rx, uct_sep_ring_rx_look(
                                                uct_sep_ring_rx_next(rx)));
}

int uct_sep_eager_has_message(const uct_sep_txwq_t *txwq)
{
    const uct_sep_ring_rx_t *rx;
    uint64_t word;

    if ((txwq->eager == NULL) || (txwq->eager->ring == NULL)) {
        return 0;
    }

    rx   = &txwq->eager->ring->rx;
    word = uct_sep_ring_rx_look(uct_sep_ring_rx_next(rx));
    return uct_sep_ring_word_is_whole(word) &&
           uct_sep_ring_rx_may_wait(rx, word);
}

uint16_t uct_sep_eager_next_seq(const uct_sep_txwq_t *txwq)
{
    return uct_sep_ring_rx_seq(&txwq->eager->ring->rx);
}

int uct_sep_eager_is_returning_last(const uct_sep_txwq_t *txwq)
{
    const uct_sep_op_t *op;

    /* A flush may wait for the same request */
    ucs_queue_for_each(op, &txwq->outstanding, queue) {
        if ((op->end == txwq->sw_pi) &&
            (op->handler == uct_sep_eager_returned)) {
            return 1;
        }
    }

    return 0;
}

int uct_sep_eager_is_held(const uct_sep_iface_t *iface,
                          const uct_sep_txwq_t *txwq)
{
    return iface->eager.is_held &&
           (uct_sep_qp_table_find(&iface->qps, iface->eager.held.qpn) == txwq);
}

int uct_sep_eager_is_quiet(const uct_sep_iface_t *iface,
                           const uct_sep_txwq_t *txwq)
{
    if (uct_sep_eager_is_held(iface, txwq)) {
        return 0;
    }

    return (txwq->eager == NULL) || ((txwq->eager->state.due == 0) &&
                                     ucs_list_is_empty(&txwq->eager->due));
}

void uct_sep_eager_forget(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq)
{
    if (txwq->eager == NULL) {
        return;
    }

    if (txwq->eager->ring != NULL) {
        uct_sep_eager_drop_ring(iface, txwq);
    }
    if (txwq->eager->returned != NULL) {
        uct_sep_eager_mem_put_counter(iface, txwq->eager->returned);
    }
    ucs_free(txwq->eager);
    txwq->eager = NULL;
}

uct_sep_eager_sleep_t uct_sep_eager_prepare_sleep(uct_sep_iface_t *iface)
{
    int has_message = 0;
    const uct_sep_eager_ring_t *ring;
    uct_sep_txwq_t *txwq;
    unsigned i;

    iface->eager.is_sleepy = 1;
    if (iface->eager.num_rings == 0) {
        return iface->eager.is_held ? UCT_SEP_EAGER_AWAKE : UCT_SEP_EAGER_SLEEP;
    }

    for (i = 0; i < iface->config.eager.poll_set; ++i) {
        ring = &iface->eager.rings[i];
        txwq = ring->txwq;
        if (txwq == NULL) {
            continue;
        }

        has_message |= !uct_sep_eager_is_drained(txwq);
        uct_sep_eager_revoke(iface, txwq);
    }

    return (has_message || iface->eager.is_held) ? UCT_SEP_EAGER_AWAKE :
           (iface->eager.num_rings > 0)          ? UCT_SEP_EAGER_DOZE :
                                                   UCT_SEP_EAGER_SLEEP;
}
