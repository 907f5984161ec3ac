/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_UCT_SENDERS_H_
#define BENCH_UCT_SENDERS_H_

#include "uct_pair.h"


/** Connections to the second interface of a pair, each a peer of its own to it:
 *  as many to one interface as that has paths. */
typedef struct uct_senders {
    uct_pair_t  *pair;
    uct_iface_h iface;      /**< The last that was opened */
    unsigned    num_paths;  /**< Of each interface */
    unsigned    count;      /**< Connections */
} uct_senders_t;


/** There are none yet. */
void uct_senders_init(uct_senders_t *senders, uct_pair_t *pair);


/**
 * Have so many senders, each of which has sent messages that were received:
 * more than it takes for being offered a ring of the eager channel, if that is
 * switched on. They stay until the process ends.
 *
 * @param am_id     Handler of the messages.
 * @param received  Counted up by the handler.
 *
 * @return UCS_OK, UCS_ERR_TIMED_OUT, or an error after a message.
 */
ucs_status_t uct_senders_grow(uct_senders_t *senders, unsigned count,
                              uint8_t am_id, volatile unsigned *received);

#endif
