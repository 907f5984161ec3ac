/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_REMOTE_H_
#define MLX5SIM_RDMACM_REMOTE_H_

#include <sim/objs/cm.h>
#include <sim/rdmacm/mad.h>

#include <stddef.h>

/*
 * What ids tell peers on other nodes. All messages are sent by mlx5sim-wire,
 * which also sends them again: an id has a bit for each that is due, so nothing
 * is lost if a process, or mlx5sim-wire, is killed. An id that its process has
 * left goes to mlx5sim-wire, until the peer knows and its timewait is over.
 *
 * Under the CM lock.
 */

/** Where a message comes from, and where it goes. With InfiniBand the GIDs are
 *  IPv4 addresses of the ports, which their LIDs say: what GIDs other nodes
 *  have is not known. */
typedef struct mlx5sim_cm_way {
    uint8_t dev;
    uint8_t port;
    uint8_t tclass;
    uint8_t sgid[16];
    uint8_t dgid[16];
} mlx5sim_cm_way_t;

/** Sends a message: mlx5sim-wire. */
typedef void (*mlx5sim_cm_send_t)(const mlx5sim_cm_way_t *way,
                                  const uint8_t mad[MLX5SIM_CM_MAD_LENGTH]);


/** Both ends of what an id says, as in mlx5sim_cm_way_t. */
void mlx5sim_cm_remote_gids(const mlx5sim_cm_id_t *id, uint8_t sgid_p[16],
                            uint8_t dgid_p[16]);

/** The peer of an id is on another node. */
void mlx5sim_cm_remote_begin(mlx5sim_cm_id_t *id);

/** Tell the peer. @param what  One of mlx5sim_cm_tell_t. */
void mlx5sim_cm_remote_tell(mlx5sim_cm_id_t *id, uint32_t what);

/** Tell the peer that there will be no connection. The state is the one before
 *  that. @param data  Private data, NULL if @a length is 0. */
void mlx5sim_cm_remote_reject(mlx5sim_cm_id_t *id, unsigned reason,
                              const void *data, size_t length);

/** The process of an id destroys it. @return 1, or 0: there is nothing left to
 *  be done for it, and the caller frees it. */
int mlx5sim_cm_remote_leave(mlx5sim_cm_id_t *id);

/**
 * In mlx5sim-wire: send what is to be sent, end what is over.
 *
 * @param now  mlx5sim_cm_now().
 * @return when to call it again, on that clock; UINT64_MAX: never.
 */
uint64_t mlx5sim_cm_remote_progress(uint64_t now, mlx5sim_cm_send_t send);

#endif
