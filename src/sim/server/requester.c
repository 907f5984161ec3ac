/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/server/requester.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/exec/packet.h>
#include <sim/exec/responder.h>
#include <sim/exec/transfer.h>
#include <sim/exec/wqe.h>
#include <sim/net/frame.h>
#include <sim/objs/mem.h>
#include <sim/objs/pcie.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
#include <sim/sched/flights.h>
#include <sim/sched/park.h>
#include <sim/sched/sq.h>
#include <sim/server/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct mlx5sim_requester {
    struct mlx5sim_requester *next;   /* of the list of all */
    uint32_t          index;    /* of the QP */
    uint32_t          gen;      /* of its slot */
    uint32_t          resets;   /* of the QP, when this began */
    uint8_t           *sq;      /* copy of its send queue */
    uint64_t          pause;    /* nothing is sent before, ns */
    uint64_t          at;       /* when to look at it, ns */
    mlx5sim_flights_t flights;
} mlx5sim_requester_t;

/* By index of the QP; and all that there are */
static mlx5sim_requester_t *mlx5sim_requesters[MLX5SIM_MAX_QPS];
static mlx5sim_requester_t *mlx5sim_requester_list;


static void mlx5sim_requester_begin(mlx5sim_requester_t *requester,
                                    const mlx5sim_qp_obj_t *qp)
{
    requester->gen    = qp->o.gen;
    requester->resets = qp->resets;
    requester->pause  = 0;
    mlx5sim_flights_begin(&requester->flights, qp->sq_head,
                          MLX5SIM_REQUESTER_CHUNK);
    mlx5sim_flights_resume(&requester->flights, qp->wire_una, qp->wire_sent);
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

/* The oldest work request is complete */
static void mlx5sim_requester_done(mlx5sim_qp_obj_t *qp)
{
    qp->sq_head           = qp->wire_next_head;
    qp->wire_una          = qp->wire_next_una;
    atomic_thread_fence(memory_order_release);
    qp->wire_claim.active = 0;
}

/* Another mlx5sim-wire was killed while it wrote a completion, or before it had
 * noted that it has */
static void mlx5sim_requester_repair(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_cq_t *cq = mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq);

    mlx5sim_cq_lock(cq);
    mlx5sim_unlock(&cq->lock);
    if (qp->wire_claim.pushing) {
        mlx5sim_requester_done(qp);
    } else {
        qp->wire_claim.active = 0;
    }
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
    if (qp->wire_claim.active) {
        mlx5sim_requester_repair(qp);
    }
    if (qp->o.ready && (qp->qp.qpn == qpn) && qp->is_remote &&
        (mlx5sim_proc_by_tag(atomic_load(&qp->o.owner)) != NULL) &&
        !mlx5sim_qp_is_dead(qp)) {
        return qp;
    }

    mlx5sim_unlock(&qp->sq_lock);
    return NULL;
}

/* Something may have been acknowledged since @a una was what was not */
static void mlx5sim_requester_acked(mlx5sim_requester_t *requester,
                                    const mlx5sim_qp_obj_t *qp, uint64_t una)
{
    if (requester->flights.una != una) {
        mlx5sim_flights_skip(&requester->flights);
        mlx5sim_flights_set_timer(&requester->flights, &qp->qp,
                                  mlx5sim_now_ns());
    }
}

/* There is an answer about packet @a psn. @return whether it is of use */
static int mlx5sim_requester_implies(mlx5sim_requester_t *requester,
                                     const mlx5sim_qp_obj_t *qp, uint64_t psn)
{
    uint64_t una = requester->flights.una;
    int is_useful;

    is_useful = mlx5sim_flights_hear(&requester->flights, psn);
    mlx5sim_requester_acked(requester, qp, una);
    if (!is_useful) {
        (void)mlx5sim_flights_close_gap(&requester->flights, &qp->qp);
    }
    return is_useful;
}

/* Copy what was posted. @return 0, or -1: its process is gone */
static int mlx5sim_requester_copy(mlx5sim_requester_t *requester,
                                  const mlx5sim_qp_obj_t *qp, uint16_t posted)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    uint32_t first       = requester->flights.fetched & (qp->qp.sq_wqe_cnt - 1);
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

/* What the requester finds in its own request: 0 or a syndrome. One that is for
 * it alone is executed with that. */
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

    if (mlx5sim_opcode_is_local(wqe->opcode)) {
        return mlx5sim_wqe_local(qp, wqe);
    }

    mlx5sim_plan_make(&qp->qp, wqe, NULL, &env, &plan);
    return plan.req_error ? plan.req_cqe.syndrome : 0;
}

/* Fetch work requests. @return whether there are new ones */
static int mlx5sim_requester_fetch(mlx5sim_requester_t *requester,
                                   mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &requester->flights;
    uint16_t pi                = atomic_load(&qp->rung);
    uint16_t posted            = pi - flights->fetched;
    uint32_t tail              = flights->tail;
    mlx5sim_chk_t chk;
    mlx5sim_wqe_t wqe;

    if ((posted == 0) || qp->has_sigerr ||
        !mlx5sim_flights_have_room(flights)) {
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

    while ((posted > 0) && mlx5sim_flights_have_room(flights)) {
        chk = mlx5sim_wqe_decode(&qp->qp, requester->sq, flights->fetched,
                                 &wqe);
        if (wqe.num_bb > posted) {
            wqe.num_bb = posted;
            chk        = MLX5SIM_CHK_WQE_DS;
        }

        /* what is done with the fetch can't be taken back */
        if (qp->drain_sigerr && mlx5sim_opcode_is_local(wqe.opcode) &&
            (flights->snd != flights->end)) {
            break;
        }

        posted -= wqe.num_bb;
        (void)mlx5sim_flights_add(flights, &qp->qp, &wqe,
                                  mlx5sim_requester_check(qp, &wqe, chk));
    }

    if ((qp->qp.type != MLX5SIM_QPT_RC) && (qp->wire_sent <= flights->end)) {
        /* nothing is sent twice, by another mlx5sim-wire either */
        mlx5sim_flights_acked(flights, qp->wire_sent);
        mlx5sim_flights_skip(flights);
    }

    return flights->tail != tail;
}

static int mlx5sim_requester_can_send(const mlx5sim_requester_t *requester,
                                      const mlx5sim_qp_obj_t *qp, uint64_t now)
{
    const mlx5sim_flights_t *flights = &requester->flights;

    return (qp->qp.state == MLX5SIM_QPS_RTS) && (now >= requester->pause) &&
           (flights->snd - flights->una < MLX5SIM_REQUESTER_WINDOW) &&
           mlx5sim_flights_can_send(flights, &qp->qp) &&
           !(qp->has_sigerr && mlx5sim_flights_is_new(flights));
}

/* Send the next packet */
static void
mlx5sim_requester_send(mlx5sim_requester_t *requester, mlx5sim_qp_obj_t *qp)
{
    mlx5sim_flights_t *flights = &requester->flights;
    mlx5sim_flight_t *flight   = mlx5sim_flights_at(flights, flights->cur);
    uint32_t packets           = mlx5sim_flights_next(flights);
    uint32_t done              = flights->snd - flight->psn;
    unsigned mtu               = mlx5sim_qp_mtu(&qp->qp);
    uint32_t psn               = mlx5sim_psn_add(qp->sq_psn, flights->snd);
    uint32_t offset            = done * mtu;
    int is_last                = flight->is_request ||
                                 (done + packets == flight->packets);
    uint32_t length            = 0;
    uint8_t payload[MLX5SIM_MAX_MTU];
    mlx5sim_roce_path_t path;
    mlx5sim_roce_t packet;
    mlx5sim_wqe_t wqe;

    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, flight->index, &wqe);
    if (!flight->is_request) {
        length = is_last ? (flight->length - offset) : mtu;
        if (mlx5sim_frame_gather(qp, &wqe, offset, length, payload) != 0) {
            mlx5sim_flights_fail(flights, flights->cur,
                                 MLX5SIM_SYNDROME_LOCAL_PROT);
            return;
        }
    }

    mlx5sim_roce_request(&qp->qp, &wqe, psn, offset, (done == 0) ||
                         flight->is_request, is_last, &packet);
    if (flight->is_request && (done + packets < flight->packets)) {
        packet.dma_length = packets * mtu;
    }
    packet.ack_req |= (qp->qp.type == MLX5SIM_QPT_RC) && !flight->is_request &&
                      ((done % MLX5SIM_REQUESTER_ACKS) ==
                       MLX5SIM_REQUESTER_ACKS - 1);
    mlx5sim_frame_path(qp, &path);
    if (!mlx5sim_qp_is_cut_off(qp)) {
        mlx5sim_socket_send(qp->dev, qp->qp.port, &path, &packet, payload,
                            length);
    }

    mlx5sim_flights_sent(flights, &qp->qp, packets);
    qp->wire_sent = flights->max_snd; /* before it is */
    if (flights->una + packets == flights->snd) {
        mlx5sim_flights_set_timer(flights, &qp->qp, mlx5sim_now_ns());
    }
}

/* @return whether the oldest work request is complete, or fails */
static int mlx5sim_requester_complete(mlx5sim_requester_t *requester,
                                      mlx5sim_qp_obj_t *qp)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));
    const mlx5sim_flight_t *flight;
    mlx5sim_plan_t plan;

    if (!mlx5sim_flights_can_complete(&requester->flights)) {
        return 0;
    }

    flight = mlx5sim_flights_complete(&requester->flights, &qp->qp, &plan);
    if (plan.req_error) {
        qp->qp.state = (qp->qp.type == MLX5SIM_QPT_RC) ? MLX5SIM_QPS_ERR :
                                                         MLX5SIM_QPS_SQE;
    }

    ++qp->wqes;
    if (proc != NULL) {
        atomic_fetch_add_explicit(&proc->c.wqes, 1, memory_order_relaxed);
        if (!plan.req_error) {
            atomic_fetch_add_explicit(&proc->c.bytes, flight->length,
                                      memory_order_relaxed);
        }
    }
    qp->wire_next_head     = qp->sq_head + flight->num_bb;
    qp->wire_next_una      = mlx5sim_flight_end(flight);
    qp->wire_claim.pushing = !plan.has_req_cqe;
    atomic_thread_fence(memory_order_release);
    qp->wire_claim.active  = 1;
    if (plan.has_req_cqe) {
        mlx5sim_sq_complete(qp, &plan.req_cqe, &qp->wire_claim);
    }
    mlx5sim_requester_done(qp);
    return qp->qp.state == MLX5SIM_QPS_RTS;
}

/* With the lock of the QP held.
 * @return when to look again */
static uint64_t
mlx5sim_requester_run(mlx5sim_requester_t *requester, mlx5sim_qp_obj_t *qp,
                      uint64_t now)
{
    mlx5sim_flights_t *flights = &requester->flights;
    unsigned burst             = MLX5SIM_REQUESTER_BURST;
    uint64_t next              = UINT64_MAX;

    if (qp->qp.state == MLX5SIM_QPS_RTS) {
        mlx5sim_flights_expire(flights, &qp->qp, now);
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
        if (qp->has_sigerr && mlx5sim_flights_drain(flights, qp->sq_head)) {
            mlx5sim_sq_drained(qp);
        }
    }

    if ((qp->qp.state == MLX5SIM_QPS_ERR) ||
        (qp->qp.state == MLX5SIM_QPS_SQE)) {
        if ((uint16_t)atomic_load(&qp->rung) != qp->sq_head) {
            mlx5sim_qp_kick(qp); /* its process flushes the rest */
        }
        requester->resets = qp->resets - 1; /* begin behind that, if at all */
        return UINT64_MAX;
    }

    if (mlx5sim_requester_can_send(requester, qp, now)) {
        return now;
    }

    if (flights->timer != 0) {
        next = flights->timer;
    }
    if ((requester->pause > now) && (flights->snd != flights->end) &&
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

void mlx5sim_requester_resume(void)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    const mlx5sim_qp_obj_t *qp;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if (qp->o.has_locks && qp->is_remote) {
            mlx5sim_requester_wake(mlx5sim_qp_num(qp));
        }
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
                                  mlx5sim_qp_obj_t *qp,
                                  mlx5sim_flight_t *flight, uint64_t psn,
                                  const uint8_t *payload, unsigned length)
{
    unsigned mtu    = mlx5sim_qp_mtu(&qp->qp);
    uint32_t offset = (psn - flight->psn) * mtu;
    uint32_t left   = flight->length - offset;
    mlx5sim_wqe_t wqe;
    int ret;

    if (length != ((left < mtu) ? left : mtu)) {
        mlx5sim_flights_fail_oldest(&requester->flights,
                                    MLX5SIM_SYNDROME_BAD_RESP);
        return 0;
    }

    /* nothing goes into a CQE, either, if the key is wrong */
    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, flight->index, &wqe);
    if (!mlx5sim_frame_can_scatter(qp, &wqe)) {
        mlx5sim_flights_fail_oldest(&requester->flights,
                                    MLX5SIM_SYNDROME_LOCAL_PROT);
        return 0;
    }

    if (mlx5sim_transfer_fits_req(qp, flight->signaled, flight->length)) {
        memcpy(flight->data, payload, length); /* it is the only packet */
        flight->scattered = length;
        return 1;
    }

    ret = mlx5sim_frame_scatter(qp, &wqe, offset, length, payload);
    if (ret == -EFAULT) {
        mlx5sim_flights_fail_oldest(&requester->flights,
                                    MLX5SIM_SYNDROME_LOCAL_PROT);
    }
    return ret == 0;
}

/* The value before an atomic. @return whether it is taken */
static int mlx5sim_requester_atomic(mlx5sim_requester_t *requester,
                                    mlx5sim_qp_obj_t *qp,
                                    mlx5sim_flight_t *flight, uint64_t old)
{
    mlx5sim_landed_t landed = {0};
    mlx5sim_wqe_t wqe;

    (void)mlx5sim_wqe_decode(&qp->qp, requester->sq, flight->index, &wqe);
    if (mlx5sim_packet_answer_atomic(qp, &wqe, old, &landed) !=
        MLX5SIM_LANDED_ACK) {
        mlx5sim_flights_fail_oldest(&requester->flights, landed.syndrome);
        return 0;
    }

    flight->scattered = landed.scattered;
    memcpy(flight->data, landed.data, landed.scattered);
    return 1;
}

/* Data or an atomic's result have come for packet @a psn */
static void mlx5sim_requester_data(mlx5sim_requester_t *requester,
                                   mlx5sim_qp_obj_t *qp, uint64_t psn,
                                   const mlx5sim_roce_t *packet,
                                   const uint8_t *payload, unsigned length)
{
    mlx5sim_flights_t *flights = &requester->flights;
    mlx5sim_flight_t *flight;
    int is_atomic, ret;
    uint32_t number;

    if (!mlx5sim_requester_implies(requester, qp, psn)) {
        return;
    }

    number    = mlx5sim_flights_oldest(flights);
    flight    = mlx5sim_flights_at(flights, number);
    is_atomic = packet->opcode == MLX5SIM_BTH_ATOMIC_ACK;
    if ((number == flights->tail) || (psn != flights->una) ||
        (psn < flight->psn) || !flight->is_request ||
        (is_atomic != !!(mlx5sim_opcode_flags(flight->opcode) &
                         MLX5SIM_OP_ATOMIC)) ||
        mlx5sim_flights_is_stop(flights, number)) {
        return;
    }

    ret = is_atomic ? mlx5sim_requester_atomic(requester, qp, flight,
                                               packet->old) :
                      mlx5sim_requester_read(requester, qp, flight, psn,
                                             payload, length);
    if (ret) {
        mlx5sim_flights_acked(flights, psn + 1);
        mlx5sim_requester_acked(requester, qp, psn);
    }
}

/* The responder refuses packet @a psn, or has no receive for it */
static void mlx5sim_requester_nak(mlx5sim_requester_t *requester,
                                  mlx5sim_qp_obj_t *qp, uint64_t psn,
                                  uint8_t syndrome)
{
    mlx5sim_flights_t *flights = &requester->flights;

    if (!mlx5sim_requester_implies(requester, qp, psn)) {
        return;
    }

    if ((syndrome & 0xe0) == MLX5SIM_AETH_RNR) {
        if (mlx5sim_flights_rnr(flights, &qp->qp)) {
            requester->pause = mlx5sim_now_ns() +
                               mlx5sim_rnr_timer_ns(syndrome & 0x1f);
        }
        return;
    }

    switch (syndrome) {
    case MLX5SIM_AETH_NAK_PSN:
        (void)mlx5sim_flights_close_gap(flights, &qp->qp);
        break;
    case MLX5SIM_AETH_NAK_INVALID:
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_REMOTE_INVAL_REQ);
        break;
    case MLX5SIM_AETH_NAK_ACCESS:
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_REMOTE_ACCESS);
        break;
    case MLX5SIM_AETH_NAK_OPERATION:
        mlx5sim_flights_fail_oldest(flights, MLX5SIM_SYNDROME_REMOTE_OP);
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
    const mlx5sim_flights_t *flights = &requester->flights;
    uint64_t psn                     = flights->una +
                                       mlx5sim_flights_ahead(flights,
                                                             qp->sq_psn,
                                                             packet->psn);

    /* one that was acknowledged already, or never sent (IBTA "ghost
     * acknowledge") */
    if (!mlx5sim_flights_has_sent(flights, psn)) {
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
        (qp->qp.type == MLX5SIM_QPT_RC) &&
        (qp->qp.state == MLX5SIM_QPS_RTS) && !mlx5sim_qp_is_cut_off(qp) &&
        mlx5sim_frame_is_from_peer(qp, path)) {
        mlx5sim_requester_hear_locked(requester, qp, packet, payload, length);
        requester->at = 0;
    }
    mlx5sim_unlock(&qp->sq_lock);
}
