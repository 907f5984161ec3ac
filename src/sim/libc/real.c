/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/libc/real.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MLX5SIM_REAL_NAME(_name) #_name,

static const char *const mlx5sim_real_names[] = {
    MLX5SIM_REAL_FUNCTIONS(MLX5SIM_REAL_NAME)
};

_Atomic(void*) mlx5sim_real_functions[MLX5SIM_REAL_LAST];


static MLX5SIM_EARLY void *mlx5sim_real_resolve(unsigned index)
{
    int saved_errno = errno;
    void *function;

    /* several threads may do this at once: they find the same function */
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

MLX5SIM_EARLY void *mlx5sim_real_find(unsigned index)
{
    void *function = mlx5sim_real_resolve(index);

    if (function == NULL) {
        mlx5sim_real_missing(index);
    }
    return function;
}

/* dlsym() takes the loader's lock: a thread that holds it may be waiting for
 * one that calls open(), so do it before the first use. A signal handler may
 * not call it either. */
static void __attribute__((constructor)) mlx5sim_real_resolve_all(void)
{
    unsigned index;

    for (index = 0; index < MLX5SIM_REAL_LAST; ++index) {
        mlx5sim_real_resolve(index);
    }
}
