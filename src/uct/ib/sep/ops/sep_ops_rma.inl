/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops_rma.inl
 *
 * Puts and gets, part of the template sep_ops.inl.
 */

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

    desc = uct_sep_ops_pop_desc(&iface->tx.free_descs);
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
                                      uct_sep_ops_pop_desc(
                                              &iface->tx.free_descs), mode);
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
