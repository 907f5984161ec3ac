/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REFUSE_H_
#define MLX5SIM_REFUSE_H_

#include <sim/config/missing.h>

#include <stdint.h>

/*
 * Refusals of what is not emulated: each is logged once per process.
 */

/** Log that this is not emulated. @return -EOPNOTSUPP */
int mlx5sim_refuse(mlx5sim_missing_t missing);

/** Log the refusal of verbs command @a number, which has no row in the command
 *  tables. @return -EOPNOTSUPP */
int mlx5sim_refuse_command(uint32_t number);

/** Log the refusal of a method if that means that something is missing; most
 *  are also there as verbs commands. @return -EPROTONOSUPPORT, what a kernel
 *  without it says */
int mlx5sim_refuse_method(uint16_t object, uint16_t method);

#endif
