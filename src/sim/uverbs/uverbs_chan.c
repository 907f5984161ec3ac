/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_chan.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
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

/* Nothing that a firmware command has made reports to a channel any more:
 * kernel, devx_async_event_destroy_uobj() */
static void mlx5sim_uverbs_chan_forget(uint32_t index)
{
    static const mlx5sim_obj_kind_t kinds[] = {
        MLX5SIM_OBJ_CQ, MLX5SIM_OBJ_SRQ, MLX5SIM_OBJ_QP
    };
    mlx5sim_obj_t *obj;
    mlx5sim_cq_t *cq;
    uint32_t i, high;
    unsigned k;

    for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k) {
        high = atomic_load(&mlx5sim_store->tables[kinds[k]].high);
        for (i = 0; i < high; ++i) {
            obj = mlx5sim_obj_at(kinds[k], i);
            if ((atomic_load(&obj->owner) != mlx5sim_self_tag) ||
                !obj->devx.is_made) {
                continue;
            }

            if (obj->devx.event_chan == index + 1) {
                obj->devx.event_chan = 0;
            }
            cq = (kinds[k] == MLX5SIM_OBJ_CQ) ? (void*)obj : NULL;
            if (cq != NULL) {
                mlx5sim_cq_lock(cq);
                cq->chan = (cq->chan == index + 1) ? 0 : cq->chan;
                mlx5sim_unlock(&cq->lock);
            }
        }
    }
}

void mlx5sim_uverbs_chan_close(uint32_t index)
{
    mlx5sim_chan_t *chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, index);
    mlx5sim_ctx_t *ctx;
    char path[320];

    if (atomic_load(&chan->o.owner) != mlx5sim_self_tag) {
        return;
    }

    /* that the context may be left to who has imported it */
    ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, atomic_load(&chan->o.ctx));
    if (ctx->async_fifo == index) {
        ctx->async_fifo = 0;
    }

    mlx5sim_uverbs_chan_forget(index);
    mlx5sim_lock(&chan->lock);
    mlx5sim_chan_path(chan, path, sizeof(path));
    unlink(path);
    mlx5sim_unlock(&chan->lock);
    mlx5sim_obj_free(MLX5SIM_OBJ_CHAN, chan);
}
