/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_path.h>
#include <uct/ib/sep/port/sep_subnet.h>

#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sock.h>
#include <ucs/sys/string.h>
#include <net/if.h>
#include <string.h>


/* IBA "PortInfo", LinkSpeedActive: NDR. One queue pair does not fill the link,
 * UCX uses two there as well. */
#define UCT_SEP_SPEED_NDR  128


static ucs_status_t
uct_sep_path_add_bits(uct_sep_port_info_t *port, unsigned bits)
{
    uct_sep_port_t *addr = &port->addr;

    if (addr->path_bits_count == UCT_SEP_MAX_PATHS) {
        ucs_error("%s: UCX_SEP_LID_PATH_BITS has more than %u values",
                  port->name, UCT_SEP_MAX_PATHS);
        return UCS_ERR_INVALID_PARAM;
    }

    addr->path_bits[addr->path_bits_count++] = bits;
    return UCS_OK;
}

/* Add the values of a range, which may be descending, that the port's LMC
 * allows: all ports share one setting */
static ucs_status_t
uct_sep_path_add_range(uct_sep_port_info_t *port, unsigned first, unsigned last)
{
    unsigned max        = UCS_BIT(port->attr.lmc) - 1;
    ucs_status_t status = UCS_OK;
    unsigned bits;

    if (first <= last) {
        for (bits = first; (bits <= ucs_min(last, max)) && (status == UCS_OK);
             ++bits) {
            status = uct_sep_path_add_bits(port, bits);
        }
    } else {
        for (bits = ucs_min(first, max) + 1;
             (bits > last) && (status == UCS_OK); --bits) {
            status = uct_sep_path_add_bits(port, bits - 1);
        }
    }

    return status;
}

ucs_status_t uct_sep_path_init_bits(const uct_sep_port_config_t *config,
                                    uct_sep_port_info_t *port)
{
    ucs_status_t status;
    unsigned i;

    port->addr.path_bits_count = 0;
    if (port->addr.is_roce) {
        return UCS_OK;
    }

    for (i = 0; i < config->path_bits.count; ++i) {
        status = uct_sep_path_add_range(port, config->path_bits.ranges[i].first,
                                        config->path_bits.ranges[i].last);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (port->addr.path_bits_count == 0) {
        ucs_error("%s: UCX_SEP_LID_PATH_BITS has no value below %u, which is "
                  "what the port's LMC of %u allows", port->name,
                  1u << port->attr.lmc, port->attr.lmc);
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

/* Ports that a RoCE port consists of: known to the device or, if that is too
 * old, to the network interface. libmlx5 binds queue pairs to those of the
 * device only. */
static unsigned uct_sep_path_lag_ports(const uct_sep_device_t *dev,
                                       uct_sep_port_info_t *port)
{
    struct mlx5dv_context attr = {
        .comp_mask = MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS
    };
    char netdev[IFNAMSIZ];

    if ((mlx5dv_query_device(dev->context, &attr) == 0) &&
        (attr.comp_mask & MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS) &&
        (attr.num_lag_ports > 0)) {
        port->binds_paths = attr.num_lag_ports > 1;
        return attr.num_lag_ports;
    }

    if (uct_sep_subnet_netdev(dev, port, netdev, sizeof(netdev)) != UCS_OK) {
        return 1;
    }

    return ucs_max(1, ucs_netif_bond_ad_num_ports(netdev));
}

ucs_status_t uct_sep_path_init_count(const uct_sep_device_t *dev,
                                     const uct_sep_port_config_t *config,
                                     uct_sep_port_info_t *port)
{
    uct_sep_port_t *addr = &port->addr;
    unsigned count;

    addr->roce_path_factor = config->roce_path_factor;
    port->num_lag          = addr->is_roce ? uct_sep_path_lag_ports(dev, port) :
                                             1;

    if (config->num_paths != UCS_ULUNITS_AUTO) {
        if ((config->num_paths < 1) ||
            (config->num_paths > UCT_SEP_MAX_PATHS)) {
            ucs_error("%s: UCX_SEP_NUM_PATHS should be auto or between 1 and "
                      "%u", port->name, UCT_SEP_MAX_PATHS);
            return UCS_ERR_INVALID_PARAM;
        }
        addr->num_paths = config->num_paths;
        return UCS_OK;
    }

    count = addr->is_roce ? port->num_lag : addr->path_bits_count;
    if ((count == 1) && (port->attr.active_speed == UCT_SEP_SPEED_NDR)) {
        count = 2;
    }

    addr->num_paths = ucs_min(count, UCT_SEP_MAX_PATHS);
    return UCS_OK;
}

void uct_sep_path_bind(uct_sep_port_info_t *port, struct ibv_qp *qp,
                       unsigned path)
{
    unsigned lag_port = (path % port->num_lag) + 1;
    int ret;

    if (!port->binds_paths || (port->addr.num_paths == 1)) {
        return;
    }

    ret = mlx5dv_modify_qp_lag_port(qp, lag_port);
    if (ret != 0) {
        ucs_diag("%s: QP 0x%x could not be bound to port %u of %u (%s): paths "
                 "may share one", port->name, qp->qp_num, lag_port,
                 port->num_lag, strerror(ret));
        port->binds_paths = 0;
        return;
    }

    ucs_debug("%s: QP 0x%x of path %u sends through port %u of %u", port->name,
              qp->qp_num, path, lag_port, port->num_lag);
}

double uct_sep_path_ratio(const uct_sep_port_info_t *port)
{
    return port->binds_paths ? (1.0 / port->addr.num_paths) : 1.0;
}
