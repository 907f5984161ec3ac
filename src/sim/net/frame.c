/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/net/frame.h>
#include <sim/config/identity.h>
#include <sim/engine/plan.h>
#include <sim/exec/layout.h>
#include <sim/exec/signature.h>
#include <sim/exec/responder.h>
#include <sim/instance/instance.h>
#include <sim/objs/mem.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <string.h>

/* On Ethernet, the kernel sets that of the route to the peer:
 * ib_resolve_unicast_gid_dmac() of drivers/infiniband/core/verbs.c, and
 * IPDEFTTL */
#define MLX5SIM_FRAME_HOP_LIMIT 64


/* InfiniBand: addresses of the nodes, by which the network takes packets */
static void mlx5sim_frame_nodes(const mlx5sim_qp_obj_t *qp,
                                mlx5sim_roce_path_t *path_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    const mlx5sim_netif_t *netif   = mlx5sim_port_netif(config, qp->dev,
                                                        qp->qp.port);

    if (path_p->is_ib && (netif != NULL)) {
        memcpy(path_p->from, netif->ipv4, sizeof(path_p->from));
        mlx5sim_netif_at_lid(netif, config->lmc, path_p->dlid, path_p->to);
    }
}

uint16_t mlx5sim_frame_sport(const mlx5sim_qp_obj_t *qp)
{
    return (qp->udp_sport != 0) ?
           qp->udp_sport :
           mlx5sim_roce_sport(qp->flow_label & 0xfffff, qp->qp.qpn,
                              qp->qp.dest_qpn);
}

void mlx5sim_frame_path(const mlx5sim_qp_obj_t *qp, mlx5sim_roce_path_t *path_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    mlx5sim_route_t *route         = &path_p->route;

    route->flow_label = qp->flow_label & 0xfffff;
    route->tclass     = qp->traffic_class;
    route->hop_limit  = qp->qp.is_roce ? MLX5SIM_FRAME_HOP_LIMIT :
                                         qp->hop_limit;
    route->is_udp     = mlx5sim_gid_is_roce_v2(config, qp->sgid_index);
    memcpy(route->sgid, qp->qp.sgid, sizeof(route->sgid));
    memcpy(route->dgid, qp->qp.dgid, sizeof(route->dgid));
    path_p->is_ib   = !qp->qp.is_roce;
    path_p->has_grh = qp->qp.has_grh;
    path_p->sl      = qp->qp.sl;
    path_p->slid    = qp->qp.lid | qp->qp.path_bits;
    path_p->dlid    = qp->qp.dlid;
    path_p->sport   = mlx5sim_frame_sport(qp);
    mlx5sim_gid_mac(config, route->sgid, path_p->smac);
    mlx5sim_gid_mac(config, route->dgid, path_p->dmac);
    mlx5sim_frame_nodes(qp, path_p);
}

int mlx5sim_frame_is_from_peer(const mlx5sim_qp_obj_t *qp,
                               const mlx5sim_roce_path_t *path)
{
    if (path->is_ib) {
        return (((path->slid ^ qp->qp.dlid) & ~qp->qp.path_mask) == 0) &&
               ((path->dlid & ~qp->qp.path_mask) == qp->qp.lid);
    }

    return (memcmp(path->route.sgid, qp->qp.dgid, sizeof(qp->qp.dgid)) == 0) &&
           (memcmp(path->route.dgid, qp->qp.sgid, sizeof(qp->qp.sgid)) == 0);
}

void mlx5sim_frame_datagram(const mlx5sim_qp_obj_t *qp,
                            const mlx5sim_wqe_t *wqe, uint32_t psn,
                            mlx5sim_roce_path_t *path_p,
                            mlx5sim_roce_t *packet_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();

    mlx5sim_plan_route(&qp->qp, wqe, &path_p->route);
    (void)mlx5sim_port_gid(config, qp->dev, qp->qp.port, wqe->av.sgid_index,
                           path_p->route.sgid);
    path_p->route.is_udp = mlx5sim_gid_is_roce_v2(config, wqe->av.sgid_index);
    path_p->is_ib        = !qp->qp.is_roce;
    path_p->has_grh      = wqe->av.has_grh;
    path_p->sl           = wqe->av.sl;
    path_p->slid         = qp->qp.lid | wqe->av.path_bits;
    path_p->dlid         = wqe->av.dlid;
    path_p->sport        = qp->qp.is_roce ?
                           wqe->av.dlid : /* PRM: rlid or udp_sport */
                           mlx5sim_roce_sport(0, qp->qp.qpn, wqe->av.dqpn);
    mlx5sim_gid_mac(config, path_p->route.sgid, path_p->smac);
    memcpy(path_p->dmac, wqe->av.dmac, sizeof(path_p->dmac));
    mlx5sim_frame_nodes(qp, path_p);
    mlx5sim_roce_request(&qp->qp, wqe, psn, 0, 1, 1, packet_p);
}

/* What a part of a message is in. @return 0 or -EFAULT */
static int mlx5sim_frame_plan(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                              uint32_t access, uint32_t offset,
                              uint32_t length, mlx5sim_plan_t *plan)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);

    mlx5sim_plan_reset(plan);
    if (mlx5sim_plan_local_list(&qp->qp, wqe, &env, access, plan->src,
                                &plan->num_src) != 0) {
        return -EFAULT;
    }

    plan->length = wqe->length;
    mlx5sim_plan_cut(plan, offset, length);
    return 0;
}

/* Bytes of a piece come from there or, if that is for writing, go there */
static int mlx5sim_frame_copy(const mlx5sim_proc_t *proc,
                              const mlx5sim_seg_t *seg, uint32_t access,
                              uint8_t *data)
{
    if (seg->inl != NULL) {
        memcpy(data, seg->inl, seg->length);
        return 0;
    }

    if (seg->length == 0) {
        return 0;
    }

    return (access != 0) ?
           mlx5sim_mem_write(proc, seg->addr, data, seg->length) :
           mlx5sim_mem_read(proc, seg->addr, data, seg->length);
}

static int mlx5sim_frame_move(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                              uint32_t access, uint32_t offset,
                              uint32_t length, uint8_t *data)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    uint64_t done        = 0;
    const mlx5sim_plan_t *part;
    const mlx5sim_sig_user_t user = {qp, MLX5SIM_SIDE_REQUESTER};
    mlx5sim_plan_t plan, room;
    mlx5sim_side_t side;
    unsigned i;
    int ret;

    if (length == 0) {
        return 0;
    }

    ret = mlx5sim_frame_plan(qp, wqe, access, offset, length, &plan);
    if ((ret != 0) || (proc == NULL)) {
        return (proc == NULL) ? -ESRCH : ret;
    }

    if (mlx5sim_sig_is_in(plan.src, plan.num_src)) {
        return mlx5sim_sig_move(&user, proc, plan.src, plan.num_src,
                                access != 0, 0, length, data);
    }

    for (; done < length; done += part->length) {
        part = mlx5sim_layout_part(&plan, done, &room, &side);
        if (part == NULL) {
            return -EFAULT;
        }

        for (i = 0; i < part->num_src; ++i) {
            ret = mlx5sim_frame_copy(proc, &part->src[i], access, data);
            if (ret != 0) {
                return ret;
            }
            data += part->src[i].length;
        }
    }

    return 0;
}

int mlx5sim_frame_can_scatter(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_plan_t plan;

    return mlx5sim_frame_plan(qp, wqe, MLX5SIM_ACCESS_LOCAL_WRITE, 0,
                              wqe->length, &plan) == 0;
}

int mlx5sim_frame_gather(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         uint32_t offset, uint32_t length, uint8_t *out_p)
{
    return mlx5sim_frame_move(qp, wqe, 0, offset, length, out_p);
}

int mlx5sim_frame_scatter(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t offset, uint32_t length, const uint8_t *data)
{
    /* What is for writing is only read here */
    return mlx5sim_frame_move(qp, wqe, MLX5SIM_ACCESS_LOCAL_WRITE, offset,
                              length, (uint8_t*)data);
}
