/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/attr.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/place.h>

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

/* Rate of a path, enum ibv_rate: 100 Gb/s */
#define MLX5SIM_CM_RATE IBV_RATE_100_GBPS

/* "Exactly": IBTA, selectors of PathRecord */
#define MLX5SIM_CM_EXACTLY 2

_Static_assert(sizeof(struct ib_path_rec_data) == 72, "PathRecord");


static unsigned mlx5sim_cm_path_mtu(const mlx5sim_cm_id_t *id)
{
    return (id->local.mtu < id->remote.mtu) ? id->local.mtu : id->remote.mtu;
}

void mlx5sim_cm_attr_ah(const mlx5sim_cm_id_t *id,
                        struct ib_uverbs_ah_attr *attr_p)
{
    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->port_num = id->local.port;
    attr_p->dlid     = id->remote.lid;
    if (mlx5sim_cm_is_roce()) {
        attr_p->is_global         = 1;
        attr_p->grh.sgid_index    = id->local.gid_index;
        attr_p->grh.hop_limit     = MLX5SIM_CM_HOP_LIMIT;
        attr_p->grh.traffic_class = id->tos;
        memcpy(attr_p->grh.dgid, id->remote.gid, sizeof(attr_p->grh.dgid));
    }
}

/* Before there is a connection, and of datagrams: cma_ib_init_qp_attr() */
static int mlx5sim_cm_attr_early(const mlx5sim_cm_id_t *id,
                                 struct ib_uverbs_qp_attr *attr_p)
{
    if (id->local.port == 0) {
        return -EINVAL;
    }

    attr_p->port_num     = id->local.port;
    attr_p->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (id->qp_type == IBV_QPT_UD) {
        attr_p->qkey          = MLX5SIM_CM_QKEY;
        attr_p->qp_attr_mask |= IBV_QP_QKEY;
    } else {
        attr_p->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
    }
    return 0;
}

/* Reads and atomics that may be under way to the QP and from it. What one side
 * has of these, the other one has the other way round: cm.c, cm_req_handler()
 * and cm_rep_handler(). */
static void mlx5sim_cm_attr_depth(const mlx5sim_cm_id_t *id, uint8_t *in_p,
                                  uint8_t *out_p)
{
    int is_mine = id->is_active ? (id->state == MLX5SIM_CM_REQ_SENT) :
                                  (id->state != MLX5SIM_CM_REQ_RCVD);

    *in_p  = is_mine ? id->mine.responder_resources :
                       id->theirs.initiator_depth;
    *out_p = is_mine ? id->mine.initiator_depth :
                       id->theirs.responder_resources;
}

/* cm_init_qp_init_attr() */
static void mlx5sim_cm_attr_init(const mlx5sim_cm_id_t *id,
                                 struct ib_uverbs_qp_attr *attr_p)
{
    uint8_t in, out;

    mlx5sim_cm_attr_depth(id, &in, &out);
    attr_p->port_num        = id->local.port;
    attr_p->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (in > 0) {
        attr_p->qp_access_flags |= IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_ATOMIC;
    }
    attr_p->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
                           IBV_QP_PKEY_INDEX | IBV_QP_PORT;
}

/* cm_init_qp_rtr_attr() */
static void mlx5sim_cm_attr_rtr(const mlx5sim_cm_id_t *id,
                                struct ib_uverbs_qp_attr *attr_p)
{
    uint8_t out;

    mlx5sim_cm_attr_ah(id, &attr_p->ah_attr);
    attr_p->path_mtu     = mlx5sim_cm_path_mtu(id);
    attr_p->dest_qp_num  = id->theirs.qp_num;
    attr_p->rq_psn       = id->psn;
    attr_p->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (id->qp_type == IBV_QPT_RC) {
        mlx5sim_cm_attr_depth(id, &attr_p->max_dest_rd_atomic, &out);
        attr_p->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC |
                                IBV_QP_MIN_RNR_TIMER;
    }
}

/* cm_init_qp_rts_attr() */
static void mlx5sim_cm_attr_rts(const mlx5sim_cm_id_t *id,
                                struct ib_uverbs_qp_attr *attr_p)
{
    uint8_t in;

    attr_p->sq_psn       = id->peer_psn;
    attr_p->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (id->qp_type == IBV_QPT_RC) {
        mlx5sim_cm_attr_depth(id, &in, &attr_p->max_rd_atomic);
        attr_p->timeout       = id->timeout;
        attr_p->retry_cnt     = id->is_active ? id->mine.retry_count :
                                                id->theirs.retry_count;
        /* each side says how often the other one is to try */
        attr_p->rnr_retry     = id->theirs.rnr_retry_count;
        attr_p->qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
}

int mlx5sim_cm_attr_init_qp(const mlx5sim_cm_id_t *id, uint32_t state,
                            struct ib_uverbs_qp_attr *attr_p)
{
    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->qp_state = state;
    if ((id->qp_type == IBV_QPT_UD) || (id->state < MLX5SIM_CM_REQ_SENT)) {
        return mlx5sim_cm_attr_early(id, attr_p);
    }

    if (id->state > MLX5SIM_CM_ESTABLISHED) {
        return -EINVAL;
    }

    if (state == IBV_QPS_INIT) {
        mlx5sim_cm_attr_init(id, attr_p);
        return 0;
    }

    if ((id->state == MLX5SIM_CM_REQ_SENT) ||
        ((state != IBV_QPS_RTR) && (state != IBV_QPS_RTS))) {
        return -EINVAL;
    }

    if (state == IBV_QPS_RTR) {
        mlx5sim_cm_attr_rtr(id, attr_p);
    } else {
        mlx5sim_cm_attr_rts(id, attr_p);
    }
    return 0;
}

unsigned mlx5sim_cm_attr_num_paths(const mlx5sim_cm_id_t *id)
{
    return (id->state >= MLX5SIM_CM_ROUTE) && (id->state != MLX5SIM_CM_LISTEN);
}

void mlx5sim_cm_attr_user_path(const mlx5sim_cm_id_t *id,
                               struct ib_user_path_rec *path_p)
{
    memset(path_p, 0, sizeof(*path_p));
    memcpy(path_p->dgid, id->remote.gid, sizeof(path_p->dgid));
    memcpy(path_p->sgid, id->local.gid, sizeof(path_p->sgid));
    path_p->pkey = htons(MLX5SIM_PKEY);
    if (mlx5sim_cm_attr_num_paths(id) == 0) {
        return; /* only addresses are known: ucma_copy_iboe_route() */
    }

    path_p->dlid                      = htons(id->remote.lid);
    path_p->slid                      = htons(id->local.lid);
    path_p->reversible                = 1;
    path_p->mtu                       = mlx5sim_cm_path_mtu(id);
    path_p->hop_limit                 = mlx5sim_cm_is_roce() ?
                                        MLX5SIM_CM_HOP_LIMIT : 0;
    path_p->traffic_class             = id->tos;
    path_p->mtu_selector              = MLX5SIM_CM_EXACTLY;
    path_p->rate_selector             = MLX5SIM_CM_EXACTLY;
    path_p->rate                      = MLX5SIM_CM_RATE;
    path_p->packet_life_time_selector = MLX5SIM_CM_EXACTLY;
    path_p->packet_life_time          = MLX5SIM_CM_PACKET_LIFETIME;
}

void mlx5sim_cm_attr_path(const mlx5sim_cm_id_t *id,
                          struct ib_path_rec_data *path_p)
{
    struct ib_user_path_rec path;
    uint8_t *rec = (void*)path_p->path_rec;

    mlx5sim_cm_attr_user_path(id, &path);
    memset(path_p, 0, sizeof(*path_p));
    path_p->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
    /* service id: 8 bytes */
    memcpy(rec + 8, path.dgid, 16);
    memcpy(rec + 24, path.sgid, 16);
    memcpy(rec + 40, &path.dlid, 2);
    memcpy(rec + 42, &path.slid, 2);
    /* raw traffic, flow label: 24 bits */
    rec[47] = path.hop_limit;
    rec[48] = path.traffic_class;
    rec[49] = 0x80; /* reversible */
    memcpy(rec + 50, &path.pkey, 2);
    /* QoS class and SL: 2 bytes; then a selector in the two upper bits of
     * each */
    rec[54] = (path.mtu_selector << 6) | path.mtu;
    rec[55] = (path.rate_selector << 6) | path.rate;
    rec[56] = (path.packet_life_time_selector << 6) | path.packet_life_time;
}
