/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CM_H
#define UCT_SEP_CM_H

#include <uct/ib/sep/port/sep_addr.h>
#include <uct/ib/sep/conn/sep_conn.h>
#include <uct/ib/sep/queue/sep_uuar.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

BEGIN_C_DECLS

/**
 * @file sep_cm.h
 *
 * Connection manager of one interface: a UD queue pair, the table of peers, and
 * the timer that drive the state machines of sep_conn.h. It runs from
 * completion events in the worker's async context and costs nothing while no
 * connection is being made.
 *
 * Locking: the functions below take the async context themselves
 * (blocking it is recursive, so they may be called with it held, and from
 * the callbacks). The callbacks are called with it held, from the thread that
 * progresses the worker or from UCX's async thread.
 */

typedef struct uct_sep_cm uct_sep_cm_t;


/**
 * Services of the transport. All are called with the async context blocked,
 * possibly in the async thread, i.e. concurrently with the transport's data
 * path, unless said otherwise.
 */
typedef struct uct_sep_cm_ops {
    /**
     * Allocate the transport's connection, whose first member is the
     * uct_sep_conn_t. Memory only, no QP. The callee initialises its own part;
     * the manager initialises the base part afterwards.
     *
     * @return UCS_OK or UCS_ERR_NO_MEMORY.
     */
    ucs_status_t (*conn_alloc)(void *arg, uct_sep_conn_t **conn_p);

    /**
     * Release it. It has no QP by then and, but for @ref uct_sep_cm_cleanup, no
     * reference: the last one has been dropped, or the QP that it was kept for
     * is gone.
     */
    void (*conn_free)(void *arg, uct_sep_conn_t *conn);

    /**
     * Create an RC QP in INIT state and describe it.
     *
     * @return Status; a failure is reported to the peer (REJ) or returned by
     *         @ref uct_sep_cm_conn_start. UCS_ERR_NO_RESOURCE is none: the
     *         transport starts the connection when there is room for it.
     */
    ucs_status_t (*qp_create)(void *arg, uct_sep_conn_t *conn,
                              uct_sep_conn_qp_info_t *local_p);

    /**
     * Bring the QP to RTR and RTS. From here on messages can arrive on it; the
     * transport must not send before @a established.
     *
     * Limits to apply: path_mtu is the smaller of the two sides',
     * max_rd_atomic at most remote->max_dest_rd_atomic, rq_psn is remote->psn.
     * @a ah_attr is complete, with port_num. With oneself, @a remote is what
     * qp_create returned: the QP is connected to itself.
     *
     * @return Status; on failure qp_destroy follows.
     */
    ucs_status_t (*qp_connect)(void *arg, uct_sep_conn_t *conn,
                               const uct_sep_conn_qp_info_t *remote,
                               const struct ibv_ah_attr *ah_attr);

    /**
     * The connection gives up its QP. Follows every successful qp_create once,
     * and a new qp_create for the same connection may follow immediately.
     *
     * A QP that was reported @a established is only given up from within
     * @ref uct_sep_cm_conn_error and @ref uct_sep_cm_cleanup, i.e. in the
     * caller's thread. One that was not may be given up in the async thread
     * (handshake timed out, peer started over): the transport then has to
     * detach it here. ibv_destroy_qp() may be called here only if it does not
     * touch the CQ, which another thread may be polling: libmlx5 does so if
     * mlx5dv_init_obj() has handed the CQ out (MLX5_CQ_FLAGS_DV_OWNED).
     * Messages may already have been received on it.
     */
    void (*qp_destroy)(void *arg, uct_sep_conn_t *conn);

    /**
     * The peer is known to be able to receive: sends are allowed. Once for each
     * QP, and again whenever the peer refuses to give up the connection
     * (@ref uct_sep_cm_conn_disconnect). Not necessarily preceded by a
     * @ref uct_sep_cm_conn_start; may be called from within it.
     */
    void (*established)(void *arg, uct_sep_conn_t *conn);

    /**
     * The connection does not work (any more). @a status says why:
     * - UCS_ERR_CONNECTION_RESET: it was established, and the peer has given up
     *   its QP and asks for a new connection, or wants to give up one without
     *   references. Whatever has not completed is lost. The transport must
     *   call @ref uct_sep_cm_conn_error soon, from its own thread: until then
     *   the peer waits. If the peer has asked for a new connection, that comes
     *   back without a start, and @a established says so.
     * - Otherwise, a handshake that the transport had started failed, and the
     *   QP has been given up already: UCS_ERR_ENDPOINT_TIMEOUT (no answer, or
     *   no agreement, within the retries), UCS_ERR_UNREACHABLE (interface is
     *   gone), UCS_ERR_REJECTED (peer has no resources), or what qp_create or
     *   qp_connect returned. The next start makes a new attempt.
     *
     * Connections that only the peer asked for fail silently.
     */
    void (*failed)(void *arg, uct_sep_conn_t *conn, ucs_status_t status);

    /**
     * A connection without references does not work any more, or its peer wants
     * to give it up: see UCS_ERR_CONNECTION_RESET of @a failed. May be called
     * again and again.
     *
     * @return Whether the transport's own thread need not do anything about it:
     *         then @a failed is not called, and qp_destroy is. A thread that
     *         computes, or sleeps, does not keep the peer waiting.
     */
    int (*let_go)(void *arg, uct_sep_conn_t *conn);

    /**
     * An established connection has no references; called for each of them once
     * in a period (@ref uct_sep_cm_params_t::keepalive). The transport finds
     * out whether the peer is alive, or gives up the connection
     * (@ref uct_sep_cm_conn_disconnect), from its own thread, not from here.
     */
    void (*unused)(void *arg, uct_sep_conn_t *conn);

    /**
     * The peer asks whether a connection that has references can be given up
     * for the time being. The transport answers from its own thread
     * (@ref uct_sep_cm_conn_answer_asked).
     */
    void (*asked)(void *arg, uct_sep_conn_t *conn);
} uct_sep_cm_ops_t;


/**
 * Test hook: decides what happens to every packet before it is sent.
 *
 * @param [in]  arg   tx_filter_arg.
 * @param [in]  msg   The packet.
 *
 * @return How many copies to send: 0 loses it, 1 is normal, 2 duplicates.
 */
typedef unsigned (*uct_sep_cm_tx_filter_t)(void *arg,
                                           const uct_sep_conn_msg_t *msg);


/** Parameters of @ref uct_sep_cm_init. Copied. */
typedef struct uct_sep_cm_params {
    struct ibv_context     *ibv_context;
    struct ibv_pd          *pd;          /**< Plain protection domain */
    struct ibv_pd          *qp_pd;       /**< For the UD QP; NULL means pd.
                                              Threads other than the data path's
                                              use it, so its thread domain, if
                                              any, must not be the data
                                              path's */
    uct_sep_uuars_t        *uuars;       /**< Where the UD QP is registered, so
                                              that others can ring its uUAR too;
                                              NULL if nobody does */
    uct_sep_uuar_use_t     uuar_use;     /**< Who they are */
    uint8_t                addr_flags;   /**< UCT_SEP_IFACE_ADDR_FLAG_xx */
    uct_sep_port_t         port;         /**< Local port */
    uint16_t               pkey_index;   /**< Index of port.pkey */
    ucs_async_context_t    *async;       /**< The worker's async context */
    const uct_sep_cm_ops_t *ops;         /**< Must stay valid */
    void                   *arg;         /**< First argument of the ops */
    double                 timeout;      /**< CM_TIMEOUT: seconds before first
                                              retransmission, >= 1 ms; doubles
                                              up to 10 times as much */
    unsigned               retry_count;  /**< CM_RETRY_COUNT */
    unsigned               rx_queue_len; /**< CM_RX_QUEUE_LEN: UD receives */
    unsigned               max_half_open; /**< CM_MAX_PENDING: connections that
                                               peers have begun; more have to
                                               wait */
    ucs_time_t             keepalive;    /**< CM_KEEPALIVE: how often @a unused
                                              is called; UCS_TIME_INFINITY:
                                              never */
    const char             *name;        /**< For messages, e.g. "mlx5_0:1" */
    uct_sep_cm_tx_filter_t tx_filter;    /**< Test hook or NULL */
    void                   *tx_filter_arg;
} uct_sep_cm_params_t;


/** Counters since init. */
typedef struct uct_sep_cm_stats {
    uint64_t tx_packets;    /**< Posted */
    uint64_t tx_retries;    /**< Of these, because of a timeout */
    uint64_t tx_dropped;    /**< Not sent: queue full, no address handle */
    uint64_t rx_packets;    /**< Received */
    uint64_t rx_malformed;  /**< Of these, not a packet of ours, or one
                                 that contradicts itself */
    uint64_t rx_foreign;    /**< Of these, for another or from a wrong iface */
    uint64_t rx_stale;      /**< Of these, of an earlier epoch */
    uint64_t rx_refused;    /**< Of these, requests for which there was no
                                 memory */
    uint64_t rx_errors;     /**< Receives and sends completed in error */
    uint64_t restarts;      /**< Of the UD queue pair, after an error */
    uint64_t ah_errors;     /**< Address handles that could not be made */
    uint64_t ahs;           /**< Address handles that there are, not a count
                                 since init */
    uint64_t events;        /**< Wake-ups by the completion channel */
    uint64_t timer_ticks;   /**< Wake-ups by the timer */
} uct_sep_cm_stats_t;


/**
 * Create: UD QP in RTS with its receives posted, CQ armed and its channel in
 * the async context.
 *
 * @param [in]  params  See there.
 * @param [out] cm_p    Filled with the manager.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, or
 *         UCS_ERR_IO_ERROR if a verbs object can't be had; a message has been
 *         printed then.
 */
ucs_status_t uct_sep_cm_init(const uct_sep_cm_params_t *params,
                             uct_sep_cm_t **cm_p);


/**
 * Destroy in any state: tells peers, gives up all QPs (qp_destroy), frees all
 * connections (conn_free, references do not count), waits for a running event
 * handler. Must not be called from a callback.
 */
void uct_sep_cm_cleanup(uct_sep_cm_t *cm);


/** Local device address, for the transport's get_device_address. */
void uct_sep_cm_get_device_address(uct_sep_cm_t *cm,
                                   uct_sep_device_addr_t *addr_p);


/** Local interface address, for the transport's get_address. */
void uct_sep_cm_get_address(uct_sep_cm_t *cm, uct_sep_iface_addr_t *addr_p);


/**
 * Whether a connection to these addresses can be made: both are well formed,
 * and the device is reachable. Prints nothing.
 *
 * @param [in]  iface_addr  May be NULL: only the device is checked.
 */
int uct_sep_cm_is_reachable(uct_sep_cm_t *cm, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr);


/**
 * Take a reference to the connection to an interface, if there is one, or if
 * another user knows the interface. Otherwise, the interface is known from now
 * on, and a connection is made when its user or the peer wants it. No traffic,
 * no QP.
 *
 * @param [in]  path    Which of the paths to the interface: each is a
 *                      connection of its own. Less than UCT_SEP_MAX_PATHS.
 * @param [out] peer_p  Filled with the address. While it is known, it has to
 *                      stay where and as it is.
 * @param [out] conn_p  The connection; NULL if there is none.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM (path), UCS_ERR_INVALID_ADDR,
 *         UCS_ERR_UNSUPPORTED (version) or UCS_ERR_UNREACHABLE with a message;
 *         UCS_ERR_NO_MEMORY; or what conn_alloc returned.
 */
ucs_status_t uct_sep_cm_peer_add(uct_sep_cm_t *cm,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr,
                                 unsigned path, uct_sep_peer_addr_t *peer_p,
                                 uct_sep_conn_t **conn_p);


/** A known peer is not wanted any more. */
void uct_sep_cm_peer_remove(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer);


/**
 * Make the connection to a known peer, unless there is one, and take a
 * reference. The address is the user's again. Calls conn_alloc if it is new.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY or what conn_alloc returned: then the
 *         peer is still known.
 */
ucs_status_t uct_sep_cm_peer_get_conn(uct_sep_cm_t *cm,
                                      const uct_sep_peer_addr_t *peer,
                                      uct_sep_conn_t **conn_p);


/**
 * A connection has been made, by the peer or for another user: if the peer is
 * known, its user takes his reference.
 *
 * @return His peer_p, which is his again; NULL if the peer is not known.
 */
uct_sep_peer_addr_t *uct_sep_cm_conn_take_peer(uct_sep_cm_t *cm,
                                               const uct_sep_conn_t *conn);


/**
 * Drop a reference. With the last one a connection that has no QP is freed
 * (conn_free). One that is connected, or about to be, lives on, since the peer
 * may use it as well: until both sides find that nobody does (see @a unused),
 * or the QP is lost.
 */
void uct_sep_cm_conn_put(uct_sep_cm_t *cm, uct_sep_conn_t *conn);


/**
 * Take one more reference, for instance to keep a connection while calling
 * users who may drop theirs.
 */
void uct_sep_cm_conn_hold(uct_sep_cm_t *cm, uct_sep_conn_t *conn);


/**
 * Start connecting, unless that has been done. Never blocks.
 *
 * @return UCS_OK: established, and the callback has already been called;
 *         UCS_INPROGRESS: one of @a established and @a failed will follow (it
 *         may have followed already); or why no QP could be created, without a
 *         callback.
 */
ucs_status_t uct_sep_cm_conn_start(uct_sep_cm_t *cm, uct_sep_conn_t *conn);


/**
 * The transport does not use the connection's QP any more: all that was sent
 * has completed, all that has arrived was handled. Ask the peer whether it can
 * be given up. Nobody may use the QP until @a established is called again; if
 * @a failed is called, the peer agrees or has gone, and
 * @ref uct_sep_cm_conn_error has to follow. May be repeated if neither happens.
 * A start in the meantime is remembered.
 *
 * It is for the idle ones, with or without references.
 *
 * @param is_urgent  As in @ref uct_sep_conn_disconnect.
 */
void uct_sep_cm_conn_disconnect(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                                int is_urgent);


/**
 * Answer a peer that has @a asked. If it still waits and the transport agrees,
 * nobody may use the QP any more, and @a failed is called, as in
 * @ref uct_sep_cm_conn_disconnect.
 *
 * @return Whether the connection is given up.
 */
int uct_sep_cm_conn_answer_asked(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                                 int agrees);


/** @return Whether the connection's QP may be used: it is established, and
 *          nobody is about to give it up. Call with the async context
 *          blocked. */
static inline int uct_sep_cm_conn_is_usable(const uct_sep_conn_t *conn)
{
    return conn->state == UCT_SEP_CONN_STATE_CONNECTED;
}


/** @return Whether a peer waits for @ref uct_sep_cm_conn_answer_asked, and it
 *          is urgent. Call with the async context blocked. */
static inline int uct_sep_cm_conn_is_urgent(const uct_sep_conn_t *conn)
{
    return (conn->flags & UCT_SEP_CONN_FLAG_ASKED) &&
           (conn->flags & UCT_SEP_CONN_FLAG_URGENT);
}


/** @return Whether the peer has asked to give up the connection, and still
 *          waits for @ref uct_sep_cm_conn_error: there is time for what is
 *          under way. One that asks for the next connection waits no more. Call
 *          with the async context blocked. */
static inline int uct_sep_cm_conn_is_ending(const uct_sep_conn_t *conn)
{
    return (conn->flags & (UCT_SEP_CONN_FLAG_AGREED |
                           UCT_SEP_CONN_FLAG_PENDING)) ==
           UCT_SEP_CONN_FLAG_AGREED;
}


/**
 * Handle the packets that have arrived, instead of leaving them to the thread
 * of the async context, which may wake up late. Has to be called by nobody.
 *
 * @return Whether there are handshakes under way.
 */
int uct_sep_cm_progress(uct_sep_cm_t *cm);


/**
 * A message has arrived on an RC QP. If its connection waits for the peer's
 * last packet, this is as good, and @a established is called.
 *
 * @return Whether it was.
 */
int uct_sep_cm_heard(uct_sep_cm_t *cm, uint32_t qpn);


/**
 * The connection's current QP is in error, or @a failed has reported that the
 * peer gave up its own: release it (qp_destroy is called from within). A later
 * start makes a new connection, with a higher epoch. Call from the thread that
 * owns the data path; nothing happens if the connection has no QP.
 */
void uct_sep_cm_conn_error(uct_sep_cm_t *cm, uct_sep_conn_t *conn);


/**
 * The device has failed: give up all QPs (qp_destroy), and report that those
 * connections which somebody waits for have failed. Call from the thread that
 * owns the data path, after @ref uct_sep_cm_conn_error for what it uses.
 */
void uct_sep_cm_fail(uct_sep_cm_t *cm, ucs_status_t status);


/** Copy the counters. */
void uct_sep_cm_get_stats(uct_sep_cm_t *cm, uct_sep_cm_stats_t *stats_p);


/**
 * Text of a connection for messages: peer, state, both QP numbers.
 *
 * @return @a buf. UCT_SEP_CM_CONN_STR_MAX bytes are always enough.
 */
#define UCT_SEP_CM_CONN_STR_MAX 256
const char *uct_sep_cm_conn_str(const uct_sep_conn_t *conn, char *buf,
                                size_t max);

END_C_DECLS

#endif
