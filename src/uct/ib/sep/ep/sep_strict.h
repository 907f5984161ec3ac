/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_STRICT_H
#define UCT_SEP_STRICT_H

#include <uct/ib/sep/ep/sep_ep_def.h>

BEGIN_C_DECLS

/**
 * @file sep_strict.h
 *
 * Puts behind a fence, if the peer's memory may have relaxed ordering. A work
 * request that waits for those before it is not enough: a write through a
 * relaxed key may still overtake them on the peer's PCIe. So puts use the
 * strict key from the fence on, until at least one has done so, and all that
 * was posted before the fence has completed ("a completion still ensures that
 * all data is visible": ibv_reg_mr(3)). A flush of the interface does
 * what a fence does, as in UCX's own transports (uct_rc_iface_flush()).
 *
 * Other operations end it, too, when something from behind the fence has
 * completed. Several endpoints share a queue, so the first put after a fence
 * may be another's, and one strict put would not do. Atomics are always strict.
 * Active messages need nothing: they are found by their completion.
 *
 * Meanwhile operations find no credits, and puts come here.
 */

/** Puts of uct_iface_ops_t, on a queue with UCT_SEP_TXWQ_FLAG_STRICT. */
ucs_status_t uct_sep_strict_put_short(uct_ep_h tl_ep, const void *buffer,
                                      unsigned length, uint64_t remote_addr,
                                      uct_rkey_t rkey);
ssize_t uct_sep_strict_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                 void *arg, uint64_t remote_addr,
                                 uct_rkey_t rkey);
ucs_status_t uct_sep_strict_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                      size_t iovcnt, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp);

END_C_DECLS

#endif
