/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_FLIGHTS_H_
#define MLX5SIM_FLIGHTS_H_

#include <sim/engine/engine.h>
#include <sim/engine/packet.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a requester has under way: work requests between fetch and completion,
 * and which of their packets were sent and acknowledged (go-back-N: IBTA volume
 * 1, "Requester side RC behaviour"). Pipes of deferred execution and
 * mlx5sim-wire have the same. Nothing is sent here, and there is no clock: what
 * has happened, and when, is told.
 *
 * Packets are counted from the first one that the QP sent since it left RESET,
 * and this number plus sq_psn is the PSN on the wire.
 */

enum {
    MLX5SIM_FLIGHTS_MAX = 64 /* work requests fetched and not complete */
};


/** A work request between fetch and completion. */
typedef struct mlx5sim_flight {
    uint64_t psn;        /* number of its first packet */
    uint64_t sum;        /* pipes: of the bytes of its WQE */
    uint32_t packets;    /* PSNs that it takes */
    uint32_t length;     /* payload, bytes */
    uint16_t index;      /* block in the send queue */
    uint8_t  num_bb;
    uint8_t  ds;         /* pipes: of its WQE */
    uint16_t stream;     /* of a DC initiator */
    uint8_t  opcode;
    uint8_t  is_request; /* read or atomic: answered by data */
    uint8_t  is_early;   /* pipes: a write whose data may come before their
                            turn */
    uint8_t  signaled;
    uint8_t  fence;
    uint8_t  syndrome;   /* of the one that fails */
    uint8_t  scattered;  /* bytes of the answer that go into the CQE */
    uint8_t  data[64];   /* these */
} mlx5sim_flight_t;


typedef struct mlx5sim_flights {
    uint32_t         head;        /* oldest flight; counts freely, as others */
    uint32_t         tail;        /* one after the last */
    uint32_t         cur;         /* the one to send next */
    uint32_t         stop;        /* the one that fails, if has_stop */
    int              has_stop;
    uint16_t         fetched;     /* block to fetch next */
    uint64_t         una;         /* first packet that is not acknowledged */
    uint64_t         snd;         /* next one to be sent */
    uint64_t         max_snd;     /* one after the last that ever was */
    uint64_t         end;         /* one after the last of all flights */
    uint64_t         gap;         /* una + 1 when something missing was
                                     noticed */
    unsigned         retries;     /* since something was acknowledged */
    unsigned         rnr_retries;
    uint64_t         timer;       /* when to repeat what is not acknowledged,
                                     ns; 0: nothing is waited for */
    uint32_t         chunk;       /* packets that a read request asks for at
                                     most */
    mlx5sim_flight_t flights[MLX5SIM_FLIGHTS_MAX];
} mlx5sim_flights_t;


static inline mlx5sim_flight_t *
mlx5sim_flights_at(const mlx5sim_flights_t *flights, uint32_t number)
{
    return (mlx5sim_flight_t*)&flights->flights[number % MLX5SIM_FLIGHTS_MAX];
}

/** Number of the packet after the last one of a flight. */
static inline uint64_t mlx5sim_flight_end(const mlx5sim_flight_t *flight)
{
    return flight->psn + flight->packets;
}

/** Whether a flight is the one that fails. */
static inline int
mlx5sim_flights_is_stop(const mlx5sim_flights_t *flights, uint32_t number)
{
    return flights->has_stop && (number == flights->stop);
}

/** How many packets @a psn, as on the wire, is ahead of the first one that is
 *  not acknowledged, 0 to 2^24 - 1. */
static inline uint32_t
mlx5sim_flights_ahead(const mlx5sim_flights_t *flights, uint32_t sq_psn,
                      uint32_t psn)
{
    return mlx5sim_psn_ahead(psn, mlx5sim_psn_add(sq_psn, flights->una));
}

/** Whether a packet was sent. @param psn  Its number, not before una. */
static inline int
mlx5sim_flights_has_sent(const mlx5sim_flights_t *flights, uint64_t psn)
{
    return (psn < flights->max_snd) && (psn < flights->end);
}

/** The QP begins anew.
 *  @param fetched  Block of the send queue to begin with.
 *  @param chunk    Packets that a read request asks for at most. */
void mlx5sim_flights_begin(mlx5sim_flights_t *flights, uint16_t fetched,
                           uint32_t chunk);

/** Go on with what another requester has begun, which is no more. What it had
 *  sent is sent again, and acknowledgements of it are heard.
 *  @param una  First packet of the work request to begin with.
 *  @param end  One after the last packet that was ever sent. */
void mlx5sim_flights_resume(mlx5sim_flights_t *flights, uint64_t una,
                            uint64_t end);

/** Forget what is under way; go on with block @a fetched and the PSN after all
 *  that there were. */
void mlx5sim_flights_clear(mlx5sim_flights_t *flights, uint16_t fetched);

/** Whether there is room for a further flight, and none fails. */
int mlx5sim_flights_have_room(const mlx5sim_flights_t *flights);

/** Add the work request at @a fetched.
 *  @param syndrome  It fails with this one, and sends nothing; or 0. */
mlx5sim_flight_t *
mlx5sim_flights_add(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                    const mlx5sim_wqe_t *wqe, unsigned syndrome);

/** Oldest flight that is not acknowledged, or tail. */
uint32_t mlx5sim_flights_oldest(const mlx5sim_flights_t *flights);

/** Let a flight fail, as soon as all before it are complete; no more of it is
 *  sent. The earliest that is to fail counts. There is none at tail. */
void mlx5sim_flights_fail(mlx5sim_flights_t *flights, uint32_t number,
                          unsigned syndrome);

/** Let the oldest flight that is not acknowledged fail. */
void mlx5sim_flights_fail_oldest(mlx5sim_flights_t *flights, unsigned syndrome);

/** Whether nothing of the flight to send next was ever sent. */
int mlx5sim_flights_is_new(const mlx5sim_flights_t *flights);

/** No flight is to be begun any more: whether all that were are complete. Those
 *  that were fetched only are forgotten then, as their work requests may
 *  change.
 *  @param fetched  Block of the first of these. */
int mlx5sim_flights_drain(mlx5sim_flights_t *flights, uint16_t fetched);

/** Requests for data that were sent and wait for their answer. */
unsigned mlx5sim_flights_depth(const mlx5sim_flights_t *flights);

/** Whether the next packet may be sent: there is one, its flight does not fail,
 *  and it has not to wait for reads and atomics that are under way, after a
 *  fence (IBTA "Fence") or because the responder has no more resources. */
int mlx5sim_flights_can_send(const mlx5sim_flights_t *flights,
                             const mlx5sim_qp_t *qp);

/** PSNs that the next packet takes, of the current flight. */
uint32_t mlx5sim_flights_next(const mlx5sim_flights_t *flights);

/** The next packet was sent, or lost; it takes @a packets PSNs. Without RC,
 *  nobody will tell of it: it counts as acknowledged. */
void mlx5sim_flights_sent(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                          uint32_t packets);

/** Send again from the first packet that is not acknowledged.
 *  @return 1; or 0: retry_cnt were in vain, and the oldest flight fails. */
int mlx5sim_flights_retry(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp);

/** The same, but it is no retry. */
void mlx5sim_flights_go_back(mlx5sim_flights_t *flights);

/** All packets before @a psn are acknowledged. */
void mlx5sim_flights_acked(mlx5sim_flights_t *flights, uint64_t psn);

/** Do not send again what was acknowledged after all. */
void mlx5sim_flights_skip(mlx5sim_flights_t *flights);

/** Packet una was sent, and is missing. What is behind it says the same: go
 *  back once. @return as mlx5sim_flights_retry(), and 1 if nothing is done. */
int mlx5sim_flights_close_gap(mlx5sim_flights_t *flights,
                              const mlx5sim_qp_t *qp);

/** An answer about packet @a psn says that all before it have arrived; but if
 *  there is a read or an atomic among them whose answer has not come, that was
 *  lost, and is packet una now (IBTA "Implied NAK").
 *  @return whether the answer is of use; if not, go back. */
int mlx5sim_flights_hear(mlx5sim_flights_t *flights, uint64_t psn);

/** The responder has no receive for packet una. Its pause is the caller's
 *  affair. @return 1: send again from there on; 0: rnr_retry were in vain, and
 *  the oldest flight fails. */
int mlx5sim_flights_rnr(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp);

/** Wait for answers from @a now on, in ns, if something is under way and the QP
 *  has a timeout. */
void mlx5sim_flights_set_timer(mlx5sim_flights_t *flights,
                               const mlx5sim_qp_t *qp, uint64_t now);

/** It is @a now: retry if answers were waited for in vain. */
void mlx5sim_flights_expire(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                            uint64_t now);

/** Whether the oldest flight is complete, or is the one that fails. */
int mlx5sim_flights_can_complete(const mlx5sim_flights_t *flights);

/** Take the oldest flight out.
 *  @param plan_p  What it does to the requester.
 *  @return the flight, until a further one is added. */
const mlx5sim_flight_t *
mlx5sim_flights_complete(mlx5sim_flights_t *flights, const mlx5sim_qp_t *qp,
                         mlx5sim_plan_t *plan_p);

#ifdef __cplusplus
}
#endif

#endif
