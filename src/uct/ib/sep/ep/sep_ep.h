/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EP_H
#define UCT_SEP_EP_H

#include <uct/ib/sep/iface/sep_iface.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <ucs/datastruct/queue_types.h>

BEGIN_C_DECLS

/**
 * @file sep_ep.h
 *
 * UCT endpoint. All endpoints of an interface to the same remote interface use
 * one connection. Posting looks only at the send queue that an endpoint points
 * to; endpoints without a connection, and those that have failed, point to one
 * that never has credits.
 */

/** Flags of @ref uct_sep_ep_t. */
enum {
    /** The user was told about an error; nothing can be sent any more. */
    UCT_SEP_EP_FLAG_FAILED     = 1 << 0,
    /** Something was to be sent, and waits for the connection. */
    UCT_SEP_EP_FLAG_CONNECTING = 1 << 1
};


/** Endpoint. */
struct uct_sep_ep {
    uct_base_ep_t    super;
    uct_sep_txwq_t   *txwq;   /**< Send queue in use */
    uct_sep_link_t   *link;   /**< Connection; holds a reference */
    ucs_list_link_t  list;    /**< In uct_sep_link_t, or with itself */
    ucs_queue_head_t pending; /**< Pending requests, in order */
    ucs_list_link_t  sched;   /**< In waiting of the send queue, in sched of the
                                   interface, or with itself */
    uint8_t          flags;   /**< UCT_SEP_EP_FLAG_xx */
};


/**
 * Nothing can be sent: find out why, and act on it. Called by operations that
 * find no credits.
 *
 * @return UCS_OK: sending is possible after all; UCS_ERR_NO_RESOURCE; or an
 *         error because the endpoint has failed.
 */
ucs_status_t uct_sep_ep_no_credits(uct_sep_ep_t *ep);


/** The same for an active message, which may also have to wait for a grant. */
ucs_status_t uct_sep_ep_no_am_credits(uct_sep_ep_t *ep);


/** Whether any operation, including an active message, would find resources. */
int uct_sep_ep_can_send(uct_sep_ep_t *ep);


/** Warn that an endpoint, @a arg, is destroyed with a pending request. */
void uct_sep_ep_purge_warn(uct_pending_req_t *req, void *arg);


/**
 * Start connecting, unless that has been done.
 *
 * @return UCS_ERR_NO_RESOURCE: it will be connected, or the user will be told
 *         about a failure; or why connecting can't be tried.
 */
ucs_status_t uct_sep_ep_connect(uct_sep_ep_t *ep);


/** Attach to a send queue, which can be used from now on. */
void uct_sep_ep_attach(uct_sep_ep_t *ep, uct_sep_txwq_t *txwq);


/** Detach from the send queue. */
void uct_sep_ep_detach(uct_sep_ep_t *ep);


/**
 * A flush is under way: request a completion of the last work request.
 *
 * @param comp  To be called on that completion, or NULL.
 *
 * @return UCS_INPROGRESS or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_ep_flush_track(uct_sep_ep_t *ep, uct_completion_t *comp);


/** Operations of uct_iface_ops_t. Flush: handles all cases; the data paths' own
 *  handle the usual one. */
ucs_status_t uct_sep_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void uct_sep_ep_destroy(uct_ep_h tl_ep);
ucs_status_t uct_sep_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                    unsigned flags);
void uct_sep_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                              void *arg);
ucs_status_t uct_sep_ep_flush(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp);
ucs_status_t uct_sep_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_sep_ep_check(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp);
ucs_status_t uct_sep_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_sep_iface_fence(uct_iface_h tl_iface, unsigned flags);


/**
 * Call an endpoint's first pending request, and put the endpoint where it
 * waits for what the next one needs.
 *
 * @return Whether anything was sent.
 */
int uct_sep_ep_dispatch(uct_sep_ep_t *ep);

END_C_DECLS

#endif
