/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/watch.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/conn.h>
#include <sim/rdmacm/id.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

/* How often connections are looked at: no system call per connection, and no
 * descriptor that the program could close */
#define MLX5SIM_CM_WATCH_NS 50000000l

static pthread_mutex_t mlx5sim_cm_watch_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mlx5sim_cm_watch_cond   = PTHREAD_COND_INITIALIZER;
static int mlx5sim_cm_watch_is_running;
static int mlx5sim_cm_watch_is_needed;


/* Look at all ids of this process. @return whether there is one to watch */
static int mlx5sim_cm_watch_all(void)
{
    struct timespec ts;
    mlx5sim_cm_id_t *id;
    uint32_t index;
    int found = 0;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    mlx5sim_cm_lock();
    for (index = 0; (id = mlx5sim_cm_id_next(index, mlx5sim_self_tag)) != NULL;
         index = mlx5sim_cm_id_ref(id).index) {
        found |= mlx5sim_cm_watch(id, ts.tv_sec * 1000000000ull + ts.tv_nsec);
    }
    mlx5sim_cm_unlock();
    return found;
}

static void *mlx5sim_cm_watch_main(void *arg)
{
    const struct timespec pause = {0, MLX5SIM_CM_WATCH_NS};

    (void)arg;
    for (;;) {
        pthread_mutex_lock(&mlx5sim_cm_watch_mutex);
        while (!mlx5sim_cm_watch_is_needed) {
            pthread_cond_wait(&mlx5sim_cm_watch_cond, &mlx5sim_cm_watch_mutex);
        }
        mlx5sim_cm_watch_is_needed = 0;
        pthread_mutex_unlock(&mlx5sim_cm_watch_mutex);

        while (mlx5sim_cm_watch_all()) {
            (void)nanosleep(&pause, NULL);
        }
    }

    return NULL;
}

/* Neither the thread nor what it watches is the child's */
static void mlx5sim_cm_watch_fork_child(void)
{
    pthread_mutex_init(&mlx5sim_cm_watch_mutex, NULL);
    pthread_cond_init(&mlx5sim_cm_watch_cond, NULL);
    mlx5sim_cm_watch_is_running = 0;
    mlx5sim_cm_watch_is_needed  = 0;
}

int mlx5sim_cm_watch_start(void)
{
    static int fork_handler;
    sigset_t all, old;
    pthread_t thread;
    int ret = 0;

    pthread_mutex_lock(&mlx5sim_cm_watch_mutex);
    if (!mlx5sim_cm_watch_is_running) {
        /* the application's signals are for its own threads */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        ret = pthread_create(&thread, NULL, mlx5sim_cm_watch_main, NULL);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (ret == 0) {
            pthread_detach(thread);
            mlx5sim_cm_watch_is_running = 1;
        }
    }

    if (!fork_handler) {
        pthread_atfork(NULL, NULL, mlx5sim_cm_watch_fork_child);
        fork_handler = 1;
    }
    pthread_mutex_unlock(&mlx5sim_cm_watch_mutex);

    errno = ret;
    return (ret == 0) ? 0 : -1;
}

void mlx5sim_cm_watch_wake(void)
{
    pthread_mutex_lock(&mlx5sim_cm_watch_mutex);
    mlx5sim_cm_watch_is_needed = 1;
    pthread_cond_signal(&mlx5sim_cm_watch_cond);
    pthread_mutex_unlock(&mlx5sim_cm_watch_mutex);
}
