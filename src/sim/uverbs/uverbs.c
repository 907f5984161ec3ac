/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/uverbs/uverbs.h"
#include "sim/limit/inject.h"
#include "sim/uar/uar.h"
#include "sim/uar/legacy.h"
#include "sim/check/report.h"
#include "sim/doorbell/trap.h"
#include "sim/uar/window.h"
#include "sim/exec/exec.h"
#include "sim/instance/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MLX5SIM_MAX_FD 65536

/* What a descriptor of this process is: 0 nothing of ours, context index, or
 * channel index with the channel bit. Written under the mutex, read without. */
#define MLX5SIM_FD_CHAN (1u << 31)

static _Atomic uint32_t mlx5sim_fds[MLX5SIM_MAX_FD];
static pthread_mutex_t mlx5sim_open_mutex = PTHREAD_MUTEX_INITIALIZER;
/* whose descriptors they are: memory may be shared with a child of vfork() */
static pid_t mlx5sim_open_pid;


const mlx5sim_config_t *mlx5sim_uverbs_config(void)
{
    return mlx5sim_instance_config();
}

void mlx5sim_cmd_reply(void *out, size_t out_size, const void *reply,
                       size_t size)
{
    if (out_size > 0) {
        memcpy(out, reply, (out_size < size) ? out_size : size);
    }
}

static uint32_t mlx5sim_fd_get(int fd)
{
    return ((fd >= 0) && (fd < MLX5SIM_MAX_FD)) ? atomic_load(&mlx5sim_fds[fd]) :
                                                  0;
}

static mlx5sim_ctx_t *mlx5sim_fd_ctx(int fd)
{
    uint32_t entry = mlx5sim_fd_get(fd);
    mlx5sim_ctx_t *ctx;

    if ((entry == 0) || (entry & MLX5SIM_FD_CHAN)) {
        return NULL;
    }

    ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, entry);
    return (atomic_load(&ctx->o.owner) == mlx5sim_self_tag) ? ctx : NULL;
}

/* Contexts belong to the process that opened them; a child starts afresh.
 *
 * There is nothing to do at exit: other threads may ring doorbells until the
 * very end, as with hardware. What a process leaves behind is found by the next
 * one that joins the instance, or looks at it. */
static void mlx5sim_uverbs_fork_child(void)
{
    if (mlx5sim_self_tag != 0) {
        mlx5sim_proc_forget();
        mlx5sim_helper_forget();
        mlx5sim_window_fork_child();
        mlx5sim_legacy_fork_child();
        mlx5sim_inject_fork_child();
        mlx5sim_trap_fork_child();
        mlx5sim_open_pid = 0;
        pthread_mutex_init(&mlx5sim_open_mutex, NULL);
    }
}

/* First open of a device in this process; the mutex is held */
static int mlx5sim_uverbs_attach(void)
{
    static int fork_handler;
    const char *dir;

    if (mlx5sim_self_tag != 0) {
        return 0;
    }

    dir = mlx5sim_instance_dir();
    if ((dir == NULL) || (mlx5sim_store_open(dir) != 0) ||
        (mlx5sim_proc_attach() != 0)) {
        return -1;
    }

    mlx5sim_report_init(mlx5sim_uverbs_config()->strict, dir);
    mlx5sim_open_pid = getpid();
    if (!fork_handler) {
        pthread_atfork(NULL, NULL, mlx5sim_uverbs_fork_child);
        fork_handler = 1;
    }

    if ((mlx5sim_trap_install() != 0) || (mlx5sim_helper_start() != 0)) {
        mlx5sim_proc_reap(mlx5sim_self_tag);
        mlx5sim_proc_forget();
        return -1;
    }

    return 0;
}

int mlx5sim_uverbs_open(unsigned index, int flags)
{
    mlx5sim_ctx_t *ctx;
    char name[32];
    int fd, ret;

    if (index >= mlx5sim_uverbs_config()->devices) {
        errno = ENXIO;
        return -1;
    }

    pthread_mutex_lock(&mlx5sim_open_mutex);
    ret = mlx5sim_uverbs_attach();
    pthread_mutex_unlock(&mlx5sim_open_mutex);
    if (ret != 0) {
        return -1;
    }

    ctx = mlx5sim_obj_alloc(MLX5SIM_OBJ_CTX, 0);
    if (ctx == NULL) {
        return -1;
    }

    /* UAR pages are mapped beyond the end of this empty file: any access to
     * them raises SIGBUS, however the mapping was made */
    snprintf(name, sizeof(name), MLX5SIM_TRAP_FILE_PREFIX "%u",
             mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    fd = memfd_create(name, (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if ((fd < 0) || (fd >= MLX5SIM_MAX_FD)) {
        if (fd >= 0) {
            close(fd);
            errno = EMFILE;
        }
        mlx5sim_obj_free(MLX5SIM_OBJ_CTX, ctx);
        return -1;
    }

    ctx->dev     = index;
    ctx->fault   = MLX5SIM_CONTEXT_NEW;
    ctx->o.ready = 1;
    atomic_store(&mlx5sim_fds[fd], mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    return fd;
}

int mlx5sim_uverbs_fd_device(int fd)
{
    mlx5sim_ctx_t *ctx;

    if (mlx5sim_fd_get(fd) == 0) {
        return -1;
    }

    ctx = mlx5sim_fd_ctx(fd);
    return (ctx != NULL) ? (int)ctx->dev : -1;
}

uint32_t mlx5sim_uverbs_fd_chan(int fd)
{
    uint32_t entry = mlx5sim_fd_get(fd);

    return (entry & MLX5SIM_FD_CHAN) ? (entry & ~MLX5SIM_FD_CHAN) : 0;
}

int mlx5sim_uverbs_chan_create(uint32_t ctx, int is_async, uint32_t *chan_p)
{
    mlx5sim_chan_t *chan;
    char path[320];
    int fd, err;

    chan = mlx5sim_obj_alloc(MLX5SIM_OBJ_CHAN, ctx);
    if (chan == NULL) {
        return -ENOMEM;
    }

    chan->is_async = is_async;
    mlx5sim_chan_path(chan, path, sizeof(path));
    unlink(path);
    if (mkfifo(path, 0600) != 0) {
        goto err_free;
    }

    /* opened for writing as well: a FIFO without writers would report a
     * hangup to poll() */
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        goto err_unlink;
    }

    if (fd >= MLX5SIM_MAX_FD) {
        close(fd);
        errno = EMFILE;
        goto err_unlink;
    }

    *chan_p       = mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, chan);
    chan->o.ready = 1;
    atomic_store(&mlx5sim_fds[fd], *chan_p | MLX5SIM_FD_CHAN);
    return fd;

err_unlink:
    err   = errno;
    unlink(path);
    errno = err;
err_free:
    err   = errno;
    mlx5sim_obj_free(MLX5SIM_OBJ_CHAN, chan);
    return -err;
}

static void mlx5sim_chan_close(uint32_t index)
{
    mlx5sim_chan_t *chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, index);
    char path[320];

    if (atomic_load(&chan->o.owner) != mlx5sim_self_tag) {
        return;
    }

    mlx5sim_lock(&chan->lock);
    mlx5sim_chan_path(chan, path, sizeof(path));
    unlink(path);
    mlx5sim_unlock(&chan->lock);
    mlx5sim_obj_free(MLX5SIM_OBJ_CHAN, chan);
}

/* Objects that the application left in a context it closes */
static void mlx5sim_ctx_close(uint32_t index)
{
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);
    mlx5sim_obj_t *obj;
    uint32_t i, high;
    int kind;

    if (atomic_load(&ctx->o.owner) != mlx5sim_self_tag) {
        return; /* inherited through fork() */
    }

    mlx5sim_legacy_close(ctx);
    for (kind = MLX5SIM_OBJ_LAST - 1; kind > MLX5SIM_OBJ_CTX; --kind) {
        high = atomic_load(&mlx5sim_store->tables[kind].high);
        for (i = 0; i < high; ++i) {
            obj = mlx5sim_obj_at(kind, i);
            /* channels have descriptors of their own */
            if ((atomic_load(&obj->owner) == mlx5sim_self_tag) &&
                (obj->ctx == index) && (kind != MLX5SIM_OBJ_CHAN)) {
                if (kind == MLX5SIM_OBJ_QP) {
                    mlx5sim_helper_remove_qp((void*)obj);
                    mlx5sim_qp_withdraw((void*)obj);
                }
                mlx5sim_obj_free(kind, obj);
            }
        }
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_CTX, ctx);
}

void mlx5sim_uverbs_close(int fd)
{
    uint32_t entry;

    if ((mlx5sim_fd_get(fd) == 0) ||
        ((mlx5sim_open_pid != 0) && (mlx5sim_open_pid != getpid()))) {
        return;
    }

    entry = atomic_exchange(&mlx5sim_fds[fd], 0);
    if ((entry == 0) || (mlx5sim_self_tag == 0)) {
        return; /* a forked child closes what it inherited */
    }

    if (entry & MLX5SIM_FD_CHAN) {
        mlx5sim_chan_close(entry & ~MLX5SIM_FD_CHAN);
    } else if (mlx5sim_store != NULL) {
        mlx5sim_ctx_close(entry);
    }
}

int mlx5sim_uverbs_map(int fd, size_t length, uint64_t offset, uint32_t *uar_p)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_ctx(fd);
    uint64_t page      = offset / MLX5SIM_UAR_PAGE_SIZE;

    *uar_p = 0;
    if (ctx == NULL) {
        return 0; /* not a device */
    }

    if (length != MLX5SIM_UAR_PAGE_SIZE) {
        return -EINVAL;
    }

    if (ctx->is_legacy) {
        return mlx5sim_legacy_map(ctx, page, uar_p);
    }

    return ((page >= MLX5SIM_UAR_PAGE_BASE) &&
            (mlx5sim_obj_mine(MLX5SIM_OBJ_UAR, page - MLX5SIM_UAR_PAGE_BASE,
                              mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx)) !=
             NULL)) ? 0 : -EINVAL;
}

void mlx5sim_uverbs_map_failed(int fd, uint64_t offset)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_ctx(fd);

    if (ctx != NULL) {
        mlx5sim_legacy_unmap(ctx, offset / MLX5SIM_UAR_PAGE_SIZE);
    }
}

int mlx5sim_uverbs_ioctl(int fd, void *arg)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_ctx(fd);
    int ret;

    if (ctx == NULL) {
        /* also a context inherited through fork() */
        errno = (mlx5sim_fd_get(fd) != 0) ? EIO : ENOTTY;
        return -1;
    }

    ret = mlx5sim_uverbs_dispatch(ctx, fd, arg);
    if (ret != 0) {
        errno = -ret;
        return -1;
    }

    return 0;
}
