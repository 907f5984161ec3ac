/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/instance/instance.h>
#include <sim/queue/cq.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/fd.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_chan.h>
#include <sim/uverbs/uverbs_devx.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

/* MAX_NUM_EVENTS of the kernel's devx.c; MLX5_EVENT_TYPE_COMP */
#define MLX5SIM_DEVX_MAX_EVENTS 16
#define MLX5SIM_DEVX_COMP       0

/* Events of objects: CQ_ERROR, WQ_CATAS_ERROR, WQ_INVAL_REQ_ERROR,
 * WQ_ACCESS_ERROR, SRQ_CATAS_ERROR, SRQ_LAST_WQE, SRQ_RQ_LIMIT. COMM_EST,
 * SQ_DRAINED, and PATH_MIG with its failure are taken and never come. */
#define MLX5SIM_DEVX_EVENTS \
    ((1u << 0x04) | (1u << 0x05) | (1u << 0x10) | (1u << 0x11) | \
     (1u << 0x12) | (1u << 0x13) | (1u << 0x14) | (1u << 0x01) | \
     (1u << 0x02) | (1u << 0x03) | (1u << 0x07))


int mlx5sim_devx_event_fd(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *flags;
    uint32_t chan;
    int fd;

    handle = mlx5sim_attr_find(hdr,
                               MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
    flags  = mlx5sim_attr_find(hdr,
                               MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);
    if (handle == NULL) {
        return -EINVAL;
    }

    if ((flags == NULL) ||
        (flags->data != MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    fd = mlx5sim_uverbs_chan_create(mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx), 0,
                                    &chan);
    if (fd < 0) {
        return fd;
    }

    mlx5sim_attr_set_handle(handle, fd);
    return 0;
}

/* Completions of a CQ. @return 0 or -errno */
static int
mlx5sim_devx_subscribe_cq(mlx5sim_cq_t *cq, uint32_t chan, uint64_t cookie)
{
    int is_taken;

    mlx5sim_cq_lock(cq);
    is_taken = cq->chan != 0;
    if (!is_taken) {
        cq->o.user_handle = cookie;
        cq->chan          = chan + 1;
        atomic_fetch_add(&((mlx5sim_chan_t*)mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                                           chan))->refs, 1);
    }
    mlx5sim_unlock(&cq->lock);
    return is_taken ? mlx5sim_refuse(MLX5SIM_MISSING_DEVX) : 0;
}

int mlx5sim_devx_subscribe(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *fd, *handle, *list, *redirect, *cookie;
    uint16_t events[MLX5SIM_DEVX_MAX_EVENTS];
    uint32_t mask = 0, chan;
    mlx5sim_obj_kind_t kind;
    mlx5sim_obj_t *obj;
    int is_comp = 0;
    unsigned i;
    int ret;

    fd       = mlx5sim_attr_find(hdr,
                                 MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
    handle   = mlx5sim_attr_find(hdr,
                                 MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
    list     = mlx5sim_attr_find(
            hdr, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);
    redirect = mlx5sim_attr_find(hdr,
                                 MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);
    cookie   = mlx5sim_attr_find(hdr,
                                 MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
    if ((redirect != NULL) || (handle == NULL)) {
        /* into an eventfd; of ports */
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    if ((fd == NULL) || (list == NULL) || (list->len == 0) ||
        (list->len % sizeof(events[0])) || (list->len > sizeof(events))) {
        return -EINVAL;
    }

    obj  = mlx5sim_devx_find(ctx, handle->data, &kind);
    chan = mlx5sim_fd_chan((int)fd->data);
    if ((obj == NULL) || (chan == 0)) {
        return -EINVAL;
    }

    memcpy(events, mlx5sim_attr_in(list), list->len);
    for (i = 0; i < list->len / sizeof(events[0]); ++i) {
        if (events[i] == MLX5SIM_DEVX_COMP) {
            is_comp = 1;
        } else if ((events[i] >= 32) ||
                   !(MLX5SIM_DEVX_EVENTS & (1u << events[i]))) {
            return -EINVAL;
        } else {
            mask |= 1u << events[i];
        }
    }

    if ((mask != 0) && (obj->devx.event_chan != 0)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DEVX);
    }

    if (is_comp && (kind == MLX5SIM_OBJ_CQ)) {
        ret = mlx5sim_devx_subscribe_cq((void*)obj, chan,
                                        (cookie != NULL) ? cookie->data : 0);
        if (ret != 0) {
            return ret;
        }
    }

    if (mask != 0) {
        obj->devx.event_cookie = (cookie != NULL) ? cookie->data : 0;
        obj->devx.event_mask   = mask;
        atomic_thread_fence(memory_order_release);
        obj->devx.event_chan   = chan + 1;
    }
    return 0;
}
