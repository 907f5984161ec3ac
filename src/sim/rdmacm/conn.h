/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_CONN_H_
#define MLX5SIM_RDMACM_CONN_H_

#include <sim/objs/cm.h>

/*
 * Connections: what messages of the connection manager (IBTA chapter 12, kernel
 * drivers/infiniband/core/cm.c) do to the two ids. Both are in the store, so a
 * message is a change of both, and none is lost. Under the CM lock.
 *
 * All return 0 or -errno, as the kernel's functions.
 */

/** Ask for a connection: REQ, or SIDR_REQ of a datagram id.
 *  The id has a route; its answer is an event. */
int mlx5sim_cm_connect(mlx5sim_cm_id_t *id, const mlx5sim_cm_param_t *param);

/** Accept: REP, or SIDR_REP. */
int mlx5sim_cm_accept(mlx5sim_cm_id_t *id, const mlx5sim_cm_param_t *param);

/** Ready to use: RTU. */
int mlx5sim_cm_establish(mlx5sim_cm_id_t *id);

/** The QP has received before RTU came: cm_establish(). */
int mlx5sim_cm_notify(mlx5sim_cm_id_t *id);

/** Reject a request, or what it was answered: REJ. */
int mlx5sim_cm_reject(mlx5sim_cm_id_t *id, unsigned reason, const void *data,
                      size_t length);

/** End the connection, or agree to that: DREQ, DREP. */
int mlx5sim_cm_disconnect(mlx5sim_cm_id_t *id);

/** Wait for requests. @param backlog  How many may be unread. */
void mlx5sim_cm_listen(mlx5sim_cm_id_t *id, unsigned backlog);

/** A request has been read: there is room for another one. */
void mlx5sim_cm_request_read(mlx5sim_cm_id_t *request);

/** Destroy an id, with what the other side is told. */
void mlx5sim_cm_leave(mlx5sim_cm_id_t *id);

/**
 * Find out whether the other side, or who was asked, has gone, or has not
 * answered in time.
 *
 * @param now  CLOCK_MONOTONIC ns.
 * @return Whether this has to be done again.
 */
int mlx5sim_cm_watch(mlx5sim_cm_id_t *id, uint64_t now);

#endif
