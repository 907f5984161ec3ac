/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A receive that is posted while no message waits for one. Included by
 * tag/tag_recv.c, whose ucp_opt_tag_recv_nbx_general() can do everything.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_tag_match.h>


/* Attributes of such a receive. It does not complete at once anyway. */
#define UCP_OPT_TAG_RECV_ATTR_MASK \
    (UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | \
     UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE | \
     UCP_OP_ATTR_FLAG_NO_IMM_CMPL)


UCS_PROFILE_FUNC(ucs_status_ptr_t, ucp_tag_recv_nbx,
                 (worker, buffer, count, tag, tag_mask, param),
                 ucp_worker_h worker, void *buffer, size_t count,
                 ucp_tag_t tag, ucp_tag_t tag_mask,
                 const ucp_request_param_t *param)
{
    ucp_tag_match_t *tm     = &worker->tm;
    uint32_t req_flags      = UCP_REQUEST_FLAG_RECV_TAG;
    ucp_datatype_t datatype = ucp_request_param_datatype(param);
    size_t length           = count * ucp_contig_dt_elem_size(datatype);
    ucp_request_queue_t *queue;
    ucp_request_t *req;

    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_RECV) ||
                     (param->op_attr_mask & ~UCP_OPT_TAG_RECV_ATTR_MASK) ||
                     !UCP_DT_IS_CONTIG(datatype) ||
                     !ucs_list_is_empty(&tm->unexpected.all) ||
                     (length >= tm->offload.thresh))) {
        return ucp_opt_tag_recv_nbx_general(worker, buffer, count, tag,
                                            tag_mask, param);
    }

    req = ucp_request_get_param(worker, param,
                                {return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);});

    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
        req_flags       |= UCP_REQUEST_FLAG_CALLBACK;
        req->recv.tag.cb = param->cb.recv;
        req->user_data   =
                (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) ?
                param->user_data : NULL;
    }

    req->status                         = UCS_OK;
    req->flags                          = req_flags;
    req->recv.worker                    = worker;
    req->recv.tag.tag                   = tag;
    req->recv.tag.tag_mask              = tag_mask;
    ucp_opt_recv_set_contig(req, param, buffer, datatype, length);
#if ENABLE_DEBUG_DATA
    req->recv.proto_rndv_config         = NULL;
    ucp_opt_recv_set_no_rndv_request(req);
#endif
    if (ucs_log_is_enabled(UCS_LOG_LEVEL_TRACE_REQ)) {
        req->recv.tag.info.sender_tag   = 0;
    }

    queue = (tag_mask == UCP_TAG_MASK_FULL) ? ucp_opt_tag_queue(tm, tag) :
                                              &tm->expected.wildcard;
    ++tm->expected.sw_all_count;
    ++queue->sw_count;
    ucp_tag_exp_push(tm, queue, req);
    ucs_trace_req("recv_nbx returning expected request %p (%p)", req, req + 1);
    return req + 1;
}
