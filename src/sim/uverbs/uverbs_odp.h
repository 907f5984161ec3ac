/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_ODP_H_
#define MLX5SIM_UVERBS_ODP_H_

#include <sim/objs/obj.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

/*
 * On-demand paging: memory regions that are not pinned (MLX5SIM_ODP). Requests
 * reach memory by address anyway (exec/transfer.c).
 */

/** Tell what there is of it, nothing if it is off. */
void mlx5sim_odp_caps(struct ib_uverbs_ex_query_device_resp *reply);

/** UVERBS_METHOD_ADVISE_MR. @return 0 or -errno */
int mlx5sim_method_advise_mr(mlx5sim_ctx_t *ctx,
                             struct ib_uverbs_ioctl_hdr *hdr);

#endif
