/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_chan.h>
#include <sim/objs/store.h>
#include <sim/uverbs/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>


int mlx5sim_uverbs_chan_create(uint32_t ctx, int is_async, uint32_t *chan_p)
{
    mlx5sim_chan_t *chan;
    char path[320];
    int fd, err;

    chan = mlx5sim_obj_alloc(MLX5SIM_OBJ_CHAN, ctx);
    if (chan == NULL) {
        return -errno;
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
    mlx5sim_fd_set(fd, *chan_p | MLX5SIM_FD_CHAN);
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

void mlx5sim_uverbs_chan_close(uint32_t index)
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
