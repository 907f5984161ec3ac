/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/objs/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


void mlx5sim_lock_init(mlx5sim_lock_t *lock)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

static int mlx5sim_lock_result(mlx5sim_lock_t *lock, int ret)
{
    switch (ret) {
    case 0:
        return 0;
    case EOWNERDEAD:
        /* the repair happens under the lock, so it is consistent already as
         * far as other lockers can tell */
        pthread_mutex_consistent(lock);
        return 1;
    case EBUSY:
        return -1;
    default:
        /* EDEADLK, ENOTRECOVERABLE, EINVAL: memory of the store is broken */
        fprintf(stderr, "mlx5sim: lock %p in the object store: %s; remove the "
                "instance directory and start again\n", (void*)lock,
                strerror(ret));
        abort();
    }
}

int mlx5sim_lock(mlx5sim_lock_t *lock)
{
    return mlx5sim_lock_result(lock, pthread_mutex_lock(lock));
}

int mlx5sim_trylock(mlx5sim_lock_t *lock)
{
    return mlx5sim_lock_result(lock, pthread_mutex_trylock(lock));
}

void mlx5sim_unlock(mlx5sim_lock_t *lock)
{
    pthread_mutex_unlock(lock);
}
