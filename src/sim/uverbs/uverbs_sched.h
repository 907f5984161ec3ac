/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_SCHED_H_
#define MLX5SIM_UVERBS_SCHED_H_

#include <sim/uverbs/uverbs_devx.h>

/*
 * Elements of the send scheduler: general objects that make trees, and the
 * queue pairs that belong to a leaf. The device has no line rate to be shared:
 * shares and limits are kept, told, and have no effect.
 */

/** Make what the command says of a new element, and drop it. @return status. */
unsigned mlx5sim_sched_create(const mlx5sim_devx_t *devx,
                              mlx5sim_general_t *general);
void mlx5sim_sched_drop(const mlx5sim_general_t *general);

/** MODIFY_GENERAL_OBJECT and QUERY_GENERAL_OBJECT. @return status. */
unsigned mlx5sim_sched_modify(mlx5sim_devx_t *devx);
unsigned mlx5sim_sched_query(mlx5sim_devx_t *devx);

/** Have the queue pair of a command belong to the leaves that it names, for
 *  what it sends and for what it answers. @return status. */
unsigned mlx5sim_sched_bind(const mlx5sim_devx_t *devx);

/** Have a queue pair belong to no leaf. */
void mlx5sim_sched_unbind(mlx5sim_qp_obj_t *qp);

#endif
