/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_OPS_H
#define UCT_SEP_OPS_H

#include <uct/ib/sep/queue/sep_txwq.h>

#include <uct/api/uct.h>
#include <ucs/sys/math.h>

BEGIN_C_DECLS

/**
 * @file sep_ops.h
 *
 * Data paths: the operations that depend on how work requests are made and
 * posted. All come from one template, ops/sep_ops.inl, which is compiled once
 * per row of the lists here. To add one, add a row, from which the table of
 * operations and its declaration are generated, and choose it in
 * open/sep_select.c.
 */

typedef struct uct_sep_iface uct_sep_iface_t;


/** How an active message goes by send/receive. */
typedef struct uct_sep_wr_am {
    uint8_t  id;     /**< First byte of the message */
    uint8_t  is_imm; /**< With immediate data */
    uint32_t imm;
} uct_sep_wr_am_t;


/**
 * Mode of a data path: a uct_sep_tx_post_t in the lowest bits, and these. There
 * is a mode only for what a hot path must not pay if it does not need it. All
 * else is tested at run time: whether a worker has its own device context, with
 * keys of its own; who else rings a uUAR where other threads may.
 */
enum {
    UCT_SEP_OPS_SHARED = UCS_BIT(8),  /**< Other threads may ring the uUAR, at
                                           the same time or in turn */
    UCT_SEP_OPS_LIST   = UCS_BIT(9),  /**< Rings for lists of work requests */
    UCT_SEP_OPS_VERBS  = UCS_BIT(10), /**< Through libibverbs: ibv_post_send */
    UCT_SEP_OPS_WR     = UCS_BIT(11)  /**< ..., or ibv_wr_start to
                                           ibv_wr_complete */
};

/** How a mode rings. */
#define UCT_SEP_OPS_POST(_mode) ((uct_sep_tx_post_t)((_mode) & UCS_MASK(8)))


/** Data paths with direct verbs: name and mode. Doorbells and lists take what a
 *  shared uUAR needs with them. */
#define UCT_SEP_OPS_FOREACH_DV(_macro) \
    _macro(bf,          UCT_SEP_TX_POST_BF) \
    _macro(bf_shared,   UCT_SEP_TX_POST_BF | UCT_SEP_OPS_SHARED) \
    _macro(bf64,        UCT_SEP_TX_POST_BF64) \
    _macro(bf64_shared, UCT_SEP_TX_POST_BF64 | UCT_SEP_OPS_SHARED) \
    _macro(db,          UCT_SEP_TX_POST_DB | UCT_SEP_OPS_SHARED) \
    _macro(list,        UCT_SEP_OPS_LIST)

/** Data paths through libibverbs. */
#define UCT_SEP_OPS_FOREACH_VERBS(_macro) \
    _macro(verbs, UCT_SEP_OPS_VERBS) \
    _macro(wr,    UCT_SEP_OPS_VERBS | UCT_SEP_OPS_WR)


/** Operations of UCT's endpoints in a data path. */
#define UCT_SEP_OPS_FOREACH_EP(_macro, _arg) \
    _macro(_arg, put_short) \
    _macro(_arg, put_bcopy) \
    _macro(_arg, put_zcopy) \
    _macro(_arg, get_bcopy) \
    _macro(_arg, get_zcopy) \
    _macro(_arg, am_short) \
    _macro(_arg, am_short_iov) \
    _macro(_arg, am_bcopy) \
    _macro(_arg, am_zcopy) \
    _macro(_arg, atomic_cswap64) \
    _macro(_arg, atomic_cswap32) \
    _macro(_arg, atomic32_post) \
    _macro(_arg, atomic64_post) \
    _macro(_arg, atomic32_fetch) \
    _macro(_arg, atomic64_fetch) \
    _macro(_arg, flush)

#define UCT_SEP_OPS_FIELD(_arg, _op) \
    uct_ep_##_op##_func_t           ep_##_op;

/** Initialisers of these fields; _name: of a row, with "ops_", or "hub". */
#define UCT_SEP_OPS_INIT(_name, _op) \
    .ep_##_op = uct_sep_##_name##_ep_##_op,


/** The operations that depend on how work requests are posted. */
typedef struct uct_sep_ops {
    uint64_t                        cap_flags; /**< UCT_IFACE_FLAG_xx of them */
    size_t                          put_max_inl; /**< Bytes of a short put */
    size_t                          am_max_inl;  /**< Bytes of a short active
                                                      message and its headers */
    size_t                          rma_max_iov; /**< Entries of RDMA lists */
    uint64_t                        atomic32;  /**< Atomics of 32 bits that can
                                                    be posted */
    uint64_t                        atomic64;  /**< Atomics of 64 bits that can
                                                    be posted */
    UCT_SEP_OPS_FOREACH_EP(UCT_SEP_OPS_FIELD, )
    /** With the eager channel, whether there is a ring or not. */
    uct_ep_am_short_func_t          ep_am_short_eager;
    uct_ep_am_bcopy_func_t          ep_am_bcopy_eager;
    /** Post a work request without data: a NOP or, with @a remote, an RDMA
     *  write of no bytes. Does not check credits. */
    void                            (*post_empty)(uct_sep_iface_t *iface,
                                                  uct_sep_txwq_t *txwq,
                                                  int remote, uint8_t fm);
    /** Send an active message of the transport's own: a header, and a short
     *  body. Does not check credits. */
    void                            (*post_header)(uct_sep_iface_t *iface,
                                                   uct_sep_txwq_t *txwq,
                                                   uct_sep_wr_am_t am,
                                                   const void *body,
                                                   size_t length);
    /** Write a few bytes to remote memory, signaled. Does not check
     *  credits. */
    void                            (*post_write)(uct_sep_iface_t *iface,
                                                  uct_sep_txwq_t *txwq,
                                                  const void *buffer,
                                                  size_t length,
                                                  uint64_t remote_addr,
                                                  uct_rkey_t rkey);
} uct_sep_ops_t;


/** Declaration of a row's table, for the headers of the files that define
 *  it. */
#define UCT_SEP_OPS_DECLARE(_name, _mode) \
    extern const uct_sep_ops_t uct_sep_ops_##_name;

END_C_DECLS

#endif
