/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EVICT_H
#define UCT_SEP_EVICT_H

#include <uct/ib/sep/ep/sep_link.h>

BEGIN_C_DECLS

/**
 * @file sep_evict.h
 *
 * Any number of peers on a bounded number of queue pairs (UCX_SEP_MAX_QPS,
 * UCX_SEP_MAX_QPS_NODE). A connection for which there is no room waits, and
 * others are asked to fall asleep: their endpoints stay, and connect again when
 * they send.
 *
 * - Who is asked: a clock over the connections of the interface. The hand
 *   passes each once per progress of the worker, as long as somebody waits. It
 *   takes those that have posted nothing since its last visit and have nothing
 *   under way. The data path does nothing for it: the index of the next work
 *   request tells.
 * - Who is kept: a connection that is new, for a time in which half of the
 *   worker's could be made, or eight if those are fewer, and at most half of
 *   what others wait; and again when it is then seen to be used. So who waits
 *   is not served later than connections can be made. What one takes is
 *   measured, until it is established, not until the worker looks. That is for
 *   the hand only, and the peer is not asked in vain.
 * - If all are used: nobody has made room for as long as eight connections take
 *   to be made, and the hand has spared each a few times. Then the next one
 *   of which nothing is under way has to go, used or not, and the peer is told
 *   so. Who asks others again and again, as for a lock, would have his
 *   connection for ever, and perhaps wait for one who has none. One is asked at
 *   a time, so each is kept for eight times as long as it takes to make as many
 *   as there are.
 * - What has been asked is not used by its endpoints until the peer has
 *   answered. The peer agrees if the same holds for its side, and its visit by
 *   the question counts as one of the hand. So nothing of either side is under
 *   way when the queue pairs go: all work requests have completed, and the
 *   rings are empty. Windows of flow control and rings begin anew.
 * - Room: a worker holds no more than its share. One connection's worth of it
 *   is never taken by those that it begins itself, so who connects to it can
 *   always be answered in the end: what is there is either about to be
 *   established by a peer that has its queue pair already, or established, and
 *   then its work completes. So workers don't wait for each other in a circle.
 *   The node's account has that place as well, while there is one that the
 *   worker has begun.
 * - Who connects while there is no room is told to try again, and is
 *   remembered: with the first room we connect to him.
 *   If the worker does not progress, there never is: then one more is let in,
 *   beyond the share, for each time that a connection would have waited here.
 *   As many are the next time, as soon as it does not look.
 * - What peers give up: whoever never had an endpoint for it has nothing under
 *   way. It is torn down in the async thread, so that a worker that does not
 *   progress keeps nobody from connecting anew.
 */


/**
 * Have a budget, if the configuration says so.
 *
 * @param timeout  Seconds that the manager waits for an answer. A connection
 *                 waits five times as long for room.
 *
 * @return UCS_OK, or the error of @ref uct_sep_budget_join or @ref
 *         uct_sep_budget_node_join.
 */
ucs_status_t uct_sep_evict_open(uct_sep_iface_t *iface, double timeout);


/** Nobody waits any more. */
void uct_sep_evict_stop(uct_sep_iface_t *iface);


/** There are no queue pairs any more. */
void uct_sep_evict_close(uct_sep_iface_t *iface);


/**
 * A connection is about to get its queue pairs. With the async context blocked.
 *
 * @return UCS_OK, or UCS_ERR_NO_RESOURCE: it will be started when there is
 *         room; or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_evict_take(uct_sep_iface_t *iface, uct_sep_link_t *link,
                                int is_split);


/** Queue pairs were destroyed. With the async context blocked. */
void uct_sep_evict_give(uct_sep_iface_t *iface, int is_split);


/**
 * Start a connection for an endpoint, or have it wait.
 *
 * @return As @ref uct_sep_cm_conn_start.
 */
ucs_status_t uct_sep_evict_start(uct_sep_iface_t *iface, uct_sep_link_t *link);


/**
 * A peer that had been refused has its connection. It does not wait any more,
 * unless endpoints do: the worker's thread may not look for long. With the
 * async context blocked, and a reference of the manager's.
 */
void uct_sep_evict_handle_answered(uct_sep_iface_t *iface,
                                   uct_sep_link_t *link);


/** A connection is used from now on, in the main thread. */
void uct_sep_evict_handle_made(uct_sep_iface_t *iface, uct_sep_link_t *link);


/** The peer has refused to have an active connection fall asleep: the hand
 *  passes it for a while, which is longer each time. */
void uct_sep_evict_handle_refused(uct_sep_link_t *link);


/**
 * The peer has asked for the connection to fall asleep.
 *
 * @return Whether he was answered. If not, something is under way, and it has
 *         to be called again.
 */
int uct_sep_evict_handle_asked(uct_sep_iface_t *iface, uct_sep_link_t *link);


/** @return Whether somebody waits: then the worker must not sleep. */
static inline int uct_sep_evict_is_waiting(const uct_sep_iface_t *iface)
{
    return iface->conn.budget.progress_id != UCS_CALLBACKQ_ID_NULL;
}

END_C_DECLS

#endif
