/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_txwq.h>

#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <string.h>


/* A WQE index has 16 bits, and differences of indices are signed */
#define UCT_SEP_TXWQ_MAX_LEN  (1u << 15)


static void uct_sep_txwq_clear(uct_sep_txwq_t *txwq)
{
    memset(txwq, 0, sizeof(*txwq));
    uct_sep_ring_tx_close(&txwq->ring);
    ucs_queue_head_init(&txwq->outstanding);
    uct_sep_link_state_init(&txwq->conn);
}

ucs_status_t
uct_sep_txwq_init(uct_sep_txwq_t *txwq, const uct_sep_txwq_mem_t *mem)
{
    unsigned moderation;

    if (!ucs_is_pow2(mem->bb_count) || (mem->bb_count > UCT_SEP_TXWQ_MAX_LEN) ||
        (mem->bb_count < (2 * UCT_SEP_MAX_BB))) {
        ucs_error("send queue of QP 0x%x has %u WQE basic blocks; a power of "
                  "two between %u and %u is needed: set UCX_SEP_TX_QUEUE_LEN",
                  mem->qpn, mem->bb_count, 2 * UCT_SEP_MAX_BB,
                  UCT_SEP_TXWQ_MAX_LEN);
        return UCS_ERR_INVALID_PARAM;
    }

    uct_sep_txwq_clear(txwq);

    /* An operation may start with no credit left and take UCT_SEP_MAX_BB, and
     * the queue of a failed QP must still take the NOP that drains it. */
    txwq->bb_max       = mem->bb_count - UCT_SEP_MAX_BB - 1;
    txwq->credits      = txwq->bb_max;
    txwq->mask         = (mem->bb_count - 1) << UCT_SEP_BB_SHIFT;
    /* Even if all work requests have the maximum length, some are signaled
     * before the queue is full. */
    moderation       = ucs_min(mem->moderation, txwq->bb_max / UCT_SEP_MAX_BB);
    txwq->moderation = (int)ucs_max(1, moderation) - 2;
    txwq->unsignaled = txwq->moderation;
    txwq->start        = mem->sq;
    txwq->end          = UCS_PTR_BYTE_OFFSET(mem->sq,
                                             mem->bb_count * UCT_SEP_BB_SIZE);
    txwq->dbrec        = mem->dbrec;
    txwq->bf           = mem->bf;
    txwq->qpn          = mem->qpn;
    txwq->qpn_ds       = htobe32(mem->qpn << 8);
    txwq->ctrl_write[0] = htobe32(MLX5_OPCODE_RDMA_WRITE);
    txwq->ctrl_write[1] = txwq->qpn_ds | htobe32(3);
    txwq->ctrl_send[0]  = htobe32(MLX5_OPCODE_SEND);
    txwq->ctrl_send[1]  = txwq->qpn_ds | htobe32(2);
    txwq->ctrl_send[2]  = htobe32(UCT_SEP_FM_SOLICITED);
    if (txwq->dbrec != NULL) {
        *txwq->dbrec = 0; /* Posting writes only the index's 16 bits */
    }
    return UCS_OK;
}

void uct_sep_txwq_init_idle(uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_clear(txwq);
    txwq->credits = -1;
}

/* Nobody else knows it yet */
UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_bf_init(uct_sep_bf_t *bf, void *reg, size_t size)
{
    bf->ptr     = reg;
    bf->size    = size;
    bf->sharing = UCT_SEP_BF_SINGLE;
    bf->reg     = reg;
    uct_sep_bf_spinlock_init(&bf->lock);
}

void uct_sep_bf_cleanup(uct_sep_bf_t *bf)
{
    uct_sep_bf_spinlock_destroy(&bf->lock);
}
