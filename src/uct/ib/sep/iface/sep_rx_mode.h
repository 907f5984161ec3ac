/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_RX_MODE_H
#define UCT_SEP_RX_MODE_H

#include <uct/ib/sep/queue/sep_cq.h>

BEGIN_C_DECLS

/**
 * @file sep_rx_mode.h
 *
 * Where received messages are looked for. A short one can come with its
 * completion: one write of the device and one cache miss instead of two, and
 * the buffer stays as it is. Polling loops are compiled once per row of the
 * list here.
 */

/** Where short messages arrive. */
typedef enum {
    UCT_SEP_RX_MODE_BUF,   /**< In buffers, as all others */
    UCT_SEP_RX_MODE_CQE32, /**< In completions of 64 bytes, up to 32 */
    UCT_SEP_RX_MODE_CQE64, /**< In completions of 128 bytes, up to 64 */
    UCT_SEP_RX_MODE_LAST
} uct_sep_rx_mode_t;


/** All of them: name and mode. */
#define UCT_SEP_RX_MODE_FOREACH(_macro) \
    _macro(buf,   UCT_SEP_RX_MODE_BUF) \
    _macro(cqe32, UCT_SEP_RX_MODE_CQE32) \
    _macro(cqe64, UCT_SEP_RX_MODE_CQE64)


/** Longest data in a completion of a stride (PRM: cs_res, cs_req). */
#define UCT_SEP_CQE_MAX_DATA(_stride) ((_stride) * 32)


/** @return Size of completions, UCT_SEP_CQ_STRIDE_xx. */
static inline unsigned uct_sep_rx_mode_stride(uct_sep_rx_mode_t mode)
{
    return (mode == UCT_SEP_RX_MODE_CQE64) ? UCT_SEP_CQ_STRIDE_128 :
                                             UCT_SEP_CQ_STRIDE_64;
}

/** @return Bytes of a message that completions of these have room for. */
static inline size_t uct_sep_rx_mode_data(uct_sep_rx_mode_t mode)
{
    return UCT_SEP_CQE_MAX_DATA(uct_sep_rx_mode_stride(mode));
}

END_C_DECLS

#endif
