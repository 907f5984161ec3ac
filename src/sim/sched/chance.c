/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/sched/chance.h>
#include <sim/config/seed.h>

#define MLX5SIM_LONG_WAIT 8   /* times the usual */

static mlx5sim_chance_t mlx5sim_chances;


void mlx5sim_chance_init(const mlx5sim_chance_t *chance)
{
    mlx5sim_chances = *chance;
}

int mlx5sim_chance_is_deferred(void)
{
    return mlx5sim_chances.is_deferred;
}

int mlx5sim_chance_is_stepped(void)
{
    return mlx5sim_chances.is_stepped;
}

uint64_t mlx5sim_chance(mlx5sim_chance_kind_t kind, uint32_t qpn,
                        uint64_t number)
{
    return mlx5sim_seed_draw(kind, qpn, number);
}

unsigned mlx5sim_chance_wait(mlx5sim_chance_kind_t kind, uint32_t qpn,
                             uint64_t number)
{
    uint64_t dice = mlx5sim_chance(kind, qpn, number);
    uint64_t none = (kind == MLX5SIM_CHANCE_CONTINUE) ? 7 : 1;
    unsigned rounds;

    if (((dice & none) != 0) || (mlx5sim_chances.delay == 0)) {
        return 0;
    }

    rounds = 1 + ((dice >> 16) % mlx5sim_chances.delay);
    return ((dice & 0x1f0) == 0) ? rounds * MLX5SIM_LONG_WAIT : rounds;
}

int mlx5sim_chance_is_lost(mlx5sim_chance_kind_t kind, uint32_t qpn,
                           uint64_t number)
{
    return (mlx5sim_chances.loss != 0) &&
           ((mlx5sim_chance(kind, qpn, number) >> 8) % 1000 <
            mlx5sim_chances.loss);
}
