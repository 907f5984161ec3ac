/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQ_INL
#define UCT_SEP_CQ_INL

#include <uct/ib/sep/queue/sep_cq.h>
#include <ucs/arch/cpu.h>
#include <ucs/sys/compiler.h>


/** The next completion, or NULL. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *uct_sep_cq_peek(uct_sep_cq_t *cq)
{
    struct mlx5_cqe64 *cqe = cq->next;

    if (ucs_likely((cqe->op_own ^ cq->owner) & MLX5_CQE_OWNER_MASK)) {
        return NULL;
    }

    /* The device writes op_own last */
    ucs_memory_cpu_load_fence();
    return cqe;
}


/** Whether at least @a count completions are there. @a count must be less than
 *  the length. */
static UCS_F_ALWAYS_INLINE int
uct_sep_cq_has(const uct_sep_cq_t *cq, unsigned count)
{
    const struct mlx5_cqe64 *cqe = cq->next + count - 1;
    uint8_t owner                = cq->owner;

    if (cqe >= cq->end) {
        cqe   -= cq->end - cq->start;
        owner ^= MLX5_CQE_OWNER_MASK;
    }

    return !((cqe->op_own ^ owner) & MLX5_CQE_OWNER_MASK);
}


/** Consumer index, not masked. */
static UCS_F_ALWAYS_INLINE uint32_t uct_sep_cq_ci(const uct_sep_cq_t *cq)
{
    return cq->ci + ((uintptr_t)cq->next % UCT_SEP_CQ_TURN_SIZE) /
                    sizeof(*cq->next);
}


/** Tell the device what it may overwrite. */
static UCS_F_ALWAYS_INLINE void uct_sep_cq_publish(uct_sep_cq_t *cq)
{
    ucs_memory_cpu_store_fence();
    cq->dbrec[0] = htobe32(uct_sep_cq_ci(cq) & 0xffffffu);
}


/**
 * Step over the completion @ref uct_sep_cq_peek returned. It stays readable:
 * its credits were not given back yet, so the device will not overwrite it.
 */
static UCS_F_ALWAYS_INLINE void uct_sep_cq_pop(uct_sep_cq_t *cq)
{
    ++cq->next;
    if (ucs_unlikely(((uintptr_t)cq->next % UCT_SEP_CQ_TURN_SIZE) == 0)) {
        cq->ci += UCT_SEP_CQ_TURN;
        if (cq->next == cq->end) {
            cq->next   = cq->start;
            cq->owner ^= MLX5_CQE_OWNER_MASK;
        }
        uct_sep_cq_publish(cq);
    }
}

#endif
