/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops_atomic.inl
 *
 * Atomics, part of the template sep_ops.inl. Operands are big endian in the
 * work request; the device converts them to the order of memory. The logical
 * operations are masked ones:
 *
 *     and   replaces by 0 where the value has 0
 *     or    replaces by 1 where the value has 1
 *     xor   adds without carry (every bit is a field of its own)
 */

/* Operands of a UCT operation; the masks are of the operand's size */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic_set(uct_sep_wr_atomic_t *atomic, unsigned opcode,
                       unsigned size, uint64_t value)
{
    atomic->value        = value;
    atomic->compare      = 0;
    atomic->swap_mask    = 0;
    atomic->compare_mask = 0;

    switch (opcode) {
    case UCT_ATOMIC_OP_ADD:
        atomic->opcode = (size == sizeof(uint64_t)) ?
                         MLX5_OPCODE_ATOMIC_FA : MLX5_OPCODE_ATOMIC_MASKED_FA;
        return UCS_OK;
    case UCT_ATOMIC_OP_AND:
        atomic->opcode    = MLX5_OPCODE_ATOMIC_MASKED_CS;
        atomic->swap_mask = ~value;
        return UCS_OK;
    case UCT_ATOMIC_OP_OR:
        atomic->opcode    = MLX5_OPCODE_ATOMIC_MASKED_CS;
        atomic->swap_mask = value;
        return UCS_OK;
    case UCT_ATOMIC_OP_XOR:
        atomic->opcode  = MLX5_OPCODE_ATOMIC_MASKED_FA;
        atomic->compare = UINT64_MAX;
        return UCS_OK;
    case UCT_ATOMIC_OP_SWAP:
        atomic->opcode    = MLX5_OPCODE_ATOMIC_MASKED_CS;
        atomic->swap_mask = UINT64_MAX;
        return UCS_OK;
    default:
        return UCS_ERR_UNSUPPORTED;
    }
}

/* An atomic that failed must not be mistaken for one that found no resources */
static UCS_F_NOINLINE ucs_status_t
uct_sep_ops_atomic_unsupported(uct_sep_iface_t *iface, unsigned opcode,
                               unsigned size)
{
    ucs_error("%s: atomic operation %u of %u bytes is not supported by the "
              "device, see cap.atomic%u of uct_iface_query()",
              iface->port.name, opcode, size, size * 8);
    return UCS_ERR_UNSUPPORTED;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic_op(uct_ep_h tl_ep, unsigned opcode, unsigned size,
                      uint64_t value, uint64_t remote_addr, uct_rkey_t rkey,
                      uint64_t op_flags, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_wr_atomic_t atomic;
    uct_sep_txwq_t *txwq;

    if (ucs_unlikely((opcode >= UCT_ATOMIC_OP_LAST) ||
                     !(op_flags & UCS_BIT(opcode)) ||
                     (uct_sep_ops_atomic_set(&atomic, opcode, size, value) !=
                      UCS_OK))) {
        return uct_sep_ops_atomic_unsupported(iface, opcode, size);
    }

    UCT_SEP_CHECK_CREDITS(iface, ep);
    txwq = ep->txwq;
    uct_sep_wr_atomic(iface, txwq, &atomic, size, remote_addr, rkey,
                      iface->tx.scratch, uct_sep_txwq_moderate(txwq), mode);
    UCT_TL_EP_STAT_ATOMIC(&ep->super);
    return UCS_OK;
}

/* There are credits and a descriptor */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic_post_fetch(uct_sep_iface_t *iface, uct_sep_ep_t *ep,
                              const uct_sep_wr_atomic_t *atomic, unsigned size,
                              void *result, uint64_t remote_addr,
                              uct_rkey_t rkey, uct_completion_t *comp,
                              uct_sep_desc_t *desc, unsigned mode)
{
    uct_sep_txwq_t *txwq = ep->txwq;

    desc->super.comp   = comp;
    desc->super.ep     = ep;
    desc->super.result = result;
    uct_sep_wr_atomic(iface, txwq, atomic, size, remote_addr, rkey, desc,
                      uct_sep_txwq_signal(txwq), mode);
    uct_sep_ops_track(txwq, &desc->super,
                      (size == sizeof(uint32_t)) ?
                      uct_sep_op_complete_fetch32 :
                      uct_sep_op_complete_fetch64);
    UCT_TL_EP_STAT_ATOMIC(&ep->super);
    return UCS_INPROGRESS;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic_fetch(uct_sep_iface_t *iface, uct_sep_ep_t *ep,
                         const uct_sep_wr_atomic_t *atomic, unsigned size,
                         void *result, uint64_t remote_addr, uct_rkey_t rkey,
                         uct_completion_t *comp, unsigned mode)
{
    uct_sep_desc_t *desc;

    UCT_SEP_CHECK_CREDITS(iface, ep);
    UCT_SEP_GET_DESC(iface, &iface->tx.free_small, &iface->tx.small_mp, desc);
    return uct_sep_ops_atomic_post_fetch(iface, ep, atomic, size, result,
                                         remote_addr, rkey, comp, desc, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic_fop(uct_ep_h tl_ep, unsigned opcode, unsigned size,
                       uint64_t value, void *result, uint64_t remote_addr,
                       uct_rkey_t rkey, uct_completion_t *comp,
                       uint64_t fop_flags, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_wr_atomic_t atomic;

    if (ucs_unlikely((opcode >= UCT_ATOMIC_OP_LAST) ||
                     !(fop_flags & UCS_BIT(opcode)) ||
                     (uct_sep_ops_atomic_set(&atomic, opcode, size, value) !=
                      UCS_OK))) {
        return uct_sep_ops_atomic_unsupported(iface, opcode, size);
    }

    return uct_sep_ops_atomic_fetch(iface, ep, &atomic, size, result,
                                    remote_addr, rkey, comp, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare, uint64_t swap,
                              uint64_t remote_addr, uct_rkey_t rkey,
                              uint64_t *result, uct_completion_t *comp,
                              unsigned mode)
{
    uct_sep_wr_atomic_t atomic = {
        .opcode  = MLX5_OPCODE_ATOMIC_CS,
        .value   = swap,
        .compare = compare
    };
    UCT_SEP_EP_DECL(tl_ep, iface, ep);

    if (ucs_unlikely(!(uct_sep_iface_md(iface)->dev.atomic64.fop_flags &
                       UCT_SEP_WR_ATOMIC64 & UCS_BIT(UCT_ATOMIC_OP_CSWAP)))) {
        return uct_sep_ops_atomic_unsupported(iface, UCT_ATOMIC_OP_CSWAP, 8);
    }

    return uct_sep_ops_atomic_fetch(iface, ep, &atomic, sizeof(swap), result,
                                    remote_addr, rkey, comp, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare, uint32_t swap,
                              uint64_t remote_addr, uct_rkey_t rkey,
                              uint32_t *result, uct_completion_t *comp,
                              unsigned mode)
{
    uct_sep_wr_atomic_t atomic = {
        .opcode       = MLX5_OPCODE_ATOMIC_MASKED_CS,
        .value        = swap,
        .compare      = compare,
        .swap_mask    = UINT32_MAX,
        .compare_mask = UINT32_MAX
    };
    UCT_SEP_EP_DECL(tl_ep, iface, ep);

    if (ucs_unlikely(!(uct_sep_iface_md(iface)->dev.atomic32.fop_flags &
                       UCT_SEP_WR_ATOMIC32 & UCS_BIT(UCT_ATOMIC_OP_CSWAP)))) {
        return uct_sep_ops_atomic_unsupported(iface, UCT_ATOMIC_OP_CSWAP, 4);
    }

    return uct_sep_ops_atomic_fetch(iface, ep, &atomic, sizeof(swap), result,
                                    remote_addr, rkey, comp, mode);
}

static const uct_sep_device_t *uct_sep_ops_dev(uct_ep_h tl_ep)
{
    UCT_SEP_EP_DECL(tl_ep, iface, UCS_V_UNUSED ep);

    return &uct_sep_iface_md(iface)->dev;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode, uint32_t value,
                             uint64_t remote_addr, uct_rkey_t rkey,
                             unsigned mode)
{
    return uct_sep_ops_atomic_op(tl_ep, opcode, sizeof(value), value,
                                 remote_addr, rkey,
                                 uct_sep_ops_dev(tl_ep)->atomic32.op_flags &
                                 UCT_SEP_WR_ATOMIC32, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode, uint64_t value,
                             uint64_t remote_addr, uct_rkey_t rkey,
                             unsigned mode)
{
    return uct_sep_ops_atomic_op(tl_ep, opcode, sizeof(value), value,
                                 remote_addr, rkey,
                                 uct_sep_ops_dev(tl_ep)->atomic64.op_flags &
                                 UCT_SEP_WR_ATOMIC64, mode);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode, uint32_t value,
                              uint32_t *result, uint64_t remote_addr,
                              uct_rkey_t rkey, uct_completion_t *comp,
                              unsigned mode)
{
    return uct_sep_ops_atomic_fop(tl_ep, opcode, sizeof(value), value, result,
                                  remote_addr, rkey, comp,
                                  uct_sep_ops_dev(tl_ep)->atomic32.fop_flags &
                                  UCT_SEP_WR_ATOMIC32, mode);
}

/* Of any kind, without credits or a descriptor at hand */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_atomic64_fetch_any(uct_ep_h tl_ep, unsigned opcode, uint64_t value,
                               uint64_t *result, uint64_t remote_addr,
                               uct_rkey_t rkey, uct_completion_t *comp,
                               unsigned mode)
{
    return uct_sep_ops_atomic_fop(tl_ep, opcode, sizeof(value), value, result,
                                  remote_addr, rkey, comp,
                                  uct_sep_ops_dev(tl_ep)->atomic64.fop_flags &
                                  UCT_SEP_WR_ATOMIC64, mode);
}

/* Add, the operation that all devices have: anything else, and what needs a
 * call, is left to the function above */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_ops_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode, uint64_t value,
                              uint64_t *result, uint64_t remote_addr,
                              uct_rkey_t rkey, uct_completion_t *comp,
                              uct_ep_atomic64_fetch_func_t any, unsigned mode)
{
    UCT_SEP_EP_DECL(tl_ep, iface, ep);
    uct_sep_wr_atomic_t atomic = {
        .opcode = MLX5_OPCODE_ATOMIC_FA,
        .value  = value
    };

    if (ucs_unlikely(opcode != UCT_ATOMIC_OP_ADD) ||
        ucs_unlikely(!(uct_sep_ops_dev(tl_ep)->atomic64.fop_flags &
                       UCT_SEP_WR_ATOMIC64 & UCS_BIT(UCT_ATOMIC_OP_ADD))) ||
        ucs_unlikely(!uct_sep_ops_has_credits(iface, ep)) ||
        ucs_unlikely(iface->tx.free_small.head == NULL)) {
        return any(tl_ep, opcode, value, result, remote_addr, rkey, comp);
    }

    return uct_sep_ops_atomic_post_fetch(iface, ep, &atomic, sizeof(value),
                                         result, remote_addr, rkey, comp,
                                         uct_sep_ops_pop_desc(
                                                 &iface->tx.free_small), mode);
}
