/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Flush that pays for what is outstanding. Included by rma/flush.c, whose
 * functions carry on where something has to be waited for in more than the
 * usual way.
 */

#include <ucp/opt/ucp_opt.h>


static UCS_F_ALWAYS_INLINE int ucp_opt_flush_is_on(ucp_worker_h worker)
{
    return worker->context->opt & UCP_OPT_FLUSH;
}

/* Whether the software protocols await an answer of the peer. What the peer
 * answers is counted only once the endpoint knows it. */
static UCS_F_ALWAYS_INLINE int ucp_opt_ep_is_sw_flushed(ucp_ep_h ep)
{
    return !ucs_test_all_flags(ep->flags, UCP_EP_FLAG_USED |
                                          UCP_EP_FLAG_REMOTE_ID) ||
           (ucp_ep_flush_state(ep)->send_sn == ucp_ep_flush_state(ep)->cmpl_sn);
}

/* The transports are done with the last lane. */
static void ucp_opt_ep_flush_completion(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);
    ucp_ep_h ep        = req->send.ep;

    if (ucs_likely((self->status == UCS_OK) &&
                   (req->send.flush.num_lanes == ucp_ep_num_lanes(ep)) &&
                   (req->send.flush.started_lanes ==
                    UCS_MASK(req->send.flush.num_lanes)) &&
                   (req->send.flush.prog_id == UCS_CALLBACKQ_ID_NULL) &&
                   ucp_opt_ep_is_sw_flushed(ep))) {
        ucp_trace_req(req, "flush completed");
        req->status = UCS_OK;
        req->send.flushed_cb(req);
        return;
    }

    ucp_ep_flush_completion(self);
}

/* Make the request what ucp_ep_flush_progress() expects. The completion and
 * started_lanes are set. */
static void
ucp_opt_ep_flush_init(ucp_request_t *req, ucp_ep_h ep, unsigned req_flags,
                      const ucp_request_param_t *param,
                      ucp_request_t *worker_req,
                      ucp_request_callback_t flushed_cb)
{
    req->flags                 = req_flags;
    req->status                = UCS_OK;
    req->send.ep               = ep;
    req->send.flushed_cb       = flushed_cb;
    req->send.flush.prog_id    = UCS_CALLBACKQ_ID_NULL;
    req->send.flush.uct_flags  = UCT_FLUSH_FLAG_LOCAL;
    req->send.flush.sw_started = 0;
    req->send.flush.sw_done    = 0;
    req->send.lane             = UCP_NULL_LANE;
    req->send.uct.func         = ucp_ep_flush_progress_pending;

    ucp_request_set_super(req, worker_req);
    ucp_request_set_send_callback_param(param, req, send);
}

/*
 * As ucp_ep_flush_internal(). The lanes are asked first, each with the request
 * as its completion, and the request becomes one only if a lane has something
 * outstanding. A transport never completes a flush while it is being called,
 * so the completion counts what was outstanding when the last was asked.
 */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_ep_flush(ucp_ep_h ep, unsigned req_flags,
                 const ucp_request_param_t *param, ucp_request_t *worker_req,
                 ucp_request_callback_t flushed_cb, const char *debug_name)
{
    unsigned num_lanes       = ucp_ep_num_lanes(ep);
    ucp_lane_map_t all_lanes = UCS_MASK(num_lanes);
    ucp_lane_map_t started   = 0;
    int count                = num_lanes;
    ucs_status_t status;
    ucp_lane_index_t lane;
    ucp_request_t *req;
    uct_ep_h uct_ep;

    if (ucs_unlikely(!ucp_opt_flush_is_on(ep->worker))) {
        return ucp_ep_flush_internal(ep, req_flags, param, worker_req,
                                     flushed_cb, debug_name);
    }

    req = ucp_request_get_param(ep->worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    req->send.state.uct_comp.func   = ucp_opt_ep_flush_completion;
    req->send.state.uct_comp.count  = num_lanes;
    req->send.state.uct_comp.status = UCS_OK;

    for (lane = 0; lane < num_lanes; ++lane) {
        uct_ep = ep->uct_eps[lane];
        status = (uct_ep == NULL) ? UCS_OK :
                 uct_ep_flush(uct_ep, UCT_FLUSH_FLAG_LOCAL,
                              &req->send.state.uct_comp);
        if (ucs_likely(status == UCS_OK)) {
            --count;
        } else if (ucs_unlikely(status != UCS_INPROGRESS)) {
            break;
        }
        started |= UCS_BIT(lane);
    }

    if ((count == 0) && ucp_opt_ep_is_sw_flushed(ep)) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put_param(param, req);
        return NULL;
    }

    req->send.state.uct_comp.count = count;
    req->send.flush.num_lanes      = num_lanes;
    req->send.flush.started_lanes  = started;
    ucp_opt_ep_flush_init(req, ep, req_flags, param, worker_req, flushed_cb);

    if (ucs_unlikely((started != all_lanes) || (count == 0))) {
        /* A lane wants the request to be queued, has failed, or only the
         * peer's answers are missing. */
        ucp_ep_flush_progress(req);
        if (ucp_ep_flush_is_completed(req)) {
            status = req->status;
            ucp_request_put_param(param, req);
            return UCS_STATUS_PTR(status);
        }
    }

    ucs_trace_req("ep %p: flush request %p is in progress", ep, req);
    return req + 1;
}
