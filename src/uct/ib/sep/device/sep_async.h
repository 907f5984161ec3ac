/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ASYNC_H
#define UCT_SEP_ASYNC_H

#include <uct/ib/sep/base/sep_lock.h>
#include <infiniband/verbs.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_async.h
 *
 * Asynchronous events of a device context: what happens to the device, its
 * ports and its queue pairs. They are read in UCX's async thread. What concerns
 * an interface is left to its worker's progress.
 */

/** For the events of a context: who is told about them, and qp_context of its
 *  queue pairs. */
UCT_SEP_MUTEX_DEFINE(uct_sep_async_mutex)


/** Events of one context. */
typedef struct uct_sep_async {
    struct ibv_context *context;
    const char         *name;      /**< Of the device */
    int                is_enabled; /**< Otherwise nothing is ever read */
    int                is_main;    /**< Else another context of the process logs
                                        the device's events */
    uct_sep_async_mutex_t lock;
    /** The device has failed */
    int                is_fatal UCT_SEP_GUARDED_BY(uct_sep_async_mutex);
    /** uct_sep_async_user_t */
    ucs_list_link_t    users UCT_SEP_GUARDED_BY(uct_sep_async_mutex);
} uct_sep_async_t;


/** An interface that is told about events. */
typedef struct uct_sep_async_user {
    uct_sep_async_t *async;
    ucs_callbackq_t *progress_q;   /**< Of its worker */
    ucs_callback_t  cb;            /**< Called from there after an event */
    void            (*wake)(void *arg); /**< Called in the async thread, so that
                                             a worker that sleeps progresses */
    void            *arg;          /**< For both */
    /** Call that is due */
    int             cb_id UCT_SEP_GUARDED_BY(uct_sep_async_mutex);
    int             is_fatal;      /**< The device has failed; atomic */
    /** In uct_sep_async_t */
    ucs_list_link_t list UCT_SEP_GUARDED_BY(uct_sep_async_mutex);
} uct_sep_async_user_t;


/**
 * Queue pair on a shared receive queue. In the error state it gives back the
 * receives that it has taken, each with a completion; IBV_EVENT_QP_LAST_WQE_
 * REACHED says that this is over. A queue pair that is destroyed before keeps
 * them (IBTA 10.3.1).
 */
typedef struct uct_sep_async_qp {
    uct_sep_async_user_t *user;
    int                  is_flushed; /**< Atomic */
} uct_sep_async_qp_t;


/** Whether an interface's device has failed. */
static inline int uct_sep_async_is_fatal(const uct_sep_async_user_t *user)
{
    return __atomic_load_n(&user->is_fatal, __ATOMIC_ACQUIRE);
}


/** Whether a queue pair has given back all receives. */
static inline int uct_sep_async_is_flushed(const uct_sep_async_qp_t *watch)
{
    return __atomic_load_n(&watch->is_flushed, __ATOMIC_ACQUIRE);
}


/**
 * Begin to read a context's events.
 *
 * @param is_enabled  If not, do nothing: UCX_SEP_ASYNC_EVENTS.
 * @param is_main     Whether to log what happens to the device.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_async_init(uct_sep_async_t *async,
                                struct ibv_context *context, int is_enabled,
                                int is_main);


/** End it; no queue pair and no user may be left. */
void uct_sep_async_cleanup(uct_sep_async_t *async);


/** Tell an interface from now on; for the arguments see
 *  @ref uct_sep_async_user_t. */
void uct_sep_async_user_add(uct_sep_async_t *async, uct_sep_async_user_t *user,
                            ucs_callbackq_t *progress_q, ucs_callback_t cb,
                            void (*wake)(void *arg), void *arg);


/** Not any more. */
void uct_sep_async_user_remove(uct_sep_async_user_t *user);


/** To be called first by the user's callback: another event causes another
 *  call. */
void uct_sep_async_user_begin(uct_sep_async_user_t *user);


/** Watch a queue pair, until it is destroyed. */
void uct_sep_async_watch(uct_sep_async_user_t *user, struct ibv_qp *qp,
                         uct_sep_async_qp_t *watch);


/** To be called before a queue pair that is watched is destroyed. */
void uct_sep_async_unwatch(uct_sep_async_qp_t *watch, struct ibv_qp *qp);

END_C_DECLS

#endif
