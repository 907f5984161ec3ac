/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CRC_H_
#define MLX5SIM_CRC_H_

#include <stdint.h>

/** CRC-32 of Ethernet (polynomial 0x04c11db7, least significant bit first), of
 *  bytes that follow others.
 *  @param crc  Of those before, not inverted; 0xffffffff: there are none. */
uint32_t mlx5sim_crc_add(uint32_t crc, const uint8_t *bytes, unsigned length);

#endif
