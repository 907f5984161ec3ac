/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_ATTR_H_
#define MLX5SIM_RDMACM_ATTR_H_

#include <sim/objs/cm.h>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/*
 * What follows from an id: attributes for its QP, the path to the other side.
 */

/**
 * Attributes with which the QP of an id goes to a state: rdma_init_qp_attr() of
 * the kernel's cma.c, ib_cm_init_qp_attr() of cm.c.
 *
 * @param state  enum ibv_qp_state.
 * @return 0, or -EINVAL: the id is not ready for it.
 */
int mlx5sim_cm_attr_init_qp(const mlx5sim_cm_id_t *id, uint32_t state,
                            struct ib_uverbs_qp_attr *attr_p);

/** Address of the other side: rdma/ib_user_verbs.h. */
void mlx5sim_cm_attr_ah(const mlx5sim_cm_id_t *id,
                        struct ib_uverbs_ah_attr *attr_p);

/** How many paths an id has: 1 if its route is known. */
unsigned mlx5sim_cm_attr_num_paths(const mlx5sim_cm_id_t *id);

/** The path as a record of the library: rdma/ib_user_sa.h. */
void mlx5sim_cm_attr_user_path(const mlx5sim_cm_id_t *id,
                               struct ib_user_path_rec *path_p);

/** The path as the subnet administrator's record, 64 bytes: IBTA 15.2.5.16,
 *  struct ibv_path_record of infiniband/sa.h. */
void mlx5sim_cm_attr_path(const mlx5sim_cm_id_t *id,
                          struct ib_path_rec_data *path_p);

#endif
