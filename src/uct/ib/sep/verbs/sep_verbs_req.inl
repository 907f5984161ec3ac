/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_VERBS_REQ_INL
#define UCT_SEP_VERBS_REQ_INL

#include <uct/ib/sep/post/sep_post.inl>
#include <uct/ib/sep/verbs/sep_verbs.h>

/**
 * @file sep_verbs_req.inl
 *
 * A work request in three steps: what it does, what it does it with, complete.
 * libibverbs has two interfaces for that, and the mode of a row (sep_ops.h)
 * chooses one. ibv_post_send() takes a work request as a whole. With
 * UCT_SEP_OPS_WR, libmlx5 writes each step to the queue as it comes, from
 * ibv_wr_start() to ibv_wr_complete().
 */


/** A work request that is being made. */
typedef struct {
    struct ibv_qp_ex   *qp_ex; /**< With UCT_SEP_OPS_WR; else all below */
    struct ibv_send_wr wr;
    struct ibv_sge     sge[2];
} uct_sep_verbs_req_t;


static UCS_F_ALWAYS_INLINE unsigned uct_sep_verbs_req_flags(uint8_t fm)
{
    return ((fm & UCT_SEP_FM_SIGNALED) ? IBV_SEND_SIGNALED : 0) |
           ((fm & UCT_SEP_FM_SOLICITED) ? IBV_SEND_SOLICITED : 0) |
           ((fm & UCT_SEP_FM_FENCE) ? IBV_SEND_FENCE : 0);
}


static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_start(uct_sep_verbs_req_t *req, const uct_sep_txwq_t *txwq,
                        uint8_t fm, unsigned mode)
{
    if (mode & UCT_SEP_OPS_WR) {
        req->qp_ex = ucs_container_of(txwq->qp, struct ibv_qp_ex, qp_base);
        ibv_wr_start(req->qp_ex);
        req->qp_ex->wr_id    = (uint16_t)(txwq->sw_pi + 1);
        req->qp_ex->wr_flags = uct_sep_verbs_req_flags(fm);
    } else {
        req->wr.wr_id      = (uint16_t)(txwq->sw_pi + 1);
        req->wr.next       = NULL;
        req->wr.send_flags = uct_sep_verbs_req_flags(fm);
    }
}


/** RDMA write or read. */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_rdma(uct_sep_verbs_req_t *req, const uct_sep_txwq_t *txwq,
                       unsigned opcode, uint64_t remote_addr, uct_rkey_t rkey,
                       uint8_t fm, unsigned mode)
{
    int is_write = (opcode == MLX5_OPCODE_RDMA_WRITE);
    uint32_t key = uct_sep_rkey_value(rkey);

    uct_sep_verbs_req_start(req, txwq, fm, mode);
    if (!(mode & UCT_SEP_OPS_WR)) {
        req->wr.opcode              = is_write ? IBV_WR_RDMA_WRITE :
                                                 IBV_WR_RDMA_READ;
        req->wr.wr.rdma.remote_addr = remote_addr;
        req->wr.wr.rdma.rkey        = key;
    } else if (is_write) {
        ibv_wr_rdma_write(req->qp_ex, key, remote_addr);
    } else {
        ibv_wr_rdma_read(req->qp_ex, key, remote_addr);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_send(uct_sep_verbs_req_t *req, const uct_sep_txwq_t *txwq,
                       uct_sep_wr_am_t am, uint8_t fm, unsigned mode)
{
    uct_sep_verbs_req_start(req, txwq, fm, mode);
    if (!(mode & UCT_SEP_OPS_WR)) {
        req->wr.opcode = am.is_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        if (am.is_imm) {
            req->wr.imm_data = htobe32(am.imm);
        }
    } else if (am.is_imm) {
        ibv_wr_send_imm(req->qp_ex, htobe32(am.imm));
    } else {
        ibv_wr_send(req->qp_ex);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_atomic(uct_sep_verbs_req_t *req, const uct_sep_txwq_t *txwq,
                         const uct_sep_wr_atomic_t *atomic,
                         uint64_t remote_addr, uct_rkey_t rkey, uint8_t fm,
                         unsigned mode)
{
    int is_cswap = (atomic->opcode == MLX5_OPCODE_ATOMIC_CS);
    uint32_t key = uct_sep_rkey_value(rkey);

    uct_sep_verbs_req_start(req, txwq, fm, mode);
    if (!(mode & UCT_SEP_OPS_WR)) {
        req->wr.opcode                = is_cswap ? IBV_WR_ATOMIC_CMP_AND_SWP :
                                                   IBV_WR_ATOMIC_FETCH_AND_ADD;
        req->wr.wr.atomic.remote_addr = remote_addr;
        req->wr.wr.atomic.rkey        = key;
        req->wr.wr.atomic.compare_add = is_cswap ? atomic->compare :
                                                   atomic->value;
        req->wr.wr.atomic.swap        = atomic->value;
    } else if (is_cswap) {
        ibv_wr_atomic_cmp_swp(req->qp_ex, key, remote_addr, atomic->compare,
                              atomic->value);
    } else {
        ibv_wr_atomic_fetch_add(req->qp_ex, key, remote_addr, atomic->value);
    }
}


/** Gather list; @a sge is the caller's until the work request is complete. */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_set_sge_list(uct_sep_verbs_req_t *req, size_t count,
                               struct ibv_sge *sge, unsigned mode)
{
    if (mode & UCT_SEP_OPS_WR) {
        ibv_wr_set_sge_list(req->qp_ex, count, sge);
    } else {
        req->wr.sg_list = sge;
        req->wr.num_sge = count;
    }
}


static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_set_sge(uct_sep_verbs_req_t *req, uint32_t lkey,
                          const void *buffer, uint32_t length, unsigned mode)
{
    if (mode & UCT_SEP_OPS_WR) {
        ibv_wr_set_sge(req->qp_ex, lkey, (uintptr_t)buffer, length);
    } else {
        req->sge[0] = (struct ibv_sge){(uintptr_t)buffer, length, lkey};
        uct_sep_verbs_req_set_sge_list(req, 1, req->sge, mode);
    }
}


/** Inline data. */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_set_inline(uct_sep_verbs_req_t *req, const void *buffer,
                             size_t length, unsigned mode)
{
    if (mode & UCT_SEP_OPS_WR) {
        ibv_wr_set_inline_data(req->qp_ex, (void*)buffer, length);
    } else {
        uct_sep_verbs_req_set_sge(req, 0, buffer, length, mode);
        req->wr.send_flags |= IBV_SEND_INLINE;
    }
}


/** Inline data of two pieces, of which the second may be empty. */
static UCS_F_ALWAYS_INLINE void
uct_sep_verbs_req_set_inline_two(uct_sep_verbs_req_t *req, const void *first,
                                 size_t first_length, const void *second,
                                 size_t second_length, unsigned mode)
{
    size_t count = (second_length > 0) ? 2 : 1;

    if (mode & UCT_SEP_OPS_WR) {
        struct ibv_data_buf list[] = {{(void*)first, first_length},
                                      {(void*)second, second_length}};

        ibv_wr_set_inline_data_list(req->qp_ex, count, list);
    } else {
        uct_sep_verbs_req_set_inline(req, first, first_length, mode);
        req->sge[1]     = (struct ibv_sge){(uintptr_t)second, second_length, 0};
        req->wr.num_sge = count;
    }
}


/** Post it. Returns 0, or an errno. */
static UCS_F_ALWAYS_INLINE int
uct_sep_verbs_req_complete(uct_sep_verbs_req_t *req, const uct_sep_txwq_t *txwq,
                           unsigned mode)
{
    struct ibv_send_wr *bad_wr;

    return (mode & UCT_SEP_OPS_WR) ? ibv_wr_complete(req->qp_ex) :
                                     ibv_post_send(txwq->qp, &req->wr, &bad_wr);
}

#endif
