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

/* An endpoint with a lane that neither is flushed nor takes the completion has
 * a request of its own. */
static UCS_F_NOINLINE void
ucp_opt_worker_flush_ep_slow(ucp_request_t *req, ucp_ep_h ep)
{
    ucs_status_ptr_t ep_request;

    ep_request = ucp_ep_flush_internal(ep, UCP_REQUEST_FLAG_RELEASED,
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
 * Flush of a worker with few endpoints: all are asked at once, with the request
 * as their completion, rather than one after the other from a progress
 * callback.
 */
static ucs_status_ptr_t
ucp_opt_worker_flush(ucp_worker_h worker, const ucp_request_param_t *param)
{
    ucp_lane_index_t lane, num_lanes;
    ucp_ep_ext_gen_t *ep_ext;
    uct_completion_t *comp;
    ucs_status_t status;
    ucp_request_t *req;
    ucp_ep_h ep;

    UCS_STATIC_ASSERT(ucs_offsetof(ucp_request_t, send.state.uct_comp) >=
                      (ucs_offsetof(ucp_request_t, flush_worker) +
                       ucs_field_sizeof(ucp_request_t, flush_worker)));

    req = ucp_request_get_param(worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    req->flags                   = 0;
    req->status                  = UCS_OK;
    req->flush_worker.worker     = worker;
    req->flush_worker.prog_id    = UCS_CALLBACKQ_ID_NULL;
    req->flush_worker.comp_count = 1; /* for the transports */
    req->flush_worker.next_ep    = ucs_container_of(&worker->all_eps,
                                                    ucp_ep_ext_gen_t, ep_list);
    ucp_request_set_send_callback_param(param, req, flush_worker);

    comp         = &req->send.state.uct_comp;
    comp->func   = ucp_opt_worker_flush_completion;
    comp->count  = 0;
    comp->status = UCS_OK;

    ucs_list_for_each(ep_ext, &worker->all_eps, ep_list) {
        ep        = ucp_ep_from_ext_gen(ep_ext);
        num_lanes = ucp_ep_num_lanes(ep);
        for (lane = 0; lane < num_lanes; ++lane) {
            if (ucs_unlikely(ep->uct_eps[lane] == NULL)) {
                continue;
            }

            status = uct_ep_flush(ep->uct_eps[lane], UCT_FLUSH_FLAG_LOCAL,
                                  comp);
            if (status == UCS_INPROGRESS) {
                ++comp->count;
            } else if (ucs_unlikely(status != UCS_OK)) {
                ucp_opt_worker_flush_ep_slow(req, ep);
                break;
            }
        }
    }

    if ((comp->count == 0) && (--req->flush_worker.comp_count == 0)) {
        ucp_request_put_param(param, req);
        return NULL;
    }

    return req + 1;
}

/* What the worker itself counts, answers that software protocols await and the
 * end of lanes that are being discarded, is left to the code of before. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_worker_flush_is_wanted(ucp_worker_h worker)
{
    return ucp_opt_flush_is_on(worker) && (worker->flush_ops_count == 0) &&
           worker->context->config.ext.flush_worker_eps &&
           (worker->num_all_eps <= UCP_OPT_FLUSH_MAX_EPS);
}
