/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_GATHER_H_
#define MLX5SIM_GATHER_H_

#include <sim/doorbell/ring.h>

/*
 * From stores to doorbells: decides which stores belong together, as a
 * processor's write combining buffers do.
 */

#define MLX5SIM_GATHER_MAX 8

/** Stores to one page, gathered by register. */
typedef struct mlx5sim_gather {
    uintptr_t          page;   /**< its address */
    unsigned           num;    /**< 0 at first */
    mlx5sim_doorbell_t rings[MLX5SIM_GATHER_MAX];
} mlx5sim_gather_t;

/** What a store leads to. */
typedef enum {
    MLX5SIM_GATHER_MORE,  /**< there should be more */
    MLX5SIM_GATHER_WHOLE, /**< the register has everything it needs */
    MLX5SIM_GATHER_FULL   /**< there is no room for another store */
} mlx5sim_gather_next_t;

/** Begin with what the thread's last call has left of a register of @a page. */
void mlx5sim_gather_begin(mlx5sim_gather_t *gather, uintptr_t page);

/** Add a store. Those to a register may come in ascending or descending order,
 *  as the buffers that combine them don't care.
 *  @param data  What was stored, NULL if that is not known. */
mlx5sim_gather_next_t
mlx5sim_gather_add(mlx5sim_gather_t *gather, uintptr_t addr, const void *data,
                   unsigned length);

/** Ring what was gathered, or keep it in write-combining buffers. What is
 *  not a whole register yet is kept for the thread's next call; the rest of one
 *  that was rung already is dropped. */
void mlx5sim_gather_ring(const mlx5sim_gather_t *gather, mlx5sim_uar_t *uar);

#endif
