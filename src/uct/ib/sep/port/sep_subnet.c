/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_subnet.h>

#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sock.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <endian.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>


ucs_status_t uct_sep_subnet_filter_parse(const char *text,
                                         uct_sep_subnet_filter_t *filter_p)
{
    unsigned groups[4];
    int length = 0;

    filter_p->is_set = 0;
    if (text[0] == '\0') {
        return UCS_OK;
    }

    if ((sscanf(text, "%4x:%4x:%4x:%4x%n", &groups[0], &groups[1], &groups[2],
                &groups[3], &length) != 4) || (text[length] != '\0')) {
        ucs_error("UCX_SEP_SUBNET_PREFIX=%s: should be four hexadecimal "
                  "numbers such as fe80:0:0:0", text);
        return UCS_ERR_INVALID_PARAM;
    }

    filter_p->is_set = 1;
    filter_p->prefix = htobe64(((uint64_t)groups[0] << 48) |
                               ((uint64_t)groups[1] << 32) |
                               ((uint64_t)groups[2] << 16) | groups[3]);
    return UCS_OK;
}

int uct_sep_subnet_filter_match(const uct_sep_subnet_filter_t *filter,
                                const uct_sep_device_t *dev, unsigned port_num,
                                const struct ibv_port_attr *attr)
{
    union ibv_gid gid;

    if (!filter->is_set || (attr->link_layer == IBV_LINK_LAYER_ETHERNET)) {
        return 1;
    }

    if ((ibv_query_gid(dev->context, port_num, 0, &gid) == 0) &&
        (gid.global.subnet_prefix == filter->prefix)) {
        return 1;
    }

    ucs_debug("%s:%u is not in the subnet of UCX_SEP_SUBNET_PREFIX", dev->name,
              port_num);
    return 0;
}

ucs_status_t uct_sep_subnet_netdev(const uct_sep_device_t *dev,
                                   const uct_sep_port_info_t *port, char *name,
                                   size_t max)
{
    if (ucs_read_file_str(name, max, 1,
                          "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/"
                          "%u", dev->name, port->addr.port_num,
                          port->addr.gid_index) <= 0) {
        return UCS_ERR_NO_ELEM;
    }

    ucs_strtrim(name);
    return UCS_OK;
}

/* Leading ones of a network mask */
static unsigned uct_sep_subnet_mask_len(const uint8_t *mask, unsigned max_bits)
{
    unsigned bits = 0;

    while ((bits < max_bits) && (mask[bits / 8] & (0x80 >> (bits % 8)))) {
        ++bits;
    }
    return bits;
}

/* Prefix length of the network interface, or 0 if unknown, as with rc_mlx5 */
static unsigned uct_sep_subnet_netdev_prefix(const uct_sep_device_t *dev,
                                             const uct_sep_port_info_t *port,
                                             int is_ipv4)
{
    struct sockaddr_storage mask;
    char netdev[IFNAMSIZ];
    ucs_status_t status;

    status = uct_sep_subnet_netdev(dev, port, netdev, sizeof(netdev));
    if (status == UCS_OK) {
        status = ucs_netif_get_addr(netdev, is_ipv4 ? AF_INET : AF_INET6, NULL,
                                    (struct sockaddr*)&mask);
    }
    if (status != UCS_OK) {
        ucs_debug("%s: no network mask found for GID %u, every subnet counts "
                  "as reachable", port->name, port->addr.gid_index);
        return 0;
    }

    return is_ipv4 ?
           uct_sep_subnet_mask_len((const uint8_t*)&((struct sockaddr_in*)
                                   &mask)->sin_addr, 32) :
           uct_sep_subnet_mask_len((const uint8_t*)&((struct sockaddr_in6*)
                                   &mask)->sin6_addr, 128);
}

ucs_status_t uct_sep_subnet_init_prefix(const uct_sep_device_t *dev,
                                        const uct_sep_port_config_t *config,
                                        uct_sep_port_info_t *port)
{
    int is_ipv4       = uct_sep_gid_is_ipv4(port->addr.gid.raw);
    unsigned max_bits = is_ipv4 ? 32 : 128;
    unsigned bits;

    port->addr.subnet_prefix_len = 0;
    if (!config->roce_local_subnet || !port->addr.is_roce_v2) {
        return UCS_OK;
    }

    if (config->roce_subnet_prefix_len == UCS_ULUNITS_INF) {
        bits = max_bits;
    } else if (config->roce_subnet_prefix_len == UCS_ULUNITS_AUTO) {
        bits = uct_sep_subnet_netdev_prefix(dev, port, is_ipv4);
    } else if (config->roce_subnet_prefix_len > max_bits) {
        ucs_error("%s: UCX_SEP_ROCE_SUBNET_PREFIX_LEN=%lu, but the port's "
                  "address has %u bits", port->name,
                  config->roce_subnet_prefix_len, max_bits);
        return UCS_ERR_INVALID_PARAM;
    } else {
        bits = config->roce_subnet_prefix_len;
    }

    /* An IPv4 address is at the end of a GID of 128 bits */
    port->addr.subnet_prefix_len = (bits == 0) ? 0 : (128 - max_bits + bits);
    ucs_debug("%s: addresses that agree in %u of %u bits are reachable",
              port->name, bits, max_bits);
    return UCS_OK;
}
