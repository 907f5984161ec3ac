/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_DISPATCH_H
#define UCT_SEP_DISPATCH_H

#include <uct/ib/sep/ep/sep_ep_def.h>

BEGIN_C_DECLS

/**
 * @file sep_dispatch.h
 *
 * Who may send next: pending requests are called when there is room again, one
 * per endpoint in turn.
 */

/** Call pending requests that can be sent. */
void uct_sep_dispatch(uct_sep_iface_t *iface);


/** A queue has resources again that somebody waits for. */
void uct_sep_dispatch_wake(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq);


/** There may be credits of the completion queue again, although nothing waits
 *  for a send queue: whoever has waited for them goes on. */
void uct_sep_dispatch_unstall(uct_sep_iface_t *iface);


/** Have an endpoint's pending requests called when its turn comes. */
void uct_sep_dispatch_add(uct_sep_ep_t *ep);


/** Have that done by a completion of its send queue. */
void uct_sep_dispatch_wait(uct_sep_ep_t *ep);


/** Have neither done; the requests stay with the endpoint. */
void uct_sep_dispatch_remove(uct_sep_ep_t *ep);

END_C_DECLS

#endif
