/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_EAGER_MEM_H
#define UCT_SEP_EAGER_MEM_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_eager_mem.h
 *
 * Memory that peers write for the eager channel, which is all that they may do
 * with it: nobody reads it or changes it by atomics. It is strict, whatever
 * other memory has: a message's tail must come last.
 *
 * A ring has a key as long as a peer has the ring: whoever still writes after
 * it has given the ring back gets an error, and not into the next one's
 * messages. Counters have one key for all: to register four bytes for each
 * connection would take a page of translations each, and what is in a counter
 * is checked against what was used.
 */

/**
 * Allocate the rings, all of them with the first one.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY, without a message.
 */
ucs_status_t uct_sep_eager_mem_init_rings(uct_sep_iface_t *iface);


/**
 * Make the key of a ring.
 *
 * @return UCS_OK; UCS_ERR_NO_MEMORY or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_eager_mem_open_ring(uct_sep_iface_t *iface,
                                         uct_sep_eager_ring_t *ring);


/** Its peer can't write into it any more. */
void uct_sep_eager_mem_close_ring(uct_sep_iface_t *iface,
                                  uct_sep_eager_ring_t *ring);


/** @return Memory of a ring: slots as many and as large as configured. */
void *uct_sep_eager_mem_ring(const uct_sep_iface_t *iface,
                             const uct_sep_eager_ring_t *ring);


/** @return A counter that is in nobody's use, or NULL. It stays with its
 *          connection, to which late writes may be on their way. */
uint32_t *uct_sep_eager_mem_get_counter(uct_sep_iface_t *iface);


/** Release it. */
void uct_sep_eager_mem_put_counter(uct_sep_iface_t *iface,
                                   const uint32_t *counter);


/** @return Remote key of counters, if there is one. */
uint32_t uct_sep_eager_mem_counter_rkey(const uct_sep_iface_t *iface);


/** Release all. Rings have no keys any more. */
void uct_sep_eager_mem_cleanup(uct_sep_iface_t *iface);

END_C_DECLS

#endif
