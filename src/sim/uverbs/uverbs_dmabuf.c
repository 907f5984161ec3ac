/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/uverbs_dmabuf.h>
#include <sim/limit/inject.h>
#include <sim/objs/store.h>
#include <sim/uverbs/attr.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * The rules are those of the kernel: uverbs_std_types_mr.c, umem_dmabuf.c.
 * System calls are made directly: programs hook the C library's functions.
 */

#define MLX5SIM_DMABUF_PAGE 4096ul

#define MLX5SIM_DMABUF_ACCESS (IBV_ACCESS_LOCAL_WRITE | \
                               IBV_ACCESS_REMOTE_READ | \
                               IBV_ACCESS_REMOTE_WRITE | \
                               IBV_ACCESS_REMOTE_ATOMIC | \
                               IBV_ACCESS_RELAXED_ORDERING)


/* @return bytes, or -errno */
static int64_t mlx5sim_dmabuf_size(int fd)
{
    struct statfs fs;
    struct stat st;
    int64_t size;

    if (syscall(SYS_fstatfs, fd, &fs) != 0) {
        return -EBADF;
    }

    if (fs.f_type == DMA_BUF_MAGIC) {
        size = syscall(SYS_lseek, fd, 0, SEEK_END); /* moves nothing */
        return (size < 0) ? -errno : size;
    }

    if (fs.f_type == HUGETLBFS_MAGIC) {
        return mlx5sim_refuse(MLX5SIM_MISSING_DMABUF);
    }

    /* only files of memory have seals */
    if ((syscall(SYS_fcntl, fd, F_GET_SEALS) < 0) ||
        (syscall(SYS_fstat, fd, &st) != 0)) {
        return (errno == EBADF) ? -EBADF : -EINVAL; /* EBADF: O_PATH */
    }
    return st.st_size;
}

/* Where the pages begin that hold such bytes, and how long they are */
static uint64_t mlx5sim_dmabuf_pages(uint64_t start, uint64_t length,
                                     uint64_t *size_p)
{
    uint64_t first = start & ~(MLX5SIM_DMABUF_PAGE - 1);

    *size_p = (start + length - first + MLX5SIM_DMABUF_PAGE - 1) &
              ~(MLX5SIM_DMABUF_PAGE - 1);
    return first;
}

int mlx5sim_dmabuf_map(int fd, uint64_t offset, uint64_t length,
                       unsigned access, uint64_t *addr_p)
{
    uint64_t first, size;
    int64_t end;
    long addr;

    if (offset + length < offset) {
        return -EINVAL;
    }

    end = mlx5sim_dmabuf_size(fd);
    if (end < 0) {
        return end;
    }

    if ((offset > (uint64_t)end) || (length > (uint64_t)end - offset)) {
        return -EINVAL;
    }

    first = mlx5sim_dmabuf_pages(offset, length, &size);
    if (size == 0) {
        return -EINVAL;
    }

    /* for writing in any case: a region may be given more access later */
    addr = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                   first);
    if ((addr == -1) && (errno != ENOMEM) && !mlx5sim_mr_is_writable(access)) {
        addr = syscall(SYS_mmap, NULL, size, PROT_READ, MAP_SHARED, fd, first);
    }
    if (addr == -1) {
        return (errno == ENOMEM) ? -ENOMEM :
               mlx5sim_refuse(MLX5SIM_MISSING_DMABUF);
    }

    /* nobody would unmap it in a child, where it keeps the buffer */
    (void)syscall(SYS_madvise, addr, size, MADV_DONTFORK);
    *addr_p = (uint64_t)addr + (offset - first);
    if (mlx5sim_mr_pin(*addr_p, length, access) != 0) {
        mlx5sim_dmabuf_unmap(*addr_p, length);
        return mlx5sim_refuse(MLX5SIM_MISSING_DMABUF);
    }
    return 0;
}

void mlx5sim_dmabuf_unmap(uint64_t addr, uint64_t length)
{
    uint64_t first, size;

    first = mlx5sim_dmabuf_pages(addr, length, &size);
    (void)syscall(SYS_munmap, first, size);
}

void mlx5sim_dmabuf_release(int kind, mlx5sim_obj_t *obj)
{
    mlx5sim_mr_obj_t *mr = (mlx5sim_mr_obj_t*)obj;
    mlx5sim_umem_t *umem = (mlx5sim_umem_t*)obj;

    if ((kind == MLX5SIM_OBJ_MR) && mr->is_dmabuf) {
        mr->is_dmabuf = 0;
        mlx5sim_dmabuf_unmap(mr->mr.va, mr->mr.length);
    } else if ((kind == MLX5SIM_OBJ_UMEM) && umem->is_dmabuf) {
        umem->is_dmabuf = 0;
        mlx5sim_dmabuf_unmap(umem->addr, umem->length);
    }
}

/* Kernel, UVERBS_METHOD_REG_DMABUF_MR */
int mlx5sim_method_reg_dmabuf_mr(mlx5sim_ctx_t *ctx,
                                 struct ib_uverbs_ioctl_hdr *hdr)
{
    const struct ib_uverbs_attr *handle, *pd, *offset, *length, *iova, *fd;
    const struct ib_uverbs_attr *lkey, *rkey;
    mlx5sim_mr_t as = {0};
    mlx5sim_mr_obj_t *mr;
    int ret;

    handle = mlx5sim_attr_find(hdr, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
    pd     = mlx5sim_attr_find(hdr, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE);
    if ((handle == NULL) || (handle->len != 0) || (pd == NULL) ||
        (pd->len != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DMABUF_MR_OFFSET,
                                 sizeof(uint64_t), &offset) != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH,
                                 sizeof(uint64_t), &length) != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DMABUF_MR_IOVA,
                                 sizeof(uint64_t), &iova) != 0) ||
        (mlx5sim_attr_find_sized(hdr, UVERBS_ATTR_REG_DMABUF_MR_FD,
                                 sizeof(uint32_t), &fd) != 0) ||
        (mlx5sim_attr_flags(hdr, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS,
                            &as.access) != 0)) {
        return -EINVAL;
    }

    if ((pd->data >> 32) ||
        (mlx5sim_obj_mine(MLX5SIM_OBJ_PD, pd->data,
                          mlx5sim_obj_index(MLX5SIM_OBJ_CTX, ctx)) == NULL)) {
        return -ENOENT;
    }

    ret = mlx5sim_attr_find_out(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
                                sizeof(as.key), &lkey);
    if (ret == 0) {
        ret = mlx5sim_attr_find_out(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
                                    sizeof(as.key), &rkey);
    }
    if (ret != 0) {
        return ret;
    }

    if (!mlx5sim_mr_is_aligned(offset->data, iova->data) ||
        (as.access & ~MLX5SIM_DMABUF_ACCESS)) {
        return -EINVAL;
    }

    ret = mlx5sim_mr_check_access(as.access);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_inject(MLX5SIM_FAULT_MR);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_dmabuf_map(fd->data, offset->data, length->data, as.access,
                             &as.va);
    if (ret != 0) {
        return ret;
    }

    as.pdn    = pd->data;
    as.iova   = iova->data;
    as.length = length->data;
    ret       = mlx5sim_mr_make(ctx, &as, 0, 1, &mr);
    if (ret != 0) {
        mlx5sim_dmabuf_unmap(as.va, as.length);
        return ret;
    }

    mlx5sim_attr_set_handle(handle, mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr));
    memcpy(mlx5sim_attr_out(lkey), &mr->mr.key, sizeof(mr->mr.key));
    memcpy(mlx5sim_attr_out(rkey), &mr->mr.key, sizeof(mr->mr.key));
    return 0;
}
