/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_LOCK_H_
#define MLX5SIM_LOCK_H_

#include <pthread.h>

/*
 * Locks in shared memory. They are robust mutexes: when a process dies with one
 * held, the kernel marks it and the next locker is told, repairs the object and
 * goes on. A lock is never taken away from a live process.
 *
 * Lock order, outer to inner:
 *   limit lock -> reap lock -> QP sq_lock -> QP rq_lock (of the peer) ->
 *   SRQ lock / atomic lock -> CQ lock -> channel lock.
 */

typedef pthread_mutex_t mlx5sim_lock_t;

/** Initialise a lock inside the store; once per slot, never again. */
void mlx5sim_lock_init(mlx5sim_lock_t *lock);

/**
 * Take @a lock.
 *
 * @return 0, or 1 if its previous owner died: the caller must repair what the
 *         lock protects, the lock itself is usable again.
 */
int mlx5sim_lock(mlx5sim_lock_t *lock);

void mlx5sim_unlock(mlx5sim_lock_t *lock);

#endif
