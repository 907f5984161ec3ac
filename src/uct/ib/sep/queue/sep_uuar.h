/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_UUAR_H
#define UCT_SEP_UUAR_H

#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/queue/sep_txwq.h>
#include <ucs/arch/cpu.h>
#include <ucs/datastruct/list.h>

BEGIN_C_DECLS

/**
 * @file sep_uuar.h
 *
 * The uUARs (BlueFlame registers) of a device context that queue pairs ring,
 * found by address: queue pairs on the same uUAR share the toggle between its
 * two buffers and, if several threads may use them, its lock.
 *
 * A kernel gives UAR pages to contexts in one of two ways (libmlx5, verbs.c and
 * mlx5.c):
 * - legacy: a context gets 8 pages of 2 uUARs when it is opened, and a queue
 *   pair one of these. Number 0 is for doorbells only, the last 4 are for one
 *   queue pair each (low latency), the others are shared (medium latency).
 *   Thread domains get pages in addition.
 * - dynamic: a context starts with just a page for doorbells of completion
 *   queues. libmlx5 gets pages when it needs them: first those with uUARs for
 *   one queue pair each, then those for shared ones.
 * The numbers are libmlx5's defaults, changed by MLX5_TOTAL_UUARS and
 * MLX5_NUM_LOW_LAT_UUARS.
 */

/** libmlx5, mlx5.h: MLX5_NUM_NON_FP_BFREGS_PER_UAR, and its defaults. */
#define UCT_SEP_UUARS_PER_UAR      2
#define UCT_SEP_UUARS_DEFAULT      16
#define UCT_SEP_UUARS_LOW_LATENCY  4

/** PRM: a UAR is 4 KB, its BlueFlame registers start at 0x800. */
#define UCT_SEP_UAR_SIZE           4096
#define UCT_SEP_UAR_BF_OFFSET      0x800


/** Who uses the uUAR of a queue pair. */
typedef enum {
    /** One worker alone: it has the thread domain. */
    UCT_SEP_UUAR_EXCLUSIVE,
    /** Workers of the memory domain: they share the thread domain. */
    UCT_SEP_UUAR_SHARED,
    /** Whoever the driver chooses: the queue pair has no thread domain. Must be
     *  made and registered with @ref uct_sep_uuars_t::lock held. */
    UCT_SEP_UUAR_DRIVER,
    /** Whoever the driver chooses, and only the main thread of one worker makes
     *  such queue pairs. */
    UCT_SEP_UUAR_ALONE
} uct_sep_uuar_use_t;


/** @return Whether there is no thread domain. */
static inline int uct_sep_uuar_use_is_driver(uct_sep_uuar_use_t use)
{
    return use >= UCT_SEP_UUAR_DRIVER;
}


/** For the uUARs of a context. */
UCT_SEP_MUTEX_DEFINE(uct_sep_uuars_mutex)


/** One uUAR. */
typedef struct uct_sep_uuar {
    uct_sep_bf_t    bf;       /**< What send queues point to */
    ucs_list_link_t list;
    /** Queue pairs that ring it */
    unsigned        num_qps UCT_SEP_GUARDED_BY(uct_sep_uuars_mutex);
    /** The driver gives it to one queue pair at a time */
    uint8_t         is_dedicated UCT_SEP_GUARDED_BY(uct_sep_uuars_mutex);
} UCS_V_ALIGNED(UCS_SYS_CACHE_LINE_SIZE) uct_sep_uuar_t;


/** uUARs of a context. */
typedef struct uct_sep_uuars {
    uct_sep_uuars_mutex_t lock;
    /** uct_sep_uuar_t, never removed: libmlx5 keeps the pages as long as the
     *  context */
    ucs_list_link_t list UCT_SEP_GUARDED_BY(uct_sep_uuars_mutex);
    uint8_t         is_dynamic;    /**< Regime, see above */
    unsigned        num_total;     /**< uUARs for queue pairs without a thread
                                        domain: those of the context (legacy),
                                        or the most that libmlx5 gets
                                        (dynamic) */
    unsigned        num_low_lat;   /**< Of these, for one queue pair each */
    /** Dynamic: of these, seen so far */
    unsigned        num_dedicated UCT_SEP_GUARDED_BY(uct_sep_uuars_mutex);
} uct_sep_uuars_t;


/** Find out the regime of a newly opened context. */
void uct_sep_uuars_init(uct_sep_uuars_t *uuars, struct ibv_context *context);


/** Forget all uUARs. No queue pair may ring any. */
void uct_sep_uuars_cleanup(uct_sep_uuars_t *uuars);


/**
 * Register a queue pair, and find the uUAR it is to ring.
 *
 * @param [in]  dv_qp  Queue pair, queried with comp_mask having
 *                     MLX5DV_QP_MASK_UAR_MMAP_OFFSET.
 * @param [in]  use    Who else may have the same uUAR.
 * @param [out] bf_p Filled with the uUAR. Valid until @ref uct_sep_uuars_put.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_sep_uuars_get(uct_sep_uuars_t *uuars,
                               const struct mlx5dv_qp *dv_qp,
                               uct_sep_uuar_use_t use, uct_sep_bf_t **bf_p);


/** A queue pair rings no more. To be called before it is destroyed: as soon as
 *  it is, the driver may give its uUAR to one that another thread makes. */
void uct_sep_uuars_put(uct_sep_uuars_t *uuars, uct_sep_bf_t *bf);


/** Hold the lock while a queue pair without a thread domain is created. The
 *  analysis of locks knows no conditions. */
static inline UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_uuars_enter(uct_sep_uuars_t *uuars, uct_sep_uuar_use_t use)
{
    if (uct_sep_uuar_use_is_driver(use)) {
        uct_sep_uuars_mutex_lock(&uuars->lock);
    }
}

/** Undo it. */
static inline UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_uuars_leave(uct_sep_uuars_t *uuars, uct_sep_uuar_use_t use)
{
    if (uct_sep_uuar_use_is_driver(use)) {
        uct_sep_uuars_mutex_unlock(&uuars->lock);
    }
}

END_C_DECLS

#endif
