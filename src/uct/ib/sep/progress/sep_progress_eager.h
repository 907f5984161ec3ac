/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PROGRESS_EAGER_H
#define UCT_SEP_PROGRESS_EAGER_H

#include <uct/ib/sep/eager/sep_eager.h>

BEGIN_C_DECLS

/**
 * @file sep_progress_eager.h
 *
 * Messages in the rings of the eager channel, and those by send/receive that
 * come in order with them.
 */

/** Progress while there are rings; of uct_iface_ops_t. Looks at the rings and,
 *  if they are empty, calls what is below. */
unsigned uct_sep_progress_eager(uct_iface_h tl_iface);


/**
 * A message with immediate data was received. It is handled at once, or once
 * those in the ring that were sent before it were.
 *
 * @param recv  Copied.
 */
void uct_sep_progress_eager_receive(uct_sep_iface_t *iface,
                                    const uct_sep_eager_recv_t *recv);

/** A control message without immediate data was received. It is handled in its
 *  turn, as uct_sep_progress_eager_receive() does.
 *
 *  @param length  With the header. */
void uct_sep_progress_eager_control(uct_sep_iface_t *iface, uint32_t qpn,
                                    const uct_sep_am_hdr_t *hdr,
                                    uint32_t length);

END_C_DECLS

#endif
