/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_uuar.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>


/* libmlx5, mlx5.h: MLX5_MED_BFREGS_TSHOLD, maximum of shared uUARs */
#define UCT_SEP_UUARS_MAX_MEDIUM  12

/* Kernel, mlx5_ib.h: an mmap offset has the index of the page in its low 8
 * bits, in pages */
#define UCT_SEP_UUARS_MMAP_INDEX(_offset) \
    (((_offset) / ucs_get_page_size()) & 0xff)


static int uct_sep_uuars_env(const char *name, int value)
{
    const char *env = getenv(name);

    return (env != NULL) ? atoi(env) : value;
}

void uct_sep_uuars_init(uct_sep_uuars_t *uuars, struct ibv_context *context)
{
    int per_page = (ucs_get_page_size() / UCT_SEP_UAR_SIZE) *
                   UCT_SEP_UUARS_PER_UAR;
    int total, low_lat;

    memset(uuars, 0, sizeof(*uuars));
    uct_sep_uuars_mutex_init(&uuars->lock, NULL);
    ucs_list_head_init(&uuars->list);

    /* libmlx5 asks the kernel for that page when it opens a context, and has
     * none where the kernel does not know of UARs as objects. We must not free
     * it. */
    uuars->is_dynamic = mlx5dv_devx_alloc_uar(context,
                                              MLX5DV_UAR_ALLOC_TYPE_NC) != NULL;

    /* As libmlx5 computes them; had it rejected the values there would be no
     * context */
    total   = uct_sep_uuars_env("MLX5_TOTAL_UUARS", UCT_SEP_UUARS_DEFAULT);
    total   = ucs_align_up(ucs_max(total, per_page), UCT_SEP_UUARS_PER_UAR);
    low_lat = uct_sep_uuars_env("MLX5_NUM_LOW_LAT_UUARS",
                                UCT_SEP_UUARS_LOW_LATENCY);
    low_lat = ucs_max(low_lat, total - UCT_SEP_UUARS_MAX_MEDIUM);

    uuars->num_total   = total;
    uuars->num_low_lat = ucs_max(low_lat, 0);
}

/* Nobody else knows them any more */
UCT_SEP_NO_LOCK_ANALYSIS void uct_sep_uuars_cleanup(uct_sep_uuars_t *uuars)
{
    uct_sep_uuar_t *uuar, *tmp;

    ucs_list_for_each_safe(uuar, tmp, &uuars->list, list) {
        if (uuar->num_qps > 0) {
            ucs_warn("uUAR %p is still used by %u queue pairs", uuar->bf.reg,
                     uuar->num_qps);
        }
        uct_sep_bf_cleanup(&uuar->bf);
        ucs_free(uuar);
    }
    uct_sep_uuars_mutex_destroy(&uuars->lock);
}

static UCT_SEP_REQUIRES(uct_sep_uuars_mutex) uct_sep_uuar_t *
uct_sep_uuars_find(uct_sep_uuars_t *uuars, void *reg)
{
    uct_sep_uuar_t *uuar;

    ucs_list_for_each(uuar, &uuars->list, list) {
        if (uuar->bf.reg == reg) {
            return uuar;
        }
    }

    return NULL;
}

/* Number of a uUAR among the context's static ones */
static unsigned uct_sep_uuars_static_number(const struct mlx5dv_qp *dv_qp)
{
    size_t uars_per_page = ucs_get_page_size() / UCT_SEP_UAR_SIZE;
    uintptr_t reg        = (uintptr_t)dv_qp->bf.reg;
    size_t uar, number;

    uar    = (UCT_SEP_UUARS_MMAP_INDEX(dv_qp->uar_mmap_offset) *
              uars_per_page) +
             ((reg & (ucs_get_page_size() - 1)) / UCT_SEP_UAR_SIZE);
    number = uar * UCT_SEP_UUARS_PER_UAR;
    if (dv_qp->bf.size > 0) {
        number += ((reg & (UCT_SEP_UAR_SIZE - 1)) - UCT_SEP_UAR_BF_OFFSET) /
                  (2 * dv_qp->bf.size);
    }
    return number;
}

/*
 * Whether the driver gives a uUAR to one queue pair at a time. In the dynamic
 * regime, libmlx5 makes shared ones only after using up the dedicated ones, and
 * allocates whole pages.
 */
static UCT_SEP_REQUIRES(uct_sep_uuars_mutex) int
uct_sep_uuars_is_dedicated(uct_sep_uuars_t *uuars,
                           const struct mlx5dv_qp *dv_qp)
{
    unsigned limit;

    if (!uuars->is_dynamic) {
        return uct_sep_uuars_static_number(dv_qp) >=
               (uuars->num_total - uuars->num_low_lat);
    }

    limit = ucs_align_up(uuars->num_low_lat,
                         (ucs_get_page_size() / UCT_SEP_UAR_SIZE) *
                         UCT_SEP_UUARS_PER_UAR);
    if (uuars->num_dedicated == limit) {
        return 0;
    }

    ++uuars->num_dedicated;
    return 1;
}

static UCT_SEP_REQUIRES(uct_sep_uuars_mutex) uct_sep_uuar_t *
uct_sep_uuars_add(uct_sep_uuars_t *uuars, const struct mlx5dv_qp *dv_qp,
                  uct_sep_uuar_use_t use)
{
    uct_sep_uuar_t *uuar;
    int ret;

    ret = ucs_posix_memalign((void**)&uuar, UCS_SYS_CACHE_LINE_SIZE,
                             sizeof(*uuar), "sep_uuar");
    if (ret != 0) {
        return NULL;
    }

    memset(uuar, 0, sizeof(*uuar));
    uct_sep_bf_init(&uuar->bf, dv_qp->bf.reg, dv_qp->bf.size);
    uuar->is_dedicated = uct_sep_uuar_use_is_driver(use) &&
                         (dv_qp->bf.size > 0) &&
                         uct_sep_uuars_is_dedicated(uuars, dv_qp);
    ucs_list_add_tail(&uuars->list, &uuar->list);
    ucs_trace("uUAR %p: BlueFlame %u bytes%s", dv_qp->bf.reg, dv_qp->bf.size,
              uuar->is_dedicated ? ", dedicated" : "");
    return uuar;
}

static UCT_SEP_REQUIRES(uct_sep_uuars_mutex) ucs_status_t
uct_sep_uuars_get_locked(uct_sep_uuars_t *uuars, const struct mlx5dv_qp *dv_qp,
                         uct_sep_uuar_use_t use, uct_sep_bf_t **bf_p)
{
    uct_sep_uuar_t *uuar;

    uuar = uct_sep_uuars_find(uuars, dv_qp->bf.reg);
    if (uuar == NULL) {
        uuar = uct_sep_uuars_add(uuars, dv_qp, use);
        if (uuar == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    if (dv_qp->bf.size == 0) {
        /* Without buffers that are used in turn, a doorbell is a single store:
         * nobody needs a lock (libmlx5, mlx5.c, need_uuar_lock()) */
        uuar->bf.sharing = UCT_SEP_BF_SINGLE;
    } else if (uuar->num_qps == 0) {
        uuar->bf.sharing = ((use == UCT_SEP_UUAR_SHARED) ||
                            ((use == UCT_SEP_UUAR_DRIVER) &&
                             !uuar->is_dedicated)) ?
                           UCT_SEP_BF_SHARED : UCT_SEP_BF_SINGLE;
    } else if (use == UCT_SEP_UUAR_SHARED) {
        /* A connection manager may have been alone on it, which takes the lock
         * in any case (uct_sep_td_pair_lend()) */
        if (uuar->bf.sharing != UCT_SEP_BF_SHARED) {
            uuar->bf.sharing = UCT_SEP_BF_SHARED;
        }
    } else if (uuar->is_dedicated) {
        /* The driver behaves differently than we know */
        ucs_debug("uUAR %p is shared although it counted as dedicated",
                  dv_qp->bf.reg);
        uuar->is_dedicated = 0;
        uuar->bf.sharing   = UCT_SEP_BF_SHARED;
    }

    ++uuar->num_qps;
    *bf_p = &uuar->bf;
    return UCS_OK;
}

/* The analysis of locks knows no conditions */
UCT_SEP_NO_LOCK_ANALYSIS ucs_status_t
uct_sep_uuars_get(uct_sep_uuars_t *uuars, const struct mlx5dv_qp *dv_qp,
                  uct_sep_uuar_use_t use, uct_sep_bf_t **bf_p)
{
    ucs_status_t status;

    if (uct_sep_uuar_use_is_driver(use)) { /* The caller has the lock */
        return uct_sep_uuars_get_locked(uuars, dv_qp, use, bf_p);
    }

    uct_sep_uuars_mutex_lock(&uuars->lock);
    status = uct_sep_uuars_get_locked(uuars, dv_qp, use, bf_p);
    uct_sep_uuars_mutex_unlock(&uuars->lock);
    return status;
}

void uct_sep_uuars_put(uct_sep_uuars_t *uuars, uct_sep_bf_t *bf)
{
    uct_sep_uuar_t *uuar = ucs_container_of(bf, uct_sep_uuar_t, bf);

    uct_sep_uuars_mutex_lock(&uuars->lock);
    --uuar->num_qps;
    uct_sep_uuars_mutex_unlock(&uuars->lock);
}
