/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PIECES_H_
#define MLX5SIM_PIECES_H_

#include <sim/exec/packet.h>
#include <sim/exec/responder.h>

/*
 * The pieces in which the payload of an RDMA write goes over PCIe. A memory
 * write request (TLP) has up to Max_Payload_Size bytes, mostly 256 in servers;
 * those with the attribute Relaxed Ordering may pass each other (PCI
 * Express Base Specification, "Transaction ordering rules"). A piece ends where
 * the address is a multiple of 256, so no aligned word is in two of them.
 */

#define MLX5SIM_PIECE_SIZE 256

/** Pieces of a packet, a bit for each: 17 at most. */
uint32_t mlx5sim_pieces_all(const mlx5sim_wqe_t *wqe,
                            const mlx5sim_packet_t *packet);

/**
 * Move the pieces of a packet that are in @a mask, all others of which are in
 * memory already.
 *
 * @param plan  Of the message. It is cut if all is moved.
 *
 * @return 0 or -errno, as mlx5sim_transfer().
 */
int mlx5sim_pieces_move(mlx5sim_run_t *run, mlx5sim_proc_t *proc,
                        const mlx5sim_wqe_t *wqe,
                        const mlx5sim_packet_t *packet, uint32_t mask,
                        mlx5sim_plan_t *plan, mlx5sim_side_t *side_p);

#endif
