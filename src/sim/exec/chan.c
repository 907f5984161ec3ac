/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <unistd.h>


/* A channel is written at most once per arming, so opening the FIFO each time
 * costs little, and no descriptor is kept that the application could close. */
static int mlx5sim_chan_open(mlx5sim_chan_t *chan, int flags)
{
    char path[320];

    mlx5sim_chan_path(chan, path, sizeof(path));
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

int mlx5sim_chan_write(mlx5sim_chan_t *chan, const void *event, size_t size)
{
    ssize_t n = -1;
    int fd;

    mlx5sim_lock(&chan->lock);
    fd = mlx5sim_chan_open(chan, O_WRONLY);
    if (fd >= 0) {
        /* atomic: far below PIPE_BUF. Full if software arms thousands of times
         * and never reads an event. */
        n = write(fd, event, size);
        close(fd);
    }
    mlx5sim_unlock(&chan->lock);

    return (n == (ssize_t)size) ? 0 : -1;
}

unsigned mlx5sim_chan_forget(mlx5sim_chan_t *chan, uint64_t handle)
{
    unsigned removed = 0, kept = 0, i;
    uint64_t events[8192][2];
    size_t size;
    ssize_t n;
    int fd;

    size = chan->is_async ? sizeof(struct ib_uverbs_async_event_desc) :
                            sizeof(struct ib_uverbs_comp_event_desc);

    mlx5sim_lock(&chan->lock);
    fd = mlx5sim_chan_open(chan, O_RDWR);
    if (fd >= 0) {
        while ((kept < 8192) && (read(fd, events[kept], size) == (ssize_t)size)) {
            if (events[kept][0] == handle) {
                ++removed;
            } else {
                ++kept;
            }
        }

        for (i = 0; i < kept; ++i) {
            n = write(fd, events[i], size);
            (void)n;
        }
        close(fd);
    }
    mlx5sim_unlock(&chan->lock);

    return removed;
}

void mlx5sim_async_event(mlx5sim_obj_t *obj, unsigned event)
{
    struct ib_uverbs_async_event_desc desc = {0};
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, obj->ctx);

    if (ctx->async_fifo == 0) {
        return;
    }

    desc.element    = obj->user_handle;
    desc.event_type = event;
    if (mlx5sim_chan_write(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, ctx->async_fifo),
                           &desc, sizeof(desc)) == 0) {
        ++obj->async_events;
    }
}
