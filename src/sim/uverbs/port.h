/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PORT_H_
#define MLX5SIM_PORT_H_

#include <stdint.h>

/** Whether @a gid is in the GID table of the port. @a port counts from 1. */
int mlx5sim_port_has_gid(unsigned dev, unsigned port, const uint8_t *gid);

#endif
