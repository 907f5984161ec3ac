/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a program does with memory that the device has put into a file
 * (objs/shared.h) and that is to have the effect that it has on private memory.
 * Like mmap() in fd.c, these have versions: the memory hooks of MPIs and UCX
 * look them up, and have to find the C library's.
 */

#include <sim/libc/real.h>
#include <sim/objs/shared.h>
#include <sim/preload/export.h>

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

/* linux/mman.h since 5.18 */
#define MLX5SIM_MADV_DONTNEED_LOCKED 24

__asm__(".symver mlx5sim_madvise, madvise@GLIBC_2.2.5, remove");
__asm__(".symver mlx5sim_mremap, mremap@GLIBC_2.2.5, remove");


MLX5SIM_EXPORT MLX5SIM_EARLY int
mlx5sim_madvise(void *addr, size_t length, int advice)
{
    int ret, error;

    if (((advice != MADV_DONTNEED) && (advice != MADV_FREE) &&
         (advice != MLX5SIM_MADV_DONTNEED_LOCKED)) ||
        !mlx5sim_shared_is_in((uintptr_t)addr, length)) {
        return REAL(madvise)(addr, length, advice);
    }

    /* the kernel knows no pages of a file that are free */
    ret = REAL(madvise)(addr, length,
                        (advice == MADV_FREE) ? MADV_DONTNEED : advice);
    error = errno;
    if ((ret == 0) || (error == ENOMEM)) { /* a part is not mapped */
        mlx5sim_shared_discard((uintptr_t)addr, length);
    }
    errno = error;
    return ret;
}

MLX5SIM_EXPORT MLX5SIM_EARLY void *
mlx5sim_mremap(void *addr, size_t old_length, size_t length, int flags, ...)
{
    void *to = NULL;
    va_list ap;

    if (flags & ~MREMAP_MAYMOVE) {
        va_start(ap, flags);
        to = va_arg(ap, void*);
        va_end(ap);
    }

    /* what shrinks stays where it is */
    if (((length > old_length) || (flags & ~MREMAP_MAYMOVE)) &&
        mlx5sim_shared_is_in((uintptr_t)addr, old_length)) {
        mlx5sim_shared_withdraw((uintptr_t)addr, old_length);
    }
    return REAL(mremap)(addr, old_length, length, flags, to);
}
