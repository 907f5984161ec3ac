/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_QUIRK_H_
#define MLX5SIM_QUIRK_H_

#include <stdint.h>

/*
 * Environments that are not as usual: GIDs that cannot be used
 * (MLX5SIM_BAD_GIDS), ports without any (MLX5SIM_GIDLESS), receives that fail
 * (MLX5SIM_RECV_ERROR).
 */

/** Set of GID indices. @return 0, or -1 if the text is not a list of numbers
 *  below 32. */
int mlx5sim_quirk_parse_gids(const char *text, uint32_t *gids_p);

/** Bit of a port in the set of mlx5sim_quirk_parse_ports().
 *  @param port  From 1 to 2. */
static inline uint32_t mlx5sim_quirk_port(unsigned dev, unsigned port)
{
    return 1u << (dev * 2 + port - 1);
}

/** Set of ports: "mlx5_0:1,mlx5_3:2", or an empty text. @return 0, or -1 if the
 *  text is no list of ports of up to 16 devices with 2 ports. */
int mlx5sim_quirk_parse_ports(const char *text, uint32_t *ports_p);

/** Receives of a QP that fail: NTH[+]:SYNDROME:VENDOR. */
typedef struct mlx5sim_quirk_recv {
    uint32_t nth;      /**< from 1; 0: none */
    uint8_t  onwards;  /**< "+": and all that follow */
    uint8_t  syndrome; /**< of the error CQE, not 0 */
    uint8_t  vendor;   /**< vendor's syndrome of it */
    uint8_t  is_abort; /**< "remote aborted": the message comes again */
} mlx5sim_quirk_recv_t;

/** An empty text is valid: no receive fails. @return 0, or -1. */
int mlx5sim_quirk_parse_recv(const char *text, mlx5sim_quirk_recv_t *recv_p);

#endif
