/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/conn/sep_cm_int.h>
#include <uct/ib/sep/conn/sep_conn_msg.h>
#include <uct/ib/sep/port/sep_addr_rdmacm.h>

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


KHASH_IMPL(uct_sep_cm_peers, const uct_sep_peer_addr_t*, char, 0,
           uct_sep_peer_addr_hash, uct_sep_peer_addr_equal)


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

/* Returns whether a connection has been given up here, without the user; with
 * a reference of our own */
static int uct_sep_cm_conn_let_go(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;

    if ((conn->state != UCT_SEP_CONN_STATE_RESETTING) ||
        (conn->refcount > 1) || !cm->ops->let_go(cm->arg, conn)) {
        return 0;
    }

    uct_sep_conn_reset(&cm->env, conn, ucs_get_time(), &out);
    uct_sep_cm_perform(cm, conn, &out);
    return 1;
}

void uct_sep_cm_perform(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
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
        if (!uct_sep_cm_conn_let_go(cm, conn)) {
            cm->ops->failed(cm->arg, conn, out->status);
        }
    }

    if (out->actions & UCT_SEP_CONN_ACTION_ASKED) {
        cm->ops->asked(cm->arg, conn);
    }

    uct_sep_cm_conn_unhold(cm, conn);
}

uct_sep_conn_t *uct_sep_cm_conn_find(uct_sep_cm_t *cm,
                                     const uct_sep_peer_addr_t *peer)
{
    khiter_t iter = kh_get(uct_sep_cm_peers, &cm->peers, peer);

    if (iter == kh_end(&cm->peers)) {
        return NULL;
    }

    return uct_sep_cm_peer_conn(kh_key(&cm->peers, iter));
}

ucs_status_t uct_sep_cm_conn_add(uct_sep_cm_t *cm,
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
    conn->refcount = kh_get(uct_sep_cm_peers, &cm->known, peer) !=
                     kh_end(&cm->known);
    *conn_p        = conn;
    return UCS_OK;
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
    } UCS_S_PACKED drawn = {};
    ssize_t ret;

    do {
        ret = getrandom(&drawn, sizeof(drawn), 0);
    } while (((ret < 0) && (errno == EINTR)) ||
             ((ret == sizeof(drawn)) &&
              ((drawn.id & UCT_SEP_ADDR_MAX_ID) == 0)));

    if (ret != sizeof(drawn)) {
        ucs_error("%s: getrandom() failed: %m", cm->name);
        return UCS_ERR_IO_ERROR;
    }

    *id_p        = drawn.id & UCT_SEP_ADDR_MAX_ID;
    cm->env.key  = drawn.key;
    cm->env.seed = drawn.id;
    cm->qkey     = uct_sep_addr_qkey(*id_p);
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
    kh_init_inplace(uct_sep_cm_peers, &cm->known);

    status = uct_sep_cm_draw(cm, &id);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_cm_ud_open(cm, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    uct_sep_device_addr_pack(&cm->port, &cm->self.dev);
    uct_sep_iface_addr_pack(cm->ud_qp->qp_num, id, params->addr_flags,
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
    kh_destroy_inplace(uct_sep_cm_peers, &cm->known);
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
    kh_destroy_inplace(uct_sep_cm_peers, &cm->known);

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
    uct_sep_device_addr_t addr;

    if (dev_addr == NULL) {
        return 0;
    }

    uct_sep_device_addr_read(&cm->port, dev_addr, &addr);
    return uct_sep_device_addr_is_reachable(&cm->port, &addr) &&
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

ucs_status_t uct_sep_cm_peer_add(uct_sep_cm_t *cm,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr,
                                 unsigned path, uct_sep_peer_addr_t *peer_p,
                                 uct_sep_conn_t **conn_p)
{
    uct_sep_conn_t *conn;
    ucs_status_t status;
    int ret;

    uct_sep_device_addr_read(&cm->port, dev_addr, &peer_p->dev);
    memcpy(&peer_p->iface, iface_addr, sizeof(peer_p->iface));

    status = uct_sep_cm_peer_check(cm, peer_p);
    if (status != UCS_OK) {
        return status;
    }

    if (path >= UCT_SEP_MAX_PATHS) {
        ucs_error("%s: path %u of an endpoint: should be less than %u",
                  cm->name, path, UCT_SEP_MAX_PATHS);
        return UCS_ERR_INVALID_PARAM;
    }
    peer_p->dev.path = path;

    uct_sep_compat_async_block(cm->async);

    conn = uct_sep_cm_conn_find(cm, peer_p);
    if (conn == NULL) {
        kh_put(uct_sep_cm_peers, &cm->known, peer_p, &ret);
        if (ret == UCS_KH_PUT_FAILED) {
            ucs_error("%s: no memory for the table of peers", cm->name);
            status = UCS_ERR_NO_MEMORY;
            goto out_unblock;
        } else if (ret == UCS_KH_PUT_KEY_PRESENT) {
            status = uct_sep_cm_conn_add(cm, peer_p, &conn);
            if (status != UCS_OK) {
                goto out_unblock;
            }
        }
    }

    if (conn != NULL) {
        ++conn->refcount;
    }
    *conn_p = conn;

out_unblock:
    uct_sep_compat_async_unblock(cm->async);
    return status;
}

/* Returns the key of a peer that was known, or NULL */
static const uct_sep_peer_addr_t *
uct_sep_cm_peer_forget(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer)
{
    khiter_t iter = kh_get(uct_sep_cm_peers, &cm->known, peer);

    if (iter == kh_end(&cm->known)) {
        return NULL;
    }

    peer = kh_key(&cm->known, iter);
    kh_del(uct_sep_cm_peers, &cm->known, iter);
    return peer;
}

void uct_sep_cm_peer_remove(uct_sep_cm_t *cm, const uct_sep_peer_addr_t *peer)
{
    uct_sep_conn_t *conn;

    uct_sep_compat_async_block(cm->async);
    uct_sep_cm_peer_forget(cm, peer);
    conn = uct_sep_cm_conn_find(cm, peer);
    if (conn != NULL) {
        uct_sep_cm_conn_put(cm, conn);
    }
    uct_sep_compat_async_unblock(cm->async);
}

ucs_status_t uct_sep_cm_peer_get_conn(uct_sep_cm_t *cm,
                                      const uct_sep_peer_addr_t *peer,
                                      uct_sep_conn_t **conn_p)
{
    ucs_status_t status = UCS_OK;

    uct_sep_compat_async_block(cm->async);
    *conn_p = uct_sep_cm_conn_find(cm, peer);
    if (*conn_p == NULL) {
        status = uct_sep_cm_conn_add(cm, peer, conn_p);
    }
    if (status == UCS_OK) {
        uct_sep_cm_peer_forget(cm, peer);
    }
    uct_sep_compat_async_unblock(cm->async);
    return status;
}

uct_sep_peer_addr_t *uct_sep_cm_conn_take_peer(uct_sep_cm_t *cm,
                                               const uct_sep_conn_t *conn)
{
    const uct_sep_peer_addr_t *peer;

    uct_sep_compat_async_block(cm->async);
    peer = uct_sep_cm_peer_forget(cm, &conn->peer);
    uct_sep_compat_async_unblock(cm->async);
    return (uct_sep_peer_addr_t*)peer;
}

void uct_sep_cm_conn_put(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
{
    uct_sep_conn_out_t out;

    uct_sep_compat_async_block(cm->async);

    ucs_assertv(conn->refcount > 0, "conn %p", conn);
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

void uct_sep_cm_conn_disconnect(uct_sep_cm_t *cm, uct_sep_conn_t *conn,
                                int is_urgent)
{
    uct_sep_conn_out_t out;

    uct_sep_compat_async_block(cm->async);
    uct_sep_conn_disconnect(&cm->env, conn, is_urgent, ucs_get_time(), &out);
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

int uct_sep_cm_heard(uct_sep_cm_t *cm, uint32_t qpn)
{
    int is_heard = 0;
    uct_sep_conn_out_t out;
    uct_sep_conn_t *conn;

    uct_sep_compat_async_block(cm->async);
    /* Whoever waits has a deadline */
    ucs_list_for_each(conn, &cm->timers, timer_link) {
        if (uct_sep_conn_heard(&cm->env, conn, qpn, &out)) {
            uct_sep_cm_perform(cm, conn, &out);
            is_heard = 1;
            break;
        }
    }
    uct_sep_compat_async_unblock(cm->async);
    return is_heard;
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
