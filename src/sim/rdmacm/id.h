/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_ID_H_
#define MLX5SIM_RDMACM_ID_H_

#include <sim/objs/cm.h>

/*
 * Ids in the store, and their port numbers. Under the CM lock.
 */

/** Take the lock. Who died with it has left nothing that needs repair: each
 *  change is one of a state, made before others are told. */
void mlx5sim_cm_lock(void);
void mlx5sim_cm_unlock(void);

/** Make an id whose events go to a channel.
 *  @return NULL with errno, and a message if there are too many. */
mlx5sim_cm_id_t *mlx5sim_cm_id_new(const mlx5sim_chan_t *chan, uint16_t ps,
                                   uint8_t qp_type);

/** Give an id to the process that has a channel. A process that is being
 *  reaped gets nothing.
 *  @return 0, or -1: the id has gone. */
int mlx5sim_cm_id_give(mlx5sim_cm_id_t *id, const mlx5sim_chan_t *chan);

/** Free an id that was given away, unless its process has been reaped, and the
 *  id with it. */
void mlx5sim_cm_id_take(mlx5sim_cm_id_t *id);

/** Free an id of this process. */
void mlx5sim_cm_id_free(mlx5sim_cm_id_t *id);

/** What an id is called by others. */
mlx5sim_cm_ref_t mlx5sim_cm_id_ref(const mlx5sim_cm_id_t *id);

/** Who is called so, NULL if it has gone, or its process has. */
mlx5sim_cm_id_t *mlx5sim_cm_id_get(mlx5sim_cm_ref_t ref);

/** The other side of a connection, NULL if it has gone. */
mlx5sim_cm_id_t *mlx5sim_cm_id_peer(const mlx5sim_cm_id_t *id);

/** Next id after @a index, with its process alive; NULL at the end. Begin with
 *  0. @param owner  Of this process only, 0: of all. */
mlx5sim_cm_id_t *mlx5sim_cm_id_next(uint32_t index, uint32_t owner);

/** Next id after @a index that has a port in a port space, its process alive;
 *  NULL at the end. Begin with 0. */
mlx5sim_cm_id_t *mlx5sim_cm_port_next(uint32_t index, uint16_t ps,
                                      uint16_t port);

/**
 * Give the id's source address a port: that which is in it, or a free one if
 * that is 0.
 *
 * @return 0, -EADDRINUSE, -EADDRNOTAVAIL (taken with any address, as
 *         cma_check_port() says) or -EACCES (below 1024).
 */
int mlx5sim_cm_port_bind(mlx5sim_cm_id_t *id);

/** Others may have the port of an id. */
void mlx5sim_cm_port_free(const mlx5sim_cm_id_t *id);

/** Whether nobody else has the port of an id that is to listen, whoever allows
 *  to share it: cma_bind_listen(). @return as mlx5sim_cm_port_bind(). */
int mlx5sim_cm_port_check(const mlx5sim_cm_id_t *id, int reuse_addr);

#endif
