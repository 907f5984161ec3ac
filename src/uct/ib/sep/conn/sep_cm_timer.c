/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/conn/sep_cm_int.h>

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/time/time.h>

/* Interfaces of the process that may have a timer for a long time; others look
 * when somebody connects. UCX 1.13.1 aborts if 150 timers expire at once
 * (ucs_async_dispatch_timerq, ALLOCA_MAX), and handshakes need some, too. */
#define UCT_SEP_CM_MAX_KEEPALIVE  48


/* How many have one; atomic */
static unsigned uct_sep_cm_num_keepalive;


/*
 * Repetitions
 */

void uct_sep_cm_timer_remove(const uct_sep_cm_t *cm, int *timer_id_p)
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

void uct_sep_cm_timer_start(uct_sep_cm_t *cm)
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

void uct_sep_cm_timer_update(uct_sep_cm_t *cm, uct_sep_conn_t *conn)
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

/* Established, and nobody here refers to it */
static int uct_sep_cm_conn_is_unused(const uct_sep_conn_t *conn)
{
    return (conn->refcount == 0) &&
           ((conn->state == UCT_SEP_CONN_STATE_CONNECTED) ||
            (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING));
}

void uct_sep_cm_keepalive_remove(uct_sep_cm_t *cm)
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
void uct_sep_cm_keepalive_update(uct_sep_cm_t *cm, const uct_sep_conn_t *conn)
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
void uct_sep_cm_keepalive_check(uct_sep_cm_t *cm)
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
