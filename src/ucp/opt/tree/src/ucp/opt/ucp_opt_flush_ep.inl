/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Flush that pays for what is outstanding. Included by rma/flush.c, whose
 * functions carry on where something has to be waited for in more than the
 * usual way.
 *
 * The usual way is that each lane says it has nothing outstanding or takes the
 * completion of the request. Of the request nothing else is in use then, and
 * only that is set: ucp_opt_ep_flush_init() makes it what rma/flush.c expects.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_compat.h>


static UCS_F_ALWAYS_INLINE int ucp_opt_flush_is_on(ucp_worker_h worker)
{
    return worker->context->opt & UCP_OPT_FLUSH;
}

/* Whether the software protocols await no answer of the peer, and no memory is
 * to be read. The worker counts for all its endpoints; and what the peer of one
 * answers is counted only once the endpoint knows it. */
static UCS_F_ALWAYS_INLINE int ucp_opt_ep_is_sw_flushed(ucp_ep_h ep)
{
    return (ucs_likely(ep->worker->flush_ops_count == 0) ||
            !ucs_test_all_flags(ep->flags, UCP_EP_FLAG_USED |
                                           UCP_EP_FLAG_REMOTE_ID) ||
            (ucp_ep_flush_state(ep)->send_sn ==
             ucp_ep_flush_state(ep)->cmpl_sn)) &&
           ucs_likely(!ucp_opt_ep_has_mem_flush(ep));
}

/* A lane may have completed with an error before another one, on which the
 * request was queued, was the last: that one says nothing of errors. */
static void ucp_opt_ep_flushed_callback(ucp_request_t *req)
{
    if (req->status == UCS_OK) {
        req->status = req->send.state.uct_comp.status;
    }

    ucp_ep_flushed_callback(req);
}

/* Make a request, of which flags, callback and count are set, what
 * ucp_ep_flush_progress() expects after some lanes have been asked. */
static void ucp_opt_ep_flush_init(ucp_request_t *req, ucp_ep_h ep,
                                  unsigned num_lanes, ucp_lane_map_t started)
{
    req->status                   = UCS_OK;
    req->send.ep                  = ep;
    req->send.flushed_cb          = ucp_opt_ep_flushed_callback;
    req->send.flush.uct_flags     = UCT_FLUSH_FLAG_LOCAL;
    req->send.flush.sw_started    = 0;
    req->send.flush.sw_done       = 0;
    req->send.flush.started_lanes = started;
    req->send.lane                = UCP_NULL_LANE;
    req->send.uct.func            = ucp_ep_flush_progress_pending;
    /* By this others know that it is a flush. */
    req->send.state.uct_comp.func = ucp_ep_flush_completion;
    ucp_opt_flush_set_lanes(req, num_lanes);
}

/* A lane has failed, lanes have been added, or the peer has to answer. */
static UCS_F_NOINLINE void
ucp_opt_ep_flush_completion_slow(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);
    ucp_ep_h ep        = req->send.ep;
    unsigned num_lanes = ucp_opt_ep_config(ep->worker,
                                           req->send.flush.opt_cfg_index)
                                 ->key.num_lanes;

    ucp_opt_ep_flush_init(req, ep, num_lanes, UCS_MASK(num_lanes));
    ucp_ep_flush_completion(self);
}

static UCS_F_NOINLINE void ucp_opt_ep_flush_complete(ucp_request_t *req)
{
    ucp_request_complete_send(req, UCS_OK);
}

/* The transports are done with the last lane. */
static void ucp_opt_ep_flush_completion(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);
    ucp_ep_h ep        = req->send.ep;

    if (ucs_unlikely((self->status != UCS_OK) ||
                     (req->send.flush.opt_cfg_index != ep->cfg_index) ||
                     !ucp_opt_ep_is_sw_flushed(ep))) {
        ucp_opt_ep_flush_completion_slow(self);
        return;
    }

    ucp_trace_req(req, "flush completed");
    if (ucs_unlikely(req->flags & (UCP_REQUEST_FLAG_CALLBACK |
                                   UCP_REQUEST_FLAG_RELEASED))) {
        ucp_opt_ep_flush_complete(req);
        return;
    }

    req->status = UCS_OK;
    req->flags  = UCP_REQUEST_FLAG_COMPLETED;
}

static UCS_F_ALWAYS_INLINE void
ucp_opt_ep_flush_set_param(ucp_request_t *req, const ucp_request_param_t *param)
{
    req->flags = 0;
    ucp_request_set_send_callback_param(param, req, send);
}

/* A lane wants the request to be queued or has failed, or only the peer's
 * answers are missing. The completion counts one more than is outstanding. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_go_on(ucp_ep_h ep, ucp_request_t *req,
                       const ucp_request_param_t *param, ucp_lane_map_t started)
{
    unsigned num_lanes = ucp_ep_num_lanes(ep);
    ucs_status_t status;

    req->send.state.uct_comp.count += num_lanes - ucs_popcount(started) - 1;
    ucp_opt_ep_flush_init(req, ep, num_lanes, started);
    ucp_ep_flush_progress(req);

    if (ucp_ep_flush_is_completed(req) &&
        (ucp_opt_ep_flush_mem_start(req) == UCS_OK)) {
        status = req->status;
        ucp_request_put_param(param, req);
        return UCS_STATUS_PTR(status);
    }

    return req + 1;
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_slow(ucp_ep_h ep, ucp_request_t *req,
                      const ucp_request_param_t *param, ucp_lane_map_t started)
{
    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_go_on(ep, req, param, started);
}

/* The request of the usual way, with a lane that completes it. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_ep_flush_wait(ucp_ep_h ep, ucp_request_t *req)
{
    ucs_trace_req("ep %p: flush request %p is in progress", ep, req);
    req->send.ep                  = ep;
    req->send.flush.opt_cfg_index = ep->cfg_index;
    return req + 1;
}

/*
 * As ucp_ep_flush_internal() for the user's own requests. A transport never
 * completes a flush while it is being called, so the completion may count what
 * is outstanding as it is found.
 */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_ep_flush(ucp_ep_h ep, const ucp_request_param_t *param,
                 const char *debug_name)
{
    ucp_worker_h worker = ep->worker;
    unsigned lane       = 0;
    uct_completion_t *comp;
    ucs_status_t status;
    ucp_request_t *req;
    unsigned num_lanes;
    uct_ep_h uct_ep;

    if (ucs_unlikely(!ucp_opt_flush_is_on(worker) ||
                     ucp_opt_ep_config_has_failover(ucp_ep_config(ep)))) {
        return ucp_opt_ep_flush_internal(ep, 0, param, NULL,
                                         ucp_ep_flushed_callback, debug_name);
    }

    req = ucp_request_get_param(worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    comp         = &req->send.state.uct_comp;
    comp->func   = ucp_opt_ep_flush_completion;
    comp->count  = 1; /* for this function: transports count on one */
    comp->status = UCS_OK;
    num_lanes    = ucp_ep_num_lanes(ep);

    for (; lane < num_lanes; ++lane) {
        uct_ep = ucp_opt_ep_lane(ep, lane);
        if (ucs_unlikely(uct_ep == NULL)) {
            continue;
        }

        status = uct_ep_flush(uct_ep, UCT_FLUSH_FLAG_LOCAL, comp);
        if (ucs_likely(status == UCS_INPROGRESS)) {
            ++comp->count;
        } else if (ucs_unlikely(status != UCS_OK)) {
            return ucp_opt_ep_flush_slow(ep, req, param, UCS_MASK(lane));
        }
    }

    if (ucs_unlikely(!ucp_opt_ep_is_sw_flushed(ep))) {
        return ucp_opt_ep_flush_slow(ep, req, param, UCS_MASK(num_lanes));
    }

    if (--comp->count == 0) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put_param(param, req);
        return NULL;
    }

    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_wait(ep, req);
}
