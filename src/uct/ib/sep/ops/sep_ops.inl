/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops.inl
 *
 * Operations of the data path: what all have in common here, then those of each
 * kind. Template: each function has an argument mode, which is a constant where
 * sep_ops_define.inl generates the functions of a row of sep_ops.h. Code that a
 * mode does not need is compiled out.
 *
 * The file with the work requests, whose functions are called uct_sep_wr_xx, is
 * included first: how a work request is made and posted. An operation reads:
 * credits, buffer, work request, what to do on completion.
 */

#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/ep/sep_strict.h>
#include <uct/ib/sep/iface/sep_bufs.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_op_done.h>
#include <uct/ib/sep/iface/sep_postlist.h>

#include <uct/base/uct_iov.inl>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>

#define UCT_SEP_EP_DECL(_tl_ep, _iface, _ep) \
    uct_sep_iface_t *_iface = ucs_derived_of((_tl_ep)->iface, \
                                             uct_sep_iface_t); \
    uct_sep_ep_t *_ep       = ucs_derived_of(_tl_ep, uct_sep_ep_t)

/** Whether an operation can start: neither is negative. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_has_credits(const uct_sep_iface_t *iface, const uct_sep_ep_t *ep)
{
    return (ep->txwq->credits | iface->tx.cq_credits) >= 0;
}

/** Whether it can, and need not ask for a completion. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_is_simple(const uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq)
{
    return (txwq->credits | txwq->unsignaled | iface->tx.cq_credits) >= 0;
}

/* _max after the limit that was set; looked at where parameters are checked */
#define UCT_SEP_MAX_SHORT(_iface, _max) \
    ucs_min((size_t)(_max), (_iface)->config.tx_max_inline)

/**
 * Return from the operation if nothing can be sent. Unconnected and failed
 * endpoints find out here, too.
 */
#define UCT_SEP_CHECK_CREDITS(_iface, _ep) \
    if (ucs_unlikely(!uct_sep_ops_has_credits(_iface, _ep))) { \
        ucs_status_t _status = uct_sep_ep_no_op_credits(_ep); \
        if (_status != UCS_OK) { \
            return _status; \
        } \
    }

/** Return from a put without credits; @a _strict is that put where fences need
 *  it. */
#define UCT_SEP_CHECK_PUT_CREDITS(_iface, _ep, _strict) \
    if (ucs_unlikely(!uct_sep_ops_has_credits(_iface, _ep))) { \
        ucs_status_t _status; \
        if ((_ep)->txwq->flags & UCT_SEP_TXWQ_FLAG_STRICT) { \
            return _strict; \
        } \
        _status = uct_sep_ep_no_credits(_ep); \
        if (_status != UCS_OK) { \
            return _status; \
        } \
    }

/** @return A descriptor of a list that has any. */
static UCS_F_ALWAYS_INLINE uct_sep_desc_t *
uct_sep_ops_pop_desc(uct_sep_op_list_t *list)
{
    return ucs_derived_of(uct_sep_op_list_pop(list), uct_sep_desc_t);
}

/** Get a descriptor, from a list or its pool, or return. */
#define UCT_SEP_GET_DESC(_iface, _list, _mp, _desc) \
    if (ucs_likely((_list)->head != NULL)) { \
        _desc = uct_sep_ops_pop_desc(_list); \
    } else { \
        _desc = uct_sep_bufs_get_desc(_iface, _mp); \
        if (UCS_PTR_IS_ERR(_desc)) { \
            return UCS_PTR_STATUS(_desc); \
        } \
    }

/** Make the local keys of a gather list, unless they exist, or return. */
#define UCT_SEP_CHECK_IOV(_iface, _iov, _iovcnt) \
    if (ucs_unlikely((_iface)->channel.own != NULL) && \
        (uct_sep_bufs_make_lkeys(_iface, _iov, _iovcnt) != UCS_OK)) { \
        return UCS_ERR_NO_MEMORY; \
    }

/** An operation for which somebody waits, or NULL. */
static UCS_F_ALWAYS_INLINE uct_sep_op_t *
uct_sep_ops_get_op(uct_sep_iface_t *iface, uct_sep_ep_t *ep,
                   uct_completion_t *comp)
{
    uct_sep_op_t *op = uct_sep_op_get(iface);

    if (ucs_likely(op != NULL)) {
        op->comp = comp;
        op->ep   = ep;
    }
    return op;
}

/** Finish an operation when the work request just posted completes. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ops_track(uct_sep_txwq_t *txwq, uct_sep_op_t *op,
                  uct_sep_op_handler_t handler)
{
    op->handler = handler;
    uct_sep_txwq_track(txwq, op);
}

/** Track an operation that only releases a descriptor, as its handler does
 *  already; see uct_sep_desc_t. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ops_track_release(uct_sep_txwq_t *txwq, uct_sep_desc_t *desc)
{
    uct_sep_txwq_track(txwq, &desc->super);
}

/** Operations that must not wait until others fill the list. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ops_end_list(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     unsigned mode)
{
    if (mode & UCT_SEP_OPS_LIST) {
        uct_sep_postlist_ring(iface, txwq);
    }
}

static UCS_F_ALWAYS_INLINE void
uct_sep_ops_post_empty(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, int remote,
                       uint8_t fm, unsigned mode)
{
    fm |= (fm & UCT_SEP_FM_SIGNALED) ? uct_sep_txwq_signal(txwq) :
                                       uct_sep_txwq_moderate(txwq);
    uct_sep_wr_empty(iface, txwq, remote, fm, mode);
    uct_sep_ops_end_list(iface, txwq, mode);
}

static UCS_F_ALWAYS_INLINE void
uct_sep_ops_post_header(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                        uct_sep_wr_am_t am, const void *body, size_t length,
                        unsigned mode)
{
    uct_iov_t iov = {
        .buffer = (void*)body,
        .length = length,
        .count  = 1
    };

    uct_sep_wr_send_short_iov(iface, txwq, am, &iov, 1, length,
                              uct_sep_txwq_moderate(txwq) |
                              UCT_SEP_FM_SOLICITED, mode);
    uct_sep_ops_end_list(iface, txwq, mode);
}

static UCS_F_ALWAYS_INLINE void
uct_sep_ops_post_write(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                       const void *buffer, size_t length, uint64_t remote_addr,
                       uct_rkey_t rkey, unsigned mode)
{
    uct_sep_wr_put(iface, txwq, buffer, length, remote_addr, rkey,
                   uct_sep_txwq_signal(txwq), mode);
    uct_sep_ops_end_list(iface, txwq, mode);
}

/* Post an empty signaled work request, so that a flush knows when it is done.
 * If the one before was the only one since the last signaled one, operations
 * are being flushed one at a time, and the next is signaled itself. If others
 * follow that one before the flush, the guess was wrong, at the cost of a
 * completion. */
static UCS_F_ALWAYS_INLINE void
uct_sep_ops_signal_flush(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                         unsigned mode)
{
    if (txwq->flags & UCT_SEP_TXWQ_FLAG_EXPECT) {
        uct_sep_txwq_clear_flags(txwq, UCT_SEP_TXWQ_FLAG_EXPECT);
        uct_sep_txwq_count_signaled(txwq);
    } else if (txwq->moderation - txwq->unsignaled == 1) {
        uct_sep_txwq_set_flags(txwq, UCT_SEP_TXWQ_FLAG_EXPECT);
        uct_sep_txwq_expect_flush(txwq);
    } else {
        uct_sep_txwq_count_signaled(txwq);
    }

    uct_sep_wr_empty(iface, txwq, 0, UCT_SEP_FM_SIGNALED, mode);
}

/* Unusual cases take the long way: requests pending, no credits, cancel. The
 * rest saves no registers, for which it gets no operation from the pool. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_flush(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp,
                     unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;

    if (ucs_unlikely(!ucs_queue_is_empty(&ep->pending))) {
        return uct_sep_ep_flush(tl_ep, flags, comp);
    }

    if (uct_sep_txwq_is_empty(txwq)) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL)) {
        return uct_sep_ep_flush(tl_ep, flags, comp);
    }

    if (txwq->unsignaled == txwq->moderation) {
        /* The last work request is signaled; was that for this flush? */
        if (txwq->flags & UCT_SEP_TXWQ_FLAG_EXPECT) {
            uct_sep_txwq_expect_flush(txwq);
        }
    } else if (txwq->unsignaled != UCT_SEP_TXWQ_EXPECT_FLUSH) {
        if (ucs_unlikely(!uct_sep_ops_has_credits(iface, ep))) {
            return uct_sep_ep_flush(tl_ep, flags, comp);
        }
        uct_sep_ops_signal_flush(iface, txwq, mode);
    }
    uct_sep_ops_end_list(iface, txwq, mode);

    if (comp == NULL) {
        UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
        return UCS_INPROGRESS;
    } else if (ucs_unlikely(iface->tx.free_ops.head == NULL)) {
        return uct_sep_ep_flush_track(ep, comp);
    }

    return uct_sep_ep_flush_add(ep, comp,
                                uct_sep_op_list_pop(&iface->tx.free_ops));
}

#include <uct/ib/sep/ops/sep_ops_rma.inl>
#include <uct/ib/sep/ops/sep_ops_am.inl>
#include <uct/ib/sep/ops/sep_ops_atomic.inl>
