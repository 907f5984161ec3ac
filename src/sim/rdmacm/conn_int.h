/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_CONN_INT_H_
#define MLX5SIM_RDMACM_CONN_INT_H_

#include <sim/rdmacm/conn.h>

/*
 * Steps of connections, for what the two sides say to each other inside of an
 * instance (conn.c), and by messages (remote.c, hear.c). Under the CM lock.
 */

/** Clock of deadlines: CLOCK_MONOTONIC, ns. */
uint64_t mlx5sim_cm_now(void);

int mlx5sim_cm_is_ud(const mlx5sim_cm_id_t *id);

/** Go to a state. If it is one in which the peer has to answer, the time begins
 *  to run. */
void mlx5sim_cm_set_state(mlx5sim_cm_id_t *id, mlx5sim_cm_state_t state);

/** Local ACK timeout that a request has, for the QP of who is asked, too. */
uint8_t mlx5sim_cm_request_timeout(const mlx5sim_cm_id_t *id);

/** Most private data of a request. */
unsigned mlx5sim_cm_request_size(const mlx5sim_cm_id_t *id);

/** Who listens at an address, NULL if nobody does. */
mlx5sim_cm_id_t *mlx5sim_cm_find_listener(uint16_t ps,
                                          const mlx5sim_cm_addr_t *dst);

/** Make a request to who listens. @return NULL if there is no room */
mlx5sim_cm_id_t *mlx5sim_cm_request_new(mlx5sim_cm_id_t *listener);

/** Show it, with all that it says, to who listens. @return 1, or 0: it could
 *  not, and the request has gone. */
int mlx5sim_cm_request_show(mlx5sim_cm_id_t *request,
                            mlx5sim_cm_id_t *listener);

/** There will be no connection, as the peer has said. */
void mlx5sim_cm_refuse(mlx5sim_cm_id_t *id, unsigned reason, const void *data,
                       size_t length);

/** The peer has not answered in time: what cm.c tells when it has sent a
 *  message often enough. */
void mlx5sim_cm_expire(mlx5sim_cm_id_t *id);

/** There is no connection any more.
 *  @param state   MLX5SIM_CM_DREQ_RCVD, or _CLOSED: that is its end. */
void mlx5sim_cm_disconnected(mlx5sim_cm_id_t *id, mlx5sim_cm_state_t state,
                             int status);

/** The connection is over, or its timewait is. */
void mlx5sim_cm_end(mlx5sim_cm_id_t *id);

#endif
