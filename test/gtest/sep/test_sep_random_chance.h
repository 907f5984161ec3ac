/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_RANDOM_CHANCE_H
#define TEST_SEP_RANDOM_CHANCE_H

#include <cstdint>

/*
 * What would be left to chance in a process, apart from the device: random
 * numbers that the transport draws, and threads of UCX that handle events when
 * they come. Functions of libucs and the C library are replaced here for the
 * whole program, which notices once chance::fix() is called.
 */
namespace sep_random {

namespace chance {

/* From here on random numbers follow from a seed. Events and timers are handled
 * by who calls ucs_async_poll(), which without a context looks at those that
 * have none, and in the order in which they were set: UCX's depends on numbers
 * of files. Who waits for others, with sched_yield(), calls a function. */
void fix(uint64_t seed, void (*yield)());

/* A number that depends on the seed and on what it is for */
uint64_t draw(uint64_t what, uint64_t number);

} // namespace chance

} // namespace sep_random

#endif
