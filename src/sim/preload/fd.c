/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The system calls on device descriptors that must reach the device. All other
 * calls go through unchanged, as the descriptors are real files.
 */

#include <sim/libc/real.h>
#include <sim/preload/export.h>
#include <sim/preload/memory.h>
#include <sim/rdmacm/rdmacm.h>
#include <sim/uverbs/attach.h>
#include <sim/uverbs/fd.h>
#include <sim/uverbs/uverbs.h>

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>


MLX5SIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, request);
    arg = va_arg(ap, void*);
    va_end(ap);

    return (request == MLX5SIM_VERBS_IOCTL) ? mlx5sim_uverbs_ioctl(fd, arg) :
                                              REAL(ioctl)(fd, request, arg);
}

static void mlx5sim_fd_closed(int fd)
{
    mlx5sim_rdmacm_close(fd);
    mlx5sim_uverbs_close(fd);
}

MLX5SIM_EXPORT int close(int fd)
{
    mlx5sim_fd_closed(fd);
    return REAL(close)(fd);
}

MLX5SIM_EXPORT int dup2(int from, int to)
{
    int fd = REAL(dup2)(from, to);

    if ((fd >= 0) && (from != to)) {
        mlx5sim_fd_closed(to);
    }
    return fd;
}

MLX5SIM_EXPORT int dup3(int from, int to, int flags)
{
    int fd = REAL(dup3)(from, to, flags);

    if (fd >= 0) {
        mlx5sim_fd_closed(to);
    }
    return fd;
}

/* Before the numbers are free: another thread may open the device */
static void mlx5sim_fd_close_range(unsigned first, unsigned last)
{
    unsigned fd;

    if (mlx5sim_attach_is_other()) {
        return; /* a child that has this memory, but its own descriptors */
    }

    for (fd = first; (fd <= last) && (fd < MLX5SIM_MAX_FD); ++fd) {
        if (mlx5sim_fd_get(fd) != 0) {
            mlx5sim_fd_closed(fd);
        }
    }
}

/* With flags, descriptors stay open, or are those of this thread alone from
 * then on */
MLX5SIM_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (flags == 0) {
        mlx5sim_fd_close_range(first, last);
    }
    return REAL(close_range)(first, last, flags);
}

MLX5SIM_EXPORT void closefrom(int first)
{
    mlx5sim_fd_close_range((first > 0) ? first : 0, UINT_MAX);
    REAL(closefrom)(first);
}

/* What is written to the connection manager are commands */
MLX5SIM_EXPORT ssize_t write(int fd, const void *buf, size_t size)
{
    return (__builtin_expect(mlx5sim_rdmacm_is_fd(fd), 0) &&
            mlx5sim_rdmacm_is_open(fd)) ?
           mlx5sim_rdmacm_write(fd, buf, size) : REAL(write)(fd, buf, size);
}

/* Visible to programs and libraries, which ask for the symbol by version, but
 * not to dlsym(): the memory hooks of MPIs and UCX look mmap() up to patch its
 * code, and have to find the C library's. */
__asm__(".symver mlx5sim_mmap, mmap@GLIBC_2.2.5, remove");
__asm__(".symver mlx5sim_mmap64, mmap64@GLIBC_2.2.5, remove");

MLX5SIM_EXPORT MLX5SIM_EARLY void *
mlx5sim_mmap(void *addr, size_t length, int prot, int flags, int fd,
             off_t offset)
{
    uint32_t uar = 0;
    void *ptr;
    int ret;

    if ((fd >= 0) && !(flags & MAP_ANONYMOUS)) {
        ret = mlx5sim_uverbs_map(fd, length, prot, offset, &uar);
        if (ret != 0) {
            errno = -ret;
            return MAP_FAILED;
        }
    }

    ptr = REAL(mmap)(addr, length, prot, flags, fd, offset);
    if (ptr != MAP_FAILED) {
        mlx5sim_memory_mapped(__builtin_return_address(0), ptr, length, prot,
                              flags);
    } else if (uar != 0) {
        mlx5sim_uverbs_map_failed(fd, offset);
    }
    return ptr;
}

/* With _FILE_OFFSET_BITS=64: off_t has them anyway */
MLX5SIM_EXPORT __typeof__(mlx5sim_mmap) mlx5sim_mmap64
        __attribute__((alias("mlx5sim_mmap")));
