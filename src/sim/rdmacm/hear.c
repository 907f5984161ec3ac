/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/hear.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/conn_int.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/event.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/place.h>

#include <rdma/rdma_user_cm.h>
#include <string.h>


/* An answer that no id gives */
static void mlx5sim_cm_hear_answer(const mlx5sim_cm_way_t *way,
                                   mlx5sim_cm_mad_t *answer,
                                   mlx5sim_cm_send_t send)
{
    uint8_t bytes[MLX5SIM_CM_MAD_LENGTH];

    mlx5sim_cm_mad_encode(answer, bytes);
    send(way, bytes);
}

/* Nobody will accept the request: cm_issue_rej(), cm_issue_sidr_rep() */
static void mlx5sim_cm_hear_refuse(const mlx5sim_cm_way_t *way,
                                   const mlx5sim_cm_mad_t *mad,
                                   unsigned reason, mlx5sim_cm_send_t send)
{
    int is_sidr             = mad->attr == MLX5SIM_CM_MAD_SIDR_REQ;
    mlx5sim_cm_mad_t answer = {
        .attr        = is_sidr ? MLX5SIM_CM_MAD_SIDR_REP : MLX5SIM_CM_MAD_REJ,
        .tid         = mad->tid,
        .remote_comm = mad->local_comm,
        .of          = MLX5SIM_CM_MAD_OF_REQ,
        .service     = mad->service,
        .reason      = !is_sidr ? reason :
                       (reason == MLX5SIM_CM_REJ_INVALID_SERVICE_ID) ?
                       MLX5SIM_CM_SIDR_UNSUPPORTED : MLX5SIM_CM_SIDR_REJECT
    };

    mlx5sim_cm_hear_answer(way, &answer, send);
}

static int mlx5sim_cm_hear_is_of(const mlx5sim_cm_id_t *id,
                                 const mlx5sim_cm_way_t *way)
{
    uint8_t sgid[16], dgid[16];

    if (!id->o.ready || (atomic_load(&id->o.owner) == 0) || !id->is_remote) {
        return 0;
    }

    mlx5sim_cm_remote_gids(id, sgid, dgid);
    return !memcmp(dgid, way->dgid, sizeof(dgid));
}

/* The id that a message names. @return NULL if there is none */
static mlx5sim_cm_id_t *mlx5sim_cm_hear_find(const mlx5sim_cm_way_t *way,
                                             uint32_t comm)
{
    mlx5sim_cm_id_t *id = mlx5sim_obj_find(MLX5SIM_OBJ_CM_ID,
                                           comm & (MLX5SIM_MAX_CM_IDS - 1));

    return ((id != NULL) && mlx5sim_cm_hear_is_of(id, way) &&
            (id->comm == comm)) ? id : NULL;
}

/* Whether who sends a message is the peer of the id that it names:
 * cm_acquire_id(), whose callers say of which messages the id has no peer
 * yet */
static int mlx5sim_cm_hear_is_peer(const mlx5sim_cm_id_t *id,
                                   const mlx5sim_cm_mad_t *mad)
{
    switch (mad->attr) {
    case MLX5SIM_CM_MAD_RTU:
    case MLX5SIM_CM_MAD_DREQ:
    case MLX5SIM_CM_MAD_DREP:
        return id->peer_comm == mad->local_comm;
    case MLX5SIM_CM_MAD_MRA:
    case MLX5SIM_CM_MAD_REJ:
        return id->peer_comm == (((mad->of == MLX5SIM_CM_MAD_OF_REQ) &&
                                  (mad->reason != MLX5SIM_CM_REJ_TIMEOUT)) ?
                                 0 : mad->local_comm);
    default:
        return 1; /* a reply may come again, which has its id compared */
    }
}

/* The id that has a peer. @return NULL if there is none */
static mlx5sim_cm_id_t *mlx5sim_cm_hear_find_peer(const mlx5sim_cm_way_t *way,
                                                  uint32_t peer_comm,
                                                  int is_ud)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_CM_ID].high);
    mlx5sim_cm_id_t *id;
    uint32_t index;

    for (index = 1; index < high; ++index) {
        id = mlx5sim_obj_at(MLX5SIM_OBJ_CM_ID, index);
        if (mlx5sim_cm_hear_is_of(id, way) && (id->peer_comm == peer_comm) &&
            (mlx5sim_cm_is_ud(id) == is_ud) && !id->is_active) {
            return id;
        }
    }
    return NULL;
}

/* A request came again: cm_dup_req_handler() */
static void mlx5sim_cm_hear_again(mlx5sim_cm_id_t *id,
                                  const mlx5sim_cm_way_t *way,
                                  const mlx5sim_cm_mad_t *mad,
                                  mlx5sim_cm_send_t send)
{
    switch (id->state) {
    case MLX5SIM_CM_REQ_RCVD:
        if (!mlx5sim_cm_is_ud(id)) {
            id->to_send |= MLX5SIM_CM_TELL_MRA;
        }
        break;
    case MLX5SIM_CM_REP_SENT:
        id->to_send |= MLX5SIM_CM_TELL_REP;
        break;
    case MLX5SIM_CM_ESTABLISHED:
        /* the answer to a datagram id may have been lost; the other side of a
         * connection has said that it has it */
        if (mlx5sim_cm_is_ud(id)) {
            id->to_send |= MLX5SIM_CM_TELL_REP;
        }
        break;
    case MLX5SIM_CM_CLOSED:
        if (id->rej_reason != 0) {
            id->to_send |= MLX5SIM_CM_TELL_REJ;
        }
        break;
    default:
        mlx5sim_cm_hear_refuse(way, mad, MLX5SIM_CM_REJ_STALE_CONN, send);
        break;
    }
}

/* Addresses of a request: cma_save_ip_info().
 * @return 0, or -1 if it has none */
static int mlx5sim_cm_hear_addrs(const mlx5sim_cm_mad_t *mad,
                                 mlx5sim_cm_addr_t *src_p,
                                 mlx5sim_cm_addr_t *dst_p)
{
    mlx5sim_cm_mad_ip_t ip;

    if (mlx5sim_cm_mad_get_ip(mad->data, &ip) != 0) {
        return -1;
    }

    memset(src_p, 0, sizeof(*src_p));
    memset(dst_p, 0, sizeof(*dst_p));
    src_p->sa.sa_family = ip.is_ipv6 ? AF_INET6 : AF_INET;
    dst_p->sa.sa_family = src_p->sa.sa_family;
    if (ip.is_ipv6) {
        memcpy(&src_p->in6.sin6_addr, ip.src, 16);
        memcpy(&dst_p->in6.sin6_addr, ip.dst, 16);
    } else {
        memcpy(&src_p->in.sin_addr, ip.src, 4);
        memcpy(&dst_p->in.sin_addr, ip.dst, 4);
    }
    mlx5sim_cm_addr_set_port(src_p, ip.port);
    mlx5sim_cm_addr_set_port(dst_p, mad->service & 0xffff);
    return 0;
}

/* Whether the path of a request is that of the packet. With InfiniBand the GID
 * here is not compared: the other side does not know it. */
static int mlx5sim_cm_hear_is_path(const mlx5sim_cm_way_t *way,
                                   const mlx5sim_cm_mad_t *mad,
                                   const mlx5sim_cm_addr_t *src,
                                   const mlx5sim_cm_place_t *place)
{
    if (mlx5sim_cm_is_roce()) {
        return !memcmp(mad->sgid, way->dgid, sizeof(mad->sgid)) &&
               !memcmp(mad->dgid, way->sgid, sizeof(mad->dgid));
    }

    return (mad->slid == mlx5sim_cm_addr_lid(src, place)) &&
           (mad->dlid == place->lid);
}

/* What is wrong with a request. @return 0, or the reason of its rejection */
static unsigned mlx5sim_cm_hear_check(const mlx5sim_cm_way_t *way,
                                      const mlx5sim_cm_mad_t *mad,
                                      const mlx5sim_cm_addr_t *src,
                                      const mlx5sim_cm_addr_t *dst,
                                      mlx5sim_cm_place_t *place_p)
{
    uint8_t gid[16];

    if (mlx5sim_cm_place_find(dst, place_p) != 0) {
        return MLX5SIM_CM_REJ_INVALID_SERVICE_ID;
    }

    /* addresses of the request are those of the packet */
    mlx5sim_cm_addr_gid(dst, gid);
    if (memcmp(gid, way->sgid, sizeof(gid)) || (place_p->dev != way->dev) ||
        (place_p->port != way->port)) {
        return MLX5SIM_CM_REJ_INVALID_GID;
    }

    /* by which it is answered */
    mlx5sim_cm_addr_gid(src, gid);
    if (!mlx5sim_cm_is_roce() && memcmp(gid, way->dgid, sizeof(gid))) {
        return MLX5SIM_CM_REJ_INVALID_GID;
    }

    if (mad->attr == MLX5SIM_CM_MAD_SIDR_REQ) {
        return 0;
    }

    if (!mlx5sim_cm_hear_is_path(way, mad, src, place_p)) {
        return MLX5SIM_CM_REJ_INVALID_GID;
    }

    if (mad->transport != 0) {
        return MLX5SIM_CM_REJ_INVALID_TRANSPORT;
    }

    return ((mad->mtu == 0) || (mad->mtu > place_p->mtu)) ?
           MLX5SIM_CM_REJ_INVALID_MTU : 0;
}

/* What the other side says of its queue pair */
static void mlx5sim_cm_hear_param(mlx5sim_cm_id_t *id,
                                  const mlx5sim_cm_mad_t *mad,
                                  const uint8_t *data, unsigned length)
{
    mlx5sim_cm_param_t *theirs = &id->theirs;

    memset(theirs, 0, sizeof(*theirs));
    theirs->qp_num              = mad->qpn;
    theirs->qkey                = mad->qkey;
    theirs->responder_resources = mad->responder_resources;
    theirs->initiator_depth     = mad->initiator_depth;
    theirs->flow_control        = mad->flow_control;
    theirs->retry_count         = mad->retry_count;
    theirs->rnr_retry_count     = mad->rnr_retry_count;
    theirs->srq                 = mad->srq;
    theirs->length              = length;
    id->peer_psn                = mad->psn;
    id->peer_comm               = mad->local_comm;
    memcpy(theirs->data, data, length);
}

/* cm_req_handler(), cm_sidr_req_handler() */
static void mlx5sim_cm_hear_req(const mlx5sim_cm_way_t *way,
                                const mlx5sim_cm_mad_t *mad,
                                mlx5sim_cm_send_t send)
{
    int is_ud         = mad->attr == MLX5SIM_CM_MAD_SIDR_REQ;
    uint16_t ps       = is_ud ? RDMA_PS_UDP : RDMA_PS_TCP;
    unsigned reason   = MLX5SIM_CM_REJ_INVALID_SERVICE_ID;
    mlx5sim_cm_id_t *listener, *request;
    mlx5sim_cm_addr_t src, dst;
    mlx5sim_cm_place_t place;

    request = mlx5sim_cm_hear_find_peer(way, mad->local_comm, is_ud);
    if (request != NULL) {
        mlx5sim_cm_hear_again(request, way, mad, send);
        return;
    }

    if (mad->service >> 16 == ps) {
        reason = (mlx5sim_cm_hear_addrs(mad, &src, &dst) != 0) ?
                 MLX5SIM_CM_REJ_UNSUPPORTED :
                 mlx5sim_cm_hear_check(way, mad, &src, &dst, &place);
    }

    listener = (reason == 0) ? mlx5sim_cm_find_listener(ps, &dst) : NULL;
    if (listener == NULL) {
        mlx5sim_cm_hear_refuse(way, mad, (reason != 0) ? reason :
                               MLX5SIM_CM_REJ_INVALID_SERVICE_ID, send);
        return;
    }

    request = mlx5sim_cm_request_new(listener);
    if (request == NULL) {
        return; /* the kernel drops it as well, and it is sent again */
    }

    mlx5sim_cm_remote_begin(request);
    request->src        = dst;
    request->dst        = src;
    request->local      = place;
    request->remote.mtu = is_ud ? place.mtu : mad->mtu;
    request->tos        = is_ud ? way->tclass : mad->tclass;
    /* the path's packet lifetime and 1: cm_init_av_by_path() of cm.c */
    request->timeout    = is_ud ? request->timeout :
                          mad->ack_timeout + (mad->ack_timeout == 0);
    request->tid        = mad->tid;
    request->remote.lid = mlx5sim_cm_addr_lid(&src, &place);
    memcpy(request->remote.gid,
           mlx5sim_cm_is_roce() ? way->dgid : mad->sgid,
           sizeof(request->remote.gid));
    mlx5sim_cm_hear_param(request, mad, mad->data + MLX5SIM_CM_MAD_IP_LENGTH,
                          mlx5sim_cm_request_size(request));
    (void)mlx5sim_cm_request_show(request, listener);
}

/* cm_rep_handler(), cm_dup_rep_handler() */
static void mlx5sim_cm_hear_rep(mlx5sim_cm_id_t *id,
                                const mlx5sim_cm_mad_t *mad)
{
    if ((id->state == MLX5SIM_CM_ESTABLISHED) && id->is_active &&
        (id->peer_comm == mad->local_comm)) {
        id->to_send |= MLX5SIM_CM_TELL_RTU;
    } else if (id->state == MLX5SIM_CM_REQ_SENT) {
        id->tid = mad->tid;
        mlx5sim_cm_hear_param(id, mad, mad->data, MLX5SIM_CM_DATA_REP);
        mlx5sim_cm_set_state(id, MLX5SIM_CM_REP_RCVD);
        (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_CONNECT_RESPONSE, 0);
    }
}

/* cm_sidr_rep_handler(), cma_sidr_rep_handler() */
static void mlx5sim_cm_hear_sidr_rep(mlx5sim_cm_id_t *id,
                                     const mlx5sim_cm_mad_t *mad)
{
    if (id->state != MLX5SIM_CM_REQ_SENT) {
        return;
    }

    if (mad->reason != MLX5SIM_CM_SIDR_SUCCESS) {
        mlx5sim_cm_refuse(id, (mad->reason == MLX5SIM_CM_SIDR_UNSUPPORTED) ?
                          MLX5SIM_CM_REJ_INVALID_SERVICE_ID :
                          MLX5SIM_CM_REJ_CONSUMER_DEFINED, mad->data,
                          MLX5SIM_CM_DATA_SIDR_REP);
        return;
    }

    mlx5sim_cm_hear_param(id, mad, mad->data, MLX5SIM_CM_DATA_SIDR_REP);
    mlx5sim_cm_set_state(id, MLX5SIM_CM_ESTABLISHED);
    (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ESTABLISHED, 0);
}

/* cm_rej_handler() */
static void mlx5sim_cm_hear_rej(mlx5sim_cm_id_t *id,
                                const mlx5sim_cm_mad_t *mad)
{
    switch (id->state) {
    case MLX5SIM_CM_REQ_SENT:
    case MLX5SIM_CM_REP_SENT:
    case MLX5SIM_CM_REP_RCVD:
    case MLX5SIM_CM_ESTABLISHED: /* it went before it had our RTU */
    case MLX5SIM_CM_DREQ_SENT:
        mlx5sim_cm_refuse(id, mad->reason, mad->data, MLX5SIM_CM_DATA_REJ);
        break;
    case MLX5SIM_CM_REQ_RCVD:
        /* who reads the request later sees it as it came */
        mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
        break;
    default:
        break;
    }
}

/* cm_mra_handler(): the message has come, and its answer takes time */
static void mlx5sim_cm_hear_mra(mlx5sim_cm_id_t *id,
                                const mlx5sim_cm_mad_t *mad)
{
    if (((mad->of == MLX5SIM_CM_MAD_OF_REQ) &&
         (id->state == MLX5SIM_CM_REQ_SENT)) ||
        ((mad->of == MLX5SIM_CM_MAD_OF_REP) &&
         (id->state == MLX5SIM_CM_REP_SENT))) {
        id->due = mlx5sim_cm_now() + MLX5SIM_CM_TIME_NS(mad->service_timeout);
    }
}

/* cm_rtu_handler() */
static void mlx5sim_cm_hear_rtu(mlx5sim_cm_id_t *id)
{
    if (id->state == MLX5SIM_CM_REP_SENT) {
        (void)mlx5sim_cm_notify(id);
    }
}

/* cm_dreq_handler(). One that no id is named by, or whose connection has ended,
 * is answered: cm_issue_drep(). */
static void mlx5sim_cm_hear_dreq(mlx5sim_cm_id_t *id,
                                 const mlx5sim_cm_way_t *way,
                                 const mlx5sim_cm_mad_t *mad,
                                 mlx5sim_cm_send_t send)
{
    mlx5sim_cm_mad_t answer = {
        .attr        = MLX5SIM_CM_MAD_DREP,
        .tid         = mad->tid,
        .local_comm  = mad->remote_comm,
        .remote_comm = mad->local_comm
    };

    switch ((id == NULL) ? MLX5SIM_CM_CLOSED : id->state) {
    case MLX5SIM_CM_REP_SENT:
    case MLX5SIM_CM_ESTABLISHED:
    case MLX5SIM_CM_DREQ_SENT: /* both at once */
        if ((mad->qpn == id->mine.qp_num) && !mlx5sim_cm_is_ud(id)) {
            id->tid = mad->tid;
            mlx5sim_cm_disconnected(id, MLX5SIM_CM_DREQ_RCVD, 0);
        }
        break;
    case MLX5SIM_CM_TIMEWAIT:
    case MLX5SIM_CM_CLOSED:
        mlx5sim_cm_hear_answer(way, &answer, send);
        break;
    default:
        break;
    }
}

/* cm_drep_handler() */
static void mlx5sim_cm_hear_drep(mlx5sim_cm_id_t *id)
{
    if (id->state == MLX5SIM_CM_DREQ_SENT) {
        mlx5sim_cm_disconnected(id, MLX5SIM_CM_CLOSED, 0);
    } else if (id->state == MLX5SIM_CM_DREQ_RCVD) {
        mlx5sim_cm_end(id);
    }
}

int mlx5sim_cm_hear(const mlx5sim_cm_way_t *way, const void *bytes,
                    unsigned length, mlx5sim_cm_send_t send)
{
    mlx5sim_cm_mad_t mad;
    mlx5sim_cm_id_t *id;
    int is_sidr;

    if (mlx5sim_cm_mad_decode(bytes, length, &mad) != 0) {
        return -1;
    }

    if ((mad.attr == MLX5SIM_CM_MAD_REQ) ||
        (mad.attr == MLX5SIM_CM_MAD_SIDR_REQ)) {
        mlx5sim_cm_hear_req(way, &mad, send);
        return 0;
    }

    id = mlx5sim_cm_hear_find(way, mad.remote_comm);
    if ((id != NULL) && !mlx5sim_cm_hear_is_peer(id, &mad)) {
        id = NULL;
    }
    if ((id == NULL) && (mad.attr == MLX5SIM_CM_MAD_REJ) &&
        (mad.reason == MLX5SIM_CM_REJ_TIMEOUT)) {
        /* who gives up has not heard of our id: cm_acquire_rejected_id() */
        id = mlx5sim_cm_hear_find_peer(way, mad.local_comm, 0);
    }

    is_sidr = mad.attr == MLX5SIM_CM_MAD_SIDR_REP;
    if ((id != NULL) && (mlx5sim_cm_is_ud(id) != is_sidr)) {
        return 0;
    }

    if (mad.attr == MLX5SIM_CM_MAD_DREQ) {
        mlx5sim_cm_hear_dreq(id, way, &mad, send);
    } else if (id == NULL) {
        return 0;
    }

    switch (mad.attr) {
    case MLX5SIM_CM_MAD_REP:
        mlx5sim_cm_hear_rep(id, &mad);
        break;
    case MLX5SIM_CM_MAD_SIDR_REP:
        mlx5sim_cm_hear_sidr_rep(id, &mad);
        break;
    case MLX5SIM_CM_MAD_REJ:
        mlx5sim_cm_hear_rej(id, &mad);
        break;
    case MLX5SIM_CM_MAD_MRA:
        mlx5sim_cm_hear_mra(id, &mad);
        break;
    case MLX5SIM_CM_MAD_RTU:
        mlx5sim_cm_hear_rtu(id);
        break;
    case MLX5SIM_CM_MAD_DREP:
        mlx5sim_cm_hear_drep(id);
        break;
    default:
        break;
    }
    return 0;
}
