/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops_am.inl
 *
 * Active messages, part of the template sep_ops.inl: by send/receive, or into a
 * ring of the peer's. sep_eager.h says when there is one.
 */

/* Longest short active message, with its header */
#define UCT_SEP_AM_MAX_SHORT \
    (UCT_SEP_WR_AM_MAX_INL - sizeof(uct_sep_am_hdr_t))

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

/** Return from an active message without credits, or without a window. */
#define UCT_SEP_CHECK_AM_CREDITS(_iface, _ep) \
    if (ucs_unlikely(!uct_sep_ops_has_am_credits(_iface, _ep))) { \
        ucs_status_t _status = uct_sep_ep_no_am_credits(_ep); \
        if (_status != UCS_OK) { \
            return _status; \
        } \
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

/* Put the tail behind a copy that fits into a slot of the ring; returns the
 * room that both take */
static UCS_F_ALWAYS_INLINE uint32_t
uct_sep_ops_add_tail(uct_sep_txwq_t *txwq, uint8_t id, uct_sep_desc_t *desc,
                     size_t length)
{
    uint32_t room            = uct_sep_ring_room(length);
    uct_sep_ring_tail_t tail = uct_sep_ring_tx_tail(&txwq->ring, id, length);

    memcpy(UCS_PTR_BYTE_OFFSET(uct_sep_desc_buffer(desc),
                               sizeof(uct_sep_am_hdr_t) + room - sizeof(tail)),
           &tail, sizeof(tail));
    return room;
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
    uint8_t fm;

    UCT_SEP_CHECK_AM_CREDITS(iface, ep);
    UCT_SEP_GET_DESC(iface, &iface->tx.free_descs, &iface->tx.desc_mp, desc);

    hdr    = uct_sep_desc_buffer(desc);
    length = pack_cb(hdr + 1, arg);
    txwq   = ep->txwq;
    if (uct_sep_ops_has_slot(iface, txwq, length)) {
        fm = uct_sep_txwq_moderate(txwq);
        uct_sep_wr_ring_copy(iface, txwq, desc,
                             uct_sep_ops_add_tail(txwq, id, desc, length), fm,
                             mode);
        uct_sep_ring_tx_advance(&txwq->ring);
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

    desc = uct_sep_ops_pop_desc(&iface->tx.free_descs);
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

    uct_sep_wr_unreserve(iface);
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
    size_t length;

    UCT_CHECK_AM_ID(id);
    if (ucs_unlikely(!uct_sep_ops_is_simple_ring(iface, txwq)) ||
        ucs_unlikely(uct_sep_fc_is_blocked(txwq)) ||
        ucs_unlikely(iface->tx.free_descs.head == NULL)) {
        return plain(tl_ep, id, pack_cb, arg, flags);
    }

    desc = uct_sep_ops_pop_desc(&iface->tx.free_descs);
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

    uct_sep_wr_ring_copy_small(iface, txwq, desc,
                               uct_sep_ops_add_tail(txwq, id, desc, length),
                               mode);
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
