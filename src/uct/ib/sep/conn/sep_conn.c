/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_conn_int.h>
#include <uct/ib/sep/port/sep_addr.h>

#include <ucs/sys/math.h>

#include <string.h>

static_assert(sizeof(uct_sep_conn_t) <= 112, "an endpoint without a queue pair "
              "and its connection have 256 bytes together");


/* Spread repetitions over a quarter of the interval, or the interfaces started
 * by one launcher would repeat in step. Derived, not random: a run can be
 * replayed. */
static ucs_time_t uct_sep_conn_jitter(const uct_sep_conn_env_t *env,
                                      const uct_sep_conn_t *conn,
                                      ucs_time_t interval)
{
    uint64_t x = env->seed ^ ((uint64_t)conn->local_epoch << 32) ^
                 conn->retries;

    /* Finalizer of splitmix64: every bit of x reaches every bit of the result
     */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x = x ^ (x >> 31);
    return x % (interval / 4 + 1);
}

static void uct_sep_conn_arm(const uct_sep_conn_env_t *env,
                             uct_sep_conn_t *conn, ucs_time_t now)
{
    ucs_time_t interval = env->timeout;
    unsigned i;

    for (i = 0; (i < conn->retries) && (interval < env->max_timeout); ++i) {
        interval *= 2;
    }

    interval       = ucs_min(interval, env->max_timeout);
    conn->deadline = now + interval +
                     uct_sep_conn_jitter(env, conn, interval);
}

static void uct_sep_conn_set_state(uct_sep_conn_env_t *env,
                                   uct_sep_conn_t *conn,
                                   uct_sep_conn_state_t state)
{
    env->num_half_open -= (conn->state == UCT_SEP_CONN_STATE_REP_SENT);
    env->num_half_open += (state == UCT_SEP_CONN_STATE_REP_SENT);
    conn->state         = state;
}

static ucs_status_t uct_sep_conn_qp_create(uct_sep_conn_env_t *env,
                                           uct_sep_conn_t *conn)
{
    ucs_status_t status;

    memset(&conn->local, 0, sizeof(conn->local));
    status = env->ops->qp_create(env->arg, conn, &conn->local);
    if (status == UCS_OK) {
        /* Epochs are given per interface, not per connection, so that they
         * keep growing if a connection is freed and made again. */
        conn->local_epoch = ++env->last_epoch;
    }

    return status;
}

void uct_sep_conn_close(uct_sep_conn_env_t *env, uct_sep_conn_t *conn)
{
    uint32_t epoch = conn->local_epoch;

    uct_sep_conn_set_state(env, conn, UCT_SEP_CONN_STATE_IDLE);
    conn->flags       &= ~(UCT_SEP_CONN_FLAG_PENDING |
                           UCT_SEP_CONN_FLAG_AGREED | UCT_SEP_CONN_FLAG_GONE |
                           UCT_SEP_CONN_FLAG_REFUSED |
                           UCT_SEP_CONN_FLAG_ASKED | UCT_SEP_CONN_FLAG_URGENT);
    conn->local_epoch  = 0;
    conn->remote_epoch = 0;
    conn->deadline     = 0;

    if (epoch != 0) {
        env->ops->qp_destroy(env->arg, conn);
    }
}

ucs_status_t uct_sep_conn_bind(uct_sep_conn_env_t *env,
                               uct_sep_conn_t *conn, uint32_t epoch,
                               const uct_sep_conn_qp_info_t *remote)
{
    ucs_status_t status;

    status = env->ops->qp_connect(env->arg, conn, remote);
    if (status != UCS_OK) {
        return status;
    }

    conn->remote_qpn   = remote->qpn;
    conn->remote_epoch = epoch;
    return UCS_OK;
}

void uct_sep_conn_fail(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       ucs_status_t status, uct_sep_conn_out_t *out)
{
    uct_sep_conn_close(env, conn);

    if (status == UCS_ERR_NO_RESOURCE) {
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED; /* The user knows */
    } else if (conn->flags & UCT_SEP_CONN_FLAG_WANTED) {
        conn->flags  &= ~UCT_SEP_CONN_FLAG_WANTED;
        out->actions |= UCT_SEP_CONN_ACTION_FAILED;
        out->status   = status;
    }
}

void uct_sep_conn_reject(uint32_t epoch, uint64_t nonce,
                         uct_sep_conn_rej_t reason,
                         uct_sep_conn_out_t *out)
{
    out->actions   |= UCT_SEP_CONN_ACTION_SEND_REJ;
    out->rej_epoch  = epoch;
    out->rej_nonce  = nonce;
    out->rej_reason = reason;
}

void uct_sep_conn_reply_gone(uint32_t gone_epoch, uint32_t epoch,
                             uint64_t nonce, uct_sep_conn_out_t *out)
{
    out->actions   |= UCT_SEP_CONN_ACTION_SEND_DREP;
    out->gone_epoch = gone_epoch;
    out->rej_epoch  = epoch;
    out->rej_nonce  = nonce;
}

void uct_sep_conn_established(uct_sep_conn_env_t *env,
                              uct_sep_conn_t *conn,
                              uct_sep_conn_out_t *out)
{
    uct_sep_conn_set_state(env, conn, UCT_SEP_CONN_STATE_CONNECTED);
    conn->deadline = 0;
    conn->retries  = 0;
    out->actions  |= UCT_SEP_CONN_ACTION_ESTABLISHED;
}

/* IDLE: make a QP and offer it */
static ucs_status_t uct_sep_conn_offer(uct_sep_conn_env_t *env,
                                       uct_sep_conn_t *conn, ucs_time_t now,
                                       uct_sep_conn_out_t *out)
{
    ucs_status_t status;

    status = uct_sep_conn_qp_create(env, conn);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_conn_set_state(env, conn, UCT_SEP_CONN_STATE_REQ_SENT);
    out->actions |= UCT_SEP_CONN_ACTION_SEND_REQ;
    uct_sep_conn_arm(env, conn, now);
    return UCS_OK;
}

/* REQ_SENT, or IDLE with a QP just made: take the peer's offer, whose nonce is
 * in remote_nonce */
void uct_sep_conn_answer(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                         uint32_t epoch,
                         const uct_sep_conn_qp_info_t *remote,
                         ucs_time_t now, uct_sep_conn_out_t *out)
{
    ucs_status_t status;

    status = uct_sep_conn_bind(env, conn, epoch, remote);
    if (status != UCS_OK) {
        uct_sep_conn_fail(env, conn, status, out);
        uct_sep_conn_reject(epoch, conn->remote_nonce,
                            UCT_SEP_CONN_REJ_NO_RESOURCES, out);
        return;
    }

    uct_sep_conn_set_state(env, conn, UCT_SEP_CONN_STATE_REP_SENT);
    out->actions |= UCT_SEP_CONN_ACTION_SEND_REP;
    uct_sep_conn_arm(env, conn, now);
}

/* IDLE: make a QP for the peer's offer */
void uct_sep_conn_accept(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                         uint32_t epoch,
                         const uct_sep_conn_qp_info_t *remote,
                         ucs_time_t now, uct_sep_conn_out_t *out)
{
    /* May point into the connection, which the QP callbacks are free to fill */
    uct_sep_conn_qp_info_t remote_copy = *remote;
    ucs_status_t status;

    conn->retries = 0;
    status        = uct_sep_conn_qp_create(env, conn);
    if (status == UCS_ERR_NO_RESOURCE) {
        /* The request comes again, and then it has to be a new one */
        uct_sep_conn_fail(env, conn, status, out);
        uct_sep_conn_reject(epoch, conn->remote_nonce, UCT_SEP_CONN_REJ_BUSY,
                            out);
        conn->remote_nonce    = 0;
        conn->consumed_epoch -= (conn->consumed_epoch == epoch);
        return;
    } else if (status != UCS_OK) {
        uct_sep_conn_fail(env, conn, status, out);
        uct_sep_conn_reject(epoch, conn->remote_nonce,
                            UCT_SEP_CONN_REJ_NO_RESOURCES, out);
        return;
    }

    uct_sep_conn_answer(env, conn, epoch, &remote_copy, now, out);
}

/* The peer has lost or never had what our QP is connected to. If we want the
 * connection ourselves, offer a new QP; retries are not reset, so two sides
 * cannot do this to each other for ever. */
void uct_sep_conn_retry_anew(uct_sep_conn_env_t *env,
                             uct_sep_conn_t *conn, ucs_time_t now,
                             uct_sep_conn_out_t *out)
{
    ucs_status_t status = UCS_ERR_ENDPOINT_TIMEOUT;

    uct_sep_conn_close(env, conn);

    if ((conn->flags & UCT_SEP_CONN_FLAG_WANTED) &&
        (conn->retries < env->max_retries)) {
        ++conn->retries;
        status = uct_sep_conn_offer(env, conn, now, out);
        if (status == UCS_OK) {
            return;
        }
    }

    uct_sep_conn_fail(env, conn, status, out);
}

/* CONNECTED: the user still has the QP in his hands, tell him to let go.
 * DISCONNECTING: he has put it down already, and if he has asked for a
 * connection since, he gets a new one. */
void uct_sep_conn_peer_reset(uct_sep_conn_t *conn, uct_sep_conn_out_t *out)
{
    if (conn->state == UCT_SEP_CONN_STATE_CONNECTED) {
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED;
    }

    conn->state    = UCT_SEP_CONN_STATE_RESETTING;
    conn->flags   &= ~UCT_SEP_CONN_FLAG_ASKED;
    conn->deadline = 0;
    out->actions  |= UCT_SEP_CONN_ACTION_FAILED;
    out->status    = UCS_ERR_CONNECTION_RESET;
}

/* The peer, which has asked for the declined token, goes on */
void uct_sep_conn_refuse(uct_sep_conn_t *conn, uct_sep_conn_out_t *out)
{
    conn->flags &= ~UCT_SEP_CONN_FLAG_ASKED;
    uct_sep_conn_reject(conn->remote_epoch, conn->remote_nonce,
                        UCT_SEP_CONN_REJ_IN_USE, out);
    out->rej_token = conn->declined;
}

/* Both sides give up the connection. The answer follows when the user has let
 * go. */
void uct_sep_conn_agree(uct_sep_conn_t *conn, uct_sep_conn_out_t *out)
{
    uct_sep_conn_peer_reset(conn, out);
    conn->flags |= UCT_SEP_CONN_FLAG_AGREED;
}

void uct_sep_conn_out_init(uct_sep_conn_out_t *out)
{
    memset(out, 0, sizeof(*out));
    out->status = UCS_OK;
}

void uct_sep_conn_init(uct_sep_conn_t *conn, const uct_sep_peer_addr_t *peer,
                       int is_self)
{
    memset(conn, 0, sizeof(*conn));
    conn->peer  = *peer;
    conn->state = UCT_SEP_CONN_STATE_IDLE;
    conn->flags = is_self ? UCT_SEP_CONN_FLAG_SELF : 0;
    ucs_list_head_init(&conn->timer_link);
}

/* DISCONNECTING: ask the peer, with all repetitions */
static void uct_sep_conn_ask(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                             ucs_time_t now, uct_sep_conn_out_t *out)
{
    conn->retries = 0;
    out->actions |= UCT_SEP_CONN_ACTION_SEND_DREQ;
    uct_sep_conn_arm(env, conn, now);
}

void uct_sep_conn_set_urgent(uct_sep_conn_t *conn, int is_urgent)
{
    if (is_urgent) {
        conn->flags |= UCT_SEP_CONN_FLAG_URGENT;
    } else {
        conn->flags &= ~UCT_SEP_CONN_FLAG_URGENT;
    }
}

void uct_sep_conn_disconnect(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                             int is_urgent, ucs_time_t now,
                             uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if (conn->flags & UCT_SEP_CONN_FLAG_ASKED) {
        uct_sep_conn_agree(conn, out);
        return;
    }

    if (conn->state == UCT_SEP_CONN_STATE_CONNECTED) {
        conn->token  = (conn->token + 1) & UCT_SEP_CONN_TOKEN_MASK;
        conn->state  = UCT_SEP_CONN_STATE_DISCONNECTING;
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED;
        if ((conn->flags & UCT_SEP_CONN_FLAG_SELF) ||
            (conn->flags & UCT_SEP_CONN_FLAG_GONE)) {
            uct_sep_conn_peer_reset(conn, out); /* Nobody to ask */
            return;
        }
    } else if ((conn->state != UCT_SEP_CONN_STATE_DISCONNECTING) ||
               (conn->deadline != 0)) {
        return;
    }

    uct_sep_conn_set_urgent(conn, is_urgent);
    uct_sep_conn_ask(env, conn, now, out);
}

int uct_sep_conn_answer_asked(uct_sep_conn_t *conn, int agrees,
                              uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if (!(conn->flags & UCT_SEP_CONN_FLAG_ASKED)) {
        return 0;
    }

    if (agrees) {
        uct_sep_conn_agree(conn, out);
    } else {
        uct_sep_conn_refuse(conn, out);
    }
    return agrees;
}

void uct_sep_conn_unused(uct_sep_conn_t *conn, uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if ((conn->state == UCT_SEP_CONN_STATE_CONNECTED) &&
        (conn->flags & UCT_SEP_CONN_FLAG_GONE)) {
        uct_sep_conn_peer_reset(conn, out);
    }
}

void uct_sep_conn_farewell(const uct_sep_conn_t *conn, uct_sep_conn_out_t *out)
{
    int is_known;

    uct_sep_conn_out_init(out);

    if ((conn->local_epoch != 0) &&
        !(conn->flags & (UCT_SEP_CONN_FLAG_SELF | UCT_SEP_CONN_FLAG_GONE))) {
        is_known = (conn->remote_epoch != 0) &&
                   !(conn->flags & UCT_SEP_CONN_FLAG_PENDING);
        uct_sep_conn_reply_gone(conn->local_epoch,
                                is_known ? conn->remote_epoch : 0,
                                is_known ? conn->remote_nonce : 0, out);
    }
}

static ucs_status_t uct_sep_conn_start_self(uct_sep_conn_env_t *env,
                                            uct_sep_conn_t *conn,
                                            uct_sep_conn_out_t *out)
{
    ucs_status_t status;

    status = uct_sep_conn_qp_create(env, conn);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_conn_bind(env, conn, conn->local_epoch, &conn->local);
    if (status != UCS_OK) {
        uct_sep_conn_close(env, conn);
        return status;
    }

    uct_sep_conn_established(env, conn, out);
    return UCS_OK;
}

ucs_status_t uct_sep_conn_start(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                                ucs_time_t now, uct_sep_conn_out_t *out)
{
    ucs_status_t status;

    uct_sep_conn_out_init(out);

    if (conn->state == UCT_SEP_CONN_STATE_CONNECTED) {
        return UCS_OK;
    }

    if (conn->state == UCT_SEP_CONN_STATE_IDLE) {
        conn->retries = 0;
        if (conn->flags & UCT_SEP_CONN_FLAG_SELF) {
            return uct_sep_conn_start_self(env, conn, out);
        }

        status = uct_sep_conn_offer(env, conn, now, out);
        if (status != UCS_OK) {
            return status;
        }
    }

    if ((conn->state == UCT_SEP_CONN_STATE_DISCONNECTING) &&
        !(conn->flags & UCT_SEP_CONN_FLAG_WANTED)) {
        /* Somebody waits for the answer now */
        uct_sep_conn_ask(env, conn, now, out);
    }

    conn->flags |= UCT_SEP_CONN_FLAG_WANTED;
    return UCS_INPROGRESS;
}

int uct_sep_conn_heard(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                       uint32_t qpn, uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if ((conn->state != UCT_SEP_CONN_STATE_REP_SENT) ||
        (qpn != ((conn->local.responder_qpn != 0) ?
                 conn->local.responder_qpn : conn->local.qpn))) {
        return 0;
    }

    /* Only the QP that ours is connected to can have sent it. Whose that is,
     * the RTU will confirm. */
    uct_sep_conn_established(env, conn, out);
    return 1;
}

void uct_sep_conn_timeout(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                          ucs_time_t now, uct_sep_conn_out_t *out)
{
    uct_sep_conn_out_init(out);

    if ((conn->deadline == 0) || (now < conn->deadline)) {
        return;
    }

    if (conn->retries >= env->max_retries) {
        if (conn->state != UCT_SEP_CONN_STATE_DISCONNECTING) {
            uct_sep_conn_fail(env, conn, UCS_ERR_ENDPOINT_TIMEOUT, out);
        } else if (conn->flags & UCT_SEP_CONN_FLAG_WANTED) {
            uct_sep_conn_peer_reset(conn, out);
        } else {
            conn->deadline = 0; /* Until the user asks again */
        }
        return;
    }

    ++conn->retries;
    out->actions |= (conn->state == UCT_SEP_CONN_STATE_REQ_SENT) ?
                    UCT_SEP_CONN_ACTION_SEND_REQ :
                    (conn->state == UCT_SEP_CONN_STATE_REP_SENT) ?
                    UCT_SEP_CONN_ACTION_SEND_REP :
                    UCT_SEP_CONN_ACTION_SEND_DREQ;
    uct_sep_conn_arm(env, conn, now);
}

void uct_sep_conn_reset(uct_sep_conn_env_t *env, uct_sep_conn_t *conn,
                        ucs_time_t now, uct_sep_conn_out_t *out)
{
    int is_unused    = (conn->state == UCT_SEP_CONN_STATE_RESETTING) ||
                       (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING);
    int is_pending   = !!(conn->flags & UCT_SEP_CONN_FLAG_PENDING);
    int has_agreed   = !!(conn->flags & UCT_SEP_CONN_FLAG_AGREED);
    uint32_t epoch   = conn->remote_epoch;
    ucs_status_t status;

    uct_sep_conn_out_init(out);

    if (conn->state == UCT_SEP_CONN_STATE_IDLE) {
        return;
    }

    if (!is_unused) {
        /* The user knows, and can start again */
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED;
    }

    if (has_agreed && !is_pending) {
        uct_sep_conn_reply_gone(conn->local_epoch, conn->remote_epoch,
                                conn->remote_nonce, out);
    }

    uct_sep_conn_close(env, conn);
    conn->retries = 0;

    if (is_pending) {
        uct_sep_conn_accept(env, conn, epoch, &conn->pending, now, out);
    } else if (conn->flags & UCT_SEP_CONN_FLAG_WANTED) {
        /* Nobody would answer a request to oneself */
        status = (conn->flags & UCT_SEP_CONN_FLAG_SELF) ?
                 uct_sep_conn_start_self(env, conn, out) :
                 uct_sep_conn_offer(env, conn, now, out);
        if (status != UCS_OK) {
            uct_sep_conn_fail(env, conn, status, out);
        }
    }
}

void uct_sep_conn_msg_fill(const uct_sep_conn_env_t *env,
                           const uct_sep_conn_t *conn,
                           uct_sep_conn_msg_type_t type,
                           const uct_sep_conn_out_t *out,
                           const uct_sep_peer_addr_t *src,
                           uct_sep_conn_msg_t *msg_p)
{
    memset(msg_p, 0, sizeof(*msg_p));
    msg_p->type   = type;
    msg_p->src    = *src;
    msg_p->dst_id = uct_sep_iface_addr_id(&conn->peer.iface);

    if (type == UCT_SEP_CONN_MSG_REJ) {
        msg_p->dst_epoch = out->rej_epoch;
        msg_p->dst_nonce = out->rej_nonce;
        msg_p->reason    = out->rej_reason;
        msg_p->token     = out->rej_token;
        return;
    }

    if (type == UCT_SEP_CONN_MSG_DREP) {
        msg_p->src_epoch = out->gone_epoch;
        msg_p->src_nonce = uct_sep_nonce(&env->key, out->gone_epoch);
        msg_p->dst_epoch = out->rej_epoch;
        msg_p->dst_nonce = out->rej_nonce;
        return;
    }

    msg_p->src_epoch = conn->local_epoch;
    msg_p->src_nonce = uct_sep_nonce(&env->key, conn->local_epoch);
    msg_p->dst_nonce = conn->remote_nonce;
    if (type != UCT_SEP_CONN_MSG_REQ) {
        msg_p->dst_epoch = conn->remote_epoch;
    }

    if (type == UCT_SEP_CONN_MSG_DREQ) {
        msg_p->token = conn->token |
                       ((conn->flags & UCT_SEP_CONN_FLAG_URGENT) ?
                        UCT_SEP_CONN_TOKEN_URGENT : 0);
    } else if (type != UCT_SEP_CONN_MSG_RTU) {
        msg_p->qp = conn->local;
    }
}

const char *uct_sep_conn_state_name(unsigned state)
{
    static const char *names[] = {
        [UCT_SEP_CONN_STATE_IDLE]      = "idle",
        [UCT_SEP_CONN_STATE_REQ_SENT]  = "req_sent",
        [UCT_SEP_CONN_STATE_REP_SENT]  = "rep_sent",
        [UCT_SEP_CONN_STATE_CONNECTED] = "connected",
        [UCT_SEP_CONN_STATE_RESETTING] = "resetting",
        [UCT_SEP_CONN_STATE_DISCONNECTING] = "disconnecting"
    };

    return (state < ucs_static_array_size(names)) ? names[state] : "unknown";
}
