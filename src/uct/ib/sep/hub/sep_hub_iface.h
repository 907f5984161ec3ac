/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_IFACE_H
#define UCT_SEP_HUB_IFACE_H

#include <uct/ib/sep/hub/sep_hub.h>

BEGIN_C_DECLS

/**
 * @file sep_hub_iface.h
 *
 * A worker's interface in category mpi_threads and its endpoints: the worker's
 * view of the hub (sep_hub.h).
 */

/** Where messages and completions are put. */
typedef struct uct_sep_hub_mail {
    ucs_queue_head_t messages; /**< uct_sep_hub_msg_t */
    ucs_queue_head_t done;     /**< uct_sep_hub_op_t */
    ucs_list_link_t  ready;    /**< Endpoints that may send again */
    ucs_list_link_t  failed;   /**< Endpoints whose users are to be told */
} uct_sep_hub_mail_t;


/** Interface. */
struct uct_sep_hub_iface {
    uct_base_iface_t     super;
    uct_sep_hub_t        *hub;
    uint16_t             index;       /**< In the hub */
    uint32_t             id;          /**< Random */

    /* Hub's lock */
    uct_sep_hub_mail_t   mail;
    int                  has_mail;    /**< Also read without the lock; read
                                           again under it when it matters */
    int                  is_armed;    /**< The worker may be asleep */
    int                  event_fd;    /**< Written to wake it, or -1 */

    /* The worker's thread */
    uct_sep_hub_mail_t   inbox;       /**< Mail that was taken, being handled */
    ucs_queue_head_t     old_messages; /**< Handled; returned to the core's pool
                                            when the lock is next taken */
    ucs_queue_head_t     old_ops;     /**< The same for the hub's pools */
    unsigned             num_old;     /**< In both */
    unsigned             num_ops;     /**< Outstanding operations */
    unsigned             num_pending; /**< Pending requests of all endpoints */
    unsigned             num_packed;  /**< Endpoints with a packed message */
    ucs_list_link_t      eps;
    ucs_mpool_t          pack_mp;     /**< Buffers for users' pack callbacks */
    uct_recv_desc_t      release;
    size_t               headroom;    /**< User's, in front of the data */
    uint8_t              keeps_descs; /**< Receive buffers have room for that,
                                           and the user's alignment */
    int                  epoll_fd;    /**< For the user, or -1 */
};


/** A message that was packed while there was room, but then there was none. */
typedef struct uct_sep_hub_packed {
    size_t     length;
    int        is_put;
    uint64_t   remote_addr;  /**< Of a put */
    uct_rkey_t rkey;
    uint8_t    am_id;        /**< Of an active message */
    unsigned   flags;
    uint64_t   route;        /**< In front of the data of an active message */
    char       data[];
} uct_sep_hub_packed_t;


/** Endpoint. */
struct uct_sep_hub_ep {
    uct_base_ep_t          super;
    uct_sep_hub_peer_t     *peer;     /**< Holds a reference */
    uint64_t               route;     /**< uct_sep_hub_route_t of the remote
                                           interface */
    uint16_t               mark;      /**< Send queue's index after the last
                                           operation posted here */
    uint8_t                is_dirty;  /**< There was one, and it may not be
                                           complete */
    uint8_t                is_failed; /**< Hub's lock */
    ucs_status_t           failure;   /**< Hub's lock */
    uint8_t                is_blocked; /**< There is, or was, something to be
                                            sent first: packed or pending;
                                            worker's thread */
    uint8_t                in_dispatch; /**< A pending request is being
                                             called */
    uct_sep_hub_packed_t   *packed;   /**< To be sent before all else */
    ucs_queue_head_t       pending;   /**< Requests; worker's thread */
    ucs_list_link_t        ops;       /**< uct_sep_hub_op_t; worker's thread */
    ucs_list_link_t        list;      /**< In the interface */
    ucs_list_link_t        peer_list; /**< In the peer; hub's lock */
    ucs_list_link_t        sched;     /**< In waiters of the peer, in ready of
                                           mail or inbox, or with itself */
    ucs_list_link_t        failed;    /**< In failed of mail or inbox, or with
                                           itself */
};


/** Open an interface of category mpi_threads; as uct_iface_open(). */
ucs_status_t uct_sep_hub_iface_open(uct_md_h md, uct_worker_h worker,
                                    const uct_iface_params_t *params,
                                    const uct_iface_config_t *config,
                                    uct_iface_h *iface_p);


/** Mail has arrived; wake the worker if it sleeps. Hub's lock. */
void uct_sep_hub_mail_notify(uct_sep_hub_iface_t *iface);


/** Give back what was handled. Hub's lock. */
void uct_sep_hub_mail_clean(uct_sep_hub_iface_t *iface);


/** Take the mail. Hub's lock. */
void uct_sep_hub_mail_take(uct_sep_hub_iface_t *iface);


/** Finish all completed operations in the inbox. */
unsigned uct_sep_hub_mail_finish_ops(uct_sep_hub_iface_t *iface);


/** Whether an endpoint has nothing outstanding. Hub's lock. */
int uct_sep_hub_ep_is_complete(uct_sep_hub_ep_t *ep);


/**
 * Send what was packed before.
 *
 * @return Whether there is nothing packed any more. Hub's lock.
 */
int uct_sep_hub_ep_send_packed(uct_sep_hub_ep_t *ep);


/**
 * Find out whether an operation may start on a blocked endpoint: what was
 * packed is sent first, and requests may be pending only if one of them is the
 * caller. Hub's lock.
 */
int uct_sep_hub_ep_unblock(uct_sep_hub_ep_t *ep);


/** Drop what was packed, because the endpoint has failed or is going away. */
void uct_sep_hub_ep_drop_packed(uct_sep_hub_ep_t *ep);


/** Call an endpoint's pending requests. Without the lock. */
unsigned uct_sep_hub_ep_dispatch(uct_sep_hub_ep_t *ep);


/** Operations of uct_iface_ops_t, in sep_hub_ep.c and sep_hub_ops.c. */
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
extern const uct_sep_ops_t uct_sep_hub_ops;


static UCS_F_ALWAYS_INLINE uct_sep_hub_iface_t *
uct_sep_hub_ep_iface(const uct_sep_hub_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_sep_hub_iface_t);
}


/** Something was posted: a flush waits for it. Hub's lock. */
static UCS_F_ALWAYS_INLINE void uct_sep_hub_ep_mark(uct_sep_hub_ep_t *ep)
{
    ep->mark     = ep->peer->ep->txwq->sw_pi;
    ep->is_dirty = 1;
}

END_C_DECLS

#endif
