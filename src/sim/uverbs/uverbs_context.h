/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_CONTEXT_H_
#define MLX5SIM_UVERBS_CONTEXT_H_

#include <sim/uverbs/cmd.h>

#include <rdma/rdma_user_ioctl.h>

/*
 * A descriptor of the device becomes a context. libibverbs asks in one of two
 * ways: by the command, whose reply has the descriptor for asynchronous events,
 * or by a method (Linux 5.7 and later, rdma-core 29 and later), which tells
 * what else the kernel can do, and is followed by another one for that
 * descriptor.
 */

/** The command GET_CONTEXT. @return 0 or -errno */
int mlx5sim_cmd_get_context(mlx5sim_cmd_t *cmd);

/** The method UVERBS_METHOD_GET_CONTEXT. It says that optional access flags of
 *  memory regions are taken, without which libibverbs leaves out
 *  IBV_ACCESS_RELAXED_ORDERING. @return 0 or -errno */
int mlx5sim_method_get_context(mlx5sim_ctx_t *ctx, int fd,
                               struct ib_uverbs_ioctl_hdr *hdr);

/** The method UVERBS_METHOD_QUERY_CONTEXT: what that of GET_CONTEXT said, for
 *  who imports a context that is open. @return 0 or -errno */
int mlx5sim_method_query_context(mlx5sim_ctx_t *ctx, int fd,
                                 struct ib_uverbs_ioctl_hdr *hdr);

/** The method MLX5_IB_METHOD_QUERY_PORT: what a port is to an embedded switch,
 *  of which there is none. @return 0 or -errno */
int mlx5sim_method_query_port(struct ib_uverbs_ioctl_hdr *hdr);

/** The method UVERBS_METHOD_ASYNC_EVENT_ALLOC: a descriptor for asynchronous
 *  events. @return 0 or -errno */
int mlx5sim_method_alloc_async(mlx5sim_ctx_t *ctx,
                               struct ib_uverbs_ioctl_hdr *hdr);

#endif
