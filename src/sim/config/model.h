/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_MODEL_H_
#define MLX5SIM_MODEL_H_

#include <stdint.h>

/*
 * The adapter generations the device can pose as. What differs between them is
 * identity and link rate; the software device behaves the same for all.
 */

#define MLX5SIM_PCI_VENDOR 0x15b3

/**
 * One adapter generation.
 */
typedef struct mlx5sim_model {
    const char *name;         /**< value of MLX5SIM_MODEL */
    const char *product;      /**< name people know it by */
    const char *hca_type;     /**< sysfs hca_type, "MT" + decimal PCI id */
    const char *board_id;     /**< sysfs board_id (PSID) */
    uint16_t   pci_device;    /**< mlx5_hca_table in providers/mlx5/mlx5.c */
    uint16_t   fw_version[3]; /**< major.minor.sub_minor */
    uint8_t    active_speed;  /**< IB_SPEED_* of a lane: 32 EDR, 64 HDR,
                                   128 NDR (ibv_port_attr.active_speed) */
    uint8_t    active_width;  /**< ibv_port_attr.active_width: 2 is 4X */
    const char *rate;         /**< sysfs ports/N/rate */
    const char *pcie_speed;   /**< sysfs current_link_speed */
} mlx5sim_model_t;

/** Names of all models, NULL at the end: the choices of MLX5SIM_MODEL. */
extern const char *const mlx5sim_model_names[];

/**
 * Model number @a index in the order of @ref mlx5sim_model_names.
 *
 * @return the model, or NULL if there are fewer.
 */
const mlx5sim_model_t *mlx5sim_model_get(unsigned index);

#endif
