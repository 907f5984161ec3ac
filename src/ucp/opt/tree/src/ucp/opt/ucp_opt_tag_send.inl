/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short tagged messages of an endpoint that is ready for them. Included by
 * tag/tag_send.c, whose ucp_opt_tag_send_nbx_general() can do everything.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_eager.h>
#include <ucp/opt/ucp_opt_zcopy.inl>

#include <string.h>


/* Attributes that are not for the shortest way. */
#define UCP_OPT_TAG_SEND_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | \
     UCP_OPT_CHECKED_ATTRS)


/* Attributes that a message can have that the transport copies. */
#define UCP_OPT_TAG_SEND_BCOPY_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST | \
     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA)


/* Attributes that a message can have that is sent from registered memory. */
#define UCP_OPT_TAG_SEND_MEMH_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FIELD_REQUEST | \
     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA)


/* What the caller has passed. */
typedef struct {
    ucp_ep_h                  ep;
    const void                *buffer;
    size_t                    count;
    ucp_tag_t                 tag;
    const ucp_request_param_t *param;
} ucp_opt_tag_send_args_t;


/* For the compiler they are in memory then: see UCP_OPT_RMA_KEEP(). */
#define UCP_OPT_TAG_SEND_KEEP(_args, _ep, _buffer, _count, _tag, _param) \
    { \
        (_args).ep     = (_ep); \
        (_args).buffer = (_buffer); \
        (_args).count  = (_count); \
        (_args).tag    = (_tag); \
        (_args).param  = (_param); \
        asm volatile("" : : "m"(_args)); \
    }


static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_retry(const ucp_opt_tag_send_args_t *args)
{
    return ucp_opt_tag_send_nbx_general(args->ep, args->buffer, args->count,
                                        args->tag, args->param);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_prepare(ucp_ep_h ep, const void *buffer, size_t count,
                             ucp_tag_t tag, const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;

    ret = ucp_opt_tag_send_nbx_general(ep, buffer, count, tag, param);
    if (!UCS_PTR_IS_ERR(ret)) {
        ucp_opt_eager_prepare(ep);
    }

    return ret;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_tag_send_short(ucp_ep_h ep, const void *buffer, size_t length,
                       ucp_tag_t tag)
{
    ucs_status_t status;

    ucs_assert(ucp_opt_eager_is_current(ep));
    status = ep->opt_eager.am_short(ep->opt_eager.uct_ep, UCP_AM_ID_EAGER_ONLY,
                                    tag, buffer, length);
    if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
        UCP_EP_STAT_TAG_OP(ep, EAGER);
    }

    return status;
}

/* What the transport copies. */
typedef struct {
    ucp_tag_t  tag;
    const void *buffer;
    size_t     length;
} ucp_opt_tag_send_pack_t;


static size_t ucp_opt_tag_send_pack(void *dest, void *arg)
{
    const ucp_opt_tag_send_pack_t *pack = arg;
    ucp_eager_hdr_t *hdr                = dest;

    hdr->super.tag = pack->tag;
    memcpy(hdr + 1, pack->buffer, pack->length);
    return sizeof(*hdr) + pack->length;
}

/* A message that the transport copies at once, so it needs no request. */
static UCS_F_ALWAYS_INLINE ssize_t
ucp_opt_tag_send_bcopy(ucp_ep_h ep, const void *buffer, size_t length,
                       ucp_tag_t tag)
{
    ucp_opt_tag_send_pack_t pack = {
        .tag    = tag,
        .buffer = buffer,
        .length = length
    };
    ssize_t packed;

    ucs_assert(ucp_opt_eager_is_current(ep));
    packed = uct_ep_am_bcopy(ep->opt_eager.uct_ep, UCP_AM_ID_EAGER_ONLY,
                             ucp_opt_tag_send_pack, &pack, 0);
    if (ucs_likely(packed >= 0)) {
        UCP_EP_STAT_TAG_OP(ep, EAGER);
    }

    return packed;
}

/* What is neither short nor copied by the transport. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_long(ucp_ep_h ep, const void *buffer, size_t count,
                          ucp_tag_t tag, const ucp_request_param_t *param)
{
    if (ucs_unlikely(ucp_opt_eager_is_wanted(ep))) {
        return ucp_opt_tag_send_nbx_prepare(ep, buffer, count, tag, param);
    }

    return ucp_opt_tag_send_nbx_general(ep, buffer, count, tag, param);
}

/* A message from memory that the user has registered, which is not short, by
 * what UCP has for all that need a request. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_request(const ucp_opt_tag_send_args_t *args)
{
    ucp_worker_h worker = args->ep->worker;
    ucp_request_t *req;

    if (!worker->context->config.ext.proto_enable) {
        return ucp_opt_tag_send_nbx_retry(args);
    }

    req = ucp_request_get_param(worker, args->param, {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    });

    req->send.msg_proto.tag = args->tag;
    return ucp_opt_proto_send_contig(args->ep, req, UCP_OP_ID_TAG_SEND,
                                     args->buffer, args->count, args->param, 0);
}

/* The same of an endpoint that is ready. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_memh(ucp_ep_h ep, const void *buffer, size_t length,
                          ucp_tag_t tag, const ucp_request_param_t *param)
{
    const ucp_opt_eager_zcopy_t *zcopy = &ep->opt_eager.tag_zcopy;
    ucp_opt_tag_send_args_t args;
    ucs_status_t status;
    ucp_request_t *req;
    ssize_t packed;

    UCP_CONTEXT_CHECK_FEATURE_FLAGS(ep->worker->context, UCP_FEATURE_TAG,
                                    return UCS_STATUS_PTR(
                                            UCS_ERR_INVALID_PARAM));

    UCP_OPT_TAG_SEND_KEEP(args, ep, buffer, length, tag, param);
    if (!ucp_opt_memh_is_usual(param->memh, buffer, length)) {
        return ucp_opt_tag_send_nbx_request(&args);
    }

    if (length < ep->opt_eager.tag_bcopy) {
        packed = ucp_opt_tag_send_bcopy(ep, buffer, length, tag);
        if (ucs_likely(packed != UCS_ERR_NO_RESOURCE)) {
            return (packed >= 0) ? NULL : UCS_STATUS_PTR(packed);
        }
    } else if (ucp_opt_zcopy_is_possible(zcopy, length) &&
               ucp_opt_zcopy_is_registered(ep, param->memh)) {
        status = ucp_opt_zcopy_send_memh(ep, zcopy, UCP_REQUEST_FLAG_SEND_TAG,
                                         UCP_AM_ID_EAGER_ONLY, &args.tag,
                                         sizeof(args.tag), buffer, length,
                                         param, &req);
        if (ucs_likely(status == UCS_INPROGRESS)) {
            UCP_EP_STAT_TAG_OP(ep, EAGER);
            return req + 1;
        } else if (status != UCS_ERR_NO_RESOURCE) {
            return UCS_STATUS_PTR(status);
        }
    }

    return ucp_opt_tag_send_nbx_request(&args);
}

/* A message that can be sent from where it is, when it has been registered. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_own(ucp_ep_h ep, const void *buffer, size_t count,
                         ucp_tag_t tag, const ucp_request_param_t *param,
                         size_t length)
{
    ucp_opt_tag_send_args_t args;
    ucs_status_t status;
    ucp_request_t *req;

    UCP_OPT_TAG_SEND_KEEP(args, ep, buffer, count, tag, param);
    status = ucp_opt_zcopy_send_own(ep, &ep->opt_eager.tag_zcopy,
                                    UCP_REQUEST_FLAG_SEND_TAG,
                                    UCP_AM_ID_EAGER_ONLY, &args.tag,
                                    sizeof(args.tag), buffer, length, param,
                                    &req);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        UCP_EP_STAT_TAG_OP(ep, EAGER);
        return req + 1;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        return UCS_STATUS_PTR(status);
    }

    return ucp_opt_tag_send_nbx_retry(&args);
}

/* Messages with attributes for which the transport does not copy. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_rest(ucp_ep_h ep, const void *buffer, size_t count,
                          ucp_tag_t tag, const ucp_request_param_t *param)
{
    ucs_status_t status;
    size_t length;

    if (!(param->op_attr_mask & UCP_OPT_TAG_SEND_ATTR_MASK &
          ~UCP_OP_ATTR_FIELD_DATATYPE) &&
        UCP_DT_IS_CONTIG(ucp_request_param_datatype(param))) {
        length = ucp_contig_dt_length(ucp_request_param_datatype(param), count);
        if (length < ep->opt_eager.tag_limit) {
            status = ucp_opt_tag_send_short(ep, buffer, length, tag);
            if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
                return UCS_STATUS_PTR(status);
            }
        }
    }

    return ucp_opt_tag_send_nbx_long(ep, buffer, count, tag, param);
}

/* Messages of contiguous datatypes, and all that are not short. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_tag_send_nbx_other(ucp_ep_h ep, const void *buffer, size_t count,
                           ucp_tag_t tag, const ucp_request_param_t *param)
{
    ucp_opt_tag_send_args_t args;
    ucs_status_t status;
    ssize_t packed;
    size_t length;

    if (param->op_attr_mask & ~UCP_OPT_TAG_SEND_BCOPY_ATTR_MASK) {
        if ((param->op_attr_mask & ~UCP_OPT_TAG_SEND_MEMH_ATTR_MASK) ||
            !ep->opt_eager.is_ready) {
            return ucp_opt_tag_send_nbx_rest(ep, buffer, count, tag, param);
        }

        return ucp_opt_tag_send_nbx_memh(ep, buffer, count, tag, param);
    }

    if (UCP_DT_IS_CONTIG(ucp_request_param_datatype(param))) {
        length = ucp_contig_dt_length(ucp_request_param_datatype(param), count);
        if (length < ep->opt_eager.tag_limit) {
            UCP_OPT_TAG_SEND_KEEP(args, ep, buffer, count, tag, param);
            status = ucp_opt_tag_send_short(ep, buffer, length, tag);
            if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
                return UCS_STATUS_PTR(status);
            }

            return ucp_opt_tag_send_nbx_retry(&args);
        }

        if (length < ep->opt_eager.tag_bcopy) {
            UCP_OPT_TAG_SEND_KEEP(args, ep, buffer, count, tag, param);
            packed = ucp_opt_tag_send_bcopy(ep, buffer, length, tag);
            if (ucs_likely(packed >= 0)) {
                return NULL;
            } else if (packed != UCS_ERR_NO_RESOURCE) {
                return UCS_STATUS_PTR(packed);
            }

            return ucp_opt_tag_send_nbx_retry(&args);
        }

        if (ucp_opt_zcopy_is_possible(&ep->opt_eager.tag_zcopy, length) &&
            ucp_opt_zcopy_has_own(ep->worker)) {
            return ucp_opt_tag_send_nbx_own(ep, buffer, count, tag, param,
                                            length);
        }
    }

    return ucp_opt_tag_send_nbx_long(ep, buffer, count, tag, param);
}

UCS_PROFILE_FUNC(ucs_status_ptr_t, ucp_tag_send_nbx,
                 (ep, buffer, count, tag, param),
                 ucp_ep_h ep, const void *buffer, size_t count,
                 ucp_tag_t tag, const ucp_request_param_t *param)
{
    ucp_opt_tag_send_args_t args;
    ucs_status_t status;

    if (ucs_unlikely((count >= ep->opt_eager.tag_limit) ||
                     (param->op_attr_mask & UCP_OPT_TAG_SEND_ATTR_MASK))) {
        return ucp_opt_tag_send_nbx_other(ep, buffer, count, tag, param);
    }

    UCP_OPT_TAG_SEND_KEEP(args, ep, buffer, count, tag, param);
    status = ucp_opt_tag_send_short(ep, buffer, count, tag);
    if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
        return UCS_STATUS_PTR(status);
    }

    return ucp_opt_tag_send_nbx_retry(&args);
}
