/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_TXWQ_H
#define UCT_SEP_TXWQ_H

#include <uct/ib/sep/base/sep_def.h>
#include <uct/ib/sep/base/sep_fence.h>
#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/base/sep_rkey.h>
#include <uct/ib/sep/ep/state/sep_ep_state.h>
#include <uct/ib/sep/iface/state/sep_fc_state.h>
#include <uct/ib/sep/ring/sep_ring.h>
#include <ucs/arch/atomic.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue_types.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @file sep_txwq.h
 *
 * Send queue of one RC queue pair. Indices count BBs, are 16 bits and wrap;
 * the queue's length is a power of two not larger than 2^15, so differences are
 * always right.
 */

/** Which threads ring a uUAR, in order of what that costs. */
enum {
    UCT_SEP_BF_SINGLE, /**< One */
    UCT_SEP_BF_TURNS,  /**< Those that use the worker in turn */
    UCT_SEP_BF_SHARED  /**< Several, under the lock */
};


/** For a uUAR that several threads ring. */
UCT_SEP_SPINLOCK_DEFINE(uct_sep_bf_spinlock)


/**
 * BlueFlame register (uUAR), shared by all send queues that ring it. It has two
 * buffers used in turn, so that write-combining never merges two work requests.
 */
typedef struct uct_sep_bf {
    union {
        /** Buffer or doorbell for the next work request */
        void       *ptr UCT_SEP_GUARDED_BY(uct_sep_bf_spinlock);
        uintptr_t  addr UCT_SEP_GUARDED_BY(uct_sep_bf_spinlock);
    };
    size_t         size;      /**< Of one buffer (half of PRM log_bf_reg_size),
                                   or 0 if there is only a doorbell */
    uint8_t        sharing;   /**< UCT_SEP_BF_xx */
    uct_sep_bf_spinlock_t lock; /**< Needed if UCT_SEP_BF_SHARED */
    void           *reg;      /**< First buffer */
} uct_sep_bf_t;


/**
 * Subtracted from uct_sep_txwq_t::credits so that operations find none and take
 * the slow path, see uct_sep_txwq_set_fence().
 */
#define UCT_SEP_TXWQ_FENCE_BIAS  (1 << 30)


/** Subtracted from uct_sep_txwq_t::credits for good: uct_sep_txwq_block(). */
#define UCT_SEP_TXWQ_BLOCK_BIAS  (1 << 29)


/**
 * Value of uct_sep_txwq_t::unsignaled: the last work request has asked for a
 * completion, and the next one will, because a flush is expected to follow it.
 * Counting down never gets this low.
 */
#define UCT_SEP_TXWQ_EXPECT_FLUSH  (-2)


/** Flags of @ref uct_sep_txwq_t. */
enum {
    /** Peer can receive, says the connection manager (under the async lock). */
    UCT_SEP_TXWQ_FLAG_ESTABLISHED = 1 << 0,
    /** Endpoints post to it. This flag and the following: main thread only. */
    UCT_SEP_TXWQ_FLAG_ACTIVE      = 1 << 1,
    /** QP is in error; only completions are still taken from it. */
    UCT_SEP_TXWQ_FLAG_RETIRED     = 1 << 2,
    /** A fence must be posted before the next operation. */
    UCT_SEP_TXWQ_FLAG_FENCE       = 1 << 3,
    /** Endpoints wait, or have waited, for completions. */
    UCT_SEP_TXWQ_FLAG_WAITING     = 1 << 4,
    /** Work requests are flushed one at a time: the last flush was expected. */
    UCT_SEP_TXWQ_FLAG_EXPECT      = 1 << 5,

    /** The QP on the shared receive queue can receive, since it is in RTR:
     *  before it is destroyed it has to be flushed. One that never was there
     *  has taken no receives, and nobody says that it has given them back. Set
     *  under the async lock. */
    UCT_SEP_TXWQ_FLAG_CONNECTED   = 1 << 6,
    /** Puts use strict keys: sep_strict.h. */
    UCT_SEP_TXWQ_FLAG_STRICT      = 1 << 7,
    /** With any of these, credits are less by UCT_SEP_TXWQ_FENCE_BIAS. */
    UCT_SEP_TXWQ_FLAGS_BIASED     = UCT_SEP_TXWQ_FLAG_FENCE |
                                    UCT_SEP_TXWQ_FLAG_STRICT,
    /** With any of these, a completion does more than finish operations and
     *  give back credits. */
    UCT_SEP_TXWQ_FLAGS_FOLLOW_UP  = UCT_SEP_TXWQ_FLAG_RETIRED |
                                    UCT_SEP_TXWQ_FLAG_WAITING
};


/** Send queue. Posting, completing and flushing touch only the first cache
 *  line, active messages and copies the second one, too. */
typedef struct uct_sep_txwq {
    int32_t          credits;      /**< BBs that may be posted after the next
                                        operation has started: negative if none
                                        can start */
    int32_t          unsignaled;   /**< Work requests, after the next one, that
                                        need not ask for a completion: negative
                                        if the next one has to */
    uint16_t         sw_pi;        /**< Index of the next BB */
    uint16_t         hw_ci;        /**< Behind the last completed BB */
    uint32_t         mask;         /**< Length of the queue, less a BB, in
                                        bytes */
    __be32           qpn_ds;       /**< QP number as in the control segment */
    int16_t          moderation;   /**< What unsignaled is set to by a signaled
                                        work request */
    uint8_t          flags;        /**< UCT_SEP_TXWQ_FLAG_xx */
    void             *start;       /**< First BB */
    union {
        __be32       *dbrec;       /**< Send doorbell record */
        struct ibv_qp *qp;         /**< Through libibverbs */
    };
    uct_sep_bf_t     *bf;          /**< Where to ring */
    ucs_queue_head_t outstanding;  /**< uct_sep_op_t, in order of posting */

    uct_sep_fc_state_t fc;         /**< Flow control of active messages */

    /** Control segments, apart from the index, of work requests that only ask
     *  for what most do: an RDMA write of one piece of memory, and a solicited
     *  send of one */
    uct_sep_seg_t    ctrl_write;
    uct_sep_seg_t    ctrl_send;

    uct_sep_ring_tx_t ring;        /**< Where short active messages are
                                        written, if the peer has offered it:
                                        sep_eager.h */
    void             *end;         /**< Behind the last BB */
    uint16_t         bb_max;       /**< Credits of an empty queue */
    uint16_t         strict_pi;    /**< Behind what strict puts must come after
                                        */
    uint16_t         reported_ci;  /**< hw_ci when the interface last reported
                                        what has completed */
    uint16_t         last_pi;      /**< Index of the last work request */
    uint16_t         list_count;   /**< Work requests that the device has not
                                        been told about: sep_postlist.h */
    ucs_list_link_t  unrung;       /**< In uct_sep_iface_t if list_count is not
                                        0 */
    uint32_t         qpn;          /**< QP number */
    struct uct_sep_eager_peer *eager; /**< What is known of its rings; NULL as
                                           long as nothing is */
    struct uct_sep_cq_member *cq_member; /**< Gets its completions if the
                                              completion queue is shared */
    uct_sep_link_state_t conn;     /**< Its connection */
} uct_sep_txwq_t;

static_assert(offsetof(uct_sep_txwq_t, fc) <= 64, "hot part of the txwq");
static_assert(offsetof(uct_sep_txwq_t, ring) <= 128, "second line of the txwq");
static_assert(offsetof(uct_sep_txwq_t, end) <= 192, "third line of the txwq");


/** Memory a send queue works on. */
typedef struct uct_sep_txwq_mem {
    void         *sq;        /**< Aligned to UCT_SEP_BB_SIZE */
    unsigned     bb_count;   /**< Power of two, 2 * UCT_SEP_MAX_BB at least */
    __be32       *dbrec;
    uct_sep_bf_t *bf;        /**< Set up already */
    uint32_t     qpn;
    unsigned     moderation; /**< At least one of this many work requests asks
                                  for a completion; limited to a fraction of the
                                  queue */
} uct_sep_txwq_mem_t;


/**
 * Set up an empty queue.
 *
 * @param [out] txwq  Queue.
 * @param [in]  mem   Memory it works on; remains the caller's.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after an error message, if the
 *         queue's length is not usable.
 */
ucs_status_t uct_sep_txwq_init(uct_sep_txwq_t *txwq,
                               const uct_sep_txwq_mem_t *mem);


/**
 * Set up the queue that endpoints without a connection point to: it never has
 * credits, so that every operation takes the slow path.
 */
void uct_sep_txwq_init_idle(uct_sep_txwq_t *txwq);


/*
 * What other rooms do to a queue
 */

/** A work request of @a num_bb BBs is at @a pi, which is sw_pi.
 *
 * @return Where the next one goes. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_txwq_advance(uct_sep_txwq_t *txwq, uint16_t pi, unsigned num_bb)
{
    uint16_t sw_pi = pi + num_bb;

    txwq->sw_pi    = sw_pi;
    txwq->credits -= num_bb;
    return sw_pi;
}


/** All BBs up to an index have completed.
 *
 * @return How many those are. */
static UCS_F_ALWAYS_INLINE uint16_t
uct_sep_txwq_complete(uct_sep_txwq_t *txwq, uint16_t end)
{
    uint16_t num_bb = end - txwq->hw_ci;

    txwq->hw_ci    = end;
    txwq->credits += num_bb;
    return num_bb;
}


/** @return How many BBs have completed since the last call; right up to
 *          65535. */
static inline uint16_t uct_sep_txwq_report(uct_sep_txwq_t *txwq)
{
    uint16_t num_bb = txwq->hw_ci - txwq->reported_ci;

    txwq->reported_ci = txwq->hw_ci;
    return num_bb;
}


/** The next work request does not ask for a completion, for which there is
 *  room: uct_sep_txwq_t::unsignaled. */
static UCS_F_ALWAYS_INLINE int32_t
uct_sep_txwq_count_unsignaled(uct_sep_txwq_t *txwq)
{
    return --txwq->unsignaled;
}


/** The next work request asks for a completion. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_count_signaled(uct_sep_txwq_t *txwq)
{
    txwq->unsignaled = txwq->moderation;
}


/** The next work request asks for a completion, and
 *  uct_sep_txwq_count_unsignaled() will be called for it. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_precount_signaled(uct_sep_txwq_t *txwq)
{
    txwq->unsignaled = txwq->moderation + 1;
}


/** A flush is expected to follow the next work request as well. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_expect_flush(uct_sep_txwq_t *txwq)
{
    txwq->unsignaled = UCT_SEP_TXWQ_EXPECT_FLUSH;
}


/** Set UCT_SEP_TXWQ_FLAG_xx, apart from those of
 *  UCT_SEP_TXWQ_FLAGS_BIASED. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_set_flags(uct_sep_txwq_t *txwq, uint8_t flags)
{
    txwq->flags |= flags;
}


/** Clear them. */
static UCS_F_ALWAYS_INLINE void
uct_sep_txwq_clear_flags(uct_sep_txwq_t *txwq, uint8_t flags)
{
    txwq->flags &= ~flags;
}


/** Add the work request at @a pi to the list the device has not been told
 *  about, which the caller keeps.
 *
 * @return Their number. */
static UCS_F_ALWAYS_INLINE unsigned
uct_sep_txwq_list_add(uct_sep_txwq_t *txwq, uint16_t pi)
{
    txwq->last_pi = pi;
    return ++txwq->list_count;
}


/** Put a queue with such a list where the caller keeps those. */
static inline void
uct_sep_txwq_link_unrung(uct_sep_txwq_t *txwq, ucs_list_link_t *head)
{
    ucs_list_add_tail(head, &txwq->unrung);
}


/** The device has been told. */
static UCS_F_ALWAYS_INLINE void uct_sep_txwq_list_end(uct_sep_txwq_t *txwq)
{
    txwq->list_count = 0;
    ucs_list_del(&txwq->unrung);
}


/** @return Whether the last work request has asked for a completion. */
static inline int uct_sep_txwq_is_signaled(const uct_sep_txwq_t *txwq)
{
    return (txwq->unsignaled == txwq->moderation) ||
           (txwq->unsignaled == UCT_SEP_TXWQ_EXPECT_FLUSH);
}


/** @return Whether all that was posted has completed. */
static inline int uct_sep_txwq_is_empty(const uct_sep_txwq_t *txwq)
{
    return txwq->hw_ci == txwq->sw_pi;
}


/** @return Credits, regardless of a fence. */
static inline int32_t uct_sep_txwq_credits(const uct_sep_txwq_t *txwq)
{
    return txwq->credits + ((txwq->flags & UCT_SEP_TXWQ_FLAGS_BIASED) ?
                            UCT_SEP_TXWQ_FENCE_BIAS : 0);
}


/** @return Whether an operation can start, regardless of a fence. */
static inline int uct_sep_txwq_has_credits(const uct_sep_txwq_t *txwq)
{
    return uct_sep_txwq_credits(txwq) >= 0;
}


/** Let nobody post any more who looks for credits, as the peer's queue pair is
 *  gone. */
static inline void uct_sep_txwq_block(uct_sep_txwq_t *txwq)
{
    if (uct_sep_txwq_credits(txwq) > -(UCT_SEP_TXWQ_BLOCK_BIAS / 2)) {
        txwq->credits -= UCT_SEP_TXWQ_BLOCK_BIAS;
    }
}


/**
 * Set up a uUAR that one thread uses.
 *
 * @param size Size of one buffer, 0 if there is no BlueFlame.
 */
void uct_sep_bf_init(uct_sep_bf_t *bf, void *reg, size_t size);


/** Release what belongs to it. */
void uct_sep_bf_cleanup(uct_sep_bf_t *bf);


/** Several threads use it in turn, unless it is shared anyway: another worker
 *  may come to that meanwhile. */
static inline void uct_sep_bf_set_turns(uct_sep_bf_t *bf)
{
    ucs_atomic_cswap8(&bf->sharing, UCT_SEP_BF_SINGLE, UCT_SEP_BF_TURNS);
}


/** Have operations find no credits: set one of UCT_SEP_TXWQ_FLAGS_BIASED. */
static inline void uct_sep_txwq_bias(uct_sep_txwq_t *txwq, uint8_t flag)
{
    if (!(txwq->flags & UCT_SEP_TXWQ_FLAGS_BIASED)) {
        txwq->credits -= UCT_SEP_TXWQ_FENCE_BIAS;
    }
    txwq->flags |= flag;
}


/** Undo it. */
static inline void uct_sep_txwq_unbias(uct_sep_txwq_t *txwq, uint8_t flag)
{
    txwq->flags &= ~flag;
    if (!(txwq->flags & UCT_SEP_TXWQ_FLAGS_BIASED)) {
        txwq->credits += UCT_SEP_TXWQ_FENCE_BIAS;
    }
}


/** Have puts use strict keys, from the next one on: sep_strict.h. */
static inline void uct_sep_txwq_set_strict(uct_sep_txwq_t *txwq)
{
    if (txwq->bb_max == 0) {
        return; /* The idle queue: nothing was written */
    }

    txwq->strict_pi = txwq->sw_pi;
    uct_sep_txwq_bias(txwq, UCT_SEP_TXWQ_FLAG_STRICT);
}


/** Have the next operation find no credits, and post a fence first. */
static inline void uct_sep_txwq_set_fence(uct_sep_txwq_t *txwq)
{
    /* Work requests execute in order, but the next one does not wait for the
     * answers to reads and atomics. Nothing outstanding, nothing to do. */
    if (!uct_sep_txwq_is_empty(txwq)) {
        uct_sep_txwq_bias(txwq, UCT_SEP_TXWQ_FLAG_FENCE);
    }

    if (uct_sep_rkey_is_order_relaxed()) {
        uct_sep_txwq_set_strict(txwq);
    }
}


END_C_DECLS

#endif
