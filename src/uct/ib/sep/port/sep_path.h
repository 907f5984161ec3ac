/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PATH_H
#define UCT_SEP_PATH_H

#include <uct/ib/sep/port/sep_port.h>

BEGIN_C_DECLS

/**
 * @file sep_path.h
 *
 * Paths through the fabric: how many connections to a peer pay off, and how the
 * fabric tells them apart (NUM_PATHS, LID_PATH_BITS, ROCE_PATH_FACTOR).
 */

/**
 * Take the path bits that the port's LMC allows: InfiniBand only, and at least
 * one.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message.
 */
ucs_status_t uct_sep_path_init_bits(const uct_sep_port_config_t *config,
                                    uct_sep_port_info_t *port);


/**
 * Set the number of paths; called once the path bits and the GID are known.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message.
 */
ucs_status_t uct_sep_path_init_count(const uct_sep_device_t *dev,
                                     const uct_sep_port_config_t *config,
                                     uct_sep_port_info_t *port);


/**
 * Have a queue pair send through the LAG port of its path: path i through port
 * i % num_lag + 1, as rc_mlx5 (uct_ib_mlx5_devx_set_qpc_port_affinity()).
 * Otherwise the kernel gives ports to queue pairs in turn (mlx5_ib,
 * get_tx_affinity()), and all paths may get one. Nothing happens if there is
 * one path, or if the device does not tell libmlx5 that it has several ports;
 * if it refuses, paths are left to it from then on, with a message.
 *
 * @param qp    In RTS: mlx5dv_modify_qp_lag_port(3) changes it there.
 * @param path  From 0.
 */
void uct_sep_path_bind(uct_sep_port_info_t *port, struct ibv_qp *qp,
                       unsigned path);


/** @return The part of the port's bandwidth that one path can have: its share,
 *          where paths have LAG ports of their own. */
double uct_sep_path_ratio(const uct_sep_port_info_t *port);

END_C_DECLS

#endif
