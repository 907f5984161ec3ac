/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SWITCH_HEAP_H_
#define MLX5SIM_SWITCH_HEAP_H_

#include <stddef.h>
#include <stdint.h>

/* Frames that are sent later, the next one first. */

enum {
    MLX5SIM_SWITCH_HEAP_MAX = 1 << 16 /* frames that wait */
};

/* A frame that waits, allocated with malloc() */
typedef struct mlx5sim_switch_frame {
    struct mlx5sim_switch_frame *next; /* that others are to overtake */
    uint64_t due;                      /* when it is sent, ns */
    uint64_t order;                    /* of those that are due together */
    size_t   place;                    /* in the heap */
    unsigned from;                     /* ports */
    unsigned to;
    uint32_t overtaken;                /* by so many yet */
    uint32_t length;
    uint8_t  data[];
} mlx5sim_switch_frame_t;

typedef struct mlx5sim_switch_heap {
    size_t                 num;
    uint64_t               order;      /* of the next frame */
    mlx5sim_switch_frame_t *frames[MLX5SIM_SWITCH_HEAP_MAX];
} mlx5sim_switch_heap_t;

/** Add a frame, of which @a due is set.
 *  @return 0, or -1 if no more may wait: the frame is not in the heap. */
int mlx5sim_switch_heap_push(mlx5sim_switch_heap_t *heap,
                             mlx5sim_switch_frame_t *frame);

/** Let a frame of the heap wait until @a due, which is sooner than before. */
void mlx5sim_switch_heap_hasten(mlx5sim_switch_heap_t *heap,
                                mlx5sim_switch_frame_t *frame, uint64_t due);

/** Take the next frame, if it is due at @a now; the caller frees it.
 *  @return NULL if none is. */
mlx5sim_switch_frame_t *
mlx5sim_switch_heap_pop(mlx5sim_switch_heap_t *heap, uint64_t now);

#endif
