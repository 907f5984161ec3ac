/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EP_DEF_H
#define UCT_SEP_EP_DEF_H

#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_iface.h>
#include <uct/ib/sep/port/sep_addr_def.h>
#include <ucs/datastruct/queue_types.h>

BEGIN_C_DECLS

/**
 * @file sep_ep_def.h
 *
 * UCT endpoint. All endpoints of an interface to the same remote interface use
 * one connection. Posting looks only at the send queue that an endpoint points
 * to; endpoints without a connection, and those that have failed, point to one
 * that never has credits.
 *
 * Of most peers of a large job nothing is ever wanted. So an endpoint has only
 * the address at first, in the place of what it needs for a connection. It gets
 * that with its first operation, or when the peer connects.
 */

typedef struct uct_sep_link uct_sep_link_t;


/** Flags of @ref uct_sep_ep_t. */
enum {
    /** The user was told about an error; nothing can be sent any more. */
    UCT_SEP_EP_FLAG_FAILED     = 1 << 0,
    /** Something was to be sent, and waits for the connection. */
    UCT_SEP_EP_FLAG_CONNECTING = 1 << 1,
    /** There is no link yet, only the peer's address. */
    UCT_SEP_EP_FLAG_NO_LINK    = 1 << 2
};


/** Endpoint. */
struct uct_sep_ep {
    uct_base_ep_t    super;
    uct_sep_txwq_t   *txwq;   /**< Send queue in use */
    ucs_queue_head_t pending; /**< Pending requests, in order */
    union {
        struct {
            uct_sep_link_t  *link; /**< Connection; holds a reference */
            ucs_list_link_t list;  /**< In uct_sep_link_t, or with itself */
            uint8_t         rest[sizeof(uct_sep_peer_addr_t) - sizeof(void*) -
                                 sizeof(ucs_list_link_t)]; /**< Of peer */
            uint8_t         flags; /**< UCT_SEP_EP_FLAG_xx; valid always */
        };
        uct_sep_peer_addr_t peer;  /**< With NO_LINK; the connection manager
                                        knows it by this */
    };
    ucs_list_link_t  sched;   /**< In waiting of the send queue, in sched of the
                                   interface, or with itself */
};


static inline uct_sep_iface_t *uct_sep_ep_iface(const uct_sep_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_sep_iface_t);
}


/** @return Whether there is room for a work request. */
static inline int uct_sep_ep_can_post(const uct_sep_ep_t *ep)
{
    return uct_sep_txwq_has_credits(ep->txwq) &&
           (uct_sep_ep_iface(ep)->tx.cq_credits >= 0);
}


/** @return Whether any operation, including an active message, would find
 *          resources. */
static inline int uct_sep_ep_can_send(const uct_sep_ep_t *ep)
{
    return uct_sep_ep_can_post(ep) && !uct_sep_fc_is_blocked(ep->txwq);
}

END_C_DECLS

#endif
