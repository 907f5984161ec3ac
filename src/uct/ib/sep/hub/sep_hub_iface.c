/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/hub/sep_hub_iface.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/hub/sep_hub_ep.h>
#include <uct/ib/sep/hub/sep_hub_ops.h>
#include <uct/ib/sep/iface/sep_config.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/open/sep_iface_open.h>
#include <uct/ib/sep/open/sep_open.h>

#include <ucs/arch/cpu.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <unistd.h>


/* Maximum of handled messages and operations kept until the lock is taken for
 * another reason */
#define UCT_SEP_HUB_IFACE_MAX_OLD   32

/* How often an attempt to sleep is repeated while completions keep coming */
#define UCT_SEP_HUB_IFACE_MAX_ARM   64


static UCS_CLASS_DECLARE_DELETE_FUNC(uct_sep_hub_iface_t, uct_iface_t);

/*
 * Mail
 */

static void uct_sep_hub_mail_init(uct_sep_hub_mail_t *mail)
{
    ucs_queue_head_init(&mail->messages);
    ucs_queue_head_init(&mail->done);
    ucs_list_head_init(&mail->ready);
    ucs_list_head_init(&mail->failed);
}

static int uct_sep_hub_mail_is_empty(uct_sep_hub_mail_t *mail)
{
    return ucs_queue_is_empty(&mail->messages) &&
           ucs_queue_is_empty(&mail->done) && ucs_list_is_empty(&mail->ready) &&
           ucs_list_is_empty(&mail->failed);
}

void uct_sep_hub_mail_notify(uct_sep_hub_iface_t *iface)
{
    __atomic_store_n(&iface->has_mail, 1, __ATOMIC_RELAXED);
    if (iface->is_armed) {
        iface->is_armed = 0;
        uct_sep_event_write(iface->hub->dev_name, iface->event_fd);
    }
}

void uct_sep_hub_mail_take(uct_sep_hub_iface_t *iface)
{
    uct_sep_hub_mail_t *mail  = &iface->mail;
    uct_sep_hub_mail_t *inbox = &iface->inbox;

    ucs_queue_splice(&inbox->messages, &mail->messages);
    ucs_queue_splice(&inbox->done, &mail->done);
    ucs_list_splice_tail(&inbox->ready, &mail->ready);
    ucs_list_head_init(&mail->ready);
    ucs_list_splice_tail(&inbox->failed, &mail->failed);
    ucs_list_head_init(&mail->failed);
    __atomic_store_n(&iface->has_mail, 0, __ATOMIC_RELAXED);
}

void uct_sep_hub_mail_clean(uct_sep_hub_iface_t *iface)
{
    uct_sep_hub_msg_t *msg;
    uct_sep_hub_op_t *op;

    if (ucs_likely(iface->num_old == 0)) {
        return;
    }

    iface->num_old = 0;
    while (!ucs_queue_is_empty(&iface->old_messages)) {
        msg = ucs_queue_pull_elem_non_empty(&iface->old_messages,
                                            uct_sep_hub_msg_t, queue);
        uct_iface_release_desc(msg);
    }
    while (!ucs_queue_is_empty(&iface->old_ops)) {
        op = ucs_queue_pull_elem_non_empty(&iface->old_ops, uct_sep_hub_op_t,
                                           queue);
        ucs_mpool_put_inline(op);
    }
}

/*
 * Progress
 */

static void
uct_sep_hub_mail_finish_op(uct_sep_hub_iface_t *iface, uct_sep_hub_op_t *op)
{
    ucs_status_t status    = op->comp.status;
    uct_completion_t *user = op->user;

    if (op->ep != NULL) {
        ucs_list_del(&op->list);
        --iface->num_ops;
        if ((status == UCS_OK) && (op->finish != NULL)) {
            op->finish(op);
        }
    }

    ucs_queue_push(&iface->old_ops, &op->queue);
    ++iface->num_old;
    if (user != NULL) {
        uct_invoke_completion(user, status);
    }
}

unsigned uct_sep_hub_mail_finish_ops(uct_sep_hub_iface_t *iface)
{
    unsigned count = 0;
    uct_sep_hub_op_t *op;

    while (!ucs_queue_is_empty(&iface->inbox.done)) {
        op = ucs_queue_pull_elem_non_empty(&iface->inbox.done, uct_sep_hub_op_t,
                                           queue);
        uct_sep_hub_mail_finish_op(iface, op);
        ++count;
    }

    return count;
}

static void
uct_sep_hub_iface_deliver(uct_sep_hub_iface_t *iface, uct_sep_hub_msg_t *msg)
{
    void *data = UCS_PTR_BYTE_OFFSET(msg, iface->hub->headroom +
                                          sizeof(uct_sep_hub_route_t));
    ucs_status_t status;
    void *user_desc;

    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, msg->am_id, data,
                       msg->length, "RX: %s", iface->hub->dev_name);
    status = uct_iface_invoke_am(&iface->super, msg->am_id, data, msg->length,
                                 iface->keeps_descs ? UCT_CB_PARAM_FLAG_DESC :
                                                      0);
    if (status == UCS_OK) {
        ucs_queue_push(&iface->old_messages, &msg->queue);
        ++iface->num_old;
    } else {
        user_desc = UCS_PTR_BYTE_OFFSET(data, -(ptrdiff_t)iface->headroom);
        uct_recv_desc(user_desc) = &iface->release;
    }
}

static unsigned uct_sep_hub_iface_deliver_messages(uct_sep_hub_iface_t *iface)
{
    unsigned max_poll = iface->hub->core->config.rx_max_poll;
    unsigned count    = 0;
    uct_sep_hub_msg_t *msg;

    while (!ucs_queue_is_empty(&iface->inbox.messages) &&
           (count < max_poll)) {
        msg = ucs_queue_pull_elem_non_empty(&iface->inbox.messages,
                                            uct_sep_hub_msg_t, queue);
        uct_sep_hub_iface_deliver(iface, msg);
        ++count;
    }

    return count;
}

static unsigned uct_sep_hub_iface_report_failures(uct_sep_hub_iface_t *iface)
{
    unsigned count = 0;
    ucs_status_t status, failure;
    ucs_log_level_t level;
    uct_sep_hub_ep_t *ep;

    while (!ucs_list_is_empty(&iface->inbox.failed)) {
        ep = ucs_list_extract_head(&iface->inbox.failed, uct_sep_hub_ep_t,
                                   failed);
        ucs_list_head_init(&ep->failed);
        uct_sep_hub_ep_drop_packed(ep);
        failure = ep->failure; /* The user may destroy it */
        ++count;

        status = uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                         failure);
        level  = (status == UCS_OK) ? iface->super.config.failure_level :
                                      UCS_LOG_LEVEL_FATAL;
        ucs_log(level, "%s: endpoint %p failed: %s", iface->hub->dev_name,
                (void*)ep, ucs_status_string(failure));
    }

    return count;
}

static unsigned uct_sep_hub_iface_dispatch(uct_sep_hub_iface_t *iface)
{
    ucs_list_link_t *ready = &iface->inbox.ready;
    unsigned count         = 0;
    unsigned sent, left;
    uct_sep_hub_ep_t *ep;

    /* One request of each endpoint in turn. Those that return to the list
     * although nobody sends wait for something that retrying at once does not
     * bring. */
    do {
        sent = 0;
        for (left = ucs_list_length(ready);
             (left > 0) && !ucs_list_is_empty(ready); --left) {
            ep = ucs_list_extract_head(ready, uct_sep_hub_ep_t, sched);
            ucs_list_head_init(&ep->sched);
            sent += uct_sep_hub_ep_dispatch(ep);
        }
        count += sent;
    } while ((sent > 0) && !ucs_list_is_empty(ready));

    return count;
}

static unsigned uct_sep_hub_iface_handle_mail(uct_sep_hub_iface_t *iface)
{
    unsigned count = 0;

    /* First what was done before the failure */
    count += uct_sep_hub_mail_finish_ops(iface);
    /* What has waited for a connection goes out before answers to the first
     * message on it */
    if (ucs_unlikely(!ucs_list_is_empty(&iface->inbox.ready))) {
        count += uct_sep_hub_iface_dispatch(iface);
    }
    count += uct_sep_hub_iface_deliver_messages(iface);
    if (ucs_unlikely(!ucs_list_is_empty(&iface->inbox.failed))) {
        count += uct_sep_hub_iface_report_failures(iface);
    }
    return count;
}

static unsigned uct_sep_hub_iface_progress(uct_iface_h tl_iface)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_t *hub         = iface->hub;

    if (uct_sep_hub_trylock(hub)) {
        uct_sep_hub_mail_clean(iface);
        uct_sep_hub_poll(hub);
        if (iface->has_mail) {
            uct_sep_hub_mail_take(iface);
        }
        uct_sep_hub_unlock(hub);
    } else if (__atomic_load_n(&iface->has_mail, __ATOMIC_RELAXED) ||
               (iface->num_old > UCT_SEP_HUB_IFACE_MAX_OLD)) {
        /* Somebody else polls: wait for that only if it has found something */
        uct_sep_hub_lock(hub);
        uct_sep_hub_mail_clean(iface);
        uct_sep_hub_mail_take(iface);
        uct_sep_hub_unlock(hub);
    }

    if (ucs_likely(uct_sep_hub_mail_is_empty(&iface->inbox))) {
        return 0;
    }

    return uct_sep_hub_iface_handle_mail(iface);
}

static void
uct_sep_hub_iface_release_desc(uct_recv_desc_t *self, void *user_desc)
{
    uct_sep_hub_iface_t *iface = ucs_container_of(self, uct_sep_hub_iface_t,
                                                  release);
    uct_sep_hub_t *hub         = iface->hub;
    void *msg;

    msg = UCS_PTR_BYTE_OFFSET(user_desc, iface->headroom -
                                         sizeof(uct_sep_hub_route_t) -
                                         hub->headroom);
    uct_sep_hub_lock(hub);
    uct_iface_release_desc(msg);
    uct_sep_hub_unlock(hub);
}

static void
uct_sep_hub_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_t *hub         = iface->hub;

    uct_sep_hub_lock(hub);
    uct_iface_progress_enable(&hub->core->super.super,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_sep_hub_unlock(hub);
    uct_base_iface_progress_enable(tl_iface, flags);
}

/*
 * Flush and fence
 */

static ucs_status_t
uct_sep_hub_iface_flush(uct_iface_h tl_iface, unsigned flags,
                        uct_completion_t *comp)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_t *hub         = iface->hub;
    unsigned count             = iface->num_ops + iface->num_pending;
    uct_sep_hub_ep_t *ep;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_sep_hub_lock(hub);
    ucs_list_for_each(ep, &iface->eps, list) {
        if (!uct_sep_hub_ep_send_packed(ep) || uct_sep_hub_ep_is_untold(ep)) {
            ++count;
        } else if (!uct_sep_hub_ep_is_complete(ep)) {
            ++count;
            /* Make the last work request signaled */
            (void)uct_ep_flush(&ep->peer->ep->super.super, 0, NULL);
        }
    }
    if ((count == 0) && hub->core->config.has_fence &&
        uct_sep_rkey_is_order_relaxed()) {
        /* As uct_sep_iface_flush() does */
        ucs_list_for_each(ep, &iface->eps, list) {
            uct_sep_txwq_set_strict(ep->peer->ep->txwq);
        }
    }
    uct_sep_hub_unlock(hub);

    if (count > 0) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
        return UCS_INPROGRESS;
    }

    UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    return UCS_OK;
}

static ucs_status_t
uct_sep_hub_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_ep_t *ep;
    ucs_status_t status;

    uct_sep_hub_lock(iface->hub);
    ucs_list_for_each(ep, &iface->eps, list) {
        ep->is_fenced |= (ep->packed != NULL);
    }
    status = uct_iface_fence(&iface->hub->core->super.super, flags);
    uct_sep_hub_unlock(iface->hub);
    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return status;
}

/*
 * Wakeup: by an event of the core, or by whoever has put something into the
 * mail
 */

static ucs_status_t uct_sep_hub_iface_event_create(uct_sep_hub_iface_t *iface)
{
    uct_sep_hub_t *hub = iface->hub;
    ucs_status_t status;
    int core_fd;

    uct_sep_hub_lock(hub);
    status = uct_iface_event_fd_get(&hub->core->super.super, &core_fd);
    uct_sep_hub_unlock(hub);
    if (status != UCS_OK) {
        return status;
    }

    return uct_sep_event_open(hub->dev_name, &core_fd, 1, &iface->epoll_fd,
                              &iface->event_fd);
}

static ucs_status_t
uct_sep_hub_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    ucs_status_t status;

    if (iface->epoll_fd < 0) {
        status = uct_sep_hub_iface_event_create(iface);
        if (status != UCS_OK) {
            return status;
        }
    }

    *fd_p = iface->epoll_fd;
    return UCS_OK;
}

/* Have the core raise an event for whoever sleeps: its events announce
 * everything that has come so far */
static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_iface_arm_core(uct_sep_hub_t *hub)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < UCT_SEP_HUB_IFACE_MAX_ARM; ++i) {
        uct_sep_hub_poll(hub);
        status = uct_iface_event_arm(&hub->core->super.super,
                                     UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        if (status != UCS_ERR_BUSY) {
            return status;
        }
    }

    /* Completions keep coming, and an event on which others sleep may have been
     * consumed: let them look for themselves */
    uct_sep_hub_wake_all(hub);
    return UCS_ERR_BUSY;
}

static ucs_status_t
uct_sep_hub_iface_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_t *hub         = iface->hub;
    ucs_status_t status;
    int fd;

    status = uct_sep_hub_iface_event_fd_get(tl_iface, &fd);
    if (status != UCS_OK) {
        return status;
    }

    /* Before looking at the mail, so that nothing is lost in between */
    uct_sep_event_read(hub->dev_name, iface->event_fd);

    uct_sep_hub_lock(hub);
    uct_sep_hub_mail_clean(iface);
    status = uct_sep_hub_iface_arm_core(hub);
    if (!uct_sep_hub_mail_is_empty(&iface->mail) ||
        !uct_sep_hub_mail_is_empty(&iface->inbox)) {
        status = UCS_ERR_BUSY;
    } else if (status == UCS_OK) {
        iface->is_armed = 1;
    }
    uct_sep_hub_unlock(hub);
    return status;
}

/*
 * Attributes and addresses
 */

static ucs_status_t
uct_sep_hub_iface_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    static const size_t route  = sizeof(uct_sep_hub_route_t);
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_t *hub         = iface->hub;
    ucs_status_t status;

    uct_sep_hub_lock(hub);
    status = uct_iface_query(&hub->core->super.super, attr);
    uct_sep_hub_unlock(hub);
    if (status != UCS_OK) {
        return status;
    }

    attr->dev_num_paths      = 1; /* One queue pair for all */
    attr->iface_addr_len     = sizeof(uct_sep_hub_addr_t);
    attr->cap.get.max_bcopy  = ucs_min(attr->cap.get.max_bcopy,
                                       attr->cap.get.max_zcopy);
    attr->cap.am.max_short  -= ucs_min(attr->cap.am.max_short, route);
    attr->cap.am.max_bcopy   = uct_sep_config_max_am(
                                       hub->core->config.seg_size -
                                       sizeof(uct_sep_am_hdr_t) - route);
    attr->cap.am.max_zcopy   = attr->cap.am.max_bcopy;
    attr->cap.am.max_hdr    -= route;
    uct_sep_open_drop_unusable(attr);
    return UCS_OK;
}

static ucs_status_t
uct_sep_hub_iface_get_device_address(uct_iface_h tl_iface,
                                     uct_device_addr_t *addr)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);

    return uct_iface_get_device_address(&iface->hub->core->super.super, addr);
}

static ucs_status_t
uct_sep_hub_iface_get_address(uct_iface_h tl_iface, uct_iface_addr_t *tl_addr)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);
    uct_sep_hub_addr_t *addr   = (void*)tl_addr;

    ucs_status_t status;

    status = uct_iface_get_address(&iface->hub->core->super.super,
                                   (void*)&addr->iface);
    addr->iface.version = UCT_SEP_HUB_ADDR_VERSION;
    addr->worker        = htobe16(iface->index);
    return status;
}

static int uct_sep_hub_iface_check_kind(uct_iface_h tl_iface,
                                        const uct_iface_addr_t *iface_addr)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);

    return uct_sep_addr_check_kind(iface->hub->dev_name, 1, iface_addr);
}

static double uct_sep_hub_iface_path_ratio(uct_iface_h tl_iface)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);

    return uct_sep_iface_path_ratio(&iface->hub->core->super.super);
}

static int uct_sep_hub_iface_is_reachable(const uct_iface_h tl_iface,
                                          const uct_device_addr_t *dev_addr,
                                          const uct_iface_addr_t *iface_addr)
{
    uct_sep_hub_iface_t *iface     = ucs_derived_of(tl_iface,
                                                    uct_sep_hub_iface_t);
    const uct_sep_hub_addr_t *addr = (const void*)iface_addr;
    uct_sep_iface_addr_t hub_iface;

    if (addr != NULL) {
        if (!uct_sep_hub_iface_check_kind(tl_iface, iface_addr)) {
            return 0;
        }
        hub_iface = uct_sep_hub_addr_iface(addr);
    }

    return uct_iface_is_reachable(&iface->hub->core->super.super, dev_addr,
                                  (addr == NULL) ? NULL :
                                  (const void*)&hub_iface);
}

/*
 * Init and cleanup
 */

static uct_iface_ops_t uct_sep_hub_iface_ops = {
    UCT_SEP_OPS_COMMON,
    .ep_pending_add           = uct_sep_hub_ep_pending_add,
    .ep_pending_purge         = uct_sep_hub_ep_pending_purge,
    .ep_flush                 = uct_sep_hub_ep_flush,
    .ep_fence                 = uct_sep_hub_ep_fence,
    .ep_check                 = uct_sep_hub_ep_check,
    .ep_create                = uct_sep_hub_ep_create,
    .ep_destroy               = uct_sep_hub_ep_destroy,
    .iface_flush              = uct_sep_hub_iface_flush,
    .iface_fence              = uct_sep_hub_iface_fence,
    .iface_progress_enable    = uct_sep_hub_iface_progress_enable,
    .iface_progress           = uct_sep_hub_iface_progress,
    .iface_event_fd_get       = uct_sep_hub_iface_event_fd_get,
    .iface_event_arm          = uct_sep_hub_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_sep_hub_iface_t),
    .iface_query              = uct_sep_hub_iface_query,
    .iface_get_device_address = uct_sep_hub_iface_get_device_address,
    .iface_get_address        = uct_sep_hub_iface_get_address,
    .iface_is_reachable       = uct_sep_hub_iface_is_reachable
};

/* Those of all workers */
static void uct_sep_hub_iface_vfs_refresh(uct_iface_h tl_iface)
{
    uct_sep_hub_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_hub_iface_t);

    uct_sep_iface_show(iface->hub->core, tl_iface);
}

static const uct_sep_compat_iface_ops_t uct_sep_hub_iface_compat_ops = {
    .check_kind      = uct_sep_hub_iface_check_kind,
    .ep_is_connected = uct_sep_hub_ep_is_connected,
    .path_ratio      = uct_sep_hub_iface_path_ratio,
    .vfs_refresh     = uct_sep_hub_iface_vfs_refresh
};

UCT_SEP_COMPAT_INTERNAL_OPS(uct_sep_hub_iface_internal_ops,
                            &uct_sep_hub_iface_compat_ops);

static ucs_status_t
uct_sep_hub_iface_init_pack_mp(uct_sep_hub_iface_t *iface,
                               const uct_sep_iface_config_t *config)
{
    /* Aligned where the user packs */
    return uct_sep_compat_mpool_init(&iface->pack_mp,
                                     sizeof(uct_sep_hub_packed_t) +
                                     config->seg_size,
                                     sizeof(uct_sep_hub_packed_t),
                                     UCS_SYS_CACHE_LINE_SIZE, 4, UINT_MAX,
                                     "sep_hub_pack");
}

/* Nobody else knows it yet */
static UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_hub_iface_init_mail(uct_sep_hub_iface_t *iface)
{
    uct_sep_hub_mail_init(&iface->mail);
    uct_sep_hub_mail_init(&iface->inbox);
    iface->has_mail = 0;
    iface->is_armed = 0;
}

static UCS_CLASS_INIT_FUNC(uct_sep_hub_iface_t, uct_md_h tl_md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_sep_iface_config_t *config = ucs_derived_of(tl_config,
                                                     uct_sep_iface_config_t);
    uct_sep_md_t *md                     = ucs_derived_of(tl_md, uct_sep_md_t);
    ucs_status_t status;

    status = uct_sep_open_check(params);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_sep_hub_iface_ops,
                              &uct_sep_hub_iface_internal_ops, tl_md,
                              worker, params,
                              tl_config UCS_STATS_ARG(
                                      (params->field_mask &
                                       UCT_IFACE_PARAM_FIELD_STATS_ROOT) ?
                                      params->stats_root : NULL)
                              UCS_STATS_ARG(params->mode.device.dev_name));

    uct_sep_open_set_ops(&uct_sep_hub_ops, &self->super.super.ops);
    uct_sep_hub_iface_init_mail(self);
    ucs_queue_head_init(&self->old_messages);
    ucs_queue_head_init(&self->old_ops);
    ucs_list_head_init(&self->eps);
    self->event_fd    = -1;
    self->epoll_fd    = -1;
    self->num_old     = 0;
    self->num_ops     = 0;
    self->num_pending = 0;
    self->num_packed  = 0;
    self->headroom    = UCT_IFACE_PARAM_VALUE(params, rx_headroom, RX_HEADROOM,
                                              0);
    self->release.cb  = uct_sep_hub_iface_release_desc;

    status = uct_sep_hub_iface_init_pack_mp(self, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_hub_join(md, params, config, self, &self->hub);
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&self->pack_mp, 0);
        return status;
    }

    /* The first interface has determined the receive buffers */
    self->keeps_descs = (self->hub->headroom >=
                         (sizeof(uct_sep_hub_msg_t) + self->headroom)) &&
                        uct_sep_hub_is_aligned(self->hub, params);
    return UCS_OK;
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_iface_discard_mail(uct_sep_hub_iface_t *iface)
{
    uct_sep_hub_mail_take(iface);

    /* Users of what is left are gone, or find out by closing */
    ucs_queue_splice(&iface->old_messages, &iface->inbox.messages);
    ucs_queue_splice(&iface->old_ops, &iface->inbox.done);
    iface->num_old = 1; /* Or any other number but none */
    uct_sep_hub_mail_clean(iface);
}

static UCS_CLASS_CLEANUP_FUNC(uct_sep_hub_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);

    if (!ucs_list_is_empty(&self->eps)) {
        ucs_warn("%s: an interface is closed with endpoints on it",
                 self->hub->dev_name);
    }

    uct_sep_hub_lock(self->hub);
    self->hub->ifaces[self->index] = NULL;
    self->is_armed                 = 0;
    uct_sep_hub_iface_discard_mail(self);
    uct_sep_hub_unlock(self->hub);

    uct_sep_hub_leave(self->hub);
    if (self->epoll_fd >= 0) {
        close(self->event_fd);
        close(self->epoll_fd);
    }
    ucs_mpool_cleanup(&self->pack_mp, 1);
}

UCS_CLASS_DEFINE(uct_sep_hub_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_sep_hub_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_sep_hub_iface_t, uct_iface_t);

ucs_status_t uct_sep_hub_iface_open(uct_md_h md, uct_worker_h worker,
                                    const uct_iface_params_t *params,
                                    const uct_iface_config_t *config,
                                    uct_iface_h *iface_p)
{
    return UCS_CLASS_NEW_FUNC_NAME(uct_sep_hub_iface_t)(md, worker, params,
                                                        config, iface_p);
}
