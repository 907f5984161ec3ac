/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PACKET_H_
#define MLX5SIM_PACKET_H_

#include <sim/exec/responder.h>
#include <sim/objs/obj.h>

/*
 * Packets of a connected QP, in deferred execution: what one does at its
 * responder, and what an answer does when it is back. The scheduler decides
 * when, and whether they arrive at all.
 */

/** A packet on its way to the responder. */
typedef struct mlx5sim_packet {
    uint32_t psn;      /* 24 bits */
    uint32_t offset;   /* of its payload in the message, bytes */
    uint32_t length;   /* of its payload; 0 in requests for data */
    uint32_t packets;  /* PSNs it takes: those of the answer, if to a read */
    uint32_t placed;   /* pieces of it that are in memory already, as
                          mlx5sim_pieces_all() numbers them */
    uint8_t  is_first; /* of the message */
    uint8_t  is_last;
    uint8_t  depth;    /* reads and atomics that the responder is busy with */
} mlx5sim_packet_t;


/** What becomes of a packet. */
typedef enum {
    MLX5SIM_LANDED_QUIET,  /* taken or dropped; nobody is told */
    MLX5SIM_LANDED_ACK,    /* all packets before answer.psn are there */
    MLX5SIM_LANDED_READ,   /* the responder will send data */
    MLX5SIM_LANDED_ATOMIC, /* executed; answer.old goes back */
    MLX5SIM_LANDED_RNR,    /* no receive: again after answer.timer */
    MLX5SIM_LANDED_GAP,    /* packet answer.psn is missing */
    MLX5SIM_LANDED_ERROR,  /* refused with answer.syndrome */
    MLX5SIM_LANDED_LOCAL,  /* answer.syndrome found by the requester itself: it
                              was not sent */
    MLX5SIM_LANDED_IGNORED,/* the responder does not take packets of this QP, at
                              present at least */
    MLX5SIM_LANDED_GONE    /* nobody is there */
} mlx5sim_landing_t;


/** What the responder says. */
typedef struct mlx5sim_landed {
    uint32_t psn;
    uint8_t  syndrome; /* RNR: the timer, IBTA encoding */
    uint64_t timer;    /* ns */
    uint64_t old;      /* value before an atomic, host order */
    uint8_t  scattered; /* bytes of an answer that go into the CQE */
    uint8_t  data[64]; /* these */
} mlx5sim_landed_t;


/**
 * Have @a packet, of @a wqe, arrive.
 *
 * @param qp    Requester, of this process; its sq_lock is held.
 * @param wqe   The work request as it is in the send queue now: its payload is
 *              read from memory here.
 */
mlx5sim_landing_t
mlx5sim_packet_land(mlx5sim_qp_obj_t *qp, mlx5sim_wqe_t *wqe,
                    const mlx5sim_packet_t *packet,
                    mlx5sim_landed_t *landed_p);

/** Count a packet that is sent.
 *  @param resp  Who gets it; NULL: it is lost. */
void mlx5sim_packet_sent(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_qp_obj_t *resp,
                         const mlx5sim_packet_t *packet);

/**
 * Whether the data of a write may reach the responder's memory in any order:
 * that of its queue pair's packets, or that of pieces of them.
 *
 * @param wqe   An RDMA write of an RC QP.
 */
int mlx5sim_packet_is_early(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe);

/**
 * Have data of a packet reach memory before its turn: all of it, or a piece if
 * the key has relaxed ordering. The responder's state does not change, and
 * packets that it would refuse have no effect.
 *
 * @param packet     Of a write, with the pieces that are in memory so far.
 * @param first_psn  The responder must have taken all packets in front of this
 *                   one.
 * @param sent       Packets sent from there on, in order.
 * @param dice       Random number: it chooses the piece.
 *
 * @return the pieces that are in memory now.
 */
uint32_t mlx5sim_packet_place(mlx5sim_qp_obj_t *qp, mlx5sim_wqe_t *wqe,
                              const mlx5sim_packet_t *packet,
                              uint32_t first_psn, uint32_t sent, uint64_t dice);

/**
 * Work out what the answer to a read does.
 *
 * @param run          Its responder is found and locked, if there is one.
 * @param is_nak_next  As of mlx5sim_packet_answer_read().
 *
 * @return the responder's process, or NULL without a plan: it has gone.
 */
mlx5sim_proc_t *
mlx5sim_packet_plan_read(mlx5sim_run_t *run, const mlx5sim_wqe_t *wqe,
                         int is_nak_next, mlx5sim_plan_t *plan_p);

/** Have data of a read arrive at the requester: @a length bytes from @a offset
 *  on, which the responder reads from its memory now.
 *  @param is_nak_next  It has refused a later request, which is why it may be
 *                      in the error state.
 *  @return MLX5SIM_LANDED_ACK, _LOCAL, _ERROR, _IGNORED or _GONE. */
mlx5sim_landing_t
mlx5sim_packet_answer_read(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                           uint32_t offset, uint32_t length, int is_nak_next,
                           mlx5sim_landed_t *landed_p);

/** Have the result of an atomic arrive at the requester.
 *  @return MLX5SIM_LANDED_ACK or _LOCAL. */
mlx5sim_landing_t
mlx5sim_packet_answer_atomic(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                             uint64_t old, mlx5sim_landed_t *landed_p);

#endif
