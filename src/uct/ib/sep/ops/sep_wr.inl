/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_WR_INL
#define UCT_SEP_WR_INL

#include <uct/ib/sep/iface/sep_bufs.h>
#include <uct/ib/sep/iface/sep_iface.h>
#include <uct/ib/sep/post/sep_post.inl>
#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/base/uct_iov.inl>

/**
 * @file sep_wr.inl
 *
 * Work requests, written to the send queue and posted here (UCX_SEP_API=dv).
 * sep_verbs_wr.inl has the same functions through libibverbs. Credits have been
 * checked; completion is up to the caller. Common arguments:
 *
 *     iface, txwq         where to post; sw_pi is behind it on return
 *     remote_addr, rkey   of the target
 *     desc                with the local memory
 *     fm                  UCT_SEP_FM_xx
 *     mode                of the data path, a constant: see sep_ops.h
 *
 * "Small" means that it needs one BB and no completion.
 */

/** Longest inline put and active message with its header. */
#define UCT_SEP_WR_PUT_MAX_INL   UCT_SEP_PUT_MAX_INL
#define UCT_SEP_WR_AM_MAX_INL    UCT_SEP_AM_MAX_INL

/** Longest put, and longest payload of an active message, that are small. */
#define UCT_SEP_WR_PUT_SMALL     UCT_SEP_PUT_INL_1BB
#define UCT_SEP_WR_AM_SMALL      32

/** Longest payload in a slot of a ring, behind a header, that is small. */
#define UCT_SEP_WR_RING_SMALL    8u

/** Entries of an RDMA gather list. */
#define UCT_SEP_WR_RMA_MAX_IOV   UCT_SEP_RMA_MAX_IOV

/** Atomics that can be posted, bits of uct_atomic_op_t. */
#define UCT_SEP_WR_ATOMIC32      UINT64_MAX
#define UCT_SEP_WR_ATOMIC64      UINT64_MAX

/** Whether uct_sep_wr_send_iov() needs a descriptor to copy the header to. */
#define UCT_SEP_WR_COPIES_HEADER 0


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_post_any(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    int32_t *cq_credits, __be32 *dbrec, const void *wqe,
                    uint16_t pi,
                    unsigned num_bb, const uct_sep_seg_t *segs,
                    unsigned num_segs, unsigned mode)
{
    unsigned count;

    if (!(mode & UCT_SEP_OPS_LIST)) {
        uct_sep_txwq_post(txwq, cq_credits, dbrec, wqe, pi, num_bb, segs,
                          num_segs, UCT_SEP_OPS_POST(mode),
                          mode & UCT_SEP_OPS_SHARED);
        return;
    }

    count = uct_sep_txwq_append(txwq, cq_credits, pi, num_bb);
    if (count == 1) {
        uct_sep_postlist_begin(iface, txwq);
    }
    if (count >= iface->config.postlist) {
        uct_sep_postlist_ring(iface, txwq);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_post(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, const void *wqe,
                uint16_t pi, unsigned num_bb, unsigned mode)
{
    uct_sep_wr_post_any(iface, txwq, &iface->tx.cq_credits, txwq->dbrec, wqe,
                        pi, num_bb, NULL, 0, mode);
}


/** Post a BB of segments, for which uct_sep_wr_reserve() was called. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_post_segs(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     __be32 *dbrec, void *wqe, uint16_t pi,
                     const uct_sep_seg_t *segs, unsigned num_segs,
                     unsigned mode)
{
    uct_sep_wqe_set_segs(wqe, segs, num_segs);
    uct_sep_wr_post_any(iface, txwq, NULL, dbrec, wqe, pi, 1, segs, num_segs,
                        mode);
}


/** Control segment of a message that goes by send/receive. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_send_ctrl(const uct_sep_txwq_t *txwq, void *wqe, uint16_t pi,
                          uct_sep_wr_am_t am, unsigned ds, uint8_t fm)
{
    struct mlx5_wqe_ctrl_seg *ctrl = wqe;

    uct_sep_wqe_set_ctrl(txwq, wqe, pi,
                         am.is_imm ? MLX5_OPCODE_SEND_IMM : MLX5_OPCODE_SEND,
                         0, ds, fm);
    ctrl->imm = htobe32(am.imm);
}


/** @return sw_pi as the device has it. The doorbell record has it, if the
 *          device has been told of all that was posted (PRM: send counter and
 *          wqe_index, both of 16 bits). */
static UCS_F_ALWAYS_INLINE uct_sep_alias_be16_t
uct_sep_wr_be_index(const __be32 *dbrec, uint16_t pi, unsigned mode)
{
    return (mode & UCT_SEP_OPS_LIST) ?
           htobe16(pi) : ((const uct_sep_alias_be16_t*)dbrec)[1];
}


/** Take what a work request of one BB needs of the interface. */
static UCS_F_ALWAYS_INLINE void uct_sep_wr_reserve(uct_sep_iface_t *iface)
{
    /* Shorter than to remember the value that was checked */
    ucs_compiler_fence();
    uct_sep_iface_add_cq_credits(iface, -1);
}


/** Give that back: it is posted in another way. */
static UCS_F_ALWAYS_INLINE void uct_sep_wr_unreserve(uct_sep_iface_t *iface)
{
    uct_sep_iface_add_cq_credits(iface, 1);
}


/** No data: NOP, or with @a remote an RDMA write of no bytes. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_empty(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, int remote,
                 uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);

    if (remote) {
        uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0, 2, fm);
        uct_sep_wqe_set_raddr(UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN), 0, 0);
    } else {
        uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_NOP, 0, 1, fm);
    }
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** RDMA write of inline data, of any length up to the limit. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, const void *buffer,
               unsigned length, uint64_t remote_addr, uct_rkey_t rkey,
               uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned ds;

    uct_sep_wqe_set_raddr(seg, remote_addr, rkey);
    if (length == 0) {
        /* No data segment rather than one without data */
        ds = 2;
    } else {
        ds  = uct_sep_wqe_ds(UCT_SEP_PUT_INL_OFFSET + length);
        seg = UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN);
        uct_sep_wqe_set_inl(seg, length);
        uct_sep_txwq_copy(txwq, UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_INL_LEN),
                          buffer, length);
    }

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0, ds, fm);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/** Small one; counts it as unsignaled. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     const void *buffer, unsigned length, uint64_t remote_addr,
                     uct_rkey_t rkey, uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0,
                         uct_sep_wqe_ds(UCT_SEP_PUT_INL_OFFSET + length), fm);
    uct_sep_wqe_set_raddr(seg, remote_addr, rkey);
    uct_sep_wqe_set_inl(UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN), length);
    uct_sep_copy_upto32(UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_PUT_INL_OFFSET),
                        buffer, length);
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** RDMA between a descriptor's buffer and remote memory. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_rdma(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, unsigned opcode,
                const uct_sep_desc_t *desc, uint32_t length,
                uint64_t remote_addr, uct_rkey_t rkey, uint8_t fm,
                unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned ds = (length == 0) ? 2 : 3;

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, opcode, 0, ds, fm);
    uct_sep_wqe_set_raddr(seg, remote_addr, rkey);
    *(uct_sep_seg_t*)UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN) =
            uct_sep_wqe_desc_data(desc, length);
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** RDMA write of a copy to its target, not signaled; counts it as such, and
 *  sets where the operation ends. The interface's part was reserved. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    uct_sep_desc_t *desc, uint32_t length, unsigned mode)
{
    __be32 *dbrec = txwq->dbrec;
    uint16_t pi   = txwq->sw_pi;
    void *wqe     = uct_sep_txwq_bb(txwq, pi);
    uct_sep_seg_t segs[3];

    segs[0] = uct_sep_wqe_usual_ctrl(&txwq->ctrl_write,
                                     uct_sep_wr_be_index(dbrec, pi, mode));
    segs[1] = *(const uct_sep_seg_t*)&desc->super.raddr;
    segs[2] = uct_sep_wqe_desc_data(desc, length);
    if (ucs_unlikely(length == 0)) {
        /* No data segment: to the device, no bytes are 2 GiB */
        segs[0] -= (uct_sep_seg_t){0, htobe32(1)};
    }

    uct_sep_txwq_count_unsignaled(txwq);
    desc->super.end = pi + 1;
    uct_sep_wr_post_segs(iface, txwq, dbrec, wqe, pi, segs, 3, mode);
}


/* Gather list, from a segment on, which is in the queue; returns the number of
 * entries */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_wr_set_iov(const uct_sep_iface_t *iface, const uct_sep_txwq_t *txwq,
                   void *seg, const uct_iov_t *iov, size_t iovcnt)
{
    unsigned count = 0;
    size_t i, length;

    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length == 0) {
            continue; /* Means 2 GiB to the device */
        }

        uct_sep_wqe_set_data(seg, iov[i].buffer, length,
                             uct_sep_bufs_lkey(iface, iov[i].memh));
        seg = uct_sep_txwq_wrap(txwq,
                                UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_DATA_LEN));
        ++count;
    }

    return count;
}


/** RDMA between a list of local memory and remote memory. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_rdma_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    unsigned opcode, const uct_iov_t *iov, size_t iovcnt,
                    uint64_t remote_addr, uct_rkey_t rkey, uint8_t fm,
                    unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned ds;

    uct_sep_wqe_set_raddr(seg, remote_addr, rkey);
    ds = 2 + uct_sep_wr_set_iov(iface, txwq,
                                UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN),
                                iov, iovcnt);
    uct_sep_wqe_set_ctrl(txwq, wqe, pi, opcode, 0, ds, fm);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/**
 * Message into a ring, of inline data.
 *
 * @param length  Of the list.
 * @param room    uct_sep_ring_room() of that.
 * @param tail    As the ring has it.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    const uct_iov_t *iov, size_t iovcnt, unsigned length,
                    uint32_t room, uct_sep_ring_tail_t tail, uint8_t fm,
                    unsigned mode)
{
    static const uint64_t zero = 0;
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned ds = uct_sep_wqe_ds(UCT_SEP_PUT_INL_OFFSET + room);
    void *dst   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_PUT_INL_OFFSET);
    size_t i;

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0, ds, fm);
    uct_sep_wqe_set_raddr(seg, txwq->ring.slot_end - room, txwq->ring.rkey);
    uct_sep_wqe_set_inl(UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN), room);
    for (i = 0; i < iovcnt; ++i) {
        dst = uct_sep_txwq_copy(txwq, dst, iov[i].buffer,
                                uct_iov_get_length(&iov[i]));
    }
    dst = uct_sep_txwq_copy(txwq, dst, &zero, room - sizeof(tail) - length);
    uct_sep_txwq_copy(txwq, dst, &tail, sizeof(tail));
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/** Write a header and one piece of memory into a slot of a ring. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_short(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uint64_t header, const void *payload, unsigned length,
                      uint32_t room, uct_sep_ring_tail_t tail, uint8_t fm,
                      unsigned mode)
{
    uint16_t pi  = txwq->sw_pi;
    void *wqe    = uct_sep_txwq_bb(txwq, pi);
    void *seg    = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned ds  = uct_sep_wqe_ds(UCT_SEP_PUT_INL_OFFSET + room);
    uint64_t *to = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_PUT_INL_OFFSET);
    struct {
        uint64_t            padding;
        uct_sep_ring_tail_t tail;
    } last = {0, tail};

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0, ds, fm);
    uct_sep_wqe_set_raddr(seg, txwq->ring.slot_end - room, txwq->ring.rkey);
    uct_sep_wqe_set_inl(UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN), room);

    /* First the tail, and the padding, which is where the end of the message
     * goes afterwards */
    (void)uct_sep_txwq_copy(txwq, uct_sep_txwq_at(txwq, to, room -
                                                            sizeof(last)),
                            &last, sizeof(last));
    memcpy(to, &header, sizeof(header));
    (void)uct_sep_txwq_copy(txwq, to + 1, payload, length);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/** Small message into a ring: the last bytes of its slot, not signaled; counts
 *  it as such. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uint64_t first, uint64_t second,
                      uct_sep_ring_tail_t tail,
                      unsigned mode)
{
    enum {
        room = sizeof(first) + sizeof(second) + sizeof(tail)
    };
    __be32 *dbrec = txwq->dbrec;
    uint16_t pi   = txwq->sw_pi;
    void *wqe     = uct_sep_txwq_bb(txwq, pi);
    void *seg     = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    void *to      = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_PUT_INL_OFFSET);
    uct_sep_seg_t ctrl;

    /* One unit longer than a write of one piece of memory */
    UCS_STATIC_ASSERT(UCT_SEP_PUT_INL_OFFSET + room <= 4 * UCT_SEP_DS_SIZE);
    UCS_STATIC_ASSERT(UCT_SEP_PUT_INL_OFFSET + room > 3 * UCT_SEP_DS_SIZE);
    ctrl = uct_sep_wqe_usual_ctrl(&txwq->ctrl_write,
                                  uct_sep_wr_be_index(dbrec, pi, mode)) +
           (uct_sep_seg_t){0, htobe32(1)};
    *(uct_sep_seg_t*)wqe = ctrl;
    uct_sep_wqe_set_raddr(seg, txwq->ring.slot_end - room, txwq->ring.rkey);
    uct_sep_wqe_set_inl(UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN), room);
    memcpy(to, &first, sizeof(first));
    memcpy(UCS_PTR_BYTE_OFFSET(to, 8), &second, sizeof(second));
    memcpy(UCS_PTR_BYTE_OFFSET(to, 16), &tail, sizeof(tail));
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_post_any(iface, txwq, &iface->tx.cq_credits, dbrec, wqe, pi, 1,
                        NULL, 0, mode);
}


/** Write a small message in a descriptor's buffer, with its tail, into a slot
 *  of a ring. The interface's part was reserved. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_copy_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                           uct_sep_desc_t *desc, uint32_t room, unsigned mode)
{
    __be32 *dbrec = txwq->dbrec;
    uint16_t pi   = txwq->sw_pi;
    void *wqe     = uct_sep_txwq_bb(txwq, pi);
    uct_sep_seg_t segs[3];

    uct_sep_desc_set_target(desc, txwq->ring.slot_end - room, txwq->ring.rkey);
    segs[0] = uct_sep_wqe_usual_ctrl(&txwq->ctrl_write,
                                     uct_sep_wr_be_index(dbrec, pi, mode));
    segs[1] = *(const uct_sep_seg_t*)&desc->super.raddr;

    /* Behind the header of one byte: the buffer is aligned, so nothing is
     * carried */
    segs[2] = uct_sep_wqe_desc_data(desc, room) +
              (uct_sep_seg_t){0, 0, 0, htobe32(sizeof(uct_sep_am_hdr_t))};

    uct_sep_txwq_count_unsignaled(txwq);
    desc->super.end = pi + 1;
    uct_sep_wr_post_segs(iface, txwq, dbrec, wqe, pi, segs, 3, mode);
}


/** Message into a ring, in a descriptor's buffer behind the place of a header
 *  of one byte, with its tail. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     const uct_sep_desc_t *desc, uint32_t room, uint8_t fm,
                     unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *seg   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_RDMA_WRITE, 0, 3, fm);
    uct_sep_wqe_set_raddr(seg, txwq->ring.slot_end - room, txwq->ring.rkey);
    uct_sep_wqe_set_data(UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN),
                         UCS_PTR_BYTE_OFFSET(uct_sep_desc_buffer(desc),
                                             sizeof(uct_sep_am_hdr_t)),
                         room, uct_sep_desc_lkey(desc));
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** Short active message of any length up to the limit. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uct_sep_wr_am_t am, uint64_t header, const void *payload,
                      unsigned length, uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *inl   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    uct_sep_am_short_hdr_t *hdr = UCS_PTR_BYTE_OFFSET(inl, UCT_SEP_INL_LEN);
    unsigned ds = uct_sep_wqe_ds(UCT_SEP_AM_INL_OFFSET + sizeof(*hdr) + length);

    uct_sep_wqe_set_send_ctrl(txwq, wqe, pi, am, ds, fm);
    uct_sep_wqe_set_inl(inl, sizeof(*hdr) + length);
    hdr->super.am_id = am.id;
    hdr->header      = header;
    uct_sep_txwq_copy(txwq, hdr + 1, payload, length);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/** Small one; counts it as unsignaled. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint8_t id, uint64_t header, const void *payload,
                            unsigned length, uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);
    void *inl   = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    uct_sep_am_short_hdr_t *hdr = UCS_PTR_BYTE_OFFSET(inl, UCT_SEP_INL_LEN);

    uct_sep_wqe_set_ctrl(txwq, wqe, pi, MLX5_OPCODE_SEND, 0,
                         uct_sep_wqe_ds(UCT_SEP_AM_INL_OFFSET + sizeof(*hdr) +
                                        length), fm);
    uct_sep_wqe_set_inl(inl, sizeof(*hdr) + length);
    hdr->super.am_id = id;
    hdr->header      = header;
    uct_sep_copy_upto32(hdr + 1, payload, length);
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** Active message of inline data; @a length is that of the list. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uct_sep_wr_am_t am, const uct_iov_t *iov,
                          size_t iovcnt, size_t length, uint8_t fm,
                          unsigned mode)
{
    uint16_t pi           = txwq->sw_pi;
    void *wqe             = uct_sep_txwq_bb(txwq, pi);
    void *inl             = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    uct_sep_am_hdr_t *hdr = UCS_PTR_BYTE_OFFSET(inl, UCT_SEP_INL_LEN);
    unsigned ds           = uct_sep_wqe_ds(UCT_SEP_AM_INL_OFFSET +
                                           sizeof(*hdr) + length);
    void *dst             = hdr + 1;
    size_t i;

    uct_sep_wqe_set_send_ctrl(txwq, wqe, pi, am, ds, fm);
    uct_sep_wqe_set_inl(inl, sizeof(*hdr) + length);
    hdr->am_id = am.id;
    for (i = 0; i < iovcnt; ++i) {
        dst = uct_sep_txwq_copy(txwq, dst, iov[i].buffer,
                                uct_iov_get_length(&iov[i]));
    }
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/** Active message, header included, in a descriptor's buffer. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                uct_sep_wr_am_t am, const uct_sep_desc_t *desc,
                uint32_t length, uint8_t fm, unsigned mode)
{
    uint16_t pi = txwq->sw_pi;
    void *wqe   = uct_sep_txwq_bb(txwq, pi);

    uct_sep_wqe_set_send_ctrl(txwq, wqe, pi, am, 2, fm);
    *(uct_sep_seg_t*)UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN) =
            uct_sep_wqe_desc_data(desc, length);
    uct_sep_wr_post(iface, txwq, wqe, pi, 1, mode);
}


/** Send a descriptor's buffer, solicited and not signaled. Counts it as such,
 *  and sets where the operation ends. The interface's part was reserved. */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     uct_sep_desc_t *desc, uint32_t length, unsigned mode)
{
    __be32 *dbrec         = txwq->dbrec;
    uint16_t pi           = txwq->sw_pi;
    void *wqe             = uct_sep_txwq_bb(txwq, pi);
    uct_sep_seg_t segs[2] = {
        uct_sep_wqe_usual_ctrl(&txwq->ctrl_send,
                               uct_sep_wr_be_index(dbrec, pi, mode)),
        uct_sep_wqe_desc_data(desc, length)
    };

    uct_sep_txwq_count_unsignaled(txwq);
    desc->super.end = pi + 1;
    uct_sep_wr_post_segs(iface, txwq, dbrec, wqe, pi, segs, 2, mode);
}


/**
 * Active message of a header, which is copied, and a list of local memory.
 *
 * @param op  Descriptor that completes it, or NULL; not used here.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    uct_sep_op_t *op, uct_sep_wr_am_t am, const void *header,
                    unsigned header_length, const uct_iov_t *iov, size_t iovcnt,
                    uint8_t fm, unsigned mode)
{
    uint16_t pi           = txwq->sw_pi;
    void *wqe             = uct_sep_txwq_bb(txwq, pi);
    void *inl             = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    uct_sep_am_hdr_t *hdr = UCS_PTR_BYTE_OFFSET(inl, UCT_SEP_INL_LEN);
    unsigned ds           = uct_sep_wqe_ds(UCT_SEP_AM_INL_OFFSET +
                                           sizeof(*hdr) + header_length);
    void *seg             = uct_sep_txwq_at(txwq, wqe, ds * UCT_SEP_DS_SIZE);

    uct_sep_wqe_set_inl(inl, sizeof(*hdr) + header_length);
    hdr->am_id = am.id;
    uct_sep_txwq_copy(txwq, hdr + 1, header, header_length);

    ds += uct_sep_wr_set_iov(iface, txwq, seg, iov, iovcnt);

    uct_sep_wqe_set_send_ctrl(txwq, wqe, pi, am, ds, fm);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}


/**
 * Atomic.
 *
 * @param size    Of the operands, 4 or 8.
 * @param desc    Where the old value goes.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_wr_atomic(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                  const uct_sep_wr_atomic_t *atomic, unsigned size,
                  uint64_t remote_addr, uct_rkey_t rkey,
                  const uct_sep_desc_t *desc, uint8_t fm, unsigned mode)
{
    uint16_t pi    = txwq->sw_pi;
    void *wqe      = uct_sep_txwq_bb(txwq, pi);
    void *seg      = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_CTRL_LEN);
    unsigned opmod = 0;
    unsigned ds    = 4;
    struct mlx5_wqe_atomic_seg *plain;
    uct_sep_wqe_masked_cs32_t *cs32;
    uct_sep_wqe_masked_fa32_t *fa32;
    uct_sep_wqe_masked_fa64_t *fa64;
    uct_sep_wqe_masked_cs64_t *cs64;

    uct_sep_wqe_set_raddr(seg, remote_addr, uct_sep_rkey_strict(rkey));
    seg = UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_RADDR_LEN);

    switch (atomic->opcode) {
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
        plain           = seg;
        plain->swap_add = htobe64(atomic->value);
        plain->compare  = htobe64(atomic->compare);
        break;
    case MLX5_OPCODE_ATOMIC_MASKED_CS:
        if (size == sizeof(uint32_t)) {
            opmod              = UCT_SEP_OPMOD_EXT_ATOMIC(2);
            cs32               = seg;
            cs32->swap         = htobe32(atomic->value);
            cs32->compare      = htobe32(atomic->compare);
            cs32->swap_mask    = htobe32(atomic->swap_mask);
            cs32->compare_mask = htobe32(atomic->compare_mask);
        } else {
            opmod              = UCT_SEP_OPMOD_EXT_ATOMIC(3);
            ds                 = 5;
            cs64               = seg;
            cs64->swap         = htobe64(atomic->value);
            cs64->compare      = htobe64(atomic->compare);
            cs64->swap_mask    = htobe64(atomic->swap_mask);
            cs64->compare_mask = htobe64(atomic->compare_mask);
            seg                = UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_DS_SIZE);
        }
        break;
    default:
        if (size == sizeof(uint32_t)) {
            opmod                = UCT_SEP_OPMOD_EXT_ATOMIC(2);
            fa32                 = seg;
            fa32->add            = htobe32(atomic->value);
            fa32->field_boundary = htobe32(atomic->compare);
            fa32->reserved[0]    = 0;
            fa32->reserved[1]    = 0;
        } else {
            opmod                = UCT_SEP_OPMOD_EXT_ATOMIC(3);
            fa64                 = seg;
            fa64->add            = htobe64(atomic->value);
            fa64->field_boundary = htobe64(atomic->compare);
        }
        break;
    }

    /* May be in the second BB, which may be at the start of the queue */
    seg = uct_sep_txwq_wrap(txwq, UCS_PTR_BYTE_OFFSET(seg, UCT_SEP_DS_SIZE));
    *(uct_sep_seg_t*)seg = uct_sep_wqe_desc_data(desc, size);
    uct_sep_wqe_set_ctrl(txwq, wqe, pi, atomic->opcode, opmod, ds, fm);
    uct_sep_wr_post(iface, txwq, wqe, pi, uct_sep_wqe_num_bb(ds), mode);
}

#endif
