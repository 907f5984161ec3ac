/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/seed.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MLX5SIM_SEED_RANDOM "random"

static uint64_t mlx5sim_seed_value;
static atomic_flag mlx5sim_seed_is_told = ATOMIC_FLAG_INIT;


/* @return whether the text is a number */
static int mlx5sim_seed_parse(const char *value, uint64_t *seed_p)
{
    char *end;

    if (!isdigit((unsigned char)value[0])) {
        return 0;
    }

    errno   = 0;
    *seed_p = strtoull(value, &end, !strncmp(value, "0x", 2) ? 16 : 10);
    return (*end == '\0') && (errno == 0);
}

int mlx5sim_seed_check(const char *value)
{
    uint64_t seed;

    return !strcmp(value, MLX5SIM_SEED_RANDOM) ||
           mlx5sim_seed_parse(value, &seed);
}

/* A short number is easier to repeat */
static uint64_t mlx5sim_seed_random(void)
{
    struct timespec now;
    uint32_t seed;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint32_t)now.tv_nsec ^ ((uint32_t)getpid() << 16);
    }
    return seed;
}

void mlx5sim_seed_init(const char *value)
{
    uint64_t seed = 0;

    if (!mlx5sim_seed_parse(value, &seed)) {
        seed = mlx5sim_seed_random();
    }
    mlx5sim_seed_value = seed;
}

void mlx5sim_seed_set(uint64_t seed)
{
    mlx5sim_seed_value = seed;
}

void mlx5sim_seed_tell(void)
{
    if (!atomic_flag_test_and_set(&mlx5sim_seed_is_told)) {
        fprintf(stderr, "mlx5sim: MLX5SIM_SEED=%" PRIu64 " (pid %d)\n",
                mlx5sim_seed_value, (int)getpid());
    }
}

uint64_t mlx5sim_seed(void)
{
    return mlx5sim_seed_value;
}

/* A bijection that scatters neighbours (the finalizer of SplitMix64: Steele,
 * Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014) */
static uint64_t mlx5sim_seed_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ul;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

uint64_t mlx5sim_seed_draw(uint64_t what, uint64_t a, uint64_t b)
{
    static const uint64_t gamma = 0x9e3779b97f4a7c15ul;
    uint64_t x                  = mlx5sim_seed_value;

    x = mlx5sim_seed_mix(x + gamma + what);
    x = mlx5sim_seed_mix(x + gamma + a);
    return mlx5sim_seed_mix(x + gamma + b);
}
