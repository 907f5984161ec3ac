/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Arrival of an active message of one piece, without an answer. Included by
 * core/ucp_am.c, whose ucp_opt_am_handler_general() can do everything: copy
 * what the user may keep but the transport may not, or align it.
 */

#include <ucp/opt/ucp_opt.h>


UCS_PROFILE_FUNC(ucs_status_t, ucp_am_handler,
                 (am_arg, am_data, am_length, am_flags),
                 void *am_arg, void *am_data, size_t am_length,
                 unsigned am_flags)
{
    ucp_worker_h worker     = am_arg;
    const ucp_am_hdr_t *hdr = am_data;
    unsigned am_id          = hdr->am_id;
    size_t header_length    = hdr->header_length;
    size_t length           = am_length - sizeof(*hdr) - header_length;
    void *data              = UCS_PTR_BYTE_OFFSET(am_data, sizeof(*hdr));
    ucp_am_recv_param_t param;
    const ucp_am_entry_t *entry;
    ucp_recv_desc_t *desc;
    ucs_status_t status;

    if (ucs_unlikely(!(worker->flags & UCP_WORKER_FLAG_OPT_RECV_AM) ||
                     (am_id >= ucs_array_length(&worker->am.cbs)))) {
        return ucp_opt_am_handler_general(am_arg, am_data, am_length, am_flags);
    }

    entry = &ucs_array_elem(&worker->am.cbs, am_id);
    if (ucs_unlikely(!(entry->flags & UCP_AM_CB_PRIV_FLAG_NBX) ||
                     (entry->cb == NULL))) {
        return ucp_opt_am_handler_general(am_arg, am_data, am_length, am_flags);
    }

    param.recv_attr = 0;
    param.reply_ep  = NULL;
    if (!(am_flags & UCT_CB_PARAM_FLAG_DESC)) {
        if (ucs_unlikely(entry->flags & UCP_AM_FLAG_PERSISTENT_DATA)) {
            return ucp_opt_am_handler_general(am_arg, am_data, am_length,
                                              am_flags);
        }

        status = entry->cb(entry->context, UCS_PTR_BYTE_OFFSET(data, length),
                           header_length, data, length, &param);
        if (ucs_unlikely(status == UCS_INPROGRESS)) {
            ucs_error("can't hold data, FLAG_DATA flag is not set");
        }
        return UCS_OK;
    }

    if (ucs_unlikely(worker->am.alignment > 1)) {
        return ucp_opt_am_handler_general(am_arg, am_data, am_length, am_flags);
    }

    /* It overwrites the header. */
    ucp_recv_desc_init(worker, data, length, 0, UCT_CB_PARAM_FLAG_DESC, 0,
                       UCP_RECV_DESC_FLAG_AM_CB_INPROGRESS,
                       -(int)sizeof(*hdr), 1, "am_handler", &desc);

    param.recv_attr = UCP_AM_RECV_ATTR_FLAG_DATA;
    status = entry->cb(entry->context, UCS_PTR_BYTE_OFFSET(data, length),
                       header_length, data, length, &param);
    ucs_assert(!UCS_STATUS_IS_ERR(status));
    if (!ucp_am_rdesc_in_progress(desc, status)) {
        return UCS_OK;
    }

    desc->flags &= ~UCP_RECV_DESC_FLAG_AM_CB_INPROGRESS;
    return UCS_INPROGRESS;
}
