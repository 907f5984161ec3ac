/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The libc functions that take path names, in effect wherever libmlx5sim.so is
 * preloaded: what is ours (path.h) is looked up in the instance directory, and
 * /dev/infiniband/uverbsN is opened by mlx5sim_uverbs_open().
 */

/* The checking variants are defined here, not used. */
#undef _FORTIFY_SOURCE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sim/config/identity.h"
#include "sim/instance/instance.h"
#include "sim/instance/path.h"
#include "sim/uverbs/uverbs.h"

#include <alloca.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <linux/netlink.h>
#include <unistd.h>

/* Entry points of libc that headers declare only when checking is on, or that
 * old binaries use. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);
int __openat64_2(int dir_fd, const char *path, int flags);
char *__realpath_chk(const char *path, char *resolved, size_t size);
ssize_t __readlink_chk(const char *path, char *buf, size_t length, size_t size);
ssize_t __readlinkat_chk(int dir_fd, const char *path, char *buf, size_t length,
                         size_t size);
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

/* Headers forbid to pass NULL to most of these; what to do about it is for libc
 * or the kernel to decide. */
#define MLX5SIM_EXPORT \
    __attribute__((visibility("default"), no_sanitize("nonnull-attribute")))

_Static_assert(sizeof(struct stat) == sizeof(struct stat64),
               "one function serves both");

/*
 * The functions behind ours
 */

#define MLX5SIM_REAL_FUNCTIONS(_macro) \
    _macro(openat) _macro(openat64) \
    _macro(__open_2) _macro(__open64_2) _macro(__openat_2) \
    _macro(__openat64_2) _macro(fopen) _macro(fopen64) _macro(freopen) \
    _macro(freopen64) _macro(opendir) _macro(scandir) _macro(scandir64) \
    _macro(stat) _macro(stat64) _macro(lstat) _macro(lstat64) \
    _macro(fstat) _macro(fstat64) _macro(fstatat) _macro(fstatat64) \
    _macro(__xstat) _macro(__xstat64) _macro(__lxstat) _macro(__lxstat64) \
    _macro(__fxstat) _macro(__fxstat64) _macro(__fxstatat) \
    _macro(__fxstatat64) _macro(statx) _macro(access) _macro(faccessat) \
    _macro(eaccess) _macro(euidaccess) _macro(readlink) _macro(readlinkat) \
    _macro(__readlink_chk) _macro(__readlinkat_chk) _macro(realpath) \
    _macro(__realpath_chk) _macro(canonicalize_file_name) _macro(chdir) \
    _macro(getxattr) _macro(lgetxattr) _macro(listxattr) _macro(llistxattr) \
    _macro(socket) _macro(inotify_add_watch)

#define MLX5SIM_REAL_ENUM(_name) MLX5SIM_REAL_##_name,
#define MLX5SIM_REAL_NAME(_name) #_name,

enum {
    MLX5SIM_REAL_FUNCTIONS(MLX5SIM_REAL_ENUM)
    MLX5SIM_REAL_LAST
};

static const char *const mlx5sim_real_names[] = {
    MLX5SIM_REAL_FUNCTIONS(MLX5SIM_REAL_NAME)
};

static _Atomic(void*) mlx5sim_real_functions[MLX5SIM_REAL_LAST];

static void *mlx5sim_real_resolve(unsigned index)
{
    int saved_errno = errno;
    void *function;

    /* several threads may do this at once: they find the same */
    function = dlsym(RTLD_NEXT, mlx5sim_real_names[index]);
    atomic_store_explicit(&mlx5sim_real_functions[index], function,
                          memory_order_relaxed);
    errno = saved_errno;
    return function;
}

static __attribute__((noinline, noreturn)) void
mlx5sim_real_missing(unsigned index)
{
    static const char message[] = "mlx5sim: the C library has no ";
    const char *name            = mlx5sim_real_names[index];

    if ((write(STDERR_FILENO, message, sizeof(message) - 1) >= 0) &&
        (write(STDERR_FILENO, name, strlen(name)) >= 0) &&
        (write(STDERR_FILENO, "()\n", 3) >= 0)) {
    }
    abort();
}

static inline void *mlx5sim_real(unsigned index)
{
    void *function = atomic_load_explicit(&mlx5sim_real_functions[index],
                                          memory_order_relaxed);

    if (__builtin_expect(function == NULL, 0)) {
        /* constructors of other libraries run before ours */
        function = mlx5sim_real_resolve(index);
        if (function == NULL) {
            mlx5sim_real_missing(index);
        }
    }

    return function;
}

#define REAL(_name) ((__typeof__(&_name))mlx5sim_real(MLX5SIM_REAL_##_name))

/* dlsym() takes the loader's lock: a thread that holds it may be waiting for
 * one that calls open(), so do not leave it to the first use. */
static void __attribute__((constructor)) mlx5sim_real_resolve_all(void)
{
    unsigned index;

    for (index = 0; index < MLX5SIM_REAL_LAST; ++index) {
        mlx5sim_real_resolve(index);
    }
}

/*
 * Redirection
 */

/* A path on its way into libc. */
typedef struct mlx5sim_redirect {
    const char          *path;   /* what to use: the caller's, or buf */
    mlx5sim_path_kind_t kind;
    unsigned            index;   /* of a uverbs device */
    char                *buf;    /* PATH_MAX bytes, unless kind is OTHER */
} mlx5sim_redirect_t;

/* errno of the last failed open of a uverbs device by this thread, 0 if it did
 * not fail: see inotify_add_watch(). */
static __thread int mlx5sim_uverbs_open_errno
        __attribute__((tls_model("initial-exec")));

/* The caller's path is one of a few candidates. Returns -1 with errno if it is
 * ours but there is no instance. */
static __attribute__((noinline)) int
mlx5sim_redirect_candidate(mlx5sim_redirect_t *redirect, const char *path)
{
    char public_path[PATH_MAX];

    if (mlx5sim_instance_is_disabled()) {
        return 0;
    }

    redirect->kind = mlx5sim_path_classify(path, public_path,
                                           sizeof(public_path),
                                           &redirect->index);
    if (redirect->kind < MLX5SIM_PATH_SYSFS) {
        if (redirect->kind == MLX5SIM_PATH_MOVED) {
            redirect->path   = redirect->buf;
            redirect->buf[0] = '/';
            /* resolved paths are shorter than what they come from, and links
             * of our tree are short */
            memcpy(redirect->buf + 1, public_path,
                   strnlen(public_path, PATH_MAX - 2) + 1);
            redirect->buf[PATH_MAX - 1] = '\0';
        }
        return 0;
    }

    if (mlx5sim_instance_dir() == NULL) {
        return -1;
    }

    /* which PCI functions are ours is certain only now */
    redirect->kind = mlx5sim_path_classify(path, public_path,
                                           sizeof(public_path),
                                           &redirect->index);
    if (redirect->kind < MLX5SIM_PATH_SYSFS) {
        return 0;
    }

    redirect->path = mlx5sim_path_locate(public_path, redirect->buf, PATH_MAX);
    return (redirect->path == NULL) ? -1 : 0;
}

static inline int mlx5sim_redirect_is_candidate(mlx5sim_redirect_t *redirect,
                                                const char *path)
{
    /* headers declare paths as never NULL, callers may pass NULL all the same:
     * the compiler must not draw conclusions */
    __asm__("" : "+r"(path));

    redirect->path = path;
    redirect->kind = MLX5SIM_PATH_OTHER;
    return mlx5sim_path_is_candidate(path);
}

/* Returns 0, or -1 with errno. The buffer is only taken if it may be needed:
 * signal handlers call these functions, too, on small stacks. */
#define mlx5sim_redirect_init(_redirect, _path) \
    (__builtin_expect(!mlx5sim_redirect_is_candidate(_redirect, _path), 1) ? \
             0 : \
             ((_redirect)->buf = alloca(PATH_MAX), \
              mlx5sim_redirect_candidate(_redirect, (_redirect)->path)))

/* After libc did not find a directory that every machine with PCI or InfiniBand
 * has: take ours. Returns whether to try again. */
static __attribute__((noinline)) int
mlx5sim_redirect_to_ancestor(mlx5sim_redirect_t *redirect)
{
    char public_path[PATH_MAX];

    if ((mlx5sim_path_classify(redirect->path, public_path,
                               sizeof(public_path), &redirect->index) !=
         MLX5SIM_PATH_ANCESTOR) ||
        (mlx5sim_instance_dir() == NULL)) {
        errno = ENOENT;
        return 0;
    }

    redirect->kind = MLX5SIM_PATH_SYSFS;
    redirect->path = mlx5sim_path_locate(public_path, redirect->buf, PATH_MAX);
    return redirect->path != NULL;
}

static inline int mlx5sim_redirect_retry(mlx5sim_redirect_t *redirect)
{
    return __builtin_expect(redirect->kind == MLX5SIM_PATH_ANCESTOR, 0) &&
           (errno == ENOENT) && mlx5sim_redirect_to_ancestor(redirect);
}

/* Body of an interposer that only replaces the path: _call uses path. */
#define MLX5SIM_REDIRECT(_path, _type, _failure, _call) \
    { \
        mlx5sim_redirect_t _redirect; \
        const char *path; \
        _type _result; \
        \
        if (mlx5sim_redirect_init(&_redirect, _path) != 0) { \
            return _failure; \
        } \
        \
        path    = _redirect.path; \
        _result = _call; \
        if ((_result == _failure) && mlx5sim_redirect_retry(&_redirect)) { \
            path    = _redirect.path; \
            _result = _call; \
        } \
        return _result; \
    }

/*
 * Character devices
 */

static int mlx5sim_device_open(const mlx5sim_redirect_t *redirect, int flags)
{
    int fd;

    if (redirect->index >= mlx5sim_path_devices()) {
        errno = ENOENT;
        fd    = -1;
    } else if (flags & O_DIRECTORY) {
        errno = ENOTDIR;
        fd    = -1;
    } else if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
        errno = EEXIST;
        fd    = -1;
    } else {
        fd = mlx5sim_uverbs_open(redirect->index, flags);
    }

    mlx5sim_uverbs_open_errno = (fd < 0) ? errno : 0;
    return fd;
}

/* Whether st is the file that stands for a character device in our tree. Gets
 * there when a program walks /dev/infiniband by directory descriptors. */
static __attribute__((noinline)) int
mlx5sim_device_is_placeholder(const char *path, dev_t st_dev, ino_t st_ino,
                              unsigned *index_p)
{
    char name[64], buf[PATH_MAX];
    mlx5sim_path_kind_t kind;
    struct stat st;
    const char *base;

    base = strrchr(path, '/');
    base = (base == NULL) ? path : base + 1;
    if (strncmp(base, "uverbs", 6) || (strlen(base) > 16) ||
        (mlx5sim_path_devices() == 0)) {
        return 0;
    }

    snprintf(name, sizeof(name), "/dev/infiniband/%s", base);
    kind = mlx5sim_path_classify(name, buf, sizeof(buf), index_p);
    if ((kind != MLX5SIM_PATH_UVERBS) ||
        (mlx5sim_path_locate(name + 1, buf, sizeof(buf)) == NULL)) {
        return 0;
    }

    return (REAL(stat)(buf, &st) == 0) && (st.st_dev == st_dev) &&
           (st.st_ino == st_ino);
}

/* Make a result of stat() a character device. */
static void mlx5sim_device_stat(unsigned index, struct stat *st)
{
    st->st_mode   = S_IFCHR | 0666;
    st->st_rdev   = mlx5sim_uverbs_rdev(index);
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
        index = mlx5sim_uverbs_fd_device(fd);
        if (index >= 0) {
            mlx5sim_device_stat(index, st);
        }
    }
}

/*
 * open
 */

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
    mlx5sim_redirect_t redirect;
    struct stat st;

    if ((flags & O_PATH) || (REAL(fstat)(fd, &st) != 0) ||
        !S_ISREG(st.st_mode) ||
        !mlx5sim_device_is_placeholder(path, st.st_dev, st.st_ino,
                                       &redirect.index)) {
        return fd;
    }

    close(fd);
    return mlx5sim_device_open(&redirect, flags);
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

    /* O_PATH only names a file */
    if ((redirect.kind == MLX5SIM_PATH_UVERBS) && !(flags & O_PATH)) {
        return mlx5sim_device_open(&redirect, flags);
    }

    fd = real_openat(dir_fd, redirect.path, flags, mode);
    if (__builtin_expect(fd < 0, 0)) {
        if (mlx5sim_redirect_retry(&redirect)) {
            fd = real_openat(dir_fd, redirect.path, flags, mode);
        }
    } else if ((path[0] == 'u') || ((path[0] != '/') && strchr(path, '/'))) {
        fd = mlx5sim_open_relative(fd, path, flags);
    }

    return fd;
}

/* Body of an interposer with a mode that is there only if the flags ask. */
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
 * stat
 */

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
    dev_t rdev = mlx5sim_uverbs_rdev(index);

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
        index = mlx5sim_uverbs_fd_device(dir_fd);
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

/* _call uses path. The result is what the kernel would say: a public path. */
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

/*
 * What keeps libibverbs on the way we want it to go
 */

/* With RDMA netlink it would ask the kernel for devices and not look at sysfs:
 * pretend a kernel without it. */
MLX5SIM_EXPORT int socket(int domain, int type, int protocol)
{
    if (__builtin_expect((domain == AF_NETLINK) && (protocol == NETLINK_RDMA),
                         0) && !mlx5sim_instance_is_disabled()) {
        errno = EPROTONOSUPPORT;
        return -1;
    }

    return REAL(socket)(domain, type, protocol);
}

/* If opening the device fails, util/open_cdev.c of rdma-core waits five seconds
 * for udev to make a link to it in /dev/char. Our devices do not appear late:
 * let the wait fail with the reason the open had. */
MLX5SIM_EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (__builtin_expect(mlx5sim_uverbs_open_errno != 0, 0) &&
        !strcmp(path, "/dev/char/")) {
        errno                     = mlx5sim_uverbs_open_errno;
        mlx5sim_uverbs_open_errno = 0;
        return -1;
    }

    return REAL(inotify_add_watch)(fd, path, mask);
}
