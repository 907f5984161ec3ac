/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_H
#define UCT_SEP_RING_H

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

/** A tail, as it is written and read. */
typedef uint64_t uct_sep_ring_word_t __attribute__((may_alias));


/** Sender's end. All of it fits into one cache line. */
typedef struct uct_sep_ring_tx {
    uint64_t          slot_end;   /**< Address behind the next slot */
    int32_t           left;       /**< Slots after the next message: negative if
                                       there is none for it, or no ring */
    uint32_t          key;        /**< seq and sends of the next message, as in
                                       its tail */
    uint32_t          rkey;       /**< As remote keys for puts are kept: in the
                                       device's byte order */
    uint32_t          max_length; /**< Of a message */
    uint32_t          slot_size;
    uint32_t          owed;       /**< Slots to be given back of the other
                                       ring */
    uint64_t          first_end;  /**< Address behind the first slot */
    uint64_t          last_end;   /**< Address behind the last slot */
    const volatile uint32_t *returned; /**< Slots that came back by a write,
                                            or NULL */
    uint32_t          seen;       /**< Those of them that were counted */
    uint32_t          slots;      /**< 0: no ring */
} uct_sep_ring_tx_t;

static_assert(sizeof(uct_sep_ring_tx_t) <= 64, "sender's end of a ring");


/** Receiver's end. */
typedef struct uct_sep_ring_rx {
    uct_sep_ring_word_t *tail;      /**< Of the next message */
    uint32_t            key;        /**< What will be in it */
    uint32_t            max_length;
    uint32_t            slot_size;
    uint16_t            slots;
    uint16_t            depth;      /**< Handlers of its messages that run */
    uint32_t            held;       /**< Slots taken by handlers that were
                                         called by such a handler */
    uint32_t            returned;   /**< Slots given back by a write */
    uint32_t            max_owed;   /**< Slots that may be owed before they are
                                         given back by a write */
    uct_sep_ring_word_t *first;     /**< Tail of the first slot, */
    uct_sep_ring_word_t *last;      /**< of the last */
    uint64_t            laps;       /**< How often the last slot was used */
} uct_sep_ring_rx_t;


/** @return A key with the next number of a message in the ring, which has the
 *          lower half of the key. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_ring_next_seq(uint32_t key)
{
    return (key & 0xffff0000u) | (uint16_t)(key + 1);
}


/** A ring that does not exist. */
static inline void uct_sep_ring_tx_close(uct_sep_ring_tx_t *tx)
{
    uint32_t owed = tx->owed; /* Of the other direction's */

    memset(tx, 0, sizeof(*tx));
    tx->left = -1;
    tx->owed = owed;
}


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
                                  const volatile uint32_t *returned);


/** @return Number of the next message. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_ring_tx_seq(const uct_sep_ring_tx_t *tx)
{
    return (uint16_t)tx->key;
}


/** @return Slots to be given back with what is sent now. */
static UCS_F_ALWAYS_INLINE uint8_t uct_sep_ring_tx_take_owed(
        uct_sep_ring_tx_t *tx)
{
    uint32_t owed = tx->owed;

    tx->owed = 0;
    return owed;
}


/** @return Tail of the next message. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_sep_ring_tx_tail(uct_sep_ring_tx_t *tx, uint8_t am_id, uint32_t length)
{
    return tx->key | ((uint64_t)(length |
                                 ((uint32_t)uct_sep_ring_tx_take_owed(tx)
                                  << 16) |
                                 ((uint32_t)(am_id | UCT_SEP_RING_TAIL_VALID)
                                  << 24)) << 32);
}


/** The next message was posted. */
static UCS_F_ALWAYS_INLINE void uct_sep_ring_tx_advance(uct_sep_ring_tx_t *tx)
{
    uint64_t end = tx->slot_end;

    tx->slot_end = ucs_unlikely(end == tx->last_end) ? tx->first_end :
                                                       (end + tx->slot_size);
    tx->key      = uct_sep_ring_next_seq(tx->key);
    --tx->left;
}


/** @return Immediate data of a message that goes by send/receive; counts it. */
static inline uint32_t
uct_sep_ring_tx_take_send(uct_sep_ring_tx_t *tx, uint8_t fc_bits)
{
    uint32_t imm = UCT_SEP_RING_IMM(fc_bits, uct_sep_ring_tx_take_owed(tx),
                                    uct_sep_ring_tx_seq(tx));

    tx->key += 0x10000;
    return imm;
}


/**
 * Slots came back.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM if more did than were used.
 */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ring_tx_return(uct_sep_ring_tx_t *tx, uint32_t count)
{
    /* left is one less than what there is */
    if (ucs_unlikely(count > (uint32_t)(tx->slots - 1 - tx->left))) {
        return UCS_ERR_INVALID_PARAM;
    }
    tx->left += count;
    return UCS_OK;
}


/**
 * There is no slot left: count those that came back by writes. More than were
 * used is the peer's fault, and can't do more than to spoil its own ring.
 *
 * @return Whether there are any.
 */
static inline int uct_sep_ring_tx_refresh(uct_sep_ring_tx_t *tx)
{
    uint32_t returned = *tx->returned;
    uint32_t count    = returned - tx->seen;

    if ((count == 0) ||
        (uct_sep_ring_tx_return(tx, ucs_min(count, tx->slots)) != UCS_OK)) {
        return 0;
    }

    tx->seen = returned;
    return 1;
}


/** Set up the receiver's end, with all tails empty. */
void uct_sep_ring_rx_init(uct_sep_ring_rx_t *rx, void *memory, unsigned slots,
                          uint32_t slot_size);


/** @return Number of the next message. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_ring_rx_seq(const uct_sep_ring_rx_t *rx)
{
    return (uint16_t)rx->key;
}


/** @return Whether a word is the tail of the next message. If not, it is empty,
 *          wrong, or comes after a message by send/receive. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ring_rx_is_next(const uct_sep_ring_rx_t *rx, uint64_t word)
{
    return (uint32_t)word == rx->key;
}


/** @return Whether all of a tail was written. Its bytes may become visible one
 *          after the other: an adapter writes whole words, but who copies for
 *          one need not. */
static inline int uct_sep_ring_word_is_whole(uint64_t word)
{
    return (word >> 56) & UCT_SEP_RING_TAIL_VALID;
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


/** @return A tail as a structure. */
static UCS_F_ALWAYS_INLINE uct_sep_ring_tail_t
uct_sep_ring_word_tail(uint64_t word)
{
    uct_sep_ring_tail_t tail;

    memcpy(&tail, &word, sizeof(tail));
    return tail;
}


/** @return Payload of a message. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_ring_payload(uct_sep_ring_word_t *tail, uint32_t length)
{
    return UCS_PTR_BYTE_OFFSET(tail, -(ptrdiff_t)ucs_align_up_pow2(
                                             length, UCT_SEP_RING_ALIGN));
}


/** Step over the next message, whose tail is at hand: it is emptied, so that
 *  polling has to look for something else than 0 only. */
static UCS_F_ALWAYS_INLINE void uct_sep_ring_rx_advance(uct_sep_ring_rx_t *rx)
{
    uct_sep_ring_word_t *tail = rx->tail;

    *tail   = 0;
    rx->key = uct_sep_ring_next_seq(rx->key);
    if (ucs_unlikely(tail == rx->last)) {
        rx->tail = rx->first;
        ++rx->laps;
    } else {
        rx->tail = tail + rx->slot_size / sizeof(*tail);
    }
}


/** A message by send/receive was handled. */
static inline void uct_sep_ring_rx_count_send(uct_sep_ring_rx_t *rx)
{
    rx->key += 0x10000;
}


/** @return Messages taken out of the ring since it was set up. */
static inline uint64_t uct_sep_ring_rx_count(const uct_sep_ring_rx_t *rx)
{
    return rx->laps * rx->slots +
           (UCS_PTR_BYTE_DIFF(rx->first, rx->tail) / rx->slot_size);
}

END_C_DECLS

#endif
