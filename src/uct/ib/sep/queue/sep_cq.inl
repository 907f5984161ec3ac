/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CQ_INL
#define UCT_SEP_CQ_INL

#include <uct/ib/sep/base/sep_fence.h>
#include <uct/ib/sep/queue/sep_cq.h>
#include <ucs/sys/compiler.h>


/** The next completion, at @a cqe, or NULL. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_sep_cq_peek_at(const uct_sep_cq_t *cq, struct mlx5_cqe64 *cqe)
{
    if (ucs_likely((cqe->op_own ^ cq->owner) & MLX5_CQE_OWNER_MASK)) {
        return NULL;
    }

    /* The device writes op_own last */
    uct_sep_fence_from_device();
    return cqe;
}


/** The next completion, or NULL. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_sep_cq_peek(const uct_sep_cq_t *cq)
{
    return uct_sep_cq_peek_at(cq, cq->next);
}


/** Whether at least @a count completions are there. @a count must be less than
 *  the length. Nothing in them is read for that, so there is no fence. */
static UCS_F_ALWAYS_INLINE int
uct_sep_cq_has(const uct_sep_cq_t *cq, unsigned count)
{
    const struct mlx5_cqe64 *cqe = cq->next + (count - 1) * cq->stride;
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
    return cq->ci + ((uintptr_t)cq->next % UCT_SEP_CQ_TURN_SIZE(cq->stride)) /
                    (sizeof(*cq->next) * cq->stride);
}


/** Tell the device what it may overwrite. */
static UCS_F_ALWAYS_INLINE void uct_sep_cq_publish(uct_sep_cq_t *cq)
{
    /* All of them have been read, or copied to others */
    uct_sep_fence_give_back();
    cq->dbrec[0] = htobe32(uct_sep_cq_ci(cq) & 0xffffffu);
}


/** Body of @ref uct_sep_cq_end_turn, which test/litmus runs as well. */
static UCS_F_ALWAYS_INLINE void uct_sep_cq_begin_anew(uct_sep_cq_t *cq)
{
    cq->ci += UCT_SEP_CQ_TURN;
    if (cq->next == cq->end) {
        cq->next   = cq->start;
        cq->owner ^= MLX5_CQE_OWNER_MASK;
    }
    uct_sep_cq_publish(cq);
}


/** Where the completion behind @a cqe is, unless that is the queue's last. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_sep_cq_next(const struct mlx5_cqe64 *cqe, unsigned stride)
{
    return (struct mlx5_cqe64*)cqe + stride;
}


/** Whether a completion is the first of a turn. */
static UCS_F_ALWAYS_INLINE int
uct_sep_cq_is_first(const struct mlx5_cqe64 *cqe, unsigned stride)
{
    return ((uintptr_t)cqe % UCT_SEP_CQ_TURN_SIZE(stride)) ==
           (sizeof(*cqe) * (stride - 1));
}


/** A turn has ended with the completion before cq->next. */
void uct_sep_cq_end_turn(uct_sep_cq_t *cq);


/** Step over completions, of which none is the last of a turn, to the one at
 *  @a next. */
static UCS_F_ALWAYS_INLINE void
uct_sep_cq_set_next(uct_sep_cq_t *cq, struct mlx5_cqe64 *next)
{
    cq->next = next;
}


/**
 * Step over the completion @a cqe, which @ref uct_sep_cq_peek returned. It
 * stays readable until as many others have come as the queue holds: as long as
 * nobody progresses, none of these can, for its credits, or its receive, were
 * not given back yet. A handler of a message in a completion that progresses
 * has to copy the message if it goes on for that long (docs/decisions.md).
 *
 * @param stride  Of the queue, a constant.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_cq_pop(uct_sep_cq_t *cq, const struct mlx5_cqe64 *cqe, unsigned stride)
{
    cq->next = uct_sep_cq_next(cqe, stride);
    if (ucs_unlikely(uct_sep_cq_is_first(cq->next, stride))) {
        uct_sep_cq_end_turn(cq);
    }
}


/** Whether data of the operation is in a completion. */
static UCS_F_ALWAYS_INLINE int
uct_sep_cqe_has_data(const struct mlx5_cqe64 *cqe)
{
    return (cqe->op_own & (MLX5_INLINE_SCATTER_32 | MLX5_INLINE_SCATTER_64)) !=
           0;
}


/** The data: up to 32 bytes in the first half of a completion of 64 bytes, up
 *  to 64 in front of it in one of 128 bytes (mlx5dv.h). */
static UCS_F_ALWAYS_INLINE const void *
uct_sep_cqe_data(const struct mlx5_cqe64 *cqe)
{
    return (cqe->op_own & MLX5_INLINE_SCATTER_32) ? cqe : (cqe - 1);
}

#endif
