/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_DEVX_CAPS_H_
#define MLX5SIM_DEVX_CAPS_H_

#include <sim/config/config.h>
#include <sim/devx/mailbox.h>

/*
 * What firmware tells of the device: pure functions of the configuration.
 * Layouts are cmd_hca_cap, atomic_caps, hca_vport_context, roce_addr_layout and
 * lag_context of the kernel's mlx5_ifc.h. What is not set, the device can't do.
 *
 * All write behind an all-zero reply and return its status.
 */

/** What on-demand paging is possible with: sets of enum
 *  ibv_odp_transport_cap_bits. RC and UD as a ConnectX-5. What is told of XRC
 *  and DC depends on the firmware; these sets are a guess. */
enum {
    MLX5SIM_ODP_CAPS_RC  = 0x3f, /* send, receive, write, read, atomic, SRQ */
    MLX5SIM_ODP_CAPS_UD  = 0x01, /* send */
    MLX5SIM_ODP_CAPS_XRC = 0x3d, /* all but receive, as there is an SRQ */
    MLX5SIM_ODP_CAPS_DC  = MLX5SIM_ODP_CAPS_XRC
};

/** Whether op_mod of QUERY_HCA_CAP asks for atomics, current values: the kernel
 *  asks that for libmlx5 in contexts without DEVX, too. */
int mlx5sim_fw_is_atomic_caps(unsigned op_mod);

/** QUERY_HCA_CAP: general capabilities (current and largest possible ones are
 *  the same), more general ones, the send scheduler, atomics, on-demand paging,
 *  device memory. Others are refused as a bad parameter, as by firmware without
 *  the group. */
unsigned mlx5sim_fw_query_caps(const mlx5sim_config_t *config,
                               mlx5sim_fw_t *fw);

/** QUERY_HCA_VPORT_CONTEXT of a port of device @a dev: InfiniBand only. */
unsigned mlx5sim_fw_query_vport(const mlx5sim_config_t *config, unsigned dev,
                                mlx5sim_fw_t *fw);

/** QUERY_LAG: all ports of the LAG are up, and each sends for itself. */
unsigned mlx5sim_fw_query_lag(const mlx5sim_config_t *config, mlx5sim_fw_t *fw);

/** QUERY_ROCE_ADDRESS: an entry of the GID table of device @a dev. */
unsigned mlx5sim_fw_query_roce(const mlx5sim_config_t *config, unsigned dev,
                               mlx5sim_fw_t *fw);

#endif
