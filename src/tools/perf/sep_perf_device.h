/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_DEVICE_H
#define SEP_PERF_DEVICE_H

#include <tools/perf/sep_perf_result.h>

#include <stdint.h>

/*
 * The software device, if that is what the process runs on. It is known by its
 * library, and says what it did through its own program, mlx5sim-stat: it is
 * another part of the house, of which nothing else is known here.
 */

/** @return Whether the process runs on the software device. */
int sep_perf_device_is_simulated(void);


/**
 * Ask the device for numbers of this process.
 *
 * @param [in]  names   What mlx5sim-stat --json calls them.
 * @param [out] values  As many.
 *
 * @return 0, or -1 if it does not tell.
 */
int sep_perf_device_values(const char *const *names, unsigned count,
                           uint64_t *values);


/** @return What the model calls an adapter that looks like this, or NULL.
 *  @param part_id  Vendor's number of the part. */
const char *sep_perf_device_adapter(unsigned part_id);

#endif
