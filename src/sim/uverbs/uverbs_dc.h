/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_DC_H_
#define MLX5SIM_UVERBS_DC_H_

#include <sim/uverbs/cmd.h>

#include <rdma/ib_user_verbs.h>

/*
 * What the verbs of queue pairs do with those of the dynamically connected
 * transport.
 */

/**
 * Type of a queue pair that is made as IBV_QPT_DRIVER.
 * @param type_p  MLX5SIM_QPT_DCI or MLX5SIM_QPT_DCT.
 * @return 0 or -errno: refused.
 */
int mlx5sim_dc_type(mlx5sim_cmd_t *cmd, const struct ib_uverbs_create_qp *caps,
                    unsigned *type_p);

/** Set what the type decides in a new queue pair, the rest of which is set. */
void mlx5sim_dc_init(const mlx5sim_cmd_t *cmd, mlx5sim_qp_obj_t *qp);

/** Query a target. @return 0 or -errno. */
int mlx5sim_dc_query(mlx5sim_cmd_t *cmd, mlx5sim_qp_obj_t *qp);

#endif
