/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_compat.h"
#include "ucp_opt_ondemand.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/proto/proto_common.h>
#include <ucp/wireup/address.h>
#include <ucp/wireup/wireup.h>
#include <ucp/wireup/wireup_ep.h>
#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/stubs.h>

#include <string.h>


/* With UCX_OPT_ONDEMAND=auto, jobs of fewer peers connect at once: what they
 * would save does not make up for a later first message. */
#define UCP_OPT_ONDEMAND_AUTO_MIN 64


/* In place of the address of an endpoint that could not be connected. */
static ucp_opt_ondemand_t ucp_opt_ondemand_failed;


unsigned ucp_opt_ondemand_init_flags(ucp_worker_h worker,
                                     unsigned ep_init_flags)
{
    ucp_context_h context = worker->context;
    int is_wanted;

    is_wanted = (context->opt & UCP_OPT_ONDEMAND) ||
                ((context->opt & UCP_OPT_ONDEMAND_AUTO) &&
                 (context->config.est_num_eps >= UCP_OPT_ONDEMAND_AUTO_MIN));

    if (!is_wanted || (ep_init_flags & UCP_OPT_EP_INIT_ERR_MODES)) {
        return ep_init_flags;
    }

    return ep_init_flags | UCP_OPT_ONDEMAND_INIT;
}

int ucp_opt_ondemand_is_postponed(const ucp_wireup_ep_t *wireup_ep)
{
    return wireup_ep->opt & UCP_OPT_ONDEMAND_EP_POSTPONED;
}

void ucp_opt_ondemand_postpone(uct_ep_h uct_ep)
{
    ucp_wireup_ep_t *wireup_ep = ucp_wireup_ep(uct_ep);
    ucp_worker_h worker        = wireup_ep->super.ucp_ep->worker;

    /* What has not begun is nothing a worker's flush waits for. */
    UCS_ASYNC_BLOCK(&worker->async);
    wireup_ep->opt |= UCP_OPT_ONDEMAND_EP_POSTPONED;
    ucp_opt_flush_ops_count_add(worker, -1);
    UCS_ASYNC_UNBLOCK(&worker->async);
}

void ucp_opt_ondemand_wireup_ep_cleanup(ucp_wireup_ep_t *wireup_ep)
{
    ucp_worker_h worker = wireup_ep->super.ucp_ep->worker;

    if (ucp_opt_ondemand_is_postponed(wireup_ep)) {
        UCS_ASYNC_BLOCK(&worker->async);
        wireup_ep->opt &= ~UCP_OPT_ONDEMAND_EP_POSTPONED;
        ucp_opt_flush_ops_count_add(worker, +1);
        UCS_ASYNC_UNBLOCK(&worker->async);
    }
}

void ucp_opt_ondemand_cleanup(ucp_ep_h ep)
{
    if (ucp_opt_ep_ext(ep)->opt_ondemand != &ucp_opt_ondemand_failed) {
        ucs_free(ucp_opt_ep_ext(ep)->opt_ondemand);
    }
    ucp_opt_ep_ext(ep)->opt_ondemand = NULL;
}

/* Create the transport endpoint of a lane, and the auxiliary one if messages to
 * the peer take this lane. */
static ucs_status_t
ucp_opt_ondemand_connect_lane(ucp_ep_h ep, ucp_lane_index_t lane,
                              unsigned ep_init_flags,
                              const ucp_unpacked_address_t *remote_address)
{
    ucp_rsc_index_t rsc_index = ucp_ep_get_rsc_index(ep, lane);
    uct_ep_h uct_ep           = ucp_opt_ep_lane(ep, lane);
    ucs_status_t status;

    ucp_opt_ondemand_wireup_ep_cleanup(ucp_wireup_ep(uct_ep));
    status = ucp_wireup_ep_connect(
            uct_ep, ep_init_flags, rsc_index,
            ucp_ep_config(ep)->key.lanes[lane].path_index,
            lane == ucp_ep_get_wireup_msg_lane(ep), remote_address);
    if ((status == UCS_OK) && ucp_opt_lane_is_progressed(ep->worker)) {
        ucp_worker_iface_progress_ep(ucp_worker_iface(ep->worker, rsc_index));
    }

    return status;
}

ucs_status_t
ucp_opt_ondemand_accept(ucp_ep_h ep,
                        const ucp_unpacked_address_t *remote_address)
{
    ucp_opt_ondemand_t *ondemand = ucp_opt_ep_ext(ep)->opt_ondemand;
    ucs_status_t status          = UCS_OK;
    ucp_lane_index_t lane;
    uct_ep_h uct_ep;

    if ((ondemand == NULL) || (ondemand == &ucp_opt_ondemand_failed)) {
        return UCS_OK;
    }

    ucp_opt_ep_ext(ep)->opt_ondemand = NULL;
    for (lane = 0; lane < ucp_ep_num_lanes(ep); ++lane) {
        uct_ep = ucp_opt_ep_lane(ep, lane);
        if (!ucp_wireup_ep_test(uct_ep) ||
            !ucp_opt_ondemand_is_postponed(ucp_wireup_ep(uct_ep))) {
            continue;
        }

        status = ucp_opt_ondemand_connect_lane(ep, lane,
                                               ondemand->ep_init_flags,
                                               remote_address);
        if (status != UCS_OK) {
            break;
        }
    }

    ucs_free(ondemand);
    return status;
}

ucs_status_t ucp_opt_ondemand_resolve_remote_id(ucp_ep_h ep,
                                                ucp_lane_index_t lane)
{
    uct_ep_h uct_ep;
    int is_postponed;

    UCS_ASYNC_BLOCK(&ep->worker->async);
    uct_ep       = ucp_opt_ep_lane(ep, lane);
    is_postponed = ucp_wireup_ep_test(uct_ep) &&
                   ucp_opt_ondemand_is_postponed(ucp_wireup_ep(uct_ep));
    UCS_ASYNC_UNBLOCK(&ep->worker->async);

    return is_postponed ? UCS_OK : ucp_ep_resolve_remote_id(ep, lane);
}

void ucp_opt_ondemand_use(ucp_ep_h ep)
{
    ucp_opt_ondemand_t *ondemand = ucp_opt_ep_ext(ep)->opt_ondemand;
    ucp_worker_h worker          = ep->worker;
    ucp_unpacked_address_t remote_address;
    ucs_status_t status;

    if (ucs_likely(ondemand == NULL) ||
        (ondemand == &ucp_opt_ondemand_failed) ||
        (ep->flags & UCP_EP_FLAG_FAILED)) {
        return;
    }

    ucs_debug("ep %p: used for the first time, connecting", ep);
    status = ucp_address_unpack(worker, ondemand->address,
                                ucp_worker_default_address_pack_flags(worker),
                                &remote_address);
    if (status == UCS_OK) {
        status = ucp_opt_ondemand_accept(ep, &remote_address);
        ucs_free(remote_address.address_list);
    }

    if (status == UCS_OK) {
        /* Takes care of its failures. */
        (void)ucp_wireup_send_request(ep);
    } else {
        ucs_error("ep %p: cannot connect to %s on first use: %s", ep,
                  ucp_ep_peer_name(ep), ucs_status_string(status));
        ucp_opt_ondemand_cleanup(ep);
        ucp_opt_ep_ext(ep)->opt_ondemand = &ucp_opt_ondemand_failed;
        ucp_opt_ep_set_failed_schedule(ep, status);
    }
}

void ucp_opt_ondemand_abort(ucp_request_t *req, ucs_status_t status)
{
    const ucp_proto_t *proto           = req->send.proto_config->proto;
    ucp_request_abort_func_t not_there = UCP_OPT_PROTO_ABORT_NOT_THERE;

    if ((proto->abort == not_there) &&
        (ucp_opt_ep_ext(req->send.ep)->opt_ondemand ==
         &ucp_opt_ondemand_failed)) {
        /* It has only been queued. */
        ucp_proto_request_bcopy_abort(req, status);
        return;
    }

    proto->abort(req, status);
}

ucs_status_t
ucp_opt_ondemand_request(ucp_ep_h ep, unsigned ep_init_flags,
                         const void *address,
                         const ucp_unpacked_address_t *remote_address)
{
    ucp_opt_ondemand_t *ondemand;

    if (!(ep_init_flags & UCP_OPT_ONDEMAND_INIT)) {
        return ucp_wireup_send_request(ep);
    }

    ondemand = ucs_malloc(sizeof(*ondemand) + remote_address->opt_length,
                          "ucp_opt_ondemand");
    if (ondemand == NULL) {
        ucs_error("ep %p: no memory to keep an address of %zu bytes", ep,
                  remote_address->opt_length);
        return UCS_ERR_NO_MEMORY;
    }

    ondemand->ep_init_flags = ep_init_flags & ~UCP_OPT_ONDEMAND_INIT;
    memcpy(ondemand->address, address, remote_address->opt_length);
    ucp_opt_ep_ext(ep)->opt_ondemand = ondemand;
    return UCS_OK;
}
