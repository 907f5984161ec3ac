/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_COUNTERS_H_
#define MLX5SIM_COUNTERS_H_

/** Counters of a port are about to be read, or their directory: have them in
 *  their files of sysfs, as they are now.
 *  @param path  A file or a directory; others are left alone. */
void mlx5sim_counters_refresh(const char *path);

#endif
