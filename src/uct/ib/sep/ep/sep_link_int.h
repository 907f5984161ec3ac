/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_LINK_INT_H
#define UCT_SEP_LINK_INT_H

#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_link_int.h
 *
 * Connections, shared by sep_link.c (endpoints, and the manager's reports),
 * sep_link_cm.c (what the manager asks for) and sep_link_end.c (how they end).
 * For nobody else.
 */

/** @return The connection of which the manager has a part. */
static inline uct_sep_link_t *uct_sep_link(uct_sep_conn_t *conn)
{
    return ucs_container_of(conn, uct_sep_link_t, super);
}


/** @return Which connection it is, in @a buf. */
const char *
uct_sep_link_str(const uct_sep_link_t *link, char *buf, size_t max);


/** There is news for the main thread, which is awake. With the async context
 *  blocked. */
void uct_sep_link_queue_event(uct_sep_iface_t *iface, uct_sep_link_t *link);


/**
 * Put a queue pair into error: the device ends what has not been answered.
 *
 * @param is_told  Whether a request with a completion is posted behind that.
 */
void uct_sep_link_end_requests(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                               int is_told);


/** Give credits back up to an index. */
static inline void
uct_sep_link_release(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint16_t end)
{
    uct_sep_iface_add_cq_credits(iface, uct_sep_txwq_complete(txwq, end));
}


/** Have an endpoint use the queue for those without a connection. */
void uct_sep_link_unbind(uct_sep_ep_t *ep);


/** Make an endpoint fail: nothing can be sent from here on. It moves to a
 *  list. */
void uct_sep_link_mark_failed(uct_sep_ep_t *ep, ucs_list_link_t *failed);


/** Tell users about failed endpoints; they may destroy any of them. */
void uct_sep_link_report(uct_sep_iface_t *iface, ucs_list_link_t *failed,
                         ucs_status_t ep_status, const char *reason);


/** Take an active queue out of use, and end all that is outstanding with
 *  @a status. */
void uct_sep_link_retire(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         ucs_status_t status);


/**
 * Let go of a connection: its queue is retired, and the manager may start over.
 *
 * @param fail_eps  Whether endpoints that use the queue fail. Those that wait
 *                  for the next connection don't.
 */
void uct_sep_link_drop(uct_sep_iface_t *iface, uct_sep_link_t *link,
                       ucs_status_t status, int fail_eps);


/** Retire the queues whose connection is over without a word to the main
 *  thread, active or not. In it, with the async context blocked. */
void uct_sep_link_adopt(uct_sep_iface_t *iface);


/** All queues go. The manager is gone already. */
void uct_sep_link_destroy_all(uct_sep_iface_t *iface);


/** Handle asynchronous events of a context. */
void uct_sep_link_add_async(uct_sep_iface_t *iface,
                            uct_sep_async_t *async,
                            uct_sep_async_user_t *user);


/** Handle them no more. */
void uct_sep_link_cleanup_async(uct_sep_iface_t *iface);

END_C_DECLS

#endif
