/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SWITCH_FAULT_H_
#define MLX5SIM_SWITCH_FAULT_H_

#include <stddef.h>
#include <stdint.h>

/*
 * What the switch does to frames. Each decision is a hash of the seed, the pair
 * of ports and the number of the frame on that pair. So it does not depend on
 * time, nor on what other pairs send.
 */

enum {
    MLX5SIM_SWITCH_PER  = 1000, /* rates are of so many */
    MLX5SIM_SWITCH_HOLD = 4     /* frames that overtake another one at most */
};

/* No bit is changed */
#define MLX5SIM_SWITCH_NO_BIT UINT32_MAX

typedef struct mlx5sim_switch_rates {
    uint64_t seed;
    uint64_t loss;      /* of MLX5SIM_SWITCH_PER, as the next three */
    uint64_t reorder;
    uint64_t duplicate;
    uint64_t corrupt;
    uint64_t delay;     /* of each frame, ns */
    uint64_t jitter;    /* of it at most so much more, ns */
} mlx5sim_switch_rates_t;

/* What happens to a frame */
typedef struct mlx5sim_switch_fate {
    int      lost;
    int      duplicate;
    uint32_t overtaken; /* by so many frames of its pair; 0: it is not */
    uint32_t bit;       /* that is changed, from the start of the frame */
    uint64_t delay[2];  /* of it and of its duplicate, ns */
} mlx5sim_switch_fate_t;

/** Find what programs send by RoCE v2.
 *  @return offset of the BTH in an Ethernet frame of @a length bytes, or 0 if
 *          it is something else. */
size_t mlx5sim_switch_find_bth(const uint8_t *frame, size_t length);

/** Decide about frame @a number, from 0 on, of those that go from one port to
 *  another.
 *  @param begin   First byte that may be changed.
 *  @param length  Bytes of the frame, more than @a begin. */
void mlx5sim_switch_decide(const mlx5sim_switch_rates_t *rates, unsigned from,
                           unsigned to, uint64_t number, size_t begin,
                           size_t length, mlx5sim_switch_fate_t *fate_p);

/** Set a rate, a time or the seed by its name.
 *  @param value  Number, of times with unit: ns, us, ms or s.
 *  @return NULL, or what @a value should be; an empty text if nothing has this
 *          name. */
const char *mlx5sim_switch_set(mlx5sim_switch_rates_t *rates, const char *name,
                               const char *value);

#endif
