/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/server/incoming.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/engine/qp.h>
#include <sim/exec/packet.h>
#include <sim/exec/transfer.h>
#include <sim/exec/wqe.h>
#include <sim/net/frame.h>
#include <sim/objs/pcie.h>
#include <sim/objs/store.h>
#include <sim/queue/recv.h>
#include <sim/server/socket.h>

#include <stdlib.h>
#include <string.h>

enum {
    MLX5SIM_INCOMING_REPLIES = 64, /* answers of a QP that wait */
    MLX5SIM_INCOMING_BURST   = 16  /* packets that a QP sends before it is
                                      another one's turn */
};

/* No entry of the table: the GID of the sender is in the packet */
#define MLX5SIM_INCOMING_NO_GID  0xff


/* An answer, which is sent when those before it were */
typedef struct mlx5sim_reply {
    uint8_t  opcode;   /* MLX5SIM_BTH_ACK, _ATOMIC_ACK, or _READ_REQUEST: the
                          data that this asks for */
    uint8_t  syndrome;
    uint32_t psn;
    uint32_t msn;
    uint64_t old;      /* atomic */
    uint64_t raddr;    /* read: what is left of it */
    uint32_t rkey;
    uint32_t length;
    uint8_t  is_begun;
} mlx5sim_reply_t;

typedef struct mlx5sim_incoming {
    struct mlx5sim_incoming *next;    /* of those with replies */
    int                     is_listed;
    uint32_t                index;    /* of the QP */
    uint32_t                gen;      /* of its slot */
    uint32_t                resets;   /* of the QP, when this began */
    uint32_t                msn;      /* messages taken */
    mlx5sim_roce_path_t     path;     /* of replies */
    unsigned                first;    /* of the replies */
    unsigned                num;
    mlx5sim_reply_t         replies[MLX5SIM_INCOMING_REPLIES];
} mlx5sim_incoming_t;

/* By index of the QP; and those with replies */
static mlx5sim_incoming_t *mlx5sim_incomings[MLX5SIM_MAX_QPS];
static mlx5sim_incoming_t *mlx5sim_incoming_list;

/* Stands for the requester on the other node */
static mlx5sim_qp_obj_t mlx5sim_incoming_req;


static mlx5sim_incoming_t *mlx5sim_incoming_get(const mlx5sim_qp_obj_t *qp)
{
    uint32_t index               = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    mlx5sim_incoming_t *incoming = mlx5sim_incomings[index];

    if (incoming == NULL) {
        incoming = calloc(1, sizeof(*incoming));
        if (incoming == NULL) {
            return NULL;
        }
        incoming->index          = index;
        incoming->gen            = qp->o.gen - 1;
        mlx5sim_incomings[index] = incoming;
    }

    if ((incoming->gen != qp->o.gen) || (incoming->resets != qp->resets)) {
        incoming->gen    = qp->o.gen;
        incoming->resets = qp->resets;
        incoming->msn    = 0;
        incoming->num    = 0;
    }

    return incoming;
}

/* Make the requester that @a qp expects. */
static mlx5sim_qp_obj_t *mlx5sim_incoming_requester(const mlx5sim_qp_obj_t *qp,
                                                    uint16_t pkey)
{
    mlx5sim_qp_obj_t *req = &mlx5sim_incoming_req;

    memset(req, 0, sizeof(*req));
    atomic_store(&req->o.owner, mlx5sim_self_tag);
    req->o.ready          = 1;
    atomic_store(&req->o.ctx, atomic_load(&qp->o.ctx));
    req->is_remote        = 1; /* its packets are counted as they come */
    req->dev              = qp->dev;
    req->qp.type          = qp->qp.type;
    req->qp.state         = MLX5SIM_QPS_RTS;
    req->qp.port          = qp->qp.port;
    req->qp.qpn           = qp->qp.dest_qpn;
    req->qp.dest_qpn      = qp->qp.qpn;
    req->qp.path_mtu      = qp->qp.path_mtu;
    req->qp.max_rd_atomic = MLX5SIM_MAX_RD_ATOMIC;
    req->qp.pkey          = pkey;
    req->qp.is_roce       = qp->qp.is_roce;
    req->qp.has_grh       = qp->qp.has_grh;
    req->qp.sl            = qp->qp.sl;
    req->qp.lid           = qp->qp.dlid;
    req->qp.dlid          = qp->qp.lid;
    memcpy(req->qp.sgid, qp->qp.dgid, sizeof(req->qp.sgid));
    memcpy(req->qp.dgid, qp->qp.sgid, sizeof(req->qp.dgid));
    return req;
}

static void mlx5sim_incoming_send(mlx5sim_incoming_t *incoming,
                                  const mlx5sim_qp_obj_t *req,
                                  const mlx5sim_reply_t *reply, uint8_t opcode,
                                  const uint8_t *payload, unsigned length)
{
    mlx5sim_roce_t packet;

    mlx5sim_roce_answer(&req->qp, opcode, reply->psn, reply->syndrome,
                        reply->msn, &packet);
    packet.old = reply->old;
    if (!mlx5sim_qp_is_cut_off(req)) {
        mlx5sim_socket_send(req->dev, req->qp.port, &incoming->path, &packet,
                            payload, length);
    }
}

/* Read data that the responder sends. @return whether there are any */
static int mlx5sim_incoming_fetch(mlx5sim_qp_obj_t *req,
                                  const mlx5sim_reply_t *reply,
                                  uint32_t length, uint8_t *payload_p)
{
    mlx5sim_wqe_t wqe = {.opcode    = MLX5SIM_OPCODE_RDMA_READ,
                         .has_raddr = 1,
                         .raddr     = reply->raddr,
                         .rkey      = reply->rkey,
                         .length    = reply->length};
    mlx5sim_run_t run = {.req = req};
    mlx5sim_sig_user_t user;
    mlx5sim_proc_t *proc;
    mlx5sim_plan_t plan;
    unsigned num;
    int ret = -1;

    proc = mlx5sim_packet_plan_read(&run, &wqe, 1, &plan);
    if ((proc != NULL) && (plan.verdict == MLX5SIM_VERDICT_DONE) &&
        !plan.req_error && !plan.resp_error) {
        mlx5sim_plan_cut(&plan, 0, length);
        user = (mlx5sim_sig_user_t){run.resp, MLX5SIM_SIDE_RESPONDER};
        ret  = mlx5sim_transfer_fetch(&user, proc, &plan, payload_p, &num);
        mlx5sim_pcie_read(proc, num);
    }
    if (run.resp != NULL) {
        mlx5sim_unlock(&run.resp->rq_lock);
    }

    return ret == 0;
}

/* Send a packet of the answer to a read. @return whether it was the last */
static int mlx5sim_incoming_send_read(mlx5sim_incoming_t *incoming,
                                      mlx5sim_qp_obj_t *req,
                                      mlx5sim_reply_t *reply)
{
    static const uint8_t opcodes[2][2] = {
        {MLX5SIM_BTH_READ_MIDDLE, MLX5SIM_BTH_READ_LAST},
        {MLX5SIM_BTH_READ_FIRST, MLX5SIM_BTH_READ_ONLY}
    };
    unsigned mtu    = mlx5sim_qp_mtu(&req->qp);
    uint32_t length = (reply->length < mtu) ? reply->length : mtu;
    int is_last     = length == reply->length;
    uint8_t payload[MLX5SIM_MAX_MTU];

    if (!mlx5sim_incoming_fetch(req, reply, length, payload)) {
        reply->syndrome = MLX5SIM_AETH_NAK_ACCESS;
        mlx5sim_incoming_send(incoming, req, reply, MLX5SIM_BTH_ACK, NULL, 0);
        return 1;
    }

    mlx5sim_incoming_send(incoming, req, reply,
                          opcodes[!reply->is_begun][is_last], payload, length);
    reply->is_begun = 1;
    reply->psn      = mlx5sim_psn_add(reply->psn, 1);
    reply->raddr   += length;
    reply->length  -= length;
    return is_last;
}

/* Send replies of a QP, until it is another one's turn.
 * @return whether there are more */
static int mlx5sim_incoming_send_some(mlx5sim_incoming_t *incoming)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, incoming->index);
    unsigned burst       = MLX5SIM_INCOMING_BURST;
    mlx5sim_qp_obj_t *req;
    mlx5sim_reply_t *reply;
    int is_done;

    if ((incoming->gen != qp->o.gen) || (incoming->resets != qp->resets)) {
        incoming->num = 0;
        return 0;
    }

    req = mlx5sim_incoming_requester(qp, qp->qp.pkey);
    for (; (burst > 0) && (incoming->num > 0); --burst) {
        reply   = &incoming->replies[incoming->first];
        is_done = 1;
        if (reply->opcode == MLX5SIM_BTH_READ_REQUEST) {
            is_done = mlx5sim_incoming_send_read(incoming, req, reply);
        } else {
            mlx5sim_incoming_send(incoming, req, reply, reply->opcode, NULL, 0);
        }
        if (is_done) {
            incoming->first = (incoming->first + 1) % MLX5SIM_INCOMING_REPLIES;
            --incoming->num;
        }
    }

    return incoming->num > 0;
}

static void mlx5sim_incoming_reply(mlx5sim_incoming_t *incoming,
                                   const mlx5sim_reply_t *reply)
{
    unsigned last = (incoming->first + incoming->num - 1) %
                    MLX5SIM_INCOMING_REPLIES;

    if ((incoming->num > 0) && (reply->opcode == MLX5SIM_BTH_ACK) &&
        (incoming->replies[last].opcode == MLX5SIM_BTH_ACK) &&
        (incoming->replies[last].syndrome == MLX5SIM_AETH_ACK)) {
        incoming->replies[last] = *reply; /* it says as much */
        return;
    }

    if (incoming->num == MLX5SIM_INCOMING_REPLIES) {
        return; /* lost, as in a network */
    }

    incoming->replies[(last + 1) % MLX5SIM_INCOMING_REPLIES] = *reply;
    ++incoming->num;
    if (!incoming->is_listed) {
        incoming->is_listed   = 1;
        incoming->next        = mlx5sim_incoming_list;
        mlx5sim_incoming_list = incoming;
    }
}

int mlx5sim_incoming_progress(void)
{
    mlx5sim_incoming_t **incoming_p = &mlx5sim_incoming_list;
    mlx5sim_incoming_t *incoming;

    while ((incoming = *incoming_p) != NULL) {
        if (mlx5sim_incoming_send_some(incoming)) {
            incoming_p = &incoming->next;
        } else {
            *incoming_p         = incoming->next;
            incoming->is_listed = 0;
        }
    }

    return mlx5sim_incoming_list != NULL;
}

static uint8_t mlx5sim_incoming_nak(uint8_t syndrome)
{
    switch (syndrome) {
    case MLX5SIM_SYNDROME_REMOTE_ACCESS:
        return MLX5SIM_AETH_NAK_ACCESS;
    case MLX5SIM_SYNDROME_REMOTE_OP:
        return MLX5SIM_AETH_NAK_OPERATION;
    default:
        return MLX5SIM_AETH_NAK_INVALID;
    }
}

/* What a responder does with a packet, and says of it */
static void mlx5sim_incoming_landed(mlx5sim_incoming_t *incoming,
                                    const mlx5sim_roce_t *packet,
                                    const mlx5sim_packet_t *landing_packet,
                                    int is_expected, mlx5sim_landing_t landing,
                                    const mlx5sim_landed_t *landed)
{
    int is_new            = is_expected && landing_packet->is_last;
    mlx5sim_reply_t reply = {.opcode   = MLX5SIM_BTH_ACK,
                             .syndrome = MLX5SIM_AETH_ACK,
                             .psn      = packet->psn,
                             .old      = landed->old,
                             .raddr    = packet->raddr,
                             .rkey     = packet->rkey,
                             .length   = packet->dma_length};

    switch (landing) {
    case MLX5SIM_LANDED_QUIET:
        if (!is_expected || !packet->ack_req) {
            return;
        }
        is_new = 0;
        break;
    case MLX5SIM_LANDED_ACK:
        incoming->msn += is_new;
        if (is_expected && !packet->ack_req) {
            return;
        }
        reply.psn = mlx5sim_psn_add(landed->psn, MLX5SIM_PSN_MASK);
        break;
    case MLX5SIM_LANDED_READ:
        incoming->msn += is_new;
        reply.opcode   = MLX5SIM_BTH_READ_REQUEST;
        break;
    case MLX5SIM_LANDED_ATOMIC:
        incoming->msn += is_new;
        reply.opcode   = MLX5SIM_BTH_ATOMIC_ACK;
        break;
    case MLX5SIM_LANDED_RNR:
        reply.syndrome = MLX5SIM_AETH_RNR | (landed->syndrome & 0x1f);
        break;
    case MLX5SIM_LANDED_GAP:
        reply.psn      = landed->psn;
        reply.syndrome = MLX5SIM_AETH_NAK_PSN;
        break;
    case MLX5SIM_LANDED_ERROR:
        reply.syndrome = mlx5sim_incoming_nak(landed->syndrome);
        break;
    default:
        return;
    }

    reply.msn = incoming->msn;
    mlx5sim_incoming_reply(incoming, &reply);
}

/* Make a work request of a packet, and what mlx5sim_packet_land() is to know of
 * its place. @return whether it is a request at all */
static int mlx5sim_incoming_decode(mlx5sim_qp_obj_t *qp,
                                   const mlx5sim_roce_t *packet,
                                   int is_expected, const uint8_t *payload,
                                   unsigned length,
                                   const mlx5sim_roce_message_t *message,
                                   mlx5sim_wqe_t *wqe_p,
                                   mlx5sim_packet_t *piece_p,
                                   mlx5sim_roce_place_t *place_p)
{
    mlx5sim_roce_fit_t fit = mlx5sim_roce_to_wqe(&qp->qp, packet, length,
                                                 message, wqe_p, place_p);

    if (fit == MLX5SIM_ROCE_FOREIGN) {
        return 0;
    }

    if ((fit != MLX5SIM_ROCE_FITS) && (qp->qp.type != MLX5SIM_QPT_RC)) {
        qp->message.is_open = 0; /* dropped */
        return 0;
    }

    piece_p->psn     = packet->psn;
    piece_p->packets = 1;
    if (fit != MLX5SIM_ROCE_FITS) {
        /* One that came before is told by its PSN alone. An expected one that
         * does not fit is refused like one out of sequence. */
        wqe_p->opcode     = MLX5SIM_OPCODE_SEND;
        wqe_p->length     = 0;
        wqe_p->num_segs   = 0;
        piece_p->is_first = !is_expected || (qp->in_message != 0);
        piece_p->is_last  = 1;
        return 1;
    }

    piece_p->is_first = place_p->is_first;
    piece_p->is_last  = place_p->is_last;
    piece_p->offset   = place_p->offset;
    piece_p->length   = length;
    if (mlx5sim_opcode_flags(wqe_p->opcode) & MLX5SIM_OP_SCATTER) {
        piece_p->packets = (wqe_p->opcode == MLX5SIM_OPCODE_RDMA_READ) ?
                           mlx5sim_packet_count(&qp->qp, wqe_p->length) : 1;
        return 1;
    }

    /* The bytes that came before are not looked at */
    wqe_p->num_segs = 2;
    wqe_p->segs[0]  = (mlx5sim_seg_t){.length = place_p->offset,
                                      .inl    = payload};
    wqe_p->segs[1]  = (mlx5sim_seg_t){.length = length, .inl = payload};
    return 1;
}

/* A request to a connected queue pair */
static void mlx5sim_incoming_connected(mlx5sim_qp_obj_t *qp,
                                       const mlx5sim_roce_path_t *path,
                                       const mlx5sim_roce_t *packet,
                                       const uint8_t *payload, unsigned length)
{
    mlx5sim_incoming_t *incoming   = mlx5sim_incoming_get(qp);
    int is_rc                      = qp->qp.type == MLX5SIM_QPT_RC;
    int is_expected                = packet->psn == qp->qp.epsn;
    mlx5sim_roce_message_t message = {0};
    mlx5sim_landed_t landed        = {0};
    mlx5sim_packet_t piece         = {0};
    mlx5sim_roce_place_t place;
    mlx5sim_landing_t landing;
    mlx5sim_qp_obj_t *req;
    mlx5sim_wqe_t wqe;

    if (incoming == NULL) {
        return;
    }

    /* not if a server was killed between the packet and its message */
    if (is_expected && (qp->message_psn == qp->qp.epsn)) {
        message = qp->message;
    }

    incoming->path = *path;
    mlx5sim_roce_return(&incoming->path);
    incoming->path.sport = mlx5sim_frame_sport(qp);
    req                  = mlx5sim_incoming_requester(qp, packet->pkey);
    if (!mlx5sim_incoming_decode(qp, packet, is_expected, payload, length,
                                 &message, &wqe, &piece, &place)) {
        return;
    }

    landing = mlx5sim_packet_land(req, &wqe, &piece, &landed);
    if ((is_expected || !is_rc) &&
        (qp->qp.epsn == mlx5sim_psn_add(packet->psn, piece.packets))) {
        qp->message     = place.next; /* it was taken */
        qp->message_psn = qp->qp.epsn;
    }

    if (is_rc) {
        mlx5sim_incoming_landed(incoming, packet, &piece, is_expected, landing,
                                &landed);
    }
}

/* A datagram */
static void mlx5sim_incoming_datagram(mlx5sim_qp_obj_t *qp,
                                      const mlx5sim_roce_path_t *path,
                                      const mlx5sim_roce_t *packet,
                                      const uint8_t *payload, unsigned length)
{
    mlx5sim_qp_obj_t *req       = mlx5sim_incoming_requester(qp, packet->pkey);
    mlx5sim_roce_message_t none = {0};
    mlx5sim_roce_place_t place;
    mlx5sim_plan_t plan;
    mlx5sim_wqe_t wqe;
    uint64_t timer;

    req->qp.qpn = packet->sqpn;
    req->qp.psn = packet->psn;
    req->qp.lid = path->slid;
    memcpy(req->qp.sgid, path->route.sgid, sizeof(req->qp.sgid));
    if (mlx5sim_roce_to_wqe(&qp->qp, packet, length, &none, &wqe, &place) !=
        MLX5SIM_ROCE_FITS) {
        return;
    }

    wqe.num_segs      = 1;
    wqe.segs[0]       = (mlx5sim_seg_t){.length = length, .inl = payload};
    wqe.av.has_grh    = path->has_grh;
    wqe.av.sl         = path->sl;
    wqe.av.dlid       = path->dlid;
    wqe.av.sgid_index = MLX5SIM_INCOMING_NO_GID;
    wqe.av.tclass     = path->route.tclass;
    wqe.av.hop_limit  = path->route.hop_limit;
    wqe.av.flow_label = path->route.flow_label;
    memcpy(wqe.av.dgid, path->route.dgid, sizeof(wqe.av.dgid));
    (void)mlx5sim_wqe_execute(req, &wqe, &plan, &timer);
}

/* Whether a connected queue pair takes packets from there, as far as that can
 * be seen without its lock */
static int mlx5sim_incoming_is_peer(const mlx5sim_qp_obj_t *qp,
                                    const mlx5sim_roce_path_t *path)
{
    return qp->is_remote && mlx5sim_qp_is_receiving(&qp->qp) &&
           mlx5sim_frame_is_from_peer(qp, path);
}

void mlx5sim_incoming_take(const mlx5sim_roce_path_t *path,
                           const mlx5sim_roce_t *packet,
                           const uint8_t *payload, unsigned length)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_qp_by_num(packet->dqpn);

    if (qp == NULL) {
        return;
    }

    if (qp->qp.type == MLX5SIM_QPT_UD) {
        mlx5sim_incoming_datagram(qp, path, packet, payload, length);
    } else if (mlx5sim_incoming_is_peer(qp, path)) {
        mlx5sim_incoming_connected(qp, path, packet, payload, length);
    }
}
