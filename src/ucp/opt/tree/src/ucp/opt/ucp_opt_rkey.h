/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_RKEY_H_
#define UCP_OPT_RKEY_H_

#include <ucp/core/ucp_types.h>
#include <ucs/datastruct/hlist.h>
#include <ucs/sys/compiler.h>
#include <uct/api/uct.h>

/*
 * A remote key that is ready for use: it holds the UCT endpoint, key, function
 * and limit of a small put, so that the operation looks up nothing. The key is
 * ready for the endpoint it was unpacked on, and the endpoint has a list of the
 * keys that are ready for it. Whatever changes the lanes of an endpoint calls
 * ucp_opt_ep_lanes_changed(), after which none of them is. The next operation
 * goes the general way, which resolves the key as ever, and makes it ready
 * again.
 */

/** Part of ucp_rkey_t. */
typedef struct ucp_opt_rkey {
    /** Endpoint the key is ready for; NULL: for none at the moment, and
     *  UCP_OPT_RKEY_NEVER: it will not be */
    ucp_ep_h                ep;
    size_t                  max_put;   /**< longest put in bytes, > 0 */
    uct_ep_h                put_ep;    /**< lane of the put */
    uct_ep_put_short_func_t put_short; /**< what the lane's transport has */
    uct_rkey_t              put_rkey;  /**< UCT key for the lane */
    ucs_hlist_link_t        list;      /**< in the endpoint's list if ready */
} ucp_opt_rkey_t;


/** Endpoint of keys for which the general way is the only one. */
#define UCP_OPT_RKEY_NEVER ((ucp_ep_h)-1)


/** A new key is not ready. */
static UCS_F_ALWAYS_INLINE void ucp_opt_rkey_init(ucp_opt_rkey_t *opt)
{
    opt->ep = NULL;
}

/**
 * Make a key ready if it and the endpoint's lanes allow that now. To be called
 * with the worker's lock held, if it has one.
 *
 * @param [in] ep    Endpoint the key was unpacked on.
 * @param [in] rkey  Key that is resolved for the endpoint's configuration.
 */
void ucp_opt_rkey_prepare(ucp_ep_h ep, ucp_rkey_h rkey);

/** Take a key that is going to be destroyed off its endpoint's list. */
void ucp_opt_rkey_forget(ucp_rkey_h rkey);

/** Whether the endpoint still has the lane that a key is ready for. */
int ucp_opt_rkey_is_current(ucp_rkey_h rkey);

/** The endpoint's lanes are going to change or have done so: no key is ready
 *  for it any more. Safe to be called from the asynchronous context. */
void ucp_opt_ep_lanes_changed(ucp_ep_h ep);

#endif
