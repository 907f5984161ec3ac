/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONN_H
#define UCT_SEP_CONN_H

#include <uct/ib/sep/conn/sep_conn_def.h>
#include <uct/ib/sep/conn/sep_nonce.h>
#include <ucs/datastruct/list.h>
#include <ucs/time/time_def.h>

BEGIN_C_DECLS

/**
 * @file sep_conn.h
 *
 * State machine of one RC connection between two interfaces. Pure: it knows no
 * verbs, no clock and no wire. Events go in as function calls, QP work is asked
 * of an environment, everything else comes out as a list of actions which the
 * caller performs after the machine has settled.
 *
 * The exchange is that of a TCP open, with a QP instead of a sequence number.
 * Every QP has an epoch. A side knows its own QP (local epoch) and the one its
 * QP is connected to (remote epoch). A QP is connected to at most one QP in its
 * life; when either end is lost, both are replaced.
 *
 *     active                        passive
 *     create QP 1, REQ(1)   ---->   create QP 7, connect 7 -> 1
 *     connect 1 -> 7        <----   REP(7, 1)
 *     established, RTU(1,7) ---->   established
 *
 * - *Simultaneous*: each side receives a REQ while its own is under way. Each
 *   connects the QP it has already offered and answers REP, so there is one QP
 *   per side and no tie to break.
 * - *The passive side must not send before the RTU*: its QP is ready when it
 *   answers REP, but the peer's cannot receive before the REP has arrived. A
 *   REP for its own QP is as good a proof as an RTU, and so is a message on
 *   that QP (@ref uct_sep_conn_heard): it may come before the RTU, since
 *   nothing orders datagrams and a connection.
 * - *Loss* is cured by repetition: REQ until anything comes back, REP until
 *   RTU. The RTU is repeated for every REP that comes again.
 * - *Duplicates and stragglers*: an epoch not newer than the last one connected
 *   to is never connected to again, and REP/RTU/REJ have to name the local QP.
 * - *Oneself*: the QP is connected to itself, there is no exchange.
 * - *Split*: where sending and receiving need different device contexts, what
 *   is called QP here is two of them, connected crosswise with those of the
 *   peer. Then both sides have two. They are made and given up together, so the
 *   machine does not care.
 * - *Broken connection*: a QP that is in use is only taken away by its user
 *   (@ref uct_sep_conn_reset). If a peer asks with a newer epoch, its old QP is
 *   gone: the user is told (FAILED with UCS_ERR_CONNECTION_RESET) and the new
 *   connection proceeds when the user has let go of the old QP.
 * - *Impostors*: each QP has a nonce, which all but a REQ have to repeat. So
 *   these come from somebody who receives at the peer's address. A REQ needs no
 *   nonce, and what it claims changes nothing for good: it may open a
 *   connection where there is none, but not replace one, and its epoch counts
 *   only when the peer has confirmed it. If there is a connection, even a half
 *   open one, the answer to such a REQ is a REP of that connection. Its owner
 *   says RTU if all is well. If not, it repeats its REQ with the nonce, which
 *   proves that it comes from him, or says REJ.
 * - *Hearsay*: where a peer is may be known from a connection manager only.
 *   Then the peer's first REQ or answer says it, and counts from there on.
 * - *Giving up*: nobody here uses the connection, and all that was sent has
 *   completed (@ref uct_sep_conn_disconnect).
 *
 *     DREQ(1,7)             ---->   is it used? then REJ, IN_USE
 *     QP 1 is not used              user lets go of QP 7
 *     user lets go of QP 1  <----   DREP(7,1)
 *
 *   From its DREQ on a side does not send, and from its agreement on the other
 *   one doesn't: nothing is under way when the QPs go. Who has asked must not
 *   go on before the answer IN_USE, and the answer is to an attempt, with a
 *   number: a late copy of a DREQ must not end a connection that is used again.
 *   A DREP that comes unasked is the last that is heard of an interface.
 * - *Falling asleep*: a side that has a use for the connection, but none at the
 *   moment, may ask as well. If the other side has a use for it, its user
 *   decides (ASKED, @ref uct_sep_conn_answer_asked): nothing of his may be
 *   under way when he agrees. Who repeats the question before he has decided is
 *   refused: he may be busy with other things for long. Each side starts the
 *   connection again when it wants to send.
 * - *No room*: qp_create may say UCS_ERR_NO_RESOURCE. Then nothing has failed:
 *   a peer hears BUSY, and repeats its request; the user has to start again
 *   when there is room, whoever wanted the connection.
 */

/** States. */
typedef enum {
    /** No QP, nothing going on. */
    UCT_SEP_CONN_STATE_IDLE,
    /** QP created, not connected; REQ is repeated. */
    UCT_SEP_CONN_STATE_REQ_SENT,
    /** QP connected (able to receive), the peer's may not be; REP repeated. */
    UCT_SEP_CONN_STATE_REP_SENT,
    /** Both QPs are connected. */
    UCT_SEP_CONN_STATE_CONNECTED,
    /** The peer has given up our QP, the user has been told to. */
    UCT_SEP_CONN_STATE_RESETTING,
    /** Connected, but not used: the peer has been asked to give it up; DREQ is
     *  repeated. */
    UCT_SEP_CONN_STATE_DISCONNECTING
} uct_sep_conn_state_t;


/** Flags of @ref uct_sep_conn_t. */
enum {
    /** The local user asked for the connection, and is told if it fails. */
    UCT_SEP_CONN_FLAG_WANTED  = 1 << 0,
    /** The peer is this interface itself. */
    UCT_SEP_CONN_FLAG_SELF    = 1 << 1,
    /** RESETTING: pending and remote_epoch hold a REQ to be answered. */
    UCT_SEP_CONN_FLAG_PENDING = 1 << 2,
    /** RESETTING: the peer has asked, and waits for a DREP. */
    UCT_SEP_CONN_FLAG_AGREED  = 1 << 3,
    /** CONNECTED: the peer's QP is gone. Whoever uses ours will find out. */
    UCT_SEP_CONN_FLAG_GONE    = 1 << 4,
    /** The peer was refused, or with ASKED may be: declined is valid. */
    UCT_SEP_CONN_FLAG_REFUSED = 1 << 5,
    /** CONNECTED: the peer has asked, and the user has not decided yet. */
    UCT_SEP_CONN_FLAG_ASKED   = 1 << 6,
    /** ASKED: it is urgent to the peer; DISCONNECTING: to us. */
    UCT_SEP_CONN_FLAG_URGENT  = 1 << 7
};


/**
 * RC QP as one side describes it to the other: what that needs for RTR and RTS.
 * Host byte order.
 */
typedef struct uct_sep_conn_qp_info {
    uint32_t qpn;                /**< QP number */
    uint32_t psn;                /**< Its first PSN: sq_psn here, rq_psn
                                      there */
    uint8_t  path_mtu;           /**< Its largest enum ibv_mtu; both sides use
                                      the smaller of the two */
    uint8_t  max_rd_atomic;      /**< Reads/atomics it wants in flight */
    uint8_t  max_dest_rd_atomic; /**< Reads/atomics it can answer at a time; the
                                      other side's max_rd_atomic is limited to
                                      this */
    uint8_t  reserved;           /**< Zero */
    uint32_t responder_qpn;      /**< QP that receives and that the other side
                                      accesses: its qpn is connected to this
                                      one; 0 if that is qpn itself */
} uct_sep_conn_qp_info_t;


/** One packet, parsed. See @ref uct_sep_conn_packet_t for the fields. */
typedef struct uct_sep_conn_msg {
    uct_sep_conn_msg_type_t type;
    uct_sep_conn_rej_t      reason;
    uint64_t                dst_id;
    uct_sep_peer_addr_t     src;
    uint32_t                src_epoch;
    uint32_t                dst_epoch;
    uint64_t                src_nonce;
    uint64_t                dst_nonce;
    uint8_t                 token;
    uct_sep_conn_qp_info_t  qp;
} uct_sep_conn_msg_t;


/**
 * Connection to one remote interface. The transport embeds it as the first
 * member of its own structure and touches none of its fields.
 *
 * The nonce of our QP is not here: it follows from local_epoch.
 */
typedef struct uct_sep_conn {
    uct_sep_peer_addr_t    peer;           /**< Identity (key in the table of
                                                peers), and how it connects */
    uint8_t                state;          /**< uct_sep_conn_state_t */
    uint8_t                flags;          /**< UCT_SEP_CONN_FLAG_xx */
    uint8_t                token    : 4;   /**< Of our last DREQ */
    uint8_t                declined : 4;   /**< Token of the peer's last DREQ
                                                that was refused, or that
                                                is to be decided about */
    uint16_t               retries;        /**< Retries used so far */
    uint32_t               local_epoch;    /**< Our QP; 0 if there is none */
    uint32_t               remote_epoch;   /**< QP ours is connected to, or 0 */
    uint32_t               consumed_epoch; /**< Newest QP of the peer's that it
                                                has confirmed to be its own */
    union {
        uct_sep_conn_qp_info_t local;      /**< Ours, to be told; valid with
                                                local_epoch unless PENDING */
        uct_sep_conn_qp_info_t pending;    /**< With PENDING: the peer's, which
                                                the next of ours gets */
    };
    uint32_t               remote_qpn;     /**< Valid with remote_epoch */
    uint32_t               refcount;       /**< sep_cm: those who have it or
                                                know its peer. Of a connection
                                                that has none, nobody will miss
                                                the QP */
    uint64_t               remote_nonce;   /**< The newest one from the peer;
                                                0 if there has been none. Kept
                                                when our QP is given up */
    ucs_time_t             deadline;       /**< When to call
                                                @ref uct_sep_conn_timeout;
                                                0 if not armed */
    ucs_list_link_t        timer_link;     /**< sep_cm: list of armed ones */
} uct_sep_conn_t;


/** QP work the machine asks for. May be called from within every event. */
typedef struct uct_sep_conn_env_ops {
    /** Create a QP able to be connected; fill its description. With
     *  UCS_ERR_NO_RESOURCE, the user starts the connection when there is
     *  room. */
    ucs_status_t (*qp_create)(void *arg, uct_sep_conn_t *conn,
                              uct_sep_conn_qp_info_t *local_p);
    /** Connect the QP; on return it receives and may send. */
    ucs_status_t (*qp_connect)(void *arg, uct_sep_conn_t *conn,
                               const uct_sep_conn_qp_info_t *remote);
    /** Give up the QP. Only called after a successful qp_create. */
    void         (*qp_destroy)(void *arg, uct_sep_conn_t *conn);
} uct_sep_conn_env_ops_t;


/** What all machines of an interface share. */
typedef struct uct_sep_conn_env {
    const uct_sep_conn_env_ops_t *ops;
    void                         *arg;
    ucs_time_t                   timeout;     /**< Before first repetition */
    ucs_time_t                   max_timeout; /**< Limit of the backoff */
    unsigned                     max_retries; /**< Repetitions before failing */
    uint32_t                     last_epoch;  /**< Of the newest QP; starts at
                                                   0 */
    unsigned                     num_half_open;  /**< Connections in REP_SENT;
                                                      starts at 0 */
    unsigned                     max_half_open;  /**< With so many of them,
                                                      strangers have to wait */
    uint64_t                     seed;        /**< Spreads the repetitions of
                                                   many interfaces in time */
    uct_sep_conn_key_t           key;         /**< Random and secret: what the
                                                   nonces are made of */
} uct_sep_conn_env_t;


/** Actions, to be performed in this order. */
enum {
    UCT_SEP_CONN_ACTION_SEND_REJ    = 1 << 0, /**< REJ of rej_epoch/reason */
    UCT_SEP_CONN_ACTION_SEND_REQ    = 1 << 1,
    UCT_SEP_CONN_ACTION_SEND_REP    = 1 << 2,
    UCT_SEP_CONN_ACTION_SEND_RTU    = 1 << 3,
    UCT_SEP_CONN_ACTION_SEND_DREQ   = 1 << 4,
    UCT_SEP_CONN_ACTION_SEND_DREP   = 1 << 5, /**< Of gone_epoch, to rej_epoch
                                               */
    UCT_SEP_CONN_ACTION_ESTABLISHED = 1 << 6, /**< Tell the user: may send */
    UCT_SEP_CONN_ACTION_FAILED      = 1 << 7, /**< Tell the user: status */
    UCT_SEP_CONN_ACTION_ASKED       = 1 << 8  /**< Ask the user: may the
                                                   connection be given up? */
};


/** Outcome of an event. */
typedef struct uct_sep_conn_out {
    unsigned           actions;    /**< UCT_SEP_CONN_ACTION_xx */
    ucs_status_t       status;     /**< With FAILED */
    uint32_t           rej_epoch;  /**< With SEND_REJ, SEND_DREP: dst_epoch */
    uint64_t           rej_nonce;  /**< With SEND_REJ, SEND_DREP: dst_nonce */
    uct_sep_conn_rej_t rej_reason; /**< With SEND_REJ */
    uint8_t            rej_token;  /**< With SEND_REJ, IN_USE */
    uint32_t           gone_epoch; /**< With SEND_DREP: src_epoch */
    uint8_t            is_stale;   /**< The packet was ignored: earlier epoch,
                                        wrong nonce, or not expected */
} uct_sep_conn_out_t;


/**
 * Initialise to IDLE.
 *
 * @param [out] conn     Memory of the connection.
 * @param [in]  peer     Remote interface, checked.
 * @param [in]  is_self  The remote interface is the local one.
 */
void uct_sep_conn_init(uct_sep_conn_t *conn, const uct_sep_peer_addr_t *peer,
                       int is_self);


/**
 * Event: the user wants to send. Idempotent.
 *
 * @param [in]  env   Environment.
 * @param [in]  conn  Connection.
 * @param [in]  now   Current time.
 * @param [out] out   Actions; FAILED is never among them.
 *
 * @return UCS_OK if connected (ESTABLISHED is among the actions if it has just
 *         become so, which happens with oneself); UCS_INPROGRESS; or why the QP
 *         could not be created, with the connection IDLE.
 */
ucs_status_t uct_sep_conn_start(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                ucs_time_t now, uct_sep_conn_out_t *out);


/**
 * Event: a packet arrived from the connection's peer for this interface.
 *
 * @param [in]  env   Environment.
 * @param [in]  conn  Connection to msg->src.
 * @param [in]  msg   Packet; all fields are in range, contents are not trusted.
 * @param [in]  now   Current time.
 * @param [out] out   Actions.
 */
void uct_sep_conn_recv(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       const uct_sep_conn_msg_t *msg, ucs_time_t now,
                       uct_sep_conn_out_t *out);


/**
 * Event: a message has arrived on a QP. If it is the connection's, and waits
 * for the RTU, that is not needed any more.
 *
 * @param [in]  env   Environment.
 * @param [in]  conn  Connection.
 * @param [in]  qpn   The QP.
 * @param [out] out   Actions: ESTABLISHED, if it was needed.
 *
 * @return Whether it was.
 */
int uct_sep_conn_heard(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       uint32_t qpn, uct_sep_conn_out_t *out);


/**
 * Event: the deadline has passed. Earlier calls do nothing.
 *
 * @param [in]  env   Environment.
 * @param [in]  conn  Connection.
 * @param [in]  now   Current time.
 * @param [out] out   Actions.
 */
void uct_sep_conn_timeout(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                          ucs_time_t now, uct_sep_conn_out_t *out);


/**
 * Event: the user lets go of the QP, because it failed, or because the peer was
 * reported to have given up its own. The QP is destroyed. If a connection is
 * wanted, by the peer's pending REQ or by a start during RESETTING, it is begun
 * at once.
 *
 * @param [in]  env   Environment.
 * @param [in]  conn  Connection.
 * @param [in]  now   Current time.
 * @param [out] out   Actions.
 */
void uct_sep_conn_reset(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                        ucs_time_t now, uct_sep_conn_out_t *out);


/**
 * Event: the user does not use the QP any more, all that was sent has completed
 * and all that was received has been handled: ask the peer to give up the
 * connection. If it agrees, FAILED with UCS_ERR_CONNECTION_RESET follows; the
 * user then lets go of the QP (@ref uct_sep_conn_reset). If it does not,
 * ESTABLISHED follows: the QP can be used again. If it does not answer at all,
 * nothing follows; the user may ask again. Nothing happens if the connection is
 * not established.
 *
 * @param [in]  env        Environment.
 * @param [in]  conn       Connection.
 * @param [in]  is_urgent  What to tell the peer's user: whether he should agree
 *                         as soon as nothing is under way, though he uses it.
 * @param [in]  now        Current time.
 * @param [out] out        Actions.
 */
void uct_sep_conn_disconnect(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                             int is_urgent, ucs_time_t now,
                             uct_sep_conn_out_t *out);


/**
 * Event: the user answers ASKED. If he agrees, as with
 * @ref uct_sep_conn_disconnect nothing of his is under way, he does not send
 * any more, and FAILED with UCS_ERR_CONNECTION_RESET follows. Nothing happens
 * if the peer does not wait for an answer any more.
 *
 * @param [in]  conn    Connection.
 * @param [in]  agrees  Whether it may be given up.
 * @param [out] out     Actions.
 *
 * @return Whether it is given up.
 */
int uct_sep_conn_answer_asked(uct_sep_conn_t *conn, int agrees,
                              uct_sep_conn_out_t *out);


/**
 * Event: the last reference has been dropped.
 *
 * @param [in]  conn  Connection.
 * @param [out] out   Actions: FAILED with UCS_ERR_CONNECTION_RESET, if the
 *                    peer's QP is gone and ours was only kept for the user.
 */
void uct_sep_conn_unused(uct_sep_conn_t *conn, uct_sep_conn_out_t *out);


/**
 * The interface is closing: what to tell the peer, before
 * @ref uct_sep_conn_close.
 *
 * @param [in]  conn  Connection.
 * @param [out] out   Actions: SEND_DREP, if the peer may know of our QP.
 */
void uct_sep_conn_farewell(const uct_sep_conn_t *conn, uct_sep_conn_out_t *out);


/**
 * Destroy the QP if there is one and return to IDLE, without telling anyone.
 */
void uct_sep_conn_close(uct_sep_conn_env_t *env, uct_sep_conn_t *conn);


/**
 * Describe the packet an action asks for.
 *
 * @param [in]  env    Environment.
 * @param [in]  conn   Connection.
 * @param [in]  type   Packet type.
 * @param [in]  out    Outcome that asked for the packet.
 * @param [in]  src    Local interface.
 * @param [out] msg_p  Filled.
 */
void uct_sep_conn_msg_fill(const uct_sep_conn_env_t *env,
                           const uct_sep_conn_t *conn,
                           uct_sep_conn_msg_type_t type,
                           const uct_sep_conn_out_t *out,
                           const uct_sep_peer_addr_t *src,
                           uct_sep_conn_msg_t *msg_p);


/** @return Name of a state, for messages. */
const char *uct_sep_conn_state_name(unsigned state);

END_C_DECLS

#endif
