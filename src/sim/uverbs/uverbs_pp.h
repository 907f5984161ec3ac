/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_PP_H_
#define MLX5SIM_UVERBS_PP_H_

#include <sim/objs/store.h>

#include <rdma/rdma_user_ioctl.h>

/*
 * Entries of the table of rates for packet pacing (kernel:
 * drivers/infiniband/hw/mlx5/qos.c, and rl.c of mlx5_core). Only send queues of
 * raw packets name one, and there are none: a rate has no effect.
 */

/** MLX5_IB_METHOD_PP_OBJ_ALLOC and _DESTROY. An entry that is not dedicated is
 *  that of all who ask for the same. @return 0 or -errno. */
int mlx5sim_method_pp_alloc(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_pp_destroy(mlx5sim_ctx_t *ctx,
                              struct ib_uverbs_ioctl_hdr *hdr);

#endif
