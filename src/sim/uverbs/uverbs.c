/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs.h>
#include <sim/doorbell/trap.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
#include <sim/sched/helper.h>
#include <sim/sched/sq.h>
#include <sim/uar/dm.h>
#include <sim/uar/layout.h>
#include <sim/uar/legacy.h>
#include <sim/uverbs/attach.h>
#include <sim/uverbs/cmd.h>
#include <sim/uverbs/dispatch.h>
#include <sim/uverbs/fd.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_chan.h>
#include <sim/uverbs/uverbs_dmabuf.h>
#include <sim/uverbs/uverbs_xrc.h>

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(RDMA_VERBS_IOCTL == MLX5SIM_VERBS_IOCTL, "ioctl number");


int mlx5sim_uverbs_open(unsigned index, int flags)
{
    mlx5sim_ctx_t *ctx;
    struct stat st;
    char name[32];
    int fd;

    if (index >= mlx5sim_instance_config()->devices) {
        errno = ENXIO;
        return -1;
    }

    if (mlx5sim_attach() != 0) {
        return -1;
    }

    ctx = mlx5sim_obj_alloc(MLX5SIM_OBJ_CTX, 0);
    if (ctx == NULL) {
        return -1;
    }

    /* UAR pages are mapped beyond the end of this empty file: any access to
     * them raises SIGBUS, however the mapping was made */
    snprintf(name, sizeof(name), MLX5SIM_UAR_FILE "%u",
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

    ctx->inode       = (syscall(SYS_fstat, fd, &st) == 0) ? st.st_ino : 0;
    ctx->opened_fd   = fd;
    ctx->descriptors = 1;
    ctx->dev         = index;
    ctx->fault       = MLX5SIM_CONTEXT_NEW;
    ctx->o.ready     = 1;
    mlx5sim_fd_set(fd, mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    return fd;
}

int mlx5sim_uverbs_fd_device(int fd, uint64_t inode)
{
    mlx5sim_ctx_t *ctx;

    ctx = (mlx5sim_fd_get(fd) != 0) ? mlx5sim_fd_ctx(fd) :
                                      mlx5sim_fd_copied(fd);
    return ((ctx != NULL) && (ctx->inode == inode)) ? (int)ctx->dev : -1;
}

/* Free objects that the application left in a context it closes */
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
                if (kind == MLX5SIM_OBJ_SRQ) {
                    mlx5sim_xrc_withdraw_srq((void*)obj);
                }
                if (kind == MLX5SIM_OBJ_CQ) {
                    mlx5sim_cq_unshare((void*)obj);
                }
                mlx5sim_dmabuf_release(kind, obj);
                if (kind == MLX5SIM_OBJ_DM) {
                    mlx5sim_dm_give((void*)obj);
                } else {
                    mlx5sim_obj_free(kind, obj);
                }
            }
        }
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_CTX, ctx);
}

/* One of its descriptors is closed */
static void mlx5sim_ctx_leave(uint32_t index, int fd)
{
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, index);

    if (atomic_load(&ctx->o.owner) == mlx5sim_self_tag) {
        if (fd == ctx->opened_fd) {
            ctx->opened_fd = -1;
        }

        if (atomic_fetch_sub(&ctx->descriptors, 1) > 1) {
            return;
        }
    }

    mlx5sim_ctx_close(index);
}

void mlx5sim_uverbs_close(int fd)
{
    sigset_t saved;
    uint32_t entry;

    if ((mlx5sim_fd_get(fd) == 0) || mlx5sim_attach_is_other()) {
        return;
    }

    entry = mlx5sim_fd_set(fd, 0);
    if ((entry == 0) || (mlx5sim_self_tag == 0)) {
        return; /* a forked child closes what it inherited */
    }

    mlx5sim_trap_defer(&saved);
    if (entry & MLX5SIM_FD_CHAN) {
        mlx5sim_uverbs_chan_close(entry & ~MLX5SIM_FD_CHAN);
    } else if (mlx5sim_store != NULL) {
        mlx5sim_ctx_leave(entry, fd);
    }
    mlx5sim_trap_allow(&saved);
}

int mlx5sim_uverbs_map(int fd, size_t length, int prot, uint64_t offset,
                       uint32_t *uar_p)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_ctx(fd);
    uint64_t page      = offset / MLX5SIM_UAR_PAGE_SIZE;
    const mlx5sim_dm_t *dm;
    struct stat st;

    *uar_p = 0;
    if (ctx == NULL) {
        return 0; /* not a device */
    }

    if ((syscall(SYS_fstat, fd, &st) != 0) || (st.st_ino != ctx->inode)) {
        mlx5sim_uverbs_close(fd);
        return 0;
    }

    if ((page >= MLX5SIM_UAR_PAGE_DM) &&
        (page < MLX5SIM_UAR_PAGE_DM + MLX5SIM_DM_PAGES)) {
        dm = mlx5sim_dm_find(mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx), page);
        return ((dm != NULL) && (page == MLX5SIM_UAR_PAGE_DM + dm->page) &&
                (length == (size_t)dm->pages * MLX5SIM_UAR_PAGE_SIZE)) ?
               0 : -EINVAL;
    }

    if (length != MLX5SIM_UAR_PAGE_SIZE) {
        return -EINVAL;
    }

    if ((page == MLX5SIM_UAR_PAGE_CORE_CLOCK) ||
        (page == MLX5SIM_UAR_PAGE_CLOCK)) {
        return (prot & PROT_WRITE) ? -EPERM : 0;
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

/* Who gives the first command by a copy of a descriptor imports its context.
 * @return 0, also if it is no copy, or -errno */
static int mlx5sim_uverbs_adopt(int fd, mlx5sim_ctx_t **ctx_p)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_copied(fd);
    uint32_t count;

    if (ctx == NULL) {
        return 0;
    }

    /* its memory and its queues are where this process does not see them */
    if ((atomic_load(&ctx->o.owner) != mlx5sim_self_tag) || ctx->is_legacy ||
        (fd >= MLX5SIM_MAX_FD)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_IMPORT);
    }

    /* Another thread may be about to close the last one */
    count = atomic_load(&ctx->descriptors);
    do {
        if (count == 0) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&ctx->descriptors, &count,
                                           count + 1));

    if (mlx5sim_fd_set(fd, mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx)) != 0) {
        atomic_fetch_sub(&ctx->descriptors, 1); /* Imported meanwhile */
    }
    *ctx_p = ctx;
    return 0;
}

/* The first command of a child of fork() by what its parent has opened. It gets
 * a place in the store, to which belongs what it makes.
 * @return 0, also if it is none, or -errno */
static int mlx5sim_uverbs_inherit(int fd, struct ib_uverbs_ioctl_hdr *hdr,
                                  mlx5sim_ctx_t **ctx_p)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_inherited(fd);

    if (ctx == NULL) {
        return 0;
    }

    /* A length that is no header's is told apart before attributes are */
    if (hdr->length != sizeof(*hdr) +
                       (hdr->num_attrs * sizeof(hdr->attrs[0]))) {
        return -EINVAL;
    }

    if (!mlx5sim_uverbs_is_for_children(hdr)) {
        (void)mlx5sim_refuse(MLX5SIM_MISSING_FORK);
        return -EIO;
    }

    if (mlx5sim_attach() != 0) {
        return -ENOMEM;
    }

    *ctx_p = ctx;
    return 0;
}

int mlx5sim_uverbs_ioctl(int fd, void *arg)
{
    mlx5sim_ctx_t *ctx = mlx5sim_fd_ctx(fd);
    int ret;

    if (ctx == NULL) {
        ret = mlx5sim_uverbs_adopt(fd, &ctx);
        if ((ret == 0) && (ctx == NULL)) {
            ret = mlx5sim_uverbs_inherit(fd, arg, &ctx);
        }
        if (ret != 0) {
            errno = -ret;
            return -1;
        }
    }

    if (ctx == NULL) {
        /* even a context inherited through fork(), and closed by the parent */
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
