/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Flush of an endpoint with few lanes, of which the state of the lanes says how
 * many there are (see ucp_opt_rkey.h). Included by rma/flush.c after
 * ucp_opt_flush_ep.inl, whose functions it goes on with.
 */


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
        return ucp_opt_ep_flush_slow(ep, req, param, UCS_BIT(0));
    }

    if (status == UCS_OK) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put(req);
        return NULL;
    }

    ucp_opt_ep_flush_set_param(req, param);
    return ucp_opt_ep_flush_wait(ep, req);
}

/* A lane wants the request to be queued or has failed, or only the peer's
 * answers are missing. The lanes from one on have been asked. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_lanes_slow(ucp_ep_h ep, ucp_request_t *req, unsigned first)
{
    return ucp_opt_ep_flush_go_on(ep, req, &ucp_request_null_param,
                                  UCS_MASK(ucp_ep_num_lanes(ep)) &
                                  ~UCS_MASK(first));
}

/* Ask a lane; the completion counts it if it has something outstanding. Zero if
 * it has another answer. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_ep_flush_lane(ucp_ep_h ep, unsigned lane, ucp_request_t *req)
{
    uct_ep_h uct_ep = ep->uct_eps[lane];
    ucs_status_t status;

    /* The asynchronous thread may have taken it since they were counted */
    if (ucs_unlikely(uct_ep == NULL)) {
        return 1;
    }

    status = uct_ep_flush(uct_ep, UCT_FLUSH_FLAG_LOCAL,
                          &req->send.state.uct_comp);
    if (ucs_likely(status == UCS_OK)) {
        return 1;
    } else if (status == UCS_INPROGRESS) {
        ++req->send.state.uct_comp.count;
        return 1;
    }

    return 0;
}

/* Flush of an endpoint with two to four lanes, the last one first, without a
 * loop. The request is set before, so that no more than it and the endpoint are
 * in registers that have to be saved, for which it takes no request that is not
 * there. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_lanes(ucp_ep_h ep, const ucp_request_param_t *param,
                       unsigned num_lanes)
{
    unsigned first; /* of the lanes that have been asked */
    ucp_request_t *req;

    UCS_STATIC_ASSERT(UCP_OPT_STATE_MAX_LANES == 4);

    if (ucs_unlikely(ep->worker->req_mp.freelist == NULL)) {
        return ucp_opt_ep_flush_nbx_general(ep, param);
    }

    req = ucp_request_get(ep->worker);
    ucp_opt_ep_flush_set_param(req, param);
    req->send.state.uct_comp.func   = ucp_opt_ep_flush_completion;
    req->send.state.uct_comp.count  = 1; /* transports count on one */
    req->send.state.uct_comp.status = UCS_OK;

    if (num_lanes > 3) {
        first = 4;
        if (ucs_unlikely(!ucp_opt_ep_flush_lane(ep, 3, req))) {
            goto go_on;
        }
    } else if (num_lanes < 3) {
        goto two_lanes;
    }

    first = 3;
    if (ucs_unlikely(!ucp_opt_ep_flush_lane(ep, 2, req))) {
        goto go_on;
    }

two_lanes:
    first = 2;
    if (ucs_unlikely(!ucp_opt_ep_flush_lane(ep, 1, req))) {
        goto go_on;
    }

    first = 1;
    if (ucs_unlikely(!ucp_opt_ep_flush_lane(ep, 0, req))) {
        goto go_on;
    }

    first = 0;
    if (ucs_unlikely(!ucp_opt_ep_is_sw_flushed(ep))) {
        goto go_on;
    }

    if (--req->send.state.uct_comp.count == 0) {
        ucs_trace_req("ep %p: nothing to flush", ep);
        ucp_request_put(req);
        return NULL;
    }

    return ucp_opt_ep_flush_wait(ep, req);

go_on:
    return ucp_opt_ep_flush_lanes_slow(ep, req, first);
}

/* The state of the lanes is not known, or nothing that is flushed so. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_ep_flush_unknown(ucp_ep_h ep, const ucp_request_param_t *param)
{
    if (ep->worker->flags & UCP_WORKER_FLAG_OPT_FLUSH) {
        (void)ucp_opt_ep_state(ep); /* for the next one */
    }

    return ucp_opt_ep_flush_nbx_general(ep, param);
}

UCS_PROFILE_FUNC(ucs_status_ptr_t, ucp_ep_flush_nbx, (ep, param),
                 ucp_ep_h ep, const ucp_request_param_t *param)
{
    unsigned num_lanes = ucp_opt_ep_state_lanes(ep);

    if (ucs_unlikely(param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST)) {
        return ucp_opt_ep_flush_unknown(ep, param);
    }

    if (num_lanes > 1) {
        return ucp_opt_ep_flush_lanes(ep, param, num_lanes);
    } else if (ucs_likely((num_lanes == 1) && (ep->uct_eps[0] != NULL))) {
        return ucp_opt_ep_flush_single(ep, param);
    }

    return ucp_opt_ep_flush_unknown(ep, param);
}
