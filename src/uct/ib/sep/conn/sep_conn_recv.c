/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_conn_int.h>
#include <uct/ib/sep/port/sep_addr.h>

/*
 * What a packet changes.
 */

/* Whether a packet is from somebody who has received one about our QP */
static int uct_sep_conn_is_proven(const uct_sep_conn_env_t *env,
                                  const uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg)
{
    return (conn->local_epoch != 0) &&
           (msg->dst_nonce == uct_sep_nonce(&env->key, conn->local_epoch));
}

/* REP, RTU and REJ: is it about our QP, and from the peer? */
static int uct_sep_conn_is_answer(const uct_sep_conn_env_t *env,
                                  const uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg)
{
    return (msg->dst_epoch == conn->local_epoch) &&
           uct_sep_conn_is_proven(env, conn, msg);
}

/* The peer has said where it is, which we knew from somebody else. Before we
 * connect a QP: the adapters compare addresses. The key of the table of peers
 * stays equal. */
static void uct_sep_conn_locate(uct_sep_conn_t *conn,
                                const uct_sep_conn_msg_t *msg)
{
    if (uct_sep_device_addr_is_hearsay(&conn->peer.dev)) {
        conn->peer.dev = msg->src.dev;
    }
}

/* The peer has confirmed that this QP is its own */
static void uct_sep_conn_confirm(uct_sep_conn_t *conn,
                                 const uct_sep_conn_msg_t *msg)
{
    conn->consumed_epoch = msg->src_epoch;
    conn->remote_nonce   = msg->src_nonce;
    uct_sep_conn_locate(conn, msg);
}

static void uct_sep_conn_pend(uct_sep_conn_t *conn,
                              const uct_sep_conn_msg_t *msg)
{
    conn->flags       |= UCT_SEP_CONN_FLAG_PENDING;
    conn->remote_epoch = msg->src_epoch;
    conn->pending      = msg->qp;
}

/* Our last connection is still to be given up, which the user's thread does: if
 * that computes for long, the peer must not take it for dead */
static void uct_sep_conn_put_off(const uct_sep_conn_msg_t *msg,
                                 uct_sep_conn_out_t *out)
{
    uct_sep_conn_reject(msg->src_epoch, msg->src_nonce, UCT_SEP_CONN_REJ_BUSY,
                        out);
}

/* A REQ of an attempt that we know already */
static void uct_sep_conn_recv_req_again(uct_sep_conn_t *conn,
                                        const uct_sep_conn_msg_t *msg,
                                        uct_sep_conn_out_t *out)
{
    if ((conn->state == UCT_SEP_CONN_STATE_REP_SENT) &&
        (conn->remote_epoch == msg->src_epoch)) {
        out->actions |= UCT_SEP_CONN_ACTION_SEND_REP;
    } else if ((conn->state == UCT_SEP_CONN_STATE_IDLE) ||
               (conn->state == UCT_SEP_CONN_STATE_REP_SENT)) {
        /* We have answered it and given up since: the peer, which may not have
         * noticed, has to start over */
        uct_sep_conn_reject(msg->src_epoch, msg->src_nonce,
                            UCT_SEP_CONN_REJ_STALE_EPOCH, out);
    } else if (conn->state == UCT_SEP_CONN_STATE_RESETTING) {
        uct_sep_conn_put_off(msg, out);
    } else {
        /* REQ_SENT: the peer will answer our REQ. CONNECTED: it has our REP
         * already. */
        out->is_stale = 1;
    }
}

static void uct_sep_conn_recv_req(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg, ucs_time_t now,
                                  uct_sep_conn_out_t *out)
{
    int is_proven = uct_sep_conn_is_proven(env, conn, msg);

    if (msg->src_epoch < conn->consumed_epoch) {
        out->is_stale = 1;
        return;
    }

    if ((msg->src_epoch == conn->consumed_epoch) ||
        (msg->src_nonce == conn->remote_nonce)) {
        uct_sep_conn_recv_req_again(conn, msg, out);
        return;
    }

    if (!is_proven && ((conn->state == UCT_SEP_CONN_STATE_REP_SENT) ||
                       (conn->state == UCT_SEP_CONN_STATE_CONNECTED) ||
                       (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING))) {
        /* Anybody may have sent this. Ask the peer: by its answer we see which
         * of its QPs is the right one */
        out->actions |= UCT_SEP_CONN_ACTION_SEND_REP;
        return;
    }

    if (!is_proven && (conn->state == UCT_SEP_CONN_STATE_RESETTING)) {
        uct_sep_conn_put_off(msg, out); /* It will be repeated */
        return;
    }

    conn->remote_nonce = msg->src_nonce;
    uct_sep_conn_locate(conn, msg);
    if (is_proven) {
        uct_sep_conn_confirm(conn, msg);
    }

    switch (conn->state) {
    case UCT_SEP_CONN_STATE_IDLE:
        if ((conn->refcount == 0) &&
            (env->num_half_open >= env->max_half_open)) {
            uct_sep_conn_reject(msg->src_epoch, msg->src_nonce,
                                UCT_SEP_CONN_REJ_BUSY, out);
            break;
        }

        uct_sep_conn_accept(env, conn, msg->src_epoch, &msg->qp, now, out);
        break;
    case UCT_SEP_CONN_STATE_REQ_SENT:
        uct_sep_conn_answer(env, conn, msg->src_epoch, &msg->qp, now, out);
        break;
    case UCT_SEP_CONN_STATE_REP_SENT:
        /* The QP we are connected to is gone, and the new one can't be
         * connected to ours: we have to make a new QP for it */
        uct_sep_conn_close(env, conn);
        uct_sep_conn_accept(env, conn, msg->src_epoch, &msg->qp, now, out);
        break;
    case UCT_SEP_CONN_STATE_CONNECTED:
    case UCT_SEP_CONN_STATE_DISCONNECTING:
        uct_sep_conn_peer_reset(conn, out);
        uct_sep_conn_pend(conn, msg);
        break;
    case UCT_SEP_CONN_STATE_RESETTING:
        if ((conn->flags & UCT_SEP_CONN_FLAG_AGREED) &&
            !(conn->flags & UCT_SEP_CONN_FLAG_PENDING)) {
            /* What is under way to it is not answered any more: whoever waits
             * for that, perhaps asleep, is told */
            uct_sep_conn_peer_reset(conn, out);
        }
        uct_sep_conn_pend(conn, msg);
        uct_sep_conn_put_off(msg, out);
        break;
    }
}

/* A REP about another QP than ours: an earlier one of ours, or one that
 * somebody else has told the peer of in our name */
static void uct_sep_conn_recv_foreign_rep(uct_sep_conn_t *conn,
                                          const uct_sep_conn_msg_t *msg,
                                          uct_sep_conn_out_t *out)
{
    if (conn->state == UCT_SEP_CONN_STATE_REQ_SENT) {
        /* It stands in the way of our REQ. The nonce shows that it is ours. */
        conn->remote_nonce = msg->src_nonce;
        out->actions      |= UCT_SEP_CONN_ACTION_SEND_REQ;
    } else {
        uct_sep_conn_reject(msg->src_epoch, msg->src_nonce,
                            UCT_SEP_CONN_REJ_STALE_EPOCH, out);
    }
}

static void uct_sep_conn_recv_rep(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg, ucs_time_t now,
                                  uct_sep_conn_out_t *out)
{
    ucs_status_t status;

    if ((conn->state != UCT_SEP_CONN_STATE_IDLE) &&
        (msg->src_epoch < conn->consumed_epoch)) {
        out->is_stale = 1;
        return;
    }

    if (!uct_sep_conn_is_answer(env, conn, msg)) {
        uct_sep_conn_recv_foreign_rep(conn, msg, out);
        return;
    }

    switch (conn->state) {
    case UCT_SEP_CONN_STATE_REQ_SENT:
        uct_sep_conn_confirm(conn, msg);
        status = uct_sep_conn_bind(env, conn, msg->src_epoch, &msg->qp);
        if (status != UCS_OK) {
            uct_sep_conn_fail(env, conn, status, out);
            uct_sep_conn_reject(msg->src_epoch, msg->src_nonce,
                                UCT_SEP_CONN_REJ_NO_RESOURCES, out);
            return;
        }

        uct_sep_conn_established(env, conn, out);
        out->actions |= UCT_SEP_CONN_ACTION_SEND_RTU;
        break;
    case UCT_SEP_CONN_STATE_REP_SENT:
        if (msg->src_epoch < conn->remote_epoch) {
            /* Our QP is connected to a newer one, of the peer's or not: it will
             * see our REP */
            out->is_stale = 1;
            break;
        }

        if ((msg->src_epoch == conn->remote_epoch) &&
            (msg->src_nonce == conn->remote_nonce)) {
            uct_sep_conn_confirm(conn, msg);
            uct_sep_conn_established(env, conn, out);
            out->actions |= UCT_SEP_CONN_ACTION_SEND_RTU;
            break;
        }

        /* Crossed attempts: our QP is connected to an older QP of the peer,
         * its newer one to ours. Neither is of use. */
        uct_sep_conn_confirm(conn, msg);
        uct_sep_conn_reject(msg->src_epoch, msg->src_nonce,
                            UCT_SEP_CONN_REJ_STALE_EPOCH, out);
        uct_sep_conn_retry_anew(env, conn, now, out);
        break;
    case UCT_SEP_CONN_STATE_CONNECTED:
    case UCT_SEP_CONN_STATE_DISCONNECTING:
        if (msg->src_epoch == conn->remote_epoch) {
            /* Our RTU was lost, or the peer wants to know whether we still use
             * this connection */
            out->actions |= UCT_SEP_CONN_ACTION_SEND_RTU;
            break;
        }

        /* Its QP of our connection is gone; the new one is of no use */
        uct_sep_conn_confirm(conn, msg);
        uct_sep_conn_peer_reset(conn, out);
        break;
    default:
        out->is_stale = 1;
        break;
    }
}

static void uct_sep_conn_recv_rtu(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg,
                                  uct_sep_conn_out_t *out)
{
    if (!uct_sep_conn_is_answer(env, conn, msg) ||
        (msg->src_epoch != conn->remote_epoch) ||
        (msg->src_nonce != conn->remote_nonce)) {
        out->is_stale = 1;
    } else if (conn->state == UCT_SEP_CONN_STATE_REP_SENT) {
        uct_sep_conn_confirm(conn, msg);
        uct_sep_conn_established(env, conn, out);
    } else if (conn->state == UCT_SEP_CONN_STATE_CONNECTED) {
        /* A message was here first, which has no nonce */
        uct_sep_conn_confirm(conn, msg);
    } else {
        out->is_stale = 1;
    }
}

static ucs_status_t uct_sep_conn_rej_status(uct_sep_conn_rej_t reason)
{
    return (reason == UCT_SEP_CONN_REJ_STALE_IFACE) ? UCS_ERR_UNREACHABLE :
                                                      UCS_ERR_REJECTED;
}

/* DISCONNECTING: the connection goes on, or the peer is not there any more */
static void uct_sep_conn_recv_refusal(uct_sep_conn_env_t *env,
                                      uct_sep_conn_t *conn,
                                      const uct_sep_conn_msg_t *msg,
                                      uct_sep_conn_out_t *out)
{
    if (!uct_sep_conn_is_answer(env, conn, msg)) {
        out->is_stale = 1;
    } else if (msg->reason == UCT_SEP_CONN_REJ_STALE_IFACE) {
        uct_sep_conn_peer_reset(conn, out);
    } else if ((msg->reason == UCT_SEP_CONN_REJ_IN_USE) &&
               ((msg->token & UCT_SEP_CONN_TOKEN_MASK) == conn->token)) {
        /* Version 0.3.0 knows nothing of urgency, and returns all bits */
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED;
        uct_sep_conn_established(env, conn, out);
    } else {
        out->is_stale = 1;
    }
}

static void uct_sep_conn_recv_rej(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                  const uct_sep_conn_msg_t *msg, ucs_time_t now,
                                  uct_sep_conn_out_t *out)
{
    if (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING) {
        uct_sep_conn_recv_refusal(env, conn, msg, out);
        return;
    }

    /* A connection in use is not given up because of a packet */
    if (((conn->state != UCT_SEP_CONN_STATE_REQ_SENT) &&
         (conn->state != UCT_SEP_CONN_STATE_REP_SENT)) ||
        !uct_sep_conn_is_answer(env, conn, msg)) {
        out->is_stale = 1;
        return;
    }

    switch (msg->reason) {
    case UCT_SEP_CONN_REJ_STALE_EPOCH:
        uct_sep_conn_retry_anew(env, conn, now, out);
        break;
    case UCT_SEP_CONN_REJ_BUSY:
        if (conn->state != UCT_SEP_CONN_STATE_REQ_SENT) {
            out->is_stale = 1;
            break;
        }

        /* Only what is not answered counts. The deadline stays: it has been
         * set for each repetition, and copies of an answer must not move
         * it. */
        conn->retries -= (conn->retries > 0);
        break;
    case UCT_SEP_CONN_REJ_IN_USE:
        out->is_stale = 1;
        break;
    default:
        uct_sep_conn_fail(env, conn, uct_sep_conn_rej_status(msg->reason), out);
        break;
    }
}

/* The peer can send, and wants to give up the connection */
static void uct_sep_conn_recv_dreq(uct_sep_conn_env_t *env,
                                   uct_sep_conn_t *conn,
                                   const uct_sep_conn_msg_t *msg,
                                   uct_sep_conn_out_t *out)
{
    int is_refused = conn->flags & UCT_SEP_CONN_FLAG_REFUSED;

    if (msg->dst_nonce != uct_sep_nonce(&env->key, msg->dst_epoch)) {
        out->is_stale = 1; /* Not from who was connected to it */
        return;
    }

    if (msg->dst_epoch != conn->local_epoch) {
        /* It is gone already: our DREP was lost */
        uct_sep_conn_reply_gone(msg->dst_epoch, msg->src_epoch, msg->src_nonce,
                                out);
        return;
    }

    if ((msg->src_epoch != conn->remote_epoch) ||
        (msg->src_nonce != conn->remote_nonce)) {
        out->is_stale = 1;
        return;
    }

    switch (conn->state) {
    case UCT_SEP_CONN_STATE_REP_SENT:
        /* As good as the RTU, which was lost. It comes again. */
        uct_sep_conn_confirm(conn, msg);
        uct_sep_conn_established(env, conn, out);
        break;
    case UCT_SEP_CONN_STATE_CONNECTED:
    case UCT_SEP_CONN_STATE_DISCONNECTING:
        /* Of 16, half are older */
        if (is_refused && ((msg->token - conn->declined) & 8)) {
            out->is_stale = 1;
            break;
        }

        if (is_refused &&
            ((msg->token & UCT_SEP_CONN_TOKEN_MASK) == conn->declined)) {
            uct_sep_conn_refuse(conn, out); /* Or the user takes his time */
        } else if ((conn->state == UCT_SEP_CONN_STATE_CONNECTED) &&
                   (conn->refcount > 0)) {
            conn->flags   |= UCT_SEP_CONN_FLAG_REFUSED |
                             UCT_SEP_CONN_FLAG_ASKED;
            conn->declined = msg->token & UCT_SEP_CONN_TOKEN_MASK;
            uct_sep_conn_set_urgent(conn,
                                    msg->token & UCT_SEP_CONN_TOKEN_URGENT);
            out->actions  |= UCT_SEP_CONN_ACTION_ASKED;
        } else {
            uct_sep_conn_agree(conn, out);
        }
        break;
    case UCT_SEP_CONN_STATE_RESETTING:
        /* The user may have been waiting for something to complete */
        uct_sep_conn_peer_reset(conn, out);
        break;
    default:
        out->is_stale = 1;
        break;
    }
}

/* The peer's QP is gone */
static void uct_sep_conn_recv_drep(uct_sep_conn_env_t *env,
                                   uct_sep_conn_t *conn,
                                   const uct_sep_conn_msg_t *msg,
                                   ucs_time_t now, uct_sep_conn_out_t *out)
{
    /* Who has not got an answer yet does not know our nonce. His own was only
     * told to us. */
    if ((msg->src_epoch != conn->remote_epoch) ||
        (msg->src_nonce != conn->remote_nonce) ||
        ((msg->dst_epoch == 0) ?
         (conn->state != UCT_SEP_CONN_STATE_REP_SENT) :
         !uct_sep_conn_is_answer(env, conn, msg))) {
        out->is_stale = 1;
        return;
    }

    switch (conn->state) {
    case UCT_SEP_CONN_STATE_REP_SENT:
        uct_sep_conn_retry_anew(env, conn, now, out);
        break;
    case UCT_SEP_CONN_STATE_CONNECTED:
        if (conn->refcount > 0) {
            /* What is under way may have arrived, and has a completion or will
             * get one: for the user, it is as if nothing had been said */
            conn->flags |= UCT_SEP_CONN_FLAG_GONE;
            break;
        }
        /* Fall through */
    case UCT_SEP_CONN_STATE_DISCONNECTING:
        uct_sep_conn_peer_reset(conn, out);
        break;
    default:
        out->is_stale = 1;
        break;
    }
}

void uct_sep_conn_recv(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       const uct_sep_conn_msg_t *msg, ucs_time_t now,
                       uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if (conn->flags & UCT_SEP_CONN_FLAG_SELF) {
        out->is_stale = 1;
        return;
    }

    switch (msg->type) {
    case UCT_SEP_CONN_MSG_REQ:
        uct_sep_conn_recv_req(env, conn, msg, now, out);
        break;
    case UCT_SEP_CONN_MSG_REP:
        uct_sep_conn_recv_rep(env, conn, msg, now, out);
        break;
    case UCT_SEP_CONN_MSG_RTU:
        uct_sep_conn_recv_rtu(env, conn, msg, out);
        break;
    case UCT_SEP_CONN_MSG_REJ:
        uct_sep_conn_recv_rej(env, conn, msg, now, out);
        break;
    case UCT_SEP_CONN_MSG_DREQ:
        uct_sep_conn_recv_dreq(env, conn, msg, out);
        break;
    case UCT_SEP_CONN_MSG_DREP:
        uct_sep_conn_recv_drep(env, conn, msg, now, out);
        break;
    default:
        out->is_stale = 1;
        break;
    }
}
