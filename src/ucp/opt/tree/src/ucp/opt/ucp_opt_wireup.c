/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_compat.h"
#include "ucp_opt_wireup.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/wireup/wireup.h>
#include <ucp/wireup/wireup_ep.h>
#include <ucs/async/async.h>
#include <ucs/sys/math.h>


/* What an interface needs to live on events: it says when something has
 * arrived, and calls back itself when it is not progressed. */
#define UCP_OPT_WIREUP_EVENTS \
    (UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_ASYNC_CB)


static int ucp_opt_wireup_iface_has_events(const ucp_worker_iface_t *wiface)
{
    return (wiface->worker->context->opt & UCP_OPT_WIREUP) &&
           (wiface->attr.cap.flags & UCT_IFACE_FLAG_CB_ASYNC) &&
           ucs_test_all_flags(wiface->attr.cap.event_flags,
                              UCP_OPT_WIREUP_EVENTS);
}

int ucp_opt_wireup_is_adaptive(ucp_worker_h worker, ucp_rsc_index_t rsc_index)
{
    ucp_context_h context = worker->context;

    return context->config.ext.adaptive_progress ||
           ((context->opt & UCP_OPT_WIREUP) &&
            (context->tl_rscs[rsc_index].flags & UCP_TL_RSC_FLAG_AUX));
}

/* Without SEND and RECV nothing is added to progress, but timers are started.
 * That it may be called by any thread makes the interface post all its
 * receives, as if it were active. */
static void ucp_opt_wireup_iface_enable_timers(ucp_worker_iface_t *wiface)
{
    uct_iface_progress_enable(wiface->iface, UCT_PROGRESS_THREAD_SAFE);
}

void ucp_opt_wireup_iface_inactive(ucp_worker_iface_t *wiface)
{
    if (wiface->opt_wireup_count > 0) {
        ucp_opt_wireup_iface_enable_timers(wiface);
    }
}

void ucp_opt_wireup_aux_start(ucp_wireup_ep_t *wireup_ep)
{
    ucp_worker_h worker        = wireup_ep->super.ucp_ep->worker;
    ucp_worker_iface_t *wiface = ucp_worker_iface(worker,
                                                  wireup_ep->aux_rsc_index);

    if (!ucp_opt_wireup_iface_has_events(wiface)) {
        ucp_worker_iface_progress_ep(wiface);
        return;
    }

    UCS_ASYNC_BLOCK(&worker->async);
    wireup_ep->opt |= UCP_OPT_WIREUP_EP_EVENTS;
    if ((wiface->opt_wireup_count++ == 0) && (wiface->activate_count == 0)) {
        ucp_opt_wireup_iface_enable_timers(wiface);
    }
    UCS_ASYNC_UNBLOCK(&worker->async);
}

/* Make the interface active in the usual way instead. */
static void ucp_opt_wireup_aux_activate(ucp_wireup_ep_t *wireup_ep,
                                        ucp_worker_iface_t *wiface)
{
    UCS_ASYNC_BLOCK(&wiface->worker->async);
    ucp_worker_iface_progress_ep(wiface);
    ucs_assert(wiface->opt_wireup_count > 0);
    --wiface->opt_wireup_count;
    wireup_ep->opt &= ~UCP_OPT_WIREUP_EP_EVENTS;
    UCS_ASYNC_UNBLOCK(&wiface->worker->async);
}

void ucp_opt_wireup_aux_stop(ucp_wireup_ep_t *wireup_ep)
{
    ucp_worker_iface_t *wiface;

    if (wireup_ep->opt & UCP_OPT_WIREUP_EP_EVENTS) {
        wiface = ucp_worker_iface(wireup_ep->super.ucp_ep->worker,
                                  wireup_ep->aux_rsc_index);
        /* It is deactivated by the usual code, which looks at it once more
         * before it is armed. */
        ucp_opt_wireup_aux_activate(wireup_ep, wiface);
        ucp_worker_iface_unprogress_ep(wiface);
    } else {
        ucp_ep_unprogress_uct_ep(wireup_ep->super.ucp_ep, wireup_ep->aux_ep,
                                 wireup_ep->aux_rsc_index);
    }
}

void ucp_opt_wireup_aux_poll(ucp_wireup_ep_t *wireup_ep)
{
    if (wireup_ep->opt & UCP_OPT_WIREUP_EP_EVENTS) {
        ucp_opt_wireup_aux_activate(
                wireup_ep, ucp_worker_iface(wireup_ep->super.ucp_ep->worker,
                                            wireup_ep->aux_rsc_index));
    }
}

/* An acknowledgement that waits for progress, and how it is sent */
typedef struct {
    ucp_ep_h       ep;
    ucs_callback_t send;
} ucp_opt_wireup_ack_t;

static int
ucp_opt_wireup_ack_pred(const ucs_callbackq_elem_t *elem, void *arg)
{
    ucp_opt_wireup_ack_t *ack = arg;

    if (!ucp_wireup_msg_ack_cb_pred(elem, ack->ep)) {
        return 0;
    }

    ack->send = elem->cb;
    return 1;
}

void ucp_opt_wireup_ack(ucp_ep_h ep)
{
    ucp_opt_wireup_ack_t ack = {
        .ep   = ep,
        .send = NULL
    };

    if (!(ep->worker->context->opt & UCP_OPT_WIREUP)) {
        return;
    }

    ucp_opt_remove_oneshot(ep, ucp_opt_wireup_ack_pred, &ack);
    if (ack.send != NULL) {
        ack.send(ep);
    }
}
