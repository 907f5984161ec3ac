/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_VERBS_H
#define UCT_SEP_VERBS_H

#include <uct/ib/sep/iface/sep_api.h>

BEGIN_C_DECLS

/**
 * @file sep_verbs.h
 *
 * UCX_SEP_API=verbs and wr: data paths through libibverbs, which differ in how
 * they post (sep_verbs_req.inl). A send queue counts work requests, not basic
 * blocks, and knows no addresses; everything else is as with direct verbs. A
 * work request's identifier is the index behind it, a receive's the index of
 * its buffer.
 */

/**
 * Inline data and gather entries of a work request. The largest for which
 * libmlx5 reserves UCT_SEP_MAX_BB per work request: they follow 48 bytes for an
 * atomic, and a segment header of 4 (providers/mlx5/verbs.c,
 * mlx5_calc_send_wqe).
 */
#define UCT_SEP_VERBS_MAX_INLINE  (UCT_SEP_MAX_WQE - 48 - UCT_SEP_INL_LEN)
#define UCT_SEP_VERBS_MAX_SGE     ((UCT_SEP_MAX_WQE - 48) / UCT_SEP_DATA_LEN)

/** Marks the identifiers of receives. */
#define UCT_SEP_VERBS_WR_RECV     UCS_BIT(16)

/** Completions polled at a time, the limit of UCX_SEP_RX_MAX_POLL. */
#define UCT_SEP_VERBS_MAX_POLL    (UCT_SEP_CQ_HEADROOM / 4)


/** Completions that were polled but not handled yet. Kept in the interface
 *  because a callback may progress as well, and their order matters. */
struct uct_sep_verbs {
    unsigned      next;
    unsigned      count;
    uint32_t      num_polled; /* Of the queue with receives, handled or not */
    struct ibv_wc wc[2 * UCT_SEP_VERBS_MAX_POLL]; /* Of two queues */
};


/** What depends on UCX_SEP_API, of these two. */
extern const uct_sep_api_t uct_sep_api_verbs;
extern const uct_sep_api_t uct_sep_api_wr;


/** Tables of operations, one for each row of sep_ops.h. */
UCT_SEP_OPS_FOREACH_VERBS(UCT_SEP_OPS_DECLARE)


/** Shared receive queue through libibverbs. */
extern const uct_sep_srq_ops_t uct_sep_verbs_srq_ops;


/** Give a work request a new buffer, as @ref uct_sep_srq_replace. */
void uct_sep_verbs_srq_replace(uct_sep_srq_t *srq, uint16_t index);


/** Post what was appended. */
void uct_sep_verbs_srq_publish(uct_sep_srq_t *srq);


/**
 * Poll if everything polled before has been handled.
 *
 * @return Number of completions that can be handled.
 */
unsigned uct_sep_verbs_poll(uct_sep_iface_t *iface);


/** Handle completions; of uct_iface_ops_t. */
unsigned uct_sep_verbs_progress(uct_iface_h tl_iface);


/** Posting has failed although there were credits. */
void UCS_F_NORETURN uct_sep_verbs_post_failed(const uct_sep_iface_t *iface,
                                              const uct_sep_txwq_t *txwq,
                                              int error);

END_C_DECLS

#endif
