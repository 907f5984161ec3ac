/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EAGER_STATE_H
#define UCT_SEP_EAGER_STATE_H

#include <uct/ib/sep/ring/sep_ring.h>
#include <uct/ib/sep/ring/sep_ring_poll.h>
#include <uct/ib/sep/ring/sep_ring_set.h>
#include <uct/ib/sep/ring/sep_ring_state.h>
#include <ucs/datastruct/list.h>
#include <uct/api/uct.h>

BEGIN_C_DECLS

/**
 * @file sep_eager_state.h
 *
 * What an interface keeps of the eager channel: its rings, and what it knows of
 * those of a connection.
 */

typedef struct uct_sep_txwq uct_sep_txwq_t;
typedef struct uct_sep_iface uct_sep_iface_t;
typedef struct uct_sep_mem uct_sep_mem_t;


/** How an interface is to use it. */
typedef struct uct_sep_eager_config {
    int      mode;      /**< ucs_ternary_auto_value_t */
    unsigned slots;     /**< Of a ring */
    size_t   slot_size; /**< Bytes, with the tail */
    unsigned poll_set;  /**< Most rings */
} uct_sep_eager_config_t;

/** A ring in our memory. */
typedef struct uct_sep_eager_ring {
    uct_sep_ring_rx_t    rx;
    uct_sep_iface_t      *iface;
    uct_sep_txwq_t       *txwq;    /**< Of who may write into it, or NULL */
    uct_sep_mem_t        *memh;    /**< Its key; NULL if nobody may */
    uint8_t              is_watched; /**< Its next message is waited for */
    uct_sep_ring_score_t score;
    uint64_t             scored;   /**< Messages that are in score */
    uint64_t             counted;  /**< Messages in uct_sep_eager_stats_t */
} uct_sep_eager_ring_t;


/** What an interface knows of a connection whose two sides have rings, or may
 *  have. */
typedef struct uct_sep_eager_peer {
    uct_sep_ring_state_t state;
    uct_sep_ring_score_t score;    /**< As long as it has no ring */
    uct_sep_eager_ring_t *ring;    /**< For what it sends, or NULL */
    uint32_t             slot_size; /**< Of that, in bytes; 0 before it is known
                                         how its data are placed */
    uct_sep_txwq_t       *txwq;
    uct_sep_ring_offer_t offer;    /**< Of its ring, until that is accepted */
    uint32_t             *returned; /**< Counter that it writes, or NULL */
    uct_sep_ring_accept_t return_to; /**< Counter that we write */
    int                  is_refused; /**< It has declined a ring, or there is no
                                          memory for it */
    int                  is_returning; /**< A write of slots given back is under
                                            way */
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
    uint64_t ring_sent;         /**< Messages written into rings */
    uint64_t ring_received;     /**< Messages taken out of rings */
    uint64_t full;              /**< Messages for which there was no slot */
    uint64_t fallbacks;         /**< Messages by send/receive while a ring was
                                     open */
    uint64_t writes;            /**< Credits given back by a write */
    uint64_t withheld;          /**< Peers that were offered no ring, as their
                                     data may be placed out of order */
    unsigned accepted;          /**< Rings of others that are open */
} uct_sep_eager_stats_t;

/**
 * Most connections with a ring of the peer. Each has a counter of slots that
 * the peer gives back by writes, all of them together a page. Who offers a ring
 * when they are used up is refused.
 */
#define UCT_SEP_EAGER_MAX_COUNTERS  512u


/** Whether the port's service level has adaptive routing. */
enum {
    UCT_SEP_EAGER_AR_UNKNOWN, /**< Not asked yet */
    UCT_SEP_EAGER_AR_NONE,    /**< No, or firmware does not tell */
    UCT_SEP_EAGER_AR_USED
};


/** Eager channel of an interface. */
typedef struct uct_sep_eager_state {
    uct_sep_ring_poll_t places;        /**< Where to look for messages */
    uct_sep_eager_ring_t *hot;         /**< The one from which the last
                                            message came: it is looked at
                                            first. Its place in the table
                                            is not kept */
    uct_sep_eager_ring_t none;         /**< If there is no such ring: is
                                            always empty */
    uct_sep_eager_ring_t *rings;       /**< Of as many as there can be; NULL
                                            before the first is offered */
    uct_allocated_memory_t memory;     /**< Of all rings */
    uct_allocated_memory_t counters;   /**< Of what peers return */
    uct_sep_mem_t       *counters_memh;
    uint64_t            counter_map[UCT_SEP_EAGER_MAX_COUNTERS /
                                    64];  /**< Bits of those in use */
    unsigned            num_rings;     /**< In use */
    uint8_t             is_revoking;   /**< One is to change hands */
    uint8_t             is_sleepy;     /**< The worker was armed */
    uint8_t             is_held;       /**< held is waiting; no completion
                                            is looked at before that is
                                            done */
    uint8_t             copies;        /**< Handlers keep their buffers:
                                            they get copies */
    uint8_t             ar;            /**< UCT_SEP_EAGER_AR_xx */
    uint8_t             is_order_told; /**< It was logged why rings are not
                                            offered, or not as set */
    uct_sep_eager_recv_t held;
    unsigned            turn;          /**< Ring whose turn it is */
    uct_iface_progress_func_t progress; /**< Level of progress that looks at
                                             rings: sep_stack.h */
    ucs_list_link_t     due;           /**< uct_sep_eager_peer_t with
                                            messages to be posted */
    uct_sep_ring_set_t  set;
    uct_sep_eager_stats_t stats;
} uct_sep_eager_state_t;

END_C_DECLS

#endif
