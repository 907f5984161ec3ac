/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uverbs/uverbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#define MLX5SIM_EXPORT __attribute__((visibility("default")))

/* ThreadSanitizer maps memory before it can bear instrumented code */
#define MLX5SIM_HOOK_EARLY __attribute__((no_sanitize("thread")))

/* The system calls on device descriptors that must reach the device. All other
 * calls go through unchanged, as the descriptors are real files. */

MLX5SIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    static int (*func)(int, unsigned long, void*);
    va_list ap;
    void *arg;

    va_start(ap, request);
    arg = va_arg(ap, void*);
    va_end(ap);

    if (request == MLX5SIM_VERBS_IOCTL) {
        return mlx5sim_uverbs_ioctl(fd, arg);
    }

    if (func == NULL) {
        func = (int (*)(int, unsigned long, void*))dlsym(RTLD_NEXT, "ioctl");
    }
    return func(fd, request, arg);
}

MLX5SIM_EXPORT int close(int fd)
{
    static int (*func)(int);

    mlx5sim_uverbs_close(fd);
    if (func == NULL) {
        func = (int (*)(int))dlsym(RTLD_NEXT, "close");
    }
    return func(fd);
}

/* Offered to who asks for the symbol by its version, as programs and libraries
 * do, but not to dlsym(): the memory hooks of MPIs and UCX look mmap() up to
 * change its code, and have to find that of the C library. */
__asm__(".symver mlx5sim_mmap, mmap@GLIBC_2.2.5, remove");

MLX5SIM_EXPORT MLX5SIM_HOOK_EARLY void *
mlx5sim_mmap(void *addr, size_t length, int prot, int flags, int fd,
             off_t offset)
{
    static void *(*func)(void*, size_t, int, int, int, off_t);
    uint32_t uar = 0;
    void *ptr;
    int ret;

    if (func == NULL) {
        func = (void *(*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT,
                                                                     "mmap");
    }

    if ((fd >= 0) && !(flags & MAP_ANONYMOUS)) {
        ret = mlx5sim_uverbs_map(fd, length, offset, &uar);
        if (ret != 0) {
            errno = -ret;
            return MAP_FAILED;
        }
    }

    ptr = func(addr, length, prot, flags, fd, offset);
    if ((ptr == MAP_FAILED) && (uar != 0)) {
        mlx5sim_uverbs_map_failed(fd, offset);
    }
    return ptr;
}
