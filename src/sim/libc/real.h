/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REAL_H_
#define MLX5SIM_REAL_H_

#include <stdatomic.h>
#include <stddef.h>

/*
 * The C library's functions behind those that preload/ interposes. Those in the
 * list can be called by REAL(name)(arguments); the header that declares the
 * function has to be there, too.
 */

#define MLX5SIM_REAL_FUNCTIONS(_macro) \
    /* paths */ \
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
    /* descriptors */ \
    _macro(socket) _macro(sendto) _macro(inotify_add_watch) _macro(ioctl) \
    _macro(close) _macro(dup2) _macro(dup3) _macro(close_range) \
    _macro(closefrom) _macro(mmap) _macro(write) _macro(madvise) \
    _macro(mremap) _macro(munmap) _macro(mlock2) _macro(mlockall) \
    _macro(pkey_mprotect) \
    /* signals */ \
    _macro(sigaction) _macro(signal) _macro(sigprocmask) \
    _macro(pthread_sigmask) _macro(pthread_attr_setsigmask_np) \
    _macro(sigsuspend) _macro(pselect) _macro(ppoll) _macro(__ppoll_chk) \
    _macro(epoll_pwait) _macro(epoll_pwait2)

/** ThreadSanitizer installs signal handlers and maps memory before instrumented
 *  code can run: this is for the functions it calls then. */
#define MLX5SIM_EARLY __attribute__((no_sanitize("thread")))

#define MLX5SIM_REAL_ENUM(_name) MLX5SIM_REAL_##_name,

enum {
    MLX5SIM_REAL_FUNCTIONS(MLX5SIM_REAL_ENUM)
    MLX5SIM_REAL_LAST
};

/** What was found, by MLX5SIM_REAL_xx: NULL before that. */
extern _Atomic(void*) mlx5sim_real_functions[MLX5SIM_REAL_LAST];

/** Find function @a index; ends the program if the C library has none. */
void *mlx5sim_real_find(unsigned index);

/** Function @a index of the C library. Callable from signal handlers. */
static inline MLX5SIM_EARLY void *mlx5sim_real(unsigned index)
{
    void *function = atomic_load_explicit(&mlx5sim_real_functions[index],
                                          memory_order_relaxed);

    /* constructors of other libraries run before ours */
    return __builtin_expect(function == NULL, 0) ? mlx5sim_real_find(index) :
                                                   function;
}

#define REAL(_name) ((__typeof__(&_name))mlx5sim_real(MLX5SIM_REAL_##_name))

#endif
