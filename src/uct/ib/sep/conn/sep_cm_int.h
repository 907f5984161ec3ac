/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CM_INT_H
#define UCT_SEP_CM_INT_H

#include <uct/ib/sep/base/sep_rarely.h>
#include <uct/ib/sep/conn/sep_cm.h>

#include <ucs/datastruct/khash.h>

BEGIN_C_DECLS

/**
 * @file sep_cm_int.h
 *
 * Internals of the connection manager, shared by sep_cm.c (connections),
 * sep_cm_msg.c (packets), sep_cm_timer.c (what happens later) and sep_cm_ud.c
 * (its UD queue pair). For nobody else, except to tell its size.
 */

/**
 * Sends in flight. Packets are few per peer, and one thread hardly posts them
 * faster than a device sends them.
 */
#define UCT_SEP_CM_TX_QUEUE_LEN  128


/**
 * Address handles that are kept: those used last. More than there are sends in
 * flight, so nothing under way uses the one that has to go.
 */
#define UCT_SEP_CM_MAX_AHS       256

/** A receive of a packet, with the GRH. */
#define UCT_SEP_CM_RX_STRIDE \
    (UCT_SEP_CONN_GRH_LEN + sizeof(uct_sep_conn_packet_t))

/**
 * Where the rest of longer datagrams goes, whichever receive they take: nobody
 * reads it. No port has a larger MTU than 4096 (IBA 4.2.1), so no datagram is
 * longer than a receive and this.
 */
#define UCT_SEP_CM_RX_SCRAP \
    (UCT_SEP_CONN_GRH_LEN + 4096 - UCT_SEP_CM_RX_STRIDE)

/** Entries of a receive: its own bytes, and the rest. */
#define UCT_SEP_CM_RX_SGE        2


/** Who sent a packet, according to the device. */
typedef struct uct_sep_cm_rx_source {
    uint32_t qpn;     /**< UD QP number */
    uint16_t slid;    /**< Source LID, InfiniBand only */
    uint8_t  has_grh; /**< There is a network header */
} uct_sep_cm_rx_source_t;


/** A received packet that has been polled but not looked at. */
typedef struct uct_sep_cm_rx_entry {
    uint32_t               index;   /**< Receive buffer */
    uint32_t               length;  /**< Bytes behind the GRH */
    uct_sep_cm_rx_source_t source;
} uct_sep_cm_rx_entry_t;


/** Address handle of a port. */
typedef struct uct_sep_cm_ah {
    uct_sep_device_addr_t addr;
    struct ibv_ah         *ah;
    ucs_list_link_t       list; /**< In uct_sep_cm_t::ah_list */
} uct_sep_cm_ah_t;


KHASH_TYPE(uct_sep_cm_peers, const uct_sep_peer_addr_t*, char)
KHASH_TYPE(uct_sep_cm_ahs, uct_sep_device_addr_t, uct_sep_cm_ah_t*)


struct uct_sep_cm {
    ucs_async_context_t         *async;
    const uct_sep_cm_ops_t      *ops;
    void                        *arg;
    uct_sep_port_t              port;
    uct_sep_peer_addr_t         self;
    uct_sep_conn_env_t          env;
    uct_sep_cm_tx_filter_t      tx_filter;
    void                        *tx_filter_arg;

    khash_t(uct_sep_cm_peers)   peers; /**< Keys are inside the connections */
    khash_t(uct_sep_cm_peers)   known; /**< Those that somebody may connect to;
                                            keys are the users'. Each has a
                                            reference if there is a
                                            connection */
    khash_t(uct_sep_cm_ahs)     ahs;     /**< By device address */
    ucs_list_link_t             ah_list; /**< All of ahs, the one used last
                                              at the tail */

    ucs_list_link_t             timers;   /**< Connections with a deadline */
    ucs_time_t                  tick;     /**< Interval of the timer */
    int                         timer_id; /**< -1 if there is none */
    ucs_time_t                  keepalive; /**< Period, or UCS_TIME_INFINITY */
    ucs_time_t                  keepalive_from; /**< Not before: UCX's timers
                                                     expire for the first time
                                                     at once. 0 if there is
                                                     nothing to look after */
    int                         keepalive_id; /**< Its timer, -1 if there is
                                                   none */

    struct ibv_pd               *pd;
    uint16_t                    pkey_index;
    struct ibv_comp_channel     *channel;
    struct ibv_cq               *cq;
    struct ibv_qp               *ud_qp;
    uint32_t                    qkey;         /**< Of ud_qp */
    uct_sep_uuars_t             *uuars;       /**< NULL: nobody else rings */
    uct_sep_bf_t                *bf;          /**< With uuars: what ud_qp
                                                   rings */
    struct ibv_mr               *mr;
    uint8_t                     *rx_buf;      /**< rx_queue_len of them, and
                                                   UCT_SEP_CM_RX_SCRAP bytes */
    size_t                      rx_buf_size;
    unsigned                    rx_queue_len;
    uct_sep_cm_rx_entry_t       *rx_fifo;     /**< Ring, rx_queue_len entries */
    unsigned                    rx_fifo_head; /**< Next to look at */
    unsigned                    rx_fifo_count;
    unsigned                    tx_unsignaled;
    unsigned                    tx_signaled;  /**< Completions to come */
    uint8_t                     is_broken;    /**< QP is in error state */
    uint8_t                     is_draining;  /**< Guards against recursion */
    uint8_t                     is_behind;    /**< Packets are left for the
                                                   timer */
    ucs_time_t                  closing;      /**< If not 0: until when to wait
                                                   for sends */

    uct_sep_cm_stats_t          stats;
    char                        name[64];
};


/**
 * Create the UD QP with all it needs, post its receives and arm the CQ.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR with a message.
 */
ucs_status_t uct_sep_cm_ud_open(uct_sep_cm_t *cm,
                                const uct_sep_cm_params_t *params);

/** Mirror of @ref uct_sep_cm_ud_open. */
void uct_sep_cm_ud_close(uct_sep_cm_t *cm);

/**
 * Post a packet.
 *
 * @return 0, or errno: ENOMEM if the send queue is full, EHOSTUNREACH if there
 *         is no address handle, EBUSY if the uUAR is in use.
 */
int uct_sep_cm_ud_post_send(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer,
                            const uct_sep_conn_packet_t *packet);

/** The last packets follow: each completes, and waits for room. */
void uct_sep_cm_ud_begin_close(uct_sep_cm_t *cm);

/** Wait until they have left, all together for a moment only. */
void uct_sep_cm_ud_flush_sends(uct_sep_cm_t *cm);

/** Read the events from the channel. @return How many there were. */
unsigned uct_sep_cm_ud_get_events(uct_sep_cm_t *cm);

/** Ask for an event with the next completion. */
void uct_sep_cm_ud_arm(uct_sep_cm_t *cm);

/**
 * Poll, and pass each packet to @ref uct_sep_cm_rx, but not more of them than
 * there are receives: the caller has other things to do as well.
 *
 * @return Whether the CQ was found empty.
 */
int uct_sep_cm_ud_drain(uct_sep_cm_t *cm);

/**
 * Look at packets that were polled while a send made room for itself. To be
 * called after sending, outside of @ref uct_sep_cm_ud_drain.
 */
void uct_sep_cm_ud_flush(uct_sep_cm_t *cm);

/**
 * Handle one received payload.
 *
 * @param grh  What is in front of the payload; undefined without has_grh.
 */
void uct_sep_cm_rx(uct_sep_cm_t *cm, const void *data, size_t length,
                   const uint8_t *grh, const uct_sep_cm_rx_source_t *source);

/** The table's keys are the first member of the connections. */
static inline uct_sep_conn_t *uct_sep_cm_peer_conn(const void *peer)
{
    static_assert(offsetof(uct_sep_conn_t, peer) == 0, "key is not first");
    return (uct_sep_conn_t*)peer;
}

/** Ourselves, as a peer on a path knows us. */
static inline void uct_sep_cm_self_on_path(const uct_sep_cm_t *cm, uint8_t path,
                                           uct_sep_peer_addr_t *self_p)
{
    *self_p          = cm->self;
    self_p->dev.path = path;
}

/** @return The connection to a peer, NULL if there is none. */
uct_sep_conn_t *uct_sep_cm_conn_find(uct_sep_cm_t *cm,
                                     const uct_sep_peer_addr_t *peer);

/** Make a connection, with a reference if its peer is known, otherwise without.
 *
 * @return UCS_OK, or the error of conn_alloc, or UCS_ERR_NO_MEMORY. */
ucs_status_t uct_sep_cm_conn_add(uct_sep_cm_t *cm,
                                 const uct_sep_peer_addr_t *peer,
                                 uct_sep_conn_t **conn_p);

/** Do what a state machine says. The connection must not be touched after this:
 *  it may have been freed. */
void uct_sep_cm_perform(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                        const uct_sep_conn_out_t *out);

/** Send a packet about a connection to its peer. */
void uct_sep_cm_send_conn(uct_sep_cm_t *cm, const uct_sep_conn_t *conn,
                          uct_sep_conn_msg_type_t type,
                          const uct_sep_conn_out_t *out);

/** Packets may have arrived. Called by the async context, and by the timer if
 *  some were left. */
void uct_sep_cm_event(int fd, ucs_event_set_types_t events, void *arg);

/** Have the timer tick, which it does until nobody needs it. */
void uct_sep_cm_timer_start(uct_sep_cm_t *cm);

/** The deadline of a connection has changed. */
void uct_sep_cm_timer_update(uct_sep_cm_t *cm, uct_sep_conn_t *conn);

/** Remove a timer, if there is one. @param timer_id_p  Set to -1. */
void uct_sep_cm_timer_remove(const uct_sep_cm_t *cm, int *timer_id_p);

/** If nobody here refers to a connection, ask from time to time whether its
 *  peer does. */
void uct_sep_cm_keepalive_update(uct_sep_cm_t *cm, const uct_sep_conn_t *conn);

/** Without a timer, those who connect remind us: then the connections of peers
 *  that have gone are no more than connect in a period. */
void uct_sep_cm_keepalive_check(uct_sep_cm_t *cm);

/** Ask no more. */
void uct_sep_cm_keepalive_remove(uct_sep_cm_t *cm);


/** Others can send at any rate. */
#define uct_sep_cm_count(_cm, _counter, _level, _fmt, ...) \
    uct_sep_log_rarely((_cm)->stats._counter, _level, #_counter, "%s: " _fmt, \
                       (_cm)->name, ##__VA_ARGS__)

END_C_DECLS

#endif
