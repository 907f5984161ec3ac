/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef LITMUS_CQE_H
#define LITMUS_CQE_H

/**
 * @file litmus_cqe.h
 *
 * Completion queues: entries and doorbell records of litmus.h's types, and an
 * adapter that writes and overwrites entries.
 */

#include "litmus.h"

#include <endian.h>

#define mlx5_cqe64 litmus_unused_cqe64
#include <infiniband/mlx5dv.h>
#undef mlx5_cqe64

struct mlx5_cqe64 {
    litmus_data<uint32_t> sop_drop_qpn;
    litmus_data<uint32_t> byte_cnt;
    uint8_t               rest[55];
    litmus_word<uint8_t>  op_own;
};

static_assert(sizeof(mlx5_cqe64) == 64, "entry");

#include <uct/ib/sep/base/sep_def.h>

typedef litmus_word<uint32_t> litmus_be32_t;
#define __be32 litmus_be32_t
#include <uct/ib/sep/queue/sep_cq.h>
#undef __be32

#include <uct/ib/sep/queue/sep_cq.inl>

/* As in sep_cq.c */
void uct_sep_cq_end_turn(uct_sep_cq_t *cq)
{
    uct_sep_cq_begin_anew(cq);
}

/** A queue of the last two entries of a turn, so that it soon begins anew. */
struct litmus_cq_world {
    enum {
        LENGTH = 2,
        FIRST  = UCT_SEP_CQ_TURN - LENGTH
    };

    /* Not in the object, which Relacy does not align */
    alignas(2048) static mlx5_cqe64 cqes[UCT_SEP_CQ_TURN];
    litmus_be32_t dbrec[2];

    /** Before the threads run. */
    void init(uct_sep_cq_t *cq)
    {
        memset((void*)cq, 0, sizeof(*cq));
        cq->start  = &cqes[FIRST];
        cq->end    = cq->start + LENGTH;
        cq->next   = cq->start;
        cq->stride = 1;
        cq->dbrec  = dbrec;
        uct_sep_cq_publish(cq);
        for (unsigned i = 0; i < LENGTH; ++i) {
            cq->start[i].op_own = MLX5_CQE_OWNER_MASK;
        }
    }

    /** What the adapter writes: entry i is of queue pair 1 + i % num_qps. */
    void device(unsigned count, unsigned num_qps)
    {
        for (unsigned i = 0; i < count; ++i) {
            mlx5_cqe64 *cqe = &cqes[FIRST + (i % LENGTH)];

            for (;;) {
                uint32_t ci = be32toh(dbrec[0]);
                if (i < (ci / UCT_SEP_CQ_TURN + 1) * LENGTH +
                                (ci % UCT_SEP_CQ_TURN) - FIRST) {
                    break;
                }
                litmus_wait();
            }

            litmus_acquire(); /* It writes because of what it has read */
            cqe->sop_drop_qpn = htobe32(1 + (i % num_qps));
            cqe->byte_cnt     = i;
            litmus_release(); /* Its order */
            cqe->op_own = (i / LENGTH) & MLX5_CQE_OWNER_MASK;
        }
    }
};

mlx5_cqe64 litmus_cq_world::cqes[];

#endif
