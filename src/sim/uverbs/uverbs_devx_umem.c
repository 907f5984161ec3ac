/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/limit.h>
#include <sim/uar/legacy.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/uverbs_devx.h>
#include <sim/uverbs/uverbs_dmabuf.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>


unsigned mlx5sim_devx_umem(const mlx5sim_ctx_t *ctx, uint32_t id,
                           uint64_t offset, uint64_t length, unsigned access,
                           uint64_t *addr_p, uint32_t *index_p)
{
    const mlx5sim_umem_t *umem;

    umem = mlx5sim_obj_mine(MLX5SIM_OBJ_UMEM, id,
                            mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if (umem == NULL) {
        return MLX5SIM_FW_BAD_RES;
    }

    if ((offset > umem->length) || (length > umem->length - offset) ||
        (access & ~umem->access)) {
        return MLX5SIM_FW_BAD_PARAM;
    }

    *addr_p  = umem->addr + offset;
    *index_p = id + 1;
    return MLX5SIM_FW_OK;
}

/* Kernel, devx_umem_get(). Page sizes need not be told: an object can be at any
 * place in it. */
int mlx5sim_devx_umem_reg(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *addr, *length, *access, *id, *fd;
    uint64_t flags, start;
    mlx5sim_umem_t *umem;
    uint32_t index;
    int ret;

    handle = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
    addr   = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
    length = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
    access = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS);
    id     = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID);
    fd     = mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
    if ((handle == NULL) || (addr == NULL) || (length == NULL) ||
        (id == NULL) || (id->len < sizeof(index)) ||
        ((fd != NULL) && ((fd->len != 0) ||
                          (fd->data_s64 != (int)fd->data_s64)))) {
        return -EINVAL;
    }

    /* ib_check_mr_access(): remote write implies local write */
    flags = (access != NULL) ? access->data : 0;
    if ((flags & ~(uint64_t)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ)) ||
        ((flags & IBV_ACCESS_REMOTE_WRITE) &&
         !(flags & IBV_ACCESS_LOCAL_WRITE)) || (length->data == 0)) {
        return -EINVAL;
    }

    start = addr->data;
    ret   = (fd == NULL) ? mlx5sim_mr_pin(start, length->data, flags) :
                           mlx5sim_dmabuf_map(fd->data, addr->data,
                                              length->data, flags, &start);
    if (ret != 0) {
        return ret;
    }

    umem = mlx5sim_limit_alloc(ctx, MLX5SIM_OBJ_UMEM);
    if (umem == NULL) {
        ret = -errno;
        if (fd != NULL) {
            mlx5sim_dmabuf_unmap(start, length->data);
        }
        return ret;
    }

    index           = mlx5sim_obj_index(MLX5SIM_OBJ_UMEM, umem);
    umem->addr      = start;
    umem->length    = length->data;
    umem->access    = flags;
    umem->is_dmabuf = fd != NULL;
    umem->o.ready   = 1;
    mlx5sim_attr_set_handle(handle, index);
    memcpy(mlx5sim_attr_out(id), &index, sizeof(index));
    return 0;
}

int mlx5sim_devx_umem_dereg(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE);
    mlx5sim_umem_t *umem;

    if (handle == NULL) {
        return -EINVAL;
    }

    umem = (handle->data >> 32) ? NULL :
           mlx5sim_obj_mine(MLX5SIM_OBJ_UMEM, handle->data,
                            mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx));
    if (umem == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&umem->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_dmabuf_release(MLX5SIM_OBJ_UMEM, &umem->o);
    mlx5sim_obj_free(MLX5SIM_OBJ_UMEM, umem);
    return 0;
}

/* Kernel, mlx5_vector2eqn() */
int mlx5sim_devx_query_eqn(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *vector =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
    const struct ib_uverbs_attr *eqn =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN);
    uint32_t number;

    (void)ctx;
    if ((vector == NULL) || (eqn == NULL) || (eqn->len < sizeof(number))) {
        return -EINVAL;
    }

    if ((uint32_t)vector->data >= MLX5SIM_COMP_VECTORS) {
        return -ENOENT;
    }

    number = (uint32_t)vector->data + MLX5SIM_DEVX_EQN;
    memcpy(mlx5sim_attr_out(eqn), &number, sizeof(number));
    return 0;
}

/* Kernel, bfregn_to_uar_index(): only for UARs without an object, which is told
 * its page when it is made. Static uUARs are given to QPs by the kernel. */
int mlx5sim_devx_query_uar(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *index =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX);
    const struct ib_uverbs_attr *page =
            mlx5sim_attr_find(hdr, MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX);
    mlx5sim_uuar_t uuar;
    int ret;

    if ((index == NULL) || (page == NULL) || (page->len < sizeof(uuar.uar)) ||
        !ctx->is_legacy) {
        return -EINVAL;
    }

    ret = mlx5sim_legacy_uuar_dyn(ctx, index->data, &uuar);
    if (ret == 0) {
        memcpy(mlx5sim_attr_out(page), &uuar.uar, sizeof(uuar.uar));
    }
    return ret;
}
