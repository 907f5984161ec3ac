/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SUBNET_H
#define UCT_SEP_SUBNET_H

#include <uct/ib/sep/port/sep_port.h>

BEGIN_C_DECLS

/**
 * @file sep_subnet.h
 *
 * Subnets: which RoCE v2 addresses count as reachable (ROCE_LOCAL_SUBNET,
 * ROCE_SUBNET_PREFIX_LEN), and which InfiniBand ports are offered
 * (SUBNET_PREFIX).
 */

/** Filter of InfiniBand ports by the subnet prefix of their first GID. */
typedef struct uct_sep_subnet_filter {
    int    is_set;
    __be64 prefix;
} uct_sep_subnet_filter_t;


/**
 * Read the setting SUBNET_PREFIX: four groups of up to four hexadecimal digits
 * such as "fe80:0:0:0", or nothing.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message.
 */
ucs_status_t uct_sep_subnet_filter_parse(const char *text,
                                         uct_sep_subnet_filter_t *filter_p);


/** Whether a port passes; ports that are not InfiniBand always do. */
int uct_sep_subnet_filter_match(const uct_sep_subnet_filter_t *filter,
                                const uct_sep_device_t *dev, unsigned port_num,
                                const struct ibv_port_attr *attr);


/**
 * Name of the network interface to which the GID in use belongs.
 *
 * @return UCS_OK, or UCS_ERR_NO_ELEM if the kernel names none.
 */
ucs_status_t uct_sep_subnet_netdev(const uct_sep_device_t *dev,
                                   const uct_sep_port_info_t *port, char *name,
                                   size_t max);


/**
 * Find how many bits of RoCE v2 addresses must agree; none, unless the user
 * wants it. Called once the GID is known.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message.
 */
ucs_status_t uct_sep_subnet_init_prefix(const uct_sep_device_t *dev,
                                        const uct_sep_port_config_t *config,
                                        uct_sep_port_info_t *port);

END_C_DECLS

#endif
