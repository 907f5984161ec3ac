/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/park.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>

#include <stdatomic.h>
#include <time.h>

/* A waiting QP looks again after a fraction of the time it has waited already,
 * within these limits: many QPs that wait long must not keep the processors
 * busy. */
#define MLX5SIM_RETRY_MIN_NS 1000000ul
#define MLX5SIM_RETRY_MAX_NS 250000000ul
#define MLX5SIM_RNR_MIN_NS   20000ul
#define MLX5SIM_RNR_MAX_NS   2000000ul
#define MLX5SIM_WATCH_MIN_NS 1000000ul
#define MLX5SIM_WATCH_MAX_NS 100000000ul

static _Atomic uint64_t mlx5sim_now_value; /* 0: the clock's */


void mlx5sim_now_set(uint64_t now)
{
    atomic_store_explicit(&mlx5sim_now_value, now, memory_order_relaxed);
}

uint64_t mlx5sim_now_ns(void)
{
    uint64_t now = atomic_load_explicit(&mlx5sim_now_value,
                                        memory_order_relaxed);
    struct timespec ts;

    if (now != 0) {
        return now;
    }

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ul + ts.tv_nsec;
}

/* Look again at @a when */
static void mlx5sim_park_until(mlx5sim_qp_obj_t *qp, uint64_t when)
{
    atomic_store(&qp->retry_at, when);
    mlx5sim_proc_kick(mlx5sim_proc_self());
}

/* When to look again at something that is waited for since *since_p */
static uint64_t mlx5sim_park_interval(uint64_t *since_p, uint64_t now,
                                      uint64_t min, uint64_t max)
{
    uint64_t interval;

    if (*since_p == 0) {
        *since_p = now;
    }

    interval = (now - *since_p) / 4;
    return (interval < min) ? min : (interval > max) ? max : interval;
}

void mlx5sim_park_pause(mlx5sim_qp_obj_t *qp, uint64_t timer)
{
    uint64_t now = mlx5sim_now_ns();
    uint64_t interval;

    interval = mlx5sim_park_interval(&qp->retry_since, now, MLX5SIM_RNR_MIN_NS,
                                     MLX5SIM_RNR_MAX_NS);
    if (interval < timer) {
        interval = timer;
    }

    mlx5sim_park_until(qp, now + interval);
    atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.rnr_waits, 1,
                              memory_order_relaxed);
}

int mlx5sim_park_rnr(mlx5sim_qp_obj_t *qp, uint64_t timer)
{
    /* doorbells and other work requests retry earlier than the timer; only
     * timer expiries count as retries */
    if (mlx5sim_now_ns() <
        atomic_load_explicit(&qp->retry_at, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.rnr_waits, 1,
                                  memory_order_relaxed);
        return 1;
    }

    if ((qp->qp.rnr_retry != 7) && (qp->retries++ >= qp->qp.rnr_retry)) {
        return 0;
    }

    mlx5sim_park_pause(qp, timer);
    return 1;
}

/* How long to wait for an answer, if the timeout is not 0: endless */
static uint64_t mlx5sim_park_limit(const mlx5sim_qp_obj_t *qp)
{
    return mlx5sim_ack_timeout_ns(qp->qp.timeout) * (qp->qp.retry_cnt + 1);
}

int mlx5sim_park_retry(mlx5sim_qp_obj_t *qp)
{
    uint64_t now = mlx5sim_now_ns();
    uint64_t interval, limit;

    interval = mlx5sim_park_interval(&qp->retry_since, now,
                                     MLX5SIM_RETRY_MIN_NS,
                                     MLX5SIM_RETRY_MAX_NS);
    limit    = mlx5sim_park_limit(qp);
    if (qp->qp.timeout != 0) {
        if (now - qp->retry_since >= limit) {
            return 0;
        }

        if (interval > limit) {
            interval = limit;
        }
    }
    mlx5sim_park_until(qp, now + interval);
    return 1;
}

int mlx5sim_park_gone(mlx5sim_qp_obj_t *qp)
{
    uint64_t now   = mlx5sim_now_ns();
    uint64_t limit = qp->gone_after;
    uint64_t interval, end;

    if ((qp->qp.timeout != 0) && (mlx5sim_park_limit(qp) < limit)) {
        limit = mlx5sim_park_limit(qp);
    }

    interval = mlx5sim_park_interval(&qp->gone_since, now, MLX5SIM_RETRY_MIN_NS,
                                     MLX5SIM_RETRY_MAX_NS);
    end      = qp->gone_since + limit;
    if (now >= end) {
        return 0;
    }

    mlx5sim_park_until(qp, (now + interval < end) ? (now + interval) : end);
    return 1;
}

void mlx5sim_park_watch(mlx5sim_qp_obj_t *qp)
{
    uint64_t now = mlx5sim_now_ns();

    if (qp->qp.rq_wqe_cnt != 0) {
        mlx5sim_park_until(qp, now +
                               mlx5sim_park_interval(&qp->retry_since, now,
                                                     MLX5SIM_WATCH_MIN_NS,
                                                     MLX5SIM_WATCH_MAX_NS));
    }
}

void mlx5sim_park_server(mlx5sim_qp_obj_t *qp)
{
    uint64_t none = 0;

    if (atomic_compare_exchange_strong(&qp->retry_at, &none, mlx5sim_now_ns() +
                                                     MLX5SIM_WATCH_MAX_NS)) {
        mlx5sim_proc_kick(mlx5sim_proc_self());
    }
}

int mlx5sim_park_flush(mlx5sim_qp_obj_t *qp)
{
    uint64_t now = mlx5sim_now_ns();

    if (qp->flush_at == 0) {
        qp->flush_at = now + qp->flush_delay;
    }

    if (now >= qp->flush_at) {
        qp->flush_at = 0;
        return 0;
    }

    mlx5sim_park_until(qp, qp->flush_at);
    return 1;
}
