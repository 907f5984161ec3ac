/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EAGER_STATS_H
#define UCT_SEP_EAGER_STATS_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_eager_stats.h
 *
 * Messages of an interface by the way they took. Nothing is counted per
 * message: there are numbers that both sides of a ring keep, the windows of
 * flow control, and the count of receives that were handed to the device. What
 * they have grown by is added up where something else is to be done anyway,
 * often enough for none of them to wrap unseen, and when somebody asks.
 */


/** Values to be shown, and their names. */
typedef enum {
    UCT_SEP_EAGER_STAT_RING_SENT,     /**< Messages written into rings */
    UCT_SEP_EAGER_STAT_RING_RECEIVED, /**< Messages taken out of rings */
    UCT_SEP_EAGER_STAT_SENT,          /**< Messages sent by send/receive */
    UCT_SEP_EAGER_STAT_RECEIVED,      /**< Receives used: messages, and those of
                                           flow control and about rings */
    UCT_SEP_EAGER_STAT_FALLBACKS,     /**< Messages sent by send/receive while
                                           a ring was open */
    UCT_SEP_EAGER_STAT_FULL,          /**< Fallbacks for want of a slot; other
                                           messages did not fit, or had to ask
                                           for a completion */
    UCT_SEP_EAGER_STAT_WRITES,        /**< Slots given back by writes */
    UCT_SEP_EAGER_STAT_WITHHELD,      /**< Peers that were offered no ring, as
                                           their data may be placed out of
                                           order */
    UCT_SEP_EAGER_STAT_RINGS,         /**< Rings that peers have, or were
                                           offered */
    UCT_SEP_EAGER_STAT_ACCEPTED,      /**< Rings of peers that are open */
    UCT_SEP_EAGER_STAT_LAST
} uct_sep_eager_stat_t;


/** Names of the values, and of files. */
extern const char *uct_sep_eager_stat_names[UCT_SEP_EAGER_STAT_LAST];


/** Add the messages written into a ring since it was asked last: fewer than
 *  65536. */
void uct_sep_eager_stats_sent(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** A ring that will be written was opened. */
void uct_sep_eager_stats_start(uct_sep_txwq_t *txwq);


/** Add what was taken out of a ring of ours since it was asked last. */
void uct_sep_eager_stats_received(uct_sep_iface_t *iface,
                                  uct_sep_eager_ring_t *ring);


/**
 * Up to date, exactly. In the worker's thread.
 *
 * @param [out] values  UCT_SEP_EAGER_STAT_LAST values.
 */
void uct_sep_eager_stats_get(uct_sep_iface_t *iface, uint64_t *values);


/**
 * Show the values in UCX's virtual file system: not quite up to date, since
 * they are read by another thread.
 *
 * @param obj  With a directory: the interface, or that of a worker on a hub.
 */
void uct_sep_eager_stats_vfs_init(uct_sep_iface_t *iface, void *obj);

END_C_DECLS

#endif
