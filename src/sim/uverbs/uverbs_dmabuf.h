/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_DMABUF_H_
#define MLX5SIM_UVERBS_DMABUF_H_

#include <sim/objs/obj.h>

#include <rdma/rdma_user_ioctl_cmds.h>

/*
 * Memory that a descriptor names. It is mapped for the device in the process
 * that registers it, which is where peers look for it, too. Besides dma-bufs,
 * which need a driver, files of memory are taken: memfd_create(), /dev/shm.
 */

/** Map bytes of a dma-buf.
 *  @param access IBV_ACCESS_*
 *  @param addr_p where the first of them is
 *  @return 0; -EBADF; -EINVAL: not a dma-buf, or beyond its end (kernel,
 *          ib_umem_dmabuf_get()); -ENOMEM; -EOPNOTSUPP, with a message: it
 *          can't be mapped */
int mlx5sim_dmabuf_map(int fd, uint64_t offset, uint64_t length,
                       unsigned access, uint64_t *addr_p);

/** Undo that. */
void mlx5sim_dmabuf_unmap(uint64_t addr, uint64_t length);

/** The same of what an object that is not used any more has mapped, if it has
 *  anything and the object is of this process. */
void mlx5sim_dmabuf_release(int kind, mlx5sim_obj_t *obj);

/** UVERBS_METHOD_REG_DMABUF_MR. @return 0 or -errno */
int mlx5sim_method_reg_dmabuf_mr(mlx5sim_ctx_t *ctx,
                                 struct ib_uverbs_ioctl_hdr *hdr);

#endif
