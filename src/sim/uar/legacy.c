/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uar/legacy.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>
#include <sim/uar/map.h>
#include <sim/uar/uar.h>

#include <errno.h>
#include <pthread.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>

/* mmap() offsets in pages: index, command, high bits of the index; providers/
 * mlx5/mlx5.h, set_command() and set_extended_index() */
#define MLX5SIM_MMAP_INDEX_MASK  0xffu
#define MLX5SIM_MMAP_CMD_SHIFT   8
#define MLX5SIM_MMAP_CMD_MASK    0xffu
#define MLX5SIM_MMAP_EXT_SHIFT   16

/* pages */
#define MLX5SIM_LEGACY_STATIC \
    (MLX5SIM_LEGACY_MAX_UUARS / MLX5SIM_UUARS_PER_UAR)
#define MLX5SIM_LEGACY_DYN \
    (MLX5SIM_LEGACY_DYN_UUARS / MLX5SIM_UUARS_PER_UAR)

/* BlueFlame registers of a page as libmlx5 counts them: with two that are the
 * kernel's (NUM_BFREGS_PER_UAR) */
#define MLX5SIM_LEGACY_REPLY_PER_UAR 4
/* mlx5_ib_create_qp_resp.bfreg_index of a QP on a dynamic uUAR
 * (MLX5_IB_INVALID_BFREG of the kernel) */
#define MLX5SIM_LEGACY_REPLY_DYN     (1u << 31)

/* What the kernel knows of a context, all zero when it has none. It stays in
 * this process: UARs and QPs are in the store, where they can be counted and
 * freed after its death. */
typedef struct {
    unsigned         version;
    unsigned         num_uuars;    /* static */
    unsigned         first_low;    /* static uUARs from here on are dedicated */
    _Atomic uint32_t static_uars[MLX5SIM_LEGACY_STATIC];
    _Atomic uint32_t dyn_uars[MLX5SIM_LEGACY_DYN];      /* 0: not allocated */
    uint32_t         num_qps[MLX5SIM_LEGACY_MAX_UUARS]; /* on static uUARs */
} mlx5sim_legacy_t;

/* By context. Once made they stay: a doorbell may look at the one of a context
 * that is being closed. */
static mlx5sim_legacy_t *_Atomic mlx5sim_legacy[MLX5SIM_MAX_CTXS];
static pthread_mutex_t mlx5sim_legacy_mutex = PTHREAD_MUTEX_INITIALIZER;


static mlx5sim_legacy_t *mlx5sim_legacy_get(const mlx5sim_ctx_t *ctx)
{
    return atomic_load(&mlx5sim_legacy[mlx5sim_obj_index(MLX5SIM_OBJ_CTX,
                                                         ctx)]);
}

static void mlx5sim_legacy_free(_Atomic uint32_t *slot)
{
    uint32_t uar = atomic_exchange(slot, 0);

    if (uar != 0) {
        mlx5sim_obj_free(MLX5SIM_OBJ_UAR, mlx5sim_obj_at(MLX5SIM_OBJ_UAR, uar));
    }
}

static void mlx5sim_legacy_set_page(uint32_t uar, uint32_t page)
{
    ((mlx5sim_uar_t*)mlx5sim_obj_at(MLX5SIM_OBJ_UAR, uar))->page = page;
}

int mlx5sim_legacy_open(mlx5sim_ctx_t *ctx, unsigned version, uint32_t total,
                        uint32_t low_lat)
{
    uint32_t index = mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx);
    uint32_t uars[MLX5SIM_LEGACY_STATIC];
    mlx5sim_legacy_t *legacy;
    unsigned i, num_pages;
    int ret;

    if (total == 0) {
        return -EINVAL;
    }

    if (total > MLX5SIM_LEGACY_MAX_UUARS) {
        return -ENOMEM;
    }

    num_pages = (total + MLX5SIM_UUARS_PER_UAR - 1) / MLX5SIM_UUARS_PER_UAR;
    total     = num_pages * MLX5SIM_UUARS_PER_UAR;
    if (low_lat > total - 1) {
        return -EINVAL;
    }

    legacy = atomic_load(&mlx5sim_legacy[index]);
    if (legacy == NULL) {
        legacy = calloc(1, sizeof(*legacy));
        if (legacy == NULL) {
            return -ENOMEM;
        }
        atomic_store(&mlx5sim_legacy[index], legacy);
    }

    ret = mlx5sim_uar_take(ctx, MLX5SIM_UAR_STATIC, num_pages, uars);
    if (ret != 0) {
        return ret;
    }

    legacy->version   = version;
    legacy->num_uuars = total;
    /* uUAR 0 has no BlueFlame and belongs to nobody, medium latency starts at
     * 1 */
    legacy->first_low = total - low_lat;
    for (i = 0; i < num_pages; ++i) {
        mlx5sim_legacy_set_page(uars[i], i);
        atomic_store(&legacy->static_uars[i], uars[i]);
    }

    ctx->static_uuars  = total;
    ctx->low_lat_uuars = low_lat;
    ctx->is_legacy     = 1;
    return 0;
}

void mlx5sim_legacy_close(mlx5sim_ctx_t *ctx)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);
    unsigned i;

    if (!ctx->is_legacy) {
        return;
    }

    pthread_mutex_lock(&mlx5sim_legacy_mutex);
    for (i = 0; i < MLX5SIM_LEGACY_STATIC; ++i) {
        mlx5sim_legacy_free(&legacy->static_uars[i]);
    }
    for (i = 0; i < MLX5SIM_LEGACY_DYN; ++i) {
        mlx5sim_legacy_free(&legacy->dyn_uars[i]);
    }
    memset(legacy->num_qps, 0, sizeof(legacy->num_qps));
    pthread_mutex_unlock(&mlx5sim_legacy_mutex);

    ctx->is_legacy     = 0;
    ctx->static_uuars  = 0;
    ctx->low_lat_uuars = 0;
}

/* Slot of a page's UAR, NULL if there can be no such page */
static _Atomic uint32_t *
mlx5sim_legacy_slot(mlx5sim_legacy_t *legacy, uint64_t file_page, int *is_dyn_p)
{
    unsigned index = file_page & MLX5SIM_MMAP_INDEX_MASK;

    *is_dyn_p = 0;
    switch ((file_page >> MLX5SIM_MMAP_CMD_SHIFT) & MLX5SIM_MMAP_CMD_MASK) {
    case MLX5_IB_MMAP_REGULAR_PAGE:
    case MLX5_IB_MMAP_WC_PAGE:
    case MLX5_IB_MMAP_NC_PAGE:
        return (index < legacy->num_uuars / MLX5SIM_UUARS_PER_UAR) ?
               &legacy->static_uars[index] : NULL;
    case MLX5_IB_MMAP_ALLOC_WC:
        *is_dyn_p = 1;
        index    |= ((file_page >> MLX5SIM_MMAP_EXT_SHIFT) &
                     MLX5SIM_MMAP_INDEX_MASK) << MLX5SIM_MMAP_CMD_SHIFT;
        return (index < MLX5SIM_LEGACY_DYN) ? &legacy->dyn_uars[index] : NULL;
    default:
        return NULL;
    }
}

uint32_t mlx5sim_legacy_find(uint32_t ctx, uint64_t file_page)
{
    mlx5sim_legacy_t *legacy;
    _Atomic uint32_t *slot;
    int is_dyn;

    legacy = (ctx < MLX5SIM_MAX_CTXS) ? atomic_load(&mlx5sim_legacy[ctx]) :
                                        NULL;
    slot   = (legacy != NULL) ?
             mlx5sim_legacy_slot(legacy, file_page, &is_dyn) : NULL;
    return (slot != NULL) ? atomic_load(slot) : 0;
}

/* Allocate a dynamic page; the mutex is held */
static int mlx5sim_legacy_alloc(mlx5sim_ctx_t *ctx, mlx5sim_legacy_t *legacy,
                                _Atomic uint32_t *slot)
{
    uint32_t uar;
    int ret;

    ret = mlx5sim_uar_take(ctx, MLX5SIM_UAR_DYN, 1, &uar);
    if (ret == 0) {
        mlx5sim_legacy_set_page(uar, slot - legacy->dyn_uars);
        atomic_store(slot, uar);
    }
    return ret;
}

/* mlx5_ib_mmap() without wc_support; a regular page is then mapped uncached */
static int mlx5sim_legacy_needs_wc(uint64_t file_page)
{
    unsigned cmd = (file_page >> MLX5SIM_MMAP_CMD_SHIFT) &
                   MLX5SIM_MMAP_CMD_MASK;

    return (cmd == MLX5_IB_MMAP_WC_PAGE) || (cmd == MLX5_IB_MMAP_ALLOC_WC);
}

int mlx5sim_legacy_map(mlx5sim_ctx_t *ctx, uint64_t file_page, uint32_t *uar_p)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);
    _Atomic uint32_t *slot;
    int is_dyn, ret = 0;

    *uar_p = 0;
    slot   = mlx5sim_legacy_slot(legacy, file_page, &is_dyn);
    if (slot == NULL) {
        return -EINVAL;
    }

    if (mlx5sim_legacy_needs_wc(file_page) && !mlx5sim_instance_config()->bf) {
        return -EPERM;
    }

    if (is_dyn) {
        pthread_mutex_lock(&mlx5sim_legacy_mutex);
        /* it belongs to the context until that is closed, mapped or not */
        ret = (atomic_load(slot) != 0) ?
              -EINVAL : mlx5sim_legacy_alloc(ctx, legacy, slot);
        pthread_mutex_unlock(&mlx5sim_legacy_mutex);
        *uar_p = (ret == 0) ? atomic_load(slot) : 0;
    }

    return ret;
}

void mlx5sim_legacy_unmap(mlx5sim_ctx_t *ctx, uint64_t file_page)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);
    _Atomic uint32_t *slot;
    int is_dyn;

    slot = mlx5sim_legacy_slot(legacy, file_page, &is_dyn);
    if ((slot != NULL) && is_dyn) {
        mlx5sim_legacy_free(slot);
    }
}

/* As the kernel does, including its surprise: without any medium-latency uUAR,
 * number 1 is shared all the same. */
static unsigned mlx5sim_legacy_choose(const mlx5sim_legacy_t *legacy,
                                      uint32_t *class_p)
{
    unsigned i, least = 1;

    if (legacy->version < 2) {
        *class_p = MLX5SIM_UUAR_HIGH;
        return 0;
    }

    for (i = legacy->first_low; i < legacy->num_uuars; ++i) {
        if (legacy->num_qps[i] == 0) {
            *class_p = MLX5SIM_UUAR_LOW;
            return i;
        }
    }

    for (i = 1; i < legacy->first_low; ++i) {
        if (legacy->num_qps[i] < legacy->num_qps[least]) {
            least = i;
        }
    }

    *class_p = MLX5SIM_UUAR_MEDIUM;
    return least;
}

void mlx5sim_legacy_uuar_get(mlx5sim_ctx_t *ctx, mlx5sim_uuar_t *uuar_p)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);
    unsigned page;

    pthread_mutex_lock(&mlx5sim_legacy_mutex);
    uuar_p->uuar = mlx5sim_legacy_choose(legacy, &uuar_p->uuar_class);
    ++legacy->num_qps[uuar_p->uuar];
    pthread_mutex_unlock(&mlx5sim_legacy_mutex);

    page          = uuar_p->uuar / MLX5SIM_UUARS_PER_UAR;
    uuar_p->uar   = atomic_load(&legacy->static_uars[page]);
    uuar_p->reply = (page * MLX5SIM_LEGACY_REPLY_PER_UAR) +
                    (uuar_p->uuar % MLX5SIM_UUARS_PER_UAR);
}

/* File page of a dynamic UAR page, the inverse of mlx5sim_legacy_slot() */
static uint64_t mlx5sim_legacy_file_page(unsigned page)
{
    return ((uint64_t)(page >> MLX5SIM_MMAP_CMD_SHIFT) <<
            MLX5SIM_MMAP_EXT_SHIFT) |
           (MLX5_IB_MMAP_ALLOC_WC << MLX5SIM_MMAP_CMD_SHIFT) |
           (page & MLX5SIM_MMAP_INDEX_MASK);
}

int mlx5sim_legacy_uuar_dyn(mlx5sim_ctx_t *ctx, uint32_t bfreg,
                            mlx5sim_uuar_t *uuar_p)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);
    unsigned page            = bfreg / MLX5SIM_UUARS_PER_UAR;
    int ret                  = 0;

    if (page >= MLX5SIM_LEGACY_DYN) {
        return -EINVAL;
    }

    pthread_mutex_lock(&mlx5sim_legacy_mutex);
    if (atomic_load(&legacy->dyn_uars[page]) == 0) {
        /* we may have missed the mmap() because of somebody's hooks */
        ret = mlx5sim_map_has_page(mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx),
                                   mlx5sim_legacy_file_page(page)) ?
              mlx5sim_legacy_alloc(ctx, legacy, &legacy->dyn_uars[page]) :
              -EINVAL;
    }
    pthread_mutex_unlock(&mlx5sim_legacy_mutex);

    uuar_p->uar        = atomic_load(&legacy->dyn_uars[page]);
    uuar_p->uuar_class = MLX5SIM_UUAR_DYNAMIC;
    uuar_p->uuar       = bfreg;
    uuar_p->reply      = MLX5SIM_LEGACY_REPLY_DYN;
    return ret;
}

void mlx5sim_legacy_uuar_put(mlx5sim_ctx_t *ctx, uint32_t uuar)
{
    mlx5sim_legacy_t *legacy = mlx5sim_legacy_get(ctx);

    pthread_mutex_lock(&mlx5sim_legacy_mutex);
    --legacy->num_qps[uuar];
    pthread_mutex_unlock(&mlx5sim_legacy_mutex);
}

void mlx5sim_legacy_fork_child(void)
{
    unsigned i;

    /* everything here is the parent's: leave it and what it refers to */
    pthread_mutex_init(&mlx5sim_legacy_mutex, NULL);
    for (i = 0; i < MLX5SIM_MAX_CTXS; ++i) {
        atomic_store(&mlx5sim_legacy[i], NULL);
    }
}
