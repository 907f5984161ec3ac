/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Opening files by path: for uverbsN, a device is opened.
 */

/* The checking variants are defined here, not used. */
#undef _FORTIFY_SOURCE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/instance/instance.h>
#include <sim/libc/real.h>
#include <sim/preload/device.h>
#include <sim/preload/export.h>
#include <sim/preload/redirect.h>
#include <sim/uverbs/counters.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entry points of libc that headers declare only when checking is on, or that
 * old binaries use. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);
int __openat64_2(int dir_fd, const char *path, int flags);


static inline int mlx5sim_open_has_mode(int flags)
{
    return (flags & O_CREAT) || ((flags & O_TMPFILE) == O_TMPFILE);
}

typedef int (*mlx5sim_openat_func_t)(int dir_fd, const char *path, int flags,
                                     ...);

/* A relative path was opened: if it is a placeholder, take the device. */
static __attribute__((noinline)) int
mlx5sim_open_relative(int fd, const char *path, int flags)
{
    struct stat st;
    unsigned index;

    if ((flags & O_PATH) || (REAL(fstat)(fd, &st) != 0) ||
        !S_ISREG(st.st_mode) ||
        !mlx5sim_device_is_placeholder(path, st.st_dev, st.st_ino,
                                       &index)) {
        return fd;
    }

    close(fd);
    return mlx5sim_device_open(index, flags);
}

/* The file that a relative path has opened is one of a port's counters: have it
 * written, and open the new one. */
static __attribute__((noinline)) int
mlx5sim_open_counter(int dir_fd, const char *path, int flags, int fd,
                     mlx5sim_openat_func_t real_openat)
{
    char name[32], file[PATH_MAX];
    ssize_t length;

    snprintf(name, sizeof(name), "/proc/thread-self/fd/%d", fd);
    length = REAL(readlink)(name, file, sizeof(file) - 1);
    file[(length > 0) ? length : 0] = '\0';
    if ((strstr(file, "/sysfs/devices/") == NULL) ||
        (mlx5sim_instance_dir() == NULL)) {
        return fd;
    }

    mlx5sim_counters_refresh(file);
    close(fd);
    return real_openat(dir_fd, path, flags);
}

/* All of open*(): for those without dir_fd, AT_FDCWD is the same. */
static int mlx5sim_open_common(int dir_fd, const char *path, int flags,
                               mode_t mode, mlx5sim_openat_func_t real_openat)
{
    mlx5sim_redirect_t redirect;
    int fd;

    if (mlx5sim_redirect_init(&redirect, path) != 0) {
        return -1;
    }

    /* O_PATH only refers to a file */
    if ((redirect.kind == MLX5SIM_PATH_UVERBS) && !(flags & O_PATH)) {
        return mlx5sim_device_open(redirect.index, flags);
    }

    fd = real_openat(dir_fd, redirect.path, flags, mode);
    if (__builtin_expect(fd < 0, 0)) {
        if (mlx5sim_redirect_retry(&redirect)) {
            fd = real_openat(dir_fd, redirect.path, flags, mode);
        }
    } else if ((path[0] == 'u') || ((path[0] != '/') && strchr(path, '/'))) {
        fd = mlx5sim_open_relative(fd, path, flags);
        if (__builtin_expect(strstr(path, "counters/") != NULL, 0) &&
            (fd >= 0) && !mlx5sim_open_has_mode(flags)) {
            fd = mlx5sim_open_counter(dir_fd, path, flags, fd, real_openat);
        }
    }

    return fd;
}

/* Body of an interposer with a mode argument that is present only if the flags
 * say so. */
#define MLX5SIM_OPEN(_dir_fd, _openat) \
    { \
        mode_t _mode = 0; \
        va_list _ap; \
        \
        if (mlx5sim_open_has_mode(flags)) { \
            va_start(_ap, flags); \
            _mode = va_arg(_ap, mode_t); \
            va_end(_ap); \
        } \
        return mlx5sim_open_common(_dir_fd, path, flags, _mode, \
                                   REAL(_openat)); \
    }

MLX5SIM_EXPORT int open(const char *path, int flags, ...)
MLX5SIM_OPEN(AT_FDCWD, openat)

MLX5SIM_EXPORT int open64(const char *path, int flags, ...)
MLX5SIM_OPEN(AT_FDCWD, openat64)

MLX5SIM_EXPORT int openat(int dir_fd, const char *path, int flags, ...)
MLX5SIM_OPEN(dir_fd, openat)

MLX5SIM_EXPORT int openat64(int dir_fd, const char *path, int flags, ...)
MLX5SIM_OPEN(dir_fd, openat64)

/* The checking variants stand for calls without a mode; libc aborts the program
 * if the flags need one. */
#define MLX5SIM_OPEN_CHECKED(_dir_fd, _openat, _call) \
    { \
        return mlx5sim_open_has_mode(flags) ? _call : \
               mlx5sim_open_common(_dir_fd, path, flags, 0, REAL(_openat)); \
    }

MLX5SIM_EXPORT int __open_2(const char *path, int flags)
MLX5SIM_OPEN_CHECKED(AT_FDCWD, openat, REAL(__open_2)(path, flags))

MLX5SIM_EXPORT int __open64_2(const char *path, int flags)
MLX5SIM_OPEN_CHECKED(AT_FDCWD, openat64, REAL(__open64_2)(path, flags))

MLX5SIM_EXPORT int __openat_2(int dir_fd, const char *path, int flags)
MLX5SIM_OPEN_CHECKED(dir_fd, openat, REAL(__openat_2)(dir_fd, path, flags))

MLX5SIM_EXPORT int __openat64_2(int dir_fd, const char *path, int flags)
MLX5SIM_OPEN_CHECKED(dir_fd, openat64, REAL(__openat64_2)(dir_fd, path, flags))

/* libc opens the file without calling open(), so a stream on a character device
 * is made of a descriptor. */
static FILE *mlx5sim_fopen_device(const char *path, const char *mode)
{
    FILE *file = NULL;
    int fd, saved_errno;

    fd = open(path, (strchr(mode, 'e') ? O_CLOEXEC : 0) |
                            (strchr(mode, '+') ? O_RDWR :
                             (mode[0] == 'r')  ? O_RDONLY :
                                                 O_WRONLY));
    if (fd >= 0) {
        file = fdopen(fd, mode);
        if (file == NULL) {
            saved_errno = errno;
            close(fd);
            errno = saved_errno;
        }
    }

    return file;
}

static FILE *
mlx5sim_fopen_common(const char *path, const char *mode,
                     FILE *(*real_fopen)(const char *path, const char *mode))
{
    mlx5sim_redirect_t redirect;
    FILE *file;

    if (mlx5sim_redirect_init(&redirect, path) != 0) {
        return NULL;
    }

    if (redirect.kind == MLX5SIM_PATH_UVERBS) {
        return mlx5sim_fopen_device(path, mode);
    }

    file = real_fopen(redirect.path, mode);
    if ((file == NULL) && mlx5sim_redirect_retry(&redirect)) {
        file = real_fopen(redirect.path, mode);
    }
    return file;
}

MLX5SIM_EXPORT FILE *fopen(const char *path, const char *mode)
{
    return mlx5sim_fopen_common(path, mode, REAL(fopen));
}

MLX5SIM_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return mlx5sim_fopen_common(path, mode, REAL(fopen64));
}

MLX5SIM_EXPORT FILE *freopen(const char *name, const char *mode, FILE *stream)
MLX5SIM_REDIRECT(name, FILE*, NULL, REAL(freopen)(path, mode, stream))

MLX5SIM_EXPORT FILE *freopen64(const char *name, const char *mode, FILE *stream)
MLX5SIM_REDIRECT(name, FILE*, NULL, REAL(freopen64)(path, mode, stream))
