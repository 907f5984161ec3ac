/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of one piece from memory that the user has registered, of an
 * endpoint that is ready: the transport copies them, or sends them from there.
 * The latter need a request, but no protocol that sends and completes it.
 * Included by ucp_opt_tag_send.inl and ucp_opt_am_send.inl.
 */

#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_eager.h>

#include <ucp/core/ucp_request.inl>
#include <ucp/dt/datatype_iter.inl>
#include <ucp/proto/proto_single.h>


/* Whether the user's registration is of a buffer, and of memory for which the
 * endpoint has been made ready. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_memh_is_usual(ucp_mem_h memh, const void *buffer, size_t length)
{
    return (!ENABLE_PARAMS_CHECK ||
            ucp_opt_memh_is_valid(memh, buffer, length)) &&
           ucp_opt_memh_is_host(memh);
}

/* Whether a message that is too long to be copied can be sent from there. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_zcopy_is_possible(const ucp_proto_threshold_elem_t *thresh,
                          ucp_mem_h memh, size_t length)
{
    const ucp_proto_single_priv_t *spriv;

    if ((thresh == NULL) || (length > thresh->max_msg_length)) {
        return 0;
    }

    spriv = thresh->proto_config.priv;
    return !!(memh->md_map & UCS_BIT(spriv->super.md_index));
}

static void ucp_opt_zcopy_completion(uct_completion_t *self)
{
    ucp_request_complete_send(ucs_container_of(self, ucp_request_t,
                                               send.state.uct_comp),
                              self->status);
}

/* Send it. Of the request is set what ucp_request_query() looks at, and what
 * completes it. Without resources of the transport it has none, and can be sent
 * by the protocol. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_zcopy_send(ucp_ep_h ep, const ucp_proto_threshold_elem_t *thresh,
                   uint8_t am_id, const void *header, size_t header_length,
                   const void *buffer, size_t length,
                   const ucp_request_param_t *param)
{
    const ucp_proto_single_priv_t *spriv = thresh->proto_config.priv;
    ucs_status_t status;
    ucp_request_t *req;
    uct_iov_t iov;

    ucs_assert(ucp_opt_eager_is_current(ep));
    req = ucp_request_get_param(ep->worker, param, {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    });

    req->flags                       = UCP_REQUEST_FLAG_PROTO_SEND;
    req->send.ep                     = ep;
    req->send.proto_config           = &thresh->proto_config;
    req->send.state.dt_iter.dt_class = UCP_DATATYPE_CONTIG;
    req->send.state.dt_iter.length   = length;
    ucp_opt_mem_info_set_host(&req->send.state.dt_iter.mem_info);
    req->send.state.uct_comp.func    = ucp_opt_zcopy_completion;
    req->send.state.uct_comp.count   = 1;
    req->send.state.uct_comp.status  = UCS_OK;

    iov.buffer = (void*)buffer;
    iov.length = length;
    iov.memh   = ucp_opt_memh_uct(param->memh, spriv->super.md_index);
    iov.stride = 0;
    iov.count  = 1;

    status = uct_ep_am_zcopy(ep->opt_eager.uct_ep, am_id, header, header_length,
                             &iov, 1, 0, &req->send.state.uct_comp);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        ucp_request_set_send_callback_param(param, req, send);
        return req + 1;
    }

    ucp_request_put_param(param, req);
    return UCS_STATUS_PTR(status);
}
