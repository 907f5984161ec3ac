/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_XRC_H_
#define MLX5SIM_UVERBS_XRC_H_

#include <sim/uverbs/cmd.h>

#include <rdma/ib_user_verbs.h>

/*
 * Extended reliable connections: domains, and what SRQs and queue pairs of them
 * have that others have not.
 */

/** What part a queue pair of IBV_QPT_XRC_* has, MLX5SIM_XRC_*; none of any
 *  other type. */
unsigned mlx5sim_xrc_part(unsigned qp_type);

/** Domain @a handle of the command's context, NULL if there is none. */
mlx5sim_xrcd_t *mlx5sim_xrcd_get(const mlx5sim_cmd_t *cmd, uint32_t handle);

/** Whether an SRQ can be made of a domain and a completion queue. @return 0 or
 *  -errno */
int mlx5sim_xrc_check_srq(const mlx5sim_cmd_t *cmd, uint32_t xrcd_handle,
                          uint32_t cq_handle);

/** Put an SRQ that is not ready yet into the domain. */
void mlx5sim_xrc_init_srq(const mlx5sim_cmd_t *cmd, mlx5sim_srq_t *srq,
                          uint32_t xrcd_handle, uint32_t cq_handle);

/** The SRQ of this process, in a domain or not, is about to go: make sure that
 *  no target delivers to it any more. */
void mlx5sim_xrc_withdraw_srq(mlx5sim_srq_t *srq);

/** After that: give up what it refers to. */
void mlx5sim_xrc_leave_srq(mlx5sim_srq_t *srq);

/** A target is made of domain number @a xrcd, or destroyed. */
void mlx5sim_xrc_refs_add(uint32_t xrcd, int diff);

#endif
