/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EAGER_ORDER_H
#define UCT_SEP_EAGER_ORDER_H

#include <uct/ib/sep/device/sep_order.h>
#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_eager_order.h
 *
 * Rings rest on the order in which an adapter places the bytes of a write: who
 * finds a tail takes what is in front of it. Whoever owns a ring asks about
 * that before it offers it, since it is its queue pair that places data. On
 * InfiniBand, either side looks at its service level, too: packets of one with
 * adaptive routing overtake each other.
 *
 *     data        EAGER=y                  EAGER=auto
 *     in order    slots as set             slots as set
 *     not known   slots of one packet      no rings
 *     not         no rings, a message      no rings
 *
 * A packet has an order: it is written to memory whole, or left to right
 * through a key without relaxed ordering.
 */

/**
 * Whether to offer a ring to a connection's peer. If not, or not as set, the
 * first answer of an interface is logged.
 *
 * @param [out] slot_size_p  Bytes of its slots.
 */
int uct_sep_eager_order_offers(uct_sep_iface_t *iface,
                               const uct_sep_txwq_t *txwq,
                               uint32_t *slot_size_p);


/** Whether to write into a peer's ring, which knows nothing of our service
 *  level. */
int uct_sep_eager_order_accepts(uct_sep_iface_t *iface);

END_C_DECLS

#endif
