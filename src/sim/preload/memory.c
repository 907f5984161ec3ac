/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a program does with memory that the device has put into a file
 * (objs/shared.h), and that is to have the effect that it has on private
 * memory, or with what the device may put there (objs/mapping.h). Like mmap()
 * in fd.c, some have versions: the memory hooks of MPIs and UCX look them up,
 * and have to find the C library's.
 */

#include <sim/preload/memory.h>
#include <sim/libc/real.h>
#include <sim/objs/mapping.h>
#include <sim/objs/shared.h>
#include <sim/preload/export.h>

#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

/* linux/mman.h since 5.18 */
#define MLX5SIM_MADV_DONTNEED_LOCKED 24

__asm__(".symver mlx5sim_madvise, madvise@GLIBC_2.2.5, remove");
__asm__(".symver mlx5sim_mremap, mremap@GLIBC_2.2.5, remove");
__asm__(".symver mlx5sim_munmap, munmap@GLIBC_2.2.5, remove");

/* Where the object with malloc() is. Until that is known nothing counts: an
 * allocator maps memory before constructors run. */
static uintptr_t mlx5sim_memory_heap_lo;
static uintptr_t mlx5sim_memory_heap_hi;


static int
mlx5sim_memory_look(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t lo = UINTPTR_MAX;
    uintptr_t hi = 0;
    uintptr_t start, end;
    unsigned i;

    for (i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            end   = start + info->dlpi_phdr[i].p_memsz;
            lo    = (start < lo) ? start : lo;
            hi    = (end > hi) ? end : hi;
        }
    }

    if (((uintptr_t)arg < lo) || ((uintptr_t)arg >= hi)) {
        return 0;
    }

    mlx5sim_memory_heap_lo = lo;
    mlx5sim_memory_heap_hi = hi;
    return 1;
}

static void __attribute__((constructor)) mlx5sim_memory_find_heap(void)
{
    (void)dl_iterate_phdr(mlx5sim_memory_look, (void*)malloc);
}

static MLX5SIM_EARLY void
mlx5sim_memory_forget(const void *addr, size_t length)
{
    if (mlx5sim_memory_heap_hi != 0) {
        mlx5sim_mapping_forget((uintptr_t)addr, length);
    }
}

MLX5SIM_EARLY void
mlx5sim_memory_mapped(const void *caller, void *addr, size_t length,
                      int protection, int flags)
{
    /* what was there before, if its end was not seen */
    mlx5sim_memory_forget(addr, length);
    if ((mlx5sim_memory_heap_hi != 0) &&
        (protection == (PROT_READ | PROT_WRITE)) &&
        (flags == (MAP_PRIVATE | MAP_ANONYMOUS)) &&
        (((uintptr_t)caller < mlx5sim_memory_heap_lo) ||
         ((uintptr_t)caller >= mlx5sim_memory_heap_hi))) {
        mlx5sim_mapping_note((uintptr_t)addr, length);
    }
}

MLX5SIM_EXPORT MLX5SIM_EARLY int
mlx5sim_madvise(void *addr, size_t length, int advice)
{
    int ret, error;

    if ((advice == MADV_DONTFORK) || (advice == MADV_DOFORK)) {
        mlx5sim_mapping_set_fork((uintptr_t)addr, length,
                                 advice == MADV_DOFORK);
        mlx5sim_shared_set_fork((uintptr_t)addr, length,
                                advice == MADV_DOFORK);
    } else {
        mlx5sim_memory_forget(addr, length);
    }

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
    void *ptr;

    if (flags & ~MREMAP_MAYMOVE) {
        va_start(ap, flags);
        to = va_arg(ap, void*);
        va_end(ap);
    }

    /* what shrinks stays where it is */
    if (((length > old_length) || (flags & ~MREMAP_MAYMOVE)) &&
        mlx5sim_shared_is_in((uintptr_t)addr, old_length) &&
        (mlx5sim_shared_withdraw((uintptr_t)addr, old_length) != 0)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }

    mlx5sim_memory_forget(addr, old_length);
    ptr = REAL(mremap)(addr, old_length, length, flags, to);
    if (ptr != MAP_FAILED) {
        mlx5sim_memory_forget(ptr, length);
    }
    return ptr;
}

MLX5SIM_EXPORT MLX5SIM_EARLY int mlx5sim_munmap(void *addr, size_t length)
{
    int is_shared = (mlx5sim_memory_heap_hi != 0) &&
                    mlx5sim_shared_is_in((uintptr_t)addr, length);
    int ret;

    /* another thread may get the place at once */
    mlx5sim_memory_forget(addr, length);
    if (is_shared) {
        mlx5sim_shared_leave((uintptr_t)addr, length);
    }

    ret = REAL(munmap)(addr, length);
    if (is_shared && (ret == 0)) {
        mlx5sim_shared_left();
    }
    return ret;
}

/* Pages that are locked, or have a key, and are not touched by that */
MLX5SIM_EXPORT int mlock2(const void *addr, size_t length, unsigned flags)
{
    mlx5sim_memory_forget(addr, length);
    return REAL(mlock2)(addr, length, flags);
}

MLX5SIM_EXPORT int mlockall(int flags)
{
    mlx5sim_memory_forget(NULL, SIZE_MAX);
    return REAL(mlockall)(flags);
}

MLX5SIM_EXPORT int
pkey_mprotect(void *addr, size_t length, int protection, int key)
{
    mlx5sim_memory_forget(addr, length);
    return REAL(pkey_mprotect)(addr, length, protection, key);
}
