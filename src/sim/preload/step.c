/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Stepped execution, for programs that look for these functions by name. They
 * have no header: test/gtest/common/step.h is how tests call them.
 */

#include <sim/config/seed.h>
#include <sim/preload/export.h>
#include <sim/sched/chance.h>
#include <sim/sched/helper.h>

#include <stdint.h>

int mlx5sim_step(void);
void mlx5sim_restart(uint64_t seed);


MLX5SIM_EXPORT int mlx5sim_step(void)
{
    return mlx5sim_helper_step();
}

MLX5SIM_EXPORT void mlx5sim_restart(uint64_t seed)
{
    if (mlx5sim_chance_is_stepped()) {
        mlx5sim_seed_set(seed);
        mlx5sim_helper_restart();
    }
}
