/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_SET_H
#define UCT_SEP_RING_SET_H

#include <ucs/sys/compiler_def.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * @file sep_ring_set.h
 *
 * The polling set: which peers have a ring. At first none; then those that ask
 * for it by sending, as long as there is room; then who sends far more than the
 * one that sends least. Pure.
 *
 * Messages by send/receive are not counted one by one: that would cost each of
 * them. Requests of flow control are, which come every so many messages.
 */

/** Messages of a peer. Halved from epoch to epoch. */
typedef struct uct_sep_ring_score {
    uint32_t messages;
    uint32_t epoch;   /**< In which that was so */
} uct_sep_ring_score_t;


/** The set's clock. */
typedef struct uct_sep_ring_set {
    uint32_t epoch;
    uint64_t messages; /**< In this epoch, from peers without a ring */
    uint64_t length;   /**< Of an epoch, messages */
} uct_sep_ring_set_t;



/**
 * @param max  Rings in the set.
 */
void uct_sep_ring_set_init(uct_sep_ring_set_t *set, unsigned max);


/** @return Messages of a peer, as of now. */
uint32_t uct_sep_ring_score_get(const uct_sep_ring_score_t *score,
                                const uct_sep_ring_set_t *set);


/** Add messages to a peer's. */
void uct_sep_ring_score_add(uct_sep_ring_score_t *score,
                            const uct_sep_ring_set_t *set, uint64_t messages);


/** Messages have come from a peer without a ring: time passes. */
void uct_sep_ring_set_report(uct_sep_ring_set_t *set,
                             uct_sep_ring_score_t *score, uint32_t messages);


/**
 * The set is full: whether a peer without a ring should have one instead of
 * another.
 *
 * @param candidate  The peer's messages.
 * @param least      Messages of the ring that has had the fewest.
 *
 * @return Whether it should.
 */
int uct_sep_ring_set_replaces(uint32_t candidate, uint32_t least);

END_C_DECLS

#endif
