/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Atomic operations with a key that is ready. Included by rma/amo_send.c, whose
 * ucp_opt_atomic_op_nbx_general() can do everything.
 */

#include <ucp/opt/ucp_opt_rkey.h>
#include <ucp/opt/ucp_opt_rkey_class.h>


/* Attributes such an operation can have. */
#define UCP_OPT_AMO_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER | \
     UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | \
     UCP_OP_ATTR_FIELD_USER_DATA)


/* What the compiler may use. */
#define UCP_OPT_AMO_ASSUME(_condition) \
    do { \
        ucs_assert(_condition); \
        if (!(_condition)) { \
            __builtin_unreachable(); \
        } \
    } while (0)


/* Takes the arguments of ucp_atomic_op_nbx() where they are. */
static UCS_F_NOINLINE __attribute__((noclone)) ucs_status_ptr_t
ucp_opt_atomic_op_nbx_general(ucp_ep_h ep, ucp_atomic_op_t opcode,
                              const void *buffer, size_t count,
                              uint64_t remote_addr, ucp_rkey_h rkey,
                              const ucp_request_param_t *param)
{
    return ucp_opt_atomic_op_nbx_inline(ep, opcode, buffer, count, remote_addr,
                                        rkey, param);
}

/* Where atomics are active messages. A key that has been ready is for a worker
 * that takes no lock and has one version of the protocols. */
ucs_status_ptr_t
ucp_opt_amo_am_v1(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    UCP_OPT_AMO_ASSUME(!(ep->worker->flags & UCP_WORKER_FLAG_THREAD_MULTI));
    UCP_OPT_AMO_ASSUME(!ep->worker->context->config.ext.proto_enable);

    return ucp_opt_atomic_op_nbx_inline(ep, opcode, buffer, count, remote_addr,
                                        rkey, param);
}

ucs_status_ptr_t
ucp_opt_amo_am_v2(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    UCP_OPT_AMO_ASSUME(!(ep->worker->flags & UCP_WORKER_FLAG_THREAD_MULTI));
    UCP_OPT_AMO_ASSUME(ep->worker->context->config.ext.proto_enable);

    return ucp_opt_atomic_op_nbx_inline(ep, opcode, buffer, count, remote_addr,
                                        rkey, param);
}

/* How a key is made ready again. */
ucs_status_ptr_t
ucp_opt_amo_prepare(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                    size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                    const ucp_request_param_t *param)
{
    ucs_status_ptr_t ret;

    ret = ucp_opt_atomic_op_nbx_general(ep, opcode, buffer, count, remote_addr,
                                        rkey, param);
    if (!UCS_PTR_IS_ERR(ret) && (rkey->opt.state != ep->opt_state) &&
        (rkey->opt.state != UCP_OPT_RKEY_NEVER)) {
        ucp_opt_rkey_prepare(ep, rkey);
    }

    return ret;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_amo_post(ucp_rkey_h rkey, uct_atomic_op_t op, const void *operand,
                 uint64_t remote_addr, size_t size)
{
    const ucp_opt_rkey_t *opt = &rkey->opt;

    return (size == sizeof(uint64_t)) ?
           uct_ep_atomic64_post(opt->amo_ep, op, *(const uint64_t*)operand,
                                remote_addr, opt->amo_rkey) :
           uct_ep_atomic32_post(opt->amo_ep, op, *(const uint32_t*)operand,
                                remote_addr, opt->amo_rkey);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_opt_amo_fetch(ucp_rkey_h rkey, uct_atomic_op_t op, const void *operand,
                  void *reply, uint64_t remote_addr, size_t size,
                  uct_completion_t *comp)
{
    const ucp_opt_rkey_t *opt = &rkey->opt;

    if (op == UCT_ATOMIC_OP_CSWAP) {
        return (size == sizeof(uint64_t)) ?
               uct_ep_atomic_cswap64(opt->amo_ep, *(const uint64_t*)operand,
                                     *(uint64_t*)reply, remote_addr,
                                     opt->amo_rkey, (uint64_t*)reply, comp) :
               uct_ep_atomic_cswap32(opt->amo_ep, *(const uint32_t*)operand,
                                     *(uint32_t*)reply, remote_addr,
                                     opt->amo_rkey, (uint32_t*)reply, comp);
    }

    return (size == sizeof(uint64_t)) ?
           uct_ep_atomic64_fetch(opt->amo_ep, op, *(const uint64_t*)operand,
                                 (uint64_t*)reply, remote_addr, opt->amo_rkey,
                                 comp) :
           uct_ep_atomic32_fetch(opt->amo_ep, op, *(const uint32_t*)operand,
                                 (uint32_t*)reply, remote_addr, opt->amo_rkey,
                                 comp);
}

/* With the size known to the compiler. The key is ready for some atomics. */
static UCS_F_ALWAYS_INLINE ucs_status_ptr_t
ucp_opt_atomic_op(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param, size_t size)
{
    int is_fetch       = param->op_attr_mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    int is_cswap       = opcode == UCP_ATOMIC_OP_CSWAP;
    uct_atomic_op_t op = ucp_uct_atomic_op_table[opcode];
    uct_completion_t *comp;
    ucs_status_t status;
    ucp_request_t *req;

    /* Features are checked when the key is made ready, the rest before */
    if (ENABLE_PARAMS_CHECK && ((remote_addr % size) != 0)) {
        goto general;
    }

    if (!is_fetch) {
        if ((opcode != UCP_ATOMIC_OP_SWAP) && !is_cswap &&
            (rkey->opt.amos & UCP_OPT_AMO_BIT(0, 0, size))) {
            status = ucp_opt_amo_post(rkey, op, buffer, remote_addr, size);
            if (ucs_likely(status == UCS_OK)) {
                return NULL;
            }
        }
        goto general;
    }

    if (ucs_unlikely(!(rkey->opt.amos & (is_cswap ?
                                         UCP_OPT_AMO_BIT(1, 1, size) :
                                         UCP_OPT_AMO_BIT(1, 0, size))))) {
        goto general;
    }

    req = ucp_request_get_param(ep->worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    comp         = &req->send.state.uct_comp;
    comp->func   = ucp_amo_completed_single;
    comp->count  = 1;
    comp->status = UCS_OK;

    status = ucp_opt_amo_fetch(rkey, op, buffer, param->reply_buffer,
                               remote_addr, size, comp);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        req->flags   = 0;
        req->status  = UCS_OK;
        req->send.ep = ep;
        ucp_request_set_send_callback_param(param, req, send);
        return req + 1;
    }

    ucp_request_put_param(param, req);
    if (status != UCS_ERR_NO_RESOURCE) {
        return UCS_STATUS_PTR(status);
    }

general:
    return ucp_opt_atomic_op_nbx_general(ep, opcode, buffer, count, remote_addr,
                                         rkey, param);
}

ucs_status_ptr_t
ucp_opt_amo_ready(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    if (ucs_unlikely(rkey->opt.state != ep->opt_state)) {
        return ucp_opt_amo_prepare(ep, opcode, buffer, count, remote_addr, rkey,
                                   param);
    }

    ucs_assert(ucp_opt_rkey_is_current(ep, rkey));
    if (ucs_likely(!(param->op_attr_mask & ~UCP_OPT_AMO_ATTR_MASK) &&
                   (opcode < UCP_ATOMIC_OP_LAST) && (count == 1) &&
                   (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE))) {
        if (ucs_likely(param->datatype ==
                       ucp_dt_make_contig(sizeof(uint64_t)))) {
            return ucp_opt_atomic_op(ep, opcode, buffer, count, remote_addr,
                                     rkey, param, sizeof(uint64_t));
        } else if (param->datatype == ucp_dt_make_contig(sizeof(uint32_t))) {
            return ucp_opt_atomic_op(ep, opcode, buffer, count, remote_addr,
                                     rkey, param, sizeof(uint32_t));
        }
    }

    return ucp_opt_atomic_op_nbx_general(ep, opcode, buffer, count, remote_addr,
                                         rkey, param);
}

ucs_status_ptr_t
ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                  size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                  const ucp_request_param_t *param)
{
    return rkey->opt.amo_func(ep, opcode, buffer, count, remote_addr, rkey,
                              param);
}
