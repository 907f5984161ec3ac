/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_IMPORT_H_
#define MLX5SIM_UVERBS_IMPORT_H_

#include <sim/objs/obj.h>

#include <rdma/rdma_user_ioctl.h>

/*
 * For who imports a context, or an object of one, which is then as much the
 * importer's as that of who has made it. All return 0 or -errno.
 */

/** The method UVERBS_METHOD_QUERY_MR */
int mlx5sim_method_query_mr(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);

/** The method MLX5_IB_METHOD_PD_QUERY */
int mlx5sim_method_query_pd(mlx5sim_ctx_t *ctx,
                            struct ib_uverbs_ioctl_hdr *hdr);

/** The methods that create queues. libibverbs has a command for each of them,
 *  which it gives if they are not known; for an imported context it does not
 *  (fallback_require_ioctl()). */
int mlx5sim_method_create_cq(mlx5sim_ctx_t *ctx, int fd,
                             struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_create_srq(mlx5sim_ctx_t *ctx, int fd,
                              struct ib_uverbs_ioctl_hdr *hdr);
int mlx5sim_method_create_qp(mlx5sim_ctx_t *ctx, int fd,
                             struct ib_uverbs_ioctl_hdr *hdr);

#endif
