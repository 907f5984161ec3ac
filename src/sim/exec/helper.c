/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/exec/exec.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * One thread per process that uses the device, asleep on the kick word of the
 * process' slot. It runs send queues that had to wait: for a receive buffer,
 * for a peer that is not connected yet, or because another process moved the QP
 * to the error state.
 */

static pthread_mutex_t mlx5sim_helper_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_helper_running;


uint64_t mlx5sim_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ul + ts.tv_nsec;
}

void mlx5sim_proc_kick(mlx5sim_proc_t *proc)
{
    atomic_fetch_add(&proc->kick, 1);
    syscall(SYS_futex, &proc->kick, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mlx5sim_qp_kick(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));

    if (proc != NULL) {
        atomic_store(&qp->kicked, 1);
        mlx5sim_proc_kick(proc);
    }
}

void mlx5sim_helper_park(mlx5sim_qp_obj_t *qp, uint64_t when)
{
    qp->retry_at = when;
    mlx5sim_proc_kick(mlx5sim_proc_self());
}

/* Run every QP of ours that is due. @return when the next one is, 0: never */
static uint64_t mlx5sim_helper_scan(uint32_t tag)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    uint64_t next = 0, at;
    mlx5sim_qp_obj_t *qp;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) != tag) || !qp->o.ready) {
            continue;
        }

        at = *(volatile uint64_t*)&qp->retry_at;
        if (atomic_exchange(&qp->kicked, 0) ||
            ((at != 0) && (at <= mlx5sim_now_ns()))) {
            mlx5sim_sq_run(qp);
            at = *(volatile uint64_t*)&qp->retry_at;
        }

        if ((at != 0) && ((next == 0) || (at < next))) {
            next = at;
        }
    }

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
    /* waiting for a receive buffer is a matter of microseconds here */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);

    while (atomic_load(&proc->tag) == tag) {
        seen = atomic_load(&proc->kick);
        next = mlx5sim_helper_scan(tag);
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
        /* signals of the application are for its own threads */
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
    mlx5sim_helper_running = 0;
}
