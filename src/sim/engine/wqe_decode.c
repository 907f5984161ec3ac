/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/opcode.h>
#include <sim/engine/qp.h>

#include <endian.h>
#include <string.h>

/** Position in a send queue. Segments and the queue consist of whole units, so
 *  only the step from one unit to the next can wrap. */
typedef struct {
    const uint8_t *ptr;
    const uint8_t *start;
    const uint8_t *end;
    unsigned      left;    /* units of the WQE not read yet */
} mlx5sim_cursor_t;


static inline uint32_t mlx5sim_load_be32(const void *ptr)
{
    uint32_t value;

    memcpy(&value, ptr, sizeof(value));
    return be32toh(value);
}


static inline void mlx5sim_cursor_advance(mlx5sim_cursor_t *cursor,
                                          unsigned units)
{
    cursor->ptr  += units * MLX5SIM_WQE_UNIT;
    cursor->left -= units;
    if (cursor->ptr >= cursor->end) {
        cursor->ptr -= cursor->end - cursor->start;
    }
}


/** Two segments if the data goes on at the start of the queue. */
static unsigned mlx5sim_decode_inline(const mlx5sim_cursor_t *cursor,
                                      uint32_t length, mlx5sim_seg_t *segs)
{
    const uint8_t *data = cursor->ptr + sizeof(mlx5sim_inline_seg_t);
    uint32_t room       = cursor->end - data;
    uint32_t first      = (length <= room) ? length : room;

    segs[0].addr   = (uintptr_t)data;
    segs[0].length = first;
    segs[0].lkey   = 0;
    segs[0].inl    = data;
    segs[0].has_layout = 0;
    if (length == first) {
        return 1;
    }

    segs[1].addr   = (uintptr_t)cursor->start;
    segs[1].length = length - first;
    segs[1].lkey   = 0;
    segs[1].inl    = cursor->start;
    segs[1].has_layout = 0;
    return 2;
}


/** The gather or scatter list, up to the end of the WQE. */
static mlx5sim_chk_t mlx5sim_decode_segs(mlx5sim_cursor_t *cursor,
                                         int is_scatter, mlx5sim_wqe_t *wqe)
{
    mlx5sim_chk_t chk = MLX5SIM_CHK_OK;
    uint64_t total    = 0;
    unsigned count    = 0;
    const mlx5sim_data_seg_t *data;
    mlx5sim_seg_t *seg;
    uint32_t length;

    while (cursor->left > 0) {
        length = mlx5sim_load_be32(cursor->ptr);
        if (length & MLX5SIM_INLINE_FLAG) {
            length &= ~MLX5SIM_INLINE_FLAG;
            if (is_scatter) {
                chk = MLX5SIM_CHK_WQE_SEGMENT;
                break;
            }

            if (length > (cursor->left * MLX5SIM_WQE_UNIT) -
                         sizeof(mlx5sim_inline_seg_t)) {
                chk = MLX5SIM_CHK_WQE_INLINE;
                break;
            }

            if (length > 0) {
                count += mlx5sim_decode_inline(cursor, length,
                                               &wqe->segs[count]);
            }
            mlx5sim_cursor_advance(cursor,
                                   (length + sizeof(mlx5sim_inline_seg_t) +
                                    MLX5SIM_WQE_UNIT - 1) / MLX5SIM_WQE_UNIT);
        } else {
            data        = (const mlx5sim_data_seg_t*)cursor->ptr;
            seg         = &wqe->segs[count];
            seg->addr   = be64toh(data->addr);
            seg->lkey   = be32toh(data->lkey);
            seg->inl    = NULL;
            seg->has_layout = 0;
            /* No segment means "nothing": software leaves it out instead. One
             * without length and key was counted by ds but never written. */
            if ((seg->lkey == MLX5SIM_LKEY_INVALID) ||
                ((length == 0) && (seg->lkey == 0))) {
                chk = MLX5SIM_CHK_WQE_SEGMENT;
                break;
            }

            if (length == 0) {
                length = MLX5SIM_MAX_MESSAGE;
            }
            seg->length = length;
            ++count;
            mlx5sim_cursor_advance(cursor, 1);
        }
        total += length;
    }

    wqe->num_segs = count;
    if ((total > MLX5SIM_MAX_MESSAGE) && (chk == MLX5SIM_CHK_OK)) {
        chk = MLX5SIM_CHK_WQE_LENGTH;
    }

    wqe->length = (total <= MLX5SIM_MAX_MESSAGE) ? total : UINT32_MAX;
    return chk;
}


static mlx5sim_chk_t mlx5sim_decode_raddr(mlx5sim_cursor_t *cursor,
                                          mlx5sim_wqe_t *wqe)
{
    const mlx5sim_raddr_seg_t *seg = (const mlx5sim_raddr_seg_t*)cursor->ptr;

    if (cursor->left == 0) {
        return MLX5SIM_CHK_WQE_DS;
    }

    /* the reserved word is not always written (UCX without SSE 4.2) */
    wqe->has_raddr = 1;
    wqe->raddr     = be64toh(seg->raddr);
    wqe->rkey      = be32toh(seg->rkey);
    mlx5sim_cursor_advance(cursor, 1);
    return MLX5SIM_CHK_OK;
}


/** Operands of an atomic. Without an address vector they cannot wrap: control
 *  and remote address leave the second half of the first basic block to them.
 */
static mlx5sim_chk_t mlx5sim_decode_atomic(mlx5sim_cursor_t *cursor,
                                           mlx5sim_wqe_t *wqe)
{
    int is_masked   = wqe->opcode >= MLX5SIM_OPCODE_ATOMIC_MASKED_CS;
    int is_cas      = (wqe->opcode == MLX5SIM_OPCODE_ATOMIC_CS) ||
                      (wqe->opcode == MLX5SIM_OPCODE_ATOMIC_MASKED_CS);
    unsigned units  = 1;
    unsigned size   = 8;
    uint8_t ptr[2 * MLX5SIM_WQE_UNIT];
    const mlx5sim_masked_cs32_seg_t *cs32;
    const mlx5sim_masked_cs64_seg_t *cs64;
    const mlx5sim_masked_fa32_seg_t *fa32;
    const mlx5sim_masked_fa64_seg_t *fa64;
    const mlx5sim_atomic_seg_t *plain;
    unsigned i;

    if (is_masked) {
        if (!(wqe->opmod & MLX5SIM_OPMOD_EXT_ATOMIC) ||
            (wqe->opmod & ~(MLX5SIM_OPMOD_EXT_ATOMIC |
                            MLX5SIM_OPMOD_ATOMIC_SIZE))) {
            return MLX5SIM_CHK_WQE_OPMOD;
        }

        if ((wqe->opmod & MLX5SIM_OPMOD_ATOMIC_SIZE) > 1) {
            return MLX5SIM_CHK_WQE_ATOMIC;
        }

        size  = 4 << (wqe->opmod & MLX5SIM_OPMOD_ATOMIC_SIZE);
        units = (is_cas && (size == 8)) ? 2 : 1;
    }

    if (cursor->left < units) {
        return MLX5SIM_CHK_WQE_DS;
    }

    wqe->atomic_size   = size;
    wqe->atomic.is_cas = is_cas;
    for (i = 0; i < units; ++i) {
        memcpy(ptr + i * MLX5SIM_WQE_UNIT, cursor->ptr, MLX5SIM_WQE_UNIT);
        mlx5sim_cursor_advance(cursor, 1);
    }

    if (!is_masked) {
        plain                    = (const void*)ptr;
        wqe->atomic.swap_add     = be64toh(plain->swap_add);
        wqe->atomic.compare      = is_cas ? be64toh(plain->compare) : 0;
        wqe->atomic.swap_mask    = UINT64_MAX;
        wqe->atomic.compare_mask = is_cas ? UINT64_MAX : 0;
    } else if (is_cas && (size == 8)) {
        cs64                     = (const void*)ptr;
        wqe->atomic.swap_add     = be64toh(cs64->swap);
        wqe->atomic.compare      = be64toh(cs64->compare);
        wqe->atomic.swap_mask    = be64toh(cs64->swap_mask);
        wqe->atomic.compare_mask = be64toh(cs64->compare_mask);
    } else if (is_cas) {
        cs32                     = (const void*)ptr;
        wqe->atomic.swap_add     = be32toh(cs32->swap);
        wqe->atomic.compare      = be32toh(cs32->compare);
        wqe->atomic.swap_mask    = be32toh(cs32->swap_mask);
        wqe->atomic.compare_mask = be32toh(cs32->compare_mask);
    } else if (size == 8) {
        fa64                     = (const void*)ptr;
        wqe->atomic.swap_add     = be64toh(fa64->add);
        wqe->atomic.compare      = 0;
        wqe->atomic.swap_mask    = UINT64_MAX;
        wqe->atomic.compare_mask = be64toh(fa64->field_boundary);
    } else {
        fa32                     = (const void*)ptr;
        wqe->atomic.swap_add     = be32toh(fa32->add);
        wqe->atomic.compare      = 0;
        wqe->atomic.swap_mask    = UINT64_MAX;
        wqe->atomic.compare_mask = be32toh(fa32->field_boundary);
    }

    return MLX5SIM_CHK_OK;
}


/** Address vector: in the first basic block, so it does not wrap. */
static mlx5sim_chk_t mlx5sim_decode_av(const mlx5sim_qp_t *qp,
                                       mlx5sim_cursor_t *cursor,
                                       mlx5sim_wqe_t *wqe)
{
    const mlx5sim_av_seg_t *av = (const mlx5sim_av_seg_t*)cursor->ptr;
    mlx5sim_chk_t chk          = MLX5SIM_CHK_OK;
    uint32_t dqp, gid_fl;

    dqp = be32toh(av->dqp_dct);
    if (cursor->left < ((dqp & MLX5SIM_AV_EXT) ?
                        sizeof(*av) / MLX5SIM_WQE_UNIT : 1)) {
        return MLX5SIM_CHK_WQE_DS;
    }

    wqe->has_av    = 1;
    wqe->av.dqpn   = dqp & MLX5SIM_QPN_MASK;
    wqe->av.qkey   = be32toh(av->qkey);
    wqe->av.dc_key = be64toh(av->dc_key);
    wqe->av.dlid   = be16toh(av->rlid);
    wqe->av.path_bits = av->fl_mlid & MLX5SIM_AV_PATH_BITS;
    if (wqe->av.qkey & MLX5SIM_AV_QKEY_OF_QP) {
        wqe->av.qkey = qp->qkey;
    }

    if (dqp & MLX5SIM_AV_DQP_RESERVED &
        ~((qp->type == MLX5SIM_QPT_DCI) ? MLX5SIM_AV_REVERSE_SL : 0)) {
        chk = MLX5SIM_CHK_WQE_AV;
    }

    if (!(dqp & MLX5SIM_AV_EXT)) {
        /* there are no 16-byte address vectors on Ethernet: no GID, no MAC */
        if (qp->is_roce) {
            chk = MLX5SIM_CHK_WQE_AV;
        }
        wqe->av.sl         = av->stat_rate_sl & 0xf;
        wqe->av.has_grh    = 0;
        wqe->av.sgid_index = 0;
        wqe->av.tclass     = 0;
        wqe->av.hop_limit  = 0;
        wqe->av.flow_label = 0;
        memset(wqe->av.dgid, 0, sizeof(wqe->av.dgid));
        memset(wqe->av.dmac, 0, sizeof(wqe->av.dmac));
        mlx5sim_cursor_advance(cursor, 1);
        return chk;
    }

    gid_fl             = be32toh(av->grh_gid_fl);
    wqe->av.has_grh    = qp->is_roce || (gid_fl & MLX5SIM_AV_GRH);
    wqe->av.sl         = qp->is_roce ? ((av->stat_rate_sl >> 1) & 7) :
                                       (av->stat_rate_sl & 0xf);
    wqe->av.sgid_index = (gid_fl >> MLX5SIM_AV_SGID_SHIFT) &
                         MLX5SIM_AV_SGID_MASK;
    wqe->av.tclass     = av->tclass;
    wqe->av.hop_limit  = av->hop_limit;
    wqe->av.flow_label = gid_fl & MLX5SIM_AV_FLOW_LABEL;
    memcpy(wqe->av.dgid, av->rgid, sizeof(wqe->av.dgid));
    memcpy(wqe->av.dmac, av->rmac, sizeof(wqe->av.dmac));
    mlx5sim_cursor_advance(cursor, sizeof(*av) / MLX5SIM_WQE_UNIT);
    return chk;
}


/** Which SRQ is to receive: directly behind the control segment, whether
 *  anything is received or not. */
static mlx5sim_chk_t mlx5sim_decode_xrc(mlx5sim_cursor_t *cursor,
                                        mlx5sim_wqe_t *wqe)
{
    const mlx5sim_xrc_seg_t *seg = (const mlx5sim_xrc_seg_t*)cursor->ptr;

    if (cursor->left == 0) {
        return MLX5SIM_CHK_WQE_DS;
    }

    wqe->srqn = be32toh(seg->srqn) & MLX5SIM_QPN_MASK;
    mlx5sim_cursor_advance(cursor, 1);
    return MLX5SIM_CHK_OK;
}


/** The list that a UMR gives to a key: entries of a length, or of strides.
 *  libmlx5 fills it up to whole basic blocks with entries of nothing. */
static mlx5sim_chk_t mlx5sim_decode_layout(mlx5sim_cursor_t *cursor,
                                           mlx5sim_wqe_t *wqe)
{
    unsigned behind = cursor->left - wqe->umr.units;
    const mlx5sim_repeat_seg_t *repeat;
    const mlx5sim_stride_seg_t *stride;
    const mlx5sim_klm_seg_t *klm;
    uint64_t total = 0;
    uint32_t bytes = 0;
    mlx5sim_seg_t *seg;

    repeat = (const mlx5sim_repeat_seg_t*)cursor->ptr;
    if (be32toh(repeat->op) == MLX5SIM_REPEAT_OP) {
        bytes          = be32toh(repeat->byte_count);
        wqe->umr.count = be16toh(repeat->num_ent);
        wqe->umr.turns = be32toh(repeat->repeat_count);
        mlx5sim_cursor_advance(cursor, 1);
        if ((wqe->umr.turns == 0) || (wqe->umr.count >= wqe->umr.units)) {
            return MLX5SIM_CHK_WQE_SEGMENT;
        }
    } else {
        wqe->umr.count = wqe->umr.units;
    }

    for (seg = wqe->segs; seg < wqe->segs + wqe->umr.count; ++seg) {
        if (wqe->umr.turns != 0) {
            stride      = (const mlx5sim_stride_seg_t*)cursor->ptr;
            seg->length = be16toh(stride->byte_count);
            seg->stride = be16toh(stride->stride);
            seg->lkey   = be32toh(stride->mkey);
            seg->addr   = be64toh(stride->address);
        } else {
            klm         = (const mlx5sim_klm_seg_t*)cursor->ptr;
            seg->length = be32toh(klm->byte_count);
            seg->stride = 0;
            seg->lkey   = be32toh(klm->mkey);
            seg->addr   = be64toh(klm->address);
        }
        total += seg->length;
        mlx5sim_cursor_advance(cursor, 1);
    }

    mlx5sim_cursor_advance(cursor, cursor->left - behind);
    return ((wqe->umr.turns == 0) || (total == bytes)) ?
           MLX5SIM_CHK_OK : MLX5SIM_CHK_WQE_SEGMENT;
}


/** Signatures, unit by unit, as they may wrap. */
static void mlx5sim_decode_bsf(mlx5sim_cursor_t *cursor, mlx5sim_wqe_t *wqe)
{
    uint8_t *out = wqe->umr.bsf;

    for (; out < wqe->umr.bsf + sizeof(wqe->umr.bsf); out += MLX5SIM_WQE_UNIT) {
        memcpy(out, cursor->ptr, MLX5SIM_WQE_UNIT);
        mlx5sim_cursor_advance(cursor, 1);
    }
}


/** A key and what it is to lead to, as libmlx5 binds memory windows and gives
 *  layouts to keys: the parts in front of the list are in a basic block each,
 *  the first beside the control segment, so none wraps. */
static mlx5sim_chk_t mlx5sim_decode_umr(mlx5sim_cursor_t *cursor,
                                        mlx5sim_wqe_t *wqe)
{
    const unsigned ctrl_units = sizeof(mlx5sim_umr_ctrl_seg_t) /
                                MLX5SIM_WQE_UNIT;
    const unsigned mkey_units = sizeof(mlx5sim_mkey_seg_t) / MLX5SIM_WQE_UNIT;
    const unsigned bsf_units  = sizeof(mlx5sim_bsf_t) / MLX5SIM_WQE_UNIT;
    const mlx5sim_umr_ctrl_seg_t *ctrl;
    const mlx5sim_mkey_seg_t *mkey;
    unsigned offset_bsf, units;
    mlx5sim_chk_t chk;

    if (cursor->left < ctrl_units + mkey_units) {
        return MLX5SIM_CHK_WQE_DS;
    }

    ctrl = (const mlx5sim_umr_ctrl_seg_t*)cursor->ptr;
    mlx5sim_cursor_advance(cursor, ctrl_units);
    mkey = (const mlx5sim_mkey_seg_t*)cursor->ptr;
    mlx5sim_cursor_advance(cursor, mkey_units);
    memset(&wqe->umr, 0, sizeof(wqe->umr));
    wqe->umr.is_free   = !!(mkey->free & MLX5SIM_MKEY_FREE);
    wqe->umr.check_qpn = !!(ctrl->flags & MLX5SIM_UMR_CHECK_QPN);
    wqe->umr.mask      = be64toh(ctrl->mkey_mask);
    wqe->umr.key       = be32toh(mkey->qpn_mkey) & 0xff;
    wqe->umr.qpn       = be32toh(mkey->qpn_mkey) >> 8;
    if (wqe->umr.is_free) {
        return (cursor->left == 0) ? MLX5SIM_CHK_OK : MLX5SIM_CHK_WQE_SEGMENT;
    }

    /* a list elsewhere, or a part of one, libmlx5 has no use for */
    wqe->umr.units     = be16toh(ctrl->klm_octowords);
    offset_bsf         = be16toh(ctrl->offset_bsf);
    units              = (ctrl->flags & MLX5SIM_UMR_OFFSET) ? 0 : offset_bsf;
    wqe->umr.has_bsf   = units != 0;
    wqe->umr.is_signed = !!(be32toh(mkey->flags_pd) & MLX5SIM_MKEY_BSF);
    if ((cursor->left != wqe->umr.units + units) ||
        ((cursor->left != 0) && !(ctrl->flags & MLX5SIM_UMR_INLINE)) ||
        (wqe->umr.has_bsf && (units != bsf_units)) ||
        ((ctrl->flags & MLX5SIM_UMR_OFFSET) && (offset_bsf != 0))) {
        return MLX5SIM_CHK_WQE_SEGMENT;
    }

    wqe->umr.check_free = !!(ctrl->flags & MLX5SIM_UMR_CHECK_FREE);
    wqe->umr.access     = ((mkey->access_flags & MLX5SIM_MKEY_LOCAL_WRITE) ?
                           MLX5SIM_ACCESS_LOCAL_WRITE : 0) |
                          ((mkey->access_flags & MLX5SIM_MKEY_REMOTE_WRITE) ?
                           MLX5SIM_ACCESS_REMOTE_WRITE : 0) |
                          ((mkey->access_flags & MLX5SIM_MKEY_REMOTE_READ) ?
                           MLX5SIM_ACCESS_REMOTE_READ : 0) |
                          ((mkey->access_flags & MLX5SIM_MKEY_ATOMIC) ?
                           MLX5SIM_ACCESS_REMOTE_ATOMIC : 0);
    wqe->umr.start      = be64toh(mkey->start_addr);
    wqe->umr.length     = be64toh(mkey->len);
    chk                 = (wqe->umr.units == 0) ?
                          MLX5SIM_CHK_OK : mlx5sim_decode_layout(cursor, wqe);
    if ((chk == MLX5SIM_CHK_OK) && wqe->umr.has_bsf) {
        mlx5sim_decode_bsf(cursor, wqe);
    }
    return chk;
}


/** In the first basic block. */
static mlx5sim_chk_t mlx5sim_decode_psv(mlx5sim_cursor_t *cursor,
                                        mlx5sim_wqe_t *wqe)
{
    const mlx5sim_set_psv_seg_t *seg;

    if (cursor->left != sizeof(*seg) / MLX5SIM_WQE_UNIT) {
        return MLX5SIM_CHK_WQE_DS;
    }

    seg            = (const mlx5sim_set_psv_seg_t*)cursor->ptr;
    wqe->psv.index = be32toh(seg->psv_index);
    wqe->psv.value = be64toh(seg->transient_signature);
    return MLX5SIM_CHK_OK;
}


/** Mistakes of the control segment that do not hinder execution. */
static mlx5sim_chk_t mlx5sim_ctrl_check(const mlx5sim_qp_t *qp, uint16_t index,
                                        uint32_t opmod_idx_opcode,
                                        uint32_t qpn_ds, uint8_t fm_ce_se)
{
    unsigned ce = (fm_ce_se >> MLX5SIM_CE_SHIFT) & MLX5SIM_CE_MASK;

    if (((opmod_idx_opcode >> 8) & 0xffff) != index) {
        return MLX5SIM_CHK_WQE_INDEX;
    }

    if ((qpn_ds >> 8) != qp->qpn) {
        return MLX5SIM_CHK_WQE_QPN;
    }

    /* software that does not need bytes 8 to 10 and the immediate leaves them
     * as they were, so they cannot be checked */
    if ((qpn_ds & MLX5SIM_CTRL_DS_RESERVED) ||
        (fm_ce_se & MLX5SIM_FM_CE_SE_RESERVED) ||
        ((fm_ce_se >> MLX5SIM_FM_SHIFT) > MLX5SIM_FM_SMALL)) {
        return MLX5SIM_CHK_WQE_RESERVED;
    }

    if ((ce != MLX5SIM_CE_ON_ERROR) && (ce != MLX5SIM_CE_ALWAYS)) {
        return MLX5SIM_CHK_WQE_CE;
    }

    return MLX5SIM_CHK_OK;
}


static mlx5sim_chk_t mlx5sim_decode_body(const mlx5sim_qp_t *qp, unsigned flags,
                                         mlx5sim_cursor_t *cursor,
                                         mlx5sim_wqe_t *wqe)
{
    mlx5sim_chk_t chk;
    unsigned mtu;

    if (!(flags & MLX5SIM_OP_ATOMIC) && (wqe->opmod != 0)) {
        return MLX5SIM_CHK_WQE_OPMOD;
    }

    if (wqe->opcode == MLX5SIM_OPCODE_NOP) {
        /* what follows the control segment is ignored */
        return MLX5SIM_CHK_OK;
    }

    if (wqe->opcode == MLX5SIM_OPCODE_UMR) {
        return mlx5sim_decode_umr(cursor, wqe);
    }

    if (wqe->opcode == MLX5SIM_OPCODE_SET_PSV) {
        return mlx5sim_decode_psv(cursor, wqe);
    }

    if (mlx5sim_qp_has_av(qp)) {
        chk = mlx5sim_decode_av(qp, cursor, wqe);
        if (chk != MLX5SIM_CHK_OK) {
            return chk;
        }
    }

    if (qp->type == MLX5SIM_QPT_UD) {
        chk = mlx5sim_decode_segs(cursor, 0, wqe);
        mtu = mlx5sim_qp_mtu(qp);
        return ((chk == MLX5SIM_CHK_OK) && (wqe->length > mtu)) ?
               MLX5SIM_CHK_WQE_UD_LENGTH : chk;
    }

    if (qp->xrc == MLX5SIM_XRC_INI) {
        chk = mlx5sim_decode_xrc(cursor, wqe);
        if (chk != MLX5SIM_CHK_OK) {
            return chk;
        }
    }

    if (flags & MLX5SIM_OP_RADDR) {
        chk = mlx5sim_decode_raddr(cursor, wqe);
        if (chk != MLX5SIM_CHK_OK) {
            return chk;
        }
    }

    if (!(flags & MLX5SIM_OP_ATOMIC)) {
        return mlx5sim_decode_segs(cursor, flags & MLX5SIM_OP_SCATTER, wqe);
    }

    if ((wqe->opcode < MLX5SIM_OPCODE_ATOMIC_MASKED_CS) && (wqe->opmod != 0)) {
        return MLX5SIM_CHK_WQE_OPMOD;
    }

    chk = mlx5sim_decode_atomic(cursor, wqe);
    if (chk != MLX5SIM_CHK_OK) {
        return chk;
    }

    chk = mlx5sim_decode_segs(cursor, 1, wqe);
    return ((chk == MLX5SIM_CHK_OK) && (wqe->length != wqe->atomic_size)) ?
           MLX5SIM_CHK_WQE_ATOMIC : chk;
}


mlx5sim_chk_t mlx5sim_wqe_decode(const mlx5sim_qp_t *qp, const void *sq,
                                 uint16_t index, mlx5sim_wqe_t *wqe_p)
{
    const mlx5sim_ctrl_seg_t *ctrl;
    mlx5sim_chk_t ctrl_chk, chk;
    uint32_t opmod_idx_opcode, qpn_ds;
    mlx5sim_cursor_t cursor;
    uint8_t fm_ce_se;
    unsigned flags;

    /* Only the head is cleared: atomic_size, has_av and num_segs say whether
     * the rest, which is kilobytes, is valid. */
    memset(wqe_p, 0, offsetof(mlx5sim_wqe_t, atomic));
    wqe_p->index    = index;
    wqe_p->num_bb   = 1;
    wqe_p->length   = 0;
    wqe_p->later    = 0;
    wqe_p->num_segs = 0;
    if (qp->sq_wqe_cnt == 0) {
        return MLX5SIM_CHK_WQE_DS;
    }

    cursor.start     = sq;
    cursor.end       = cursor.start + ((size_t)qp->sq_wqe_cnt * MLX5SIM_WQEBB);
    cursor.ptr       = cursor.start +
                       ((size_t)(index & (qp->sq_wqe_cnt - 1)) * MLX5SIM_WQEBB);
    ctrl             = (const mlx5sim_ctrl_seg_t*)cursor.ptr;
    opmod_idx_opcode = be32toh(ctrl->opmod_idx_opcode);
    qpn_ds           = be32toh(ctrl->qpn_ds);
    fm_ce_se         = ctrl->fm_ce_se;

    wqe_p->opcode    = opmod_idx_opcode & 0xff;
    wqe_p->opmod     = opmod_idx_opcode >> 24;
    wqe_p->ds        = qpn_ds & MLX5SIM_CTRL_DS_MASK;
    wqe_p->signaled  = !!(fm_ce_se & (MLX5SIM_CE_ALWAYS << MLX5SIM_CE_SHIFT));
    wqe_p->solicited = !!(fm_ce_se & MLX5SIM_SE);
    wqe_p->fence     = (fm_ce_se >> MLX5SIM_FM_SHIFT) != MLX5SIM_FM_NONE;
    wqe_p->stream    = (qp->type == MLX5SIM_QPT_DCI) ?
                       be16toh(ctrl->dci_stream) : 0;
    wqe_p->imm       = ((wqe_p->opcode == MLX5SIM_OPCODE_SEND_INVAL) ||
                        (wqe_p->opcode == MLX5SIM_OPCODE_UMR)) ?
                       be32toh(ctrl->imm) : ctrl->imm;
    ctrl_chk         = mlx5sim_ctrl_check(qp, index, opmod_idx_opcode, qpn_ds,
                                          fm_ce_se);
    if (wqe_p->ds == 0) {
        return MLX5SIM_CHK_WQE_DS;
    }

    wqe_p->num_bb = (wqe_p->ds + 3) / 4;
    if (wqe_p->num_bb > qp->sq_wqe_cnt) {
        return MLX5SIM_CHK_WQE_DS;
    }

    flags = mlx5sim_opcode_flags(wqe_p->opcode);
    if (!mlx5sim_opcode_allowed(flags, qp->type) ||
        (qp->no_masked &&
         ((wqe_p->opcode == MLX5SIM_OPCODE_ATOMIC_MASKED_CS) ||
          (wqe_p->opcode == MLX5SIM_OPCODE_ATOMIC_MASKED_FA)))) {
        return MLX5SIM_CHK_WQE_OPCODE;
    }

    cursor.left = wqe_p->ds;
    mlx5sim_cursor_advance(&cursor, 1);
    chk = mlx5sim_decode_body(qp, flags, &cursor, wqe_p);
    return (chk != MLX5SIM_CHK_OK) ? chk : ctrl_chk;
}
