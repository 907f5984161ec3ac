/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_DEVX_H_
#define MLX5SIM_UVERBS_DEVX_H_

#include <sim/devx/mailbox.h>
#include <sim/objs/store.h>

#include <rdma/rdma_user_ioctl.h>

/*
 * DEVX: firmware commands of programs, passed on by the kernel
 * (drivers/infiniband/hw/mlx5/devx.c). The kernel lets some through without a
 * DEVX context, QUERY_HCA_CAP for one. What it does not know ends with EINVAL;
 * what the firmware refuses ends with EREMOTEIO, and the reply has a status.
 *
 * Objects are those of verbs, made by another door. Their handles have a bit
 * that those of verbs have not, and the kind.
 */

/** A firmware command under way. */
typedef struct mlx5sim_devx {
    mlx5sim_ctx_t *ctx;
    mlx5sim_fw_t  fw;
    void          *obj;     /**< queried, modified, or created; */
    uint32_t      number;   /**< number of what was created, */
    uint32_t      umems[2]; /**< and memory it is in: index + 1 */
} mlx5sim_devx_t;

/** Methods of the objects of MLX5_IB_OBJECT_DEVX*, by numbers of
 *  rdma/mlx5_user_ioctl_cmds.h. @return 0 or -errno; -EPROTONOSUPPORT without a
 *  method, or without DEVX in this context. */
int mlx5sim_devx_method(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

/** Status of a reply for what a function of the kernel returns: 0 or -errno. */
unsigned mlx5sim_devx_status(int ret);

/** Object of a DEVX handle, NULL if there is none in @a ctx; its kind in
 *  @a kind_p. */
void *mlx5sim_devx_find(const mlx5sim_ctx_t *ctx, uint64_t handle,
                        mlx5sim_obj_kind_t *kind_p);

/** Commands that are carried out; they return a status. On queue pairs, */
unsigned mlx5sim_devx_create_qp(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_modify_qp(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_qp(mlx5sim_devx_t *devx);

/** on DC targets, */
unsigned mlx5sim_devx_create_dct(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_drain_dct(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_dct(mlx5sim_devx_t *devx);

/** on memory: an indirect key of entries of one size (KSM) or of any (KLM), or
 *  one to which work requests give entries, */
unsigned mlx5sim_devx_create_mkey(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_mkey(mlx5sim_devx_t *devx);

/** on signatures that stay, */
unsigned mlx5sim_devx_create_psv(mlx5sim_devx_t *devx);

/** Destroy one. @return 0 or -errno */
int mlx5sim_devx_destroy_psv(mlx5sim_psv_t *psv);

/** and on completion and receive queues. */
unsigned mlx5sim_devx_create_cq(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_cq(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_create_rmp(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_rmp(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_modify_rmp(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_xrc_srq(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_arm_xrc_srq(mlx5sim_devx_t *devx);

/** On general objects; the number of one, whether a command names that and its
 *  type (kernel, devx_is_valid_obj_id()), and how it goes: 0 or -errno. */
unsigned mlx5sim_devx_create_general(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_modify_general(mlx5sim_devx_t *devx);
unsigned mlx5sim_devx_query_general(mlx5sim_devx_t *devx);
uint32_t mlx5sim_devx_general_number(const mlx5sim_general_t *general);
int mlx5sim_devx_general_is(const mlx5sim_devx_t *devx,
                            const mlx5sim_general_t *general);
int mlx5sim_devx_destroy_general(mlx5sim_general_t *general);

/** Find registered memory: UMEM @a id, @a length bytes at @a offset in it, with
 *  IBV_ACCESS_* flags @a access. Its address goes to @a addr_p, and its index
 *  + 1 to @a index_p. @return status. */
unsigned mlx5sim_devx_umem(const mlx5sim_ctx_t *ctx, uint32_t id,
                           uint64_t offset, uint64_t length, unsigned access,
                           uint64_t *addr_p, uint32_t *index_p);

/** MLX5_IB_METHOD_DEVX_UMEM_REG and _DEREG. @return 0 or -errno. */
int mlx5sim_devx_umem_reg(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_devx_umem_dereg(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);

/** MLX5_IB_METHOD_DEVX_QUERY_EQN and _QUERY_UAR. @return 0 or -errno. */
int mlx5sim_devx_query_eqn(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_devx_query_uar(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

/** Event queue of a completion vector: eqn is the vector and this. */
#define MLX5SIM_DEVX_EQN 1

/** MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC and _SUBSCRIBE_EVENT: a channel is
 *  one of ours, and takes cookies only (OMIT_DATA). An object has one
 *  subscription to asynchronous events, and a CQ one to completions.
 *  @return 0 or -errno. */
int mlx5sim_devx_event_fd(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_devx_subscribe(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

#endif
