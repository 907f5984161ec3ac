/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_LINK_H
#define UCT_SEP_LINK_H

#include <uct/ib/sep/conn/sep_conn.h>
#include <uct/ib/sep/ep/sep_ep_def.h>

BEGIN_C_DECLS

/**
 * @file sep_link.h
 *
 * Transport's side of a connection: what the connection manager asks for (queue
 * pairs), and what happens to the endpoints when it is made or lost.
 *
 * The manager may run in the async thread. It creates queue pairs there, but
 * the data path only ever sees those that the main thread has attached to
 * endpoints. Work for the main thread is queued, see uct_sep_iface_t::conn.
 */

/** Connection to a remote interface. */
struct uct_sep_link {
    uct_sep_conn_t   super;      /**< The manager's part, first */
    uct_sep_txwq_t   *txwq;      /**< QP the manager knows, or NULL. Async lock,
                                      until it is active */
    ucs_list_link_t  eps;        /**< Endpoints, but for one that has only the
                                      address until the next event; main
                                      thread */
    ucs_queue_elem_t event;      /**< In uct_sep_iface_t; async lock */
    ucs_status_t     failure;    /**< If not UCS_OK: report it to the endpoints.
                                      Async lock */
    uint8_t          has_event;  /**< event is queued; async lock */
    uint8_t          is_established; /**< So is txwq, for the first time or
                                          again; async lock */
    uint8_t          is_active : 1; /**< The main thread knows txwq; async lock,
                                         as the following */
    uint8_t          is_bound : 1;  /**< An endpoint has used txwq */
    uint8_t          is_unused : 1; /**< Nobody here refers to the connection:
                                         see whether it can be given up */
    uint8_t          is_asked : 1;   /**< The peer asks whether it can be */
    uint8_t          is_waiting : 1; /**< For room: sep_evict.h */
    uint8_t          is_called : 1;  /**< ... though no endpoint may want it */
    uint8_t          is_refused : 1; /**< The peer has refused to give it up */
    uint8_t          refusals : 3;   /**< So often in a row; main thread */
};


/** Services for the connection manager; argument is the interface. */
extern const uct_sep_cm_ops_t uct_sep_link_cm_ops;


/**
 * Attach a new endpoint, whose lists are empty, to the connection to its remote
 * interface, if there is one, and to the send queue if that has been made. Does
 * not start to connect.
 *
 * @param params  As given to uct_ep_create().
 *
 * @return UCS_OK, or the error of @ref uct_sep_cm_peer_add.
 */
ucs_status_t uct_sep_link_attach(uct_sep_ep_t *ep,
                                 const uct_ep_params_t *params);


/** Detach an endpoint that is being destroyed: nobody waits for its operations
 *  any more. */
void uct_sep_link_detach(uct_sep_ep_t *ep);


/**
 * Start connecting, unless that has been done. With this an endpoint gets its
 * connection, if it has none.
 *
 * @return UCS_ERR_NO_RESOURCE: it will be connected, or the user will be told
 *         about a failure; or why connecting can't be tried.
 */
ucs_status_t uct_sep_link_connect(uct_sep_ep_t *ep);


/**
 * Have the connection manager start a connection for which there is room, and
 * look after it.
 *
 * @return As @ref uct_sep_cm_conn_start.
 */
ucs_status_t uct_sep_link_start(uct_sep_iface_t *iface, uct_sep_link_t *link);


/** Have all endpoints of a connection use the queue for those without one. */
void uct_sep_link_unbind_all(uct_sep_link_t *link);


/** @return Whether a connection has separate QPs for sending and receiving,
 *          because one side has them in different contexts. */
int uct_sep_link_is_split(const uct_sep_iface_t *iface,
                          const uct_sep_conn_t *conn);


/**
 * @return Whether nothing of a connection that nobody uses is under way.
 *         Otherwise, its last work request is made to complete: if the peer has
 *         gone, that fails.
 */
int uct_sep_link_is_idle(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** Find out whether the peer's adapter still knows a connection that nobody
 *  uses: if it does not, the connection fails. */
void uct_sep_link_probe(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** @return Whether there are reports of the connection manager. */
int uct_sep_link_has_events(uct_sep_iface_t *iface);


/**
 * @return Whether all reports that are left wait for sends, which complete with
 *         an event if one is asked for.
 */
int uct_sep_link_waits_for_sends(uct_sep_iface_t *iface);


/**
 * Handle the connection manager's reports, in the main thread. Those that have
 * to wait for something stay.
 *
 * @return How many connections had news.
 */
unsigned uct_sep_link_handle_events(uct_sep_iface_t *iface);


/**
 * The first message of a connection is there, in the main thread, on a queue
 * pair that is not in the interface's table yet: it has overtaken the peer's
 * last packet, or what that has left to do here. Do that now, so that what has
 * been waiting for the connection goes out before any answer.
 */
void uct_sep_link_handle_early(uct_sep_iface_t *iface, uint32_t qpn);


/**
 * A work request has failed. To be called before callbacks are, which may
 * progress and find the next one.
 *
 * @param pi  Index of the work request.
 *
 * @return Whether none has that somebody waits for: all in front of it have
 *         succeeded.
 */
int uct_sep_link_note_error(uct_sep_txwq_t *txwq, uint16_t pi);


/**
 * After @ref uct_sep_link_note_error : if the peer's queue pair is known to be
 * gone, credits come back, and the connection's end waits for what its ring
 * has.
 *
 * @param end  Behind the work request.
 *
 * @return Whether it is known.
 */
int uct_sep_link_take_error(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint16_t end);


/**
 * The send queue's QP is in error. All operations end with @a status, the
 * endpoints that use it fail, and the connection manager is told.
 *
 * @param status  For operations and endpoints.
 */
void uct_sep_link_fail(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                       ucs_status_t status);


/**
 * Break off all operations of a send queue that only one endpoint uses. They
 * end with UCS_ERR_CANCELED, and the endpoint can't be used any more.
 */
void uct_sep_link_cancel(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/**
 * Destroy a retired queue once nothing of it is outstanding. Deferred if called
 * from within a user's completion.
 */
void uct_sep_link_reap_txwq(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** There are no connections: before buffers and queues of an interface. */
void uct_sep_link_init(uct_sep_iface_t *iface);


/**
 * Allow connections: start the connection manager, and handle asynchronous
 * events of the device.
 *
 * @return UCS_OK, or the error of @ref uct_sep_cm_init.
 */
ucs_status_t uct_sep_link_open(uct_sep_iface_t *iface,
                               const uct_sep_cm_params_t *params);


/** End all connections of an interface that is closed; their outstanding
 *  operations are cancelled. All queues are destroyed, after a while even if
 *  the device has not flushed them. */
void uct_sep_link_close(uct_sep_iface_t *iface);


/** Destroy a retired queue. */
void uct_sep_link_destroy_txwq(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);

END_C_DECLS

#endif
