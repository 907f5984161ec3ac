/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REDIRECT_H_
#define MLX5SIM_REDIRECT_H_

#include <sim/instance/path.h>

#include <alloca.h>
#include <errno.h>
#include <limits.h>

/*
 * What happens to a path on its way into the C library: ours (path.h) are
 * looked up in the instance directory.
 */

/** A path on its way into libc. */
typedef struct mlx5sim_redirect {
    const char          *path;   /**< what to use: the caller's, or buf */
    mlx5sim_path_kind_t kind;
    unsigned            index;   /**< of a uverbs device */
    char                *buf;    /**< PATH_MAX bytes, unless kind is OTHER */
} mlx5sim_redirect_t;

/** The caller's path is one of a few candidates. @return 0, or -1 with errno if
 *  it is ours but there is no instance. */
int mlx5sim_redirect_candidate(mlx5sim_redirect_t *redirect, const char *path);

/** After libc did not find a directory that every machine with PCI or
 *  InfiniBand has: use ours. @return whether to try again. */
int mlx5sim_redirect_to_ancestor(mlx5sim_redirect_t *redirect);

/** Start with the caller's path. @return whether it may be ours. */
static inline int mlx5sim_redirect_is_candidate(mlx5sim_redirect_t *redirect,
                                                const char *path)
{
    /* headers declare paths as never NULL, but callers may pass it: the
     * compiler must not draw conclusions */
    __asm__("" : "+r"(path));

    redirect->path = path;
    redirect->kind = MLX5SIM_PATH_OTHER;
    return mlx5sim_path_is_candidate(path);
}

/** Find out what to use in place of the caller's path. The buffer is on the
 *  stack, and only there if it may be needed: signal handlers call these
 *  functions, too, on small stacks. @return 0, or -1 with errno. */
#define mlx5sim_redirect_init(_redirect, _path) \
    (__builtin_expect(!mlx5sim_redirect_is_candidate(_redirect, _path), 1) ? \
             0 : \
             ((_redirect)->buf = alloca(PATH_MAX), \
              mlx5sim_redirect_candidate(_redirect, (_redirect)->path)))

/** After a failure. @return whether to try again with what path is now. */
static inline int mlx5sim_redirect_retry(mlx5sim_redirect_t *redirect)
{
    return __builtin_expect(redirect->kind == MLX5SIM_PATH_ANCESTOR, 0) &&
           (errno == ENOENT) && mlx5sim_redirect_to_ancestor(redirect);
}

/** Body of an interposer that only replaces the path: _call uses path. */
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

#endif
