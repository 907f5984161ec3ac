/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/conn_int.h>
#include <sim/instance/instance.h>
#include <sim/net/net.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/event.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/place.h>
#include <sim/rdmacm/remote.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


int mlx5sim_cm_is_ud(const mlx5sim_cm_id_t *id)
{
    return id->qp_type == IBV_QPT_UD;
}

uint64_t mlx5sim_cm_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* From now on the peer has to answer */
static void mlx5sim_cm_set_deadline(mlx5sim_cm_id_t *id)
{
    uint64_t timeout = mlx5sim_instance_config()->cm_timeout * 1000000ull;
    uint64_t now     = mlx5sim_cm_now();

    id->deadline = now + timeout;
    id->interval = timeout / (MLX5SIM_CM_RETRIES + 1);
    id->due      = now + id->interval;
    id->tries    = 0;
}

void mlx5sim_cm_set_state(mlx5sim_cm_id_t *id, mlx5sim_cm_state_t state)
{
    id->state    = state;
    id->deadline = 0;
    id->due      = 0;
    if ((state == MLX5SIM_CM_REQ_SENT) || (state == MLX5SIM_CM_REP_SENT) ||
        (state == MLX5SIM_CM_DREQ_SENT)) {
        mlx5sim_cm_set_deadline(id);
    }
}

/* There will be no connection. Datagram ids are told otherwise:
 * cma_sidr_rep_handler(). */
void mlx5sim_cm_refuse(mlx5sim_cm_id_t *id, unsigned reason, const void *data,
                       size_t length)
{
    mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
    id->refusal.length = mlx5sim_cm_is_ud(id) ? MLX5SIM_CM_DATA_SIDR_REP :
                                                MLX5SIM_CM_DATA_REJ;
    if (length > 0) {
        memcpy(id->refusal.data, data, length);
    }

    if (mlx5sim_cm_is_ud(id)) {
        (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_UNREACHABLE,
                                    (reason ==
                                     MLX5SIM_CM_REJ_INVALID_SERVICE_ID) ?
                                    MLX5SIM_CM_SIDR_UNSUPPORTED :
                                    MLX5SIM_CM_SIDR_REJECT);
    } else {
        (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_REJECTED, reason);
    }
}

/* Between nodes, messages that are under way may still come */
void mlx5sim_cm_end(mlx5sim_cm_id_t *id)
{
    if (id->is_remote && (id->state != MLX5SIM_CM_TIMEWAIT)) {
        mlx5sim_cm_set_state(id, MLX5SIM_CM_TIMEWAIT);
        id->due = mlx5sim_cm_now() + MLX5SIM_CM_TIMEWAIT_NS;
        mlx5sim_net_ring_cm();
        return;
    }

    mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
    (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_TIMEWAIT_EXIT, 0);
}

void mlx5sim_cm_disconnected(mlx5sim_cm_id_t *id, mlx5sim_cm_state_t state,
                             int status)
{
    mlx5sim_cm_set_state(id, state);
    (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_DISCONNECTED, status);
    if (state == MLX5SIM_CM_CLOSED) {
        mlx5sim_cm_end(id);
    }
}

/* The other side has gone. When its process ends, the kernel destroys its ids,
 * so this is what cm_destroy_id() tells the other side. */
static void mlx5sim_cm_lost(mlx5sim_cm_id_t *id)
{
    switch (id->state) {
    case MLX5SIM_CM_REQ_SENT:
    case MLX5SIM_CM_REP_SENT:
    case MLX5SIM_CM_REP_RCVD:
        mlx5sim_cm_refuse(id, MLX5SIM_CM_REJ_CONSUMER_DEFINED, NULL, 0);
        break;
    case MLX5SIM_CM_REQ_RCVD:
        /* Who reads the request later sees it as it came */
        mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
        break;
    case MLX5SIM_CM_ESTABLISHED:
        if (mlx5sim_cm_is_ud(id)) {
            break; /* datagrams have no connection */
        }
        mlx5sim_cm_disconnected(id, MLX5SIM_CM_DREQ_RCVD, 0);
        break;
    case MLX5SIM_CM_DREQ_SENT:
        mlx5sim_cm_disconnected(id, MLX5SIM_CM_CLOSED, 0);
        break;
    default:
        break;
    }
}

/* One with that address before one with any */
mlx5sim_cm_id_t *mlx5sim_cm_find_listener(uint16_t ps,
                                          const mlx5sim_cm_addr_t *dst)
{
    uint16_t port          = mlx5sim_cm_addr_port(dst);
    mlx5sim_cm_id_t *other = NULL, *best = NULL;
    uint32_t index;

    for (index = 0;
         (other = mlx5sim_cm_port_next(index, ps, port)) != NULL;
         index = mlx5sim_cm_id_ref(other).index) {
        if (other->state != MLX5SIM_CM_LISTEN) {
            continue;
        }

        if (mlx5sim_cm_addr_is_same(&other->src, dst)) {
            return other;
        }

        if (mlx5sim_cm_addr_is_any(&other->src) &&
            ((other->src.sa.sa_family == dst->sa.sa_family) ||
             !other->af_only)) {
            best = other;
        }
    }

    return best;
}

mlx5sim_cm_id_t *mlx5sim_cm_request_new(mlx5sim_cm_id_t *listener)
{
    mlx5sim_chan_t *chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, listener->chan);
    mlx5sim_cm_id_t *request;

    request = (listener->room == 0) ? NULL :
              mlx5sim_cm_id_new(chan, listener->ps, listener->qp_type);
    if (request != NULL) {
        request->chan_gen = listener->chan_gen;
        request->listener = mlx5sim_cm_id_ref(listener);
        request->state    = MLX5SIM_CM_REQ_RCVD;
    }
    return request;
}

int mlx5sim_cm_request_show(mlx5sim_cm_id_t *request,
                            mlx5sim_cm_id_t *listener)
{
    if (mlx5sim_cm_id_give(request, mlx5sim_obj_at(MLX5SIM_OBJ_CHAN,
                                                   request->chan)) != 0) {
        return 0;
    }

    if (mlx5sim_cm_event_post(request, MLX5SIM_CM_EVENT_CONNECT_REQUEST, 0) !=
        0) {
        mlx5sim_cm_id_take(request);
        return 0;
    }

    --listener->room;
    return 1;
}

/* Show a request to who listens. @return whether there was room */
static int mlx5sim_cm_deliver(mlx5sim_cm_id_t *id, mlx5sim_cm_id_t *listener)
{
    mlx5sim_cm_id_t *request = mlx5sim_cm_request_new(listener);

    if (request == NULL) {
        return 0;
    }

    request->qp_type  = id->qp_type;
    request->src      = id->dst;
    request->dst      = id->src;
    request->local    = id->remote;
    request->remote   = id->local;
    request->tos      = id->tos;
    request->timeout  = mlx5sim_cm_request_timeout(id);
    request->peer     = mlx5sim_cm_id_ref(id);
    request->theirs   = id->mine;
    request->peer_psn = id->psn;
    if (!mlx5sim_cm_request_show(request, listener)) {
        return 0;
    }

    id->peer     = mlx5sim_cm_id_ref(request);
    id->listener = (mlx5sim_cm_ref_t){0, 0};
    return 1;
}

/* cm_ack_timeout() of cm.c, of the device's delay and the packet lifetime,
 * which with RoCE follows from the own timeout if there is one: cma.c,
 * cma_resolve_iboe_route(). The larger one, rounded up if they are near. */
uint8_t mlx5sim_cm_request_timeout(const mlx5sim_cm_id_t *id)
{
    int is_own  = mlx5sim_cm_is_roce() &&
                  (id->timeout != 0);
    int timeout = is_own ? id->timeout : MLX5SIM_CM_PACKET_LIFETIME + 1;
    int larger  = (timeout > MLX5SIM_CM_ACK_DELAY) ? timeout :
                                                     MLX5SIM_CM_ACK_DELAY;

    larger += abs(timeout - MLX5SIM_CM_ACK_DELAY) <= 1;
    return (larger < 31) ? larger : 31;
}

/* Most private data of a request. cma_connect_ib(), cma_resolve_ib_udp() */
unsigned mlx5sim_cm_request_size(const mlx5sim_cm_id_t *id)
{
    return (mlx5sim_cm_is_ud(id) ? MLX5SIM_CM_DATA_SIDR_REQ :
                                   MLX5SIM_CM_DATA_REQ) -
           ((id->ps == RDMA_PS_IB) ? 0 : MLX5SIM_CM_DATA_HEADER);
}

int mlx5sim_cm_connect(mlx5sim_cm_id_t *id, const mlx5sim_cm_param_t *param)
{
    mlx5sim_cm_id_t *listener;

    if (id->state != MLX5SIM_CM_ROUTE) {
        return -EINVAL;
    }

    if (param->length > mlx5sim_cm_request_size(id)) {
        return -EINVAL;
    }

    /* the other side sees all bytes of the message */
    id->mine        = *param;
    id->mine.length = mlx5sim_cm_request_size(id);
    id->is_active   = 1;
    mlx5sim_cm_set_state(id, MLX5SIM_CM_REQ_SENT);
    if (id->is_remote) {
        mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_REQ);
        return 0;
    }

    listener = mlx5sim_cm_find_listener(id->ps, &id->dst);
    if (listener == NULL) {
        mlx5sim_cm_refuse(id, MLX5SIM_CM_REJ_INVALID_SERVICE_ID, NULL, 0);
    } else if (!mlx5sim_cm_deliver(id, listener)) {
        /* the kernel drops the request, and it is sent again */
        ++listener->waiting;
        id->peer = mlx5sim_cm_id_ref(listener);
    }

    return 0;
}

/* Who can't accept rejects: rdma_accept(), cma_rep_recv() */
static int mlx5sim_cm_not_accepted(mlx5sim_cm_id_t *id)
{
    (void)mlx5sim_cm_reject(id, MLX5SIM_CM_REJ_CONSUMER_DEFINED, NULL, 0);
    return -EINVAL;
}

int mlx5sim_cm_accept(mlx5sim_cm_id_t *id, const mlx5sim_cm_param_t *param)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_peer(id);
    unsigned size         = mlx5sim_cm_is_ud(id) ? MLX5SIM_CM_DATA_SIDR_REP :
                                                   MLX5SIM_CM_DATA_REP;

    if ((id->state != MLX5SIM_CM_REQ_RCVD) || (param->length > size)) {
        return mlx5sim_cm_not_accepted(id);
    }

    if ((peer == NULL) && !id->is_remote) {
        return -EINVAL;
    }

    id->listener    = (mlx5sim_cm_ref_t){0, 0};
    id->mine        = *param;
    id->mine.length = size;
    if (id->is_remote) {
        mlx5sim_cm_set_state(id, mlx5sim_cm_is_ud(id) ?
                             MLX5SIM_CM_ESTABLISHED : MLX5SIM_CM_REP_SENT);
        mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_REP);
        return 0;
    }

    peer->theirs    = id->mine;
    peer->peer_psn  = id->psn;
    if (mlx5sim_cm_is_ud(id)) {
        mlx5sim_cm_set_state(id, MLX5SIM_CM_ESTABLISHED);
        mlx5sim_cm_set_state(peer, MLX5SIM_CM_ESTABLISHED);
        (void)mlx5sim_cm_event_post(peer, MLX5SIM_CM_EVENT_ESTABLISHED, 0);
        return 0;
    }

    mlx5sim_cm_set_state(id, MLX5SIM_CM_REP_SENT);
    mlx5sim_cm_set_state(peer, MLX5SIM_CM_REP_RCVD);
    (void)mlx5sim_cm_event_post(peer, MLX5SIM_CM_EVENT_CONNECT_RESPONSE, 0);
    return 0;
}

int mlx5sim_cm_establish(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_peer(id);

    if (id->state != MLX5SIM_CM_REP_RCVD) {
        return mlx5sim_cm_not_accepted(id);
    }

    if ((peer == NULL) && !id->is_remote) {
        return -EINVAL; /* that it has gone will be an event */
    }

    mlx5sim_cm_set_state(id, MLX5SIM_CM_ESTABLISHED);
    if (id->is_remote) {
        mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_RTU);
        return 0;
    }

    if (peer->state == MLX5SIM_CM_DREQ_SENT) {
        /* it has not waited for us, and repeats that it ends */
        mlx5sim_cm_disconnected(id, MLX5SIM_CM_DREQ_RCVD, 0);
    } else {
        (void)mlx5sim_cm_notify(peer);
    }
    return 0;
}

int mlx5sim_cm_notify(mlx5sim_cm_id_t *id)
{
    switch (id->state) {
    case MLX5SIM_CM_REP_SENT:
        mlx5sim_cm_set_state(id, MLX5SIM_CM_ESTABLISHED);
        (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_ESTABLISHED, 0);
        return 0;
    case MLX5SIM_CM_ESTABLISHED:
        return -EISCONN; /* cm_establish() of cm.c */
    default:
        return -EINVAL;
    }
}

int mlx5sim_cm_reject(mlx5sim_cm_id_t *id, unsigned reason, const void *data,
                      size_t length)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_peer(id);
    unsigned size         = mlx5sim_cm_is_ud(id) ? MLX5SIM_CM_DATA_SIDR_REP :
                                                   MLX5SIM_CM_DATA_REJ;
    int is_own            = (id->state == MLX5SIM_CM_REQ_SENT) &&
                            !mlx5sim_cm_is_ud(id);

    /* cm_send_rej_locked(); datagrams are not answered twice */
    if ((!is_own && (id->state != MLX5SIM_CM_REQ_RCVD) &&
         (id->state != MLX5SIM_CM_REP_SENT) &&
         (id->state != MLX5SIM_CM_REP_RCVD)) || (length > size)) {
        return -EINVAL;
    }

    if (id->is_remote) {
        mlx5sim_cm_remote_reject(id, reason, data, length);
    }
    mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
    if ((peer != NULL) && is_own) {
        mlx5sim_cm_lost(peer); /* the message does not name its id */
    } else if (peer != NULL) {
        mlx5sim_cm_refuse(peer, reason, data, length);
    }
    return 0;
}

int mlx5sim_cm_disconnect(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_peer(id);

    if (id->state < MLX5SIM_CM_REQ_SENT) {
        return -EINVAL;
    }

    if (mlx5sim_cm_is_ud(id)) {
        return 0;
    }

    if (id->state == MLX5SIM_CM_ESTABLISHED) {
        mlx5sim_cm_set_state(id, MLX5SIM_CM_DREQ_SENT);
        if (id->is_remote) {
            mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_DREQ);
        } else if (peer == NULL) {
            mlx5sim_cm_lost(id);
        } else if (peer->state == MLX5SIM_CM_ESTABLISHED) {
            mlx5sim_cm_disconnected(peer, MLX5SIM_CM_DREQ_RCVD, 0);
        }
    } else if (id->state == MLX5SIM_CM_DREQ_RCVD) {
        mlx5sim_cm_end(id);
        if (id->is_remote) {
            mlx5sim_cm_remote_tell(id, MLX5SIM_CM_TELL_DREP);
        }
        if ((peer != NULL) && (peer->state == MLX5SIM_CM_DREQ_SENT)) {
            mlx5sim_cm_disconnected(peer, MLX5SIM_CM_CLOSED, 0);
        }
    }

    /* in other states, neither DREQ nor DREP can be sent, which
     * rdma_disconnect() does not tell */
    return 0;
}

void mlx5sim_cm_listen(mlx5sim_cm_id_t *id, unsigned backlog)
{
    id->room       = ((backlog == 0) || (backlog > MLX5SIM_CM_BACKLOG)) ?
                     MLX5SIM_CM_BACKLOG : backlog;
    id->reuse_addr = 0; /* nobody may bind the port beside: rdma_listen() */
    mlx5sim_cm_set_state(id, MLX5SIM_CM_LISTEN);
}

/* Next id after @a index that waits for room at a listener */
static mlx5sim_cm_id_t *
mlx5sim_cm_next_waiting(const mlx5sim_cm_id_t *listener, uint32_t index)
{
    mlx5sim_cm_ref_t ref = mlx5sim_cm_id_ref(listener);
    mlx5sim_cm_id_t *id;

    while ((id = mlx5sim_cm_id_next(index, 0)) != NULL) {
        if ((id->state == MLX5SIM_CM_REQ_SENT) &&
            (id->peer.index == ref.index) && (id->peer.gen == ref.gen)) {
            break;
        }
        index = mlx5sim_cm_id_ref(id).index;
    }
    return id;
}

void mlx5sim_cm_request_read(mlx5sim_cm_id_t *request)
{
    mlx5sim_cm_id_t *listener = mlx5sim_cm_id_get(request->listener);
    mlx5sim_cm_id_t *id;

    if (listener == NULL) {
        return;
    }

    ++listener->room;
    if (listener->waiting == 0) {
        return;
    }

    /* in turn */
    id = mlx5sim_cm_next_waiting(listener, listener->last_waiting);
    if (id == NULL) {
        id = mlx5sim_cm_next_waiting(listener, 0);
    }

    if (id == NULL) {
        listener->waiting = 0; /* others have gone */
    } else if (mlx5sim_cm_deliver(id, listener)) {
        listener->last_waiting = mlx5sim_cm_id_ref(id).index;
        --listener->waiting;
    }
}

/* Nobody listens any more */
static void mlx5sim_cm_stop_listening(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t *waiting;
    uint32_t index = 0;

    id->state = MLX5SIM_CM_CLOSED;
    if (id->waiting == 0) {
        return;
    }

    while ((waiting = mlx5sim_cm_next_waiting(id, index)) != NULL) {
        index = mlx5sim_cm_id_ref(waiting).index;
        mlx5sim_cm_refuse(waiting, MLX5SIM_CM_REJ_INVALID_SERVICE_ID, NULL, 0);
    }
}

void mlx5sim_cm_leave(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t **requests;
    mlx5sim_cm_id_t *peer;
    unsigned i, count;

    if (id->state == MLX5SIM_CM_LISTEN) {
        mlx5sim_cm_stop_listening(id);
    }

    if (id->unread > 0) {
        requests = calloc(id->unread, sizeof(*requests));
        count    = (requests == NULL) ? 0 :
                   mlx5sim_cm_event_remove(id, NULL, requests);
        for (i = 0; i < count; ++i) {
            mlx5sim_cm_leave(requests[i]);
        }
        free(requests);
    }

    peer = mlx5sim_cm_id_peer(id);
    if (!id->is_remote || !mlx5sim_cm_remote_leave(id)) {
        mlx5sim_cm_id_free(id);
    }
    if (peer != NULL) {
        mlx5sim_cm_lost(peer);
    }
}

void mlx5sim_cm_expire(mlx5sim_cm_id_t *id)
{
    mlx5sim_cm_id_t *peer = mlx5sim_cm_id_peer(id);

    if (id->state == MLX5SIM_CM_DREQ_SENT) {
        mlx5sim_cm_disconnected(id, MLX5SIM_CM_CLOSED, -ETIMEDOUT);
        return;
    }

    if (id->is_remote) {
        mlx5sim_cm_remote_reject(id, MLX5SIM_CM_REJ_TIMEOUT, NULL, 0);
    }
    mlx5sim_cm_set_state(id, MLX5SIM_CM_CLOSED);
    (void)mlx5sim_cm_event_post(id, MLX5SIM_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    if (peer != NULL) {
        mlx5sim_cm_lost(peer);
    }
}

int mlx5sim_cm_watch(mlx5sim_cm_id_t *id, uint64_t now)
{
    mlx5sim_cm_id_t *asked;

    mlx5sim_cm_event_mend(id);
    if (id->is_remote) {
        /* messages are sent again, and peers looked after, by mlx5sim-wire */
        if ((id->deadline != 0) && (now >= id->deadline)) {
            mlx5sim_cm_expire(id);
        }
        return id->deadline != 0;
    }

    switch (id->state) {
    case MLX5SIM_CM_REQ_SENT:
        asked = mlx5sim_cm_id_get(id->peer);
        if (asked == NULL) {
            mlx5sim_cm_lost(id);
        } else if ((asked->state == MLX5SIM_CM_LISTEN) &&
                   mlx5sim_cm_deliver(id, asked) && (asked->waiting > 0)) {
            --asked->waiting; /* the kernel sends a request again, too */
        }
        break;
    case MLX5SIM_CM_REQ_RCVD:
    case MLX5SIM_CM_REP_SENT:
    case MLX5SIM_CM_REP_RCVD:
    case MLX5SIM_CM_ESTABLISHED:
    case MLX5SIM_CM_DREQ_SENT:
        if (mlx5sim_cm_is_ud(id) && (id->state == MLX5SIM_CM_ESTABLISHED)) {
            return 0;
        }
        if (mlx5sim_cm_id_peer(id) == NULL) {
            mlx5sim_cm_lost(id);
        }
        break;
    default:
        return 0;
    }

    if ((id->deadline != 0) && (now >= id->deadline)) {
        mlx5sim_cm_expire(id);
    }
    return (id->state >= MLX5SIM_CM_REQ_SENT) &&
           (id->state != MLX5SIM_CM_CLOSED) &&
           (id->state != MLX5SIM_CM_DREQ_RCVD);
}
