/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of one piece that the transport sends from registered memory, of an
 * endpoint that is ready. They need a request, for their completion, but no
 * protocol that sends and completes it. Included by ucp_opt_tag_send.inl and
 * ucp_opt_am_send.inl.
 */

#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_eager.h>
#if UCX_OPT_SINCE(18)
#  include <ucp/opt/ucp_opt_mem.h>
#  include <ucp/core/ucp_mm.inl>
#endif

#include <ucp/core/ucp_mm.h>
#include <ucp/core/ucp_request.inl>


/* Whether the user's registration is of a buffer, and of memory for which the
 * endpoint has been made ready. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_memh_is_usual(ucp_mem_h memh, const void *buffer, size_t length)
{
    return (!ENABLE_PARAMS_CHECK ||
            ((memh != NULL) &&
             ((uintptr_t)buffer >= memh->super.super.start) &&
             (((uintptr_t)buffer + length) <= memh->super.super.end))) &&
           ucp_opt_memh_is_host(memh);
}

/* Whether a message that is too long to be copied can be sent so. One without
 * data can not. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_zcopy_is_possible(const ucp_opt_eager_zcopy_t *zcopy, size_t length)
{
    return (length - 1) < zcopy->max_length;
}

/* Whether the lane's memory domain has a registration, by which the version of
 * the protocols would send. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_zcopy_is_registered(ucp_ep_h ep, ucp_mem_h memh)
{
    return (UCP_OPT_MEMH_IS_SENT || !ep->opt_eager.is_v2) &&
           (memh->md_map & UCS_BIT(ep->opt_eager.md_index));
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
ucp_opt_zcopy_send(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                   uint32_t flag, uint8_t am_id, const void *header,
                   size_t header_length, const void *buffer, size_t length,
                   uct_mem_h memh, ucp_request_t *req,
                   const ucp_request_param_t *param)
{
    ucs_status_t status;
    uct_iov_t iov;

    ucs_assert(ucp_opt_eager_is_current(ep));
    req->send.ep = ep;
    if (ucs_likely(ep->opt_eager.is_v2)) {
        req->flags                       = UCP_REQUEST_FLAG_PROTO_SEND;
        req->send.proto_config           = zcopy->proto.config;
        req->send.state.dt_iter.dt_class = UCP_DATATYPE_CONTIG;
        req->send.state.dt_iter.length   = length;
        ucp_opt_mem_info_set_host(&req->send.state.dt_iter.mem_info);
    } else {
        req->flags         = flag;
        req->send.uct.func = zcopy->proto.func;
        req->send.length   = length;
        req->send.mem_type = UCS_MEMORY_TYPE_HOST;
        req->send.lane     = ep->am_lane;
    }

    req->send.state.uct_comp.count  = 1;
    req->send.state.uct_comp.status = UCS_OK;

    iov.buffer = (void*)buffer;
    iov.length = length;
    iov.memh   = memh;
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

/* Send it from memory that the user has registered. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_zcopy_send_memh(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                        uint32_t flag, uint8_t am_id, const void *header,
                        size_t header_length, const void *buffer, size_t length,
                        const ucp_request_param_t *param)
{
    ucp_request_t *req;

    req = ucp_request_get_param(ep->worker, param, {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    });

    req->send.state.uct_comp.func = ucp_opt_zcopy_completion;
    return ucp_opt_zcopy_send(ep, zcopy, flag, am_id, header, header_length,
                              buffer, length,
                              param->memh->uct[ep->opt_eager.md_index], req,
                              param);
}

/* What registers a buffer for version 1 of the protocols, and for version 2. */
#define ucp_opt_zcopy_access(_ep) \
    (((_ep)->opt_eager.is_v2 ? UCT_MD_MEM_ACCESS_LOCAL_READ : \
                               UCT_MD_MEM_ACCESS_RMA) | \
     UCT_MD_MEM_FLAG_HIDE_ERRORS)


#if UCX_OPT_SINCE(18)

/* Whether messages of a worker can have registrations that are not the
 * user's. */
#  define ucp_opt_zcopy_has_own(_worker) \
    ((_worker)->flags & UCP_WORKER_FLAG_OPT_MEM)


static void ucp_opt_zcopy_completion_own(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);

    ucp_memh_put(req->send.state.dt_iter.type.contig.memh);
    ucp_request_complete_send(req, self->status);
}

/* Send it from memory that the worker remembers to be registered, or registers
 * now. Errors are left to the protocol, as are resources. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_zcopy_send_own(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                       uint32_t flag, uint8_t am_id, const void *header,
                       size_t header_length, const void *buffer, size_t length,
                       const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;
    ucp_request_t *req;
    ucp_mem_h memh;

    if (ucs_unlikely(ucp_opt_mem_get(ep->worker, (void*)buffer, length,
                                     UCS_BIT(ep->opt_eager.md_index),
                                     ucp_opt_zcopy_access(ep),
                                     &memh) != UCS_OK)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }

    ret = UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    if (ucs_likely(ucp_opt_zcopy_is_registered(ep, memh))) {
        req = ucp_request_get_param(ep->worker, param, {
            ucp_memh_put(memh);
            return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
        });

        req->send.state.uct_comp.func            = ucp_opt_zcopy_completion_own;
        req->send.state.dt_iter.type.contig.memh = memh;
        ret = ucp_opt_zcopy_send(ep, zcopy, flag, am_id, header, header_length,
                                 buffer, length,
                                 memh->uct[ep->opt_eager.md_index], req, param);
        if (ucs_likely(UCS_PTR_IS_PTR(ret))) {
            return ret;
        }
    }

    ucp_memh_put(memh);
    return ret;
}

#else

/* The caches are those of memory domains, whatever the worker. */
#  define ucp_opt_zcopy_has_own(_worker) 1


static void ucp_opt_zcopy_completion_own(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);

    uct_md_mem_dereg(req->send.state.dt_iter.type.contig.buffer,
                     req->send.state.dt_iter.type.contig.memh);
    ucp_request_complete_send(req, self->status);
}

static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_zcopy_send_own(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                       uint32_t flag, uint8_t am_id, const void *header,
                       size_t header_length, const void *buffer, size_t length,
                       const ucp_request_param_t *param)
{
    ucp_context_h context = ep->worker->context;
    uct_md_h md           = context->tl_mds[ep->opt_eager.md_index].md;
    ucs_status_ptr_t ret;
    ucp_request_t *req;
    uct_mem_h memh;

    if (ucs_unlikely(uct_md_mem_reg(md, (void*)buffer, length,
                                    ucp_opt_zcopy_access(ep),
                                    &memh) != UCS_OK)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }

    req = ucp_request_get_param(ep->worker, param, {
        uct_md_mem_dereg(md, memh);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    });

    /* Nobody else looks at the two: they may be what the completion needs */
    req->send.state.uct_comp.func              = ucp_opt_zcopy_completion_own;
    req->send.state.dt_iter.type.contig.buffer = md;
    req->send.state.dt_iter.type.contig.memh   = memh;
    ret = ucp_opt_zcopy_send(ep, zcopy, flag, am_id, header, header_length,
                             buffer, length, memh, req, param);
    if (ucs_unlikely(!UCS_PTR_IS_PTR(ret))) {
        uct_md_mem_dereg(md, memh);
    }

    return ret;
}

#endif
