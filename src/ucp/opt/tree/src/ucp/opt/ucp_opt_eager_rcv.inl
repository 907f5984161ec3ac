/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Arrival of a tagged message of one piece, for a receive that is posted and is
 * one buffer. Included by tag/eager_rcv.c, whose
 * ucp_opt_eager_only_handler_general() can do everything.
 */

#include <ucp/opt/ucp_opt.h>
#include <ucp/opt/ucp_opt_compat.h>
#include <ucp/opt/ucp_opt_tag_match.h>

#include <string.h>


/* Flags of receives that are not for this. */
#define UCP_OPT_EAGER_RCV_BAD_FLAGS \
    (UCP_REQUEST_FLAG_OFFLOADED | UCP_REQUEST_FLAG_BLOCK_OFFLOAD)


/* Without a call for the length that is most frequent. */
static UCS_F_ALWAYS_INLINE void
ucp_opt_eager_copy(void *to, const void *from, size_t length)
{
    if (ucs_likely(length == sizeof(uint64_t))) {
        memcpy(to, from, sizeof(uint64_t));
    } else {
        ucp_opt_memcpy(to, from, length);
    }
}

static UCS_F_NOINLINE ucs_status_t
ucp_opt_eager_rcv_callback(ucp_request_t *req)
{
    ucp_request_complete_tag_recv(req, UCS_OK);
    return UCS_OK;
}

/* No receive is posted for it. */
static UCS_F_NOINLINE ucs_status_t
ucp_opt_eager_rcv_unexpected(ucp_worker_h worker, void *data, size_t length,
                             unsigned am_flags)
{
    const ucp_eager_hdr_t *hdr = data;
    ucp_recv_desc_t *rdesc;
    ucs_status_t status;

    status = ucp_recv_desc_init(worker, data, length, 0, am_flags, sizeof(*hdr),
                                UCP_RECV_DESC_FLAG_EAGER |
                                UCP_RECV_DESC_FLAG_EAGER_ONLY, 0, 1,
                                "eager_only_handler", &rdesc);
    if (!UCS_STATUS_IS_ERR(status)) {
        ucp_tag_unexp_recv(&worker->tm, rdesc, ucp_rdesc_get_tag(rdesc));
    }

    return status;
}

UCS_PROFILE_FUNC(ucs_status_t, ucp_eager_only_handler,
                 (arg, data, length, am_flags),
                 void *arg, void *data, size_t length, unsigned am_flags)
{
    ucp_worker_h worker        = arg;
    const ucp_eager_hdr_t *hdr = data;
    ucp_tag_match_t *tm        = &worker->tm;
    ucp_tag_t tag              = hdr->super.tag;
    size_t data_length         = length - sizeof(*hdr);
    ucp_request_queue_t *queue;
    ucs_queue_iter_t iter;
    ucp_request_t *req;

    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_RECV) ||
                     !ucs_queue_is_empty(&tm->expected.wildcard.queue))) {
        return ucp_opt_eager_only_handler_general(arg, data, length, am_flags);
    }

    queue = ucp_opt_tag_queue(tm, tag);
    iter  = ucs_queue_iter_begin(&queue->queue);
    for (;;) {
        if (ucs_queue_iter_end(&queue->queue, iter)) {
            return ucp_opt_eager_rcv_unexpected(worker, data, length, am_flags);
        }

        req = ucs_container_of(*iter, ucp_request_t, recv.queue);
        if (ucs_likely(ucp_tag_is_match(tag, req->recv.tag.tag,
                                        req->recv.tag.tag_mask))) {
            break;
        }

        iter = ucs_queue_iter_next(iter);
    }

    if (ucs_unlikely((req->flags & UCP_OPT_EAGER_RCV_BAD_FLAGS) ||
                     !ucp_opt_recv_is_contig(req) ||
                     (ucp_opt_recv_mem_type(req) != UCS_MEMORY_TYPE_HOST) ||
                     (data_length > ucp_opt_recv_length(req)))) {
        return ucp_opt_eager_only_handler_general(arg, data, length, am_flags);
    }

    ucs_trace_req("matched received tag %" PRIx64 " to req %p", tag, req);
    UCS_PROFILE_REQUEST_EVENT(req, "eager_recv", data_length);
    UCP_WORKER_STAT_EAGER_MSG(worker, UCP_RECV_DESC_FLAG_EAGER |
                                      UCP_RECV_DESC_FLAG_EAGER_ONLY);
    UCP_WORKER_STAT_EAGER_CHUNK(worker, EXP);

    --tm->expected.sw_all_count;
    --queue->sw_count;
    ucs_queue_del_iter(&queue->queue, iter);

    req->recv.tag.info.sender_tag = tag;
    req->recv.tag.info.length     = data_length;
    ucp_opt_eager_copy(ucp_opt_recv_buffer(req), hdr + 1, data_length);

    if (req->flags & (UCP_REQUEST_FLAG_CALLBACK | UCP_REQUEST_FLAG_RELEASED)) {
        return ucp_opt_eager_rcv_callback(req);
    }

    UCS_PROFILE_REQUEST_EVENT(req, "complete_tag_recv", UCS_OK);
    req->flags |= UCP_REQUEST_FLAG_COMPLETED;
    req->status = UCS_OK;
    return UCS_OK;
}
