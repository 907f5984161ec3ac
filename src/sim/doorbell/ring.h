/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RING_H_
#define MLX5SIM_RING_H_

#include <sim/objs/obj.h>

#include <stdint.h>

/** What a doorbell register received. */
typedef struct mlx5sim_doorbell {
    uintptr_t page;      /**< address it was stored at, without the offset */
    uint32_t  offset;    /**< in the page */
    uint32_t  length;    /**< bytes from the start of the register */
    int       known;     /**< 0: the stored value could not be read */
    uint8_t   data[256];
} mlx5sim_doorbell_t;

/** Compare what was stored to ring through @a uar with the doorbell record and
 *  the queue, as they are when the store is made. */
void mlx5sim_doorbell_check(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db);

/** The doorbell has reached the device: run the queue. */
void mlx5sim_doorbell_ring(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db);

#endif
