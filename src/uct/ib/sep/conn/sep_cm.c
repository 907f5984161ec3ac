/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/conn/sep_conn_msg.h>

#include <ucs/async/async.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/* The backoff of the retransmissions ends at this many times the first one */
#define UCT_SEP_CM_MAX_BACKOFF 10

/* Deadlines are checked this often per initial timeout, which limits how late a
 * retransmission can be */
#define UCT_SEP_CM_TICKS       4

/* Interfaces of the process that may have a timer for a long time; others look
 * when somebody connects. UCX 1.13.1 aborts if 150 timers expire at once
 * (ucs_async_dispatch_timerq, ALLOCA_MAX), and handshakes need some, too. */
#define UCT_SEP_CM_MAX_KEEPALIVE  48


/* How many have one; atomic */
static unsigned uct_sep_cm_num_keepalive;


KHASH_IMPL(uct_sep_cm_peers, const uct_sep_peer_addr_t*, char, 0,
           uct_sep_peer_addr_hash, uct_sep_peer_addr_equal)


#define uct_sep_cm_count_drop(_cm, _counter, _level, _fmt, ...) \
    uct_sep_cm_count(_cm, _counter, _level, "cm dropped a packet: " _fmt, \
                     ##__VA_ARGS__)


const char *uct_sep_cm_conn_str(const uct_sep_conn_t *conn, char *buf,
                                size_t max)
{
    char peer[UCT_SEP_ADDR_STR_MAX + 32];

    uct_sep_peer_addr_str(&conn->peer, peer, sizeof(peer));
    snprintf(buf, max, "%s %s epoch %u:%u QP 0x%x->0x%x", peer,
             uct_sep_conn_state_name(conn->state), conn->local_epoch,
             conn->remote_epoch,
             (conn->local_epoch &&
              !(conn->flags & UCT_SEP_CONN_FLAG_PENDING)) ?
             conn->local.qpn : 0,
             conn->remote_epoch ? conn->remote_qpn : 0);
    return buf;
}

/*
 * Environment of the state machines
 */

static ucs_status_t uct_sep_cm_qp_create(void *arg, uct_sep_conn_t *conn,
                                         uct_sep_conn_qp_info_t *local_p)
{
    uct_sep_cm_t *cm = arg;

    return cm->ops->qp_create(cm->arg, conn, local_p);
}

static ucs_status_t uct_sep_cm_qp_connect(void *arg, uct_sep_conn_t *conn,
                                          const uct_sep_conn_qp_info_t *remote)
{
    uct_sep_cm_t *cm = arg;
    struct ibv_ah_attr ah_attr;

    uct_sep_device_addr_to_ah_attr(&cm->port, &conn->peer.dev, &ah_attr);
    return cm->ops->qp_connect(cm->arg, conn, remote, &ah_attr);
}

static void uct_sep_cm_qp_destroy(void *arg, uct_sep_conn_t *conn)
{
    uct_sep_cm_t *cm = arg;

    cm->ops->qp_destroy(cm->arg, conn);
}

static const uct_sep_conn_env_ops_t uct_sep_cm_env_ops = {
    .qp_create  = uct_sep_cm_qp_create,
    .qp_connect = uct_sep_cm_qp_connect,
    .qp_destroy = uct_sep_cm_qp_destroy
};

/* Ourselves, as a peer on a path knows us */
static void uct_sep_cm_self_on_path(const uct_sep_cm_t *cm, uint8_t path,
                                    uct_sep_peer_addr_t *self_p)
{
    *self_p          = cm->self;
    self_p->dev.path = path;
}

/*
 * Sending
 */

static void uct_sep_cm_send(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer,
                            const uct_sep_conn_msg_t *msg)
{
    unsigned copies = 1;
    uct_sep_conn_packet_t packet;
    int ret;

    if (ucs_log_is_enabled(UCS_LOG_LEVEL_TRACE)) {
        char peer_str[UCT_SEP_ADDR_STR_MAX + 32];
        ucs_trace("%s: cm tx %s epoch %u:%u QP 0x%x to %s", cm->name,
                  uct_sep_conn_msg_type_name(msg->type), msg->src_epoch,
                  msg->dst_epoch, msg->qp.qpn,
                  uct_sep_peer_addr_str(peer, peer_str, sizeof(peer_str)));
    }

    if (cm->tx_filter != NULL) {
        copies = cm->tx_filter(cm->tx_filter_arg, msg);
    }

    uct_sep_conn_msg_pack(msg, &packet);
    for (; copies > 0; --copies) {
        ret = uct_sep_cm_ud_post_send(cm, peer, &packet);
        if (ret == 0) {
            ++cm->stats.tx_packets;
        } else {
            /* As if it were lost on the way: it will be repeated */
            ++cm->stats.tx_dropped;
            ucs_debug("%s: cm could not send %s: %s", cm->name,
                      uct_sep_conn_msg_type_name(msg->type), strerror(ret));
        }
    }
}

static void uct_sep_cm_send_conn(uct_sep_cm_t *cm, const uct_sep_conn_t *conn,
                                 uct_sep_conn_msg_type_t type,
                                 const uct_sep_conn_out_t *out)
{
    uct_sep_peer_addr_t self;
    uct_sep_conn_msg_t msg;

    uct_sep_cm_self_on_path(cm, conn->peer.dev.path, &self);
    uct_sep_conn_msg_fill(&cm->env, conn, type, out, &self, &msg);
    uct_sep_cm_send(cm, &conn->peer, &msg);
}

/* Say that a QP is gone, as the answer to a DREQ for which there is no
 * connection */
static void uct_sep_cm_reply_gone(uct_sep_cm_t *cm,
                                  const uct_sep_conn_msg_t *msg)
{
    uct_sep_conn_msg_t drep = {
        .type      = UCT_SEP_CONN_MSG_DREP,
        .dst_id    = uct_sep_iface_addr_id(&msg->src.iface),
        .src_epoch = msg->dst_epoch,
        .src_nonce = uct_sep_nonce(&cm->env.key, msg->dst_epoch),
        .dst_epoch = msg->src_epoch,
        .dst_nonce = msg->src_nonce
    };

    if (msg->dst_nonce != drep.src_nonce) {
        return; /* Not from who was connected to it */
    }

    uct_sep_cm_self_on_path(cm, msg->src.dev.path, &drep.src);
    uct_sep_cm_send(cm, &msg->src, &drep);
}

/* Answer a packet for which there is no connection. Answer in the name of the
 * interface the packet was meant for, or its sender would not know which of its
 * connections this is about. */
static void uct_sep_cm_reject(uct_sep_cm_t *cm, const uct_sep_conn_msg_t *msg,
                              uct_sep_conn_rej_t reason)
{
    uct_sep_conn_msg_t rej = {
        .type      = UCT_SEP_CONN_MSG_REJ,
        .reason    = reason,
        .dst_id    = uct_sep_iface_addr_id(&msg->src.iface),
        .dst_epoch = msg->src_epoch,
        .dst_nonce = msg->src_nonce
    };

    if ((msg->type != UCT_SEP_CONN_MSG_REQ) &&
        (msg->type != UCT_SEP_CONN_MSG_REP) &&
        (msg->type != UCT_SEP_CONN_MSG_DREQ)) {
        return;
    }

    uct_sep_cm_self_on_path(cm, msg->src.dev.path, &rej.src);
    uct_sep_iface_addr_pack(cm->ud_qp->qp_num, msg->dst_id, cm->qkey,
                            cm->self.iface.flags, &rej.src.iface);
    uct_sep_cm_send(cm, &msg->src, &rej);
}

/*
 * Timer
 */

static void uct_sep_cm_perform(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                               const uct_sep_conn_out_t *out);
static void uct_sep_cm_event(int fd, ucs_event_set_types_t events, void *arg);

static void uct_sep_cm_timer_remove(const uct_sep_cm_t *cm, int *timer_id_p)
{
    int timer_id = *timer_id_p;

    if (timer_id < 0) {
        return;
    }

    *timer_id_p = -1;
    /* Wait for a dispatch under way in the async thread: it can't get the lock
     * we hold and returns at once. In poll mode there is no other thread, but
     * the poll loop up the stack may hold the handler, so we would wait for
     * ever. */
    ucs_async_remove_handler(timer_id,
                             uct_sep_compat_async_mode(cm->async) !=
                             UCS_ASYNC_MODE_POLL);
}

static void uct_sep_cm_timer(int id, ucs_event_set_types_t events, void *arg)
{
    uct_sep_cm_t *cm = arg;
    ucs_time_t now   = ucs_get_time();
    uct_sep_conn_t *conn, *tmp;
    uct_sep_conn_out_t out;
    UCS_LIST_HEAD(expired);

    ++cm->stats.timer_ticks;

    ucs_list_for_each_safe(conn, tmp, &cm->timers, timer_link) {
        if (conn->deadline <= now) {
            ucs_list_del(&conn->timer_link);
            ucs_list_add_tail(&expired, &conn->timer_link);
        }
    }

    /* A callback may free any connection, including those on this list */
    while (!ucs_list_is_empty(&expired)) {
        conn = ucs_list_head(&expired, uct_sep_conn_t, timer_link);
        ucs_list_del(&conn->timer_link);
        ucs_list_head_init(&conn->timer_link);

        uct_sep_conn_timeout(&cm->env, conn, now, &out);
        if (out.actions & (UCT_SEP_CONN_ACTION_SEND_REQ |
                           UCT_SEP_CONN_ACTION_SEND_REP |
                           UCT_SEP_CONN_ACTION_SEND_DREQ)) {
            ++cm->stats.tx_retries;
        }
        uct_sep_cm_perform(cm, conn, &out);
    }

    uct_sep_cm_ud_flush(cm);
    if (cm->is_behind) {
        uct_sep_cm_event(cm->channel->fd, UCS_EVENT_SET_EVREAD, cm);
    }

    if (ucs_list_is_empty(&cm->timers) && !cm->is_behind) {
        uct_sep_cm_timer_remove(cm, &cm->timer_id);
    }
}

static void uct_sep_cm_timer_start(uct_sep_cm_t *cm)
{
    ucs_status_t status;

    if (cm->timer_id >= 0) {
        return;
    }

    status = ucs_async_add_timer(uct_sep_compat_async_mode(cm->async),
                                 cm->tick, uct_sep_cm_timer,
                                 cm, cm->async, &cm->timer_id);
    if (status != UCS_OK) {
        cm->timer_id = -1;
        ucs_error("%s: cm could not add a timer: %s, connection requests will "
                  "not be repeated; raise UCX_ASYNC_MAX_EVENTS if its limit is "
                  "reached", cm->name, ucs_status_string(status));
    }
}

static void uct_sep_cm_timer_update(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    /* del + init is harmless for one that is on no list */
    ucs_list_del(&conn->timer_link);
    ucs_list_head_init(&conn->timer_link);
    if (conn->deadline == 0) {
        /* The timer goes away by itself with the next tick */
        return;
    }

    ucs_list_add_tail(&cm->timers, &conn->timer_link);
    uct_sep_cm_timer_start(cm);
}

/*
 * Connections that only the peer may use
 */

/* The table's keys are the first member of the connections */
static uct_sep_conn_t *uct_sep_cm_peer_conn(const void *peer)
{
    static_assert(offsetof(uct_sep_conn_t, peer) == 0, "key is not first");
    return (uct_sep_conn_t*)peer;
}

/* Established, and nobody here refers to it */
static int uct_sep_cm_conn_is_unused(const uct_sep_conn_t *conn)
{
    return (conn->refcount == 0) &&
           ((conn->state == UCT_SEP_CONN_STATE_CONNECTED) ||
            (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING));
}

static void uct_sep_cm_keepalive_remove(uct_sep_cm_t *cm)
{
    if (cm->keepalive_id >= 0) {
        uct_sep_cm_timer_remove(cm, &cm->keepalive_id);
        __atomic_sub_fetch(&uct_sep_cm_num_keepalive, 1, __ATOMIC_RELAXED);
    }
}

/* Tell the user about them; returns how many there are */
static unsigned uct_sep_cm_report_unused(uct_sep_cm_t *cm)
{
    unsigned count = 0;
    const uct_sep_peer_addr_t *peer;
    uct_sep_conn_t *conn;

    kh_foreach_key(&cm->peers, peer, {
        conn = uct_sep_cm_peer_conn(peer);
        if (uct_sep_cm_conn_is_unused(conn)) {
            ++count;
            cm->ops->unused(cm->arg, conn);
        }
    })
    return count;
}

static void
uct_sep_cm_keepalive(int id, ucs_event_set_types_t events, void *arg)
{
    uct_sep_cm_t *cm = arg;

    ++cm->stats.timer_ticks;
    if (ucs_get_time() < cm->keepalive_from) {
        return;
    }

    if (uct_sep_cm_report_unused(cm) == 0) {
        cm->keepalive_from = 0;
        uct_sep_cm_keepalive_remove(cm);
    }
}

/* The timer goes away by itself when there are no such connections */
static void uct_sep_cm_keepalive_update(uct_sep_cm_t *cm,
                                        const uct_sep_conn_t *conn)
{
    ucs_status_t status;

    if ((cm->keepalive_id >= 0) || (cm->keepalive == UCS_TIME_INFINITY) ||
        !uct_sep_cm_conn_is_unused(conn)) {
        return;
    }

    if (cm->keepalive_from == 0) {
        cm->keepalive_from = ucs_get_time() + cm->keepalive;
    }

    if (__atomic_add_fetch(&uct_sep_cm_num_keepalive, 1, __ATOMIC_RELAXED) >
        UCT_SEP_CM_MAX_KEEPALIVE) {
        __atomic_sub_fetch(&uct_sep_cm_num_keepalive, 1, __ATOMIC_RELAXED);
        return; /* uct_sep_cm_keepalive_check() has to do */
    }

    status = ucs_async_add_timer(uct_sep_compat_async_mode(cm->async),
                                 cm->keepalive,
                                 uct_sep_cm_keepalive, cm, cm->async,
                                 &cm->keepalive_id);
    if (status != UCS_OK) {
        cm->keepalive_id = -1;
        __atomic_sub_fetch(&uct_sep_cm_num_keepalive, 1, __ATOMIC_RELAXED);
        ucs_diag("%s: cm could not add a timer: %s, peers that have gone will "
                 "be noticed only when others connect; raise "
                 "UCX_ASYNC_MAX_EVENTS if its limit is reached", cm->name,
                 ucs_status_string(status));
    }
}

/* Without a timer, those who connect remind us: then the connections of peers
 * that have gone are no more than connect in a period */
static void uct_sep_cm_keepalive_check(uct_sep_cm_t *cm)
{
    if ((cm->keepalive_from == 0) || (cm->keepalive_id >= 0) ||
        (ucs_get_time() < cm->keepalive_from)) {
        return;
    }

    cm->keepalive_from = 0;
    if (uct_sep_cm_report_unused(cm) > 0) {
        cm->keepalive_from = ucs_get_time() + cm->keepalive;
    }
}

/*
 * Connections
 */

static void uct_sep_cm_conn_free(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    khiter_t iter = kh_get(uct_sep_cm_peers, &cm->peers, &conn->peer);

    ucs_assert(iter != kh_end(&cm->peers));
    kh_del(uct_sep_cm_peers, &cm->peers, iter);
    ucs_list_del(&conn->timer_link);
    cm->ops->conn_free(cm->arg, conn);
}

/* Drop a reference; frees the connection if neither that nor a QP is left */
static void uct_sep_cm_conn_unhold(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    if (--conn->refcount > 0) {
        return;
    }

    if (conn->state == UCT_SEP_CONN_STATE_IDLE) {
        uct_sep_cm_conn_free(cm, conn);
    } else {
        uct_sep_cm_keepalive_update(cm, conn);
    }
}

/* The connection must not be touched after this: it may have been freed */
static void uct_sep_cm_perform(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                               const uct_sep_conn_out_t *out)
{
    static const struct {
        unsigned                action;
        uct_sep_conn_msg_type_t type;
    } sends[] = {
        {UCT_SEP_CONN_ACTION_SEND_REJ,  UCT_SEP_CONN_MSG_REJ},
        {UCT_SEP_CONN_ACTION_SEND_DREP, UCT_SEP_CONN_MSG_DREP},
        {UCT_SEP_CONN_ACTION_SEND_REQ,  UCT_SEP_CONN_MSG_REQ},
        {UCT_SEP_CONN_ACTION_SEND_REP,  UCT_SEP_CONN_MSG_REP},
        {UCT_SEP_CONN_ACTION_SEND_RTU,  UCT_SEP_CONN_MSG_RTU},
        {UCT_SEP_CONN_ACTION_SEND_DREQ, UCT_SEP_CONN_MSG_DREQ}
    };
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];
    unsigned i;

    uct_sep_cm_timer_update(cm, conn);

    ++conn->refcount; /* The callbacks may drop the last one of the user */

    for (i = 0; i < ucs_static_array_size(sends); ++i) {
        if (out->actions & sends[i].action) {
            uct_sep_cm_send_conn(cm, conn, sends[i].type, out);
        }
    }

    if (out->actions & UCT_SEP_CONN_ACTION_ESTABLISHED) {
        ucs_debug("%s: cm connected %s", cm->name,
                  uct_sep_cm_conn_str(conn, conn_str, sizeof(conn_str)));
        cm->ops->established(cm->arg, conn);
    } else if (out->actions & UCT_SEP_CONN_ACTION_FAILED) {
        ucs_debug("%s: cm failed %s: %s", cm->name,
                  uct_sep_cm_conn_str(conn, conn_str, sizeof(conn_str)),
                  ucs_status_string(out->status));
        cm->ops->failed(cm->arg, conn, out->status);
    }

    if (out->actions & UCT_SEP_CONN_ACTION_ASKED) {
        cm->ops->asked(cm->arg, conn);
    }

    uct_sep_cm_conn_unhold(cm, conn);
}

static uct_sep_conn_t *uct_sep_cm_conn_find(uct_sep_cm_t *cm,
                                            const uct_sep_peer_addr_t *peer)
{
    khiter_t iter = kh_get(uct_sep_cm_peers, &cm->peers, peer);

    if (iter == kh_end(&cm->peers)) {
        return NULL;
    }

    return uct_sep_cm_peer_conn(kh_key(&cm->peers, iter));
}

static ucs_status_t uct_sep_cm_conn_add(uct_sep_cm_t *cm,
                                        const uct_sep_peer_addr_t *peer,
                                        uct_sep_conn_t **conn_p)
{
    uct_sep_peer_addr_t self;
    uct_sep_conn_t *conn;
    ucs_status_t status;
    int ret;

    status = cm->ops->conn_alloc(cm->arg, &conn);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_cm_self_on_path(cm, peer->dev.path, &self);
    uct_sep_conn_init(conn, peer, uct_sep_peer_addr_equal(peer, &self));

    kh_put(uct_sep_cm_peers, &cm->peers, &conn->peer, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        cm->ops->conn_free(cm->arg, conn);
        return UCS_ERR_NO_MEMORY;
    }

    ucs_assert(ret != UCS_KH_PUT_KEY_PRESENT);
    *conn_p = conn;
    return UCS_OK;
}

/*
 * Receiving
 */

static void uct_sep_cm_rx_conn(uct_sep_cm_t *cm, const uct_sep_conn_msg_t *msg)
{
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];
    uct_sep_conn_out_t out;
    uct_sep_conn_t *conn;
    ucs_status_t status;

    conn = uct_sep_cm_conn_find(cm, &msg->src);
    if (conn == NULL) {
        if (msg->type == UCT_SEP_CONN_MSG_DREQ) {
            ++cm->stats.rx_stale;
            uct_sep_cm_reply_gone(cm, msg);
            return;
        } else if (msg->type != UCT_SEP_CONN_MSG_REQ) {
            uct_sep_cm_count_drop(cm, rx_stale, debug,
                                  "%s without a connection",
                                  uct_sep_conn_msg_type_name(msg->type));
            uct_sep_cm_reject(cm, msg, UCT_SEP_CONN_REJ_STALE_EPOCH);
            return;
        }

        status = uct_sep_cm_conn_add(cm, &msg->src, &conn);
        if (status != UCS_OK) {
            uct_sep_cm_count(cm, rx_refused, diag,
                             "cm rejects a connection: %s",
                             ucs_status_string(status));
            uct_sep_cm_reject(cm, msg, UCT_SEP_CONN_REJ_NO_RESOURCES);
            return;
        }
    }

    uct_sep_conn_recv(&cm->env, conn, msg, ucs_get_time(), &out);
    ucs_trace("%s: cm rx %s%s epoch %u:%u QP 0x%x for %s", cm->name,
              uct_sep_conn_msg_type_name(msg->type),
              out.is_stale ? " (stale)" : "", msg->src_epoch, msg->dst_epoch,
              msg->qp.qpn,
              uct_sep_cm_conn_str(conn, conn_str, sizeof(conn_str)));
    if (out.is_stale) {
        ++cm->stats.rx_stale;
    }

    if ((msg->type == UCT_SEP_CONN_MSG_REJ) && !out.is_stale) {
        ucs_debug("%s: cm was rejected: %s: %s", cm->name,
                  uct_sep_conn_rej_str(msg->reason),
                  uct_sep_cm_conn_str(conn, conn_str, sizeof(conn_str)));
    }

    uct_sep_cm_perform(cm, conn, &out);
}

/* Whether a peer offers as many QPs as the connection has on each side: two if
 * either of us wants that */
static int uct_sep_cm_is_split_as_said(const uct_sep_cm_t *cm,
                                       const uct_sep_conn_msg_t *msg)
{
    int is_split = !!((cm->self.iface.flags | msg->src.iface.flags) &
                      UCT_SEP_IFACE_ADDR_FLAG_SPLIT);

    return ((msg->type != UCT_SEP_CONN_MSG_REQ) &&
            (msg->type != UCT_SEP_CONN_MSG_REP)) ||
           (is_split == (msg->qp.responder_qpn != 0));
}

void uct_sep_cm_rx(uct_sep_cm_t *cm, const void *data, size_t length,
                   const uint8_t *grh, const uct_sep_cm_rx_source_t *source)
{
    char addr_str[UCT_SEP_ADDR_STR_MAX];
    uct_sep_conn_parse_t result;
    uct_sep_conn_msg_t msg;

    ++cm->stats.rx_packets;

    result = uct_sep_conn_msg_parse(data, length, &msg);
    if (result == UCT_SEP_CONN_PARSE_VERSION) {
        uct_sep_cm_count_drop(cm, rx_malformed, diag,
                              "%s, from QP 0x%x: all processes of a job must "
                              "use the same version of the transport",
                              uct_sep_conn_parse_str(result), source->qpn);
        return;
    } else if (result != UCT_SEP_CONN_PARSE_OK) {
        uct_sep_cm_count_drop(cm, rx_malformed, debug,
                              "%s, %zu bytes from QP 0x%x",
                              uct_sep_conn_parse_str(result), length,
                              source->qpn);
        return;
    }

    /* The QP number and the port are what the device vouches for: a user can't
     * choose them
     */
    if (uct_sep_iface_addr_qpn(&msg.src.iface) != source->qpn) {
        uct_sep_cm_count_drop(cm, rx_foreign, diag,
                              "it says it is from QP 0x%x but is from QP 0x%x",
                              uct_sep_iface_addr_qpn(&msg.src.iface),
                              source->qpn);
        return;
    }

    if (!uct_sep_device_addr_is_source(&msg.src.dev, source->slid,
                                       source->has_grh ? grh : NULL)) {
        uct_sep_cm_count_drop(cm, rx_foreign, diag,
                              "QP 0x%x says it is at %s but is not (lid %u)",
                              source->qpn,
                              uct_sep_device_addr_str(&msg.src.dev, addr_str,
                                                      sizeof(addr_str)),
                              source->slid);
        return;
    }

    if (!uct_sep_device_addr_is_reachable(&cm->port, &msg.src.dev)) {
        uct_sep_cm_count_drop(cm, rx_foreign, diag,
                              "its sender, QP 0x%x, can't be reached",
                              source->qpn);
        return;
    }

    if (msg.dst_id != uct_sep_iface_addr_id(&cm->self.iface)) {
        uct_sep_cm_count_drop(cm, rx_foreign, debug,
                              "it is for an earlier owner of QP 0x%x",
                              cm->ud_qp->qp_num);
        uct_sep_cm_reject(cm, &msg, UCT_SEP_CONN_REJ_STALE_IFACE);
        return;
    }

    if (!uct_sep_cm_is_split_as_said(cm, &msg)) {
        uct_sep_cm_count_drop(cm, rx_malformed, diag,
                              "QP 0x%x offers %s queue pair for a connection "
                              "that needs %s", source->qpn,
                              msg.qp.responder_qpn ? "a second" : "one",
                              msg.qp.responder_qpn ? "one" : "two");
        return;
    }

    uct_sep_cm_rx_conn(cm, &msg);
}

static void uct_sep_cm_event(int fd, ucs_event_set_types_t events, void *arg)
{
    uct_sep_cm_t *cm = arg;
    int is_empty     = uct_sep_cm_ud_drain(cm);

    uct_sep_cm_keepalive_check(cm);

    /* The event, which is unread, brings us back; but a signal does not come
     * again */
    cm->is_behind = !is_empty && (uct_sep_compat_async_mode(cm->async) ==
                                  UCS_ASYNC_MODE_SIGNAL);
    if (cm->is_behind) {
        uct_sep_cm_timer_start(cm);
    }
    if (!is_empty) {
        return;
    }

    if (uct_sep_cm_ud_get_events(cm) == 0) {
        /* In poll mode the handler is called without an event */
        return;
    }

    ++cm->stats.events;
    uct_sep_cm_ud_arm(cm);
    /* What arrived between the last poll and arming raises no event. It is not
     * more than there were receives, so this takes all of it; what is left is
     * newer, and has raised one. */
    uct_sep_cm_ud_drain(cm);
}

/*
 * Interface
 */

static ucs_status_t uct_sep_cm_params_check(const uct_sep_cm_params_t *params)
{
    uct_sep_device_addr_t addr;

    if (params->async == NULL) {
        ucs_error("%s: the worker has no async context, which is needed to "
                  "make connections", params->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((params->timeout < 1e-3) || (params->timeout > 3600)) {
        ucs_error("%s: connection timeout %.6f s is out of range, set "
                  "UCX_SEP_CM_TIMEOUT between 1ms and 1h", params->name,
                  params->timeout);
        return UCS_ERR_INVALID_PARAM;
    }

    if (params->max_half_open < 1) {
        ucs_error("%s: nobody could connect, set UCX_SEP_CM_MAX_PENDING to 1 "
                  "at least", params->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if (params->keepalive < ucs_time_from_msec(1)) {
        ucs_error("%s: connection keepalive interval is less than 1 ms, set "
                  "UCX_SEP_CM_KEEPALIVE to more, or to inf", params->name);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((params->rx_queue_len < 1) || (params->rx_queue_len > 16384)) {
        ucs_error("%s: connection receive queue length %u is out of range, set "
                  "UCX_SEP_CM_RX_QUEUE_LEN between 1 and 16384", params->name,
                  params->rx_queue_len);
        return UCS_ERR_INVALID_PARAM;
    }

    uct_sep_device_addr_pack(&params->port, &addr);
    if (uct_sep_device_addr_check(&addr) != UCS_OK) {
        ucs_error("%s: the port has neither LID nor GID: is its subnet manager "
                  "running, and is gid index %u right?", params->name,
                  params->port.gid_index);
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

/* What makes an interface unique, and what others must not be able to guess */
static ucs_status_t uct_sep_cm_draw(uct_sep_cm_t *cm, uint64_t *id_p)
{
    struct {
        uint64_t           id;
        uct_sep_conn_key_t key;
        uint32_t           qkey;
    } UCS_S_PACKED drawn = {};
    ssize_t ret;

    do {
        ret = getrandom(&drawn, sizeof(drawn), 0);
    } while (((ret < 0) && (errno == EINTR)) ||
             ((ret == sizeof(drawn)) && (drawn.id == 0)));

    if (ret != sizeof(drawn)) {
        ucs_error("%s: getrandom() failed: %m", cm->name);
        return UCS_ERR_IO_ERROR;
    }

    *id_p        = drawn.id;
    cm->env.key  = drawn.key;
    cm->env.seed = drawn.id;
    cm->qkey     = drawn.qkey & UCT_SEP_ADDR_MAX_QKEY;
    return UCS_OK;
}

ucs_status_t uct_sep_cm_init(const uct_sep_cm_params_t *params,
                             uct_sep_cm_t **cm_p)
{
    uct_sep_cm_t *cm;
    ucs_status_t status;
    uint64_t id;

    status = uct_sep_cm_params_check(params);
    if (status != UCS_OK) {
        goto err;
    }

    cm = ucs_calloc(1, sizeof(*cm), "sep_cm");
    if (cm == NULL) {
        ucs_error("%s: could not allocate a connection manager", params->name);
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    cm->pd              = params->pd;
    cm->port            = params->port;
    cm->async           = params->async;
    cm->ops             = params->ops;
    cm->arg             = params->arg;
    cm->tx_filter       = params->tx_filter;
    cm->tx_filter_arg   = params->tx_filter_arg;
    cm->timer_id        = -1;
    cm->keepalive_id    = -1;
    cm->keepalive       = params->keepalive;
    cm->tick            = ucs_max(ucs_time_from_sec(params->timeout) /
                                  UCT_SEP_CM_TICKS, ucs_time_from_msec(1) * 2);
    cm->env.ops         = &uct_sep_cm_env_ops;
    cm->env.arg         = cm;
    cm->env.timeout     = ucs_time_from_sec(params->timeout);
    cm->env.max_timeout = cm->env.timeout * UCT_SEP_CM_MAX_BACKOFF;
    cm->env.max_retries = params->retry_count;
    cm->env.max_half_open = params->max_half_open;
    ucs_snprintf_zero(cm->name, sizeof(cm->name), "%s", params->name);
    ucs_list_head_init(&cm->timers);
    kh_init_inplace(uct_sep_cm_peers, &cm->peers);

    status = uct_sep_cm_draw(cm, &id);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_cm_ud_open(cm, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    uct_sep_device_addr_pack(&cm->port, &cm->self.dev);
    uct_sep_iface_addr_pack(cm->ud_qp->qp_num, id, cm->qkey, params->addr_flags,
                            &cm->self.iface);

    /* Last: from here on packets are answered */
    status = ucs_async_set_event_handler(uct_sep_compat_async_mode(cm->async),
                                         cm->channel->fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_sep_cm_event, cm, cm->async);
    if (status != UCS_OK) {
        ucs_error("%s: could not register the connection manager's events: %s",
                  cm->name, ucs_status_string(status));
        goto err_ud_close;
    }

    *cm_p = cm;
    return UCS_OK;

err_ud_close:
    uct_sep_cm_ud_close(cm);
err_free:
    kh_destroy_inplace(uct_sep_cm_peers, &cm->peers);
    ucs_free(cm);
err:
    return status;
}

void uct_sep_cm_cleanup(uct_sep_cm_t *cm)
{
    const uct_sep_peer_addr_t *peer;
    char conn_str[UCT_SEP_CM_CONN_STR_MAX];
    uct_sep_conn_out_t out;
    uct_sep_conn_t *conn;

    uct_sep_compat_async_block(cm->async);

    /* With the lock held no handler runs; one that is about to run can't, and
     * is waited for here. */
    ucs_async_remove_handler(cm->channel->fd, 1);
    uct_sep_cm_timer_remove(cm, &cm->timer_id);
    uct_sep_cm_keepalive_remove(cm);

    uct_sep_cm_ud_begin_close(cm);
    kh_foreach_key(&cm->peers, peer, {
        conn = uct_sep_cm_peer_conn(peer);
        if (conn->refcount > 0) {
            ucs_debug("%s: cm cleanup with %u references to %s", cm->name,
                      conn->refcount,
                      uct_sep_cm_conn_str(conn, conn_str, sizeof(conn_str)));
        }

        uct_sep_conn_farewell(conn, &out);
        if (out.actions & UCT_SEP_CONN_ACTION_SEND_DREP) {
            uct_sep_cm_send_conn(cm, conn, UCT_SEP_CONN_MSG_DREP, &out);
        }

        uct_sep_conn_close(&cm->env, conn);
        cm->ops->conn_free(cm->arg, conn);
    })
    kh_destroy_inplace(uct_sep_cm_peers, &cm->peers);

    uct_sep_cm_ud_flush_sends(cm);
    uct_sep_cm_ud_close(cm);

    uct_sep_compat_async_unblock(cm->async);

    ucs_free(cm);
}

void uct_sep_cm_get_device_address(uct_sep_cm_t *cm,
                                   uct_sep_device_addr_t *addr_p)
{
    *addr_p = cm->self.dev;
}

void uct_sep_cm_get_address(uct_sep_cm_t *cm, uct_sep_iface_addr_t *addr_p)
{
    *addr_p = cm->self.iface;
}

int uct_sep_cm_is_reachable(uct_sep_cm_t *cm, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr)
{
    return (dev_addr != NULL) &&
           uct_sep_device_addr_is_reachable(
                   &cm->port, (const uct_sep_device_addr_t*)dev_addr) &&
           ((iface_addr == NULL) ||
            (uct_sep_iface_addr_check(
                     (const uct_sep_iface_addr_t*)iface_addr) == UCS_OK));
}

static ucs_status_t uct_sep_cm_peer_check(uct_sep_cm_t *cm,
                                          const uct_sep_peer_addr_t *peer)
{
    char addr_str[UCT_SEP_ADDR_STR_MAX];
    ucs_status_t status;

    status = uct_sep_iface_addr_check(&peer->iface);
    if (status == UCS_ERR_UNSUPPORTED) {
        ucs_error("%s: peer has version %u of the connection protocol, this is "
                  "version %u: all processes of a job must use the same "
                  "version of the transport", cm->name, peer->iface.version,
                  UCT_SEP_ADDR_VERSION);
        return status;
    } else if (status != UCS_OK) {
        ucs_error("%s: invalid interface address (ud QP 0x%x id %016" PRIx64
                  ")", cm->name, uct_sep_iface_addr_qpn(&peer->iface),
                  uct_sep_iface_addr_id(&peer->iface));
        return status;
    }

    status = uct_sep_device_addr_check(&peer->dev);
    if (status != UCS_OK) {
        ucs_error("%s: invalid device address (flags 0x%x lid %u)", cm->name,
                  peer->dev.flags, ntohs(peer->dev.lid));
        return status;
    }

    if (!uct_sep_device_addr_is_reachable(&cm->port, &peer->dev)) {
        ucs_error("%s: peer's port can't be reached: %s", cm->name,
                  uct_sep_device_addr_str(&peer->dev, addr_str,
                                          sizeof(addr_str)));
        return UCS_ERR_UNREACHABLE;
    }

    return UCS_OK;
}

ucs_status_t uct_sep_cm_conn_get(uct_sep_cm_t *cm,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr,
                                 unsigned path, uct_sep_conn_t **conn_p)
{
    uct_sep_peer_addr_t peer;
    uct_sep_conn_t *conn;
    ucs_status_t status;

    memcpy(&peer.dev, dev_addr, sizeof(peer.dev));
    memcpy(&peer.iface, iface_addr, sizeof(peer.iface));

    status = uct_sep_cm_peer_check(cm, &peer);
    if (status != UCS_OK) {
        return status;
    }

    if (path >= UCT_SEP_MAX_PATHS) {
        ucs_error("%s: path %u of an endpoint: should be less than %u",
                  cm->name, path, UCT_SEP_MAX_PATHS);
        return UCS_ERR_INVALID_PARAM;
    }
    peer.dev.path = path;

    uct_sep_compat_async_block(cm->async);

    conn = uct_sep_cm_conn_find(cm, &peer);
    if (conn == NULL) {
        status = uct_sep_cm_conn_add(cm, &peer, &conn);
        if (status != UCS_OK) {
            goto out_unblock;
        }
    }

    ++conn->refcount;
    *conn_p = conn;

out_unblock:
    uct_sep_compat_async_unblock(cm->async);
    return status;
}

void uct_sep_cm_conn_put(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;

    uct_sep_compat_async_block(cm->async);

    ucs_assertv(conn->refcount > 0, "conn=%p", conn);
    if (conn->refcount == 1) {
        uct_sep_conn_unused(conn, &out);
        uct_sep_cm_perform(cm, conn, &out);
    }
    uct_sep_cm_conn_unhold(cm, conn);

    uct_sep_compat_async_unblock(cm->async);
}

void uct_sep_cm_conn_hold(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_compat_async_block(cm->async);
    ++conn->refcount;
    uct_sep_compat_async_unblock(cm->async);
}

ucs_status_t uct_sep_cm_conn_start(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;
    ucs_status_t status;

    uct_sep_compat_async_block(cm->async);
    status = uct_sep_conn_start(&cm->env, conn, ucs_get_time(), &out);
    uct_sep_cm_perform(cm, conn, &out);
    uct_sep_cm_ud_flush(cm);
    uct_sep_compat_async_unblock(cm->async);

    return status;
}

void uct_sep_cm_conn_disconnect(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;

    uct_sep_compat_async_block(cm->async);
    uct_sep_conn_disconnect(&cm->env, conn, ucs_get_time(), &out);
    uct_sep_cm_perform(cm, conn, &out);
    uct_sep_cm_ud_flush(cm);
    uct_sep_compat_async_unblock(cm->async);
}

int uct_sep_cm_conn_answer_asked(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                                 int agrees)
{
    uct_sep_conn_out_t out;
    int is_ending;

    uct_sep_compat_async_block(cm->async);
    is_ending = uct_sep_conn_answer_asked(conn, agrees, &out);
    uct_sep_cm_perform(cm, conn, &out);
    uct_sep_cm_ud_flush(cm);
    uct_sep_compat_async_unblock(cm->async);
    return is_ending;
}

int uct_sep_cm_progress(uct_sep_cm_t *cm)
{
    int is_connecting;

    uct_sep_compat_async_block(cm->async);
    uct_sep_cm_ud_drain(cm);
    is_connecting = !ucs_list_is_empty(&cm->timers);
    uct_sep_compat_async_unblock(cm->async);

    return is_connecting;
}

void uct_sep_cm_conn_error(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;

    uct_sep_compat_async_block(cm->async);
    uct_sep_conn_reset(&cm->env, conn, ucs_get_time(), &out);
    uct_sep_cm_perform(cm, conn, &out);
    uct_sep_cm_ud_flush(cm);
    uct_sep_compat_async_unblock(cm->async);
}

void uct_sep_cm_fail(uct_sep_cm_t *cm, ucs_status_t status)
{
    const uct_sep_peer_addr_t *peer;
    uct_sep_conn_t *conn;
    int is_wanted;

    uct_sep_compat_async_block(cm->async);
    kh_foreach_key(&cm->peers, peer, {
        conn         = uct_sep_cm_peer_conn(peer);
        is_wanted    = conn->flags & UCT_SEP_CONN_FLAG_WANTED;
        conn->flags &= ~UCT_SEP_CONN_FLAG_WANTED;
        uct_sep_conn_close(&cm->env, conn);
        if (is_wanted) {
            cm->ops->failed(cm->arg, conn, status);
        }
    })
    uct_sep_compat_async_unblock(cm->async);
}

void uct_sep_cm_get_stats(uct_sep_cm_t *cm, uct_sep_cm_stats_t *stats_p)
{
    uct_sep_compat_async_block(cm->async);
    *stats_p = cm->stats;
    uct_sep_compat_async_unblock(cm->async);
}
