/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/conn/sep_conn_msg.h>

#include <ucs/debug/log.h>
#include <ucs/time/time.h>

#include <string.h>

#define uct_sep_cm_count_drop(_cm, _counter, _level, _fmt, ...) \
    uct_sep_cm_count(_cm, _counter, _level, "cm dropped a packet: " _fmt, \
                     ##__VA_ARGS__)


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

void uct_sep_cm_send_conn(uct_sep_cm_t *cm, const uct_sep_conn_t *conn,
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
    uct_sep_iface_addr_pack(cm->ud_qp->qp_num, msg->dst_id,
                            uct_sep_iface_addr_flags(&cm->self.iface),
                            &rej.src.iface);
    uct_sep_cm_send(cm, &msg->src, &rej);
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
    uint8_t flags = uct_sep_iface_addr_flags(&cm->self.iface) |
                    uct_sep_iface_addr_flags(&msg->src.iface);
    int is_split  = !!(flags & UCT_SEP_IFACE_ADDR_FLAG_SPLIT);

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

void uct_sep_cm_event(int fd, ucs_event_set_types_t events, void *arg)
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
