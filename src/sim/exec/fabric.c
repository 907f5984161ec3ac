/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/fabric.h>
#include <sim/config/identity.h>
#include <sim/engine/qp.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>
#include <sim/queue/recv.h>


/* Whether an address is that of the port where @a qp is */
static int mlx5sim_fabric_is_port(const mlx5sim_qp_obj_t *qp, uint16_t dlid,
                                  int has_grh, const uint8_t *dgid)
{
    if (qp->qp.port == 0) {
        return 1; /* in reset: may be the one meant, but does not answer yet */
    }

    if (has_grh && mlx5sim_port_has_gid(mlx5sim_instance_config(), qp->dev,
                                        qp->qp.port, dgid)) {
        return 1;
    }

    return (dlid != 0) && ((dlid & ~qp->qp.path_mask) == qp->qp.lid);
}

/* The SRQ of a request to an XRC target, if it is in the target's domain. One
 * of another process is not found: its queue and its memory are not where this
 * device looks for them. */
static const mlx5sim_srq_t *
mlx5sim_fabric_xrc_srq(const mlx5sim_qp_obj_t *resp, uint32_t srqn)
{
    const mlx5sim_srq_t *srq = mlx5sim_obj_find(MLX5SIM_OBJ_SRQ, srqn);
    const mlx5sim_xrcd_t *theirs, *ours;
    uint32_t xrcd;

    if ((srq == NULL) || !srq->o.ready ||
        (atomic_load(&srq->o.owner) != atomic_load(&resp->o.owner))) {
        return NULL;
    }

    xrcd = atomic_load(&srq->xrcd);
    if (xrcd == 0) {
        return NULL;
    }

    theirs = mlx5sim_obj_at(MLX5SIM_OBJ_XRCD, xrcd - 1);
    ours   = mlx5sim_obj_at(MLX5SIM_OBJ_XRCD, resp->xrcd - 1);
    return ((theirs->dev == ours->dev) &&
            (theirs->id.st_dev == ours->id.st_dev) &&
            (theirs->id.st_ino == ours->id.st_ino)) ? srq : NULL;
}

/* IBTA A14: it is the SRQ that has the protection domain. @return the SRQ, or
 * NULL: then the request is refused. */
static const mlx5sim_srq_t *
mlx5sim_fabric_set_srq(const mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe,
                       mlx5sim_qp_t *qp_p)
{
    const mlx5sim_srq_t *srq = mlx5sim_fabric_xrc_srq(resp, wqe->srqn);

    if (srq == NULL) {
        qp_p->pdn  = 0;
        qp_p->srqn = 0;
        return NULL;
    }

    qp_p->pdn     = srq->pd;
    qp_p->srqn    = srq->srqn;
    qp_p->srq_pdn = srq->pd;
    qp_p->uidx    = srq->uidx;
    return srq;
}

void mlx5sim_fabric_bind(mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe)
{
    const mlx5sim_srq_t *srq;

    /* the rest of a message goes where its first packets are */
    if ((resp->qp.xrc != MLX5SIM_XRC_TGT) || resp->claim.held) {
        return;
    }

    srq           = mlx5sim_fabric_set_srq(resp, wqe, &resp->qp);
    resp->srq     = (srq != NULL) ? srq->srqn + 1 : 0;
    resp->recv_cq = (srq != NULL) ? srq->cq : 0;
}

mlx5sim_qp_t
mlx5sim_fabric_view(const mlx5sim_qp_obj_t *resp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_qp_t view = resp->qp;

    if (view.xrc == MLX5SIM_XRC_TGT) {
        (void)mlx5sim_fabric_set_srq(resp, wqe, &view);
    }
    return view;
}

mlx5sim_qp_obj_t *
mlx5sim_fabric_find(const mlx5sim_qp_obj_t *req, const mlx5sim_wqe_t *wqe)
{
    int has_av   = mlx5sim_qp_has_av(&req->qp);
    uint32_t qpn = has_av ? wqe->av.dqpn : req->qp.dest_qpn;
    mlx5sim_qp_obj_t *resp;

    if ((has_av && !wqe->has_av) || mlx5sim_qp_is_cut_off(req)) {
        return NULL;
    }

    resp = mlx5sim_qp_by_num(qpn);
    if (resp == NULL) {
        return NULL;
    }

    mlx5sim_rq_lock(resp);
    if (!resp->o.ready || (resp->qp.qpn != qpn) ||
        (mlx5sim_proc_by_tag(atomic_load(&resp->o.owner)) == NULL) ||
        mlx5sim_qp_is_cut_off(resp)) {
        goto err_unlock; /* destroyed while we came */
    }

    if (has_av ? !mlx5sim_fabric_is_port(resp, wqe->av.dlid, wqe->av.has_grh,
                                         wqe->av.dgid) :
                 !mlx5sim_fabric_is_port(resp, req->qp.dlid, req->qp.has_grh,
                                         req->qp.dgid)) {
        goto err_unlock;
    }

    return resp;

err_unlock:
    mlx5sim_unlock(&resp->rq_lock);
    return NULL;
}

int mlx5sim_fabric_is_too_long(const mlx5sim_qp_obj_t *req,
                               const mlx5sim_wqe_t *wqe)
{
    return (req->qp.type == MLX5SIM_QPT_UD) && (req->qp.port != 0) &&
           (wqe->length > (128u << mlx5sim_port_mtu(mlx5sim_instance_config(),
                                                    req->dev, req->qp.port)));
}

int mlx5sim_fabric_is_down(const mlx5sim_qp_obj_t *req,
                           const mlx5sim_wqe_t *wqe)
{
    const mlx5sim_qp_obj_t *resp;

    if (!mlx5sim_qp_is_reliable(&req->qp)) {
        return 0;
    }

    if (mlx5sim_qp_is_cut_off(req)) {
        return 1;
    }

    resp = mlx5sim_qp_by_num((mlx5sim_qp_has_av(&req->qp) && wqe->has_av) ?
                             wqe->av.dqpn : req->qp.dest_qpn);
    return (resp != NULL) && mlx5sim_qp_is_cut_off(resp);
}
