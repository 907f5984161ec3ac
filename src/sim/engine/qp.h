/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_QP_H_
#define MLX5SIM_QP_H_

#include <sim/engine/engine.h>

#define MLX5SIM_MAX_MTU 4096u


/** Largest datagram, bytes. */
static inline unsigned mlx5sim_qp_mtu(const mlx5sim_qp_t *qp)
{
    return ((qp->path_mtu >= 1) && (qp->path_mtu <= 5)) ?
           (128u << qp->path_mtu) : MLX5SIM_MAX_MTU;
}


/** Whether packets for the QP are processed: from RTR on, not in error. */
static inline int mlx5sim_qp_is_receiving(const mlx5sim_qp_t *qp)
{
    return (qp->state >= MLX5SIM_QPS_RTR) && (qp->state <= MLX5SIM_QPS_SQE);
}


/** P_Keys match if they name one partition and either is a full member
 *  (IBTA "P_Key matching"). 0 is no valid P_Key: not known, not checked. */
static inline int mlx5sim_pkey_matches(uint16_t a, uint16_t b)
{
    return (a == 0) || (b == 0) ||
           ((((a ^ b) & 0x7fff) == 0) && ((a | b) & 0x8000));
}


/** Whether requests are answered, and repeated until they are. */
static inline int mlx5sim_qp_is_reliable(const mlx5sim_qp_t *qp)
{
    return (qp->type == MLX5SIM_QPT_RC) || (qp->type == MLX5SIM_QPT_DCI);
}


/** Whether each work request names the QP that it goes to. */
static inline int mlx5sim_qp_has_av(const mlx5sim_qp_t *qp)
{
    return (qp->type == MLX5SIM_QPT_UD) || (qp->type == MLX5SIM_QPT_DCI);
}


/** Whether @a resp is connected to @a req; or takes its requests, as @a wqe has
 *  the access key. What becomes of one with another key is not public: the
 *  target reports it (MLX5_EVENT_TYPE_DCT_KEY_VIOLATION, which Linux tells
 *  nobody), and that the initiator gets no answer is a guess. */
static inline int
mlx5sim_qp_is_peer(const mlx5sim_qp_t *resp, const mlx5sim_qp_t *req,
                   const mlx5sim_wqe_t *wqe)
{
    if (req->type == MLX5SIM_QPT_DCI) {
        return (resp->type == MLX5SIM_QPT_DCT) &&
               (resp->dc_key == wqe->av.dc_key);
    }

    return (resp->type == req->type) && (resp->dest_qpn == req->qpn) &&
           (req->xrc != MLX5SIM_XRC_TGT) &&
           (resp->xrc == ((req->xrc == MLX5SIM_XRC_INI) ? MLX5SIM_XRC_TGT :
                                                          MLX5SIM_XRC_NONE));
}


/** Whether @a resp takes packets of @a req at all: its peer, and ready to
 *  receive. Others are dropped without an answer. */
static inline int
mlx5sim_qp_answers(const mlx5sim_qp_t *resp, const mlx5sim_qp_t *req,
                   const mlx5sim_wqe_t *wqe)
{
    return mlx5sim_qp_is_peer(resp, req, wqe) &&
           mlx5sim_qp_is_receiving(resp) &&
           mlx5sim_pkey_matches(req->pkey, resp->pkey);
}

#endif
