/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_OPS_H
#define UCT_SEP_HUB_OPS_H

#include <uct/ib/sep/hub/sep_hub_ep.h>

BEGIN_C_DECLS

/**
 * @file sep_hub_ops.h
 *
 * Data path of endpoints on a hub: the core's operations, with the hub's lock
 * around them. What was packed without the lock, and found no room when it was
 * taken, is kept here until there is some.
 */

/** A message that was packed while there was room, but then there was none. */
struct uct_sep_hub_packed {
    size_t     length;
    int        is_put;
    uint64_t   remote_addr;  /**< Of a put */
    uct_rkey_t rkey;
    uint8_t    am_id;        /**< Of an active message */
    unsigned   flags;
    uint64_t   route;        /**< In front of the data of an active message */
    char       data[];
};


/**
 * Send what was packed before.
 *
 * @return Whether there is nothing packed any more.
 */
int uct_sep_hub_ep_send_packed(uct_sep_hub_ep_t *ep)
        UCT_SEP_REQUIRES(uct_sep_hub_mutex);


/** Drop what was packed, because the endpoint has failed or is going away. */
void uct_sep_hub_ep_drop_packed(uct_sep_hub_ep_t *ep);


/** The operations. */
extern const uct_sep_ops_t uct_sep_hub_ops;

END_C_DECLS

#endif
