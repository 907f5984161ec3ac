/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Flush of a worker. Included by rma/flush.c after ucp_opt_flush_ep.inl.
 */


/* Worker flush starts the flush of so many endpoints in the call itself. With
 * more of them, doing it in one go would keep other progress waiting. */
#define UCP_OPT_FLUSH_MAX_EPS 16

/*
 * Flush of a worker with few endpoints: each is flushed at once, rather than one
 * after the other from a progress callback.
 */
static ucs_status_ptr_t
ucp_opt_worker_flush(ucp_worker_h worker, const ucp_request_param_t *param)
{
    ucs_status_ptr_t ep_request;
    ucp_ep_ext_gen_t *ep_ext;
    ucp_request_t *req;
    ucp_ep_h ep;

    req = ucp_request_get_param(worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    req->flags                   = 0;
    req->status                  = UCS_OK;
    req->flush_worker.worker     = worker;
    req->flush_worker.prog_id    = UCS_CALLBACKQ_ID_NULL;
    req->flush_worker.comp_count = 1; /* for the loop */
    ucp_worker_flush_req_set_next_ep(req, 0, &worker->all_eps);
    ucp_request_set_send_callback_param(param, req, flush_worker);

    ucs_list_for_each(ep_ext, &worker->all_eps, ep_list) {
        ep         = ucp_ep_from_ext_gen(ep_ext);
        ep_request = ucp_opt_ep_flush(ep, UCP_REQUEST_FLAG_RELEASED,
                                      &ucp_request_null_param, req,
                                      ucp_worker_flush_ep_flushed_cb,
                                      "flush_worker");
        if (UCS_PTR_IS_PTR(ep_request)) {
            ++req->flush_worker.comp_count;
        } else if (UCS_PTR_IS_ERR(ep_request)) {
            /* As ever, the failure of an endpoint is its own. */
            ucs_diag("flush of ep %p failed: %s", ep,
                     ucs_status_string(UCS_PTR_STATUS(ep_request)));
        }
    }

    if (--req->flush_worker.comp_count == 0) {
        ucp_request_put_param(param, req);
        return NULL;
    }

    return req + 1;
}

/* Operations that the worker counts itself, like the end of lanes that are being
 * discarded, belong to no endpoint's flush. */
static int ucp_opt_worker_flush_is_wanted(ucp_worker_h worker)
{
    return ucp_opt_flush_is_on(worker) && (worker->flush_ops_count == 0) &&
           worker->context->config.ext.flush_worker_eps &&
           (worker->num_all_eps <= UCP_OPT_FLUSH_MAX_EPS);
}
