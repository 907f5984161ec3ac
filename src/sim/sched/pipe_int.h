/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PIPE_INT_H_
#define MLX5SIM_PIPE_INT_H_

#include <sim/sched/pipe.h>
#include <sim/engine/mlx5_def.h>

/*
 * Inside of a pipe. Packets are counted from the first one that the QP sent
 * since it left RESET, and this number plus sq_psn is the PSN on the wire. All
 * of it is under the sq_lock of the QP.
 */

enum {
    MLX5SIM_PIPE_FLIGHTS = 64,  /* work requests fetched and not complete */
    MLX5SIM_PIPE_ANSWERS = 64,  /* answers of the responder under way */
    MLX5SIM_PIPE_WINDOW  = 256  /* packets from the first that is not
                                   acknowledged: data of further ones do not
                                   come before their turn */
};

/** What can be done independently of each other, each with its own waits. */
typedef enum {
    MLX5SIM_LANE_SEND,      /* fetch a WQE, send packets */
    MLX5SIM_LANE_ANSWER,    /* hear what the responder says */
    MLX5SIM_LANE_COMPLETE,
    MLX5SIM_LANE_TIMER,     /* notice that it says nothing */
    MLX5SIM_NUM_DUTIES,     /* one round goes through all of these */
    MLX5SIM_LANE_PLACE = MLX5SIM_NUM_DUTIES, /* data before their turn */
    MLX5SIM_NUM_LANES
} mlx5sim_lane_t;

/** Why nothing is sent before the QP's retry_at. */
enum {
    MLX5SIM_PARKED_NOT,
    MLX5SIM_PARKED_RETRY,   /* peer not connected yet */
    MLX5SIM_PARKED_RNR
};

/** A work request between fetch and completion. */
typedef struct mlx5sim_flight {
    uint64_t psn;        /* number of its first packet */
    uint64_t sum;        /* of the bytes of its WQE */
    uint32_t packets;
    uint32_t length;     /* payload, bytes */
    uint16_t index;      /* block in the send queue */
    uint8_t  num_bb;
    uint8_t  ds;
    uint8_t  opcode;
    uint8_t  is_request; /* read or atomic: answered by data */
    uint8_t  is_early;   /* a write whose data may come before their turn */
    uint8_t  signaled;
    uint8_t  fence;
    uint8_t  syndrome;   /* of the one that fails */
    uint8_t  scattered;  /* bytes of the answer that go into the CQE */
    uint8_t  data[64];   /* these */
} mlx5sim_flight_t;

/** What the responder says of packet number psn. */
typedef struct mlx5sim_answer {
    uint8_t  landing;    /* mlx5sim_landing_t */
    uint8_t  syndrome;   /* as of mlx5sim_landed_t */
    uint8_t  is_begun;   /* of a read: its first packet has come, or was lost */
    uint32_t packets;    /* of a read: how many are to come */
    uint32_t msn;        /* if packets are captured: mlx5sim_pipe_msn() */
    uint64_t psn;
    uint64_t timer;      /* ns */
    uint64_t old;
} mlx5sim_answer_t;

struct mlx5sim_pipe {
    uint32_t         die;        /* of mlx5sim_pipe_new() */
    mlx5sim_flight_t flights[MLX5SIM_PIPE_FLIGHTS];
    mlx5sim_answer_t answers[MLX5SIM_PIPE_ANSWERS]; /* first to come first */
    unsigned         num_answers;
    uint32_t         head;       /* oldest flight; counts freely, as the next */
    uint32_t         tail;       /* one after the last */
    uint32_t         cur;        /* the one to send next */
    uint32_t         stop;       /* the one that fails, if has_stop */
    int              has_stop;
    uint16_t         fetched;    /* block to fetch next */
    uint64_t         una;        /* first packet that is not acknowledged */
    uint64_t         snd;        /* next one to be sent */
    uint64_t         max_snd;    /* one after the last that ever was */
    uint64_t         end;        /* one after the last of all flights */
    uint32_t         messages;   /* of all flights so far */
    unsigned         retries;    /* since something was acknowledged */
    int              is_ignored; /* responder does not take our packets */
    int              is_gone;    /* nor will it ever */
    int              is_parked;  /* MLX5SIM_PARKED_* */
    int              has_flush;  /* in the error state: there may be something
                                    to be flushed */
    uint32_t         resets;     /* of the QP, when the pipe began */
    uint64_t         due[MLX5SIM_NUM_LANES];   /* round of the next step */
    uint64_t         steps[MLX5SIM_NUM_LANES]; /* made so far */
    uint64_t         sends;      /* packets sent, those lost too */
    uint64_t         heard;      /* packets of the responder, too */
    uint8_t          is_drawn[MLX5SIM_NUM_LANES]; /* due is set */
    uint32_t         placed[MLX5SIM_PIPE_WINDOW]; /* pieces of each packet from
                                    una on that have come before their turn; at
                                    its number modulo the window */
};


static inline mlx5sim_flight_t *
mlx5sim_pipe_flight(const mlx5sim_pipe_t *pipe, uint32_t number)
{
    return (mlx5sim_flight_t*)&pipe->flights[number % MLX5SIM_PIPE_FLIGHTS];
}

/** Whether a flight is the one that fails. */
static inline int
mlx5sim_pipe_is_stop(const mlx5sim_pipe_t *pipe, uint32_t number)
{
    return pipe->has_stop && (number == pipe->stop);
}

/** Whether the oldest flight is complete, or is the one that fails. */
int mlx5sim_pipe_can_complete(const mlx5sim_pipe_t *pipe);

/** Oldest flight that is not acknowledged, or tail. */
uint32_t mlx5sim_pipe_oldest(const mlx5sim_pipe_t *pipe);

/** Let a flight fail, as soon as all before it are complete; nothing from it on
 *  is sent. */
void mlx5sim_pipe_fail(mlx5sim_pipe_t *pipe, uint32_t number,
                       unsigned syndrome);

/** Send again from the first packet that is not acknowledged.
 *  @param is_retry  It counts as one; after retry_cnt of them, fail. */
void mlx5sim_pipe_go_back(mlx5sim_pipe_t *pipe, const mlx5sim_qp_obj_t *qp,
                          int is_retry);

/** Whether a WQE can be fetched, and fetching it. */
int mlx5sim_pipe_can_fetch(const mlx5sim_pipe_t *pipe,
                           const mlx5sim_qp_obj_t *qp);
void mlx5sim_pipe_fetch(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp);

/** Whether a packet can be sent, and sending it. */
int mlx5sim_pipe_can_send(const mlx5sim_pipe_t *pipe,
                          const mlx5sim_qp_obj_t *qp);
void mlx5sim_pipe_send(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp);

/** Pieces of packet number @a psn that have come before their turn. */
uint32_t mlx5sim_pipe_placed(const mlx5sim_pipe_t *pipe, uint64_t psn);

/** Whether data can come before their turn, and having some do so: a packet of
 *  consecutive writes, or a piece of one. It may fetch a further WQE to find
 *  them. */
int mlx5sim_pipe_can_place(const mlx5sim_pipe_t *pipe,
                           const mlx5sim_qp_obj_t *qp);
void mlx5sim_pipe_place(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                        uint64_t dice);

/** Hear the first answer, or the first packet of it. */
void mlx5sim_pipe_answer(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp);

/** Whether the responder has refused something. It is what it says last. */
int mlx5sim_pipe_is_nak_next(const mlx5sim_pipe_t *pipe);

/** Message sequence number of a responder that has taken all packets before
 *  number @a psn (IBTA "Message sequence number"). */
uint32_t mlx5sim_pipe_msn(const mlx5sim_pipe_t *pipe, uint64_t psn);

/** Capture an answer, or the first packet of it, that reaches the requester. */
void mlx5sim_pipe_tap_answer(mlx5sim_pipe_t *pipe, mlx5sim_qp_obj_t *qp,
                             const mlx5sim_answer_t *answer);

/** Read the WQE of a flight as it is now. @return 0, or -1 if it is not the
 *  same any more, which was reported. */
int mlx5sim_flight_read(mlx5sim_qp_obj_t *qp, mlx5sim_flight_t *flight,
                        mlx5sim_wqe_t *wqe_p);

/** Report a WQE that has changed since it was fetched. */
void mlx5sim_flight_check(mlx5sim_qp_obj_t *qp, mlx5sim_flight_t *flight);

/** Note what a packet that has been sent, number @a psn, brings as an
 *  answer. */
void mlx5sim_pipe_note(mlx5sim_pipe_t *pipe, const mlx5sim_answer_t *answer);

#endif
