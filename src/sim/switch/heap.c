/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/switch/heap.h>


static int mlx5sim_switch_heap_is_before(const mlx5sim_switch_frame_t *frame,
                                         const mlx5sim_switch_frame_t *other)
{
    return (frame->due < other->due) ||
           ((frame->due == other->due) && (frame->order < other->order));
}

static void mlx5sim_switch_heap_put(mlx5sim_switch_heap_t *heap, size_t place,
                                    mlx5sim_switch_frame_t *frame)
{
    heap->frames[place] = frame;
    frame->place        = place;
}

static void mlx5sim_switch_heap_rise(mlx5sim_switch_heap_t *heap,
                                     mlx5sim_switch_frame_t *frame)
{
    size_t place = frame->place;
    size_t parent;

    while (place > 0) {
        parent = (place - 1) / 2;
        if (!mlx5sim_switch_heap_is_before(frame, heap->frames[parent])) {
            break;
        }
        mlx5sim_switch_heap_put(heap, place, heap->frames[parent]);
        place = parent;
    }

    mlx5sim_switch_heap_put(heap, place, frame);
}

int mlx5sim_switch_heap_push(mlx5sim_switch_heap_t *heap,
                             mlx5sim_switch_frame_t *frame)
{
    if (heap->num == MLX5SIM_SWITCH_HEAP_MAX) {
        return -1;
    }

    frame->order = heap->order++;
    frame->place = heap->num++;
    mlx5sim_switch_heap_rise(heap, frame);
    return 0;
}

void mlx5sim_switch_heap_hasten(mlx5sim_switch_heap_t *heap,
                                mlx5sim_switch_frame_t *frame, uint64_t due)
{
    frame->due   = due;
    frame->order = heap->order++;
    mlx5sim_switch_heap_rise(heap, frame);
}

mlx5sim_switch_frame_t *
mlx5sim_switch_heap_pop(mlx5sim_switch_heap_t *heap, uint64_t now)
{
    size_t place = 0;
    mlx5sim_switch_frame_t *first, *last;
    size_t child;

    if ((heap->num == 0) || (heap->frames[0]->due > now)) {
        return NULL;
    }

    first = heap->frames[0];
    last  = heap->frames[--heap->num];
    while ((child = (place * 2) + 1) < heap->num) {
        if ((child + 1 < heap->num) &&
            mlx5sim_switch_heap_is_before(heap->frames[child + 1],
                                          heap->frames[child])) {
            ++child;
        }
        if (!mlx5sim_switch_heap_is_before(heap->frames[child], last)) {
            break;
        }
        mlx5sim_switch_heap_put(heap, place, heap->frames[child]);
        place = child;
    }

    if (heap->num > 0) {
        mlx5sim_switch_heap_put(heap, place, last);
    }
    return first;
}
