/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_DEF_H
#define UCT_SEP_RING_DEF_H

#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/sys/compiler_def.h>
#include <assert.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * @file sep_ring_def.h
 *
 * What goes over the wire for the eager channel: short active messages as RDMA
 * writes into a ring of slots in the receiver's memory, which it polls (Liu,
 * Wu, Panda 2003: RDMA-based design of MPI over InfiniBand). All hosts are
 * little-endian, and so are the fields.
 *
 * A message lies at the end of its slot:
 *
 *     | unused | payload | 0 to 7 bytes | tail |
 *
 * So the tail, which the adapter writes last, is always at the same place of a
 * slot: no byte of payload is ever where a tail is expected, and what is there
 * beforehand is the tail of the message that was in the slot before, which has
 * another number.
 */

/** Alignment of payloads, and of slots. */
#define UCT_SEP_RING_ALIGN        8u
#define UCT_SEP_RING_SLOT_ALIGN   64u

/** Most slots of a ring: credits are bytes, and a sum of them must fit. */
#define UCT_SEP_RING_MAX_SLOTS    128u

/** Largest slot: lengths have 15 bits. */
#define UCT_SEP_RING_MAX_SLOT     32768u

/** Set in the rest of every tail, in its last byte: a tail without it is 0, or
 *  is being written, byte by byte in the worst case. */
#define UCT_SEP_RING_TAIL_VALID   0x80000000u

/** Number of handlers, a power of two: UCT_AM_ID_MAX. */
#define UCT_SEP_RING_HANDLERS     32u


/** Tail of a slot: the last thing that is written of a message. */
typedef struct uct_sep_ring_tail {
    uint32_t key;  /**< Number of the message: UCT_SEP_RING_KEY() */
    uint32_t rest; /**< What it is: UCT_SEP_RING_TAIL_REST() */
} uct_sep_ring_tail_t;

static_assert(sizeof(uct_sep_ring_tail_t) == sizeof(uint64_t), "ring tail");


/** Number of message @a _seq of the ring, from 1 on, behind @a _sends messages
 *  of the connection that went by send/receive since the ring was accepted.
 *  Both sides count by adding to it: what is carried from one part to the other
 *  is carried by both. */
#define UCT_SEP_RING_KEY(_sends, _seq) \
    (((uint32_t)(_sends) << 16) + (uint32_t)(_seq))


/** What comes behind the key in a tail: slots given back of the ring that goes
 *  the other way, handler, bytes of payload. The length comes first, so that
 *  one comparison tells whether there is anything wrong: no other handlers can
 *  be expressed, and the bits between length and mark are 0. */
#define UCT_SEP_RING_TAIL_REST(_credits, _am_id, _length) \
    ((uint32_t)(_credits) + \
     (((uint32_t)(_am_id) % UCT_SEP_RING_HANDLERS + \
       (((uint32_t)(_length) + (UCT_SEP_RING_TAIL_VALID >> 13)) << 5)) << 8))


/** Parts of that, without the mark. */
#define UCT_SEP_RING_REST_CREDITS(_rest)  ((uint8_t)(_rest))
#define UCT_SEP_RING_REST_AM_ID(_rest) \
    ((uint8_t)((_rest) >> 8) % UCT_SEP_RING_HANDLERS)
#define UCT_SEP_RING_REST_LENGTH(_rest)   ((uint32_t)(_rest) >> 13)


/**
 * While a ring is open, messages that go by send/receive carry this as
 * immediate data (send with immediate), and UCT_SEP_AM_RING with the handler in
 * their first byte.
 */
#define UCT_SEP_RING_IMM(_fc, _credits, _seq) \
    (((uint32_t)(_fc) << 24) | ((uint32_t)(_credits) << 16) | (uint16_t)(_seq))
#define UCT_SEP_RING_IMM_FC(_imm)       ((uint8_t)((_imm) >> 24))
#define UCT_SEP_RING_IMM_CREDITS(_imm)  ((uint8_t)((_imm) >> 16))
#define UCT_SEP_RING_IMM_SEQ(_imm)      ((uint16_t)(_imm))


/**
 * Control messages: UCT_SEP_AM_RING and one of these in the first byte, then a
 * body. They go by send/receive, without immediate data and without taking from
 * the window of flow control. At most one per direction is on its way.
 */
typedef enum {
    UCT_SEP_RING_MSG_OFFER,   /**< You may write into this ring */
    UCT_SEP_RING_MSG_ACCEPT,  /**< I write into it from now on */
    UCT_SEP_RING_MSG_DECLINE, /**< I won't */
    UCT_SEP_RING_MSG_REVOKE,  /**< Give it back */
    UCT_SEP_RING_MSG_RELEASE, /**< I don't write into it any more */
    UCT_SEP_RING_MSG_LAST
} uct_sep_ring_msg_type_t;


/** Body of UCT_SEP_RING_MSG_OFFER. */
typedef struct uct_sep_ring_offer {
    uint64_t address;   /**< Of the first slot */
    uint32_t rkey;
    uint32_t slot_size; /**< Bytes, tail included */
    uint16_t slots;
} UCS_S_PACKED uct_sep_ring_offer_t;


/** Body of UCT_SEP_RING_MSG_ACCEPT. */
typedef struct uct_sep_ring_accept {
    uint64_t address; /**< Of a counter of 4 bytes: slots that were given back
                           by writing it */
    uint32_t rkey;
} UCS_S_PACKED uct_sep_ring_accept_t;


/** Body of UCT_SEP_RING_MSG_RELEASE. */
typedef struct uct_sep_ring_release {
    uint16_t seq; /**< Of the message that would have been the next */
} UCS_S_PACKED uct_sep_ring_release_t;


/** A control message's body; those of the other types are empty. */
typedef union uct_sep_ring_body {
    uct_sep_ring_offer_t   offer;
    uct_sep_ring_accept_t  accept;
    uct_sep_ring_release_t release;
} uct_sep_ring_body_t;


/** @return Bytes of the body of a type of message. */
static inline unsigned uct_sep_ring_body_size(uct_sep_ring_msg_type_t type)
{
    return (type == UCT_SEP_RING_MSG_OFFER)   ? sizeof(uct_sep_ring_offer_t) :
           (type == UCT_SEP_RING_MSG_ACCEPT)  ? sizeof(uct_sep_ring_accept_t) :
           (type == UCT_SEP_RING_MSG_RELEASE) ? sizeof(uct_sep_ring_release_t) :
                                                0;
}


/** @return Bytes that a message takes of its slot. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_ring_room(uint32_t length)
{
    return ucs_align_up_pow2(length, UCT_SEP_RING_ALIGN) +
           sizeof(uct_sep_ring_tail_t);
}


/** @return Whether slots can be of a size. */
static inline int uct_sep_ring_is_slot_size(size_t size)
{
    return (size >= UCT_SEP_RING_SLOT_ALIGN) &&
           (size <= UCT_SEP_RING_MAX_SLOT) &&
           ((size % UCT_SEP_RING_SLOT_ALIGN) == 0);
}

END_C_DECLS

#endif
