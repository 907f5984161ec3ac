/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The stat family: uverbsN and rdma_cm are presented as character devices.
 */

/* The checking variants are defined here, not used. */
#undef _FORTIFY_SOURCE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/config/identity.h>
#include <sim/libc/real.h>
#include <sim/preload/device.h>
#include <sim/preload/export.h>
#include <sim/preload/redirect.h>
#include <sim/rdmacm/rdmacm.h>
#include <sim/uverbs/uverbs.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Entry points of libc that headers declare only when checking is on, or that
 * old binaries use. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir_fd, const char *path, struct stat *st,
               int flags);
int __fxstatat64(int version, int dir_fd, const char *path, struct stat64 *st,
                 int flags);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64),
               "one function serves both");


static dev_t mlx5sim_device_rdev(unsigned index)
{
    return (index == MLX5SIM_PATH_RDMA_CM) ?
           makedev(MLX5SIM_RDMA_CM_MAJOR, MLX5SIM_RDMA_CM_MINOR) :
           mlx5sim_uverbs_rdev(index);
}

/* Make a result of stat() a character device. */
static void mlx5sim_device_stat(unsigned index, struct stat *st)
{
    st->st_mode   = S_IFCHR | 0666;
    st->st_rdev   = mlx5sim_device_rdev(index);
    st->st_nlink  = 1;
    st->st_size   = 0;
    st->st_blocks = 0;
}

/* Adjust a result of a stat call with a path. */
static void mlx5sim_device_adjust(const mlx5sim_redirect_t *redirect,
                                  struct stat *st)
{
    int saved_errno = errno;
    unsigned index;

    if (redirect->kind == MLX5SIM_PATH_UVERBS) {
        mlx5sim_device_stat(redirect->index, st);
    } else if (S_ISREG(st->st_mode) && (redirect->path[0] != '/') &&
               mlx5sim_device_is_placeholder(redirect->path, st->st_dev,
                                             st->st_ino, &index)) {
        mlx5sim_device_stat(index, st);
    }
    errno = saved_errno;
}

/* Adjust a result of fstat(): the descriptor is a file to the kernel. */
static inline void mlx5sim_device_adjust_fd(int fd, struct stat *st)
{
    int index;

    if (S_ISREG(st->st_mode)) {
        index = mlx5sim_uverbs_fd_device(fd, st->st_ino);
        if (index >= 0) {
            mlx5sim_device_stat(index, st);
        }
    } else if (S_ISFIFO(st->st_mode) &&
               mlx5sim_rdmacm_is_file(fd, st->st_ino)) {
        mlx5sim_device_stat(MLX5SIM_PATH_RDMA_CM, st);
    }
}

/* _call uses path and fills st */
#define MLX5SIM_STAT(_path, _call) \
    { \
        mlx5sim_redirect_t _redirect; \
        const char *path; \
        int _result; \
        \
        if (mlx5sim_redirect_init(&_redirect, _path) != 0) { \
            return -1; \
        } \
        \
        path    = _redirect.path; \
        _result = _call; \
        if (_result == 0) { \
            mlx5sim_device_adjust(&_redirect, (struct stat*)st); \
        } else if (mlx5sim_redirect_retry(&_redirect)) { \
            path    = _redirect.path; \
            _result = _call; \
        } \
        return _result; \
    }

MLX5SIM_EXPORT int stat(const char *name, struct stat *st)
MLX5SIM_STAT(name, REAL(stat)(path, st))

MLX5SIM_EXPORT int stat64(const char *name, struct stat64 *st)
MLX5SIM_STAT(name, REAL(stat64)(path, st))

MLX5SIM_EXPORT int lstat(const char *name, struct stat *st)
MLX5SIM_STAT(name, REAL(lstat)(path, st))

MLX5SIM_EXPORT int lstat64(const char *name, struct stat64 *st)
MLX5SIM_STAT(name, REAL(lstat64)(path, st))

MLX5SIM_EXPORT int __xstat(int version, const char *name, struct stat *st)
MLX5SIM_STAT(name, REAL(__xstat)(version, path, st))

MLX5SIM_EXPORT int __xstat64(int version, const char *name, struct stat64 *st)
MLX5SIM_STAT(name, REAL(__xstat64)(version, path, st))

MLX5SIM_EXPORT int __lxstat(int version, const char *name, struct stat *st)
MLX5SIM_STAT(name, REAL(__lxstat)(version, path, st))

MLX5SIM_EXPORT int __lxstat64(int version, const char *name, struct stat64 *st)
MLX5SIM_STAT(name, REAL(__lxstat64)(version, path, st))

/* With an empty path the *at() calls are fstat(). */
#define MLX5SIM_STATAT(_dir_fd, _path, _flags, _call) \
    { \
        const char *path = _path; \
        int _ret; \
        \
        __asm__("" : "+r"(path)); \
        if (((_flags) & AT_EMPTY_PATH) && \
            ((path == NULL) || (path[0] == '\0'))) { \
            _ret = _call; \
            if (_ret == 0) { \
                mlx5sim_device_adjust_fd(_dir_fd, (struct stat*)st); \
            } \
            return _ret; \
        } \
    } \
    MLX5SIM_STAT(_path, _call)

MLX5SIM_EXPORT int
fstatat(int dir_fd, const char *name, struct stat *st, int flags)
{
    MLX5SIM_STATAT(dir_fd, name, flags,
                   REAL(fstatat)(dir_fd, path, st, flags));
}

MLX5SIM_EXPORT int
fstatat64(int dir_fd, const char *name, struct stat64 *st, int flags)
{
    MLX5SIM_STATAT(dir_fd, name, flags,
                   REAL(fstatat64)(dir_fd, path, st, flags));
}

MLX5SIM_EXPORT int __fxstatat(int version, int dir_fd, const char *name,
                              struct stat *st, int flags)
{
    MLX5SIM_STATAT(dir_fd, name, flags,
                   REAL(__fxstatat)(version, dir_fd, path, st, flags));
}

MLX5SIM_EXPORT int __fxstatat64(int version, int dir_fd, const char *name,
                                struct stat64 *st, int flags)
{
    MLX5SIM_STATAT(dir_fd, name, flags,
                   REAL(__fxstatat64)(version, dir_fd, path, st, flags));
}

#define MLX5SIM_FSTAT(_fd, _call) \
    { \
        int _result = _call; \
        \
        if (_result == 0) { \
            mlx5sim_device_adjust_fd(_fd, (struct stat*)st); \
        } \
        return _result; \
    }

MLX5SIM_EXPORT int fstat(int fd, struct stat *st)
MLX5SIM_FSTAT(fd, REAL(fstat)(fd, st))

MLX5SIM_EXPORT int fstat64(int fd, struct stat64 *st)
MLX5SIM_FSTAT(fd, REAL(fstat64)(fd, st))

MLX5SIM_EXPORT int __fxstat(int version, int fd, struct stat *st)
MLX5SIM_FSTAT(fd, REAL(__fxstat)(version, fd, st))

MLX5SIM_EXPORT int __fxstat64(int version, int fd, struct stat64 *st)
MLX5SIM_FSTAT(fd, REAL(__fxstat64)(version, fd, st))

static void mlx5sim_device_statx(unsigned index, struct statx *stx)
{
    dev_t rdev = mlx5sim_device_rdev(index);

    stx->stx_mode       = S_IFCHR | 0666;
    stx->stx_rdev_major = major(rdev);
    stx->stx_rdev_minor = minor(rdev);
    stx->stx_nlink      = 1;
    stx->stx_size       = 0;
    stx->stx_blocks     = 0;
}

MLX5SIM_EXPORT int statx(int dir_fd, const char *name, int flags,
                         unsigned mask, struct statx *stx)
{
    mlx5sim_redirect_t redirect;
    int result, index;
    unsigned number;

    if (mlx5sim_redirect_init(&redirect, name) != 0) {
        return -1;
    }

    result = REAL(statx)(dir_fd, redirect.path, flags, mask, stx);
    if (result != 0) {
        if (mlx5sim_redirect_retry(&redirect)) {
            result = REAL(statx)(dir_fd, redirect.path, flags, mask, stx);
        }
        return result;
    }

    if (redirect.kind == MLX5SIM_PATH_UVERBS) {
        mlx5sim_device_statx(redirect.index, stx);
    } else if (!S_ISREG(stx->stx_mode)) {
        return 0;
    } else if ((redirect.path == NULL) || (redirect.path[0] == '\0')) {
        index = mlx5sim_uverbs_fd_device(dir_fd, stx->stx_ino);
        if (index >= 0) {
            mlx5sim_device_statx(index, stx);
        }
    } else if ((redirect.path[0] != '/') &&
               mlx5sim_device_is_placeholder(redirect.path,
                                             makedev(stx->stx_dev_major,
                                                     stx->stx_dev_minor),
                                             stx->stx_ino, &number)) {
        mlx5sim_device_statx(number, stx);
    }

    return 0;
}
