/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TRAP_H_
#define MLX5SIM_TRAP_H_

#include "sim/objs/store.h"

#include <stdint.h>

/*
 * Doorbells. A store to a UAR page raises SIGBUS in the storing thread, because
 * the page lies beyond the end of its file. The handler interprets the store
 * (and those that follow), finds out which register was written and runs the
 * queue, then returns behind the stores. As the signal is synchronous, the
 * handler is in no other position than a function that the store had called.
 */

/** memfd of a context: the name in /proc/self/maps ends in the context index. */
#define MLX5SIM_TRAP_FILE_PREFIX "mlx5sim-ctx-"

/** Take over SIGBUS. Handlers that the application installs, before or after,
 *  get every SIGBUS that is not a doorbell. @return 0 or -1/errno. */
int mlx5sim_trap_install(void);

/** Make the lock usable in a child of fork(). */
void mlx5sim_trap_fork_child(void);

/** What a doorbell register received. */
typedef struct mlx5sim_doorbell {
    uintptr_t page;      /* address it was stored at, without the offset */
    uint32_t offset;     /* in the page */
    uint32_t length;     /* bytes from the start of the register */
    int      known;      /* 0: the stored value could not be read */
    uint8_t  data[256];
} mlx5sim_doorbell_t;

/** Act on a doorbell rung through @a uar. */
void mlx5sim_doorbell_ring(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db);

#endif
