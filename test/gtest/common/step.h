/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file step.h
 *
 * Stepped execution of the software device (MLX5SIM_EXEC=stepped): nothing
 * happens but what the test makes happen, so the same seed does the same again,
 * in the same process too.
 */

#ifndef TEST_COMMON_STEP_H_
#define TEST_COMMON_STEP_H_

#include <stdint.h>

namespace step {

/**
 * Make one round of the device's scheduler.
 *
 * @return 1 if there is something under way, if only a timer; 0 if not; -1
 *         without the software device, or if its execution is not stepped.
 */
int make();

/**
 * Start over with a seed: rounds, the device's time, and numbers of queue
 * pairs. A device has to be open, nothing under way, and no other process in
 * its instance.
 */
void restart(uint64_t seed);

} // namespace step

#endif
