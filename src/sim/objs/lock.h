/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_LOCK_H_
#define MLX5SIM_LOCK_H_

#include <linux/futex.h>
#include <pthread.h>
#include <sys/types.h>

/*
 * Locks in shared memory. They are robust mutexes: when a process dies with one
 * held, the kernel marks it and the next locker is told, repairs the object and
 * goes on. A lock is never taken away from a live process.
 *
 * Lock order, outer to inner:
 *   CM lock -> limit lock -> reap lock -> QP sq_lock -> QP rq_lock (of the
 *   peer) -> SRQ lock / atomic lock -> CQ lock -> channel lock.
 * A QP's rung_lock comes behind rq_lock, and nothing behind that.
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

/**
 * Whether who held @a lock has died with it, and nobody has taken it since. Not
 * more than a load: the kernel has said so in the word of the lock
 * (Documentation/locking/robust-futex-ABI.rst), before the pid of the dead one
 * can be another's.
 */
static inline int mlx5sim_lock_is_orphan(const mlx5sim_lock_t *lock)
{
    return (__atomic_load_n(&lock->__data.__lock, __ATOMIC_ACQUIRE) &
            FUTEX_OWNER_DIED) != 0;
}

/** The thread that holds @a lock, or 0: none does. Costs a load. */
static inline pid_t mlx5sim_lock_owner(const mlx5sim_lock_t *lock)
{
    return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) &
           FUTEX_TID_MASK;
}

#endif
