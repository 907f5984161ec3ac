/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/clock.h>

#include <time.h>

/* Two clocks can't be read at once: try so often to read them without
 * interruption */
#define MLX5SIM_CLOCK_TRIES 16


static uint64_t mlx5sim_clock_read(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000) + ts.tv_nsec;
}

uint64_t mlx5sim_clock_now(void)
{
    return mlx5sim_clock_read(CLOCK_MONOTONIC) & MLX5SIM_CLOCK_MASK;
}

void mlx5sim_clock_of_day(uint64_t *nsec_p, uint64_t *ticks_p)
{
    uint64_t best = UINT64_MAX;
    uint64_t before, nsec, after;
    unsigned i;

    for (i = 0; i < MLX5SIM_CLOCK_TRIES; ++i) {
        before = mlx5sim_clock_now();
        nsec   = mlx5sim_clock_read(CLOCK_REALTIME);
        after  = mlx5sim_clock_now();
        if (after - before < best) {
            best     = after - before;
            *nsec_p  = nsec;
            *ticks_p = before + ((after - before) / 2);
        }
    }
}
