/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short active messages of an endpoint that is ready for them. Included by
 * core/ucp_am.c, whose ucp_opt_am_send_nbx_general() can do everything.
 *
 * Their header has the 8 bytes of a header of UCT's short active messages, so
 * header and data need no list of buffers. What the peer receives is the same.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_eager.h>

#include <string.h>


/* Attributes that are not for the shortest way. */
#define UCP_OPT_AM_SEND_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | \
     UCP_OP_ATTR_FIELD_FLAGS | \
     (ENABLE_PARAMS_CHECK ? UCP_OP_ATTR_FIELD_MEMORY_TYPE : 0))


/* Attributes that a message can have that the transport copies. */
#define UCP_OPT_AM_SEND_BCOPY_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST | \
     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | \
     UCP_OP_ATTR_FIELD_FLAGS)


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

/* Of what is not simply a buffer without header, the messages that are one
 * piece of memory and have no answer. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_am_send_nbx_other(ucp_ep_h ep, unsigned id, const void *header,
                          size_t header_length, const void *buffer,
                          size_t count, const ucp_request_param_t *param)
{
    uint32_t flags    = ucp_request_param_flags(param);
    uintptr_t dt      = ucp_request_param_datatype(param);
    uint32_t bad_attr = UCP_OPT_AM_SEND_ATTR_MASK &
                        ~(UCP_OP_ATTR_FIELD_DATATYPE |
                          UCP_OP_ATTR_FIELD_FLAGS);
    ucp_opt_am_send_args_t args;
    ucs_status_t status;
    ssize_t packed;
    size_t length;

    if (!(param->op_attr_mask & bad_attr) &&
        !(flags & ~UCP_AM_SEND_FLAG_EAGER) && UCP_DT_IS_CONTIG(dt)) {
        length = ucp_contig_dt_length(dt, count);
        if (((length == 0) || (header_length == 0)) &&
            (length < ep->opt_eager.am_limit) &&
            (header_length < ep->opt_eager.am_limit)) {
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

        if ((header_length == 0) && (length < ep->opt_eager.am_bcopy) &&
            (flags == 0) &&
            !(param->op_attr_mask & ~UCP_OPT_AM_SEND_BCOPY_ATTR_MASK)) {
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
    }

    if (ucs_unlikely(ucp_opt_eager_is_wanted(ep))) {
        return ucp_opt_am_send_nbx_prepare(ep, id, header, header_length,
                                           buffer, count, param);
    }

    return ucp_opt_am_send_nbx_general(ep, id, header, header_length, buffer,
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
