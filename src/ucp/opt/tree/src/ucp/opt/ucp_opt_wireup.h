/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_WIREUP_H_
#define UCP_OPT_WIREUP_H_

#include <ucp/core/ucp_types.h>

/*
 * Auxiliary interfaces, which only connect others, without polling them. The
 * transport that can be one (UD) handles what arrives, and sends again what got
 * lost, in its asynchronous handlers, and so does UCP with wireup messages. As
 * long as an interface carries nothing else it need not be part of progress:
 * what has to be done by the main thread after all is announced by the event
 * callback of the interface, which makes progress look at it once.
 */

/** Bits of ucp_wireup_ep_t::opt. */
enum {
    /** The auxiliary endpoint lives on events: ucp_opt_wireup_aux_start() has
     *  counted it in ucp_worker_iface_t::opt_wireup_count */
    UCP_OPT_WIREUP_EP_EVENTS = 1 << 0
};


/**
 * Whether an interface may be left out of progress while nothing uses it: in
 * case of adaptive progress (UCX_ADAPTIVE_PROGRESS), and otherwise too if it is
 * for connecting only.
 *
 * @param [in] worker     Worker of the interface.
 * @param [in] rsc_index  The interface's resource.
 */
int ucp_opt_wireup_is_adaptive(ucp_worker_h worker, ucp_rsc_index_t rsc_index);

/**
 * Begin to use the auxiliary endpoint of a wireup endpoint: progress the
 * interface, by events if it has them.
 *
 * @param [in] wireup_ep  Wireup endpoint, whose aux_ep is set.
 */
void ucp_opt_wireup_aux_start(ucp_wireup_ep_t *wireup_ep);

/**
 * The auxiliary endpoint is about to be destroyed: undo
 * ucp_opt_wireup_aux_start(), or what stands for it if the endpoint was a lane
 * before.
 *
 * @param [in] wireup_ep  Wireup endpoint, whose aux_ep is set.
 */
void ucp_opt_wireup_aux_stop(ucp_wireup_ep_t *wireup_ep);

/**
 * The auxiliary endpoint is about to be flushed, whose completion only progress
 * finds: from now on its interface is progressed, and
 * ucp_ep_unprogress_uct_ep() ends that.
 *
 * @param [in] wireup_ep  Wireup endpoint, whose aux_ep is set.
 */
void ucp_opt_wireup_aux_poll(ucp_wireup_ep_t *wireup_ep);

/**
 * Progress of an interface was disabled, which stops its timers too: if
 * endpoints are being connected by it, let them run again. Called with the
 * worker's async context blocked.
 *
 * @param [in] wiface  Interface that is not active any more.
 */
void ucp_opt_wireup_iface_inactive(ucp_worker_iface_t *wiface);

/**
 * The lanes of an endpoint are connected, and what waited for that is about
 * to be sent: send before it the acknowledgement of the peer's reply, if that
 * waits to be sent by progress. The peer may close its endpoint as soon as it
 * has received anything, and keeps it for what else is sent to it only if it
 * knows that it is connected. Called with the worker's async context blocked.
 *
 * @param [in] ep  Endpoint whose wireup proxies have been replaced.
 */
void ucp_opt_wireup_ack(ucp_ep_h ep);

#endif
