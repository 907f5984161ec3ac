/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DEFER_H_
#define MLX5SIM_DEFER_H_

#include <sim/libc/real.h>

#include <signal.h>
#include <stdint.h>

/*
 * Handlers of the program that may ring must not interrupt the device: they
 * would wait for locks that their own thread holds. While the device handles a
 * signal, the kernel blocks them. Where it is called in place of a store, that
 * would take two system calls. So the kernel is given another handler for such
 * signals. If the thread is in the device, this one keeps the first signal and
 * blocks the others, until the thread leaves.
 */

/** What the calling thread does. For the functions below. */
typedef struct mlx5sim_defer_thread {
    volatile sig_atomic_t is_inside;
    volatile sig_atomic_t sig;  /* that has come meanwhile, 0: none */
    siginfo_t             info; /* about it */
    uint64_t              mask; /* signals that were blocked when it came */
} mlx5sim_defer_thread_t;

extern __thread mlx5sim_defer_thread_t mlx5sim_defer_thread;

/** Signals that may interrupt a thread anywhere: all but those of its own
 *  faults. */
void mlx5sim_defer_set(sigset_t *set_p);

/** Set the handler of such a signal, as sigaction() does. */
int mlx5sim_defer_sigaction(int sig, const struct sigaction *action,
                            struct sigaction *old_p);

/** Have the handler run of what has come meanwhile. */
void mlx5sim_defer_run(void);

/** Let no handler run in this thread until @ref mlx5sim_defer_end. */
static inline void mlx5sim_defer_begin(void)
{
    mlx5sim_defer_thread.is_inside = 1;
}

static inline void mlx5sim_defer_end(void)
{
    mlx5sim_defer_thread.is_inside = 0;
    if (__builtin_expect(mlx5sim_defer_thread.sig != 0, 0)) {
        mlx5sim_defer_run();
    }
}

#endif
