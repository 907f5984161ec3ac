/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_DEVX_H_
#define MLX5SIM_UVERBS_DEVX_H_

#include <sim/objs/store.h>

#include <rdma/rdma_user_ioctl.h>

/*
 * DEVX: firmware commands of programs, passed on by the kernel
 * (drivers/infiniband/hw/mlx5/devx.c). The kernel lets some through without a
 * DEVX context, QUERY_HCA_CAP for one. What it does not know ends with EINVAL;
 * what the firmware refuses ends with EREMOTEIO, and the reply has a status.
 *
 * All return 0 or -errno.
 */

/** MLX5_IB_METHOD_DEVX_OTHER: commands on no object. QUERY_HCA_CAP,
 *  QUERY_HCA_VPORT_CONTEXT, QUERY_LAG. */
int mlx5sim_devx_other(const mlx5sim_ctx_t *ctx,
                       struct ib_uverbs_ioctl_hdr *hdr);

/** MLX5_IB_METHOD_DEVX_OBJ_QUERY: QUERY_QP of a queue pair that libibverbs has
 *  created (mlx5dv_devx_qp_query()), in any state. */
int mlx5sim_devx_query(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

/** MLX5_IB_METHOD_DEVX_OBJ_MODIFY: INIT2INIT_QP and RTS2RTS_QP of such a queue
 *  pair, which set lag_tx_port_affinity. */
int mlx5sim_devx_modify(mlx5sim_ctx_t *ctx, struct ib_uverbs_ioctl_hdr *hdr);

/** MLX5_IB_METHOD_DEVX_OBJ_CREATE: refused as by firmware that does not know
 *  the command. */
int mlx5sim_devx_create(struct ib_uverbs_ioctl_hdr *hdr);

#endif
