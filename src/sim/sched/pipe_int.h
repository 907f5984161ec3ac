/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PIPE_INT_H_
#define MLX5SIM_PIPE_INT_H_

#include <sim/sched/pipe.h>
#include <sim/engine/mlx5_def.h>
#include <sim/sched/flights.h>

/*
 * Inside of a pipe. All of it is under the sq_lock of the QP.
 */

enum {
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
    uint32_t          die;       /* of mlx5sim_pipe_new() */
    mlx5sim_flights_t flights;   /* without a timer: rounds are waited for */
    mlx5sim_answer_t  answers[MLX5SIM_PIPE_ANSWERS]; /* first to come first */
    unsigned          num_answers;
    uint32_t          messages;   /* of all flights so far */
    int               is_ignored; /* responder does not take our packets */
    int               is_gone;    /* nor will it ever */
    int               is_parked;  /* MLX5SIM_PARKED_* */
    int               has_flush;  /* in the error state: there may be something
                                     to be flushed */
    uint32_t          resets;     /* of the QP, when the pipe began */
    uint64_t          due[MLX5SIM_NUM_LANES];   /* round of the next step */
    uint64_t          steps[MLX5SIM_NUM_LANES]; /* made so far */
    uint64_t          sends;      /* packets sent, those lost too */
    uint64_t          heard;      /* packets of the responder, too */
    uint8_t           is_drawn[MLX5SIM_NUM_LANES]; /* due is set */
    uint32_t          placed[MLX5SIM_PIPE_WINDOW]; /* pieces of each packet from
                                     una on that have come before their turn; at
                                     its number modulo the window */
};


/** Try again from the first packet that is not acknowledged, or fail if that
 *  was done too often. */
void mlx5sim_pipe_retry(mlx5sim_pipe_t *pipe, const mlx5sim_qp_obj_t *qp);

/** The same, but it does not count. */
void mlx5sim_pipe_go_back(mlx5sim_pipe_t *pipe);

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
