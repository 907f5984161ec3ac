/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Put and get of what fits into one work request, with a key that is ready.
 * Included by rma/rma_send.c, whose
 * ucp_opt_put_nbx_general() and ucp_opt_get_nbx_general() can do everything.
 */

#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_rkey.h>

#include <string.h>


/* Attributes that such a put cannot have. */
#define UCP_OPT_PUT_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | \
     UCP_OPT_CHECKED_ATTRS)


/* Attributes that a put cannot have to be copied by the transport: what is said
 * about the memory, or that it is to be short. */
#define UCP_OPT_PUT_BCOPY_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)


/* Attributes that a get or an atomic operation can have to be like that. */
#define UCP_OPT_REQUEST_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | \
     UCP_OP_ATTR_FIELD_USER_DATA)


/* Whether there is nothing to send, which is an error. */
#define UCP_OPT_RMA_IS_NOTHING(_buffer) \
    (ENABLE_PARAMS_CHECK && ((_buffer) == NULL))


/* Whether a key is worth being made ready after the general way. */
static UCS_F_ALWAYS_INLINE int
ucp_opt_rkey_is_wanted(ucp_ep_h ep, ucp_rkey_h rkey)
{
    return (rkey->opt.state != ep->opt_state) &&
           (rkey->opt.state != UCP_OPT_RKEY_NEVER);
}

/* What the caller has passed. */
typedef struct {
    ucp_ep_h                  ep;
    const void                *buffer;
    size_t                    count;
    uint64_t                  remote_addr;
    ucp_rkey_h                rkey;
    const ucp_request_param_t *param;
} ucp_opt_rma_args_t;


/* The compiler would rather keep the arguments in registers that it has to save
 * and restore, at three instructions for each instead of one; so it must
 * believe that they are looked at in memory. */
#define UCP_OPT_RMA_KEEP(_args, _ep, _buffer, _count, _remote_addr, _rkey, \
                         _param) \
    { \
        (_args).ep          = (_ep); \
        (_args).buffer      = (_buffer); \
        (_args).count       = (_count); \
        (_args).remote_addr = (_remote_addr); \
        (_args).rkey        = (_rkey); \
        (_args).param       = (_param); \
        asm volatile("" : : "m"(_args)); \
    }


static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_put_nbx_retry(const ucp_opt_rma_args_t *args)
{
    return ucp_opt_put_nbx_general(args->ep, args->buffer, args->count,
                                   args->remote_addr, args->rkey, args->param);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_put_nbx_prepare(ucp_ep_h ep, const void *buffer, size_t count,
                        uint64_t remote_addr, ucp_rkey_h rkey,
                        const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;

    ret = ucp_opt_put_nbx_general(ep, buffer, count, remote_addr, rkey, param);
    if (!UCS_PTR_IS_ERR(ret) && ucp_opt_rkey_is_wanted(ep, rkey)) {
        /* The key has been resolved. */
        ucp_opt_rkey_prepare(ep, rkey);
    }

    return ret;
}

/* What a put copies. */
typedef struct {
    const void *src;
    size_t     length;
} ucp_opt_put_pack_t;


static size_t ucp_opt_put_pack(void *dest, void *arg)
{
    const ucp_opt_put_pack_t *pack = arg;

    memcpy(dest, pack->src, pack->length);
    return pack->length;
}

/* A put that the transport copies at once, so it needs no request. The key is
 * ready. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_put_nbx_bcopy(ucp_ep_h ep, const void *buffer, size_t count,
                      uint64_t remote_addr, ucp_rkey_h rkey,
                      const ucp_request_param_t *param)
{
    ucp_opt_put_pack_t pack = {
        .src    = buffer,
        .length = count
    };
    ucp_opt_rma_args_t args;
    ssize_t packed;

    if (ucs_unlikely(param->op_attr_mask & UCP_OPT_PUT_BCOPY_ATTR_MASK)) {
        return ucp_opt_put_nbx_general(ep, buffer, count, remote_addr, rkey,
                                       param);
    }

    ucs_assert(ucp_opt_rkey_is_current(ep, rkey));
    UCP_OPT_RMA_KEEP(args, ep, buffer, count, remote_addr, rkey, param);
    packed = uct_ep_put_bcopy(rkey->opt.rma_ep, ucp_opt_put_pack, &pack,
                              remote_addr, rkey->opt.rma_rkey);
    if (ucs_likely(packed >= 0)) {
        return NULL;
    } else if (packed != UCS_ERR_NO_RESOURCE) {
        return UCS_STATUS_PTR(packed);
    }

    return ucp_opt_put_nbx_retry(&args);
}

ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                             uint64_t remote_addr, ucp_rkey_h rkey,
                             const ucp_request_param_t *param)
{
    ucp_opt_rma_args_t args;
    ucs_status_t status;

    /* The key may be none if there is a datatype. */
    if (ucs_unlikely((param->op_attr_mask & UCP_OPT_PUT_ATTR_MASK) ||
                     UCP_OPT_RMA_IS_NOTHING(buffer))) {
        return ucp_opt_put_nbx_general(ep, buffer, count, remote_addr, rkey,
                                       param);
    }

    /* A length of 0 is too long as well. */
    if (ucs_likely((rkey->opt.state == ep->opt_state) &&
                   (count - 1 < rkey->opt.max_put))) {
        ucs_assert(ucp_opt_rkey_is_current(ep, rkey));
        UCP_OPT_RMA_KEEP(args, ep, buffer, count, remote_addr, rkey, param);
        status = rkey->opt.put_short(rkey->opt.rma_ep, buffer, count,
                                     remote_addr, rkey->opt.rma_rkey);
        if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
            return UCS_STATUS_PTR(status);
        }

        return ucp_opt_put_nbx_retry(&args);
    }

    if (ucs_unlikely(rkey->opt.state != ep->opt_state)) {
        return ucp_opt_put_nbx_prepare(ep, buffer, count, remote_addr, rkey,
                                       param);
    }

    if (count - 1 < rkey->opt.max_put_bcopy) {
        return ucp_opt_put_nbx_bcopy(ep, buffer, count, remote_addr, rkey,
                                     param);
    }

    return ucp_opt_put_nbx_general(ep, buffer, count, remote_addr, rkey, param);
}

/* The transport is done with a get. */
static void ucp_opt_get_completion(uct_completion_t *self)
{
    ucp_request_t *req = ucs_container_of(self, ucp_request_t,
                                          send.state.uct_comp);

    ucp_trace_req(req, "get completed");
    ucp_request_complete_send(req, self->status);
}

static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_get_nbx_prepare(ucp_ep_h ep, void *buffer, size_t count,
                        uint64_t remote_addr, ucp_rkey_h rkey,
                        const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;

    ret = ucp_opt_get_nbx_general(ep, buffer, count, remote_addr, rkey, param);
    if (!UCS_PTR_IS_ERR(ret) && ucp_opt_rkey_is_wanted(ep, rkey)) {
        ucp_opt_rkey_prepare(ep, rkey);
    }

    return ret;
}

/* A get that was not to be waited for. */
static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_get_nbx_retry(const ucp_opt_rma_args_t *args, ucp_request_t *req,
                      ucs_status_t status)
{
    ucp_request_put_param(args->param, req);
    if (status != UCS_ERR_NO_RESOURCE) {
        return UCS_STATUS_PTR(status);
    }

    return ucp_opt_get_nbx_general(args->ep, (void*)args->buffer, args->count,
                                   args->remote_addr, args->rkey, args->param);
}

ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count,
                             uint64_t remote_addr, ucp_rkey_h rkey,
                             const ucp_request_param_t *param)
{
    ucp_opt_rma_args_t args;
    uct_completion_t *comp;
    ucs_status_t status;
    ucp_request_t *req;

    /* A length of 0 is too long as well. */
    if (ucs_unlikely((rkey->opt.state != ep->opt_state) ||
                     (count - 1 >= rkey->opt.max_get) ||
                     UCP_OPT_RMA_IS_NOTHING(buffer) ||
                     (param->op_attr_mask & ~UCP_OPT_REQUEST_ATTR_MASK))) {
        return ucp_opt_get_nbx_prepare(ep, buffer, count, remote_addr, rkey,
                                       param);
    }

    ucs_assert(ucp_opt_rkey_is_current(ep, rkey));
    UCP_OPT_RMA_KEEP(args, ep, buffer, count, remote_addr, rkey, param);
    req = ucp_request_get_param(ep->worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    comp         = &req->send.state.uct_comp;
    comp->func   = ucp_opt_get_completion;
    comp->count  = 1;
    comp->status = UCS_OK;

    status = uct_ep_get_bcopy(args.rkey->opt.rma_ep,
                              (uct_unpack_callback_t)memcpy,
                              (void*)args.buffer, args.count, args.remote_addr,
                              args.rkey->opt.rma_rkey, comp);
    if (ucs_unlikely(status != UCS_INPROGRESS)) {
        return ucp_opt_get_nbx_retry(&args, req, status);
    }

    req->flags   = 0;
    req->status  = UCS_OK;
    req->send.ep = args.ep;
    ucp_request_set_send_callback_param(args.param, req, send);
    return req + 1;
}
