/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/helper.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/batch.h>
#include <sim/queue/recv.h>
#include <sim/sched/chance.h>
#include <sim/sched/pace.h>
#include <sim/sched/park.h>
#include <sim/sched/pipe.h>
#include <sim/sched/sq.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
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

/* Stepped execution: when time starts, on no particular clock */
#define MLX5SIM_HELPER_START_NS 1000000000

/* Rounds for which completions are held back at most, to be compressed with
 * others, and how many of them are the last with one chance */
#define MLX5SIM_HELPER_GATHER      16
#define MLX5SIM_HELPER_GATHER_ODDS 4

/* A QP of this process */
typedef struct mlx5sim_helper_qp {
    uint32_t             index;
    mlx5sim_pipe_state_t state;
    mlx5sim_pipe_t       *pipe;  /* NULL: not deferred */
} mlx5sim_helper_qp_t;

/* QPs of this process; the mutex also keeps a QP alive while it is looked at.
 * Taken before the locks of the store. */
static pthread_mutex_t mlx5sim_helper_qps_mutex = PTHREAD_MUTEX_INITIALIZER;
static mlx5sim_helper_qp_t *mlx5sim_helper_qps;
static uint32_t mlx5sim_helper_num_qps;
static uint32_t mlx5sim_helper_max_qps;
static _Atomic uint32_t mlx5sim_helper_visitors; /* others that want it */

/* Stepped execution: number of the next round, and of the next QP that is
 * made, by which chance knows it */
static uint64_t mlx5sim_helper_round;
static uint32_t mlx5sim_helper_serial;


static void mlx5sim_helper_qps_lock(void)
{
    atomic_fetch_add(&mlx5sim_helper_visitors, 1);
    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    atomic_fetch_sub(&mlx5sim_helper_visitors, 1);
}

static void mlx5sim_helper_qps_unlock(void)
{
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);
}

int mlx5sim_helper_add_qp(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_pipe_t *pipe = NULL;
    mlx5sim_helper_qp_t *qps;
    uint32_t max;
    int ret = 0;

    if (mlx5sim_chance_is_deferred()) {
        pipe = mlx5sim_pipe_new(mlx5sim_chance_is_stepped() ?
                                        mlx5sim_helper_serial++ : qp->qp.qpn);
        if (pipe == NULL) {
            return -1;
        }
    }

    mlx5sim_helper_qps_lock();
    if (mlx5sim_helper_num_qps == mlx5sim_helper_max_qps) {
        max = mlx5sim_helper_max_qps + 256;
        qps = realloc(mlx5sim_helper_qps, max * sizeof(*qps));
        if (qps == NULL) {
            mlx5sim_pipe_free(pipe);
            ret = -1;
            goto out;
        }
        mlx5sim_helper_qps     = qps;
        mlx5sim_helper_max_qps = max;
    }

    qps        = &mlx5sim_helper_qps[mlx5sim_helper_num_qps++];
    qps->index = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    qps->state = MLX5SIM_PIPE_IDLE;
    qps->pipe  = pipe;
out:
    mlx5sim_helper_qps_unlock();
    return ret;
}

void mlx5sim_helper_remove_qp(mlx5sim_qp_obj_t *qp)
{
    uint32_t index       = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    mlx5sim_pipe_t *pipe = NULL;
    uint32_t i;

    mlx5sim_helper_qps_lock();
    for (i = 0; i < mlx5sim_helper_num_qps; ++i) {
        if (mlx5sim_helper_qps[i].index == index) {
            pipe                  = mlx5sim_helper_qps[i].pipe;
            mlx5sim_helper_qps[i] =
                    mlx5sim_helper_qps[--mlx5sim_helper_num_qps];
            break;
        }
    }
    mlx5sim_helper_qps_unlock();
    mlx5sim_pipe_free(pipe);
}

void mlx5sim_helper_quiesce(void)
{
    mlx5sim_qp_obj_t *qp;
    uint32_t i;

    /* Requests of this process are carried out with the mutex held or, by who
     * posts them and by mlx5sim-wire, with the lock of their queue */
    mlx5sim_helper_qps_lock();
    for (i = 0; i < mlx5sim_helper_num_qps; ++i) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, mlx5sim_helper_qps[i].index);
        (void)mlx5sim_lock(&qp->sq_lock);
        mlx5sim_unlock(&qp->sq_lock);
        mlx5sim_rq_lock(qp);
        mlx5sim_unlock(&qp->rq_lock);
    }
    mlx5sim_helper_qps_unlock();
}

/* Run a QP of ours if it is due. @return when it is the next time, 0: never */
static uint64_t mlx5sim_helper_run_qp(mlx5sim_helper_qp_t *own, uint64_t round,
                                      uint64_t *due_p)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, own->index);
    uint64_t at          = atomic_load(&qp->retry_at);
    int is_kicked        = atomic_load(&qp->kicked) &&
                           atomic_exchange(&qp->kicked, 0);

    if (!is_kicked && (own->state == MLX5SIM_PIPE_IDLE) &&
        ((at == 0) || (at > mlx5sim_now_ns()))) {
        return at;
    }

    if ((own->pipe == NULL) || qp->is_remote) {
        mlx5sim_sq_run(qp);
        mlx5sim_sq_look_after(qp);
    } else {
        own->state = mlx5sim_pipe_run(own->pipe, qp, is_kicked, round, due_p);
    }

    return atomic_load(&qp->retry_at);
}

/* Whether a round is the last for which completions are held back */
static int mlx5sim_helper_gathered(uint32_t index, unsigned calls, void *arg)
{
    uint64_t round = *(uint64_t*)arg;

    return (calls >= MLX5SIM_HELPER_GATHER) ||
           ((mlx5sim_chance(MLX5SIM_CHANCE_GATHER, index, round) %
             MLX5SIM_HELPER_GATHER_ODDS) == 0);
}

/* One round: visit every QP of ours. @return when to do the next one, on
 * mlx5sim_now_ns()'s clock: 0 when something happens, 1 at once */
static uint64_t mlx5sim_helper_scan(uint64_t *round_p, mlx5sim_pace_t *pace)
{
    uint64_t round             = *round_p;
    uint64_t due               = UINT64_MAX;
    mlx5sim_pipe_state_t state = MLX5SIM_PIPE_IDLE;
    uint64_t next              = 0;
    mlx5sim_helper_qp_t *own;
    uint32_t i, num, first;
    uint64_t at;

    pthread_mutex_lock(&mlx5sim_helper_qps_mutex);
    num   = mlx5sim_helper_num_qps;
    first = (num > 1) ? (mlx5sim_chance(MLX5SIM_CHANCE_ORDER, 0, round) % num) :
                        0;
    for (i = 0; i < num; ++i) {
        own = &mlx5sim_helper_qps[(first + i < num) ? (first + i) :
                                                      (first + i - num)];
        at  = mlx5sim_helper_run_qp(own, round, &due);
        if ((at != 0) && ((next == 0) || (at < next))) {
            next = at;
        }
        if (own->state > state) {
            state = own->state;
        }
    }
    mlx5sim_batch_settle((state == MLX5SIM_PIPE_IDLE) ? NULL :
                                                        mlx5sim_helper_gathered,
                         &round);
    pthread_mutex_unlock(&mlx5sim_helper_qps_mutex);

    *round_p = round + 1;
    if (state == MLX5SIM_PIPE_IDLE) {
        return next;
    } else if (state == MLX5SIM_PIPE_MOVED) {
        return 1;
    }

    /* Rounds in which deferred execution only waits are left out; a pause is in
     * their place */
    *round_p = due;
    at       = mlx5sim_pace_pause(pace, mlx5sim_now_ns());
    return ((next == 0) || (at < next)) ? at : next;
}

static void *mlx5sim_helper_main(void *arg)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_self();
    uint32_t tag         = mlx5sim_self_tag;
    uint64_t round       = 0;
    mlx5sim_pace_t pace  = {};
    uint64_t next, now;
    struct timespec ts;
    uint32_t seen;

    mlx5sim_proc_live(proc);
    sem_post(arg);
    prctl(PR_SET_NAME, "mlx5sim", 0, 0, 0);
    while (mlx5sim_chance_is_stepped() && (atomic_load(&proc->tag) == tag)) {
        /* not for kicks: only its life counts */
        syscall(SYS_futex, &proc->tag, FUTEX_WAIT, tag, NULL, NULL, 0);
    }
    /* waiting for a receive buffer takes microseconds: the default slack is too
     * long */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    if (mlx5sim_chance_is_deferred()) {
        mlx5sim_batch_open();
    }

    while (atomic_load(&proc->tag) == tag) {
        seen = atomic_load(&proc->kick);
        next = mlx5sim_helper_scan(&round, &pace);
        while (atomic_load(&mlx5sim_helper_visitors) != 0) {
            sched_yield(); /* a mutex does not queue those who wait */
        }
        if (next == 0) {
            syscall(SYS_futex, &proc->kick, FUTEX_WAIT, seen, NULL, NULL, 0);
            continue;
        }

        now = mlx5sim_now_ns();
        if (next > now) {
            ts.tv_sec  = (next - now) / 1000000000ul;
            ts.tv_nsec = (next - now) % 1000000000ul;
            syscall(SYS_futex, &proc->kick, FUTEX_WAIT, seen, &ts, NULL, 0);
            mlx5sim_pace_wake(&pace, next, mlx5sim_now_ns());
        }
    }

    return NULL;
}

int mlx5sim_helper_step(void)
{
    mlx5sim_pace_t pace = {};
    uint64_t now, next;

    if (!mlx5sim_chance_is_stepped()) {
        errno = EINVAL;
        return -1;
    }

    mlx5sim_batch_open();
    next = mlx5sim_helper_scan(&mlx5sim_helper_round, &pace);
    mlx5sim_batch_close();
    now = mlx5sim_now_ns() + MLX5SIM_PACE_NS;
    mlx5sim_now_set((next > now) ? next : now);
    return next != 0;
}

void mlx5sim_helper_restart(void)
{
    mlx5sim_helper_round  = 0;
    mlx5sim_helper_serial = 0;
    mlx5sim_now_set(MLX5SIM_HELPER_START_NS);
    mlx5sim_obj_restart(MLX5SIM_OBJ_QP);
}

int mlx5sim_helper_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    sem_t is_living;
    int ret = 0;

    pthread_mutex_lock(&mlx5sim_helper_mutex);
    if (!mlx5sim_helper_running) {
        /* the application's signals are for its own threads */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        sem_init(&is_living, 0, 0);
        if (mlx5sim_chance_is_stepped()) {
            mlx5sim_now_set(MLX5SIM_HELPER_START_NS);
        }
        ret = pthread_create(&thread, NULL, mlx5sim_helper_main, &is_living);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (ret == 0) {
            pthread_detach(thread);
            /* before there is anything that others could reach */
            while ((sem_wait(&is_living) != 0) && (errno == EINTR)) {
            }
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
    atomic_store(&mlx5sim_helper_visitors, 0);
}
