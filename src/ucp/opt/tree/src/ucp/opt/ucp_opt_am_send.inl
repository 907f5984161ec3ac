/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short active messages of an endpoint that is ready for them. Included by
 * core/ucp_am.c, whose ucp_opt_am_send_nbx_general() can do everything.
 *
 * Their header has the 8 bytes of a header of UCT's short active messages, so
 * header and data need no list of buffers. What the peer receives is the same.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_eager.h>
#include <ucp/opt/ucp_opt_zcopy.inl>

#include <string.h>


/* Attributes that are not for the shortest way. Memory that is registered may
 * be imported: then no processor of this node can read it. */
#define UCP_OPT_AM_SEND_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | \
     UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMH | UCP_OPT_CHECKED_ATTRS)


/* Attributes that a message can have that the transport copies. */
#define UCP_OPT_AM_SEND_BCOPY_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST | \
     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | \
     UCP_OP_ATTR_FIELD_FLAGS)


/* Attributes that a message can have that is sent from registered memory. */
#define UCP_OPT_AM_SEND_MEMH_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FIELD_REQUEST | \
     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA)


/* What the caller has passed. */
typedef struct {
    ucp_ep_h                  ep;
    unsigned                  id;
    const void                *header;
    size_t                    header_length;
    const void                *buffer;
    size_t                    count;
    const ucp_request_param_t *param;
} ucp_opt_am_send_args_t;


/* For the compiler they are in memory then: see UCP_OPT_RMA_KEEP(). */
#define UCP_OPT_AM_SEND_KEEP(_args, _ep, _id, _header, _header_length, \
                             _buffer, _count, _param) \
    { \
        (_args).ep            = (_ep); \
        (_args).id            = (_id); \
        (_args).header        = (_header); \
        (_args).header_length = (_header_length); \
        (_args).buffer        = (_buffer); \
        (_args).count         = (_count); \
        (_args).param         = (_param); \
        asm volatile("" : : "m"(_args)); \
    }


static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_retry(const ucp_opt_am_send_args_t *args)
{
    return ucp_opt_am_send_nbx_general(args->ep, args->id, args->header,
                                       args->header_length, args->buffer,
                                       args->count, args->param);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_prepare(ucp_ep_h ep, unsigned id, const void *header,
                            size_t header_length, const void *buffer,
                            size_t count, const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;

    ret = ucp_opt_am_send_nbx_general(ep, id, header, header_length, buffer,
                                      count, param);
    if (!UCS_PTR_IS_ERR(ret)) {
        ucp_opt_eager_prepare(ep);
    }

    return ret;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_am_send_short(ucp_ep_h ep, uint16_t id, uint16_t flags,
                      uint16_t header_length, const void *payload,
                      size_t length)
{
    ucp_am_hdr_t hdr;

    ucs_assert(ucp_opt_eager_is_current(ep));
    ucp_am_fill_short_header(&hdr, id, flags, header_length);
    return ep->opt_eager.am_short(ep->opt_eager.uct_ep, UCP_AM_ID_AM_SINGLE,
                                  hdr.u64, payload, length);
}

/* What the transport copies. */
typedef struct {
    ucp_am_hdr_t hdr;
    const void   *buffer;
    size_t       length;
} ucp_opt_am_send_pack_t;


static size_t ucp_opt_am_send_pack(void *dest, void *arg)
{
    const ucp_opt_am_send_pack_t *pack = arg;
    ucp_am_hdr_t *hdr                  = dest;

    hdr->u64 = pack->hdr.u64;
    memcpy(hdr + 1, pack->buffer, pack->length);
    return sizeof(*hdr) + pack->length;
}

/* A message that the transport copies at once, so it needs no request. */
static UCS_F_ALWAYS_INLINE ssize_t
ucp_opt_am_send_bcopy(ucp_ep_h ep, uint16_t id, const void *buffer,
                      size_t length)
{
    ucp_opt_am_send_pack_t pack;

    ucs_assert(ucp_opt_eager_is_current(ep));
    ucp_am_fill_short_header(&pack.hdr, id, 0, 0);
    pack.buffer = buffer;
    pack.length = length;
    return uct_ep_am_bcopy(ep->opt_eager.uct_ep, UCP_AM_ID_AM_SINGLE,
                           ucp_opt_am_send_pack, &pack, 0);
}

/* Whether a message is one piece of memory, has no answer, and is short. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_am_send_is_short(ucp_ep_h ep, size_t header_length, size_t length)
{
    return ((length == 0) || (header_length == 0)) &&
           (length < ep->opt_eager.am_limit) &&
           (header_length < ep->opt_eager.am_limit);
}

/* What is neither short nor copied by the transport. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_long(ucp_ep_h ep, unsigned id, const void *header,
                         size_t header_length, const void *buffer,
                         size_t count, const ucp_request_param_t *param)
{
    if (ucs_unlikely(ucp_opt_eager_is_wanted(ep))) {
        return ucp_opt_am_send_nbx_prepare(ep, id, header, header_length,
                                           buffer, count, param);
    }

    return ucp_opt_am_send_nbx_general(ep, id, header, header_length, buffer,
                                       count, param);
}

/* One that is not short, by what UCP has for all that need a request. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_request(const ucp_opt_am_send_args_t *args)
{
    ucp_ep_h ep         = args->ep;
    ucp_worker_h worker = ep->worker;
    ucs_status_t status;
    ucp_request_t *req;

    if (!worker->context->config.ext.proto_enable) {
        return ucp_opt_am_send_nbx_retry(args);
    }

    status = ucp_ep_resolve_remote_id(ep, ep->am_lane);
    if (ucs_unlikely(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }

    req = ucp_request_get_param(worker, args->param, {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    });

    req->send.msg_proto.am.am_id = args->id;
    req->send.msg_proto.am.flags = 0;
    ucp_opt_am_set_header(req, args->header, args->header_length);
    return ucp_opt_proto_send_contig(ep, req, UCP_OP_ID_AM_SEND, args->buffer,
                                     args->count, args->param,
                                     args->header_length);
}

/* The same of an endpoint that is ready. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_memh(ucp_ep_h ep, unsigned id, const void *header,
                         size_t header_length, const void *buffer,
                         size_t length, const ucp_request_param_t *param)
{
    const ucp_opt_eager_zcopy_t *zcopy = &ep->opt_eager.am_zcopy;
    ucp_opt_am_send_args_t args;
    ucs_status_t status;
    ucp_request_t *req;
    ucp_am_hdr_t hdr;
    ssize_t packed;

    UCP_CONTEXT_CHECK_FEATURE_FLAGS(ep->worker->context, UCP_FEATURE_AM,
                                    return UCS_STATUS_PTR(
                                            UCS_ERR_INVALID_PARAM));

    UCP_OPT_AM_SEND_KEEP(args, ep, id, header, header_length, buffer, length,
                         param);
    if ((header_length != 0) ||
        !ucp_opt_memh_is_usual(param->memh, buffer, length)) {
        return ucp_opt_am_send_nbx_request(&args);
    }

    if (length < ep->opt_eager.am_bcopy) {
        packed = ucp_opt_am_send_bcopy(ep, id, buffer, length);
        if (ucs_likely(packed != UCS_ERR_NO_RESOURCE)) {
            return (packed >= 0) ? NULL : UCS_STATUS_PTR(packed);
        }
    } else if (ucp_opt_zcopy_is_possible(zcopy, length) &&
               ucp_opt_zcopy_is_registered(ep, param->memh)) {
        ucp_am_fill_short_header(&hdr, id, 0, 0);
        status = ucp_opt_zcopy_send_memh(ep, zcopy, UCP_REQUEST_FLAG_SEND_AM,
                                         UCP_AM_ID_AM_SINGLE, &hdr, sizeof(hdr),
                                         buffer, length, param, &req);
        if (ucs_likely(status == UCS_INPROGRESS)) {
            return req + 1;
        } else if (status != UCS_ERR_NO_RESOURCE) {
            return UCS_STATUS_PTR(status);
        }
    }

    return ucp_opt_am_send_nbx_request(&args);
}

/* A message without a header that can be sent from where it is, when it has
 * been registered. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_own(ucp_ep_h ep, unsigned id, const void *buffer,
                        size_t count, const ucp_request_param_t *param,
                        size_t length)
{
    ucp_opt_am_send_args_t args;
    ucs_status_t status;
    ucp_request_t *req;
    ucp_am_hdr_t hdr;

    UCP_OPT_AM_SEND_KEEP(args, ep, id, NULL, 0, buffer, count, param);
    ucp_am_fill_short_header(&hdr, id, 0, 0);
    status = ucp_opt_zcopy_send_own(ep, &ep->opt_eager.am_zcopy,
                                    UCP_REQUEST_FLAG_SEND_AM,
                                    UCP_AM_ID_AM_SINGLE, &hdr, sizeof(hdr),
                                    buffer, length, param, &req);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        return req + 1;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        return UCS_STATUS_PTR(status);
    }

    return ucp_opt_am_send_nbx_retry(&args);
}

/* Messages with attributes for which the transport does not copy. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_rest(ucp_ep_h ep, unsigned id, const void *header,
                         size_t header_length, const void *buffer,
                         size_t count, const ucp_request_param_t *param)
{
    uint32_t flags    = ucp_request_param_flags(param);
    uintptr_t dt      = ucp_request_param_datatype(param);
    uint32_t bad_attr = UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OPT_CHECKED_ATTRS;
    ucs_status_t status;
    size_t length;

    if (!(param->op_attr_mask & bad_attr) &&
        !(flags & ~UCP_AM_SEND_FLAG_EAGER) && UCP_DT_IS_CONTIG(dt) &&
        !((param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMH) &&
          ucp_opt_memh_is_imported(param->memh))) {
        length = ucp_contig_dt_length(dt, count);
        if (ucp_opt_am_send_is_short(ep, header_length, length)) {
            status = ucp_opt_am_send_short(ep, id, flags, header_length,
                                           (length == 0) ? header : buffer,
                                           length + header_length);
            if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
                return UCS_STATUS_PTR(status);
            }
        }
    }

    return ucp_opt_am_send_nbx_long(ep, id, header, header_length, buffer,
                                    count, param);
}

/* Messages of one piece of memory without an answer, and all that are long. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_other(ucp_ep_h ep, unsigned id, const void *header,
                          size_t header_length, const void *buffer,
                          size_t count, const ucp_request_param_t *param)
{
    ucp_opt_am_send_args_t args;
    ucs_status_t status;
    ssize_t packed;
    uint32_t flags;
    size_t length;
    uintptr_t dt;

    if (param->op_attr_mask & ~UCP_OPT_AM_SEND_BCOPY_ATTR_MASK) {
        if ((param->op_attr_mask & ~UCP_OPT_AM_SEND_MEMH_ATTR_MASK) ||
            !ep->opt_eager.is_ready || (count < ep->opt_eager.am_limit) ||
            (ENABLE_PARAMS_CHECK && (header_length != 0)) ||
            ucp_opt_memh_is_imported(param->memh)) {
            return ucp_opt_am_send_nbx_rest(ep, id, header, header_length,
                                            buffer, count, param);
        }

        return ucp_opt_am_send_nbx_memh(ep, id, header, header_length, buffer,
                                        count, param);
    }

    flags = ucp_request_param_flags(param);
    dt    = ucp_request_param_datatype(param);
    if (!(flags & ~UCP_AM_SEND_FLAG_EAGER) && UCP_DT_IS_CONTIG(dt)) {
        length = ucp_contig_dt_length(dt, count);
        if (ucp_opt_am_send_is_short(ep, header_length, length)) {
            UCP_OPT_AM_SEND_KEEP(args, ep, id, header, header_length, buffer,
                                 count, param);
            status = ucp_opt_am_send_short(ep, id, flags, header_length,
                                           (length == 0) ? header : buffer,
                                           length + header_length);
            if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
                return UCS_STATUS_PTR(status);
            }

            return ucp_opt_am_send_nbx_retry(&args);
        }

        if ((header_length != 0) || (flags != 0)) {
            goto out_long;
        }

        if (length < ep->opt_eager.am_bcopy) {
            UCP_OPT_AM_SEND_KEEP(args, ep, id, header, header_length, buffer,
                                 count, param);
            packed = ucp_opt_am_send_bcopy(ep, id, buffer, length);
            if (ucs_likely(packed >= 0)) {
                return NULL;
            } else if (packed != UCS_ERR_NO_RESOURCE) {
                return UCS_STATUS_PTR(packed);
            }

            return ucp_opt_am_send_nbx_retry(&args);
        }

        if (ucp_opt_zcopy_is_possible(&ep->opt_eager.am_zcopy, length) &&
            ucp_opt_zcopy_has_own(ep->worker)) {
            return ucp_opt_am_send_nbx_own(ep, id, buffer, count, param,
                                           length);
        }
    }

out_long:
    return ucp_opt_am_send_nbx_long(ep, id, header, header_length, buffer,
                                    count, param);
}

UCS_PROFILE_FUNC(ucs_status_ptr_t, ucp_am_send_nbx,
                 (ep, id, header, header_length, buffer, count, param),
                 ucp_ep_h ep, unsigned id, const void *header,
                 size_t header_length, const void *buffer, size_t count,
                 const ucp_request_param_t *param)
{
    ucp_opt_am_send_args_t args;
    ucs_status_t status;

    if (ENABLE_PARAMS_CHECK && ucs_unlikely(id > UINT16_MAX)) {
        return ucp_opt_am_send_nbx_general(ep, id, header, header_length,
                                           buffer, count, param);
    }

    if (ucs_unlikely((count >= ep->opt_eager.am_limit) ||
                     (header_length != 0) ||
                     (param->op_attr_mask & UCP_OPT_AM_SEND_ATTR_MASK))) {
        return ucp_opt_am_send_nbx_other(ep, id, header, header_length, buffer,
                                         count, param);
    }

    UCP_OPT_AM_SEND_KEEP(args, ep, id, header, header_length, buffer, count,
                         param);
    status = ucp_opt_am_send_short(ep, id, 0, 0, buffer, count);
    if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
        return UCS_STATUS_PTR(status);
    }

    return ucp_opt_am_send_nbx_retry(&args);
}
