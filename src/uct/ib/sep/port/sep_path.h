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

END_C_DECLS

#endif
