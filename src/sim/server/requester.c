/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/server/requester.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/exec/packet.h>
#include <sim/exec/responder.h>
#include <sim/exec/transfer.h>
#include <sim/net/frame.h>
#include <sim/objs/mem.h>
#include <sim/objs/pcie.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/sched/park.h>
#include <sim/sched/sq.h>
#include <sim/server/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MLX5SIM_REQUESTER_FLIGHTS = 64 /* work requests fetched and not complete */
};

/* A work request between fetch and completion. Packets are counted from the
 * first one of the QP, and this number plus sq_psn is the PSN on the wire. */
typedef struct mlx5sim_sent {
    uint64_t psn;        /* number of its first packet */
    uint32_t packets;    /* PSNs that it takes */
    uint32_t length;     /* bytes */
    uint16_t index;      /* block in the send queue */
    uint8_t  num_bb;
    uint8_t  opcode;
    uint8_t  is_request; /* read or atomic: answered by data */
    uint8_t  signaled;
    uint8_t  fence;
    uint8_t  syndrome;   /* of the one that fails */
    uint8_t  scattered;  /* bytes of the answer that go into the CQE */
    uint8_t  data[64];   /* these */
} mlx5sim_sent_t;

typedef struct mlx5sim_requester {
    struct mlx5sim_requester *next;   /* of the list of all */
    uint32_t       index;       /* of the QP */
    uint32_t       gen;         /* of its slot */
    uint32_t       resets;      /* of the QP, when this began */
    uint8_t        *sq;         /* copy of its send queue */
    uint32_t       head;        /* oldest work request; counts freely */
    uint32_t       tail;        /* one after the last */
    uint32_t       cur;         /* the one to send next */
    uint32_t       stop;        /* the one that fails, if has_stop */
    int            has_stop;
    uint16_t       fetched;     /* block to fetch next */
    uint64_t       una;         /* first packet that is not acknowledged */
    uint64_t       snd;         /* next one to be sent */
    uint64_t       max_snd;     /* one after the last that ever was */
    uint64_t       end;         /* one after the last of all work requests */
    uint64_t       gap;         /* una + 1 when a missing answer was noticed */
    unsigned       retries;     /* since something was acknowledged */
    unsigned       rnr_retries;
    uint64_t       timer;       /* when to repeat what is not acknowledged, ns;
                                   0: nothing is under way */
    uint64_t       pause;       /* nothing is sent before, ns */
    uint64_t       at;          /* when to look at it, ns */
    mlx5sim_sent_t sent[MLX5SIM_REQUESTER_FLIGHTS];
} mlx5sim_requester_t;

/* By index of the QP; and all that there are */
static mlx5sim_requester_t *mlx5sim_requesters[MLX5SIM_MAX_QPS];
static mlx5sim_requester_t *mlx5sim_requester_list;


static mlx5sim_sent_t *
mlx5sim_requester_sent(mlx5sim_requester_t *requester, uint32_t number)
{
    return &requester->sent[number % MLX5SIM_REQUESTER_FLIGHTS];
}

static int
mlx5sim_requester_is_stop(const mlx5sim_requester_t *requester, uint32_t number)
{
    return requester->has_stop && (number == requester->stop);
}

static void mlx5sim_requester_begin(mlx5sim_requester_t *requester,
                                    const mlx5sim_qp_obj_t *qp)
{
    requester->gen      = qp->o.gen;
    requester->resets   = qp->resets;
    requester->head     = requester->tail = requester->cur = 0;
    requester->has_stop = 0;
    requester->fetched  = qp->sq_head;
    requester->una      = requester->snd = requester->max_snd = 0;
    requester->end      = 0;
    requester->gap      = 0;
    requester->retries  = requester->rnr_retries = 0;
    requester->timer    = requester->pause = 0;
}

static mlx5sim_requester_t *mlx5sim_requester_get(const mlx5sim_qp_obj_t *qp)
{
    uint32_t index                 = mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp);
    mlx5sim_requester_t *requester = mlx5sim_requesters[index];
    uint8_t *sq;

    if ((requester != NULL) && (requester->gen == qp->o.gen)) {
        if (requester->resets != qp->resets) {
            mlx5sim_requester_begin(requester, qp);
        }
        return requester;
    }

    sq = malloc(qp->qp.sq_wqe_cnt * MLX5SIM_WQEBB);
    if (sq == NULL) {
        return NULL;
    }

    if (requester == NULL) {
        requester = calloc(1, sizeof(*requester));
        if (requester == NULL) {
            free(sq);
            return NULL;
        }
        requester->index          = index;
        requester->next           = mlx5sim_requester_list;
        mlx5sim_requester_list    = requester;
        mlx5sim_requesters[index] = requester;
    }

    free(requester->sq);
    requester->sq = sq;
    mlx5sim_requester_begin(requester, qp);
    return requester;
}

/* The queue pair of an answer or of a doorbell, locked, if packets of it may be
 * under way. */
static mlx5sim_qp_obj_t *mlx5sim_requester_lock(uint32_t qpn)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_qp_by_num(qpn);

    if (qp == NULL) {
        return NULL;
    }

    (void)mlx5sim_lock(&qp->sq_lock);
    if (qp->o.ready && (qp->qp.qpn == qpn) && qp->is_remote &&
        (mlx5sim_proc_by_tag(atomic_load(&qp->o.owner)) != NULL) &&
        !mlx5sim_qp_is_dead(qp)) {
        return qp;
    }

    mlx5sim_unlock(&qp->sq_lock);
    return NULL;
}

/* Oldest work request that is not acknowledged, or the end */
static uint32_t mlx5sim_requester_oldest(mlx5sim_requester_t *requester)
{
    const mlx5sim_sent_t *sent;
    uint32_t i;

    for (i = requester->head; i != requester->tail; ++i) {
        sent = mlx5sim_requester_sent(requester, i);
        if (sent->psn + sent->packets > requester->una) {
            break;
        }
    }

    return i;
}

static void mlx5sim_requester_fail(mlx5sim_requester_t *requester,
                                   uint32_t number, unsigned syndrome)
{
    /* the earliest counts: the others will be flushed */
    if ((number != requester->tail) &&
        (!requester->has_stop ||
         (number - requester->head < requester->stop - requester->head))) {
        requester->has_stop = 1;
        requester->stop     = number;
        mlx5sim_requester_sent(requester, number)->syndrome = syndrome;
    }
}

static void mlx5sim_requester_set_timer(mlx5sim_requester_t *requester,
                                        const mlx5sim_qp_obj_t *qp)
{
    requester->timer = ((requester->una < requester->snd) &&
                        (qp->qp.timeout != 0)) ?
                       mlx5sim_now_ns() +
                       mlx5sim_ack_timeout_ns(qp->qp.timeout) : 0;
}

/* Send again from the first packet that is not acknowledged */
static void mlx5sim_requester_go_back(mlx5sim_requester_t *requester,
                                      const mlx5sim_qp_obj_t *qp)
{
    if (requester->retries++ >= qp->qp.retry_cnt) {
        mlx5sim_requester_fail(requester, mlx5sim_requester_oldest(requester),
                               MLX5SIM_SYNDROME_TRANSPORT_RETRY);
        return;
    }

    requester->snd = requester->una;
    requester->cur = mlx5sim_requester_oldest(requester);
}

/* Something that was sent is missing. What is behind it says the same: go back
 * once. */
static void mlx5sim_requester_close_gap(mlx5sim_requester_t *requester,
                                        const mlx5sim_qp_obj_t *qp)
{
    if (requester->gap != requester->una + 1) {
        requester->gap = requester->una + 1;
        mlx5sim_requester_go_back(requester, qp);
    }
}

static void mlx5sim_requester_acked(mlx5sim_requester_t *requester,
                                    const mlx5sim_qp_obj_t *qp, uint64_t psn)
{
    if (psn > requester->una) {
        requester->una         = psn;
        requester->retries     = 0;
        requester->rnr_retries = 0;
        if (requester->snd < psn) {
            requester->snd = psn;
            requester->cur = mlx5sim_requester_oldest(requester);
        }
        mlx5sim_requester_set_timer(requester, qp);
    }
}

/* An answer about packet @a psn says that all before it have arrived; but if
 * there is a read or an atomic among them whose answer has not come, that was
 * lost (IBTA "Implied NAK"). @return whether the answer is of use */
static int mlx5sim_requester_implies(mlx5sim_requester_t *requester,
                                     const mlx5sim_qp_obj_t *qp, uint64_t psn)
{
    const mlx5sim_sent_t *sent;
    uint32_t i;

    for (i = mlx5sim_requester_oldest(requester); i != requester->tail; ++i) {
        sent = mlx5sim_requester_sent(requester, i);
        if (sent->psn >= psn) {
            break;
        }

        if (sent->is_request && (requester->una < psn)) {
            mlx5sim_requester_acked(requester, qp, sent->psn);
            if (requester->una == psn) {
                break;
            }
            mlx5sim_requester_close_gap(requester, qp);
            return 0;
        }
    }

    mlx5sim_requester_acked(requester, qp, psn);
    return 1;
}

/* Copy what was posted. @return 0, or -1: its process is gone */
static int mlx5sim_requester_copy(mlx5sim_requester_t *requester,
                                  const mlx5sim_qp_obj_t *qp, uint16_t posted)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    uint32_t first       = requester->fetched & (qp->qp.sq_wqe_cnt - 1);
    uint32_t count       = posted;
    uint32_t offset;

    while (count > 0) {
        posted = (count < qp->qp.sq_wqe_cnt - first) ?
                 count : (qp->qp.sq_wqe_cnt - first);
        offset = first * MLX5SIM_WQEBB;
        if ((proc == NULL) ||
            (mlx5sim_mem_read(proc, qp->sq + offset, requester->sq + offset,
                              posted * MLX5SIM_WQEBB) != 0)) {
            return -1;
        }
        count -= posted;
        first  = 0;
    }

    return 0;
}

/* What the requester finds in its own request: 0 or a syndrome */
static unsigned mlx5sim_requester_check(mlx5sim_qp_obj_t *qp,
                                        const mlx5sim_wqe_t *wqe,
                                        mlx5sim_chk_t chk)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);
    mlx5sim_plan_t plan;

    if (mlx5sim_chk_is_fatal(chk)) {
        mlx5sim_plan_bad_wqe(&qp->qp, wqe, chk, &plan);
        return plan.req_cqe.syndrome;
    }

    mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, &plan);
    return plan.req_error ? plan.req_cqe.syndrome : 0;
}

/* Fetch work requests. @return whether there are new ones */
static int mlx5sim_requester_fetch(mlx5sim_requester_t *requester,
                                   mlx5sim_qp_obj_t *qp)
{
    uint16_t pi     = atomic_load(&qp->rung);
    uint16_t posted = pi - requester->fetched;
    mlx5sim_sent_t *sent;
    mlx5sim_chk_t chk;
    mlx5sim_wqe_t wqe;
    unsigned syndrome;

    if ((posted == 0) || requester->has_stop ||
        (requester->tail - requester->head == MLX5SIM_REQUESTER_FLIGHTS)) {
        return 0;
    }

    if ((uint16_t)(pi - qp->sq_head) > qp->qp.sq_wqe_cnt) {
        qp->qp.state = MLX5SIM_QPS_ERR; /* its process has reported that */
        qp->sq_head  = pi;
        return 0;
    }

    if (mlx5sim_requester_copy(requester, qp, posted) != 0) {
        return 0;
    }

    while ((posted > 0) && !requester->has_stop &&
           (requester->tail - requester->head < MLX5SIM_REQUESTER_FLIGHTS)) {
        chk = mlx5sim_wqe_decode(&qp->qp, requester->sq, requester->fetched,
                                 &wqe);
        if (wqe.num_bb > posted) {
            wqe.num_bb = posted;
            chk        = MLX5SIM_CHK_WQE_DS;
        }

        syndrome         = mlx5sim_requester_check(qp, &wqe, chk);
        sent             = mlx5sim_requester_sent(requester, requester->tail);
        sent->psn        = requester->end;
        sent->packets    = ((syndrome != 0) ||
                            (wqe.opcode == MLX5SIM_OPCODE_NOP)) ? 0 :
                           mlx5sim_packet_count(&qp->qp, wqe.length);
        sent->length     = wqe.length;
        sent->index      = requester->fetched;
        sent->num_bb     = wqe.num_bb;
        sent->opcode     = wqe.opcode;
        sent->is_request = !!(mlx5sim_opcode_flags(wqe.opcode) &
                              MLX5SIM_OP_SCATTER);
        sent->signaled   = wqe.signaled;
        sent->fence      = wqe.fence;
        sent->scattered  = 0;
        if (requester->snd == requester->end) {
            requester->cur = requester->tail;
        }

        requester->end     += sent->packets;
        requester->fetched += wqe.num_bb;
        posted             -= wqe.num_bb;
        ++requester->tail;
        if (syndrome != 0) {
            mlx5sim_requester_fail(requester, requester->tail - 1, syndrome);
        }
    }

    return 1;
}

/* Read requests, or atomics, that packets [begin, end) of a work request are
 * asked for by */
static unsigned
mlx5sim_requester_chunks(const mlx5sim_sent_t *sent, uint64_t begin,
                         uint64_t end)
{
    if (end <= begin) {
        return 0;
    }

    return ((end - sent->psn + MLX5SIM_REQUESTER_CHUNK - 1) /
            MLX5SIM_REQUESTER_CHUNK) -
           ((begin - sent->psn) / MLX5SIM_REQUESTER_CHUNK);
}

/* Requests for data that were sent and wait for their answer */
static unsigned mlx5sim_requester_depth(mlx5sim_requester_t *requester)
{
    unsigned depth = 0;
    const mlx5sim_sent_t *sent;
    uint64_t begin, end;
    uint32_t i;

    for (i = requester->head; i != requester->cur + 1; ++i) {
        sent = mlx5sim_requester_sent(requester, i);
        if (sent->is_request) {
            begin  = (requester->una > sent->psn) ? requester->una : sent->psn;
            end    = sent->psn + sent->packets;
            end    = (requester->snd < end) ? requester->snd : end;
            depth += mlx5sim_requester_chunks(sent, begin, end);
        }
    }

    return depth;
}

static int mlx5sim_requester_can_send(mlx5sim_requester_t *requester,
                                      const mlx5sim_qp_obj_t *qp, uint64_t now)
{
    const mlx5sim_sent_t *sent;
    unsigned limit, depth;

    if ((qp->qp.state != MLX5SIM_QPS_RTS) || (now < requester->pause) ||
        (requester->snd == requester->end) ||
        (requester->snd - requester->una >= MLX5SIM_REQUESTER_WINDOW) ||
        mlx5sim_requester_is_stop(requester, requester->cur)) {
        return 0;
    }

    sent = mlx5sim_requester_sent(requester, requester->cur);
    if (!sent->is_request && !sent->fence) {
        return 1;
    }

    limit = (qp->qp.max_rd_atomic > 0) ? qp->qp.max_rd_atomic : 1;
    depth = mlx5sim_requester_depth(requester);
    return !(sent->fence && (requester->snd == sent->psn) && (depth > 0)) &&
           !(sent->is_request && (depth >= limit));
}

/* Send the next packet */
static void
mlx5sim_requester_send(mlx5sim_requester_t *requester, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_sent_t *sent = mlx5sim_requester_sent(requester, requester->cur);
    uint32_t done        = requester->snd - sent->psn;
    unsigned mtu         = mlx5sim_qp_mtu(&qp->qp);
    uint32_t psn         = mlx5sim_psn_add(qp->sq_psn, requester->snd);
    uint32_t offset      = done * mtu;
    uint32_t packets     = 1;
    uint8_t payload[MLX5SIM_MAX_MTU];
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t packet;
    uint32_t length = 0;
    mlx5sim_wqe_t wqe;
    int is_last, ret;

    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, sent->index, &wqe);
    if (sent->is_request) {
        packets = MLX5SIM_REQUESTER_CHUNK - (done % MLX5SIM_REQUESTER_CHUNK);
        if (packets > sent->packets - done) {
            packets = sent->packets - done;
        }
        is_last = 1;
    } else {
        is_last = done + 1 == sent->packets;
        length  = is_last ? (sent->length - offset) : mtu;
        ret     = mlx5sim_frame_gather(qp, &wqe, offset, length, payload);
        if (ret != 0) {
            mlx5sim_requester_fail(requester, requester->cur,
                                   MLX5SIM_SYNDROME_LOCAL_PROT);
            return;
        }
    }

    mlx5sim_roce_request(&qp->qp, &wqe, psn, offset, (done == 0) ||
                         sent->is_request, is_last, &packet);
    if (sent->is_request && (done + packets < sent->packets)) {
        packet.dma_length = packets * mtu;
    }
    packet.ack_req |= !sent->is_request &&
                      ((done % MLX5SIM_REQUESTER_ACKS) ==
                       MLX5SIM_REQUESTER_ACKS - 1);
    mlx5sim_frame_path(qp, &path);
    if (!mlx5sim_qp_is_cut_off(qp)) {
        mlx5sim_socket_send(qp->dev, qp->qp.port, &path, &packet, payload,
                            length);
    }

    requester->snd += packets;
    if (requester->una + packets == requester->snd) {
        mlx5sim_requester_set_timer(requester, qp);
    }
    if (requester->snd > requester->max_snd) {
        requester->max_snd = requester->snd;
    }

    while ((requester->snd != requester->end) &&
           (requester->snd >=
            mlx5sim_requester_sent(requester, requester->cur)->psn +
            mlx5sim_requester_sent(requester, requester->cur)->packets)) {
        ++requester->cur;
    }
}

/* @return whether the oldest work request is complete, or fails */
static int mlx5sim_requester_complete(mlx5sim_requester_t *requester,
                                      mlx5sim_qp_obj_t *qp)
{
    mlx5sim_sent_t *sent = mlx5sim_requester_sent(requester, requester->head);
    int is_stop          = mlx5sim_requester_is_stop(requester,
                                                     requester->head);
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    mlx5sim_plan_t plan;
    mlx5sim_wqe_t wqe;

    if ((requester->head == requester->tail) ||
        (!is_stop && (sent->psn + sent->packets > requester->una))) {
        return 0;
    }

    wqe.opcode   = sent->opcode;
    wqe.index    = sent->index;
    wqe.length   = sent->length;
    wqe.signaled = sent->signaled;
    if (is_stop) {
        mlx5sim_plan_fail_local(&qp->qp, &wqe, sent->syndrome, &plan);
        qp->qp.state = MLX5SIM_QPS_ERR;
    } else {
        mlx5sim_plan_success(&qp->qp, &wqe, &plan);
        plan.req_cqe.scattered = sent->scattered;
        memcpy(plan.req_cqe.data, sent->data, sent->scattered);
    }

    ++qp->wqes;
    if (proc != NULL) {
        atomic_fetch_add_explicit(&proc->c.wqes, 1, memory_order_relaxed);
        if (!is_stop) {
            atomic_fetch_add_explicit(&proc->c.bytes, sent->length,
                                      memory_order_relaxed);
        }
    }
    qp->sq_head += sent->num_bb;
    ++requester->head;
    if (plan.has_req_cqe) {
        mlx5sim_sq_complete(qp, &plan.req_cqe);
    }
    return qp->qp.state == MLX5SIM_QPS_RTS;
}

/* With the lock of the QP held.
 * @return when to look again */
static uint64_t
mlx5sim_requester_run(mlx5sim_requester_t *requester, mlx5sim_qp_obj_t *qp,
                      uint64_t now)
{
    unsigned burst = MLX5SIM_REQUESTER_BURST;
    uint64_t next  = UINT64_MAX;

    if (qp->qp.state == MLX5SIM_QPS_RTS) {
        if ((requester->timer != 0) && (now >= requester->timer)) {
            requester->gap = 0;
            mlx5sim_requester_go_back(requester, qp);
            mlx5sim_requester_set_timer(requester, qp);
        }

        do {
            while ((burst > 0) &&
                   mlx5sim_requester_can_send(requester, qp, now)) {
                mlx5sim_requester_send(requester, qp);
                --burst;
            }
            while (mlx5sim_requester_complete(requester, qp)) {
            }
        } while ((burst > 0) && (qp->qp.state == MLX5SIM_QPS_RTS) &&
                 mlx5sim_requester_fetch(requester, qp));
    }

    if (qp->qp.state == MLX5SIM_QPS_ERR) {
        if ((uint16_t)atomic_load(&qp->rung) != qp->sq_head) {
            mlx5sim_qp_kick(qp); /* its process flushes the rest */
        }
        return UINT64_MAX;
    }

    if (mlx5sim_requester_can_send(requester, qp, now)) {
        return now;
    }

    if (requester->timer != 0) {
        next = requester->timer;
    }
    if ((requester->pause > now) && (requester->snd != requester->end) &&
        (requester->pause < next)) {
        next = requester->pause;
    }
    return next;
}

void mlx5sim_requester_wake(uint32_t qpn)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_requester_lock(qpn);
    mlx5sim_requester_t *requester;

    if (qp != NULL) {
        atomic_store(&qp->is_told, 0);
        requester = mlx5sim_requester_get(qp);
        if (requester != NULL) {
            requester->at = 0;
        }
        mlx5sim_unlock(&qp->sq_lock);
    }
}

uint64_t mlx5sim_requester_progress(uint64_t now)
{
    mlx5sim_requester_t **requester_p = &mlx5sim_requester_list;
    uint64_t next                     = UINT64_MAX;
    mlx5sim_requester_t *requester;
    mlx5sim_qp_obj_t *qp;

    while ((requester = *requester_p) != NULL) {
        if (requester->at > now) {
            next        = (requester->at < next) ? requester->at : next;
            requester_p = &requester->next;
            continue;
        }

        qp = mlx5sim_requester_lock(mlx5sim_qp_num(
                mlx5sim_obj_at(MLX5SIM_OBJ_QP, requester->index)));
        if ((qp == NULL) || (qp->o.gen != requester->gen)) {
            if (qp != NULL) {
                mlx5sim_unlock(&qp->sq_lock);
            }
            *requester_p                         = requester->next;
            mlx5sim_requesters[requester->index] = NULL;
            free(requester->sq);
            free(requester);
            continue;
        }

        requester->at = (requester->resets == qp->resets) ?
                        mlx5sim_requester_run(requester, qp, now) : UINT64_MAX;
        next          = (requester->at < next) ? requester->at : next;
        mlx5sim_unlock(&qp->sq_lock);
        requester_p = &requester->next;
    }

    return next;
}

/* Data of a read. @return whether they are taken */
static int mlx5sim_requester_read(mlx5sim_requester_t *requester,
                                  mlx5sim_qp_obj_t *qp, mlx5sim_sent_t *sent,
                                  uint64_t psn, const uint8_t *payload,
                                  unsigned length)
{
    uint32_t number = mlx5sim_requester_oldest(requester);
    unsigned mtu    = mlx5sim_qp_mtu(&qp->qp);
    uint32_t offset = (psn - sent->psn) * mtu;
    uint32_t left   = sent->length - offset;
    mlx5sim_wqe_t wqe;
    int ret;

    if (length != ((left < mtu) ? left : mtu)) {
        mlx5sim_requester_fail(requester, number, MLX5SIM_SYNDROME_BAD_RESP);
        return 0;
    }

    if (mlx5sim_transfer_fits_req(qp, sent->signaled, sent->length)) {
        memcpy(sent->data, payload, length); /* it is the only packet */
        sent->scattered = length;
        return 1;
    }

    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, sent->index, &wqe);
    ret = mlx5sim_frame_scatter(qp, &wqe, offset, length, payload);
    if (ret == -EFAULT) {
        mlx5sim_requester_fail(requester, number, MLX5SIM_SYNDROME_LOCAL_PROT);
    }
    return ret == 0;
}

/* The value before an atomic. @return whether it is taken */
static int mlx5sim_requester_atomic(mlx5sim_requester_t *requester,
                                    mlx5sim_qp_obj_t *qp, mlx5sim_sent_t *sent,
                                    uint64_t old)
{
    mlx5sim_landed_t landed = {0};
    mlx5sim_wqe_t wqe;

    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, sent->index, &wqe);
    if (mlx5sim_packet_answer_atomic(qp, &wqe, old, &landed) !=
        MLX5SIM_LANDED_ACK) {
        mlx5sim_requester_fail(requester, mlx5sim_requester_oldest(requester),
                               landed.syndrome);
        return 0;
    }

    sent->scattered = landed.scattered;
    memcpy(sent->data, landed.data, landed.scattered);
    return 1;
}

/* Data or an atomic's result have come for packet @a psn */
static void mlx5sim_requester_data(mlx5sim_requester_t *requester,
                                   mlx5sim_qp_obj_t *qp, uint64_t psn,
                                   const mlx5sim_roce_t *packet,
                                   const uint8_t *payload, unsigned length)
{
    mlx5sim_sent_t *sent;
    int is_atomic, ret;
    uint32_t number;

    if (!mlx5sim_requester_implies(requester, qp, psn)) {
        return;
    }

    number    = mlx5sim_requester_oldest(requester);
    sent      = mlx5sim_requester_sent(requester, number);
    is_atomic = packet->opcode == MLX5SIM_BTH_ATOMIC_ACK;
    if ((number == requester->tail) || (psn != requester->una) ||
        (psn < sent->psn) || !sent->is_request ||
        (is_atomic != !!(mlx5sim_opcode_flags(sent->opcode) &
                         MLX5SIM_OP_ATOMIC)) ||
        mlx5sim_requester_is_stop(requester, number)) {
        return;
    }

    ret = is_atomic ? mlx5sim_requester_atomic(requester, qp, sent,
                                               packet->old) :
                      mlx5sim_requester_read(requester, qp, sent, psn, payload,
                                             length);
    if (ret) {
        mlx5sim_requester_acked(requester, qp, psn + 1);
    }
}

/* The responder refuses packet @a psn, or has no receive for it */
static void mlx5sim_requester_nak(mlx5sim_requester_t *requester,
                                  mlx5sim_qp_obj_t *qp, uint64_t psn,
                                  uint8_t syndrome)
{
    uint64_t pause;

    if (!mlx5sim_requester_implies(requester, qp, psn)) {
        return;
    }

    if ((syndrome & 0xe0) == MLX5SIM_AETH_RNR) {
        if ((qp->qp.rnr_retry != 7) &&
            (requester->rnr_retries++ >= qp->qp.rnr_retry)) {
            mlx5sim_requester_fail(requester,
                                   mlx5sim_requester_oldest(requester),
                                   MLX5SIM_SYNDROME_RNR_RETRY);
            return;
        }
        pause            = mlx5sim_rnr_timer_ns(syndrome & 0x1f);
        requester->pause = mlx5sim_now_ns() + pause;
        requester->snd   = requester->una;
        requester->cur   = mlx5sim_requester_oldest(requester);
        requester->timer = 0;
        return;
    }

    switch (syndrome) {
    case MLX5SIM_AETH_NAK_PSN:
        mlx5sim_requester_close_gap(requester, qp);
        break;
    case MLX5SIM_AETH_NAK_INVALID:
        mlx5sim_requester_fail(requester, mlx5sim_requester_oldest(requester),
                               MLX5SIM_SYNDROME_REMOTE_INVAL_REQ);
        break;
    case MLX5SIM_AETH_NAK_ACCESS:
        mlx5sim_requester_fail(requester, mlx5sim_requester_oldest(requester),
                               MLX5SIM_SYNDROME_REMOTE_ACCESS);
        break;
    case MLX5SIM_AETH_NAK_OPERATION:
        mlx5sim_requester_fail(requester, mlx5sim_requester_oldest(requester),
                               MLX5SIM_SYNDROME_REMOTE_OP);
        break;
    default:
        break;
    }
}

/* With the lock of the QP held */
static void mlx5sim_requester_hear_locked(mlx5sim_requester_t *requester,
                                          mlx5sim_qp_obj_t *qp,
                                          const mlx5sim_roce_t *packet,
                                          const uint8_t *payload,
                                          unsigned length)
{
    uint32_t una   = mlx5sim_psn_add(qp->sq_psn, requester->una);
    uint32_t ahead = mlx5sim_psn_ahead(packet->psn, una);
    uint64_t psn   = requester->una + ahead;

    /* one that was acknowledged already, or never sent (IBTA "ghost
     * acknowledge") */
    if (psn >= requester->max_snd) {
        return;
    }

    if (packet->opcode != MLX5SIM_BTH_ACK) {
        mlx5sim_requester_data(requester, qp, psn, packet, payload, length);
    } else if ((packet->syndrome & 0xe0) != 0) {
        mlx5sim_requester_nak(requester, qp, psn, packet->syndrome);
    } else {
        (void)mlx5sim_requester_implies(requester, qp, psn + 1);
    }
}

void mlx5sim_requester_hear(const mlx5sim_roce_path_t *path,
                            const mlx5sim_roce_t *packet,
                            const uint8_t *payload, unsigned length)
{
    mlx5sim_qp_obj_t *qp = mlx5sim_requester_lock(packet->dqpn);
    mlx5sim_requester_t *requester;

    if (qp == NULL) {
        return;
    }

    requester = mlx5sim_requesters[mlx5sim_obj_index(MLX5SIM_OBJ_QP, qp)];
    if ((requester != NULL) && (requester->gen == qp->o.gen) &&
        (requester->resets == qp->resets) &&
        (qp->qp.state == MLX5SIM_QPS_RTS) && !mlx5sim_qp_is_cut_off(qp) &&
        (memcmp(path->route.sgid, qp->qp.dgid, sizeof(qp->qp.dgid)) == 0) &&
        (memcmp(path->route.dgid, qp->qp.sgid, sizeof(qp->qp.sgid)) == 0)) {
        mlx5sim_requester_hear_locked(requester, qp, packet, payload, length);
        requester->at = 0;
    }
    mlx5sim_unlock(&qp->sq_lock);
}
