/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PACE_H_
#define MLX5SIM_PACE_H_

#include <stdint.h>

/*
 * Pauses of deferred execution, between rounds in which it only waits. Who is
 * woken much too late shares its processor with others, and would do a round
 * in each of their time slices: the rounds that it has missed follow without
 * pauses. Times are in nanoseconds, on mlx5sim_now_ns()'s clock.
 */

/** A pause. */
#define MLX5SIM_PACE_NS       20000

/** Every system takes some time to wake a thread: this much is too late. */
#define MLX5SIM_PACE_LATE_NS  200000

/** Rounds that follow without pauses at most. */
#define MLX5SIM_PACE_MAX_OWED 512

typedef struct mlx5sim_pace {
    uint64_t until; /* end of the pause */
    unsigned owed;  /* rounds without one */
} mlx5sim_pace_t;


/** @return When the next round is due: @a now if that is without a pause. */
static inline uint64_t mlx5sim_pace_pause(mlx5sim_pace_t *pace, uint64_t now)
{
    if (pace->owed > 0) {
        --pace->owed;
        pace->until = now;
    } else {
        pace->until = now + MLX5SIM_PACE_NS;
    }
    return pace->until;
}


/** After a sleep that was to end at @a until, which need not be a pause. */
static inline void
mlx5sim_pace_wake(mlx5sim_pace_t *pace, uint64_t until, uint64_t now)
{
    if ((until == pace->until) && (now >= until + MLX5SIM_PACE_LATE_NS)) {
        pace->owed = (now - until) / MLX5SIM_PACE_NS;
        if (pace->owed > MLX5SIM_PACE_MAX_OWED) {
            pace->owed = MLX5SIM_PACE_MAX_OWED;
        }
    }
}

#endif
