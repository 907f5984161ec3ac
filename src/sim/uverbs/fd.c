/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/fd.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint32_t mlx5sim_fds[MLX5SIM_MAX_FD];


uint32_t mlx5sim_fd_get(int fd)
{
    return ((fd >= 0) && (fd < MLX5SIM_MAX_FD)) ?
           atomic_load(&mlx5sim_fds[fd]) : 0;
}

uint32_t mlx5sim_fd_set(int fd, uint32_t entry)
{
    return atomic_exchange(&mlx5sim_fds[fd], entry);
}

mlx5sim_ctx_t *mlx5sim_fd_ctx(int fd)
{
    uint32_t entry = mlx5sim_fd_get(fd);
    mlx5sim_ctx_t *ctx;

    if ((entry == 0) || (entry & MLX5SIM_FD_CHAN)) {
        return NULL;
    }

    ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, entry);
    return (atomic_load(&ctx->o.owner) == mlx5sim_self_tag) ? ctx : NULL;
}

/* The context that the name of the file says */
static mlx5sim_ctx_t *mlx5sim_fd_named(int fd)
{
    static const char name[] = "/memfd:" MLX5SIM_UAR_FILE;
    char path[32], file[64];
    mlx5sim_ctx_t *ctx;
    struct stat st;
    uint32_t index;
    ssize_t len;

    if (mlx5sim_store == NULL) {
        return NULL;
    }

    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    len = readlink(path, file, sizeof(file) - 1);
    if (len < (ssize_t)sizeof(name)) {
        return NULL;
    }

    file[len] = '\0';
    if (strncmp(file, name, sizeof(name) - 1)) {
        return NULL;
    }

    index = strtoul(file + sizeof(name) - 1, NULL, 10);
    if (index >= atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CTX].high)) {
        return NULL;
    }

    /* the name may be that of the slot's next use */
    ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
    return ((atomic_load(&ctx->o.owner) != 0) &&
            (syscall(SYS_fstat, fd, &st) == 0) && (st.st_ino == ctx->inode)) ?
           ctx : NULL;
}

mlx5sim_ctx_t *mlx5sim_fd_copied(int fd)
{
    return (mlx5sim_fd_get(fd) == 0) ? mlx5sim_fd_named(fd) : NULL;
}

mlx5sim_ctx_t *mlx5sim_fd_inherited(int fd)
{
    uint32_t entry     = mlx5sim_fd_get(fd);
    mlx5sim_ctx_t *ctx = (entry != 0) ? mlx5sim_fd_named(fd) : NULL;

    return ((ctx != NULL) &&
            (mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx) == entry) &&
            (atomic_load(&ctx->o.owner) != mlx5sim_self_tag)) ? ctx : NULL;
}

uint32_t mlx5sim_fd_chan(int fd)
{
    uint32_t entry = mlx5sim_fd_get(fd);

    return (entry & MLX5SIM_FD_CHAN) ? (entry & ~MLX5SIM_FD_CHAN) : 0;
}
