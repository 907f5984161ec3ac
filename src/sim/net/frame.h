/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_FRAME_H_
#define MLX5SIM_FRAME_H_

#include <sim/objs/obj.h>
#include <sim/wire/roce.h>

/*
 * What a queue pair sends, as bytes: the path that its packets take, and their
 * payload, which is in the memory of its process.
 */

/** UDP source port of all that a connected QP sends on RoCE v2, answers too:
 *  what a firmware command has given it, or what the kernel chooses
 *  (mlx5_ib qp.c, mlx5_set_path_udp_sport()). */
uint16_t mlx5sim_frame_sport(const mlx5sim_qp_obj_t *qp);

/** Path from a connected QP to its peer. */
void mlx5sim_frame_path(const mlx5sim_qp_obj_t *qp,
                        mlx5sim_roce_path_t *path_p);

/** Whether packets that came by a path are from the peer of a connected QP. */
int mlx5sim_frame_is_from_peer(const mlx5sim_qp_obj_t *qp,
                               const mlx5sim_roce_path_t *path);

/** Path and headers of a datagram.
 *  @param wqe  It has an address vector.
 *  @param psn  Of the datagram. */
void mlx5sim_frame_datagram(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe, uint32_t psn,
                            mlx5sim_roce_path_t *path_p,
                            mlx5sim_roce_t *packet_p);

/** Read a part of the payload of a request.
 *  @param wqe     Inline data are in the memory of this process, whoever owns
 *                 @a qp.
 *  @param offset  Of the part in the message, bytes.
 *  @param out_p   Room for @a length bytes.
 *  @return 0, -EFAULT (a key does not permit it, or the memory is not mapped),
 *          or another -errno: the process is gone. */
int mlx5sim_frame_gather(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         uint32_t offset, uint32_t length, uint8_t *out_p);

/** Whether the keys of a read permit to write its answer. */
int mlx5sim_frame_can_scatter(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe);

/** Write a part of the answer to a read to where @a wqe says.
 *  @return as mlx5sim_frame_gather(). */
int mlx5sim_frame_scatter(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t offset, uint32_t length,
                          const uint8_t *data);

#endif
