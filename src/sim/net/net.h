/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_NET_H_
#define MLX5SIM_NET_H_

#include <sim/objs/obj.h>

/*
 * What a process has to do with other nodes, which mlx5sim-wire reaches: it
 * tells that of doorbells and hands datagrams over. Callable from signal
 * handlers, but for mlx5sim_net_connect().
 */

/** Names in the directory of the instance: a FIFO of QP numbers that were rung,
 *  and a datagram socket for packets, from the IP header on. */
#define MLX5SIM_NET_RUNG    "wire.rung"
#define MLX5SIM_NET_SOCKET  "wire.socket"

/**
 * Note whether the peer of @a qp is on another node. Locks of the QP are held.
 *
 * @return 0, or -errno after the reason was written to standard error:
 *         -EPROTONOSUPPORT with a GID of RoCE v1, -ENETUNREACH without
 *         mlx5sim-wire.
 */
int mlx5sim_net_connect(mlx5sim_qp_obj_t *qp);

/** Tag of the process of mlx5sim-wire, 0 if none runs. */
uint32_t mlx5sim_net_server(void);

/** Have mlx5sim-wire look at @a qp. */
void mlx5sim_net_ring(mlx5sim_qp_obj_t *qp);

/** What stands in the FIFO for the connection manager: its queue pair, which no
 *  program can have. */
#define MLX5SIM_NET_CM 1

/** Have mlx5sim-wire look at the ids of the connection manager. With the CM
 *  lock held. */
void mlx5sim_net_ring_cm(void);

/** Whether a datagram goes to another node. */
int mlx5sim_net_is_datagram(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe);

/** Send a datagram to another node, or lose it.
 *  @param plan_p  What it does to the requester. */
void mlx5sim_net_datagram(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          mlx5sim_plan_t *plan_p);

#endif
