/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Small put with a key that is ready. Included by rma/rma_send.c, whose
 * ucp_opt_put_nbx_general() is the put that can do everything.
 */

#include <ucp/opt/ucp_opt_rkey.h>


/* Attributes that such a put cannot have. */
#define UCP_OPT_PUT_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL)


/* What the caller has passed. */
typedef struct {
    ucp_ep_h                  ep;
    const void                *buffer;
    size_t                    count;
    uint64_t                  remote_addr;
    ucp_rkey_h                rkey;
    const ucp_request_param_t *param;
} ucp_opt_put_args_t;


static UCS_F_NOINLINE ucs_status_ptr_t
ucp_opt_put_nbx_retry(const ucp_opt_put_args_t *args)
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
    if (!UCS_PTR_IS_ERR(ret)) {
        /* The key has been resolved. */
        ucp_opt_rkey_prepare(ep, rkey);
    }

    return ret;
}

ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                             uint64_t remote_addr, ucp_rkey_h rkey,
                             const ucp_request_param_t *param)
{
    ucp_opt_put_args_t args;
    ucs_status_t status;

    /* A length of 0 is too long as well. */
    if (ucs_likely((rkey->opt.ep == ep) && (count - 1 < rkey->opt.max_put) &&
                   !(param->op_attr_mask & UCP_OPT_PUT_ATTR_MASK))) {
        ucs_assert(ucp_opt_rkey_is_current(rkey));
        /* The compiler would rather keep the arguments in registers that it
         * has to save and restore, at three instructions for each instead of
         * one; so it must believe that they are looked at in memory. */
        args.ep          = ep;
        args.buffer      = buffer;
        args.count       = count;
        args.remote_addr = remote_addr;
        args.rkey        = rkey;
        args.param       = param;
        asm volatile("" : : "m"(args));

        status = rkey->opt.put_short(rkey->opt.put_ep, buffer, count,
                                     remote_addr, rkey->opt.put_rkey);
        if (ucs_likely(status != UCS_ERR_NO_RESOURCE)) {
            return UCS_STATUS_PTR(status);
        }

        return ucp_opt_put_nbx_retry(&args);
    }

    if (ucs_unlikely(rkey->opt.ep == NULL)) {
        return ucp_opt_put_nbx_prepare(ep, buffer, count, remote_addr, rkey,
                                       param);
    }

    return ucp_opt_put_nbx_general(ep, buffer, count, remote_addr, rkey, param);
}
