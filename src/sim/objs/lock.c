/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/lock.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A wakeup can be lost: somebody unlocks, which wakes one of two waiters; a
 * third one locks before it has come; the woken one is killed before it has
 * stored that there are others who wait; so the third one's unlocking wakes
 * nobody. The kernel repairs this (handle_futex_death() in kernel/futex/core.c)
 * only as long as nobody holds the lock. Hence nobody sleeps longer than
 * this. */
#define MLX5SIM_LOCK_SLEEP_NS 10000000l

/* How often a lock that is taken is tried again before its owner is slept for.
 * Most are held for a copy to another process, a microsecond or two, and two
 * ranks that ring at the same moment meet at each other's completion queues: a
 * sleep and a wakeup cost more than the work they wait for. */
#define MLX5SIM_LOCK_TRIES 64

/* Pauses between two tries: together some hundred cycles */
#define MLX5SIM_LOCK_PAUSES 4


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
    default:
        /* EDEADLK, ENOTRECOVERABLE, EINVAL: memory of the store is broken */
        fprintf(stderr, "mlx5sim: lock %p in the object store: %s; remove the "
                "instance directory and start again\n", (void*)lock,
                strerror(ret));
        abort();
    }
}

static int mlx5sim_lock_wait(mlx5sim_lock_t *lock)
{
    struct timespec end;
    int ret;

    do {
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += MLX5SIM_LOCK_SLEEP_NS;
        if (end.tv_nsec >= 1000000000l) {
            end.tv_nsec -= 1000000000l;
            ++end.tv_sec;
        }
        ret = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &end);
    } while (ret == ETIMEDOUT);

    return ret;
}

/* Tell the processor that this is a loop which waits */
static void mlx5sim_lock_relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int mlx5sim_lock_try(mlx5sim_lock_t *lock)
{
    int ret = pthread_mutex_trylock(lock);
    int try, pause;

    for (try = 0; (ret == EBUSY) && (try < MLX5SIM_LOCK_TRIES); ++try) {
        for (pause = 0; pause < MLX5SIM_LOCK_PAUSES; ++pause) {
            mlx5sim_lock_relax();
        }
        ret = pthread_mutex_trylock(lock);
    }

    return ret;
}

int mlx5sim_lock(mlx5sim_lock_t *lock)
{
    int ret = mlx5sim_lock_try(lock);

    return mlx5sim_lock_result(lock, (ret == EBUSY) ? mlx5sim_lock_wait(lock) :
                                                      ret);
}

void mlx5sim_unlock(mlx5sim_lock_t *lock)
{
    pthread_mutex_unlock(lock);
}
