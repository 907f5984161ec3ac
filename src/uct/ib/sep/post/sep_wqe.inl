/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_WQE_INL
#define UCT_SEP_WQE_INL

#include <uct/ib/sep/queue/sep_op.h>
#include <uct/ib/sep/queue/sep_txwq.h>
#include <uct/api/uct.h>
#include <ucs/sys/compiler.h>
#include <string.h>

/**
 * @file sep_wqe.inl
 *
 * The segments of a work request; each function writes one. A work request
 * starts on a BB and so never wraps inside its first 64 bytes.
 */


/** The BB with index @a pi. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_txwq_bb(const uct_sep_txwq_t *txwq, uint16_t pi)
{
    return UCS_PTR_BYTE_OFFSET(txwq->start,
                               ((uint32_t)pi << UCT_SEP_BB_SHIFT) & txwq->mask);
}


/** BBs of a work request of @a ds units of 16 bytes. */
static UCS_F_ALWAYS_INLINE unsigned uct_sep_wqe_num_bb(unsigned ds)
{
    return (ds + UCT_SEP_DS_PER_BB - 1) / UCT_SEP_DS_PER_BB;
}


/** Units of 16 bytes that @a length bytes take. */
static UCS_F_ALWAYS_INLINE unsigned uct_sep_wqe_ds(size_t length)
{
    return (length + UCT_SEP_DS_SIZE - 1) / UCT_SEP_DS_SIZE;
}


/** A segment's address, wrapped if it has just reached the end of the queue. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_txwq_wrap(const uct_sep_txwq_t *txwq, void *seg)
{
    return ucs_unlikely(seg == txwq->end) ? txwq->start : seg;
}


/** The address @a offset bytes behind one in the queue, wrapped. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_txwq_at(const uct_sep_txwq_t *txwq, void *from, size_t offset)
{
    void *to = UCS_PTR_BYTE_OFFSET(from, offset);

    return ucs_unlikely(to >= txwq->end) ?
           UCS_PTR_BYTE_OFFSET(txwq->start,
                               UCS_PTR_BYTE_DIFF(txwq->end, to)) : to;
}


/**
 * Control segment.
 *
 * @param wqe     The work request.
 * @param pi      Its index.
 * @param opcode  MLX5_OPCODE_xx.
 * @param opmod   Modifier of the opcode.
 * @param ds      Size of the work request in units of 16 bytes.
 * @param fm      UCT_SEP_FM_xx.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_ctrl(const uct_sep_txwq_t *txwq, void *wqe, uint16_t pi,
                     unsigned opcode, unsigned opmod, unsigned ds, uint8_t fm)
{
    struct mlx5_wqe_ctrl_seg *ctrl = wqe;

    ctrl->opmod_idx_opcode = htobe32((opmod << 24) |
                                     ((uint32_t)pi << 8) | opcode);
    ctrl->qpn_ds           = txwq->qpn_ds | htobe32(ds);
    /* signature, stream channel and immediate are zero */
    *(uct_sep_alias_u64_t*)&ctrl->signature = (uint64_t)fm << 24;
}


/**
 * Control segment of a work request that is one of the usual ones.
 *
 * @param usual     One of txwq's.
 * @param be_index  Where the work request is, as the device has it: sw_pi.
 */
static UCS_F_ALWAYS_INLINE uct_sep_seg_t
uct_sep_wqe_usual_ctrl(const uct_sep_seg_t *usual,
                       uct_sep_alias_be16_t be_index)
{
    return *usual | (uct_sep_seg_t){(uint32_t)be_index << 8};
}


/** Remote address segment; the key is the one for puts and gets. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_raddr(void *seg, uint64_t remote_addr, uct_rkey_t rkey)
{
    struct mlx5_wqe_raddr_seg *raddr = seg;

    raddr->raddr = htobe64(remote_addr);
    /* rkey together with the reserved word behind it */
    *(uct_sep_alias_u64_t*)&raddr->rkey = (uint32_t)rkey;
}


/** Header of an inline data segment. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_inl(void *seg, uint32_t length)
{
    struct mlx5_wqe_inl_data_seg *inl = seg;

    inl->byte_count = htobe32(length | MLX5_INLINE_SEG);
}


/** Data segment: one contiguous piece of local memory. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_data(void *seg, const void *address, uint32_t length,
                     uint32_t lkey)
{
    struct mlx5_wqe_data_seg *data = seg;

    data->byte_count = htobe32(length);
    data->lkey       = htobe32(lkey);
    data->addr       = htobe64((uintptr_t)address);
}


/** @return Data segment of a descriptor's buffer. */
static UCS_F_ALWAYS_INLINE uct_sep_seg_t
uct_sep_wqe_desc_data(const uct_sep_desc_t *desc, uint32_t length)
{
    return *(const uct_sep_seg_t*)&desc->data |
           (uct_sep_seg_t){htobe32(length)};
}


/**
 * Copy at most 32 bytes without a call: two overlapping moves of the largest
 * size that fits.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_copy_upto32(void *dst, const void *src, size_t length)
{
    if (ucs_likely((length - 8) <= 8)) {
        memcpy(dst, src, 8);
        memcpy(UCS_PTR_BYTE_OFFSET(dst, length - 8),
               UCS_PTR_BYTE_OFFSET(src, length - 8), 8);
    } else if (length > 16) {
        memcpy(dst, src, 16);
        memcpy(UCS_PTR_BYTE_OFFSET(dst, length - 16),
               UCS_PTR_BYTE_OFFSET(src, length - 16), 16);
    } else if (length >= 4) {
        memcpy(dst, src, 4);
        memcpy(UCS_PTR_BYTE_OFFSET(dst, length - 4),
               UCS_PTR_BYTE_OFFSET(src, length - 4), 4);
    } else if (length >= 2) {
        memcpy(dst, src, 2);
        memcpy(UCS_PTR_BYTE_OFFSET(dst, length - 2),
               UCS_PTR_BYTE_OFFSET(src, length - 2), 2);
    } else if (length != 0) {
        memcpy(dst, src, 1);
    }
}


/** @return Up to 8 bytes as a word, in the order of memory. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_sep_load_upto8(const void *src, unsigned length)
{
    const uint8_t *bytes = src;
    uint64_t word;
    uint32_t low, high;

    if (ucs_likely(length == 8)) {
        memcpy(&word, src, 8);
        return word;
    } else if (length >= 4) {
        memcpy(&low, src, 4);
        memcpy(&high, UCS_PTR_BYTE_OFFSET(src, length - 4), 4);
        return low | ((uint64_t)high << (8 * (length - 4)));
    } else if (length > 0) {
        return bytes[0] | ((uint32_t)bytes[length / 2] << (8 * (length / 2))) |
               ((uint32_t)bytes[length - 1] << (8 * (length - 1)));
    }
    return 0;
}


/**
 * Copy inline payload that may run over the end of the queue.
 *
 * @param dst  Anywhere in the queue.
 *
 * @return Behind the last byte copied, wrapped.
 */
static UCS_F_ALWAYS_INLINE void *
uct_sep_txwq_copy(const uct_sep_txwq_t *txwq, void *dst, const void *src,
                  size_t length)
{
    size_t room = UCS_PTR_BYTE_DIFF(dst, txwq->end);

    if (length == 0) {
        return dst; /* There may be no source either */
    }

    if (ucs_likely(length < room)) {
        memcpy(dst, src, length);
        return UCS_PTR_BYTE_OFFSET(dst, length);
    }

    memcpy(dst, src, room);
    memcpy(txwq->start, UCS_PTR_BYTE_OFFSET(src, room), length - room);
    return UCS_PTR_BYTE_OFFSET(txwq->start, length - room);
}

#endif
