/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EP_STATE_H
#define UCT_SEP_EP_STATE_H

#include <uct/ib/sep/device/sep_async.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue_types.h>
#include <ucs/time/time_def.h>
#include <uct/api/uct.h>

/**
 * @file sep_ep_state.h
 *
 * What endpoints and their connections keep in an interface and in a send
 * queue.
 */

typedef struct uct_sep_cm uct_sep_cm_t;
typedef struct uct_sep_ep uct_sep_ep_t;
typedef struct uct_sep_link uct_sep_link_t;


/** Budget of queue pairs: sep_evict.h */
typedef struct uct_sep_ep_budget {
    struct uct_sep_budget *shared;    /**< With the process's other workers;
                                           NULL if there is no limit */
    struct uct_sep_budget_node *node; /**< With those of all processes; NULL if
                                           there is no limit */
    unsigned long         max;        /**< What all of them may hold, as it
                                           is set */
    unsigned              held;       /**< Queue pairs; this and what follows:
                                           async lock */
    uct_sep_link_t        **waiting;  /**< Those for which there is no room are
                                           at head to tail - 1. No queue, whose
                                           element all connections would have:
                                           those that are not made are small */
    unsigned              head, tail;
    unsigned              size;       /**< Entries of waiting */
    uct_worker_cb_id_t    progress_id; /**< Makes room, while somebody waits */
    ucs_time_t            patience;   /**< So long each of them waits */
    ucs_time_t            deadline;   /**< When the first one of them gets what
                                           is beyond the share */
    ucs_time_t            looked;     /**< Last time that there was no room for
                                           it */
    int                   is_exceeded; /**< It is being started */
    unsigned              let_in;     /**< Peers may connect up to so many
                                           queue pairs, while the worker does
                                           not progress */
    unsigned              num_exceeded; /**< Times that it was */
    unsigned              num_spared; /**< Visits to connections that were
                                           spared since, as they are used.
                                           Main thread */
    ucs_time_t            connect_time; /**< The least that a connection has
                                             taken; 0 if there was none. Main
                                             thread */
    uint64_t              num_waits;  /**< Connections that have waited */
    uint64_t              num_asked;  /**< Those that were to be given up */
} uct_sep_ep_budget_t;


/** Endpoints and connections of an interface: sep_link.h */
typedef struct uct_sep_ep_state {
    ucs_list_link_t      active;      /**< uct_sep_txwq_t in use */
    ucs_list_link_t      retired;     /**< uct_sep_txwq_t being drained */
    uct_worker_cb_id_t   reap_id;     /**< Destroys the queues in retired */
    ucs_list_link_t      orphans;     /**< uct_sep_txwq_t that were never
                                           active, to be flushed; async lock */
    unsigned             num_left;    /**< Those in active whose connection is
                                           over; async lock */

    ucs_list_link_t      sched;       /**< Endpoints whose pending requests may
                                           be sent: sep_dispatch.h */
    unsigned             num_pending; /**< Pending requests of all endpoints */
    uint8_t              in_dispatch;
    uct_sep_ep_t         *dispatched; /**< Endpoint whose request is being
                                           called; NULL if it was destroyed */
    uct_worker_cb_id_t   dispatch_id; /**< Calls the requests of sched again */

    uct_sep_cm_t         *cm;
    ucs_queue_head_t     events;      /**< uct_sep_link_t with news for the main
                                           thread; async lock */
    uct_worker_cb_id_t   event_id;    /**< Their handler; async lock */
    uct_worker_cb_id_t   connect_id;  /**< Progresses the manager, while
                                           endpoints connect */
    unsigned             num_links;   /**< Connections, for the leak check;
                                           async lock */
    unsigned             num_qp;      /**< Queue pairs; async lock */
    uint64_t             num_errors;  /**< Times that one could not be made or
                                           connected; async lock */
    uct_sep_ep_budget_t  budget;

    struct {
        uct_sep_async_user_t main;    /**< Of the memory domain's context, in
                                           which receives are */
        uct_sep_async_user_t own;     /**< Of the worker's, if it has one */
        int                  is_dead; /**< The device has failed: nothing
                                           completes any more */
    } async;
} uct_sep_ep_state_t;


/** Connection of a send queue: sep_link_qp.h */
typedef struct uct_sep_link_state {
    struct ibv_qp      *qp;        /**< NULL in the idle queue and in tests */
    struct ibv_qp      *responder; /**< QP that receives, if it is another
                                        one */
    uct_sep_async_qp_t flush;      /**< Of the one that receives */
    uct_sep_link_t     *link;      /**< Connection; NULL once that is over.
                                        Async lock */
    ucs_list_link_t    waiting;    /**< Endpoints with pending requests that
                                        wait for completions of this queue */
    ucs_list_link_t    list;       /**< In uct_sep_ep_state_t, active or
                                        retired */
    uint8_t            path_mtu;   /**< enum ibv_mtu, once it is connected;
                                        for both directions */
    uint8_t            pause;      /**< Turns of the hand before the peer is
                                        asked again */
    uint16_t           visited_pi; /**< uct_sep_txwq_t::sw_pi when the hand was
                                        there: sep_evict.h */
    union {
        ucs_time_t     begun;      /**< When; until it is established */
        ucs_time_t     took;       /**< How long that took; until it is
                                        active */
        ucs_time_t     kept_until; /**< It is not given up before:
                                        sep_evict.h */
    };
    ucs_time_t         put_off;    /**< When an urgent question was put off for
                                        the first time: sep_evict.h */
    uint8_t            has_cq_end; /**< cq_end is valid: retired and flushed,
                                        or a message in its ring waits */
    uint8_t            is_ending;  /**< Its end has begun: not before all that
                                        is under way */
    uint8_t            is_settled; /**< In error, as the peer's is gone: what
                                        has been lost comes out */
    uint8_t            is_lost;    /**< A request has failed that somebody waits
                                        for: if it is settled, one in front of
                                        settled_pi */
    uint8_t            is_over;    /**< ... and so has the last one, which is
                                        not counted as completed yet */
    uint8_t            num_put_off; /**< So often, at most
                                         UCT_SEP_EVICT_LOOKS times */
    uint16_t           settled_pi; /**< Behind all that somebody waits for */
    uint16_t           waiting_seq; /**< Message in the ring that waits */
    uint32_t           cq_end;     /**< Index in the completion queue behind
                                        what may be its own, or what the
                                        message may wait for */
} uct_sep_link_state_t;


/** There is no connection. */
static inline void uct_sep_link_state_init(uct_sep_link_state_t *state)
{
    ucs_list_head_init(&state->waiting);
    ucs_list_head_init(&state->list);
}

#endif
