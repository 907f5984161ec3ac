/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Flush of a worker. Included by rma/flush.c after ucp_opt_flush_ep.inl.
 */


/* Worker flush asks the lanes of so many endpoints in the call itself. With
 * more of them, doing it in one go would keep other progress waiting. */
#define UCP_OPT_FLUSH_MAX_EPS 16


/* Of all endpoints whose flush is what the transports have outstanding. */
static void ucp_opt_worker_flush_completion(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);

    /* As ever, the failure of an endpoint is its own. */
    if (ucs_likely(req->flush_worker.comp_count == 1)) {
        ucp_request_complete(req, flush_worker.cb, UCS_OK, req->user_data);
    } else {
        ucp_worker_flush_complete_one(req, UCS_OK, 0);
    }
}

/* Make a request, of whose completion only the count is set, one that is waited
 * for. */
static UCS_F_ALWAYS_INLINE void
ucp_opt_worker_flush_init(ucp_worker_h worker, ucp_request_t *req,
                          const ucp_request_param_t *param)
{
    req->flags                      = 0;
    req->status                     = UCS_OK;
    req->send.state.uct_comp.func   = ucp_opt_worker_flush_completion;
    req->send.state.uct_comp.status = UCS_OK;
    req->flush_worker.worker        = worker;
    req->flush_worker.prog_id       = UCS_CALLBACKQ_ID_NULL;
    req->flush_worker.comp_count    = 1; /* for the transports */
    ucp_opt_flush_worker_set_end(req, worker);
    ucp_request_set_send_callback_param(param, req, flush_worker);
}

/* An endpoint with a lane that neither is flushed nor takes the completion has
 * a request of its own. */
static void ucp_opt_worker_flush_ep_slow(ucp_request_t *req, ucp_ep_h ep)
{
    ucs_status_ptr_t ep_request;

    ep_request = ucp_opt_ep_flush_internal(ep, UCP_REQUEST_FLAG_RELEASED,
                                           &ucp_request_null_param, req,
                                           ucp_worker_flush_ep_flushed_cb,
                                           "flush_worker");
    if (UCS_PTR_IS_PTR(ep_request)) {
        ++req->flush_worker.comp_count;
    } else if (UCS_PTR_IS_ERR(ep_request)) {
        ucs_diag("flush of ep %p failed: %s", ep,
                 ucs_status_string(UCS_PTR_STATUS(ep_request)));
    }
}

/*
 * Ask the lanes of an endpoint and of all that follow, with the completion of a
 * request, which counts those that have something outstanding.
 *
 * @return The first endpoint that needs a request of its own, or the end.
 */
static UCS_F_ALWAYS_INLINE ucp_opt_ep_ext_t *
ucp_opt_worker_flush_lanes(ucp_worker_h worker, ucp_opt_ep_ext_t *ep_ext,
                           uct_completion_t *comp)
{
    const ucp_ep_config_t *config;
    uct_ep_h *uct_ep_p, *end_p;
    ucs_status_t status;
    ucp_ep_h ep;

    while (&ep_ext->ep_list != &worker->all_eps) {
        ep     = ucp_opt_ep_from_ext(ep_ext);
        config = ucp_ep_config(ep);
        if (ucs_unlikely((config->key.num_lanes > UCP_OPT_MAX_FAST_LANES) ||
                         ucp_opt_ep_config_has_failover(config) ||
                         ucp_opt_ep_has_mem_flush(ep))) {
            return ep_ext;
        }

        end_p = ep->uct_eps + config->key.num_lanes;
        for (uct_ep_p = ep->uct_eps; uct_ep_p < end_p; ++uct_ep_p) {
            if (ucs_unlikely(*uct_ep_p == NULL)) {
                continue;
            }

            status = uct_ep_flush(*uct_ep_p, UCT_FLUSH_FLAG_LOCAL, comp);
            if (status == UCS_INPROGRESS) {
                ++comp->count;
            } else if (ucs_unlikely(status != UCS_OK)) {
                return ep_ext;
            }
        }

        ep_ext = ucs_container_of(ep_ext->ep_list.next, ucp_opt_ep_ext_t,
                                  ep_list);
    }

    return ep_ext;
}

/* From an endpoint on that needs a request of its own. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_worker_flush_slow(ucp_worker_h worker, ucp_request_t *req,
                          const ucp_request_param_t *param,
                          ucp_opt_ep_ext_t *ep_ext)
{
    uct_completion_t *comp = &req->send.state.uct_comp;

    ucp_opt_worker_flush_init(worker, req, param);
    while (&ep_ext->ep_list != &worker->all_eps) {
        ucp_opt_worker_flush_ep_slow(req, ucp_opt_ep_from_ext(ep_ext));
        ep_ext = ucs_container_of(ep_ext->ep_list.next, ucp_opt_ep_ext_t,
                                  ep_list);
        ep_ext = ucp_opt_worker_flush_lanes(worker, ep_ext, comp);
    }

    if ((--comp->count == 0) && (--req->flush_worker.comp_count == 0)) {
        ucp_request_put_param(param, req);
        return NULL;
    }

    return req + 1;
}

/*
 * Flush of a worker with few endpoints: all are asked at once, with the request
 * as their completion, rather than one after the other from a progress
 * callback. No transport completes a flush while it is being called, so the
 * request is made complete, and the completion gets its function, when there is
 * something to wait for.
 */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_worker_flush(ucp_worker_h worker, const ucp_request_param_t *param)
{
    ucp_opt_ep_ext_t *ep_ext;
    uct_completion_t *comp;
    ucp_request_t *req;

    UCS_STATIC_ASSERT(ucs_offsetof(ucp_request_t, send.state.uct_comp) >=
                      (ucs_offsetof(ucp_request_t, flush_worker) +
                       ucs_field_sizeof(ucp_request_t, flush_worker)));

    req = ucp_request_get_param(worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    comp        = &req->send.state.uct_comp;
    comp->count = 1; /* for this function: transports count on from it, so the
                        last one of them does not call anybody */

    ep_ext = ucs_container_of(worker->all_eps.next, ucp_opt_ep_ext_t, ep_list);
    ep_ext = ucp_opt_worker_flush_lanes(worker, ep_ext, comp);
    if (ucs_unlikely(&ep_ext->ep_list != &worker->all_eps)) {
        return ucp_opt_worker_flush_slow(worker, req, param, ep_ext);
    }

    if (--comp->count == 0) {
        ucp_request_put_param(param, req);
        return NULL;
    }

    ucp_opt_worker_flush_init(worker, req, param);
    return req + 1;
}

/* What the worker itself counts, answers that software protocols await and the
 * end of lanes that are being discarded, is left to the code of before. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_worker_flush_is_possible(ucp_worker_h worker)
{
    return (worker->flush_ops_count == 0) &&
           (worker->num_all_eps <= UCP_OPT_FLUSH_MAX_EPS);
}

/* Whether to flush by this code if the caller may have taken a lock. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_worker_flush_is_wanted(ucp_worker_h worker)
{
    return ucp_opt_flush_is_on(worker) &&
           worker->context->config.ext.flush_worker_eps &&
           ucp_opt_worker_flush_is_possible(worker);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_worker_flush_nbx_general(ucp_worker_h worker,
                                 const ucp_request_param_t *param);

UCS_PROFILE_FUNC(ucs_status_ptr_t, ucp_worker_flush_nbx, (worker, param),
                 ucp_worker_h worker, const ucp_request_param_t *param)
{
    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_FLUSH_EPS) ||
                     !ucp_opt_worker_flush_is_possible(worker))) {
        return ucp_opt_worker_flush_nbx_general(worker, param);
    }

    return ucp_opt_worker_flush(worker, param);
}
