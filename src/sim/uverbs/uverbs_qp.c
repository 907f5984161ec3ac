/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/check/report.h>
#include <sim/config/identity.h>
#include <sim/config/seed.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/limit/limit.h>
#include <sim/net/net.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/chan.h>
#include <sim/queue/recv.h>
#include <sim/sched/helper.h>
#include <sim/sched/sq.h>
#include <sim/uar/legacy.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_dc.h>
#include <sim/uverbs/uverbs_objs.h>
#include <sim/uverbs/uverbs_sched.h>
#include <sim/uverbs/uverbs_xrc.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

/* Flags that change nothing the application can see: loopback exists anyway */
#define MLX5SIM_QP_FLAGS_IGNORED (MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE | \
                                  MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | \
                                  MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC)
#define MLX5SIM_QP_FLAGS_DC      (MLX5_QP_FLAG_TYPE_DCT | \
                                  MLX5_QP_FLAG_TYPE_DCI | \
                                  MLX5_QP_FLAG_DCI_STREAM)
#define MLX5SIM_QP_FLAGS_KNOWN   (MLX5SIM_QP_FLAGS_IGNORED | \
                                  MLX5_QP_FLAG_SCATTER_CQE | \
                                  MLX5_QP_FLAG_ALLOW_SCATTER_CQE | \
                                  MLX5_QP_FLAG_BFREG_INDEX | \
                                  MLX5_QP_FLAG_UAR_PAGE_INDEX | \
                                  MLX5SIM_QP_FLAGS_DC)

/* Size of a receive's scatter element [mlx5_wqe_data_seg] */
#define MLX5SIM_RQ_SEG 16

/* What mlx5sim_seed_draw() is asked here, and how long it may take until the
 * receives that a failed QP has taken from its SRQ are flushed */
#define MLX5SIM_QP_SEED         0x7370
#define MLX5SIM_QP_FLUSH_MIN_NS 1000000ul
#define MLX5SIM_QP_FLUSH_NS     4000000ul


static mlx5sim_qp_obj_t *mlx5sim_qp_get(mlx5sim_cmd_t *cmd, uint32_t handle)
{
    return mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_QP, handle);
}

static void mlx5sim_qp_refs_add(mlx5sim_qp_obj_t *qp, int diff)
{
    if (qp->xrcd != 0) {
        mlx5sim_xrc_refs_add(qp->xrcd - 1, diff); /* it has nothing else */
        return;
    }

    atomic_fetch_add(&((mlx5sim_pd_t*)mlx5sim_obj_at(MLX5SIM_OBJ_PD,
                                                     qp->pd))->refs, diff);
    atomic_fetch_add(&((mlx5sim_cq_t*)mlx5sim_obj_at(MLX5SIM_OBJ_CQ,
                                                     qp->send_cq))->refs, diff);
    atomic_fetch_add(&((mlx5sim_cq_t*)mlx5sim_obj_at(MLX5SIM_OBJ_CQ,
                                                     qp->recv_cq))->refs, diff);
    if (qp->srq != 0) {
        atomic_fetch_add(&((mlx5sim_srq_t*)mlx5sim_obj_at(MLX5SIM_OBJ_SRQ,
                                                          qp->srq - 1))->refs,
                         diff);
    }
}

/* Where the QP rings: what libmlx5 chose, or what the kernel chooses */
static int mlx5sim_qp_uuar_get(mlx5sim_cmd_t *cmd, uint32_t flags,
                               uint32_t index, int rings,
                               mlx5sim_uuar_t *uuar_p)
{
    mlx5sim_uar_t *uar;

    if (!rings) {
        memset(uuar_p, 0, sizeof(*uuar_p));
        uuar_p->uuar_class = MLX5SIM_UUAR_NONE;
        return 0;
    }

    if (cmd->ctx->is_legacy && !cmd->is_devx) {
        if (flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) {
            return -EINVAL;
        }

        if (flags & MLX5_QP_FLAG_BFREG_INDEX) {
            return mlx5sim_legacy_uuar_dyn(cmd->ctx, index, uuar_p);
        }

        mlx5sim_legacy_uuar_get(cmd->ctx, uuar_p);
        return 0;
    }

    uar = (flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) ?
          mlx5sim_obj_mine(MLX5SIM_OBJ_UAR, index,
                           mlx5sim_cmd_ctx_index(cmd)) : NULL;
    if (uar == NULL) {
        return -EINVAL;
    }

    uuar_p->uar        = index;
    uuar_p->uuar_class = (uar->kind == MLX5SIM_UAR_NC) ? MLX5SIM_UUAR_HIGH :
                                                         MLX5SIM_UUAR_DYNAMIC;
    uuar_p->uuar       = 0;
    uuar_p->reply      = 0;
    return 0;
}

/* Dynamic ones stay with libmlx5 for reuse */
static void mlx5sim_qp_uuar_put(mlx5sim_ctx_t *ctx, uint32_t uuar_class,
                                uint32_t uuar)
{
    if (ctx->is_legacy && (uuar_class != MLX5SIM_UUAR_DYNAMIC) &&
        (uuar_class != MLX5SIM_UUAR_NONE)) {
        mlx5sim_legacy_uuar_put(ctx, uuar);
    }
}

/* Whether the network interface of a GID can't be used from here, as the kernel
 * finds out from the GID's attributes (rdma_read_gid_attr_ndev_rcu) when it
 * looks for the way to an address */
static int mlx5sim_gid_is_bad(unsigned index)
{
    return (mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE) &&
           (index < 32) && (mlx5sim_inject_gids() & (1u << index));
}

/* RC only: datagrams are not repeated */
static void mlx5sim_qp_set_recv_fault(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_quirk_recv_t recv;

    if (qp->qp.type != MLX5SIM_QPT_RC) {
        return;
    }

    mlx5sim_inject_recv(&recv);
    qp->recv_fault.nth      = recv.nth;
    qp->recv_fault.onwards  = recv.onwards;
    qp->recv_fault.syndrome = recv.syndrome;
    qp->recv_fault.vendor   = recv.vendor;
    qp->recv_fault.is_abort = recv.is_abort;
}

/* IBTA 10.3.1: a QP may have taken WQEs off its SRQ that no message has used
 * yet. They come back by flush errors, before the last WQE event. */
static void mlx5sim_qp_set_prefetch(mlx5sim_qp_obj_t *qp)
{
    unsigned max = mlx5sim_instance_config()->srq_prefetch;
    uint64_t drawn;

    if ((max == 0) || (qp->srq == 0) || (qp->qp.type == MLX5SIM_QPT_DCT)) {
        return;
    }

    mlx5sim_seed_tell();
    drawn           = mlx5sim_seed_draw(MLX5SIM_QP_SEED, qp->qp.qpn, 0);
    qp->prefetch    = 1 + (drawn % max);
    qp->flush_delay = MLX5SIM_QP_FLUSH_MIN_NS +
                      ((drawn >> 32) % MLX5SIM_QP_FLUSH_NS);
}

/* A QP under the helper's care, on that uUAR */
static mlx5sim_qp_obj_t *mlx5sim_qp_alloc(mlx5sim_cmd_t *cmd,
                                          const mlx5sim_uuar_t *uuar)
{
    mlx5sim_qp_obj_t *qp;

    qp = mlx5sim_limit_alloc(cmd->ctx, MLX5SIM_OBJ_QP);
    if (qp == NULL) {
        return NULL;
    }

    if (mlx5sim_helper_add_qp(qp) != 0) {
        mlx5sim_obj_free(MLX5SIM_OBJ_QP, qp);
        errno = ENOMEM;
        return NULL;
    }

    qp->dev        = cmd->ctx->dev;
    qp->uar        = uuar->uar;
    qp->uuar       = uuar->uuar;
    qp->uuar_class = uuar->uuar_class;
    qp->gone_after = mlx5sim_instance_config()->gone_after * 1000000ul;
    return qp;
}

/* Body of both create commands. The extended input continues the plain one. */
int mlx5sim_qp_create(mlx5sim_cmd_t *cmd, uint64_t user_handle,
                      uint32_t pd_handle, uint32_t send_cq, uint32_t recv_cq,
                      uint32_t srq_handle,
                      const struct ib_uverbs_create_qp *caps,
                      struct ib_uverbs_create_qp_resp *reply_p)
{
    const struct mlx5_ib_create_qp *uin  = cmd->uin;
    struct mlx5_ib_create_qp_resp ureply = {0};
    mlx5sim_srq_t *srq                   = NULL;
    unsigned xrc                         = mlx5sim_xrc_part(caps->qp_type);
    int is_target                        = xrc == MLX5SIM_XRC_TGT;
    unsigned type                        = (xrc != MLX5SIM_XRC_NONE) ?
                                           MLX5SIM_QPT_RC : caps->qp_type;
    mlx5sim_uuar_t uuar;
    mlx5sim_qp_obj_t *qp;
    int ret;

    switch (caps->qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        break;
    case IBV_QPT_RAW_PACKET:
        return mlx5sim_refuse(MLX5SIM_MISSING_RAW_PACKET);
    case IBV_QPT_DRIVER:
        ret = mlx5sim_dc_type(cmd, caps, &type);
        if (ret != 0) {
            return ret;
        }
        break;
    default:
        return -EOPNOTSUPP;
    }

    if (uin->flags & MLX5_QP_FLAG_SIGNATURE) {
        return mlx5sim_refuse(MLX5SIM_MISSING_SIGNATURE);
    }

    if ((uin->flags & ~MLX5SIM_QP_FLAGS_KNOWN) ||
        ((caps->qp_type != IBV_QPT_DRIVER) &&
         (uin->flags & MLX5SIM_QP_FLAGS_DC))) {
        return mlx5sim_refuse(MLX5SIM_MISSING_QP_OPTIONS);
    }

    /* the place of the domain is that of the PD */
    if (is_target && (mlx5sim_xrcd_get(cmd, pd_handle) == NULL)) {
        return -EINVAL;
    }

    if (xrc == MLX5SIM_XRC_INI) {
        recv_cq = send_cq;
    }

    if ((!is_target &&
         ((mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, pd_handle) == NULL) ||
          (mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_CQ, send_cq) == NULL) ||
          (mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_CQ, recv_cq) == NULL))) ||
        (uin->sq_wqe_count & (uin->sq_wqe_count - 1)) ||
        (uin->rq_wqe_count & (uin->rq_wqe_count - 1)) ||
        (uin->sq_wqe_count > 32768) || (uin->rq_wqe_count > 32768) ||
        (uin->rq_wqe_shift > 9) || (uin->db_addr & 7)) {
        return -EINVAL;
    }

    if (caps->is_srq && (type != MLX5SIM_QPT_DCI) &&
        (xrc == MLX5SIM_XRC_NONE)) {
        srq = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_SRQ, srq_handle);
        if ((srq == NULL) || (srq->xrcd != 0)) {
            return -EINVAL;
        }
    }

    ret = mlx5sim_qp_uuar_get(cmd, uin->flags, uin->bfreg_index,
                              (type != MLX5SIM_QPT_DCT) && !is_target, &uuar);
    if (ret != 0) {
        return ret;
    }

    qp = mlx5sim_qp_alloc(cmd, &uuar);
    if (qp == NULL) {
        ret = -errno;
        mlx5sim_qp_uuar_put(cmd->ctx, uuar.uuar_class, uuar.uuar);
        return ret;
    }

    qp->o.user_handle   = user_handle;
    qp->pd              = is_target ? 0 : pd_handle;
    qp->xrcd            = is_target ? pd_handle + 1 : 0;
    qp->send_cq         = is_target ? 0 : send_cq;
    qp->recv_cq         = is_target ? 0 : recv_cq;
    qp->srq             = (srq != NULL) ? srq_handle + 1 : 0;
    qp->db              = uin->db_addr;
    qp->rq              = uin->buf_addr;
    qp->sq              = uin->buf_addr +
                          ((uint64_t)uin->rq_wqe_count << uin->rq_wqe_shift);

    qp->qp.qpn          = mlx5sim_qp_num(qp);
    qp->qp.uidx         = uin->uidx;
    qp->qp.type         = type;
    qp->qp.no_masked    = !mlx5sim_instance_config()->masked_atomics;
    qp->qp.state        = MLX5SIM_QPS_RESET;
    qp->qp.xrc          = xrc;
    qp->qp.pdn          = qp->pd;
    qp->qp.sq_wqe_cnt   = is_target ? 0 : uin->sq_wqe_count;
    qp->qp.rq_wqe_cnt   = ((srq != NULL) || (xrc != MLX5SIM_XRC_NONE)) ?
                          0 : uin->rq_wqe_count;
    qp->qp.rq_wqe_shift = uin->rq_wqe_shift;
    qp->qp.srqn         = (srq != NULL) ? srq->srqn : 0;
    qp->qp.srq_pdn      = (srq != NULL) ? srq->pd : 0;
    qp->qp.is_roce      = mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE;
    qp->qp.pkey         = MLX5SIM_PKEY;
    qp->qp.scatter_cqe  = (uin->flags & MLX5_QP_FLAG_SCATTER_CQE) &&
                          (caps->qp_type != IBV_QPT_UD) && !is_target;
    /* kernel: configure_requester_scat_cqe() of drivers/infiniband/hw/mlx5/qp.c
     */
    qp->qp.scatter_req_cqe = (uin->flags & MLX5_QP_FLAG_SCATTER_CQE) &&
                             ((uin->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE) ||
                              caps->sq_sig_all) &&
                             (caps->qp_type == IBV_QPT_RC);
    qp->sq_sig_all      = caps->sq_sig_all;
    if (caps->qp_type == IBV_QPT_DRIVER) {
        mlx5sim_dc_init(cmd, qp);
    }
    mlx5sim_qp_set_recv_fault(qp);
    mlx5sim_qp_set_prefetch(qp);
    mlx5sim_qp_refs_add(qp, 1);
    atomic_thread_fence(memory_order_release);
    qp->o.ready         = 1;

    reply_p->qp_handle       = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    reply_p->qpn             = (type == MLX5SIM_QPT_DCT) ? 0 : qp->qp.qpn;
    reply_p->max_send_wr     = caps->max_send_wr;
    reply_p->max_recv_wr     = caps->max_recv_wr;
    reply_p->max_send_sge    = caps->max_send_sge;
    reply_p->max_recv_sge    = caps->max_recv_sge;
    reply_p->max_inline_data = caps->max_inline_data;
    ureply.bfreg_index       = uuar.reply;
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
    return 0;
}

static int mlx5sim_cmd_create_qp(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_create_qp *in  = cmd->in;
    struct ib_uverbs_create_qp_resp reply = {0};
    int ret;

    ret = mlx5sim_qp_create(cmd, in->user_handle, in->pd_handle,
                            in->send_cq_handle, in->recv_cq_handle,
                            in->srq_handle, in, &reply);
    if (ret == 0) {
        mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    }
    return ret;
}

static int mlx5sim_cmd_ex_create_qp(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_ex_create_qp *in  = cmd->in;
    struct ib_uverbs_ex_create_qp_resp reply = {.comp_mask = 0};
    struct ib_uverbs_create_qp caps          = {0};
    int ret;

    if ((in->comp_mask != 0) || (in->create_flags != 0)) {
        return mlx5sim_refuse(MLX5SIM_MISSING_QP_OPTIONS);
    }

    caps.max_send_wr     = in->max_send_wr;
    caps.max_recv_wr     = in->max_recv_wr;
    caps.max_send_sge    = in->max_send_sge;
    caps.max_recv_sge    = in->max_recv_sge;
    caps.max_inline_data = in->max_inline_data;
    caps.sq_sig_all      = in->sq_sig_all;
    caps.qp_type         = in->qp_type;
    caps.is_srq          = in->is_srq;
    ret = mlx5sim_qp_create(cmd, in->user_handle, in->pd_handle,
                            in->send_cq_handle, in->recv_cq_handle,
                            in->srq_handle, &caps, &reply.base);
    if (ret == 0) {
        reply.response_length = sizeof(reply);
        mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    }
    return ret;
}

static void mlx5sim_qp_set_port(mlx5sim_qp_obj_t *qp, unsigned port)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();

    qp->qp.port      = port;
    qp->qp.lid       = mlx5sim_port_lid(config, qp->dev, port);
    qp->qp.path_mask = (1u << mlx5sim_port_lmc(config)) - 1;
    (void)mlx5sim_port_gid(config, qp->dev, port, 0, qp->qp.sgid);
}

/* LAG: the kernel spreads the queue pairs of a context over the ports (mlx5_ib,
 * get_tx_affinity_rr()) */
static void mlx5sim_qp_set_lag_port(mlx5sim_qp_obj_t *qp)
{
    unsigned ports     = mlx5sim_lag_ports(mlx5sim_instance_config());
    mlx5sim_ctx_t *ctx = mlx5sim_obj_at(MLX5SIM_OBJ_CTX, qp->o.ctx);

    qp->lag_port = (ports > 0) ?
                   ((atomic_fetch_add(&ctx->lag_next, 1) + 1) % ports + 1) : 0;
}

static int mlx5sim_qp_set_av(mlx5sim_qp_obj_t *qp,
                             const struct ib_uverbs_qp_dest *dest)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int ret;

    qp->qp.dlid       = dest->dlid;
    qp->qp.has_grh    = dest->is_global;
    qp->qp.sl         = dest->sl;
    qp->qp.path_bits  = dest->src_path_bits;
    qp->static_rate   = dest->static_rate;
    qp->sgid_index    = dest->sgid_index;
    qp->hop_limit     = dest->hop_limit;
    qp->traffic_class = dest->traffic_class;
    qp->flow_label    = dest->flow_label;
    qp->udp_sport     = 0;
    memcpy(qp->qp.dgid, dest->dgid, sizeof(qp->qp.dgid));
    if (qp->qp.is_roce && !dest->is_global) {
        return -EINVAL;
    }

    if (dest->is_global &&
        ((dest->sgid_index >= mlx5sim_gid_table_len(config, qp->dev,
                                                    qp->qp.port)) ||
         !mlx5sim_port_gid(config, qp->dev, qp->qp.port, dest->sgid_index,
                           qp->qp.sgid))) {
        return -EINVAL;
    }

    if (dest->is_global && mlx5sim_gid_is_bad(dest->sgid_index)) {
        return -ENODEV;
    }

    ret = mlx5sim_net_connect(qp);
    if ((ret == 0) && qp->is_remote && (qp->qp.xrc != MLX5SIM_XRC_NONE)) {
        qp->is_remote = 0;
        ret           = mlx5sim_refuse(MLX5SIM_MISSING_XRC);
    }
    return ret;
}

static void mlx5sim_qp_reset(mlx5sim_qp_obj_t *qp)
{
    (void)mlx5sim_lock(&qp->rung_lock);
    qp->rung           = 0;
    qp->is_rung        = 0;
    qp->is_remote      = 0;
    mlx5sim_unlock(&qp->rung_lock);
    mlx5sim_sched_unbind(qp);
    qp->sq_head        = 0;
    qp->rq_head        = 0;
    qp->ahead.num      = 0;
    qp->retries        = 0;
    qp->retry_at       = 0;
    qp->retry_since    = 0;
    qp->gone_since     = 0;
    qp->reported       = 0;
    mlx5sim_rq_check_flushed(qp);
    mlx5sim_rq_lose(qp);
    qp->claim.active   = 0;
    qp->claim.held     = 0;
    qp->last_wqe_event = 0;
    qp->in_message     = 0;
    qp->nak_sent       = 0;
    qp->accepted       = 0;
    qp->num_saved      = 0;
    qp->flush_at       = 0;
    qp->qp.dest_qpn    = 0;
    qp->qp.num_errored = 0;
    qp->wire_una       = 0;
    qp->wire_sent      = 0;
    qp->wire_claim.active = 0;
    memset(&qp->message, 0, sizeof(qp->message));
    memset(qp->saved, 0, sizeof(qp->saved));
    ++qp->resets;
    qp->drain_sigerr = 0;
    qp->has_sigerr   = 0;
}

static int mlx5sim_qp_apply(mlx5sim_qp_obj_t *qp,
                            const struct ib_uverbs_modify_qp *in,
                            unsigned next)
{
    uint32_t mask = in->attr_mask;
    int ret;

    if (mask & IBV_QP_PORT) {
        if ((in->port_num == 0) ||
            (in->port_num > mlx5sim_instance_config()->ports)) {
            return -EINVAL;
        }
        mlx5sim_qp_set_port(qp, in->port_num);
        mlx5sim_qp_set_lag_port(qp);
    }

    if (mask & IBV_QP_PKEY_INDEX) {
        if (in->pkey_index >=
            mlx5sim_pkey_table_len(mlx5sim_instance_config())) {
            return -EINVAL;
        }
        qp->pkey_index = in->pkey_index;
    }

    if (mask & IBV_QP_AV) {
        ret = mlx5sim_qp_set_av(qp, &in->dest);
        if (ret != 0) {
            return ret;
        }
    }

    if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) && (in->max_rd_atomic > 16)) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && (in->max_dest_rd_atomic > 16)) ||
        ((mask & IBV_QP_PATH_MTU) && ((in->path_mtu < IBV_MTU_256) ||
                                      (in->path_mtu > IBV_MTU_4096))) ||
        ((mask & IBV_QP_RETRY_CNT) && (in->retry_cnt > 7)) ||
        ((mask & IBV_QP_RNR_RETRY) && (in->rnr_retry > 7)) ||
        ((mask & IBV_QP_TIMEOUT) && (in->timeout > 31)) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) && (in->min_rnr_timer > 31))) {
        return -EINVAL;
    }

    if (mask & IBV_QP_QKEY) {
        qp->qp.qkey = in->qkey;
    }
    if (mask & IBV_QP_ACCESS_FLAGS) {
        qp->qp.access = in->qp_access_flags;
    }
    if (mask & IBV_QP_PATH_MTU) {
        qp->qp.path_mtu = in->path_mtu;
    }
    if (mask & IBV_QP_DEST_QPN) {
        qp->qp.dest_qpn = in->dest_qp_num & 0xffffff;
    }
    if (mask & IBV_QP_RQ_PSN) {
        qp->rq_psn  = in->rq_psn & 0xffffff;
        qp->qp.epsn = qp->rq_psn;
    }
    if (mask & IBV_QP_SQ_PSN) {
        qp->sq_psn   = in->sq_psn & 0xffffff;
        qp->qp.psn   = qp->sq_psn;
        qp->messages = 0;
    }
    if (mask & IBV_QP_TIMEOUT) {
        qp->qp.timeout = in->timeout;
    }
    if (mask & IBV_QP_RETRY_CNT) {
        qp->qp.retry_cnt = in->retry_cnt;
    }
    if (mask & IBV_QP_RNR_RETRY) {
        qp->qp.rnr_retry = in->rnr_retry;
    }
    if (mask & IBV_QP_MIN_RNR_TIMER) {
        qp->qp.min_rnr_timer = in->min_rnr_timer;
    }
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
        qp->qp.max_rd_atomic = in->max_rd_atomic;
    }
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
        qp->qp.max_dest_rd_atomic = in->max_dest_rd_atomic;
    }

    if (next == MLX5SIM_QPS_RESET) {
        mlx5sim_qp_settle(qp);
        mlx5sim_qp_reset(qp);
    }

    qp->qp.state = next;
    return 0;
}

/* A transition that is to fail on request */
static int mlx5sim_qp_modify_inject(const struct ib_uverbs_modify_qp *in)
{
    switch ((in->attr_mask & IBV_QP_STATE) ? in->qp_state : IBV_QPS_UNKNOWN) {
    case IBV_QPS_INIT:
        return mlx5sim_inject(MLX5SIM_FAULT_MODIFY_QP_INIT);
    case IBV_QPS_RTR:
        return mlx5sim_inject(MLX5SIM_FAULT_MODIFY_QP_RTR);
    case IBV_QPS_RTS:
        return mlx5sim_inject(MLX5SIM_FAULT_MODIFY_QP_RTS);
    default:
        return 0;
    }
}

/* What the other part of an XRC connection is for, programs give as well, and
 * Linux drops it (modify_qp_mask() of drivers/infiniband/core/uverbs_cmd.c) */
static uint32_t mlx5sim_qp_modify_mask(const mlx5sim_qp_obj_t *qp,
                                       uint32_t mask)
{
    switch (qp->qp.xrc) {
    case MLX5SIM_XRC_INI:
        return mask & ~(uint32_t)(IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER);
    case MLX5SIM_XRC_TGT:
        return mask & ~(uint32_t)(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY);
    default:
        return mask;
    }
}

/* kernel: __mlx5_ib_modify_qp(), mlx5_ib_modify_dct(). No options of ECE are
 * enabled, whatever is asked for: there are none. */
static void mlx5sim_qp_reply_modify(mlx5sim_cmd_t *cmd,
                                    const mlx5sim_qp_obj_t *qp)
{
    struct mlx5_ib_modify_qp_resp reply = {0};
    int is_target                       = qp->qp.type == MLX5SIM_QPT_DCT;

    if (is_target && (qp->qp.state != MLX5SIM_QPS_RTR)) {
        return;
    }

    reply.response_length = (cmd->uout_size < sizeof(reply)) ?
                            cmd->uout_size : sizeof(reply);
    reply.dctn            = is_target ? qp->qp.qpn : 0;
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &reply, sizeof(reply));
}

int mlx5sim_cmd_modify_qp(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_modify_qp *in = cmd->in;
    mlx5sim_qp_obj_t *qp                 = mlx5sim_qp_get(cmd, in->qp_handle);
    struct ib_uverbs_modify_qp kept;
    mlx5sim_qp_obj_t *peer;
    unsigned cur, next;
    mlx5sim_chk_t chk;
    int ret;

    if (qp == NULL) {
        return -EINVAL;
    }

    kept           = *in;
    kept.attr_mask = mlx5sim_qp_modify_mask(qp, in->attr_mask);
    in             = &kept;
    ret            = mlx5sim_qp_modify_inject(in);
    if (ret != 0) {
        return ret;
    }

    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_rq_lock(qp);

    cur  = (in->attr_mask & IBV_QP_CUR_STATE) ? in->cur_qp_state :
                                                qp->qp.state;
    next = (in->attr_mask & IBV_QP_STATE) ? in->qp_state : qp->qp.state;
    chk  = mlx5sim_qp_modify_check(mlx5sim_qp_modify_type(&qp->qp), cur, next,
                                   in->attr_mask);
    if (chk != MLX5SIM_CHK_OK) {
        mlx5sim_report_qp(chk, qp, -1, "modify from %s to %s with attributes "
                          "0x%x", mlx5sim_qp_state_name(cur),
                          mlx5sim_qp_state_name(next), in->attr_mask);
        ret = -EINVAL;
    } else {
        ret = mlx5sim_qp_apply(qp, in, next);
    }

    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_unlock(&qp->sq_lock);

    /* the peer may be waiting for this */
    if ((ret == 0) && (next == MLX5SIM_QPS_RTR) && (cur != next) &&
        (qp->qp.type == MLX5SIM_QPT_RC)) {
        peer = mlx5sim_qp_by_num(qp->qp.dest_qpn);
        if ((peer != NULL) && (atomic_load(&peer->retry_at) != 0)) {
            mlx5sim_qp_kick(peer);
        }
    }

    if (ret == 0) {
        mlx5sim_qp_reply_modify(cmd, qp);
    }

    if (qp->qp.type == MLX5SIM_QPT_DCT) {
        return ret;
    }

    /* what was posted before is flushed, or goes out now that it can */
    if ((ret == 0) && (next == MLX5SIM_QPS_ERR)) {
        mlx5sim_qp_flush(qp);
    } else if ((ret == 0) && (next == MLX5SIM_QPS_RTS)) {
        mlx5sim_sq_run(qp);
    }

    return ret;
}

static int mlx5sim_cmd_query_qp(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_query_qp *in  = cmd->in;
    struct ib_uverbs_query_qp_resp reply = {.qkey = 0};
    mlx5sim_qp_obj_t *qp                 = mlx5sim_qp_get(cmd, in->qp_handle);

    if (qp == NULL) {
        return -EINVAL;
    }

    if (qp->qp.type == MLX5SIM_QPT_DCT) {
        return mlx5sim_dc_query(cmd, qp);
    }

    (void)mlx5sim_lock(&qp->sq_lock);
    mlx5sim_rq_lock(qp);
    memcpy(reply.dest.dgid, qp->qp.dgid, sizeof(reply.dest.dgid));
    reply.dest.flow_label    = qp->flow_label;
    reply.dest.dlid          = qp->qp.dlid;
    reply.dest.sgid_index    = qp->sgid_index;
    reply.dest.hop_limit     = qp->hop_limit;
    reply.dest.traffic_class = qp->traffic_class;
    reply.dest.sl            = qp->qp.sl;
    reply.dest.src_path_bits = qp->qp.path_bits;
    reply.dest.static_rate   = qp->static_rate;
    reply.dest.is_global     = qp->qp.has_grh;
    reply.dest.port_num      = qp->qp.port;
    /* mlx5_ib_query_qp() of the kernel: the receive queue as it was made, and
     * nothing of the send queue, which libmlx5 knows */
    reply.max_recv_wr        = qp->qp.rq_wqe_cnt;
    reply.max_recv_sge       = (qp->qp.rq_wqe_cnt > 0) ?
                               (1u << qp->qp.rq_wqe_shift) / MLX5SIM_RQ_SEG : 0;
    reply.qkey               = qp->qp.qkey;
    reply.rq_psn             = qp->rq_psn;
    reply.sq_psn             = qp->sq_psn;
    reply.dest_qp_num        = qp->qp.dest_qpn;
    reply.qp_access_flags    = qp->qp.access;
    reply.pkey_index         = qp->pkey_index;
    reply.qp_state           = qp->qp.state;
    reply.cur_qp_state       = qp->qp.state;
    reply.path_mtu           = qp->qp.path_mtu;
    reply.path_mig_state     = IBV_MIG_MIGRATED;
    reply.max_rd_atomic      = qp->qp.max_rd_atomic;
    reply.max_dest_rd_atomic = qp->qp.max_dest_rd_atomic;
    reply.min_rnr_timer      = qp->qp.min_rnr_timer;
    reply.port_num           = qp->qp.port;
    reply.timeout            = qp->qp.timeout;
    reply.retry_cnt          = qp->qp.retry_cnt;
    reply.rnr_retry          = qp->qp.rnr_retry;
    reply.sq_sig_all         = qp->sq_sig_all;
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_unlock(&qp->sq_lock);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

int mlx5sim_cmd_destroy_qp(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_destroy_qp *in  = cmd->in;
    struct ib_uverbs_destroy_qp_resp reply = {0};
    mlx5sim_qp_obj_t *qp                   = mlx5sim_qp_get(cmd, in->qp_handle);

    if (qp == NULL) {
        return -ENOENT;
    }

    mlx5sim_helper_remove_qp(qp);
    mlx5sim_rq_lock(qp);
    mlx5sim_rq_check_flushed(qp);
    mlx5sim_unlock(&qp->rq_lock);
    mlx5sim_qp_withdraw(qp);
    reply.events_reported = mlx5sim_async_reported(&qp->o,
                                                   offsetof(struct ibv_qp,
                                                            events_completed));
    mlx5sim_qp_refs_add(qp, -1);
    mlx5sim_sched_unbind(qp);
    mlx5sim_qp_uuar_put(cmd->ctx, qp->uuar_class, qp->uuar);
    mlx5sim_obj_free(MLX5SIM_OBJ_QP, qp);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

/* RoCE: libmlx5 asks the kernel for the destination's MAC address */
static int mlx5sim_cmd_create_ah(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_create_ah *in  = cmd->in;
    struct ib_uverbs_create_ah_resp reply = {0};
    struct mlx5_ib_create_ah_resp ureply  = {0};
    uint8_t gid[MLX5SIM_GID_LEN];
    mlx5sim_ah_t *ah;

    /* kernel: rdma_get_gid_attr() */
    if (!in->attr.is_global ||
        (in->attr.grh.sgid_index >=
         mlx5sim_gid_table_len(mlx5sim_instance_config(), cmd->ctx->dev,
                               in->attr.port_num))) {
        return -EINVAL;
    }

    /* The same, of an entry that is not in use */
    if (!mlx5sim_port_gid(mlx5sim_instance_config(), cmd->ctx->dev,
                          in->attr.port_num, in->attr.grh.sgid_index, gid)) {
        return -ENODATA;
    }

    if (mlx5sim_gid_is_bad(in->attr.grh.sgid_index)) {
        return -ENODEV;
    }

    ah = mlx5sim_obj_alloc(MLX5SIM_OBJ_AH, mlx5sim_cmd_ctx_index(cmd));
    if (ah == NULL) {
        return -errno;
    }

    ah->o.ready            = 1;
    reply.ah_handle        = mlx5sim_obj_index(MLX5SIM_OBJ_AH, ah);
    ureply.response_length = sizeof(ureply);
    mlx5sim_gid_mac(mlx5sim_instance_config(), in->attr.grh.dgid,
                    ureply.dmac);
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
    return 0;
}

static int mlx5sim_cmd_destroy_ah(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_destroy_ah *in = cmd->in;
    mlx5sim_ah_t *ah = mlx5sim_obj_mine(MLX5SIM_OBJ_AH, in->ah_handle,
                                        mlx5sim_cmd_ctx_index(cmd));

    if (ah == NULL) {
        return -ENOENT;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_AH, ah);
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_qp[] = {
    {IB_USER_VERBS_CMD_CREATE_QP, "CREATE_QP",
     sizeof(struct ib_uverbs_create_qp), 40,
     sizeof(struct ib_uverbs_create_qp_resp), 0, mlx5sim_cmd_create_qp,
     MLX5SIM_FAULT_QP},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP,
     "EX_CREATE_QP", sizeof(struct ib_uverbs_ex_create_qp), 40,
     sizeof(struct ib_uverbs_ex_create_qp_resp), 0, mlx5sim_cmd_ex_create_qp,
     MLX5SIM_FAULT_QP},
    {IB_USER_VERBS_CMD_MODIFY_QP, "MODIFY_QP",
     sizeof(struct ib_uverbs_modify_qp), 0, 0, 0, mlx5sim_cmd_modify_qp,
     MLX5SIM_FAULT_MODIFY_QP},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP,
     "EX_MODIFY_QP", sizeof(struct ib_uverbs_modify_qp), 0, 0, 0,
     mlx5sim_cmd_modify_qp,
     MLX5SIM_FAULT_MODIFY_QP},
    {IB_USER_VERBS_CMD_QUERY_QP, "QUERY_QP", sizeof(struct ib_uverbs_query_qp),
     0, sizeof(struct ib_uverbs_query_qp_resp), 0, mlx5sim_cmd_query_qp,
     MLX5SIM_FAULT_QUERY_QP},
    {IB_USER_VERBS_CMD_DESTROY_QP, "DESTROY_QP",
     sizeof(struct ib_uverbs_destroy_qp), 0,
     sizeof(struct ib_uverbs_destroy_qp_resp), 0, mlx5sim_cmd_destroy_qp,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_CREATE_AH, "CREATE_AH",
     sizeof(struct ib_uverbs_create_ah), 0,
     sizeof(struct ib_uverbs_create_ah_resp), 0, mlx5sim_cmd_create_ah,
     MLX5SIM_FAULT_AH},
    {IB_USER_VERBS_CMD_DESTROY_AH, "DESTROY_AH",
     sizeof(struct ib_uverbs_destroy_ah), 0, 0, 0, mlx5sim_cmd_destroy_ah,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
