/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_VERBS_WR_INL
#define UCT_SEP_VERBS_WR_INL

#include <uct/ib/sep/iface/sep_bufs.h>
#include <uct/ib/sep/verbs/sep_verbs_req.inl>
#include <uct/base/uct_iov.inl>

/**
 * @file sep_verbs_wr.inl
 *
 * Work requests of sep_wr.inl, posted through libibverbs. See there for what
 * they are and their arguments.
 */

#define UCT_SEP_WR_PUT_MAX_INL   UCT_SEP_VERBS_MAX_INLINE
#define UCT_SEP_WR_AM_MAX_INL    UCT_SEP_VERBS_MAX_INLINE
#define UCT_SEP_WR_PUT_SMALL     UCT_SEP_VERBS_MAX_INLINE
#define UCT_SEP_WR_AM_SMALL      (UCT_SEP_VERBS_MAX_INLINE - \
                                  sizeof(uct_sep_am_short_hdr_t))
#define UCT_SEP_WR_RING_SMALL    8
#define UCT_SEP_WR_RMA_MAX_IOV   UCT_SEP_VERBS_MAX_SGE

/* Verbs has no masked atomics, which the others are made from */
#define UCT_SEP_WR_ATOMIC32      UINT64_C(0)
#define UCT_SEP_WR_ATOMIC64      (UCS_BIT(UCT_ATOMIC_OP_ADD) | \
                                  UCS_BIT(UCT_ATOMIC_OP_CSWAP))

/* A work request has inline data or a gather list, not both */
#define UCT_SEP_WR_COPIES_HEADER 1


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_post(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                uct_sep_verbs_req_t *req, unsigned mode)
{
    int ret = uct_sep_verbs_req_complete(req, txwq, mode);

    if (ucs_unlikely(ret != 0)) {
        uct_sep_verbs_post_failed(iface, txwq, ret);
    }

    uct_sep_txwq_advance(txwq, txwq->sw_pi, 1);
    uct_sep_iface_add_cq_credits(iface, -1);
}


/* Posting takes all that is needed */
static UCS_F_ALWAYS_INLINE void uct_sep_wr_reserve(uct_sep_iface_t *iface)
{
}


static UCS_F_ALWAYS_INLINE void uct_sep_wr_unreserve(uct_sep_iface_t *iface)
{
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_empty(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, int remote,
                 uint8_t fm, unsigned mode)
{
    uct_sep_verbs_req_t req;

    /* Verbs has no NOP: always use an RDMA write of no bytes */
    uct_sep_verbs_req_rdma(&req, txwq, MLX5_OPCODE_RDMA_WRITE, 0, 0, fm, mode);
    uct_sep_verbs_req_set_sge(&req, 0, NULL, 0, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, const void *buffer,
               unsigned length, uint64_t remote_addr, uct_rkey_t rkey,
               uint8_t fm, unsigned mode)
{
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_rdma(&req, txwq, MLX5_OPCODE_RDMA_WRITE, remote_addr,
                           rkey, fm, mode);
    uct_sep_verbs_req_set_inline(&req, buffer, length, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     const void *buffer, unsigned length, uint64_t remote_addr,
                     uct_rkey_t rkey, uint8_t fm, unsigned mode)
{
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_put(iface, txwq, buffer, length, remote_addr, rkey, fm, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_set_desc(uct_sep_verbs_req_t *req, const uct_sep_desc_t *desc,
                    uint32_t length, unsigned mode)
{
    uct_sep_verbs_req_set_sge(req, uct_sep_desc_lkey(desc),
                              uct_sep_desc_buffer(desc), length, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_rdma(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, unsigned opcode,
                const uct_sep_desc_t *desc, uint32_t length,
                uint64_t remote_addr, uct_rkey_t rkey, uint8_t fm,
                unsigned mode)
{
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_rdma(&req, txwq, opcode, remote_addr, rkey, fm, mode);
    uct_sep_wr_set_desc(&req, desc, length, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_put_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    uct_sep_desc_t *desc, uint32_t length, unsigned mode)
{
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_rdma(iface, txwq, MLX5_OPCODE_RDMA_WRITE, desc, length,
                    be64toh(desc->super.raddr.raddr),
                    desc->super.raddr.rkey, 0, mode);
    desc->super.end = txwq->sw_pi;
}


/* Gather list; returns the number of entries */
static UCS_F_ALWAYS_INLINE size_t
uct_sep_wr_set_iov(const uct_sep_iface_t *iface, struct ibv_sge *sge,
                   const uct_iov_t *iov, size_t iovcnt)
{
    size_t count = 0;
    size_t i, length;

    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length == 0) {
            continue;
        }

        sge[count].addr   = (uintptr_t)iov[i].buffer;
        sge[count].length = length;
        sge[count].lkey   = uct_sep_bufs_lkey(iface, iov[i].memh);
        ++count;
    }

    return count;
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_rdma_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    unsigned opcode, const uct_iov_t *iov, size_t iovcnt,
                    uint64_t remote_addr, uct_rkey_t rkey, uint8_t fm,
                    unsigned mode)
{
    uct_sep_verbs_req_t req;
    struct ibv_sge sge[UCT_SEP_VERBS_MAX_SGE];
    size_t count;

    uct_sep_verbs_req_rdma(&req, txwq, opcode, remote_addr, rkey, fm, mode);
    count = uct_sep_wr_set_iov(iface, sge, iov, iovcnt);
    uct_sep_verbs_req_set_sge_list(&req, count, sge, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


/* Copy a list, of any length, unlike libmlx5's; returns the place behind it. An
 * entry of no bytes need not have a buffer. */
static UCS_F_ALWAYS_INLINE void *
uct_sep_wr_copy_iov(void *dest, const uct_iov_t *iov, size_t iovcnt)
{
    ucs_iov_iter_t iov_iter;
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        if (uct_iov_get_length(&iov[i]) > 0) {
            ucs_iov_iter_init(&iov_iter);
            dest = UCS_PTR_BYTE_OFFSET(dest,
                                       uct_iov_to_buffer(&iov[i], 1, &iov_iter,
                                                         dest, SIZE_MAX));
        }
    }
    return dest;
}

static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    const uct_iov_t *iov, size_t iovcnt, unsigned length,
                    uint32_t room, uct_sep_ring_tail_t tail, uint8_t fm,
                    unsigned mode)
{
    uint8_t message[UCT_SEP_VERBS_MAX_INLINE];
    void *end;

    end = uct_sep_wr_copy_iov(message, iov, iovcnt);
    memset(end, 0, room - sizeof(tail) - length);
    memcpy(message + room - sizeof(tail), &tail, sizeof(tail));

    uct_sep_wr_put(iface, txwq, message, room, txwq->ring.slot_end - room,
                   txwq->ring.rkey, fm, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_short(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uint64_t header, const void *payload, unsigned length,
                      uint32_t room, uct_sep_ring_tail_t tail, uint8_t fm,
                      unsigned mode)
{
    uct_iov_t iov[] = {
        {.buffer = &header, .length = sizeof(header), .count = 1},
        {.buffer = (void*)payload, .length = length, .count = 1}
    };

    uct_sep_wr_ring_iov(iface, txwq, iov, 2, sizeof(header) + length, room,
                        tail, fm, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uint64_t first, uint64_t second,
                      uct_sep_ring_tail_t tail,
                      unsigned mode)
{
    struct {
        uint64_t            first, second;
        uct_sep_ring_tail_t tail;
    } message = {first, second, tail};

    uct_sep_wr_put_small(iface, txwq, &message, sizeof(message),
                         txwq->ring.slot_end - sizeof(message), txwq->ring.rkey,
                         0, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     const uct_sep_desc_t *desc, uint32_t room, uint8_t fm,
                     unsigned mode)
{
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_rdma(&req, txwq, MLX5_OPCODE_RDMA_WRITE,
                           txwq->ring.slot_end - room, txwq->ring.rkey, fm,
                           mode);
    uct_sep_verbs_req_set_sge(&req, uct_sep_desc_lkey(desc),
                              (uct_sep_am_hdr_t*)uct_sep_desc_buffer(desc) + 1,
                              room, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_ring_copy_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                           uct_sep_desc_t *desc, uint32_t room, unsigned mode)
{
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_ring_copy(iface, txwq, desc, room, 0, mode);
    desc->super.end = txwq->sw_pi;
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                      uct_sep_wr_am_t am, uint64_t header, const void *payload,
                      unsigned length, uint8_t fm, unsigned mode)
{
    uct_sep_am_short_hdr_t hdr = {.super.am_id = am.id, .header = header};
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_send(&req, txwq, am, fm, mode);
    uct_sep_verbs_req_set_inline_two(&req, &hdr, sizeof(hdr), payload, length,
                                     mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short_small(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                            uint8_t id, uint64_t header, const void *payload,
                            unsigned length, uint8_t fm, unsigned mode)
{
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_send_short(iface, txwq, (uct_sep_wr_am_t){.id = id}, header,
                          payload, length, fm, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_short_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                          uct_sep_wr_am_t am, const uct_iov_t *iov,
                          size_t iovcnt, size_t length, uint8_t fm,
                          unsigned mode)
{
    uint8_t message[UCT_SEP_VERBS_MAX_INLINE];
    uct_sep_am_hdr_t *hdr = (void*)message;
    uct_sep_verbs_req_t req;

    hdr->am_id = am.id;
    uct_sep_wr_copy_iov(hdr + 1, iov, iovcnt);
    uct_sep_verbs_req_send(&req, txwq, am, fm, mode);
    uct_sep_verbs_req_set_inline(&req, message, sizeof(*hdr) + length, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                uct_sep_wr_am_t am, const uct_sep_desc_t *desc,
                uint32_t length, uint8_t fm, unsigned mode)
{
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_send(&req, txwq, am, fm, mode);
    uct_sep_wr_set_desc(&req, desc, length, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_copy(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                     uct_sep_desc_t *desc, uint32_t length, unsigned mode)
{
    uct_sep_txwq_count_unsignaled(txwq);
    uct_sep_wr_send(iface, txwq, (uct_sep_wr_am_t){}, desc, length,
                    UCT_SEP_FM_SOLICITED, mode);
    desc->super.end = txwq->sw_pi;
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_send_iov(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                    uct_sep_op_t *op, uct_sep_wr_am_t am, const void *header,
                    unsigned header_length, const uct_iov_t *iov, size_t iovcnt,
                    uint8_t fm, unsigned mode)
{
    uct_sep_desc_t *desc  = ucs_derived_of(op, uct_sep_desc_t);
    uct_sep_am_hdr_t *hdr = uct_sep_desc_buffer(desc);
    uct_sep_verbs_req_t req;
    struct ibv_sge sge[1 + UCT_SEP_AM_MAX_IOV];
    size_t count;

    hdr->am_id = am.id;
    if (header_length > 0) {
        memcpy(hdr + 1, header, header_length);
    }
    sge[0].addr   = (uintptr_t)hdr;
    sge[0].length = sizeof(*hdr) + header_length;
    sge[0].lkey   = uct_sep_desc_lkey(desc);

    uct_sep_verbs_req_send(&req, txwq, am, fm, mode);
    count = uct_sep_wr_set_iov(iface, sge + 1, iov, iovcnt);
    uct_sep_verbs_req_set_sge_list(&req, 1 + count, sge, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_wr_atomic(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                  const uct_sep_wr_atomic_t *atomic, unsigned size,
                  uint64_t remote_addr, uct_rkey_t rkey,
                  const uct_sep_desc_t *desc, uint8_t fm, unsigned mode)
{
    uct_sep_verbs_req_t req;

    uct_sep_verbs_req_atomic(&req, txwq, atomic, remote_addr,
                             uct_sep_rkey_strict(rkey), fm, mode);
    uct_sep_wr_set_desc(&req, desc, size, mode);
    uct_sep_wr_post(iface, txwq, &req, mode);
}

#endif
