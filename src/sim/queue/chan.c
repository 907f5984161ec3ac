/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/chan.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
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
    /* Not O_WRONLY: with the process that reads, the last reader may go between
     * open and write, and SIGPIPE would end this one. */
    fd = mlx5sim_chan_open(chan, O_RDWR);
    if (fd >= 0) {
        /* atomic: far below PIPE_BUF. Full only if software arms thousands of
         * times without reading an event. */
        n = mlx5sim_raw_write(fd, event, size);
        mlx5sim_raw_close(fd);
    }
    mlx5sim_unlock(&chan->lock);

    return (n == (ssize_t)size) ? 0 : -1;
}

void mlx5sim_unsure_begin(uint32_t *unsure)
{
    if (*unsure & MLX5SIM_UNSURE_NOW) {
        *unsure |= MLX5SIM_UNSURE_EVER;
    }
    *unsure |= MLX5SIM_UNSURE_NOW;
    atomic_thread_fence(memory_order_release);
}

void mlx5sim_unsure_end(uint32_t *unsure)
{
    atomic_thread_fence(memory_order_release);
    *unsure &= ~MLX5SIM_UNSURE_NOW;
}

/* Find the events of @a handle that nobody read yet, of a type or of all (-1),
 * and maybe remove them. @return how many */
static unsigned mlx5sim_chan_find(mlx5sim_chan_t *chan, uint64_t handle,
                                  int type, int is_removed)
{
    unsigned found = 0, kept = 0, i;
    uint64_t events[8192][2];
    size_t size;
    ssize_t n;
    int fd, is_found;

    size = chan->is_async ? sizeof(struct ib_uverbs_async_event_desc) :
                            sizeof(struct ib_uverbs_comp_event_desc);

    mlx5sim_lock(&chan->lock);
    fd = mlx5sim_chan_open(chan, O_RDWR);
    if (fd >= 0) {
        while ((kept < 8192) &&
               (read(fd, events[kept], size) == (ssize_t)size)) {
            /* ib_uverbs_async_event_desc: element, event_type, reserved */
            is_found = (events[kept][0] == handle) &&
                       ((type < 0) || ((int)(uint32_t)events[kept][1] == type));
            found   += is_found;
            kept    += !is_found || !is_removed;
        }

        for (i = 0; i < kept; ++i) {
            n = write(fd, events[i], size);
            (void)n;
        }
        close(fd);
    }
    mlx5sim_unlock(&chan->lock);

    return found;
}

uint32_t mlx5sim_chan_reported(mlx5sim_chan_t *chan, uint64_t handle,
                               uint32_t unsure, uint32_t written,
                               size_t acknowledged)
{
    uint32_t read = written - mlx5sim_chan_find(chan, handle, -1, 1);

    return ((unsure != 0) && (handle != 0)) ?
           *(volatile uint32_t*)(uintptr_t)(handle + acknowledged) : read;
}

uint32_t mlx5sim_async_reported(mlx5sim_obj_t *obj, size_t acknowledged)
{
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, obj->ctx);

    if ((obj->async_events == 0) && (obj->async_unsure == 0)) {
        return 0;
    }

    /* Who has imported a context may outlive those who read its events: what is
     * left of them nobody will acknowledge */
    return mlx5sim_chan_reported(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                                ctx->async_fifo),
                                 obj->user_handle,
                                 obj->async_unsure | (ctx->async_fifo == 0),
                                 obj->async_events, acknowledged);
}

/* Number of an event in the PRM (enum mlx5_event of the kernel's device.h) */
static unsigned mlx5sim_event_number(unsigned event)
{
    switch (event) {
    case IBV_EVENT_SQ_DRAINED:
        return 0x03;
    case IBV_EVENT_CQ_ERR:
        return 0x04;
    case IBV_EVENT_QP_FATAL:
        return 0x05;
    case IBV_EVENT_QP_REQ_ERR:
        return 0x10;
    case IBV_EVENT_QP_ACCESS_ERR:
        return 0x11;
    case IBV_EVENT_SRQ_ERR:
        return 0x12;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return 0x13;
    default:
        return 0x14; /* IBV_EVENT_SRQ_LIMIT_REACHED */
    }
}

/* Channel to which an event of an object that a firmware command has made goes,
 * NULL if nobody has subscribed to it */
static mlx5sim_chan_t *
mlx5sim_devx_event_chan(const mlx5sim_obj_t *obj, unsigned event)
{
    uint32_t chan = obj->devx.event_chan;

    return ((chan != 0) &&
            (obj->devx.event_mask & (1u << mlx5sim_event_number(event)))) ?
           mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, chan - 1) : NULL;
}

int mlx5sim_async_is_unread(const mlx5sim_obj_t *obj, unsigned event)
{
    const mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, obj->ctx);
    mlx5sim_chan_t *chan;

    if (obj->devx.is_made) {
        chan = mlx5sim_devx_event_chan(obj, event);
        return (chan != NULL) &&
               (mlx5sim_chan_find(chan, obj->devx.event_cookie, -1, 0) > 0);
    }

    return (ctx->async_fifo != 0) &&
           (mlx5sim_chan_find(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                             ctx->async_fifo),
                              obj->user_handle, event, 0) > 0);
}

void mlx5sim_async_event(mlx5sim_obj_t *obj, unsigned event)
{
    struct ib_uverbs_async_event_desc desc = {0};
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, obj->ctx);
    mlx5sim_chan_t *chan;

    if (obj->devx.is_made) {
        chan = mlx5sim_devx_event_chan(obj, event);
        if (chan != NULL) {
            (void)mlx5sim_chan_write(chan, &obj->devx.event_cookie,
                                     sizeof(obj->devx.event_cookie));
        }
        return;
    }

    if (ctx->async_fifo == 0) {
        return;
    }

    desc.element    = obj->user_handle;
    desc.event_type = event;
    mlx5sim_unsure_begin(&obj->async_unsure);
    if (mlx5sim_chan_write(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, ctx->async_fifo),
                           &desc, sizeof(desc)) == 0) {
        ++obj->async_events;
    }
    mlx5sim_unsure_end(&obj->async_unsure);
}

void mlx5sim_async_port_event(mlx5sim_ctx_t *ctx, unsigned port,
                              unsigned event)
{
    struct ib_uverbs_async_event_desc desc = {0};

    desc.element    = port;
    desc.event_type = event;
    if (ctx->async_fifo != 0) {
        (void)mlx5sim_chan_write(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                                ctx->async_fifo),
                                 &desc, sizeof(desc));
    }
}
