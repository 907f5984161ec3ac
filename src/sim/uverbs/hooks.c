/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uverbs/uverbs.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>

#define MLX5SIM_EXPORT __attribute__((visibility("default")))

/* The two system calls on device descriptors that must reach the device. All
 * other calls go through unchanged, as the descriptors are real files. */

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
