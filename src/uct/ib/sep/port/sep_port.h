/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PORT_H
#define UCT_SEP_PORT_H

#include <uct/ib/sep/port/sep_addr.h>
#include <uct/ib/sep/device/sep_device.h>
#include <ucs/config/parser.h>

BEGIN_C_DECLS

/**
 * @file sep_port.h
 *
 * A port: which of its addresses is used, how many paths lead through it, how
 * its packets are marked, and how fast it is.
 */

/** What the user asks of a port. Members are named as in the configuration. */
typedef struct uct_sep_port_config {
    int                      is_global; /**< Use a GRH on InfiniBand as well */
    unsigned long            sl;        /**< UCS_ULUNITS_AUTO: see ar_enable */
    ucs_ternary_auto_value_t ar_enable; /**< Adaptive routing: which service
                                             levels are acceptable */
    unsigned long            traffic_class; /**< UCS_ULUNITS_AUTO: 106 on RoCE
                                                 v2 */
    unsigned                 hop_limit;
    unsigned long            gid_index; /**< UCS_ULUNITS_AUTO: best RoCE
                                             version */
    unsigned                 pkey;      /**< UCS_HEXUNITS_AUTO: first full
                                             member */
    unsigned long            num_paths; /**< UCS_ULUNITS_AUTO: as many as there
                                             are path bits or LAG ports */
    UCS_CONFIG_ARRAY_FIELD(ucs_range_spec_t, ranges) path_bits;
    unsigned                 roce_path_factor;
    int                      roce_local_subnet;
    unsigned long            roce_subnet_prefix_len; /**< Bits;
                                             UCS_ULUNITS_AUTO: of the network
                                             interface; UCS_ULUNITS_INF: all */
} uct_sep_port_config_t;


/** A port that was opened. */
typedef struct uct_sep_port_info {
    uct_sep_port_t       addr;       /**< How it is addressed */
    struct ibv_port_attr attr;
    uint16_t             pkey_index; /**< Of addr.pkey */
    unsigned             num_lag;    /**< Ports that it consists of, 1 if it is
                                          none of RoCE; each has its part of
                                          the bandwidth */
    int                  binds_paths; /**< Paths have LAG ports of their own:
                                           uct_sep_path_bind() */
    double               latency;    /**< Seconds, one way */
    double               bandwidth;  /**< Bytes per second of payload */
    char                 name[IBV_SYSFS_NAME_MAX + 8]; /**< "mlx5_0:1" */
} uct_sep_port_info_t;


/**
 * Whether a port has an address to send from. The link of one that has none can
 * be up: the port of a representor, or of a function on which RoCE is switched
 * off (kernel, mlx5_query_port_roce(): gid_tbl_len is 0 there); and the table
 * may be empty, without a network interface. UCX does not use such ports either
 * (uct_ib_device_port_check()), but looks at one entry only, that of
 * UCX_IB_GID_INDEX or the first. On InfiniBand, a LID is enough to send within
 * the subnet, so what is in the table does not matter.
 *
 * @param [in]  attr  Of the port.
 */
int uct_sep_port_has_gid(const uct_sep_device_t *dev, unsigned port_num,
                         const struct ibv_port_attr *attr);


/**
 * Choose addresses and other properties of a port.
 *
 * @param [in]  pd      Protection domain in which the port's GIDs are tried.
 * @param [in]  config  What the user asks for.
 * @param [out] port_p  Filled.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, UCS_ERR_NO_ELEM, UCS_ERR_UNSUPPORTED
 *         or UCS_ERR_IO_ERROR after a message that says which setting does not
 *         fit the port.
 */
ucs_status_t uct_sep_port_open(const uct_sep_device_t *dev, struct ibv_pd *pd,
                               unsigned port_num,
                               const uct_sep_port_config_t *config,
                               uct_sep_port_info_t *port_p);

END_C_DECLS

#endif
