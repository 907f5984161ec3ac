/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_FC_STATE_H
#define UCT_SEP_FC_STATE_H

#include <ucs/datastruct/list.h>
#include <stdint.h>

/**
 * @file sep_fc_state.h
 *
 * What flow control keeps in a send queue: sep_fc.h.
 */

/** Flags of flow control. */
enum {
    /** The next active message carries a grant. */
    UCT_SEP_FC_FLAG_GRANT = 1 << 0,
    /** A message with nothing but a grant waits for credits. */
    UCT_SEP_FC_FLAG_DUE   = 1 << 1,
    /** There is a ring, so no active message is a simple one: what goes by
     *  send/receive has immediate data. */
    UCT_SEP_FC_FLAG_RING  = 1 << 2,
    /** Ask for a grant after a few messages already: the peer learns from it
     *  who might need a ring. */
    UCT_SEP_FC_FLAG_EARLY = 1 << 3,
    /** The next active message is the first, and has a mark. */
    UCT_SEP_FC_FLAG_FIRST = 1 << 4,
    /** The peer's first message has not been seen. */
    UCT_SEP_FC_FLAG_FRESH = 1 << 5
};


/** Flow control of the active messages of a send queue. */
typedef struct uct_sep_fc_state {
    int32_t         left;  /**< Messages, after the next one, that need no flow
                                control: negative if the next one does, or can't
                                be sent */
    int32_t         next;  /**< Window at which the next one needs it */
    ucs_list_link_t list;  /**< In uct_sep_iface_t if a grant is due */
    uint8_t         flags; /**< UCT_SEP_FC_FLAG_xx */
} uct_sep_fc_state_t;

#endif
