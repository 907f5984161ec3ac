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

/* Make a request, of which flags, callback and count are set, what
 * ucp_ep_flush_progress() expects after the first so many lanes have been
 * asked. */
static void ucp_opt_ep_flush_init(ucp_request_t *req, ucp_ep_h ep,
                                  unsigned num_lanes, unsigned num_started)
{
    req->status                   = UCS_OK;
    req->send.ep                  = ep;
    req->send.flushed_cb          = ucp_ep_flushed_callback;
    req->send.flush.uct_flags     = UCT_FLUSH_FLAG_LOCAL;
    req->send.flush.sw_started    = 0;
    req->send.flush.sw_done       = 0;
    req->send.flush.started_lanes = UCS_MASK(num_started);
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

    ucp_opt_ep_flush_init(req, ep, num_lanes, num_lanes);
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
                       const ucp_request_param_t *param, unsigned num_started)
{
    unsigned num_lanes = ucp_ep_num_lanes(ep);
    ucs_status_t status;

    req->send.state.uct_comp.count  += num_lanes - num_started - 1;
    ucp_opt_ep_flush_init(req, ep, num_lanes, num_started);
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
                      const ucp_request_param_t *param, unsigned num_started)
{
    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_go_on(ep, req, param, num_started);
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
            return ucp_opt_ep_flush_slow(ep, req, param, lane);
        }
    }

    if (ucs_unlikely(!ucp_opt_ep_is_sw_flushed(ep))) {
        return ucp_opt_ep_flush_slow(ep, req, param, num_lanes);
    }

    if (--comp->count == 0) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put_param(param, req);
        return NULL;
    }

    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_wait(ep, req);
}

/* Flush of an endpoint with one lane. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_single(ucp_ep_h ep, const ucp_request_param_t *param)
{
    uct_completion_t *comp;
    ucs_status_t status;
    ucp_request_t *req;

    req = ucp_request_get(ep->worker);
    if (ucs_unlikely(req == NULL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }

    comp         = &req->send.state.uct_comp;
    comp->func   = ucp_opt_ep_flush_completion;
    comp->count  = 1;
    comp->status = UCS_OK;

    status = uct_ep_flush(ep->uct_eps[0], UCT_FLUSH_FLAG_LOCAL, comp);
    if (ucs_unlikely((uint8_t)status > UCS_INPROGRESS)) {
        return ucp_opt_ep_flush_slow(ep, req, param, 0);
    }

    if (ucs_unlikely(!ucp_opt_ep_is_sw_flushed(ep))) {
        comp->count += status; /* 0 or 1 */
        return ucp_opt_ep_flush_slow(ep, req, param, 1);
    }

    if (status == UCS_OK) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put(req);
        return NULL;
    }

    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_wait(ep, req);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_nbx_general(ucp_ep_h ep, const ucp_request_param_t *param);

/* Flush of an endpoint with two lanes. What it needs after asking a lane is in
 * the request before, and so in no register that has to be saved, for which
 * it takes no request that is not there. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_two(ucp_ep_h ep, const ucp_request_param_t *param)
{
    ucs_status_t status;
    ucp_request_t *req;
    uct_ep_h uct_ep;
    unsigned lane;

    if (ucs_unlikely(ep->worker->req_mp.freelist == NULL)) {
        return ucp_opt_ep_flush_nbx_general(ep, param);
    }

    req = ucp_request_get(ep->worker);
    ucp_opt_ep_flush_set_param(req, param);
    req->send.ep                    = ep;
    req->send.state.uct_comp.func   = ucp_opt_ep_flush_completion;
    req->send.state.uct_comp.count  = 1; /* transports count on one */
    req->send.state.uct_comp.status = UCS_OK;

    for (lane = 0; lane < 2; ++lane) {
        uct_ep = req->send.ep->uct_eps[lane];
        if (ucs_unlikely(uct_ep == NULL)) {
            continue;
        }

        status = uct_ep_flush(uct_ep, UCT_FLUSH_FLAG_LOCAL,
                              &req->send.state.uct_comp);
        if (status == UCS_INPROGRESS) {
            ++req->send.state.uct_comp.count;
        } else if (ucs_unlikely(status != UCS_OK)) {
            break;
        }
    }

    ep = req->send.ep;
    if (ucs_unlikely((lane < 2) || !ucp_opt_ep_is_sw_flushed(ep))) {
        return ucp_opt_ep_flush_go_on(ep, req, &ucp_request_null_param, lane);
    }

    if (--req->send.state.uct_comp.count == 0) {
        ucp_request_put(req);
        return NULL;
    }

    return ucp_opt_ep_flush_wait(ep, req);
}

/* Flush of an endpoint, in the usual cases without the general function. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_ep_flush_usual(ucp_ep_h ep, const ucp_request_param_t *param)
{
    if (ucs_likely((ep->worker->flags & UCP_WORKER_FLAG_OPT_FLUSH) &&
                   !(param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) &&
                   !ucp_opt_ep_config_has_failover(ucp_ep_config(ep)))) {
        unsigned num_lanes = ucp_ep_num_lanes(ep);

        if (ucs_likely((num_lanes == 1) && (ep->uct_eps[0] != NULL))) {
            return ucp_opt_ep_flush_single(ep, param);
        } else if (num_lanes == 2) {
            return ucp_opt_ep_flush_two(ep, param);
        }
    }

    return ucp_opt_ep_flush_nbx_general(ep, param);
}
