/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UAR_LEGACY_H_
#define MLX5SIM_UAR_LEGACY_H_

#include <sim/objs/obj.h>

/*
 * UARs as assigned by kernels without the UAR object, and by newer ones for
 * libraries that do not know it (no MLX5_LIB_CAP_DYN_UAR): a context comes with
 * static pages, the kernel puts each QP on one of their uUARs, and mmap() of a
 * page that is not there yet allocates it, for thread domains.
 *
 * This follows drivers/infiniband/hw/mlx5: main.c (calc_total_bfregs, uar_mmap)
 * and qp.c (alloc_bfreg, bfregn_to_uar_index).
 */

/** A context's dynamic uUARs: MLX5_MAX_DYN_BFREGS of the kernel, on half as
 *  many pages. */
#define MLX5SIM_LEGACY_DYN_UUARS 1024

/** Static uUARs a context may have: MLX5_MAX_BFREGS of libmlx5 and kernel. */
#define MLX5SIM_LEGACY_MAX_UUARS 512

/** A uUAR assigned to a QP. */
typedef struct mlx5sim_uuar {
    uint32_t uar;         /**< page */
    uint32_t uuar_class;  /**< mlx5sim_uuar_class_t */
    uint32_t uuar;        /**< number among the static, or the dynamic ones */
    uint32_t reply;       /**< mlx5_ib_create_qp_resp.bfreg_index */
} mlx5sim_uuar_t;

/**
 * Give a new context its static pages.
 *
 * @param version  Of the request structure; 0 knows doorbells only.
 * @param total    Static uUARs, as requested by libmlx5 (MLX5_TOTAL_UUARS).
 * @param low_lat  How many of them serve one QP each (MLX5_NUM_LOW_LAT_UUARS).
 * @return 0, -EINVAL or -ENOMEM.
 */
int mlx5sim_legacy_open(mlx5sim_ctx_t *ctx, unsigned version, uint32_t total,
                        uint32_t low_lat);

/** The context is about to go, with its UARs. */
void mlx5sim_legacy_close(mlx5sim_ctx_t *ctx);

/** UAR behind a page of the context's file, 0 if there is none. Callable from
 *  the signal handler. */
uint32_t mlx5sim_legacy_find(uint32_t ctx, uint64_t file_page);

/**
 * The application maps a page of the context's file: allocate the page if the
 * mapping requests that.
 *
 * @param uar_p  UAR allocated, 0 if none was.
 * @return 0, -EINVAL (no such page, or a dynamic one that exists already),
 *         -EPERM (write combining is asked for and there is none) or -ENOMEM.
 */
int mlx5sim_legacy_map(mlx5sim_ctx_t *ctx, uint64_t file_page, uint32_t *uar_p);

/** Undo the allocation: the mapping failed. */
void mlx5sim_legacy_unmap(mlx5sim_ctx_t *ctx, uint64_t file_page);

/**
 * Choose the uUAR of a new QP: one of low latency that is free, else the one of
 * medium latency with the fewest QPs.
 */
void mlx5sim_legacy_uuar_get(mlx5sim_ctx_t *ctx, mlx5sim_uuar_t *uuar_p);

/** Use dynamic uUAR @a bfreg, whose page must be mapped. @return 0, -EINVAL, or
 *  -ENOMEM if the device had no page left when it was mapped. */
int mlx5sim_legacy_uuar_dyn(mlx5sim_ctx_t *ctx, uint32_t bfreg,
                            mlx5sim_uuar_t *uuar_p);

/** A QP leaves its static uUAR. */
void mlx5sim_legacy_uuar_put(mlx5sim_ctx_t *ctx, uint32_t uuar);

/** Start afresh in a child of fork(). */
void mlx5sim_legacy_fork_child(void);

#endif
