/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/preload/redirect.h>
#include <sim/instance/instance.h>
#include <sim/uverbs/counters.h>

#include <string.h>


int mlx5sim_redirect_candidate(mlx5sim_redirect_t *redirect, const char *path)
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
            /* resolved paths are shorter than their originals, and links of our
             * tree are short */
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

    if (strstr(public_path, "counters") != NULL) {
        mlx5sim_counters_refresh(public_path);
    }

    redirect->path = mlx5sim_path_locate(public_path, redirect->buf, PATH_MAX);
    return (redirect->path == NULL) ? -1 : 0;
}

int mlx5sim_redirect_to_ancestor(mlx5sim_redirect_t *redirect)
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
