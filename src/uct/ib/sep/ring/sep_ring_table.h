/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RING_TABLE_H
#define UCT_SEP_RING_TABLE_H

#include <uct/ib/sep/ring/sep_ring.h>
#include <uct/ib/sep/ring/sep_ring_poll.h>
#include <uct/ib/sep/ring/sep_ring_set.h>
#include <uct/ib/sep/ring/sep_ring_state.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_ring_table.h
 *
 * What an interface keeps of the eager channel: its rings, and what it knows of
 * those of a connection.
 */

typedef struct uct_sep_txwq uct_sep_txwq_t;
typedef struct uct_sep_iface uct_sep_iface_t;


/** A ring in our memory. */
typedef struct uct_sep_eager_ring {
    uct_sep_ring_rx_t    rx;
    uct_sep_iface_t      *iface;
    uct_sep_txwq_t       *txwq;    /**< Of who may write into it, or NULL */
    uint8_t              is_watched; /**< Its next message is waited for */
    uct_sep_ring_score_t score;
    uint64_t             scored;   /**< Messages that are in score, */
    uint64_t             counted;  /**< and in uct_sep_eager_stats_t */
} uct_sep_eager_ring_t;


/** What an interface knows of a connection whose two sides have rings, or may
 *  have. */
typedef struct uct_sep_eager_peer {
    uct_sep_ring_state_t state;
    uct_sep_ring_score_t score;    /**< As long as it has no ring */
    uct_sep_eager_ring_t *ring;    /**< For what it sends, or NULL */
    uct_sep_txwq_t       *txwq;
    uct_sep_ring_offer_t offer;    /**< Of its ring, until that is accepted */
    uint32_t             *returned; /**< Counter that it writes, or NULL */
    uct_sep_ring_accept_t return_to; /**< Counter that we write */
    int                  is_refused; /**< It has declined a ring, or there is no
                                          memory for it */
    ucs_list_link_t      due;      /**< In uct_sep_iface_t if messages are due
                                        */
    uint16_t             counted;  /**< Number of the first message sent by ring
                                        that is not in
                                        uct_sep_eager_stats_t */
} uct_sep_eager_peer_t;


/** A message with immediate data that was received. */
typedef struct uct_sep_eager_recv {
    uint32_t   qpn;       /**< Of the queue pair */
    uint32_t   imm;       /**< UCT_SEP_RING_IMM() */
    uint32_t   length;    /**< Bytes, with the first one */
    uint16_t   index;     /**< Of the receive */
    const void *data;     /**< Message in the completion, or NULL: it is in the
                               buffer of the receive */
} uct_sep_eager_recv_t;


/** Of what is there for the user to look at: sep_eager_stats.h. */
typedef struct uct_sep_eager_stats {
    uint64_t ring_sent;         /**< Messages written into rings, */
    uint64_t ring_received;     /**< taken out of rings, */
    uint64_t sent;              /**< sent by send/receive */
    uint64_t received;          /**< Receives used */
    uint64_t full;              /**< Messages for which there was no slot */
    uint16_t counted;           /**< Number of receives that is in received */
    uint64_t receives;          /**< Messages in rings that were given back */
    uint64_t fallbacks;         /**< Messages by send/receive while a ring was
                                     open */
    uint64_t writes;            /**< Credits given back by a write */
    unsigned accepted;          /**< Rings of others that are open */
} uct_sep_eager_stats_t;

END_C_DECLS

#endif
