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
 * completes it. If the status is not UCS_INPROGRESS, the request is gone:
 * without resources of the transport the protocol can send the message. */
static UCS_F_ALWAYS_INLINE ucs_status_t
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
    } else {
        ucp_request_put_param(param, req);
    }

    return status;
}

/* Send it from memory that the user has registered. The request is set if the
 * status is UCS_INPROGRESS. */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_zcopy_send_memh(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                        uint32_t flag, uint8_t am_id, const void *header,
                        size_t header_length, const void *buffer, size_t length,
                        const ucp_request_param_t *param, ucp_request_t **req_p)
{
    ucp_request_t *req;

    req = ucp_request_get_param(ep->worker, param, {
        return UCS_ERR_NO_MEMORY;
    });

    *req_p                        = req;
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


/* Part of ucp_opt_mem_get_found(), with the lock if there is one. */
static UCS_F_ALWAYS_INLINE ucp_mem_h
ucp_opt_mem_use_found(ucp_opt_mem_t *mem, ucs_pgt_addr_t start,
                      ucs_pgt_addr_t end, ucp_md_index_t md_index,
                      unsigned is_v2)
{
    ucp_opt_mem_entry_t *entry = mem->found;

    if (ucs_unlikely((start < entry->start) || (end > entry->end) ||
                     !(entry->send_md_map[is_v2] & UCS_BIT(md_index)) ||
                     !ucp_opt_mem_is_known(entry->memh.parent))) {
        return NULL;
    }

    ++entry->uses;
    return &entry->memh;
}

/**
 * As @ref ucp_opt_mem_get for a message, if its buffer is in what was found
 * last.
 *
 * @param worker    Worker, which UCP_WORKER_FLAG_OPT_MEM is set for.
 * @param address   Buffer.
 * @param length    Its length in bytes, not 0.
 * @param md_index  Memory domain that sends it.
 * @param is_v2     Version of the protocols: 0 or 1.
 *
 * @return Memory handle of the worker, or NULL.
 */
static UCS_F_ALWAYS_INLINE ucp_mem_h
ucp_opt_mem_get_found(ucp_worker_h worker, const void *address, size_t length,
                      ucp_md_index_t md_index, unsigned is_v2)
{
    ucp_opt_mem_t *mem   = worker->opt_mem;
    ucs_pgt_addr_t start = (uintptr_t)address;
    ucp_mem_h memh;

    if (ucs_unlikely((mem == NULL) ||
                     ucp_opt_mem_has_events(worker->context))) {
        return NULL;
    }

    if (!mem->is_shared) {
        return ucp_opt_mem_use_found(mem, start, start + length, md_index,
                                     is_v2);
    }

    ucs_spin_lock(&mem->lock);
    memh = ucp_opt_mem_use_found(mem, start, start + length, md_index, is_v2);
    ucs_spin_unlock(&mem->lock);
    return memh;
}

/* As ucp_opt_mem_release(), in place. */
static UCS_F_ALWAYS_INLINE void ucp_opt_mem_end_use(ucp_mem_h memh)
{
    ucp_opt_mem_entry_t *entry = ucs_container_of(memh, ucp_opt_mem_entry_t,
                                                  memh);

    ucs_assert(entry->uses > 0);
    if (entry->mem->is_shared) {
        ucs_spin_lock(&entry->mem->lock);
        --entry->uses;
        ucs_spin_unlock(&entry->mem->lock);
    } else {
        --entry->uses;
    }

    /* Who wants it to go from here on sees that nobody uses it */
    if (ucs_unlikely(entry->end == 0)) {
        ucp_opt_mem_release_gone(entry);
    }
}

static UCS_F_NOINLINE void ucp_opt_zcopy_put_other(ucp_mem_h memh)
{
    ucp_memh_put(memh);
}

static UCS_F_ALWAYS_INLINE void ucp_opt_zcopy_put(ucp_mem_h memh)
{
    if (ucs_likely(memh->flags & UCP_MEMH_FLAG_OPT)) {
        ucp_opt_mem_end_use(memh);
    } else {
        ucp_opt_zcopy_put_other(memh);
    }
}

static void ucp_opt_zcopy_completion_own(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);

    ucp_opt_zcopy_put(req->send.state.dt_iter.type.contig.memh);
    ucp_request_complete_send(req, self->status);
}

/* A buffer that is not the one of the message before. NULL if it cannot be
 * registered for the lane. */
static UCS_F_NOINLINE ucp_mem_h
ucp_opt_zcopy_get_other(ucp_ep_h ep, const void *buffer, size_t length)
{
    ucp_mem_h memh;

    if (ucp_opt_mem_get(ep->worker, (void*)buffer, length,
                        UCS_BIT(ep->opt_eager.md_index),
                        ucp_opt_zcopy_access(ep), &memh) != UCS_OK) {
        return NULL;
    }

    if (!ucp_opt_zcopy_is_registered(ep, memh)) {
        ucp_opt_zcopy_put(memh);
        return NULL;
    }

    return memh;
}

/* Send it from memory that the worker remembers to be registered, or registers
 * now. Errors are left to the protocol, as are resources. */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_zcopy_send_own(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                       uint32_t flag, uint8_t am_id, const void *header,
                       size_t header_length, const void *buffer, size_t length,
                       const ucp_request_param_t *param, ucp_request_t **req_p)
{
    ucs_status_t status;
    ucp_request_t *req;
    ucp_mem_h memh;

    memh = ucp_opt_mem_get_found(ep->worker, buffer, length,
                                 ep->opt_eager.md_index, ep->opt_eager.is_v2);
    if (ucs_unlikely(memh == NULL)) {
        memh = ucp_opt_zcopy_get_other(ep, buffer, length);
        if (ucs_unlikely(memh == NULL)) {
            return UCS_ERR_NO_RESOURCE;
        }
    }

    req = ucp_request_get_param(ep->worker, param, {
        ucp_opt_zcopy_put_other(memh);
        return UCS_ERR_NO_MEMORY;
    });

    *req_p                                   = req;
    req->send.state.uct_comp.func            = ucp_opt_zcopy_completion_own;
    req->send.state.dt_iter.type.contig.memh = memh;
    status = ucp_opt_zcopy_send(ep, zcopy, flag, am_id, header, header_length,
                                buffer, length,
                                memh->uct[ep->opt_eager.md_index], req, param);
    if (ucs_unlikely(status != UCS_INPROGRESS)) {
        ucp_opt_zcopy_put_other(memh);
    }

    return status;
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

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_zcopy_send_own(ucp_ep_h ep, const ucp_opt_eager_zcopy_t *zcopy,
                       uint32_t flag, uint8_t am_id, const void *header,
                       size_t header_length, const void *buffer, size_t length,
                       const ucp_request_param_t *param, ucp_request_t **req_p)
{
    ucp_context_h context = ep->worker->context;
    uct_md_h md           = context->tl_mds[ep->opt_eager.md_index].md;
    ucs_status_t status;
    ucp_request_t *req;
    uct_mem_h memh;

    if (ucs_unlikely(uct_md_mem_reg(md, (void*)buffer, length,
                                    ucp_opt_zcopy_access(ep),
                                    &memh) != UCS_OK)) {
        return UCS_ERR_NO_RESOURCE;
    }

    req = ucp_request_get_param(ep->worker, param, {
        uct_md_mem_dereg(md, memh);
        return UCS_ERR_NO_MEMORY;
    });

    *req_p = req;
    /* Nobody else looks at the two: they may be what the completion needs */
    req->send.state.uct_comp.func              = ucp_opt_zcopy_completion_own;
    req->send.state.dt_iter.type.contig.buffer = md;
    req->send.state.dt_iter.type.contig.memh   = memh;
    status = ucp_opt_zcopy_send(ep, zcopy, flag, am_id, header, header_length,
                                buffer, length, memh, req, param);
    if (ucs_unlikely(status != UCS_INPROGRESS)) {
        uct_md_mem_dereg(md, memh);
    }

    return status;
}

#endif
