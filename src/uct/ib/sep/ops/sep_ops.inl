/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops.inl
 *
 * Operations of the data path. Template: each function has an argument mode,
 * which is a constant where sep_ops_define.inl generates the functions of a row
 * of sep_ops.h. Code that a mode does not need is compiled out.
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


/** Whether an active message can go into a ring, and need not ask for a
 *  completion. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_is_simple_ring(const uct_sep_iface_t *iface,
                           const uct_sep_txwq_t *txwq)
{
    return (txwq->credits | txwq->unsignaled | txwq->ring.left |
            iface->tx.cq_credits) >= 0;
}


/** Whether an active message can start, and needs nothing of flow control. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_has_am_credits(const uct_sep_iface_t *iface, const uct_sep_ep_t *ep)
{
    return (ep->txwq->credits | ep->txwq->fc.left | iface->tx.cq_credits) >= 0;
}


/** Whether it can, and need not ask for a completion. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_is_simple_am(const uct_sep_iface_t *iface,
                         const uct_sep_txwq_t *txwq)
{
    return (txwq->credits | txwq->unsignaled | txwq->fc.left |
            iface->tx.cq_credits) >= 0;
}


/* Longest short active message, with its header */
#define UCT_SEP_AM_MAX_SHORT \
    (UCT_SEP_WR_AM_MAX_INL - sizeof(uct_sep_am_hdr_t))

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


/** Return from an active message without credits, or without a window. */
#define UCT_SEP_CHECK_AM_CREDITS(_iface, _ep) \
    if (ucs_unlikely(!uct_sep_ops_has_am_credits(_iface, _ep))) { \
        ucs_status_t _status = uct_sep_ep_no_am_credits(_ep); \
        if (_status != UCS_OK) { \
            return _status; \
        } \
    }


/** Get a descriptor, from a list or its pool, or return. */
#define UCT_SEP_GET_DESC(_iface, _list, _mp, _desc) \
    if (ucs_likely((_list)->head != NULL)) { \
        _desc = ucs_derived_of(uct_sep_op_list_pop(_list), uct_sep_desc_t); \
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


/** How the next active message that goes by send/receive does so. */
static UCS_F_ALWAYS_INLINE uct_sep_wr_am_t
uct_sep_ops_take_am(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint8_t id)
{
    uint8_t bits       = uct_sep_fc_take(iface, txwq);
    uct_sep_wr_am_t am = {.id = id | bits};

    if (ucs_unlikely(txwq->fc.flags & UCT_SEP_FC_FLAG_RING)) {
        am.id     = id | UCT_SEP_AM_RING;
        am.is_imm = 1;
        am.imm    = uct_sep_eager_take_send(iface, txwq, bits);
    }
    return am;
}


/** Whether there are credits for a message into a ring, whose memory is always
 *  strict: it need not care for uct_sep_txwq_set_strict(). */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_has_ring_credits(const uct_sep_iface_t *iface,
                             const uct_sep_txwq_t *txwq)
{
    int32_t credits = (txwq->flags & UCT_SEP_TXWQ_FLAG_FENCE) ?
                      txwq->credits : uct_sep_txwq_credits(txwq);

    return (credits | iface->tx.cq_credits) >= 0;
}


/** Whether a message of @a length bytes can go into a ring: there is a free
 *  slot of that size, and nothing else that it would have to wait for. What
 *  comes back while others wait for a grant is not for those behind them. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_has_slot(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     size_t length)
{
    return ucs_unlikely(uct_sep_ring_tx_is_open(&txwq->ring)) &&
           (length <= txwq->ring.max_length) &&
           ((txwq->ring.left >= 0) ||
            (!uct_sep_fc_is_blocked(txwq) &&
             uct_sep_eager_refresh(iface, txwq))) &&
           uct_sep_ops_has_ring_credits(iface, txwq);
}


/** Send a short message by the ring if it fits. */
static UCS_F_ALWAYS_INLINE int
uct_sep_ops_ring_short(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint8_t id,
                       const uct_iov_t *iov, size_t iovcnt, size_t length,
                       unsigned mode)
{
    uint32_t room = uct_sep_ring_room(length);
    uct_sep_ring_tail_t tail;

    if ((room > UCT_SEP_WR_PUT_MAX_INL) ||
        !uct_sep_ops_has_slot(iface, txwq, length)) {
        return 0;
    }

    tail = uct_sep_ring_tx_tail(&txwq->ring, id, length);
    uct_sep_wr_ring_iov(iface, txwq, iov, iovcnt, length, room, tail,
                        uct_sep_txwq_moderate(txwq), mode);
    uct_sep_ring_tx_advance(&txwq->ring);
    return 1;
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
 * rest saves no registers. */
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

    if (comp != NULL) {
        return uct_sep_ep_flush_track(ep, comp);
    }

    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}

/*
 * Put
 */

/* Without credits, of no or of many bytes */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_put_short_any(uct_ep_h tl_ep, const void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq;

    UCT_SEP_CHECK_PUT_CREDITS(iface, ep,
                              uct_sep_strict_put_short(tl_ep, buffer, length,
                                                       remote_addr, rkey));

    txwq = ep->txwq;
    uct_sep_wr_put(iface, txwq, buffer, length, remote_addr, rkey,
                   uct_sep_txwq_moderate(txwq), mode);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}

/* Signaled, as is often the case if every put is flushed */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_put_short_slow(uct_ep_h tl_ep, const void *buffer, unsigned length,
                           uint64_t remote_addr, uct_rkey_t rkey,
                           uct_ep_put_short_func_t any, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;

    if (((length - 1) >= UCT_SEP_WR_PUT_SMALL) ||
        ucs_unlikely(!uct_sep_ops_has_credits(iface, ep))) {
        return any(tl_ep, buffer, length, remote_addr, rkey);
    }

    uct_sep_txwq_precount_signaled(txwq); /* less this one */
    uct_sep_wr_put_small(iface, txwq, buffer, length, remote_addr, rkey,
                         UCT_SEP_FM_SIGNALED, mode);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}

/* The slow path has the same arguments, so nothing has to be saved for it: a
 * tail call */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length,
                         uint64_t remote_addr, uct_rkey_t rkey,
                         uct_ep_put_short_func_t slow, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;

    UCT_CHECK_LENGTH(length, 0,
                     UCT_SEP_MAX_SHORT(iface, UCT_SEP_WR_PUT_MAX_INL),
                     "put_short");

    if (ucs_unlikely(((length - 1) >= UCT_SEP_WR_PUT_SMALL) ||
                     !uct_sep_ops_is_simple(iface, txwq))) {
        return slow(tl_ep, buffer, length, remote_addr, rkey);
    }

    uct_sep_wr_put_small(iface, txwq, buffer, length, remote_addr, rkey, 0,
                         mode);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}

/* Copies are made before it is looked at whether the work request has to be
 * signaled: the user's function comes in between, and what is known before it
 * has to be kept across it. The usual functions keep it in the descriptor,
 * rather than save registers for it, and take what they need of the interface
 * before. */
static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_put_bcopy_any(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                          void *arg, uint64_t remote_addr, uct_rkey_t rkey,
                          unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq;
    uct_sep_desc_t *desc;
    size_t length;

    UCT_SEP_CHECK_PUT_CREDITS(iface, ep,
                              uct_sep_strict_put_bcopy(tl_ep, pack_cb, arg,
                                                       remote_addr, rkey));
    UCT_SEP_GET_DESC(iface, &iface->tx.free_descs, &iface->tx.desc_mp, desc);

    length = pack_cb(uct_sep_desc_buffer(desc), arg);
    txwq   = ep->txwq;
    uct_sep_wr_rdma(iface, txwq, MLX5_OPCODE_RDMA_WRITE, desc, length,
                    remote_addr, rkey, uct_sep_txwq_moderate(txwq), mode);
    uct_sep_ops_track_release(txwq, desc);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}

/* Not signaled, of some bytes, with credits and a descriptor at hand */
static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb, void *arg,
                         uint64_t remote_addr, uct_rkey_t rkey,
                         uct_ep_put_bcopy_func_t any, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_desc_t *desc;
    size_t length;

    if (ucs_unlikely(!uct_sep_ops_is_simple(iface, txwq)) ||
        ucs_unlikely(iface->tx.free_descs.head == NULL)) {
        return any(tl_ep, pack_cb, arg, remote_addr, rkey);
    }

    desc = ucs_derived_of(uct_sep_op_list_pop(&iface->tx.free_descs),
                          uct_sep_desc_t);
    desc->super.txwq = txwq;
    uct_sep_desc_set_target(desc, remote_addr, rkey);
    uct_sep_wr_reserve(iface);

    length = pack_cb(uct_sep_desc_buffer(desc), arg);

    txwq = desc->super.txwq;
    uct_sep_wr_put_copy(iface, txwq, desc, length, mode);
    uct_sep_txwq_push(txwq, &desc->super);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}

/* An operation for which somebody waits */
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

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_rdma_zcopy(uct_sep_iface_t *iface, uct_sep_ep_t *ep,
                       unsigned opcode, const uct_iov_t *iov, size_t iovcnt,
                       uint64_t remote_addr, uct_rkey_t rkey,
                       uct_completion_t *comp, int always_signal, unsigned mode)
{
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_op_t *op     = NULL;
    uint8_t fm;

    if (comp != NULL) {
        op = uct_sep_ops_get_op(iface, ep, comp);
        if (ucs_unlikely(op == NULL)) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    fm = ((comp != NULL) || always_signal) ? uct_sep_txwq_signal(txwq) :
                                             uct_sep_txwq_moderate(txwq);
    uct_sep_wr_rdma_iov(iface, txwq, opcode, iov, iovcnt, remote_addr, rkey,
                        fm, mode);

    if (op != NULL) {
        uct_sep_ops_track(txwq, op, uct_sep_op_complete);
    }
    return UCS_INPROGRESS;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt,
                         uint64_t remote_addr, uct_rkey_t rkey,
                         uct_completion_t *comp, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);

    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_SEP_WR_RMA_MAX_IOV, "put_zcopy");
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0, UCT_SEP_MAX_MSG,
                     "put_zcopy");
    UCT_SEP_CHECK_PUT_CREDITS(iface, ep,
                              uct_sep_strict_put_zcopy(tl_ep, iov, iovcnt,
                                                       remote_addr, rkey,
                                                       comp));
    UCT_SEP_CHECK_IOV(iface, iov, iovcnt);

    UCT_TL_EP_STAT_OP(&ep->super, PUT, ZCOPY,
                      uct_iov_total_length(iov, iovcnt));
    return uct_sep_ops_rdma_zcopy(iface, ep, MLX5_OPCODE_RDMA_WRITE, iov,
                                  iovcnt, remote_addr, rkey, comp, 0, mode);
}

/*
 * Get
 */

/* There are credits and a descriptor */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_get_bcopy_post(uct_sep_iface_t *iface, uct_sep_ep_t *ep,
                           uct_unpack_callback_t unpack_cb, void *arg,
                           size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                           uct_completion_t *comp, uct_sep_desc_t *desc,
                           unsigned mode)
{
    uct_sep_txwq_t *txwq = ep->txwq;

    desc->super.comp      = comp;
    desc->super.ep        = ep;
    desc->super.length    = length;
    desc->super.unpack_cb = unpack_cb;
    desc->super.arg       = arg;
    uct_sep_wr_rdma(iface, txwq, MLX5_OPCODE_RDMA_READ, desc, length,
                    remote_addr, rkey, uct_sep_txwq_signal(txwq), mode);
    uct_sep_ops_track(txwq, &desc->super, uct_sep_op_complete_get_bcopy);
    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    return UCS_INPROGRESS;
}

/* Without credits or a descriptor at hand */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_get_bcopy_any(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                          void *arg, size_t length, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t *comp,
                          unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_desc_t *desc;

    UCT_SEP_CHECK_CREDITS(iface, ep);
    UCT_SEP_GET_DESC(iface, &iface->tx.free_descs, &iface->tx.desc_mp, desc);
    return uct_sep_ops_get_bcopy_post(iface, ep, unpack_cb, arg, length,
                                      remote_addr, rkey, comp, desc, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                         void *arg, size_t length, uint64_t remote_addr,
                         uct_rkey_t rkey, uct_completion_t *comp,
                         uct_ep_get_bcopy_func_t any, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);

    UCT_CHECK_LENGTH(length, 0, iface->config.seg_size, "get_bcopy");
    if (ucs_unlikely(!uct_sep_ops_has_credits(iface, ep)) ||
        ucs_unlikely(iface->tx.free_descs.head == NULL)) {
        return any(tl_ep, unpack_cb, arg, length, remote_addr, rkey, comp);
    }

    return uct_sep_ops_get_bcopy_post(iface, ep, unpack_cb, arg, length,
                                      remote_addr, rkey, comp,
                                      ucs_derived_of(
                                              uct_sep_op_list_pop(
                                                      &iface->tx.free_descs),
                                              uct_sep_desc_t), mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt,
                         uint64_t remote_addr, uct_rkey_t rkey,
                         uct_completion_t *comp, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);

    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_SEP_WR_RMA_MAX_IOV, "get_zcopy");
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt),
                     uct_sep_iface_min_get_zcopy(iface),
                     iface->config.max_get_zcopy, "get_zcopy");
    UCT_SEP_CHECK_CREDITS(iface, ep);
    UCT_SEP_CHECK_IOV(iface, iov, iovcnt);

    UCT_TL_EP_STAT_OP(&ep->super, GET, ZCOPY,
                      uct_iov_total_length(iov, iovcnt));
    return uct_sep_ops_rdma_zcopy(iface, ep, MLX5_OPCODE_RDMA_READ, iov, iovcnt,
                                  remote_addr, rkey, comp, 1, mode);
}

/*
 * Active messages
 */

/* There is a ring */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_am_short_ring(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                          const void *payload, unsigned length, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    size_t total         = sizeof(header) + length;
    uint32_t room        = uct_sep_ring_room(total);
    uct_sep_ring_tail_t tail;

    if ((room <= UCT_SEP_WR_PUT_MAX_INL) &&
        uct_sep_ops_has_slot(iface, txwq, total)) {
        tail = uct_sep_ring_tx_tail(&txwq->ring, id, total);
        uct_sep_wr_ring_short(iface, txwq, header, payload, length, room, tail,
                              uct_sep_txwq_moderate(txwq), mode);
        uct_sep_ring_tx_advance(&txwq->ring);
        UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, total);
        return UCS_OK;
    }

    UCT_SEP_CHECK_AM_CREDITS(iface, ep);

    txwq = ep->txwq;
    uct_sep_wr_send_short(iface, txwq, uct_sep_ops_take_am(iface, txwq, id),
                          header, payload, length,
                          uct_sep_txwq_moderate(txwq) | UCT_SEP_FM_SOLICITED,
                          mode);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}

/* Without credits, signaled, or of many bytes */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_am_short_slow(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                          const void *payload, unsigned length,
                          uct_ep_am_short_func_t ring, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_wr_am_t am   = {};

    if (ucs_unlikely(uct_sep_ring_tx_is_open(&txwq->ring))) {
        return ring(tl_ep, id, header, payload, length);
    }

    UCT_SEP_CHECK_AM_CREDITS(iface, ep);

    txwq  = ep->txwq;
    am.id = id | uct_sep_fc_take(iface, txwq);
    uct_sep_wr_send_short(iface, txwq, am, header, payload, length,
                          uct_sep_txwq_moderate(txwq) | UCT_SEP_FM_SOLICITED,
                          mode);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                        const void *payload, unsigned length,
                        uct_ep_am_short_func_t slow, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(sizeof(header) + length, 0,
                     UCT_SEP_MAX_SHORT(iface, UCT_SEP_AM_MAX_SHORT),
                     "am_short");

    if (ucs_unlikely((length > UCT_SEP_WR_AM_SMALL) ||
                     !uct_sep_ops_is_simple_am(iface, txwq))) {
        return slow(tl_ep, id, header, payload, length);
    }

    uct_sep_fc_count(txwq);
    uct_sep_wr_send_short_small(iface, txwq, id, header, payload, length,
                                UCT_SEP_FM_SOLICITED, mode);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}

/* With the eager channel: into the ring if that is simple */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_am_short_eager(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                              const void *payload, unsigned length,
                              uct_ep_am_short_func_t plain, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_ring_tail_t tail;

    if (ucs_unlikely((length > UCT_SEP_WR_RING_SMALL) ||
                     !uct_sep_ops_is_simple_ring(iface, txwq))) {
        return plain(tl_ep, id, header, payload, length);
    }

    UCT_CHECK_AM_ID(id);
    tail = uct_sep_ring_tx_tail(&txwq->ring, id, sizeof(header) + length);

    /* Two words in any case; of a header without payload, the first one is not
     * part of the message */
    uct_sep_wr_ring_small(iface, txwq, header, (length == 0) ? header :
                          uct_sep_load_upto8(payload, length), tail, mode);
    uct_sep_ring_tx_advance(&txwq->ring);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t *iov,
                            size_t iovcnt, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_iov_total_length(iov, iovcnt);
    uct_sep_txwq_t *txwq;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length, 0,
                     UCT_SEP_MAX_SHORT(iface, UCT_SEP_AM_MAX_SHORT),
                     "am_short_iov");
    if (ucs_unlikely(uct_sep_ops_ring_short(iface, ep->txwq, id, iov, iovcnt,
                                            length, mode))) {
        UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
        return UCS_OK;
    }

    UCT_SEP_CHECK_AM_CREDITS(iface, ep);

    txwq = ep->txwq;
    uct_sep_wr_send_short_iov(iface, txwq, uct_sep_ops_take_am(iface, txwq, id),
                              iov, iovcnt, length,
                              uct_sep_txwq_moderate(txwq) |
                              UCT_SEP_FM_SOLICITED, mode);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
    return UCS_OK;
}

/* Send a copy by the ring; it fits */
static UCS_F_ALWAYS_INLINE void
uct_sep_ops_ring_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, uint8_t id,
                      uct_sep_desc_t *desc, size_t length, uint8_t fm,
                      unsigned mode)
{
    uint32_t room  = uct_sep_ring_room(length);
    uct_sep_ring_tail_t tail = uct_sep_ring_tx_tail(&txwq->ring, id, length);
    void *tail_p   = UCS_PTR_BYTE_OFFSET(uct_sep_desc_buffer(desc),
                                         sizeof(uct_sep_am_hdr_t) + room -
                                         sizeof(tail));

    memcpy(tail_p, &tail, sizeof(tail));
    uct_sep_wr_ring_copy(iface, txwq, desc, room, fm, mode);
    uct_sep_ring_tx_advance(&txwq->ring);
}

static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_am_bcopy_any(uct_ep_h tl_ep, uint8_t id,
                         uct_pack_callback_t pack_cb, void *arg,
                         unsigned flags, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_am_hdr_t *hdr;
    uct_sep_txwq_t *txwq;
    uct_sep_desc_t *desc;
    uct_sep_wr_am_t am;
    size_t length;

    UCT_SEP_CHECK_AM_CREDITS(iface, ep);
    UCT_SEP_GET_DESC(iface, &iface->tx.free_descs, &iface->tx.desc_mp, desc);

    hdr    = uct_sep_desc_buffer(desc);
    length = pack_cb(hdr + 1, arg);
    txwq   = ep->txwq;
    if (uct_sep_ops_has_slot(iface, txwq, length)) {
        uct_sep_ops_ring_copy(iface, txwq, id, desc, length,
                              uct_sep_txwq_moderate(txwq), mode);
    } else {
        am         = uct_sep_ops_take_am(iface, txwq, id);
        hdr->am_id = am.id;
        uct_sep_wr_send(iface, txwq, am, desc, sizeof(*hdr) + length,
                        uct_sep_txwq_moderate(txwq) | UCT_SEP_FM_SOLICITED,
                        mode);
    }
    uct_sep_ops_track_release(txwq, desc);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}

/* Not signaled, without flow control, with credits and a descriptor at hand */
static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack_cb,
                        void *arg, unsigned flags, uct_ep_am_bcopy_func_t any,
                        unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_am_hdr_t *hdr;
    uct_sep_desc_t *desc;
    size_t length;

    UCT_CHECK_AM_ID(id);
    if (ucs_unlikely(!uct_sep_ops_is_simple_am(iface, txwq)) ||
        ucs_unlikely(iface->tx.free_descs.head == NULL)) {
        return any(tl_ep, id, pack_cb, arg, flags);
    }

    desc = ucs_derived_of(uct_sep_op_list_pop(&iface->tx.free_descs),
                          uct_sep_desc_t);
    desc->super.txwq = txwq;
    uct_sep_wr_reserve(iface);

    hdr        = uct_sep_desc_buffer(desc);
    hdr->am_id = id;
    length     = pack_cb(hdr + 1, arg);

    txwq = desc->super.txwq;
    uct_sep_fc_count(txwq);
    uct_sep_wr_send_copy(iface, txwq, desc, sizeof(*hdr) + length, mode);
    uct_sep_txwq_push(txwq, &desc->super);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}

/* Sends a copy that has turned out to be too long for a slot */
typedef ssize_t (*uct_sep_ops_am_bcopy_sent_func_t)(uct_ep_h tl_ep,
                                                    uct_sep_desc_t *desc,
                                                    uint8_t id, size_t length);

static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_am_bcopy_sent(uct_ep_h tl_ep, uct_sep_desc_t *desc, uint8_t id,
                          size_t length, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, UCS_V_UNUSED ep);
    uct_sep_txwq_t *txwq  = desc->super.txwq;
    uct_sep_am_hdr_t *hdr = uct_sep_desc_buffer(desc);
    uct_sep_wr_am_t am    = uct_sep_ops_take_am(iface, txwq, id);

    /* Was reserved, and is taken below */
    uct_sep_iface_add_cq_credits(iface, 1);
    hdr->am_id = am.id;
    uct_sep_wr_send(iface, txwq, am, desc, sizeof(*hdr) + length,
                    uct_sep_txwq_moderate(txwq) | UCT_SEP_FM_SOLICITED, mode);
    uct_sep_ops_track_release(txwq, desc);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}

/* With the eager channel: into the ring if that is simple, and the copy is not
 * too long, which is known afterwards */
static UCS_F_ALWAYS_INLINE ssize_t
uct_sep_ops_ep_am_bcopy_eager(uct_ep_h tl_ep, uint8_t id,
                              uct_pack_callback_t pack_cb, void *arg,
                              unsigned flags, uct_ep_am_bcopy_func_t plain,
                              uct_sep_ops_am_bcopy_sent_func_t sent,
                              unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_txwq_t *txwq = ep->txwq;
    uct_sep_desc_t *desc;
    uint32_t room;
    uct_sep_ring_tail_t tail;
    size_t length;

    UCT_CHECK_AM_ID(id);
    if (ucs_unlikely(!uct_sep_ops_is_simple_ring(iface, txwq)) ||
        ucs_unlikely(uct_sep_fc_is_blocked(txwq)) ||
        ucs_unlikely(iface->tx.free_descs.head == NULL)) {
        return plain(tl_ep, id, pack_cb, arg, flags);
    }

    desc = ucs_derived_of(uct_sep_op_list_pop(&iface->tx.free_descs),
                          uct_sep_desc_t);
    desc->super.txwq       = txwq;
    desc->super.raddr.rkey = id; /* Until it is used */
    uct_sep_wr_reserve(iface);

    length = pack_cb(UCS_PTR_BYTE_OFFSET(uct_sep_desc_buffer(desc),
                                         sizeof(uct_sep_am_hdr_t)), arg);

    txwq = desc->super.txwq;
    id   = desc->super.raddr.rkey;
    if (ucs_unlikely(length > txwq->ring.max_length)) {
        return sent(tl_ep, desc, id, length);
    }

    room = uct_sep_ring_room(length);
    tail = uct_sep_ring_tx_tail(&txwq->ring, id, length);
    memcpy(UCS_PTR_BYTE_OFFSET(uct_sep_desc_buffer(desc),
                               sizeof(uct_sep_am_hdr_t) + room - sizeof(tail)),
           &tail, sizeof(tail));
    uct_sep_wr_ring_copy_small(iface, txwq, desc, room, mode);
    uct_sep_ring_tx_advance(&txwq->ring);
    uct_sep_txwq_push(txwq, &desc->super);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header,
                        unsigned header_length, const uct_iov_t *iov,
                        size_t iovcnt, unsigned flags, uct_completion_t *comp,
                        unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_op_t *op = NULL;
    uct_sep_txwq_t *txwq;
    uct_sep_desc_t *desc;
    uct_sep_wr_am_t am;
    uint8_t fm;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)UCT_SEP_AM_MAX_IOV, "am_zcopy");
    UCT_CHECK_LENGTH(header_length, 0, UCT_SEP_AM_ZCOPY_MAX_HDR,
                     "am_zcopy header");
    UCT_CHECK_LENGTH(header_length + uct_iov_total_length(iov, iovcnt), 0,
                     iface->config.seg_size - sizeof(uct_sep_am_hdr_t),
                     "am_zcopy");
    UCT_SEP_CHECK_AM_CREDITS(iface, ep);
    UCT_SEP_CHECK_IOV(iface, iov, iovcnt);

    if (UCT_SEP_WR_COPIES_HEADER) {
        UCT_SEP_GET_DESC(iface, &iface->tx.free_descs, &iface->tx.desc_mp,
                         desc);
        op       = &desc->super;
        op->comp = comp;
        op->ep   = ep;
    } else if (comp != NULL) {
        op = uct_sep_ops_get_op(iface, ep, comp);
        if (ucs_unlikely(op == NULL)) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    txwq = ep->txwq;
    am   = uct_sep_ops_take_am(iface, txwq, id);
    fm   = UCT_SEP_FM_SOLICITED |
           ((comp != NULL) ? uct_sep_txwq_signal(txwq) :
                             uct_sep_txwq_moderate(txwq));
    uct_sep_wr_send_iov(iface, txwq, op, am, header, header_length, iov, iovcnt,
                        fm, mode);
    if (op != NULL) {
        uct_sep_ops_track(txwq, op, UCT_SEP_WR_COPIES_HEADER ?
                                    uct_sep_op_complete_desc :
                                    uct_sep_op_complete);
    }
    UCT_TL_EP_STAT_OP(&ep->super, AM, ZCOPY,
                      header_length + uct_iov_total_length(iov, iovcnt));
    return UCS_INPROGRESS;
}

#include <uct/ib/sep/ops/sep_ops_atomic.inl>
