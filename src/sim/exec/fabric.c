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
