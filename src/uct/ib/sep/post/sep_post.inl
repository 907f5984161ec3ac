/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_POST_INL
#define UCT_SEP_POST_INL

#include <uct/ib/sep/post/sep_wqe.inl>
#include <ucs/arch/cpu.h>

/**
 * @file sep_post.inl
 *
 * Hand a work request to the device. The way of posting is a constant in every
 * caller, so there is no branch on it.
 */


/** What the copy in one store overwrites. Code that is compiled for AVX-512
 *  keeps data in zmm16, too; a compiler that does not use the register refuses
 *  its name (GCC: "cannot be clobbered in asm for the current target"). */
#ifdef __AVX512F__
#  define UCT_SEP_BF64_CLOBBERS "memory", "xmm16"
#else
#  define UCT_SEP_BF64_CLOBBERS "memory"
#endif


/**
 * Copy one BB to the BlueFlame buffer. The device wants to see it in one burst,
 * so the copy is of full registers and in order of addresses. Both are aligned
 * to the size of a BB. Nothing keeps the order of stores into the buffer, not
 * on an x86 either: if it arrives in parts, the device reads the work request
 * from memory, where it is already.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_bf_copy_bb(void *dst, const void *src, uct_sep_tx_post_t post)
{
#ifdef __x86_64__
    if (post == UCT_SEP_TX_POST_BF64) {
        /* zmm16: code compiled without AVX-512 does not use it, and it does not
         * slow down SSE code that follows */
        asm volatile("vmovdqa64 (%1), %%zmm16\n\t"
                     "vmovdqa64 %%zmm16, (%0)"
                     :
                     : "r"(dst), "r"(src)
                     : UCT_SEP_BF64_CLOBBERS);
        return;
    }
#endif

    /* SSE, or NEON as in rc_mlx5 */
    volatile uct_sep_seg_t *to = dst;
    const uct_sep_seg_t *from  = src;
    uct_sep_seg_t r0           = from[0];
    uct_sep_seg_t r1           = from[1];
    uct_sep_seg_t r2           = from[2];
    uct_sep_seg_t r3           = from[3];

    UCS_STATIC_ASSERT(UCT_SEP_BB_SIZE == (4 * sizeof(r0)));
    to[0] = r0;
    to[1] = r1;
    to[2] = r2;
    to[3] = r3;
}


/**
 * Write a work request to its place in the send queue.
 *
 * @param segs  Its segments, three at most: a constant number.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_wqe_set_segs(void *wqe, const uct_sep_seg_t *segs, unsigned num_segs)
{
    uct_sep_seg_t *to = wqe;
    unsigned i;

    for (i = 0; i < num_segs; ++i) {
        to[i] = segs[i];
    }
}


/** Write a BB of segments to the BlueFlame buffer. The device ignores what is
 *  behind the last one, which is repeated there. */
static UCS_F_ALWAYS_INLINE void
uct_sep_bf_copy_segs(void *dst, const uct_sep_seg_t *segs, unsigned num_segs)
{
    volatile uct_sep_seg_t *to = dst;
    unsigned i;

    for (i = 0; i < UCT_SEP_DS_PER_BB; ++i) {
        to[i] = segs[(i < num_segs) ? i : (num_segs - 1)];
    }
}


/** Copy a work request to the BlueFlame buffer. */
static UCS_F_ALWAYS_INLINE void
uct_sep_bf_copy(const uct_sep_txwq_t *txwq, void *dst, const void *wqe,
                unsigned num_bb, const uct_sep_seg_t *segs, unsigned num_segs,
                uct_sep_tx_post_t post)
{
    if ((segs != NULL) && (post != UCT_SEP_TX_POST_BF64)) {
        uct_sep_bf_copy_segs(dst, segs, num_segs);
        return;
    }

    uct_sep_bf_copy_bb(dst, wqe, post);
    while (--num_bb > 0) {
        dst = UCS_PTR_BYTE_OFFSET(dst, UCT_SEP_BB_SIZE);
        wqe = UCS_PTR_BYTE_OFFSET(wqe, UCT_SEP_BB_SIZE);
        if (wqe == txwq->end) {
            wqe = txwq->start;
        }
        uct_sep_bf_copy_bb(dst, wqe, post);
    }
}


/**
 * Whether the next work request has to ask for a completion, although nobody
 * waits for it, so that BBs can be reused.
 *
 * @return UCT_SEP_FM_SIGNALED or 0, for the control segment.
 */
static UCS_F_ALWAYS_INLINE uint8_t uct_sep_txwq_moderate(uct_sep_txwq_t *txwq)
{
    if (ucs_unlikely(uct_sep_txwq_count_unsignaled(txwq) < -1)) {
        uct_sep_txwq_count_signaled(txwq);
        return UCT_SEP_FM_SIGNALED;
    }
    return 0;
}


/** The next work request asks for a completion. */
static UCS_F_ALWAYS_INLINE uint8_t uct_sep_txwq_signal(uct_sep_txwq_t *txwq)
{
    uct_sep_txwq_count_signaled(txwq);
    return UCT_SEP_FM_SIGNALED;
}


/** Ring for a work request that is in the send queue. With the lock of the uUAR
 *  held if other threads may ring it; without it, and without a look whether
 *  they may, on the path of a uUAR that one thread rings. */
static UCS_F_ALWAYS_INLINE UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_txwq_ring(const uct_sep_txwq_t *txwq, uct_sep_bf_t *bf, const void *wqe,
                  unsigned num_bb, const uct_sep_seg_t *segs, unsigned num_segs,
                  uct_sep_tx_post_t post)
{
    if (post == UCT_SEP_TX_POST_DB) {
        *(volatile uct_sep_alias_u64_t*)bf->ptr =
                *(const uct_sep_alias_u64_t*)wqe;
        /* For the latency: it need not wait for other stores. Order is a matter
         * of the next doorbell. */
        ucs_memory_bus_store_fence();
    } else {
        uct_sep_bf_copy(txwq, bf->ptr, wqe, num_bb, segs, num_segs, post);
        /* Send off what was gathered, as rc_mlx5 does: nothing on x86, where
         * a full buffer leaves by itself. On AArch64 a barrier, or since UCX
         * 1.18 a hint (DGH). A hint orders nothing. What follows on the same
         * uUAR is behind the fences of the next doorbell, or the next holder
         * of the lock. */
        ucs_memory_bus_cacheline_wc_flush();
    }

    bf->addr ^= (post == UCT_SEP_TX_POST_DB) ? bf->size : UCT_SEP_MAX_WQE;
}


/**
 * Tell the device about the work requests up to an index.
 *
 * @param [in] dbrec   Of the queue, which the caller may have at hand.
 * @param [in] sw_pi   Behind the last one.
 * @param [in] wqe     The last one.
 * @param [in] num_bb Its length; a plain doorbell does not use it.
 * @param [in] segs    What it consists of, if that is at hand, or NULL. Saves
 *                     reading what was just written.
 * @param [in] num_segs Their number.
 * @param [in] post    UCT_SEP_TX_POST_BF, _BF64 or _DB.
 * @param [in] shared  Whether other threads may ring the uUAR as well.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_ring_dbrec(const uct_sep_txwq_t *txwq, uct_sep_bf_t *bf,
                        __be32 *dbrec, uint16_t sw_pi, const void *wqe,
                        unsigned num_bb,
                        const uct_sep_seg_t *segs, unsigned num_segs,
                        uct_sep_tx_post_t post, int shared)
{
    /* The device may read the work request when it sees the doorbell record, of
     * which only the lower half is ever set (PRM: send counter, 16 bits) */
    uct_sep_fence_to_device();
    ((uct_sep_alias_be16_t*)dbrec)[1] = htobe16(sw_pi);

    /* The device reads the doorbell record when rung for a work request
     * that did not come with the doorbell. This fence also drains the BlueFlame
     * buffer of the previous post. AArch64: DMB OSHST as in rc_mlx5 and in the
     * kernel's writel(); libmlx5 has DSB ST, which also waits. */
    ucs_memory_bus_store_fence();

    if (!shared || (bf->sharing == UCT_SEP_BF_SINGLE)) {
        uct_sep_txwq_ring(txwq, bf, wqe, num_bb, segs, num_segs, post);
        return;
    }

    /* Reads it again: a register would have to be saved for it */
    ucs_compiler_fence();
    if (bf->sharing == UCT_SEP_BF_SHARED) {
        uct_sep_bf_spinlock_lock(&bf->lock);
        uct_sep_txwq_ring(txwq, bf, wqe, num_bb, segs, num_segs, post);
        /* The device must see this before what the next holder of the lock
         * writes, perhaps on another processor. To lock takes no fence like
         * libmlx5's (mmio_wc_spinlock()): what that is for was done above, and
         * what the next holder stores is behind its load of the lock. */
        ucs_memory_bus_store_fence();
        uct_sep_bf_spinlock_unlock(&bf->lock);
    } else {
        uct_sep_txwq_ring(txwq, bf, wqe, num_bb, segs, num_segs, post);
        /* What unlocks the worker may be a plain store, which does not flush
         * the BlueFlame buffer. Then the device could see the next thread's
         * work request first (libmlx5, qp.c; UCT_IB_MLX5_MMIO_MODE_BF_POST_MT
         * of UCX). */
        ucs_memory_cpu_wc_fence();
    }
}


/**
 * Post the work request at sw_pi.
 *
 * @param [inout] cq_credits  Of the interface, or NULL if they were taken.
 * @param [in]    dbrec       Of the queue, which the caller may have at hand.
 * @param [in]    pi          sw_pi, which the caller has at hand.
 * @param [in]    num_bb      Its length.
 * @param [in]    segs        What it consists of, see above, or NULL.
 * @param [in]    num_segs    Their number.
 * @param [in]    post        UCT_SEP_TX_POST_BF, _BF64 or _DB.
 * @param [in]    shared      Whether other threads may ring the uUAR as well.
 */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_post(uct_sep_txwq_t *txwq, int32_t *cq_credits,
                  __be32 *dbrec, const void *wqe, uint16_t pi,
                  unsigned num_bb, const uct_sep_seg_t *segs,
                  unsigned num_segs, uct_sep_tx_post_t post, int shared)
{
    uint16_t sw_pi = uct_sep_txwq_advance(txwq, pi, num_bb);

    if (cq_credits != NULL) {
        *cq_credits -= num_bb;
    }
    uct_sep_txwq_ring_dbrec(txwq, txwq->bf, dbrec, sw_pi, wqe, num_bb, segs,
                            num_segs, post, shared);
}


/**
 * Append the work request at sw_pi to the queue's list.
 *
 * @param [inout] cq_credits  Of the interface, or NULL if they were taken.
 * @param [in]    pi          sw_pi, which the caller has at hand.
 * @param [in]    num_bb      Its length.
 *
 * @return Number of work requests in the list.
 */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_txwq_append(uct_sep_txwq_t *txwq, int32_t *cq_credits, uint16_t pi,
                    unsigned num_bb)
{
    uct_sep_txwq_advance(txwq, pi, num_bb);
    if (cq_credits != NULL) {
        *cq_credits -= num_bb;
    }
    return uct_sep_txwq_list_add(txwq, pi);
}

#endif
