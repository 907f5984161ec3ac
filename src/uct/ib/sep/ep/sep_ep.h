/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EP_H
#define UCT_SEP_EP_H

#include <uct/ib/sep/ep/sep_ep_def.h>
#include <uct/ib/sep/iface/sep_op_done.h>

BEGIN_C_DECLS

/**
 * @file sep_ep.h
 *
 * Operations of endpoints apart from the data path, and what the data path
 * calls when it finds no credits.
 */

/**
 * Nothing can be sent: find out why, and act on it. Called by operations that
 * find no credits.
 *
 * @return UCS_OK: sending is possible after all; UCS_ERR_NO_RESOURCE; or an
 *         error because the endpoint has failed.
 */
ucs_status_t uct_sep_ep_no_credits(uct_sep_ep_t *ep);


/** uct_sep_ep_no_credits() for an operation that is not a put: see
 *  sep_strict.h. */
ucs_status_t uct_sep_ep_no_op_credits(uct_sep_ep_t *ep);


/** uct_sep_ep_no_credits() for an active message, which may also have to wait
 *  for a grant. */
ucs_status_t uct_sep_ep_no_am_credits(uct_sep_ep_t *ep);


/** Give an endpoint's pending requests to a callback, if any, and count them
 *  off those of its interface. */
void uct_sep_ep_purge(ucs_queue_head_t *pending, unsigned *count_p,
                      uct_pending_purge_callback_t cb, void *arg);


/** Warn that an endpoint, @a arg, is destroyed with a pending request. */
void uct_sep_ep_purge_warn(uct_pending_req_t *req, void *arg);


/**
 * A flush is under way: request a completion of the last work request.
 *
 * @param comp  To be called on that completion, or NULL.
 *
 * @return UCS_INPROGRESS or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_ep_flush_track(uct_sep_ep_t *ep, uct_completion_t *comp);


/** The same with a completion and a free operation, @a op. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ep_flush_add(uct_sep_ep_t *ep, uct_completion_t *comp, uct_sep_op_t *op)
{
    op->handler = uct_sep_op_complete_flush;
    op->comp    = comp;
    op->ep      = ep;
    uct_sep_txwq_track(ep->txwq, op);
    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}


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


/** Whether an endpoint sends to an interface, or to any one on a device if that
 *  is NULL. */
int uct_sep_ep_is_connected(uct_ep_h tl_ep, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr);

END_C_DECLS

#endif
