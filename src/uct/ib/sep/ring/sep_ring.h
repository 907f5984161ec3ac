/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_H
#define UCT_SEP_RING_H

#include <uct/ib/sep/base/sep_fence.h>
#include <uct/ib/sep/ring/sep_ring_def.h>
#include <ucs/sys/compiler.h>
#include <ucs/type/status.h>
#include <string.h>

BEGIN_C_DECLS

/**
 * @file sep_ring.h
 *
 * The two ends of a ring: positions, numbers and credits. Pure: nothing is
 * posted or delivered here.
 *
 * Order between the two ways a message can take: a message in the ring has the
 * number of those sent before it by send/receive, and is taken when so many
 * were handled; one by send/receive has the number of the ring's next message,
 * and those before it are taken first. They are there: a receive completes
 * after the writes that precede it on its connection (IBTA 9.5, 10.2.6).
 */

#ifndef UCT_SEP_RING_LITMUS /* test/litmus has types of its own */
/** A tail, as it is written and read. */
typedef uint64_t uct_sep_ring_word_t __attribute__((may_alias));

/** Slots that came back, as the peer writes them. */
typedef volatile uint32_t uct_sep_ring_count_t;
#endif


/** Sender's end. All of it fits into one cache line. */
typedef struct uct_sep_ring_tx {
    uint64_t          slot_end;   /**< Address behind the next slot */
    int32_t           left;       /**< Slots after the next message: negative if
                                       there is none for it, or no ring */
    uint32_t          key;        /**< Of the next message */
    uint32_t          rkey;       /**< As remote keys for puts are kept: in the
                                       device's byte order */
    uint32_t          slot_size;
    const uint8_t     *taken;     /**< Of the ring in the other direction: lower
                                       byte of what is taken next. Points to
                                       told if there is none */
    uint16_t          max_length; /**< Of a message */
    uint8_t           slots;      /**< 0: no ring */
    uint8_t           told;       /**< Value of *taken up to which slots were
                                       given back */
    uint32_t          credits;    /**< Slots that came back with messages and
                                       are not in left yet */
    uint64_t          last_end;   /**< Address behind the last slot */
    const uct_sep_ring_count_t *returned; /**< Slots that came back by a
                                               write, or NULL */
    uint32_t          seen;       /**< Those of them that are in left */
    uint8_t           is_fenced;  /**< The next message has to be sent:
                                       uct_sep_ring_tx_fence() */
} uct_sep_ring_tx_t;

static_assert(sizeof(uct_sep_ring_tx_t) <= 64, "sender's end of a ring");


/** Receiver's end. What is needed for each message is in one cache line. */
typedef struct uct_sep_ring_rx {
    uct_sep_ring_word_t *tail;      /**< Of the message that is handled, or of
                                         the next one */
    uint32_t            key;        /**< What is in it */
    uint32_t            max_rest;   /**< Largest rest of a tail without
                                         UCT_SEP_RING_TAIL_VALID: another one
                                         has a wrong length */
    uint32_t            *credits;   /**< Where those in its messages go: of the
                                         sender's end of the other ring */
    uct_sep_ring_word_t *stop;      /**< Tail behind which something is to be
                                         done: half of the ring, or all of it,
                                         was used */
    uint32_t            slot_size;
    uint8_t             busy;       /**< A handler of one of its messages
                                         runs */
    uint8_t             slots;
    uint16_t            ahead;      /**< Messages behind that one which were
                                         handled meanwhile */
    uint32_t            returned;   /**< Slots given back by a write */
    uint32_t            max_length;
    uct_sep_ring_word_t *first;     /**< Tail of the first slot */
    uct_sep_ring_word_t *half;      /**< Tail of the slot in the middle */
    uct_sep_ring_word_t *last;      /**< Tail of the last slot */
    uint64_t            laps;       /**< How often the last slot was used */
} uct_sep_ring_rx_t;


/**
 * Size of the slots of a ring. Packets of a write may be placed in any order,
 * the bytes of a packet may not: unless it is known that all data are placed in
 * order, a slot has no more than one packet.
 *
 * @param size      As set.
 * @param path_mtu  Of the connection, bytes.
 * @param in_order  Whether the data of a write are known to be placed in order.
 *
 * @return A size that slots can have.
 */
static inline uint32_t
uct_sep_ring_slot_size(uint32_t size, uint32_t path_mtu, int in_order)
{
    return in_order ? size : ucs_min(size, path_mtu);
}


/** @return The next number in a ring. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_ring_next_key(uint32_t key)
{
    return key + UCT_SEP_RING_KEY(0, 1);
}


/** A ring that does not exist; the one in the other direction may. */
void uct_sep_ring_tx_close(uct_sep_ring_tx_t *tx);


/** The ring in the other direction is in use from now on, or with NULL, no
 *  more. */
void uct_sep_ring_tx_set_other(uct_sep_ring_tx_t *tx,
                               const uct_sep_ring_rx_t *rx);


/** @return Whether there is a ring, with or without room. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ring_tx_is_open(const uct_sep_ring_tx_t *tx)
{
    return tx->slots != 0;
}


/**
 * Start to write into a ring.
 *
 * @param offer       As it came from the peer.
 * @param max_length  Of messages, whatever the ring has room for.
 * @param returned    Counter that the peer writes.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM if such a ring can't be.
 */
ucs_status_t uct_sep_ring_tx_open(uct_sep_ring_tx_t *tx,
                                  const uct_sep_ring_offer_t *offer,
                                  size_t max_length,
                                  const uct_sep_ring_count_t *returned);


/** @return Number of the next message. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_ring_tx_seq(const uct_sep_ring_tx_t *tx)
{
    return (uint16_t)tx->key;
}


/** @return Slots of the other ring that could be given back. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_sep_ring_tx_owed(const uct_sep_ring_tx_t *tx)
{
    return *tx->taken - tx->told;
}


/** Slots came back. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ring_tx_credit(uct_sep_ring_tx_t *tx, unsigned slots)
{
    tx->credits += slots;
}


/** @return Slots of the other ring that are given back with what is sent
 *          now. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_sep_ring_tx_take_owed(uct_sep_ring_tx_t *tx)
{
    uint8_t taken = *tx->taken;
    uint8_t owed  = taken - tx->told;

    if (owed != 0) {
        /* Messages have been read when the peer may write into their slots.
         * That they were emptied is behind the fence of the doorbell. */
        uct_sep_fence_slots();
    }
    tx->told = taken;
    return owed;
}


/** @return Tail of the next message. */
static UCS_F_ALWAYS_INLINE uct_sep_ring_tail_t
uct_sep_ring_tx_tail(uct_sep_ring_tx_t *tx, uint8_t am_id, uint32_t length)
{
    uint8_t credits          = uct_sep_ring_tx_take_owed(tx);
    uct_sep_ring_tail_t tail = {
        .key  = tx->key,
        .rest = UCT_SEP_RING_TAIL_REST(credits, am_id, length)
    };

    return tail;
}


/** The next message was posted. */
static UCS_F_ALWAYS_INLINE void uct_sep_ring_tx_advance(uct_sep_ring_tx_t *tx)
{
    uint64_t end = tx->slot_end;

    if (ucs_unlikely(end == tx->last_end)) {
        end -= tx->slots * tx->slot_size;
    }
    tx->slot_end = end + tx->slot_size;
    tx->key      = uct_sep_ring_next_key(tx->key);
    --tx->left;
}


/** @return Immediate data of a message that goes by send/receive; counts it. */
static inline uint32_t
uct_sep_ring_tx_take_send(uct_sep_ring_tx_t *tx, uint8_t fc_bits)
{
    uint32_t imm = UCT_SEP_RING_IMM(fc_bits, uct_sep_ring_tx_take_owed(tx),
                                    uct_sep_ring_tx_seq(tx));

    tx->key      += UCT_SEP_RING_KEY(1, 0);
    tx->is_fenced = 0;
    return imm;
}


/** @return Whether no more slots came back with messages than were used. The
 *          peer's fault, which spoils its own ring only. */
static inline int uct_sep_ring_tx_is_sane(const uct_sep_ring_tx_t *tx)
{
    /* left is one less than what there is */
    return (tx->slots == 0) ||
           (tx->credits <= (uint32_t)(tx->slots - 1 - tx->left));
}


/** No message goes into the ring until slots are counted again: those that are
 *  left are as good as those that came back. */
static inline void uct_sep_ring_tx_pause(uct_sep_ring_tx_t *tx)
{
    /* left is one less than what there is */
    tx->credits += tx->left + 1;
    tx->left     = -1;
}


/**
 * There was a fence: the next message has to be sent. A message in the ring is
 * an RDMA write, which may be placed before those that precede it on its
 * connection; a send completes behind them. Messages in the ring that follow
 * it have its number, and wait for it.
 */
static inline void uct_sep_ring_tx_fence(uct_sep_ring_tx_t *tx)
{
    if (uct_sep_ring_tx_is_open(tx)) {
        uct_sep_ring_tx_pause(tx);
        tx->is_fenced = 1;
    }
}


/**
 * There is no slot left: count those that came back. Nothing is done if more
 * did than were used, or the next message has to be sent. A number in
 * uct_sep_ring_tx_t::returned that is older than the last one counts for
 * nothing, wherever it has come from.
 *
 * @return Whether there are any.
 */
int uct_sep_ring_tx_refresh(uct_sep_ring_tx_t *tx);


/** Set up a receiver's end of no ring, which has no message ever. */
void uct_sep_ring_rx_init_empty(uct_sep_ring_rx_t *rx);


/**
 * Set up the receiver's end, with all tails empty.
 *
 * @param memory   Of the ring, slots * slot_size bytes; remains the caller's.
 * @param credits  uct_sep_ring_tx_t::credits of the ring in the other
 *                 direction.
 */
void uct_sep_ring_rx_init(uct_sep_ring_rx_t *rx, void *memory, unsigned slots,
                          uint32_t slot_size, uint32_t *credits);


/** @return Number of the next message, also while a handler runs. */
static inline uint32_t uct_sep_ring_rx_key(const uct_sep_ring_rx_t *rx)
{
    return rx->key + UCT_SEP_RING_KEY(0, rx->busy + rx->ahead);
}


/** @return The part of it that counts messages in the ring. */
static inline uint16_t uct_sep_ring_rx_seq(const uct_sep_ring_rx_t *rx)
{
    return (uint16_t)uct_sep_ring_rx_key(rx);
}


/** @return Where the tail of the next message will be, also while a handler
 *          runs. */
static inline uct_sep_ring_word_t *
uct_sep_ring_rx_next(const uct_sep_ring_rx_t *rx)
{
    size_t offset = UCS_PTR_BYTE_DIFF(rx->first, rx->tail) +
                    (size_t)(rx->busy + rx->ahead) * rx->slot_size;

    return (uct_sep_ring_word_t*)UCS_PTR_BYTE_OFFSET(
            rx->first, offset % (rx->slots * rx->slot_size));
}


/** @return A tail, or what is there of it. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_sep_ring_rx_look(const uct_sep_ring_word_t *tail)
{
    return *(const volatile uct_sep_ring_word_t*)tail;
}


/** @return Whether all of a tail was written. Its bytes may become visible one
 *          after the other: an adapter writes whole words, but who copies for
 *          one need not. */
static inline int uct_sep_ring_word_is_whole(uint64_t word)
{
    return word >> 63;
}


/** @return Whether a word is the tail of the next message. If not, it is empty,
 *          not all there yet, wrong, or comes after a message by
 *          send/receive. */
static inline int
uct_sep_ring_rx_is_next(const uct_sep_ring_rx_t *rx, uint64_t word)
{
    return ((uint32_t)word == uct_sep_ring_rx_key(rx)) &&
           uct_sep_ring_word_is_whole(word);
}


/** @return Whether a word that is not the next message's tail may be there: it
 *          is empty or not all there yet, or what it is the tail of has to
 *          wait. */
static inline int
uct_sep_ring_rx_may_wait(const uct_sep_ring_rx_t *rx, uint64_t word)
{
    return !uct_sep_ring_word_is_whole(word) ||
           ((uint16_t)word == uct_sep_ring_rx_seq(rx));
}


/** @return The rest of a tail, with UCT_SEP_RING_TAIL_VALID inverted. Its parts
 *          are valid if it is not above uct_sep_ring_rx_t::max_rest. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_ring_word_rest(uint64_t word)
{
    return (uint32_t)(word >> 32) ^ UCT_SEP_RING_TAIL_VALID;
}


/** The message is there whose tail was looked at. The device writes the tail
 *  last: behind this, the payload can be read.
 *
 *  @return As uct_sep_ring_word_rest(). */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_ring_rx_accept(uint64_t word)
{
    uct_sep_fence_from_device();
    return uct_sep_ring_word_rest(word);
}


/** @return Payload of a message. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_ring_payload(uct_sep_ring_word_t *tail, uint32_t length)
{
    return UCS_PTR_BYTE_OFFSET(tail, -(ptrdiff_t)ucs_align_up_pow2(
                                             length, UCT_SEP_RING_ALIGN));
}


/**
 * The message whose tail is at hand is handled from now on. Its slot is
 * emptied, so that polling has to look for something else than 0 only. Until it
 * was handled, the ring looks as if the message had not come yet.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_ring_rx_begin(uct_sep_ring_rx_t *rx, uct_sep_ring_word_t *tail)
{
    *tail    = 0;
    rx->busy = 1;
}


/** The peer gives back slots of the ring in the other direction. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ring_rx_credit(const uct_sep_ring_rx_t *rx, unsigned slots)
{
    *rx->credits += slots;
}


/** Slots are given back by a write of uct_sep_ring_rx_t::returned. */
static inline void uct_sep_ring_rx_return(uct_sep_ring_rx_t *rx, unsigned slots)
{
    rx->returned += slots;
}


/** It was handled. @return 1; or 0 if uct_sep_ring_rx_stop() has to be called,
 *  since there is more to do than to step over it. */
static UCS_F_ALWAYS_INLINE int uct_sep_ring_rx_end(uct_sep_ring_rx_t *rx)
{
    uct_sep_ring_word_t *tail = rx->tail;

    rx->busy = 0;
    if (ucs_unlikely(tail == rx->stop)) {
        return 0;
    }

    rx->tail = (uct_sep_ring_word_t*)UCS_PTR_BYTE_OFFSET(tail, rx->slot_size);
    rx->key  = uct_sep_ring_next_key(rx->key);
    return 1;
}


/** Step over it and those that were handled meanwhile.
 *
 *  @return Whether it was in the last slot. */
int uct_sep_ring_rx_stop(uct_sep_ring_rx_t *rx);


/** A message was taken while a handler of another one runs. */
static inline void uct_sep_ring_rx_count_ahead(uct_sep_ring_rx_t *rx)
{
    ++rx->ahead;
    rx->stop = rx->tail;
}


/** A message by send/receive was handled. */
static inline void uct_sep_ring_rx_count_send(uct_sep_ring_rx_t *rx)
{
    rx->key += UCT_SEP_RING_KEY(1, 0);
}


/** @return Slots that may be owed before they are given back by a write. */
static inline unsigned uct_sep_ring_rx_max_owed(const uct_sep_ring_rx_t *rx)
{
    return ucs_max(rx->slots / 4, 1);
}


/** @return Messages taken out of the ring since it was set up. */
static inline uint64_t uct_sep_ring_rx_count(const uct_sep_ring_rx_t *rx)
{
    return rx->laps * rx->slots +
           (UCS_PTR_BYTE_DIFF(rx->first, rx->tail) / rx->slot_size) +
           rx->busy + rx->ahead;
}

END_C_DECLS

#endif
