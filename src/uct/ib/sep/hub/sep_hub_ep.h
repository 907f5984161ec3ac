/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_EP_H
#define UCT_SEP_HUB_EP_H

#include <uct/ib/sep/hub/sep_hub_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_hub_ep.h
 *
 * Endpoint of a worker in category mpi_threads. It posts on the connection that
 * the hub has to the peer process.
 */

/** See sep_hub_ops.h. */
typedef struct uct_sep_hub_packed uct_sep_hub_packed_t;


/** Endpoint. */
struct uct_sep_hub_ep {
    uct_base_ep_t          super;
    uct_sep_hub_peer_t     *peer;     /**< Holds a reference; NULL if a pending
                                           request has destroyed the endpoint */
    uint64_t               route;     /**< uct_sep_hub_route_t of the remote
                                           interface */
    uint16_t               mark;      /**< Send queue's index after the last
                                           operation posted here */
    uint8_t                is_dirty;  /**< There was one, and it may not be
                                           complete */
    uint8_t                is_failed UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    /** Its user has no use for the error handler any more */
    uint8_t                is_destroyed UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    ucs_status_t           failure;   /**< Why; does not change any more */
    uint8_t                is_blocked; /**< There is, or was, something to be
                                            sent first: packed or pending;
                                            worker's thread */
    /** A fence came while something was packed */
    uint8_t                is_fenced UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    uint8_t                in_dispatch; /**< Pending requests being called,
                                             which may progress */
    uct_sep_hub_packed_t   *packed;   /**< To be sent before all else */
    ucs_queue_head_t       pending;   /**< Requests; worker's thread */
    ucs_list_link_t        ops;       /**< uct_sep_hub_op_t; worker's thread */
    ucs_list_link_t        list;      /**< In the interface */
    /** In the peer */
    ucs_list_link_t        peer_list UCT_SEP_GUARDED_BY(uct_sep_hub_mutex);
    ucs_list_link_t        sched;     /**< In waiters of the peer, in ready of
                                           mail or inbox, or with itself */
    ucs_list_link_t        failed;    /**< In failed of mail or inbox, or with
                                           itself */
};


/** Whether an endpoint has nothing outstanding. */
int uct_sep_hub_ep_is_complete(uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Whether it has failed, which its user does not know yet: until then a flush
 *  must not say that all is done. */
static inline UCT_SEP_REQUIRES(uct_sep_hub_mutex) int
uct_sep_hub_ep_is_untold(uct_sep_hub_ep_t *ep)
{
    return !ucs_list_is_empty(&ep->failed);
}


/**
 * Find out whether an operation may start on a blocked endpoint: what was
 * packed is sent first, and requests may be pending only if one of them is the
 * caller.
 */
int uct_sep_hub_ep_unblock(uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Call an endpoint's pending requests. */
unsigned uct_sep_hub_ep_dispatch(uct_sep_hub_ep_t *ep)
        UCT_SEP_EXCLUDES(uct_sep_hub_mutex);


/** Operations of uct_iface_ops_t. */
ucs_status_t uct_sep_hub_ep_create(const uct_ep_params_t *params,
                                   uct_ep_h *ep_p);
void uct_sep_hub_ep_destroy(uct_ep_h tl_ep);
ucs_status_t uct_sep_hub_ep_pending_add(uct_ep_h tl_ep,
                                        uct_pending_req_t *req,
                                        unsigned flags);
void uct_sep_hub_ep_pending_purge(uct_ep_h tl_ep,
                                  uct_pending_purge_callback_t cb, void *arg);
ucs_status_t uct_sep_hub_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                  uct_completion_t *comp);
ucs_status_t uct_sep_hub_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_sep_hub_ep_check(uct_ep_h tl_ep, unsigned flags,
                                  uct_completion_t *comp);


/** Whether an endpoint sends to an interface, or to any one on a device if that
 *  is NULL. */
int uct_sep_hub_ep_is_connected(uct_ep_h tl_ep,
                                const uct_device_addr_t *dev_addr,
                                const uct_iface_addr_t *iface_addr);


static UCS_F_ALWAYS_INLINE uct_sep_hub_iface_t *
uct_sep_hub_ep_iface(const uct_sep_hub_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_sep_hub_iface_t);
}


/** Something was posted: a flush waits for it. */
static UCS_F_ALWAYS_INLINE UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_ep_mark(uct_sep_hub_ep_t *ep)
{
    ep->mark     = ep->peer->ep->txwq->sw_pi;
    ep->is_dirty = 1;
}

END_C_DECLS

#endif
