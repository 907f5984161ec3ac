/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CHANCE_H_
#define MLX5SIM_CHANCE_H_

#include <stdint.h>

/*
 * Deferred execution: whether this process uses it, and its dice. A throw
 * depends on nothing but the seed and what it is about, so that the same
 * program meets the same fate with the same seed, as far as its threads and
 * processes do the same.
 */

/** How a process executes work requests. */
typedef struct mlx5sim_chance {
    int      is_deferred; /* else a doorbell executes what it rings for */
    int      is_stepped;  /* deferred, and the program makes the rounds */
    unsigned delay;       /* rounds of the scheduler that a step may wait */
    unsigned loss;        /* packets of 1000 that are lost */
} mlx5sim_chance_t;

/** What a throw is about: first argument of mlx5sim_seed_draw(). */
typedef enum {
    MLX5SIM_CHANCE_SEND = 0x100,
                                 /* fetching a WQE, sending its first packet */
    MLX5SIM_CHANCE_CONTINUE, /* sending a further packet */
    MLX5SIM_CHANCE_ANSWER,   /* of the responder */
    MLX5SIM_CHANCE_COMPLETE, /* writing a CQE */
    MLX5SIM_CHANCE_TIMER,
    MLX5SIM_CHANCE_FLUSH,
    MLX5SIM_CHANCE_BURST,    /* how many packets at a time */
    MLX5SIM_CHANCE_ORDER,    /* of queue pairs, and of what one does */
    MLX5SIM_CHANCE_LOST,     /* packet of a requester */
    MLX5SIM_CHANCE_UNHEARD,  /* packet of a responder */
    MLX5SIM_CHANCE_GATHER,   /* how long completions are gathered */
    MLX5SIM_CHANCE_PLACE     /* which data come before their turn */
} mlx5sim_chance_kind_t;

/** Choose the mode. To be called before any work request is posted. */
void mlx5sim_chance_init(const mlx5sim_chance_t *chance);

/** Whether work requests are executed later than at the doorbell. */
int mlx5sim_chance_is_deferred(void);

/** Whether the program makes the rounds, mlx5sim_helper_step(), and no time
 *  passes otherwise. */
int mlx5sim_chance_is_stepped(void);

/** Throw for QP @a qpn (by mlx5sim_pipe_new()) and step @a number of its
 *  kind. */
uint64_t mlx5sim_chance(mlx5sim_chance_kind_t kind, uint32_t qpn,
                        uint64_t number);

/** Rounds that a step waits: none in half of all cases (seven of eight when a
 *  message continues), rarely many. */
unsigned mlx5sim_chance_wait(mlx5sim_chance_kind_t kind, uint32_t qpn,
                             uint64_t number);

/** Whether a packet is lost. */
int mlx5sim_chance_is_lost(mlx5sim_chance_kind_t kind, uint32_t qpn,
                           uint64_t number);

#endif
