/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_DEVICE_H
#define UCT_SEP_DEVICE_H

#include <uct/ib/sep/base/sep_def.h>
#include <infiniband/mlx5dv.h>
#include <uct/api/uct.h>

BEGIN_C_DECLS

/**
 * @file sep_device.h
 *
 * An mlx5 device: its capabilities and its ports.
 */

/** Device. */
typedef struct uct_sep_device {
    struct ibv_context        *context;
    struct ibv_device_attr_ex attr;
    const char                *name;      /**< "mlx5_0", the context's */
    uint64_t                  atomic_cap; /**< UCT_IFACE_FLAG_ATOMIC_CPU,
                                               UCT_IFACE_FLAG_ATOMIC_DEVICE
                                               or 0 */
    struct {
        uint64_t              op_flags;   /**< Without a result */
        uint64_t              fop_flags;  /**< With one */
    } atomic32, atomic64;                 /**< Bits of uct_atomic_op_t */
} uct_sep_device_t;


/** Size of a set of capabilities (mlx5 PRM: QUERY_HCA_CAP). */
#define UCT_SEP_HCA_CAP_LEN  4096


/** Whether a device is an mlx5 one that this process may open. */
int uct_sep_device_is_usable(struct ibv_device *ibv_device);


/**
 * Open a device and query its capabilities.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_device_open(uct_sep_device_t *dev,
                                 struct ibv_device *ibv_device);


/** Close it. */
void uct_sep_device_close(uct_sep_device_t *dev);


/**
 * Ask the firmware for a set of capabilities. Needs a context with DEVX, which
 * libmlx5 requests at each open.
 *
 * @param [in]  op_mod  Twice the type of the set (mlx5 PRM: QUERY_HCA_CAP,
 *                      op_mod), and 1 for the current ones.
 * @param [out] caps_p  Filled with the capabilities.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED without a message.
 */
ucs_status_t uct_sep_device_query_caps(struct ibv_context *context,
                                       unsigned op_mod,
                                       uint8_t caps_p[UCT_SEP_HCA_CAP_LEN]);


/** Whether a port is up and has a link layer we support. Fills its
 *  attributes. */
int uct_sep_device_port_is_active(const uct_sep_device_t *dev,
                                  unsigned port_num,
                                  struct ibv_port_attr *attr_p);


/**
 * The port of a device name such as "mlx5_0:1".
 *
 * @return Port number, or 0 if the name is not of a port of the device.
 */
unsigned uct_sep_device_find_port(const uct_sep_device_t *dev,
                                  const char *dev_name);

END_C_DECLS

#endif
