/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/ep/sep_evict.h>
#include <uct/ib/sep/base/sep_budget.h>
#include <uct/ib/sep/base/sep_budget_node.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/iface/sep_event.h>

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>
#include <endian.h>
#include <limits.h>
#include <string.h>


/* So long after another one, or after it began to wait, a connection is made
 * that there is no room for: peers that don't progress their workers, perhaps
 * since they wait for this one, don't agree to anything. The unit is the time
 * that the manager waits for an answer. */
#define UCT_SEP_EVICT_PATIENCE  5

/* The least number of times that the worker looks for room meanwhile, and asks
 * others: where it does not progress, it has nobody to be impatient with */
#define UCT_SEP_EVICT_LOOKS     16

/* New connections, and those that are used, are kept for as long as so many
 * take to be made, if half of the worker's are not fewer */
#define UCT_SEP_EVICT_GRACE     8

/* If all that there are were spared so many times, and nobody made room for as
 * long as so many connections take to be made, one that is used has to go. As
 * long, its peer may wait for a moment in which nothing is under way. */
#define UCT_SEP_EVICT_SPARED    4
#define UCT_SEP_EVICT_USED      8


/* Queue pairs of a connection */
static unsigned uct_sep_evict_width(int is_split)
{
    return is_split ? 2 : 1;
}

static unsigned
uct_sep_evict_link_width(const uct_sep_iface_t *iface,
                         const uct_sep_link_t *link)
{
    return uct_sep_evict_width(uct_sep_link_is_split(iface, &link->super));
}

/* What is left to those who connect to us */
static unsigned uct_sep_evict_reserve(const uct_sep_iface_t *iface)
{
    return uct_sep_evict_width(iface->channel.own != NULL);
}

/* A connection of its own, and what is left to others */
static unsigned uct_sep_evict_min(const uct_sep_iface_t *iface)
{
    return 2 * uct_sep_evict_reserve(iface);
}

static int uct_sep_evict_has_budget(const uct_sep_iface_t *iface)
{
    return (iface->conn.budget.shared != NULL) ||
           (iface->conn.budget.node != NULL);
}

/* In the process */
static long uct_sep_evict_share(const uct_sep_iface_t *iface)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;

    return (budget->shared == NULL) ? LONG_MAX :
           uct_sep_budget_share(budget->shared, budget->max,
                                uct_sep_evict_min(iface));
}

/* Whether there is room for so many queue pairs more; there always is for one
 * connection. The node's account has them from then on. */
static int uct_sep_evict_has_room(uct_sep_iface_t *iface, unsigned count)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;
    int is_forced = (budget->held == 0) || budget->is_exceeded;

    count += budget->held;
    if (!is_forced && (count > uct_sep_evict_share(iface))) {
        return 0;
    }

    return (budget->node == NULL) ||
           (count <= uct_sep_budget_node_held(budget->node)) ||
           uct_sep_budget_node_hold(budget->node, count, is_forced);
}

/* Give back to the node what is more than the queue pairs, and the place for
 * others that was taken with them */
static void uct_sep_evict_trim(uct_sep_iface_t *iface)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;
    unsigned count = (budget->held > 0) ?
                     (budget->held + uct_sep_evict_reserve(iface)) : 0;

    if ((budget->node != NULL) &&
        (count < uct_sep_budget_node_held(budget->node))) {
        uct_sep_budget_node_hold(budget->node, count, 1);
    }
}

/* Whether there is room for a connection that is begun here */
static int uct_sep_evict_may_start(uct_sep_iface_t *iface,
                                   const uct_sep_link_t *link)
{
    return uct_sep_evict_has_room(iface, uct_sep_evict_link_width(iface, link) +
                                         uct_sep_evict_reserve(iface));
}

/*
 * Those that wait. They have a reference.
 */

static unsigned uct_sep_evict_progress(void *arg);

static void uct_sep_evict_begin_wait(uct_sep_ep_budget_t *budget)
{
    budget->looked     = ucs_get_time();
    budget->deadline   = budget->looked + budget->patience;
    budget->num_spared = 0;
}

/* With the async context blocked, maybe in the async thread */
static ucs_status_t
uct_sep_evict_wait(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    uct_sep_link_t **waiting;
    unsigned size;

    if (link->is_waiting) {
        return UCS_OK;
    }

    if (budget->tail == budget->size) {
        if (budget->head > 0) {
            memmove(budget->waiting, budget->waiting + budget->head,
                    (budget->tail - budget->head) * sizeof(*waiting));
            budget->tail -= budget->head;
            budget->head  = 0;
        } else {
            size    = ucs_max(2 * budget->size, 16);
            waiting = ucs_realloc(budget->waiting, size * sizeof(*waiting),
                                  "sep_evict_waiting");
            if (waiting == NULL) {
                ucs_error("%s: no memory for a connection that waits",
                          iface->port.name);
                return UCS_ERR_NO_MEMORY;
            }
            budget->waiting = waiting;
            budget->size    = size;
        }
    }

    if (budget->head == budget->tail) {
        uct_sep_evict_begin_wait(budget);
    }
    budget->waiting[budget->tail++] = link;
    link->is_waiting                = 1;
    ++budget->num_waits;
    uct_sep_cm_conn_hold(iface->conn.cm, &link->super);
    uct_worker_progress_register_safe(&iface->super.worker->super,
                                      uct_sep_evict_progress, iface, 0,
                                      &budget->progress_id);
    uct_sep_event_signal(iface);
    return UCS_OK;
}

/* Whether somebody still wants it to be made. Endpoints do, even if the peer is
 * making it just now: he may give up. */
static int uct_sep_evict_is_wanted(const uct_sep_link_t *link)
{
    const uct_sep_ep_t *ep;

    ucs_list_for_each(ep, &link->eps, list) {
        if (ep->flags & UCT_SEP_EP_FLAG_CONNECTING) {
            return 1;
        }
    }
    return link->is_called && (link->super.state == UCT_SEP_CONN_STATE_IDLE);
}

/* A worker that progresses looks more often */
static ucs_time_t
uct_sep_evict_look_time(const uct_sep_ep_budget_t *budget)
{
    return budget->patience / UCT_SEP_EVICT_LOOKS;
}

/* There is no room: whether to wait for it */
static int uct_sep_evict_is_patient(uct_sep_ep_budget_t *budget)
{
    ucs_time_t now  = ucs_get_time();
    ucs_time_t most = uct_sep_evict_look_time(budget);
    ucs_time_t time = now - budget->looked;

    budget->deadline += time - ucs_min(time, most);
    budget->looked    = now;
    return now < budget->deadline;
}

/* Start those for which there is room; returns how many were looked at */
static unsigned uct_sep_evict_serve(uct_sep_iface_t *iface)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    unsigned count              = 0;
    uct_sep_link_t *link;
    ucs_status_t status;
    int is_wanted;

    while (budget->head < budget->tail) {
        link      = budget->waiting[budget->head];
        is_wanted = uct_sep_evict_is_wanted(link);
        if (is_wanted && !iface->conn.async.is_dead &&
            (link->super.state == UCT_SEP_CONN_STATE_IDLE) &&
            !uct_sep_evict_may_start(iface, link)) {
            if (uct_sep_evict_is_patient(budget)) {
                break;
            }
            ucs_info("%s: nobody makes room for a connection, which is beyond "
                     "the budget", iface->port.name);
            budget->is_exceeded = 1;
            ++budget->num_exceeded;
        }

        uct_sep_evict_begin_wait(budget);
        ++budget->head;
        ++count;
        link->is_waiting = 0;
        link->is_called  = 0;
        if (is_wanted) {
            status = iface->conn.async.is_dead ?
                     UCS_ERR_IO_ERROR : uct_sep_link_start(iface, link);
            if ((status != UCS_OK) && (status != UCS_INPROGRESS) &&
                (status != UCS_ERR_NO_RESOURCE)) {
                uct_sep_link_cm_ops.failed(iface, &link->super, status);
            }
        }
        budget->is_exceeded = 0;
        uct_sep_cm_conn_put(iface->conn.cm, &link->super);
    }
    return count;
}

/*
 * The clock
 */

/* Whether nothing of a connection is under way on our side */
static int
uct_sep_evict_is_quiet(uct_sep_iface_t *iface, const uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;
    const uct_sep_ep_t *ep;

    ucs_list_for_each(ep, &link->eps, list) {
        if (!ucs_queue_is_empty(&ep->pending)) {
            return 0;
        }
    }

    return !(txwq->fc.flags & UCT_SEP_FC_FLAG_DUE) &&
           uct_sep_eager_is_quiet(iface, txwq) &&
           uct_sep_link_is_idle(iface, txwq);
}

/* It is not to be given up for a while */
static void uct_sep_evict_keep(const uct_sep_iface_t *iface,
                               uct_sep_txwq_t *txwq, ucs_time_t now)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;
    ucs_time_t grace                  =
            (budget->connect_time *
             ucs_min(budget->held, 2 * UCT_SEP_EVICT_GRACE)) / 2;

    /* Who waits is to have something to choose from */
    txwq->conn.kept_until = now + ucs_min(grace, budget->patience / 2);
}

/* A visit: whether our side has no use for the connection, or, if it is urgent,
 * none at the moment. With the async context blocked. */
static int uct_sep_evict_visit(uct_sep_iface_t *iface,
                               const uct_sep_link_t *link, int is_urgent,
                               ucs_time_t now)
{
    uct_sep_txwq_t *txwq = link->txwq;
    int is_used          = txwq->conn.visited_pi != txwq->sw_pi;
    int is_quiet         = uct_sep_evict_is_quiet(iface, link);

    /* To look has perhaps posted something, which is nobody's use */
    txwq->conn.visited_pi = txwq->sw_pi;
    if (is_used && (now >= txwq->conn.kept_until)) {
        uct_sep_evict_keep(iface, txwq, now);
    }
    return is_quiet && (is_urgent || !is_used);
}

/* Whether the peer has been asked, and is likely to answer in a moment */
static int uct_sep_evict_is_asked(const uct_sep_conn_t *conn)
{
    return (conn->state == UCT_SEP_CONN_STATE_DISCONNECTING) &&
           (conn->deadline != 0) && (conn->retries == 0);
}

/* Whether an active connection ends by itself: it is over, or is being given
 * up, or the peer has been asked, urgently if only that counts, and will have
 * answered in a moment */
static int
uct_sep_evict_is_leaving(const uct_sep_link_t *link, int is_urgent)
{
    const uct_sep_conn_t *conn;

    if (link == NULL) {
        return 1;
    }

    conn = &link->super;
    return (conn->state == UCT_SEP_CONN_STATE_RESETTING) ||
           (uct_sep_evict_is_asked(conn) &&
            (!is_urgent || (conn->flags & UCT_SEP_CONN_FLAG_URGENT)));
}

/* Queue pairs that will be free by themselves */
static unsigned uct_sep_evict_num_leaving(const uct_sep_iface_t *iface,
                                          int is_urgent)
{
    unsigned count = 0;
    const uct_sep_txwq_t *txwq;

    ucs_list_for_each(txwq, &iface->conn.retired, conn.list) {
        count += uct_sep_evict_width(txwq->conn.responder != NULL);
    }
    ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
        if (uct_sep_evict_is_leaving(txwq->conn.link, is_urgent)) {
            count += uct_sep_evict_width(txwq->conn.responder != NULL);
        }
    }
    return count;
}

/* How many queue pairs should be given up for those that wait */
static long uct_sep_evict_num_needed(const uct_sep_iface_t *iface)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;
    long share                        = uct_sep_evict_share(iface);
    long needed;
    unsigned i;

    if (budget->node != NULL) {
        share = ucs_min(share, uct_sep_budget_node_allowance(budget->node));
    }

    /* There are never more than the share */
    needed = (long)budget->held + uct_sep_evict_reserve(iface) - share -
             (long)uct_sep_evict_num_leaving(iface, 0);
    for (i = budget->head; (i < budget->tail) && (needed < share); ++i) {
        needed += uct_sep_evict_link_width(iface, budget->waiting[i]);
    }
    return needed;
}

/* Who was asked and has not answered was perhaps killed. His adapter answers,
 * if there is one: once for each time that we ask. */
static void
uct_sep_evict_probe(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_conn_t *conn = &link->super;
    uct_sep_txwq_t *txwq = link->txwq;

    if ((conn->state != UCT_SEP_CONN_STATE_DISCONNECTING) ||
        uct_sep_evict_is_asked(conn) || !uct_sep_link_is_idle(iface, txwq)) {
        return;
    }

    if (txwq->conn.visited_pi == txwq->sw_pi) {
        uct_sep_link_probe(iface, txwq);
    } else if (conn->deadline == 0) {
        txwq->conn.visited_pi = txwq->sw_pi;
        uct_sep_cm_conn_disconnect(iface->conn.cm, conn, 0);
    }
}

/* Whether one has to go though all are used, and none has been asked for that
 * yet. Time counts as for patience. */
static int uct_sep_evict_is_urgent(uct_sep_iface_t *iface,
                                   unsigned num_active)
{
    const uct_sep_ep_budget_t *budget = &iface->conn.budget;
    ucs_time_t waited                 = budget->looked + budget->patience -
                                        budget->deadline;

    return (budget->num_spared >= (UCT_SEP_EVICT_SPARED * num_active)) &&
           (waited >= (UCT_SEP_EVICT_USED * budget->connect_time)) &&
           (uct_sep_evict_num_leaving(iface, 1) == 0);
}

/* The hand goes round once, at most; returns how many were asked */
static unsigned uct_sep_evict_sweep(uct_sep_iface_t *iface)
{
    long needed     = uct_sep_evict_num_needed(iface);
    unsigned count  = 0;
    unsigned length = ucs_list_length(&iface->conn.active);
    ucs_time_t now  = ucs_get_time();
    int is_urgent   = uct_sep_evict_is_urgent(iface, length);
    uct_sep_txwq_t *txwq;
    uct_sep_link_t *link;

    for (; (length > 0) && (needed > 0) &&
           !ucs_list_is_empty(&iface->conn.active); --length) {
        txwq = ucs_list_extract_head(&iface->conn.active, uct_sep_txwq_t,
                                     conn.list);
        ucs_list_add_tail(&iface->conn.active, &txwq->conn.list);
        link = txwq->conn.link;
        if ((link == NULL) || link->has_event) {
            /* It is over; or the event may be a refusal: endpoints go on
             * first */
            continue;
        }

        if (!uct_sep_cm_conn_is_usable(&link->super)) {
            uct_sep_evict_probe(iface, link);
            continue;
        }

        if (!is_urgent && (txwq->conn.pause > 0)) {
            --txwq->conn.pause;
            ++iface->conn.budget.num_spared;
            continue;
        }

        if (now < txwq->conn.kept_until) {
            txwq->conn.visited_pi = txwq->sw_pi;
            continue;
        }

        if (!uct_sep_evict_visit(iface, link, is_urgent, now)) {
            ++iface->conn.budget.num_spared;
            continue;
        }

        needed -= uct_sep_evict_width(txwq->conn.responder != NULL);
        ++count;
        ++iface->conn.budget.num_asked;
        uct_sep_link_unbind_all(link);
        ucs_assert(uct_sep_txwq_is_empty(txwq));
        uct_sep_cm_conn_disconnect(iface->conn.cm, &link->super, is_urgent);
        is_urgent = 0;
    }
    return count;
}

static unsigned uct_sep_evict_progress(void *arg)
{
    uct_sep_iface_t *iface      = arg;
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    unsigned count;

    uct_sep_compat_async_block(iface->super.worker->async);
    count = uct_sep_evict_serve(iface);
    if (budget->head == budget->tail) {
        budget->head = budget->tail = 0;
        uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                            &budget->progress_id);
    } else if (!iface->conn.in_dispatch && (iface->tx.in_finish == 0)) {
        /* Nobody up the stack is using a connection */
        count += uct_sep_evict_sweep(iface);
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);
    return count;
}

/*
 * Interface to the connections
 */

/* There is no room: whether a peer gets a connection beyond the share, as the
 * worker does not progress: nobody is asked for room then, and the user may be
 * waiting for what the peer is to write. There may be one more for each time
 * that a connection waits here, and as many the next time that the worker does
 * not look for a while. Maybe in the async thread. */
static int uct_sep_evict_let_in(uct_sep_iface_t *iface,
                                const uct_sep_link_t *link, unsigned count)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    ucs_time_t now              = ucs_get_time();

    if ((link->super.flags & UCT_SEP_CONN_FLAG_WANTED) ||
        (budget->head == budget->tail) ||
        ((now - budget->looked) < uct_sep_evict_look_time(budget))) {
        return 0;
    }

    if ((budget->held + count) > budget->let_in) {
        if ((now - budget->looked) < budget->patience) {
            return 0;
        }

        ucs_info("%s: the worker does not progress, so a peer's connection is "
                 "beyond the budget", iface->port.name);
        budget->deadline += now - budget->looked;
        budget->looked    = now;
        budget->let_in    = budget->held + count;
    }

    budget->is_exceeded = 1;
    ++budget->num_exceeded;
    return uct_sep_evict_has_room(iface, count);
}

ucs_status_t uct_sep_evict_take(uct_sep_iface_t *iface, uct_sep_link_t *link,
                                int is_split)
{
    unsigned width = uct_sep_evict_width(is_split);
    /* A lost or sleeping connection that is begun anew, by the manager, is one
     * of ours as well */
    unsigned count = (link->super.flags & UCT_SEP_CONN_FLAG_WANTED) ?
                     (width + uct_sep_evict_reserve(iface)) : width;
    ucs_status_t status;

    if (uct_sep_evict_has_budget(iface) &&
        !uct_sep_evict_has_room(iface, count) &&
        !uct_sep_evict_let_in(iface, link, count)) {
        status = uct_sep_evict_wait(iface, link);
        if (status != UCS_OK) {
            return status;
        }

        link->is_called = 1;
        return UCS_ERR_NO_RESOURCE;
    }

    /* One connection exceeds the share, not those that are begun meanwhile */
    iface->conn.budget.is_exceeded = 0;
    iface->conn.budget.held       += width;
    return UCS_OK;
}

void uct_sep_evict_give(uct_sep_iface_t *iface, int is_split)
{
    iface->conn.budget.held -= uct_sep_evict_width(is_split);
    uct_sep_evict_trim(iface);
}

ucs_status_t uct_sep_evict_start(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    ucs_status_t status;

    if (!uct_sep_evict_has_budget(iface)) {
        return uct_sep_link_start(iface, link);
    }

    uct_sep_compat_async_block(iface->super.worker->async);
    if ((link->super.state != UCT_SEP_CONN_STATE_IDLE) ||
        ((budget->head == budget->tail) &&
         uct_sep_evict_may_start(iface, link))) {
        status = uct_sep_link_start(iface, link);
    } else {
        status = uct_sep_evict_wait(iface, link);
        status = (status == UCS_OK) ? UCS_INPROGRESS : status;
    }
    uct_sep_compat_async_unblock(iface->super.worker->async);

    /* It waits */
    return (status == UCS_ERR_NO_RESOURCE) ? UCS_INPROGRESS : status;
}

void uct_sep_evict_handle_answered(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    unsigned i;

    if (!link->is_waiting || (link->super.refcount > 2)) {
        return; /* Endpoints may want it still */
    }

    for (i = budget->head; budget->waiting[i] != link; ++i);
    memmove(budget->waiting + i, budget->waiting + i + 1,
            (budget->tail - i - 1) * sizeof(*budget->waiting));
    --budget->tail;
    link->is_waiting = 0;
    link->is_called  = 0;
    uct_sep_cm_conn_put(iface->conn.cm, &link->super);
}

void uct_sep_evict_handle_made(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_ep_budget_t *budget = &iface->conn.budget;
    uct_sep_txwq_t *txwq        = link->txwq;
    ucs_time_t took             = txwq->conn.took;

    /* The least, as packets may be lost, and peers may be late. Nobody answers
     * with oneself. */
    if (!(link->super.flags & UCT_SEP_CONN_FLAG_SELF) &&
        ((budget->connect_time == 0) || (took < budget->connect_time))) {
        budget->connect_time = took;
    }
    uct_sep_evict_keep(iface, txwq, ucs_get_time());
    link->refusals = 0;
}

void uct_sep_evict_handle_refused(uct_sep_link_t *link)
{
    link->txwq->conn.pause = 1 << link->refusals;
    link->refusals         = ucs_min(link->refusals + 1, 6);
}

/* An urgent question is put off while something is under way, for some time:
 * who does one thing after another has a moment without whenever something has
 * completed. The peer does not use the connection meanwhile. */
static int uct_sep_evict_put_off(uct_sep_iface_t *iface,
                                 const uct_sep_link_t *link, ucs_time_t now)
{
    uct_sep_txwq_t *txwq = link->txwq;

    if (!iface->conn.in_dispatch && (iface->tx.in_finish == 0) &&
        uct_sep_evict_is_quiet(iface, link)) {
        return 0;
    }

    if (txwq->conn.num_put_off == 0) {
        txwq->conn.put_off = now;
    }

    if (txwq->conn.num_put_off < UCT_SEP_EVICT_LOOKS) {
        ++txwq->conn.num_put_off;
        return 1;
    }
    return (now - txwq->conn.put_off) <
           (UCT_SEP_EVICT_USED * iface->conn.budget.connect_time);
}

int uct_sep_evict_handle_asked(uct_sep_iface_t *iface, uct_sep_link_t *link)
{
    uct_sep_txwq_t *txwq = link->txwq;
    int is_urgent        = uct_sep_cm_conn_is_urgent(&link->super);
    ucs_time_t now       = ucs_get_time();
    int agrees           = 0;

    if ((txwq != NULL) && (txwq->flags & UCT_SEP_TXWQ_FLAG_ACTIVE) &&
        uct_sep_cm_conn_is_usable(&link->super)) {
        if (is_urgent && uct_sep_evict_put_off(iface, link, now)) {
            return 0;
        }

        txwq->conn.num_put_off = 0;
        agrees = uct_sep_evict_visit(iface, link, is_urgent, now);
    }

    if (uct_sep_cm_conn_answer_asked(iface->conn.cm, &link->super, agrees)) {
        uct_sep_link_unbind_all(link);
    }
    return 1;
}

ucs_status_t uct_sep_evict_open(uct_sep_iface_t *iface, double timeout)
{
    const uct_sep_device_t *dev = &uct_sep_iface_md(iface)->dev;
    unsigned long min           = uct_sep_evict_min(iface);
    ucs_status_t status         = UCS_OK;

    iface->conn.budget.max      = iface->config.max_qps;
    iface->conn.budget.patience = ucs_time_from_sec(UCT_SEP_EVICT_PATIENCE *
                                                    timeout);
    if (iface->config.max_qps != UCS_ULUNITS_INF) {
        status = uct_sep_budget_join(dev->name, iface->config.max_qps, min,
                                     &iface->conn.budget.shared);
    }

    if ((status == UCS_OK) && (iface->config.max_qps_node != UCS_ULUNITS_INF)) {
        status = uct_sep_budget_node_join(
                dev->name, be64toh(dev->attr.orig_attr.sys_image_guid),
                iface->config.max_qps_node, min, &iface->conn.budget.node);
        if (status != UCS_OK) {
            uct_sep_evict_close(iface);
        }
    }
    return status;
}

void uct_sep_evict_stop(uct_sep_iface_t *iface)
{
    uct_worker_progress_unregister_safe(&iface->super.worker->super,
                                        &iface->conn.budget.progress_id);
    iface->conn.budget.head = iface->conn.budget.tail = 0;
}

void uct_sep_evict_close(uct_sep_iface_t *iface)
{
    ucs_free(iface->conn.budget.waiting);
    if (iface->conn.budget.node != NULL) {
        uct_sep_budget_node_leave(iface->conn.budget.node);
    }
    if (iface->conn.budget.shared != NULL) {
        uct_sep_budget_leave(iface->conn.budget.shared);
    }
}
