/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/mapping.h>

#include <stdatomic.h>

#define MLX5SIM_MAPPING_PAGE 4096ul

/* How many mappings a program may make until it registers one: each call of
 * mmap() and munmap() looks through them */
#define MLX5SIM_MAPPING_NUM  128

/* No address of user space has it */
#define MLX5SIM_MAPPING_NO_FORK (1ull << 63)

/* The address, and the number of pages - 1 in the bits that it leaves. 0: none.
 * One word, so that nobody sees a half of it. */
static _Atomic uint64_t mlx5sim_mappings[MLX5SIM_MAPPING_NUM];
static _Atomic unsigned mlx5sim_mapping_next;
static _Atomic int mlx5sim_mapping_is_off;


/* @return 0: it is too large to be shared, or is none */
static uint64_t mlx5sim_mapping_word(uint64_t addr, uint64_t length)
{
    uint64_t last = (length - 1) / MLX5SIM_MAPPING_PAGE;

    return ((length == 0) || (addr & (MLX5SIM_MAPPING_PAGE - 1)) ||
            (last >= MLX5SIM_MAPPING_PAGE)) ? 0 : addr | last;
}

static int
mlx5sim_mapping_has_common(uint64_t word, uint64_t addr, uint64_t length)
{
    uint64_t where = word & ~MLX5SIM_MAPPING_NO_FORK;
    uint64_t first = where & ~(MLX5SIM_MAPPING_PAGE - 1);
    uint64_t last  = where & (MLX5SIM_MAPPING_PAGE - 1);

    return (word != 0) && (addr < first + (last + 1) * MLX5SIM_MAPPING_PAGE) &&
           ((addr >= first) || (length > first - addr));
}

/* Have another word, with or without an attribute, for the mapping of @a word,
 * and forget others that have a part of it */
static void mlx5sim_mapping_change(uint64_t addr, uint64_t length,
                                   uint64_t word, uint64_t attribute)
{
    uint64_t old, now;
    unsigned i;

    if (atomic_load_explicit(&mlx5sim_mapping_is_off, memory_order_relaxed)) {
        return;
    }

    for (i = 0; i < MLX5SIM_MAPPING_NUM; ++i) {
        old = atomic_load_explicit(&mlx5sim_mappings[i], memory_order_relaxed);
        if (mlx5sim_mapping_has_common(old, addr, length)) {
            now = ((old & ~MLX5SIM_MAPPING_NO_FORK) == word) ?
                  word | attribute : 0;
            /* another thread may have noted a new one there */
            (void)atomic_compare_exchange_strong(&mlx5sim_mappings[i], &old,
                                                 now);
        }
    }
}

void mlx5sim_mapping_stop(void)
{
    atomic_store(&mlx5sim_mapping_is_off, 1);
}

void mlx5sim_mapping_note(uint64_t addr, uint64_t length)
{
    uint64_t word = mlx5sim_mapping_word(addr, length);

    if ((word != 0) && !atomic_load_explicit(&mlx5sim_mapping_is_off,
                                             memory_order_relaxed)) {
        atomic_store(&mlx5sim_mappings[atomic_fetch_add(&mlx5sim_mapping_next,
                                                        1) %
                                       MLX5SIM_MAPPING_NUM],
                     word);
    }
}

void mlx5sim_mapping_forget(uint64_t addr, uint64_t length)
{
    mlx5sim_mapping_change(addr, length, 0, 0);
}

void mlx5sim_mapping_set_fork(uint64_t addr, uint64_t length, int is_forked)
{
    uint64_t word = mlx5sim_mapping_word(addr, length);

    mlx5sim_mapping_change(addr, length, word,
                           (is_forked || (word == 0)) ?
                           0 : MLX5SIM_MAPPING_NO_FORK);
}

int mlx5sim_mapping_is_one(uint64_t addr, uint64_t length, int *is_forked_p)
{
    uint64_t word = mlx5sim_mapping_word(addr, length);
    uint64_t found;
    unsigned i;

    for (i = 0; (word != 0) && (i < MLX5SIM_MAPPING_NUM); ++i) {
        found = atomic_load(&mlx5sim_mappings[i]);
        if ((found & ~MLX5SIM_MAPPING_NO_FORK) == word) {
            *is_forked_p = found == word;
            return 1;
        }
    }
    return 0;
}
