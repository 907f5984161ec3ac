/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_STATE_H
#define UCT_SEP_RING_STATE_H

#include <uct/ib/sep/ring/sep_ring_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_ring_state.h
 *
 * Who owns the rings of a connection: state machine of one side, for both
 * directions. Pure. What it wants to say is in a set of messages that are due;
 * whoever posts one reports it. Messages arrive in order, each once.
 *
 *     owner of the memory                    writer
 *     NONE     offer()
 *     OFFERED  OFFER            ---->        decides, answer()
 *     OPEN                      <----        ACCEPT, OPEN
 *              revoke()
 *              REVOKE           ---->
 *     NONE                      <----        RELEASE, NONE
 *
 * The owner may revoke at any time, even before it is answered. Memory is free
 * again when the state is NONE: nothing that the writer has posted is on its
 * way then.
 */

/** States of a direction. */
typedef enum {
    UCT_SEP_RING_NONE,
    UCT_SEP_RING_OFFERED, /**< Owner: not yet answered. Writer: not yet
                               answered, because there were no credits */
    UCT_SEP_RING_OPEN
} uct_sep_ring_phase_t;


/** One side of a connection. */
typedef struct uct_sep_ring_state {
    uint8_t rx;         /**< uct_sep_ring_phase_t as owner */
    uint8_t tx;         /**< As writer */
    uint8_t is_revoked; /**< Owner: wants it back, or has said so */
    uint8_t due;        /**< Bits of uct_sep_ring_msg_type_t, to be posted, the
                             lowest first */
} uct_sep_ring_state_t;


/** What a received message changes. */
typedef enum {
    UCT_SEP_RING_ACT_NOTHING,
    UCT_SEP_RING_ACT_DECIDE, /**< A ring was offered: call
                                  uct_sep_ring_state_answer() */
    UCT_SEP_RING_ACT_OPENED, /**< The peer writes into our ring */
    UCT_SEP_RING_ACT_FREED,  /**< The peer will not, or not any more */
    UCT_SEP_RING_ACT_BAD     /**< The message can't come now */
} uct_sep_ring_act_t;


/** Offer a ring; the state as owner is NONE. */
void uct_sep_ring_state_offer(uct_sep_ring_state_t *state);


/**
 * Ask for a ring back; without effect if there is none.
 *
 * @return Whether it is free already, as it was never offered.
 */
int uct_sep_ring_state_revoke(uct_sep_ring_state_t *state);


/** Answer an offer. */
void uct_sep_ring_state_answer(uct_sep_ring_state_t *state, int accept);


/** @return The message to be posted next, or UCT_SEP_RING_MSG_LAST. */
uct_sep_ring_msg_type_t
uct_sep_ring_state_due(const uct_sep_ring_state_t *state);


/** That message was posted. */
void uct_sep_ring_state_sent(uct_sep_ring_state_t *state,
                             uct_sep_ring_msg_type_t type);


/** A message has arrived. */
uct_sep_ring_act_t uct_sep_ring_state_receive(uct_sep_ring_state_t *state,
                                              uct_sep_ring_msg_type_t type);

END_C_DECLS

#endif
