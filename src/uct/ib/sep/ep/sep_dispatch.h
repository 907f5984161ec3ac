/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_DISPATCH_H
#define UCT_SEP_DISPATCH_H

#include <uct/ib/sep/iface/sep_iface.h>

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

END_C_DECLS

#endif
