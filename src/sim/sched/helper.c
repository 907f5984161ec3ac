/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/sched/helper.h"
#include "sim/objs/store.h"
#include "sim/queue/recv.h"
#include "sim/sched/park.h"
#include "sim/sched/sq.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mlx5sim_helper_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_helper_running;

/* QPs of this process, by index; the mutex also keeps a QP alive while it is
 * looked at. Taken before the locks of the store. */
static pthread_mutex_t mlx5sim_helper_qps_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *mlx5sim_helper_qps;
static uint32_t mlx5sim_helper_num_qps;
static uint32_t mlx5sim_helper_max_qps;


int mlx5sim_helper_add_qp(mlx5sim_qp_obj_t *qp)
{
    uint32_t max, *qps;
    int ret = 0;

    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    if (mlx5sim_helper_num_qps == mlx5sim_helper_max_qps) {
        max = mlx5sim_helper_max_qps + 256;
        qps = realloc(mlx5sim_helper_qps, max * sizeof(*qps));
        if (qps == NULL) {
            ret = -1;
            goto out;
        }
        mlx5sim_helper_qps     = qps;
        mlx5sim_helper_max_qps = max;
    }

    mlx5sim_helper_qps[mlx5sim_helper_num_qps++] =
            mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
out:
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);
    return ret;
}

void mlx5sim_helper_remove_qp(mlx5sim_qp_obj_t *qp)
{
    uint32_t index = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    uint32_t i;

    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    for (i = 0; i < mlx5sim_helper_num_qps; ++i) {
        if (mlx5sim_helper_qps[i] == index) {
            mlx5sim_helper_qps[i] =
                    mlx5sim_helper_qps[--mlx5sim_helper_num_qps];
            break;
        }
    }
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);
}

void mlx5sim_helper_quiesce(void)
{
    mlx5sim_qp_obj_t *qp;
    uint32_t i;

    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    for (i = 0; i < mlx5sim_helper_num_qps; ++i) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, mlx5sim_helper_qps[i]);
        mlx5sim_rq_lock(qp);
        mlx5sim_unlock(&qp->rq_lock);
    }
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);
}

/* Run every QP of ours that is due. @return when the next one is, 0: never */
static uint64_t mlx5sim_helper_scan(void)
{
    uint64_t next = 0, at;
    mlx5sim_qp_obj_t *qp;
    uint32_t i;

    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    for (i = 0; i < mlx5sim_helper_num_qps; ++i) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, mlx5sim_helper_qps[i]);
        at = atomic_load(&qp->retry_at);
        if (atomic_exchange(&qp->kicked, 0) ||
            ((at != 0) && (at <= mlx5sim_now_ns()))) {
            mlx5sim_sq_run(qp);
            at = atomic_load(&qp->retry_at);
        }

        if ((at != 0) && ((next == 0) || (at < next))) {
            next = at;
        }
    }
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);

    return next;
}

static void *mlx5sim_helper_main(void *arg)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_self();
    uint32_t tag         = mlx5sim_self_tag;
    uint64_t next, now;
    struct timespec ts;
    uint32_t seen;

    (void)arg;
    prctl(PR_SET_NAME, "mlx5sim", 0, 0, 0);
    /* waiting for a receive buffer takes microseconds: the default slack is too
     * long */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);

    while (atomic_load(&proc->tag) == tag) {
        seen = atomic_load(&proc->kick);
        next = mlx5sim_helper_scan();
        if (next == 0) {
            syscall(SYS_futex, &proc->kick, FUTEX_WAIT, seen, NULL, NULL, 0);
            continue;
        }

        now = mlx5sim_now_ns();
        if (next > now) {
            ts.tv_sec  = (next - now) / 1000000000ul;
            ts.tv_nsec = (next - now) % 1000000000ul;
            syscall(SYS_futex, &proc->kick, FUTEX_WAIT, seen, &ts, NULL, 0);
        }
    }

    return NULL;
}

int mlx5sim_helper_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    int ret = 0;

    pthread_mutex_lock(&mlx5sim_helper_mutex);
    if (!mlx5sim_helper_running) {
        /* the application's signals are for its own threads */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        ret = pthread_create(&thread, NULL, mlx5sim_helper_main, NULL);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (ret == 0) {
            pthread_detach(thread);
            mlx5sim_helper_running = 1;
        } else {
            fprintf(stderr, "mlx5sim: cannot start the helper thread: %s\n",
                    strerror(ret));
        }
    }
    pthread_mutex_unlock(&mlx5sim_helper_mutex);

    errno = ret;
    return (ret == 0) ? 0 : -1;
}

void mlx5sim_helper_forget(void)
{
    pthread_mutex_init(&mlx5sim_helper_mutex, NULL);
    pthread_mutex_init(&mlx5sim_helper_qps_mutex, NULL);
    /* the list may have been in use: leave it to the parent */
    mlx5sim_helper_qps     = NULL;
    mlx5sim_helper_num_qps = 0;
    mlx5sim_helper_max_qps = 0;
    mlx5sim_helper_running = 0;
}
