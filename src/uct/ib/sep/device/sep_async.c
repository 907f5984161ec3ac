/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/device/sep_async.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>


/* What an event is about */
typedef enum {
    UCT_SEP_ASYNC_OTHER,
    UCT_SEP_ASYNC_QP,
    UCT_SEP_ASYNC_CQ,
    UCT_SEP_ASYNC_SRQ,
    UCT_SEP_ASYNC_PORT
} uct_sep_async_element_t;

/* That, and the log level of each event; levels are those of UCX's ib
 * (uct_ib_handle_async_event) */
static const struct {
    uct_sep_async_element_t element;
    ucs_log_level_t         level;
} uct_sep_async_events[] = {
    [IBV_EVENT_CQ_ERR]              = {UCT_SEP_ASYNC_CQ, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_COMM_EST]            = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_QP_ACCESS_ERR]       = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_QP_FATAL]            = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_QP_REQ_ERR]          = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_SQ_DRAINED]          = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_PATH_MIG]            = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_PATH_MIG_ERR]        = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_QP_LAST_WQE_REACHED] = {UCT_SEP_ASYNC_QP, UCS_LOG_LEVEL_DEBUG},
    [IBV_EVENT_SRQ_ERR]             = {UCT_SEP_ASYNC_SRQ, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_SRQ_LIMIT_REACHED]   = {UCT_SEP_ASYNC_SRQ, UCS_LOG_LEVEL_DEBUG},
    [IBV_EVENT_DEVICE_FATAL]        = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_ERROR},
    [IBV_EVENT_PORT_ACTIVE]         = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_PORT_ERR]            = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_SM_CHANGE]           = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_CLIENT_REREGISTER]   = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_DIAG},
    [IBV_EVENT_GID_CHANGE]          = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_WARN},
    [IBV_EVENT_LID_CHANGE]          = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_WARN},
    [IBV_EVENT_PKEY_CHANGE]         = {UCT_SEP_ASYNC_PORT, UCS_LOG_LEVEL_WARN}
};

static void uct_sep_async_log(const uct_sep_async_t *async,
                              const struct ibv_async_event *event)
{
    uct_sep_async_element_t element = UCT_SEP_ASYNC_OTHER;
    ucs_log_level_t level           = UCS_LOG_LEVEL_INFO;
    char text[32]                   = "";

    if ((event->event_type < ucs_static_array_size(uct_sep_async_events)) &&
        (uct_sep_async_events[event->event_type].element !=
         UCT_SEP_ASYNC_OTHER)) {
        element = uct_sep_async_events[event->event_type].element;
        level   = uct_sep_async_events[event->event_type].level;
    }

    switch (element) {
    case UCT_SEP_ASYNC_QP:
        ucs_snprintf_safe(text, sizeof(text), " on QP 0x%x",
                          event->element.qp->qp_num);
        break;
    case UCT_SEP_ASYNC_CQ:
        ucs_snprintf_safe(text, sizeof(text), " on CQ %p",
                          (void*)event->element.cq);
        break;
    case UCT_SEP_ASYNC_SRQ:
        ucs_snprintf_safe(text, sizeof(text), " on SRQ %p",
                          (void*)event->element.srq);
        break;
    case UCT_SEP_ASYNC_PORT:
        ucs_snprintf_safe(text, sizeof(text), " on port %d",
                          event->element.port_num);
        /* Each context gets it */
        level = async->is_main ? level : UCS_LOG_LEVEL_DEBUG;
        break;
    case UCT_SEP_ASYNC_OTHER:
        break;
    }

    ucs_log(level, "%s: async event: %s%s", async->name,
            ibv_event_type_str(event->event_type), text);
}

/* Have the user's callback called */
static UCT_SEP_REQUIRES(uct_sep_async_mutex) void
uct_sep_async_user_schedule(uct_sep_async_user_t *user)
{
    if (user->cb_id == UCS_CALLBACKQ_ID_NULL) {
        user->cb_id = uct_sep_compat_callbackq_add_safe(user->progress_q,
                                                        user->cb, user->arg);
    }
    user->wake(user->arg);
}

static UCT_SEP_REQUIRES(uct_sep_async_mutex) void
uct_sep_async_handle(uct_sep_async_t *async,
                     const struct ibv_async_event *event)
{
    uct_sep_async_user_t *user;
    uct_sep_async_qp_t *watch;

    switch (event->event_type) {
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        watch = event->element.qp->qp_context;
        if (watch != NULL) {
            __atomic_store_n(&watch->is_flushed, 1, __ATOMIC_RELEASE);
            uct_sep_async_user_schedule(watch->user);
        }
        break;
    case IBV_EVENT_DEVICE_FATAL:
        async->is_fatal = 1;
        ucs_list_for_each(user, &async->users, list) {
            __atomic_store_n(&user->is_fatal, 1, __ATOMIC_RELEASE);
            uct_sep_async_user_schedule(user);
        }
        break;
    default:
        break;
    }
}

/* In the async thread */
static void
uct_sep_async_handler(int fd, ucs_event_set_types_t events, void *arg)
{
    uct_sep_async_t *async = arg;
    struct ibv_async_event event;

    uct_sep_async_mutex_lock(&async->lock);
    while (ibv_get_async_event(async->context, &event) == 0) {
        uct_sep_async_log(async, &event);
        uct_sep_async_handle(async, &event);
        /* Objects are not destroyed before this */
        ibv_ack_async_event(&event);
    }

    if (errno != EAGAIN) {
        ucs_warn("%s: ibv_get_async_event() failed: %m", async->name);
    }
    uct_sep_async_mutex_unlock(&async->lock);
}

ucs_status_t uct_sep_async_init(uct_sep_async_t *async,
                                struct ibv_context *context, int is_enabled,
                                int is_main)
{
    ucs_status_t status;

    memset(async, 0, sizeof(*async));
    async->context    = context;
    async->name       = ibv_get_device_name(context->device);
    async->is_enabled = is_enabled;
    async->is_main    = is_main;
    ucs_list_head_init(&async->users);
    uct_sep_async_mutex_init(&async->lock, NULL);
    if (!is_enabled) {
        return UCS_OK;
    }

    status = ucs_sys_fcntl_modfl(context->async_fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        goto err;
    }

    /* In a thread in any case: who waits for an event in a system call can't be
     * interrupted to read it */
    status = ucs_async_set_event_handler(UCS_ASYNC_THREAD_LOCK_TYPE,
                                         context->async_fd,
                                         UCS_EVENT_SET_EVREAD,
                                         uct_sep_async_handler, async, NULL);
    if (status != UCS_OK) {
        goto err;
    }
    return UCS_OK;

err:
    ucs_error("%s: asynchronous events can't be read: %s. Set "
              "UCX_SEP_ASYNC_EVENTS=n to do without", async->name,
              ucs_status_string(status));
    uct_sep_async_mutex_destroy(&async->lock);
    return UCS_ERR_IO_ERROR;
}

void uct_sep_async_cleanup(uct_sep_async_t *async)
{
    if (async->is_enabled) {
        ucs_async_remove_handler(async->context->async_fd, 1);
        /* Nobody waits: for tools that don't know what the call waits for */
        uct_sep_async_mutex_lock(&async->lock);
        uct_sep_async_mutex_unlock(&async->lock);
    }
    uct_sep_async_mutex_destroy(&async->lock);
}

void uct_sep_async_user_add(uct_sep_async_t *async, uct_sep_async_user_t *user,
                            ucs_callbackq_t *progress_q, ucs_callback_t cb,
                            void (*wake)(void *arg), void *arg)
{
    user->async      = async;
    user->progress_q = progress_q;
    user->cb         = cb;
    user->wake       = wake;
    user->arg        = arg;
    uct_sep_async_mutex_lock(&user->async->lock);
    user->cb_id    = UCS_CALLBACKQ_ID_NULL;
    user->is_fatal = user->async->is_fatal;
    ucs_list_add_tail(&user->async->users, &user->list);
    uct_sep_async_mutex_unlock(&user->async->lock);
}

void uct_sep_async_user_remove(uct_sep_async_user_t *user)
{
    uct_sep_async_user_begin(user);
    uct_sep_async_mutex_lock(&user->async->lock);
    ucs_list_del(&user->list);
    uct_sep_async_mutex_unlock(&user->async->lock);
    /* One may have come in between */
    uct_sep_async_user_begin(user);
}

void uct_sep_async_user_begin(uct_sep_async_user_t *user)
{
    uct_sep_async_mutex_lock(&user->async->lock);
    if (user->cb_id != UCS_CALLBACKQ_ID_NULL) {
        ucs_callbackq_remove_safe(user->progress_q, user->cb_id);
        user->cb_id = UCS_CALLBACKQ_ID_NULL;
    }
    uct_sep_async_mutex_unlock(&user->async->lock);
}

void uct_sep_async_watch(uct_sep_async_user_t *user, struct ibv_qp *qp,
                         uct_sep_async_qp_t *watch)
{
    watch->user       = user;
    watch->is_flushed = !user->async->is_enabled;
    uct_sep_async_mutex_lock(&user->async->lock);
    qp->qp_context = watch;
    uct_sep_async_mutex_unlock(&user->async->lock);
}

void uct_sep_async_unwatch(uct_sep_async_qp_t *watch, struct ibv_qp *qp)
{
    if (watch->user != NULL) {
        uct_sep_async_mutex_lock(&watch->user->async->lock);
        qp->qp_context = NULL;
        uct_sep_async_mutex_unlock(&watch->user->async->lock);
    }
}
