/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * All other functions that take a path: only the path is replaced.
 */

/* The checking variants are defined here, not used. */
#undef _FORTIFY_SOURCE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/libc/real.h>
#include <sim/preload/export.h>
#include <sim/preload/redirect.h>

#include <dirent.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Entry points of libc that headers declare only when checking is on, or that
 * old binaries use. */
char *__realpath_chk(const char *path, char *resolved, size_t size);
ssize_t __readlink_chk(const char *path, char *buf, size_t length, size_t size);
ssize_t __readlinkat_chk(int dir_fd, const char *path, char *buf, size_t length,
                         size_t size);

/*
 * Directories
 */

MLX5SIM_EXPORT DIR *opendir(const char *name)
MLX5SIM_REDIRECT(name, DIR*, NULL, REAL(opendir)(path))

MLX5SIM_EXPORT int scandir(const char *name, struct dirent ***list_p,
                           int (*filter)(const struct dirent *entry),
                           int (*compare)(const struct dirent **a,
                                          const struct dirent **b))
MLX5SIM_REDIRECT(name, int, -1, REAL(scandir)(path, list_p, filter, compare))

MLX5SIM_EXPORT int scandir64(const char *name, struct dirent64 ***list_p,
                             int (*filter)(const struct dirent64 *entry),
                             int (*compare)(const struct dirent64 **a,
                                            const struct dirent64 **b))
MLX5SIM_REDIRECT(name, int, -1, REAL(scandir64)(path, list_p, filter, compare))

/* A process whose working directory is in our tree reaches it by relative
 * paths; getcwd() tells the real place. */
MLX5SIM_EXPORT int chdir(const char *name)
MLX5SIM_REDIRECT(name, int, -1, REAL(chdir)(path))

/*
 * Access rights, links, extended attributes
 */

MLX5SIM_EXPORT int access(const char *name, int mode)
MLX5SIM_REDIRECT(name, int, -1, REAL(access)(path, mode))

MLX5SIM_EXPORT int faccessat(int dir_fd, const char *name, int mode, int flags)
MLX5SIM_REDIRECT(name, int, -1, REAL(faccessat)(dir_fd, path, mode, flags))

MLX5SIM_EXPORT int eaccess(const char *name, int mode)
MLX5SIM_REDIRECT(name, int, -1, REAL(eaccess)(path, mode))

MLX5SIM_EXPORT int euidaccess(const char *name, int mode)
MLX5SIM_REDIRECT(name, int, -1, REAL(euidaccess)(path, mode))

MLX5SIM_EXPORT ssize_t readlink(const char *name, char *buf, size_t length)
MLX5SIM_REDIRECT(name, ssize_t, -1, REAL(readlink)(path, buf, length))

MLX5SIM_EXPORT ssize_t readlinkat(int dir_fd, const char *name, char *buf,
                                  size_t length)
MLX5SIM_REDIRECT(name, ssize_t, -1,
                 REAL(readlinkat)(dir_fd, path, buf, length))

MLX5SIM_EXPORT ssize_t __readlink_chk(const char *name, char *buf,
                                      size_t length, size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1,
                 REAL(__readlink_chk)(path, buf, length, size))

MLX5SIM_EXPORT ssize_t __readlinkat_chk(int dir_fd, const char *name, char *buf,
                                        size_t length, size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1,
                 REAL(__readlinkat_chk)(dir_fd, path, buf, length, size))

MLX5SIM_EXPORT ssize_t getxattr(const char *name, const char *attr, void *value,
                                size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1, REAL(getxattr)(path, attr, value, size))

MLX5SIM_EXPORT ssize_t lgetxattr(const char *name, const char *attr,
                                 void *value, size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1, REAL(lgetxattr)(path, attr, value, size))

MLX5SIM_EXPORT ssize_t listxattr(const char *name, char *list, size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1, REAL(listxattr)(path, list, size))

MLX5SIM_EXPORT ssize_t llistxattr(const char *name, char *list, size_t size)
MLX5SIM_REDIRECT(name, ssize_t, -1, REAL(llistxattr)(path, list, size))

/* _call uses path. The result is what the kernel would return: a public
 * path. */
#define MLX5SIM_REALPATH(_path, _call) \
    { \
        mlx5sim_redirect_t _redirect; \
        const char *path; \
        char *_result; \
        \
        if (mlx5sim_redirect_init(&_redirect, _path) != 0) { \
            return NULL; \
        } \
        \
        path    = _redirect.path; \
        _result = _call; \
        if ((_result == NULL) && mlx5sim_redirect_retry(&_redirect)) { \
            path    = _redirect.path; \
            _result = _call; \
        } \
        if ((_result != NULL) && \
            ((_redirect.kind >= MLX5SIM_PATH_SYSFS) || (path[0] != '/'))) { \
            mlx5sim_path_unmap(_result); \
        } \
        return _result; \
    }

MLX5SIM_EXPORT char *realpath(const char *name, char *resolved)
MLX5SIM_REALPATH(name, REAL(realpath)(path, resolved))

MLX5SIM_EXPORT char *
__realpath_chk(const char *name, char *resolved, size_t size)
MLX5SIM_REALPATH(name, REAL(__realpath_chk)(path, resolved, size))

MLX5SIM_EXPORT char *canonicalize_file_name(const char *name)
MLX5SIM_REALPATH(name, REAL(canonicalize_file_name)(path))
