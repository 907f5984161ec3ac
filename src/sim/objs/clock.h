/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CLOCK_H_
#define MLX5SIM_CLOCK_H_

#include <stdint.h>

/*
 * The clock of all devices, which completions are stamped with: nanoseconds
 * that no process sees going backwards.
 */

/** Ticks per second, in kHz as in ib_uverbs_ex_query_device_resp. */
#define MLX5SIM_CLOCK_KHZ   1000000

/** Bits of the counter, as the kernel tells them (mlx5_ib_query_device). */
#define MLX5SIM_CLOCK_MASK  0x7fffffffffffffffull

/** Ticks so far. Callable from a signal handler. */
uint64_t mlx5sim_clock_now(void);

/** The time of day, in ns, and the ticks at that time. Callable from a signal
 *  handler. */
void mlx5sim_clock_of_day(uint64_t *nsec_p, uint64_t *ticks_p);

#endif
