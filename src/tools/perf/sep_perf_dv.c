/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_verbs.h>

#include <uct/ib/sep/post/sep_post.inl>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <ucs/sys/sys.h>

#include <stdlib.h>
#include <string.h>

/*
 * Level dv: work requests, doorbells and completions by the transport's own
 * code, without the transport around it. What is the transport's and not needed
 * here, credits for instance, is the threads' loop's business.
 */


int sep_perf_dv_init_cq(sep_perf_cq_t *cq, struct ibv_context *context,
                        unsigned length, const char *name)
{
    if (uct_sep_cq_init(&cq->dv, context, length + UCT_SEP_CQ_HEADROOM,
                        UCT_SEP_CQ_STRIDE_64, uct_sep_cq_create_dv, name) !=
        UCS_OK) {
        return -1;
    }
    if ((uct_sep_qp_table_init(&cq->table) != UCS_OK) ||
        (ucs_spinlock_init(&cq->lock, 0) != UCS_OK)) {
        fprintf(stderr, "sep_perf: memory for a completion queue\n");
        return -1;
    }
    cq->is_open = 1;
    return 0;
}

void sep_perf_dv_cleanup_cq(sep_perf_cq_t *cq)
{
    ucs_spinlock_destroy(&cq->lock);
    uct_sep_qp_table_cleanup(&cq->table);
    uct_sep_cq_cleanup(&cq->dv);
}

int sep_perf_dv_init_qp(sep_perf_qp_t *qp, int has_td)
{
    struct mlx5dv_qp dv_qp = {.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET};
    struct mlx5dv_obj dv   = {};
    uct_sep_txwq_mem_t mem = {};

    dv.qp.in  = qp->qp;
    dv.qp.out = &dv_qp;
    if ((mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP) != 0) ||
        (uct_sep_uuars_get(qp->uuars, &dv_qp, has_td ?
                           UCT_SEP_UUAR_EXCLUSIVE : UCT_SEP_UUAR_DRIVER,
                           &qp->bf) != UCS_OK)) {
        fprintf(stderr, "sep_perf: libmlx5 does not tell where the queue pair "
                "is\n");
        return -1;
    }
    if (qp->is_shared) {
        uct_sep_bf_set_turns(qp->bf);
    }

    mem.sq         = dv_qp.sq.buf;
    mem.bb_count   = dv_qp.sq.wqe_cnt;
    mem.dbrec      = &dv_qp.dbrec[MLX5_SND_DBR];
    mem.bf         = qp->bf;
    mem.qpn        = qp->qp->qp_num;
    mem.moderation = 1;
    if (uct_sep_txwq_init(&qp->txwq, &mem) != UCS_OK) {
        return -1;
    }
    qp->ids = calloc(mem.bb_count, sizeof(*qp->ids));
    if ((qp->ids == NULL) || (ucs_spinlock_init(&qp->lock, 0) != UCS_OK) ||
        (uct_sep_qp_table_add(&qp->cq->table, mem.qpn, &qp->txwq) != UCS_OK)) {
        fprintf(stderr, "sep_perf: memory for a queue pair\n");
        return -1;
    }
    return 0;
}

void sep_perf_dv_cleanup_qp(sep_perf_qp_t *qp)
{
    uct_sep_qp_table_remove(&qp->cq->table, qp->qp->qp_num);
    uct_sep_uuars_put(qp->uuars, qp->bf);
    ucs_spinlock_destroy(&qp->lock);
    free(qp->ids);
}

/* Data behind the segments in front of it. @return Size of the work request in
 * units of 16 bytes */
static UCS_F_ALWAYS_INLINE unsigned
sep_perf_dv_set_data(const sep_perf_sender_t *sender,
                     const uct_sep_txwq_t *txwq, uint8_t *wqe, unsigned offset)
{
    if (sender->is_inline) {
        uct_sep_wqe_set_inl(wqe + offset, sender->bytes);
        uct_sep_txwq_copy(txwq, wqe + offset + UCT_SEP_INL_LEN, sender->buffer,
                          sender->bytes);
        return uct_sep_wqe_ds(offset + UCT_SEP_INL_LEN + sender->bytes);
    }
    uct_sep_wqe_set_data(wqe + offset, sender->buffer, sender->bytes,
                         sender->lkey);
    return (offset / UCT_SEP_DS_SIZE) + 1;
}

/* Write a work request. @return Its length in units of 16 bytes */
static UCS_F_ALWAYS_INLINE unsigned
sep_perf_dv_set_wqe(const sep_perf_sender_t *sender, const uct_sep_txwq_t *txwq,
                    uint8_t *wqe, uint16_t pi, uint8_t fm)
{
    struct mlx5_wqe_atomic_seg *atomic;
    unsigned opcode, ds;

    switch (sender->op) {
    case SEP_MODEL_SEND:
        opcode = MLX5_OPCODE_SEND;
        ds     = sep_perf_dv_set_data(sender, txwq, wqe, UCT_SEP_CTRL_LEN);
        break;
    case SEP_MODEL_ATOMIC:
        opcode            = MLX5_OPCODE_ATOMIC_FA;
        atomic            = (void*)(wqe + UCT_SEP_CTRL_LEN + UCT_SEP_RADDR_LEN);
        atomic->swap_add  = htobe64(1);
        atomic->compare   = 0;
        uct_sep_wqe_set_raddr(wqe + UCT_SEP_CTRL_LEN, sender->remote,
                              sender->rkey);
        ds = sep_perf_dv_set_data(sender, txwq, wqe, UCT_SEP_CTRL_LEN +
                                  UCT_SEP_RADDR_LEN + sizeof(*atomic));
        break;
    default:
        opcode = (sender->op == SEP_MODEL_READ) ? MLX5_OPCODE_RDMA_READ :
                                                  MLX5_OPCODE_RDMA_WRITE;
        uct_sep_wqe_set_raddr(wqe + UCT_SEP_CTRL_LEN, sender->remote,
                              sender->rkey);
        ds = sep_perf_dv_set_data(sender, txwq, wqe, UCT_SEP_CTRL_LEN +
                                  UCT_SEP_RADDR_LEN);
        break;
    }
    uct_sep_wqe_set_ctrl(txwq, wqe, pi, opcode, 0, ds, fm);
    return ds;
}

static UCS_F_ALWAYS_INLINE void
sep_perf_dv_post_list(sep_perf_thread_t *thread, unsigned count)
{
    const sep_perf_sender_t *sender = thread->priv;
    sep_perf_qp_t *qp               = sender->qp;
    uct_sep_txwq_t *txwq            = &qp->txwq;
    uint32_t mask                   = txwq->mask >> UCT_SEP_BB_SHIFT;
    uint16_t pi                     = txwq->sw_pi;
    unsigned left                   = count;
    unsigned covered, num_bb;
    uint8_t *wqe;

    do {
        covered = sep_perf_thread_next(thread);
        wqe     = uct_sep_txwq_bb(txwq, pi);
        num_bb  = uct_sep_wqe_num_bb(sep_perf_dv_set_wqe(
                sender, txwq, wqe, pi, (covered > 0) ? UCT_SEP_FM_SIGNALED :
                                                       0));
        qp->ids[pi & mask] = SEP_PERF_ID(thread->index, covered);
        pi                += num_bb;
    } while (--left > 0);

    txwq->sw_pi = pi;
    if ((count == 1) && (sender->post == UCT_SEP_TX_POST_BF)) {
        uct_sep_txwq_ring_dbrec(txwq, qp->bf, txwq->dbrec, pi, wqe, num_bb,
                                NULL, 0, UCT_SEP_TX_POST_BF, 1);
    } else {
        uct_sep_txwq_ring_dbrec(txwq, qp->bf, txwq->dbrec, pi, wqe, num_bb,
                                NULL, 0, UCT_SEP_TX_POST_DB, 1);
    }
}

static int sep_perf_dv_post(sep_perf_thread_t *thread, unsigned count)
{
    sep_perf_sender_t *sender = thread->priv;

    if (sender->qp->is_shared) {
        ucs_spin_lock(&sender->qp->lock);
        sep_perf_dv_post_list(thread, count);
        ucs_spin_unlock(&sender->qp->lock);
    } else {
        sep_perf_dv_post_list(thread, count);
    }
    return 0;
}

static int sep_perf_dv_completion(const sep_perf_thread_t *thread,
                                  const sep_perf_cq_t *cq,
                                  const struct mlx5_cqe64 *cqe)
{
    uint32_t key         = UCT_SEP_QP_KEY_CQE(cqe);
    uct_sep_txwq_t *txwq = uct_sep_qp_table_find_first(&cq->table, key);
    const sep_perf_qp_t *qp;
    uint32_t id;

    if (ucs_unlikely(txwq == NULL)) {
        txwq = uct_sep_qp_table_find_next(&cq->table, key);
        if (txwq == NULL) {
            fprintf(stderr, "sep_perf: a completion of nobody\n");
            return -1;
        }
    }

    qp = ucs_container_of(txwq, sep_perf_qp_t, txwq);
    id = qp->ids[be16toh(cqe->wqe_counter) & (txwq->mask >> UCT_SEP_BB_SHIFT)];
    if (ucs_unlikely((cqe->op_own >> 4) != MLX5_CQE_REQ)) {
        fprintf(stderr, "sep_perf: a message of thread %u failed: syndrome "
                "0x%x\n", SEP_PERF_ID_THREAD(id),
                ((const struct mlx5_err_cqe*)cqe)->syndrome);
        return -1;
    }
    sep_perf_thread_done(&thread->group->threads[SEP_PERF_ID_THREAD(id)],
                         SEP_PERF_ID_COVERED(id));
    return 0;
}

static int
sep_perf_dv_poll_all(const sep_perf_thread_t *thread, sep_perf_cq_t *cq)
{
    const struct mlx5_cqe64 *cqe;

    while ((cqe = uct_sep_cq_peek(&cq->dv)) != NULL) {
        if (sep_perf_dv_completion(thread, cq, cqe) != 0) {
            return -1;
        }
        uct_sep_cq_pop(&cq->dv, cqe, UCT_SEP_CQ_STRIDE_64);
    }
    return 0;
}

static int sep_perf_dv_poll(sep_perf_thread_t *thread)
{
    const sep_perf_sender_t *sender = thread->priv;
    sep_perf_cq_t *cq               = sender->qp->cq;
    int ret;

    if (!cq->is_shared) {
        return sep_perf_dv_poll_all(thread, cq);
    }

    ucs_spin_lock(&cq->lock);
    ret = sep_perf_dv_poll_all(thread, cq);
    ucs_spin_unlock(&cq->lock);
    return ret;
}

const sep_perf_api_t sep_perf_dv_api = {
    .post = sep_perf_dv_post,
    .poll = sep_perf_dv_poll
};
