/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/clock_page.h>
#include <sim/objs/clock.h>
#include <sim/uar/layout.h>
#include <sim/uar/window.h>

#include <endian.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ticks are multiplied by this and shifted; not 1 and 0, so that who forgets it
 * is found out */
#define MLX5SIM_CLOCK_SHIFT  8
#define MLX5SIM_CLOCK_MULT   (1u << MLX5SIM_CLOCK_SHIFT)
/* The kernel changes this word to tell that it was here; odd: it still is */
#define MLX5SIM_CLOCK_SIGN   2


/* The contents are right until the product overflows, which takes years: the
 * page, unlike the kernel's, need not be renewed. */
static void mlx5sim_clock_page_fill(struct mlx5_ib_clock_info *info)
{
    uint64_t nsec = 0, ticks = 0; /* for compilers that can't tell */

    mlx5sim_clock_of_day(&nsec, &ticks);
    info->nsec            = nsec;
    info->cycles          = ticks;
    info->frac            = 0;
    info->mult            = MLX5SIM_CLOCK_MULT;
    info->shift           = MLX5SIM_CLOCK_SHIFT;
    info->mask            = MLX5SIM_CLOCK_MASK;
    info->overflow_period = UINT64_MAX >> (2 * MLX5SIM_CLOCK_SHIFT);
    info->sign            = MLX5SIM_CLOCK_SIGN;
}

int mlx5sim_clock_page_fault(uintptr_t addr)
{
    size_t size = MLX5SIM_UAR_PAGE_SIZE;
    uintptr_t page, fresh;

    if (mlx5sim_window_file_page(addr, &page) != MLX5SIM_UAR_PAGE_CLOCK) {
        return 0;
    }

    /* not through the C library: programs hook its functions */
    fresh = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == (uintptr_t)MAP_FAILED) {
        return 0;
    }

    mlx5sim_clock_page_fill((struct mlx5_ib_clock_info*)fresh);
    if ((syscall(SYS_mprotect, fresh, size, PROT_READ) != 0) ||
        (syscall(SYS_mremap, fresh, size, size,
                 MREMAP_MAYMOVE | MREMAP_FIXED, page) == -1)) {
        syscall(SYS_munmap, fresh, size);
        return 0;
    }

    return 1;
}

void mlx5sim_clock_page_load(void *arg, uintptr_t addr, void *data,
                             unsigned length)
{
    uint64_t clock  = htobe64(mlx5sim_clock_now());
    unsigned offset = (addr & (MLX5SIM_UAR_PAGE_SIZE - 1)) -
                      MLX5SIM_UAR_OFFSET_CORE_CLOCK;
    unsigned rest;

    (void)arg;
    if (offset < sizeof(clock)) {
        rest = sizeof(clock) - offset;
        memcpy(data, (const char*)&clock + offset,
               (length < rest) ? length : rest);
    }
}
