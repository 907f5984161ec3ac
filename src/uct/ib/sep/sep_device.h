/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_DEVICE_H
#define UCT_SEP_DEVICE_H

#include <uct/ib/sep/sep_addr.h>
#include <uct/ib/sep/sep_def.h>
#include <uct/api/uct.h>

BEGIN_C_DECLS

/**
 * @file sep_device.h
 *
 * An mlx5 device: what it can do, its ports, and how a port is addressed.
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


/** What the user asks of a port. Names are those of the configuration. */
typedef struct uct_sep_port_config {
    int           is_global;     /**< Use a GRH on InfiniBand as well */
    unsigned long sl;            /**< UCS_ULUNITS_AUTO is 0 */
    unsigned long traffic_class; /**< UCS_ULUNITS_AUTO: 106 on RoCE v2 */
    unsigned      hop_limit;
    unsigned long gid_index;     /**< UCS_ULUNITS_AUTO: best RoCE version */
    unsigned      pkey;          /**< UCS_HEXUNITS_AUTO: first full member */
    unsigned      path_bits;
} uct_sep_port_config_t;


/** A port that was opened. */
typedef struct uct_sep_port_info {
    uct_sep_port_t       addr;       /**< How it is addressed */
    struct ibv_port_attr attr;
    uint16_t             pkey_index; /**< Of addr.pkey */
    double               latency;    /**< Seconds, one way */
    double               bandwidth;  /**< Bytes per second of payload */
    char                 name[IBV_SYSFS_NAME_MAX + 8]; /**< "mlx5_0:1" */
} uct_sep_port_info_t;


/** Whether a device is an mlx5 one that this process may open. */
int uct_sep_device_is_usable(struct ibv_device *ibv_device);


/**
 * Open a device and ask what it can do.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR after a message.
 */
ucs_status_t uct_sep_device_open(uct_sep_device_t *dev,
                                 struct ibv_device *ibv_device);


/** Close it. */
void uct_sep_device_close(uct_sep_device_t *dev);


/** Whether a port is up and of a link layer we can use. */
int uct_sep_device_port_is_active(const uct_sep_device_t *dev,
                                  unsigned port_num);


/**
 * The port of a device name such as "mlx5_0:1".
 *
 * @return Port number, or 0 if it is not a port of the device.
 */
unsigned uct_sep_device_find_port(const uct_sep_device_t *dev,
                                  const char *dev_name);


/**
 * Choose addresses and other properties of a port.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, UCS_ERR_NO_ELEM or UCS_ERR_IO_ERROR
 *         after a message that says which setting does not fit the port.
 */
ucs_status_t uct_sep_device_open_port(const uct_sep_device_t *dev,
                                      unsigned port_num,
                                      const uct_sep_port_config_t *config,
                                      uct_sep_port_info_t *port_p);

END_C_DECLS

#endif
