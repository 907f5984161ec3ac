/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/remote.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/net/net.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/conn_int.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/place.h>

#include <infiniband/verbs.h>
#include <string.h>
#include <sys/random.h>

/* Messages in the order in which an id says them */
static const uint32_t mlx5sim_cm_order[] = {
    MLX5SIM_CM_TELL_REQ, MLX5SIM_CM_TELL_MRA, MLX5SIM_CM_TELL_REP,
    MLX5SIM_CM_TELL_RTU, MLX5SIM_CM_TELL_REJ, MLX5SIM_CM_TELL_DREQ,
    MLX5SIM_CM_TELL_DREP
};

#define MLX5SIM_CM_ORDER_LENGTH \
    (sizeof(mlx5sim_cm_order) / sizeof(mlx5sim_cm_order[0]))


void mlx5sim_cm_remote_gids(const mlx5sim_cm_id_t *id, uint8_t sgid_p[16],
                            uint8_t dgid_p[16])
{
    if (mlx5sim_cm_is_roce()) {
        memcpy(sgid_p, id->local.gid, sizeof(id->local.gid));
        memcpy(dgid_p, id->remote.gid, sizeof(id->remote.gid));
    } else {
        mlx5sim_cm_addr_gid(&id->src, sgid_p);
        mlx5sim_cm_addr_gid(&id->dst, dgid_p);
    }
}

/* The lower bits find the id, the others tell one from those that had its slot
 * before */
void mlx5sim_cm_remote_begin(mlx5sim_cm_id_t *id)
{
    uint32_t number = id->psn;

    id->is_remote = 1;
    (void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
    id->comm = (number * MLX5SIM_MAX_CM_IDS) |
               mlx5sim_obj_index(MLX5SIM_OBJ_CM_ID, id);
}

void mlx5sim_cm_remote_tell(mlx5sim_cm_id_t *id, uint32_t what)
{
    id->to_send |= what;
    mlx5sim_net_ring_cm();
}

void mlx5sim_cm_remote_reject(mlx5sim_cm_id_t *id, unsigned reason,
                              const void *data, size_t length)
{
    id->rej_reason = reason;
    id->rej_of     = (id->state == MLX5SIM_CM_REQ_RCVD) ?
                     MLX5SIM_CM_MAD_OF_REQ :
                     (id->state == MLX5SIM_CM_REP_RCVD) ?
                     MLX5SIM_CM_MAD_OF_REP : MLX5SIM_CM_MAD_OF_OTHER;
    memset(id->mine.data, 0, sizeof(id->mine.data));
    if (length > 0) {
        memcpy(id->mine.data, data, length);
    }

    /* none that its data were of, either */
    id->to_send = 0;
    if (!mlx5sim_cm_is_ud(id) || !id->is_active) {
        mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_REJ);
    }
}

/* What cm_destroy_id() of cm.c tells in each state */
static void mlx5sim_cm_remote_farewell(mlx5sim_cm_id_t *id)
{
    switch (id->state) {
    case MLX5SIM_CM_REQ_SENT:
        mlx5sim_cm_remote_reject(id, MLX5SIM_CM_REJ_TIMEOUT, NULL, 0);
        mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
        break;
    case MLX5SIM_CM_REQ_RCVD:
    case MLX5SIM_CM_REP_SENT:
    case MLX5SIM_CM_REP_RCVD:
        mlx5sim_cm_remote_reject(id, MLX5SIM_CM_REJ_CONSUMER_DEFINED, NULL, 0);
        mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
        break;
    case MLX5SIM_CM_ESTABLISHED:
        if (mlx5sim_cm_is_ud(id)) {
            mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
        } else {
            (void)mlx5sim_cm_disconnect(id);
        }
        break;
    case MLX5SIM_CM_DREQ_RCVD:
        (void)mlx5sim_cm_disconnect(id);
        break;
    default:
        break;
    }
}

int mlx5sim_cm_remote_leave(mlx5sim_cm_id_t *id)
{
    uint32_t wire_tag;

    mlx5sim_cm_remote_farewell(id);
    if ((id->to_send == 0) && (id->state != MLX5SIM_CM_DREQ_SENT) &&
        (id->state != MLX5SIM_CM_TIMEWAIT)) {
        return 0;
    }

    /* who is reaped does not get it, as nobody would free it */
    (void)mlx5sim_lock(&mlx5sim_store->reap_lock);
    wire_tag = mlx5sim_net_server();
    if (wire_tag != 0) {
        id->chan     = 0;
        id->listener = (mlx5sim_cm_ref_t){0, 0};
        mlx5sim_cm_port_free(id);
        atomic_store(&id->o.owner, wire_tag);
    }
    mlx5sim_unlock(&mlx5sim_store->reap_lock);
    return wire_tag != 0;
}

static void mlx5sim_cm_remote_param(const mlx5sim_cm_id_t *id,
                                    mlx5sim_cm_mad_t *mad_p)
{
    const mlx5sim_cm_param_t *mine = &id->mine;

    mad_p->guid                = mlx5sim_node_guid(mlx5sim_instance_config(),
                                                   id->local.dev);
    mad_p->psn                 = id->psn;
    mad_p->responder_resources = mine->responder_resources;
    mad_p->initiator_depth     = mine->initiator_depth;
    mad_p->flow_control        = mine->flow_control;
    mad_p->retry_count         = mine->retry_count;
    mad_p->rnr_retry_count     = mine->rnr_retry_count;
    mad_p->srq                 = mine->srq;
}

/* Addresses in front of the private data: cma_format_hdr() */
static void mlx5sim_cm_remote_ip(const mlx5sim_cm_id_t *id, uint8_t *data_p)
{
    mlx5sim_cm_mad_ip_t ip = {
        .is_ipv6 = id->src.sa.sa_family == AF_INET6,
        .port    = mlx5sim_cm_addr_port(&id->src)
    };

    if (ip.is_ipv6) {
        memcpy(ip.src, &id->src.in6.sin6_addr, 16);
        memcpy(ip.dst, &id->dst.in6.sin6_addr, 16);
    } else {
        memcpy(ip.src, &id->src.in.sin_addr, 4);
        memcpy(ip.dst, &id->dst.in.sin_addr, 4);
    }
    mlx5sim_cm_mad_put_ip(&ip, data_p);
}

/* cm_format_req(), cma_connect_ib() */
static void mlx5sim_cm_remote_req(const mlx5sim_cm_id_t *id,
                                  mlx5sim_cm_mad_t *mad_p)
{
    mad_p->attr             = mlx5sim_cm_is_ud(id) ? MLX5SIM_CM_MAD_SIDR_REQ :
                                                     MLX5SIM_CM_MAD_REQ;
    mad_p->service          = ((uint64_t)id->ps << 16) |
                              mlx5sim_cm_addr_port(&id->dst);
    mad_p->pkey             = MLX5SIM_PKEY;
    mad_p->response_timeout = MLX5SIM_CM_RESPONSE_TIMEOUT;
    mad_p->max_retries      = MLX5SIM_CM_RETRIES;
    mad_p->mtu              = id->local.mtu;
    mad_p->rate             = IBV_RATE_100_GBPS;
    mad_p->tclass           = id->tos;
    mad_p->hop_limit        = MLX5SIM_CM_HOP_LIMIT;
    mad_p->ack_timeout      = mlx5sim_cm_request_timeout(id);
    mad_p->slid             = mlx5sim_cm_is_roce() ?
                              MLX5SIM_CM_MAD_NO_LID : id->local.lid;
    mad_p->dlid             = mlx5sim_cm_is_roce() ?
                              MLX5SIM_CM_MAD_NO_LID : id->remote.lid;
    mlx5sim_cm_remote_param(id, mad_p);
    memcpy(mad_p->sgid, id->local.gid, sizeof(mad_p->sgid));
    memcpy(mad_p->dgid, id->remote.gid, sizeof(mad_p->dgid));
    mlx5sim_cm_remote_ip(id, mad_p->data);
    memcpy(mad_p->data + MLX5SIM_CM_MAD_IP_LENGTH, id->mine.data,
           mlx5sim_cm_request_size(id));
}

static void mlx5sim_cm_remote_sidr_rep(const mlx5sim_cm_id_t *id,
                                       unsigned status,
                                       mlx5sim_cm_mad_t *mad_p)
{
    mad_p->attr    = MLX5SIM_CM_MAD_SIDR_REP;
    mad_p->reason  = status;
    mad_p->service = ((uint64_t)id->ps << 16) | mlx5sim_cm_addr_port(&id->src);
    mad_p->qkey    = id->mine.qkey;
}

/* Make a message of an id */
static void mlx5sim_cm_remote_mad(const mlx5sim_cm_id_t *id, uint32_t what,
                                  mlx5sim_cm_mad_t *mad_p)
{
    int is_request = (what == MLX5SIM_CM_TELL_REQ) ||
                     (what == MLX5SIM_CM_TELL_DREQ);

    memset(mad_p, 0, sizeof(*mad_p));
    mad_p->local_comm  = id->comm;
    mad_p->remote_comm = id->peer_comm;
    mad_p->qpn         = id->mine.qp_num;
    mad_p->tid         = is_request ? (((uint64_t)id->comm << 32) | what) :
                                      id->tid;
    if (what != MLX5SIM_CM_TELL_REQ) {
        memcpy(mad_p->data, id->mine.data, MLX5SIM_CM_DATA_REP);
    }

    switch (what) {
    case MLX5SIM_CM_TELL_REQ:
        mlx5sim_cm_remote_req(id, mad_p);
        return;
    case MLX5SIM_CM_TELL_REP:
        if (mlx5sim_cm_is_ud(id)) {
            mlx5sim_cm_remote_sidr_rep(id, MLX5SIM_CM_SIDR_SUCCESS, mad_p);
            return;
        }
        mad_p->attr      = MLX5SIM_CM_MAD_REP;
        mad_p->ack_delay = MLX5SIM_CM_PACKET_LIFETIME; /* the device's */
        mlx5sim_cm_remote_param(id, mad_p);
        return;
    case MLX5SIM_CM_TELL_REJ:
        if (mlx5sim_cm_is_ud(id)) {
            mlx5sim_cm_remote_sidr_rep(id, MLX5SIM_CM_SIDR_REJECT, mad_p);
            return;
        }
        mad_p->attr   = MLX5SIM_CM_MAD_REJ;
        mad_p->reason = id->rej_reason;
        mad_p->of     = id->rej_of;
        if (id->rej_reason == MLX5SIM_CM_REJ_TIMEOUT) {
            /* Who has had no answer does not know the other's id, which is
             * found by this: cm_acquire_rejected_id() */
            mad_p->guid        = mlx5sim_node_guid(mlx5sim_instance_config(),
                                                   id->local.dev);
            mad_p->info_length = sizeof(mad_p->guid);
        }
        return;
    default:
        break;
    }

    memset(mad_p->data, 0, sizeof(mad_p->data));
    switch (what) {
    case MLX5SIM_CM_TELL_MRA:
        mad_p->attr            = MLX5SIM_CM_MAD_MRA;
        mad_p->of              = MLX5SIM_CM_MAD_OF_REQ;
        mad_p->service_timeout = MLX5SIM_CM_SERVICE_TIMEOUT;
        break;
    case MLX5SIM_CM_TELL_RTU:
        mad_p->attr = MLX5SIM_CM_MAD_RTU;
        break;
    case MLX5SIM_CM_TELL_DREQ:
        mad_p->attr = MLX5SIM_CM_MAD_DREQ;
        mad_p->qpn  = id->theirs.qp_num;
        break;
    default:
        mad_p->attr = MLX5SIM_CM_MAD_DREP;
        break;
    }
}

static void mlx5sim_cm_remote_send(mlx5sim_cm_id_t *id, mlx5sim_cm_send_t send)
{
    mlx5sim_cm_way_t way = {
        .dev    = id->local.dev,
        .port   = id->local.port,
        .tclass = id->tos
    };
    uint8_t bytes[MLX5SIM_CM_MAD_LENGTH];
    mlx5sim_cm_mad_t mad;
    unsigned i;

    mlx5sim_cm_remote_gids(id, way.sgid, way.dgid);
    for (i = 0; i < MLX5SIM_CM_ORDER_LENGTH; ++i) {
        if (id->to_send & mlx5sim_cm_order[i]) {
            mlx5sim_cm_remote_mad(id, mlx5sim_cm_order[i], &mad);
            mlx5sim_cm_mad_encode(&mad, bytes);
            send(&way, bytes);
        }
    }
    id->to_send = 0;
}

/* What the peer has not answered, 0: nothing */
static uint32_t mlx5sim_cm_remote_unanswered(const mlx5sim_cm_id_t *id)
{
    switch (id->state) {
    case MLX5SIM_CM_REQ_SENT:
        return MLX5SIM_CM_TELL_REQ;
    case MLX5SIM_CM_REP_SENT:
        return MLX5SIM_CM_TELL_REP;
    case MLX5SIM_CM_DREQ_SENT:
        return MLX5SIM_CM_TELL_DREQ;
    default:
        return 0;
    }
}

static void mlx5sim_cm_remote_repeat(mlx5sim_cm_id_t *id, uint64_t now)
{
    if (id->state == MLX5SIM_CM_TIMEWAIT) {
        mlx5sim_cm_end(id);
        return;
    }

    id->to_send |= mlx5sim_cm_remote_unanswered(id);
    id->due      = (++id->tries < MLX5SIM_CM_RETRIES) ? now + id->interval : 0;
}

/* Whether mlx5sim-wire has the id. It ends what nobody else waits for. */
static int mlx5sim_cm_remote_is_left(mlx5sim_cm_id_t *id, uint64_t now)
{
    if (atomic_load(&id->o.owner) != mlx5sim_self_tag) {
        return 0;
    }

    if ((id->chan != 0) && (mlx5sim_cm_remote_leave(id) == 0)) {
        id->state = MLX5SIM_CM_CLOSED; /* its process was killed */
    }

    if ((id->deadline != 0) && (now >= id->deadline)) {
        mlx5sim_cm_expire(id);
    }
    return 1;
}

uint64_t mlx5sim_cm_remote_progress(uint64_t now, mlx5sim_cm_send_t send)
{
    uint64_t next = UINT64_MAX;
    mlx5sim_cm_id_t *id;
    uint32_t index;
    int is_left;

    atomic_store(&mlx5sim_store->cm_is_told, 0);
    for (index = 0; (id = mlx5sim_cm_id_next(index, 0)) != NULL;) {
        index = mlx5sim_cm_id_ref(id).index;
        if (!id->is_remote) {
            continue;
        }

        is_left = mlx5sim_cm_remote_is_left(id, now);
        if ((id->due != 0) && (now >= id->due)) {
            mlx5sim_cm_remote_repeat(id, now);
        }
        mlx5sim_cm_remote_send(id, send);
        if (is_left && (id->state == MLX5SIM_CM_CLOSED)) {
            mlx5sim_cm_id_free(id);
            continue;
        }

        if ((id->due != 0) && (id->due < next)) {
            next = id->due;
        }
        if (is_left && (id->deadline != 0) && (id->deadline < next)) {
            next = id->deadline;
        }
    }

    return next;
}
