/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PLAN_H_
#define MLX5SIM_PLAN_H_

#include <sim/engine/engine.h>
#include <sim/engine/grh.h>
#include <sim/engine/mlx5_def.h>

/* Steps that plans are made of; see plan.c for their order. */


/** Where [@a addr, @a addr + @a length) is by @a key, as a piece of a plan, if
 *  the key's region has that, belongs to @a pdn and has all of @a access.
 *  @return 0, or -1 without touching @a seg_p. */
int mlx5sim_plan_place(const mlx5sim_env_t *env, mlx5sim_side_t side,
                       uint32_t key, uint32_t pdn, uint32_t access,
                       uint64_t addr, uint32_t length, mlx5sim_seg_t *seg_p);


/**
 * Translate the gather or scatter list of a request to process addresses.
 *
 * @param access   What the regions must allow.
 * @param out      As many entries as the request has segments.
 *
 * @return 0, or -1 if a key does not permit it.
 */
int mlx5sim_plan_local_list(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            const mlx5sim_env_t *env, uint32_t access,
                            mlx5sim_seg_t *out, unsigned *num_p);


/**
 * Translate the part of a receive WQE that a message fills.
 *
 * @param skip     Bytes at the start that nothing is written to.
 * @param length   Bytes to write; skip + length fit into the receive WQE.
 */
int mlx5sim_plan_recv_list(const mlx5sim_qp_t *resp,
                           const mlx5sim_recv_wqe_t *recv,
                           const mlx5sim_env_t *env, uint32_t skip,
                           uint32_t length, mlx5sim_seg_t *out,
                           unsigned *num_p);


/** Whether @a wqe is a write with immediate of an RC QP, or of a DC initiator,
 *  that is one packet. */
int mlx5sim_plan_is_only_imm(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe);


/** What the network header of a datagram says.
 *  @param req  Its sgid is the one that the address vector names. */
void mlx5sim_plan_route(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                        mlx5sim_route_t *route_p);


/** Network header of a datagram as the receiver finds it: a GRH, or the IPv4 or
 *  IPv6 header of RoCE v2. @return RoCE packet type, 0 on InfiniBand. */
unsigned mlx5sim_plan_grh(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                          uint8_t *grh);


/** Move nothing and tell nobody. */
void mlx5sim_plan_reset(mlx5sim_plan_t *plan);


/** Keep completions and state changes, but move no data. */
void mlx5sim_plan_no_transfer(mlx5sim_plan_t *plan);


/** Add the requester's CQE of success, if one was asked for. */
void mlx5sim_plan_req_success(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              mlx5sim_plan_t *plan);


/** Make the requester's side an error: CQE and state change. */
void mlx5sim_plan_req_error(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            unsigned syndrome, mlx5sim_plan_t *plan);


/** Reduce the plan to an error that the responder finds in the request: RC
 *  answers it with a NAK and @a event, UC drops the request. */
void mlx5sim_plan_fail_remote(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                              unsigned syndrome, unsigned event,
                              mlx5sim_plan_t *plan);


/** Turn the responder's CQE, already filled, into an error that uses the
 *  receive WQE up; RC tells the requester @a req_syndrome. */
void mlx5sim_plan_fail_recv(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                            unsigned resp_syndrome, unsigned req_syndrome,
                            mlx5sim_plan_t *plan);


/** The request vanishes: fine for the requester, unseen by the responder. */
void mlx5sim_plan_lost(const mlx5sim_qp_t *req, const mlx5sim_wqe_t *wqe,
                       mlx5sim_plan_t *plan);

#endif
