/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_POLL_H
#define UCT_SEP_RING_POLL_H

#include <uct/ib/sep/ring/sep_ring.h>

BEGIN_C_DECLS

/**
 * @file sep_ring_poll.h
 *
 * Where to look for the next message of each ring: a table of addresses, so
 * that an idle look at a ring reads eight bytes of the table and the eight that
 * the adapter writes. Places without a ring point to a word that stays empty.
 */

/** Rings that are looked at together. */
#define UCT_SEP_RING_POLL_GROUP  8u
#define UCT_SEP_RING_POLL_TAIL   4u

/** A word of a ring, as polling reads it. */
typedef const uct_sep_ring_word_t *uct_sep_ring_place_t;


/** A word that stays empty. */
extern const uct_sep_ring_word_t uct_sep_ring_empty;


/** The table. */
typedef struct uct_sep_ring_poll {
    uct_sep_ring_place_t *places;
    unsigned             count; /**< Places to be looked at, a multiple of
                                     UCT_SEP_RING_POLL_TAIL */
    unsigned             max;   /**< Length of the table, the same */
} uct_sep_ring_poll_t;


/**
 * Make a table.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY, without a message.
 */
ucs_status_t uct_sep_ring_poll_init(uct_sep_ring_poll_t *poll, unsigned max);


/** Release it. */
void uct_sep_ring_poll_cleanup(uct_sep_ring_poll_t *poll);


/** A ring that is looked at has its next message elsewhere. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ring_poll_move(uct_sep_ring_poll_t *poll, unsigned index,
                       uct_sep_ring_place_t place)
{
    poll->places[index] = place;
}


/** Look at a ring from now on. */
void uct_sep_ring_poll_set(uct_sep_ring_poll_t *poll, unsigned index,
                           uct_sep_ring_place_t place);


/** Don't look at it any more. */
void uct_sep_ring_poll_clear(uct_sep_ring_poll_t *poll, unsigned index);


/** @return Whether there is anything in @a num rings from an index on. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ring_poll_any(const uct_sep_ring_place_t *places, unsigned num)
{
    uint64_t words = 0;
    unsigned i;

    /* The words change by themselves. They are not volatile: then each would
     * take an instruction more. Who finds one that is not empty reads it again,
     * and has a fence then. */
    ucs_compiler_fence();

    /* num is a constant */
#pragma GCC unroll 8
    for (i = 0; i < num; ++i) {
        words |= *places[i];
    }
    return words != 0;
}

END_C_DECLS

#endif
