/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_ar.h>
#include <uct/ib/sep/port/sep_path.h>
#include <uct/ib/sep/port/sep_port.h>
#include <uct/ib/sep/port/sep_subnet.h>

#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <string.h>


/* Differentiated services code point 26 with ECN, usual for RoCE v2 fabrics */
#define UCT_SEP_ROCE_V2_TRAFFIC_CLASS 106

/* Bytes around the payload of a packet: LRH, BTH, RETH, ICRC, VCRC and frame
 * delimiters on InfiniBand (IBA chapters 5 and 9). On RoCE, Ethernet and GRH in
 * place of LRH: not all that a packet of v2 has there, but what UCX counts for
 * its own transports. UCP gives long messages to the one that says it is the
 * fastest. */
#define UCT_SEP_IB_PKT_OVERHEAD       (8 + 12 + 16 + 4 + 2 + 2)
#define UCT_SEP_ROCE_PKT_OVERHEAD     (14 + 40 + 12 + 16 + 4 + 2 + 2)

enum {
    UCT_SEP_GID_TYPE_ROCE_V1,
    UCT_SEP_GID_TYPE_ROCE_V2
};


static ucs_status_t
uct_sep_port_find_pkey(const uct_sep_device_t *dev, uct_sep_port_info_t *port,
                       const uct_sep_port_config_t *config)
{
    uint16_t wanted = config->pkey;
    int best        = -1;
    __be16 pkey_be;
    uint16_t pkey;
    int i;

    if ((config->pkey != UCS_HEXUNITS_AUTO) &&
        ((config->pkey < 1) || (config->pkey > UCT_SEP_PKEY_PARTITION_MASK))) {
        ucs_error("%s: UCX_SEP_PKEY=0x%x, should be between 0x1 and 0x%x",
                  port->name, config->pkey, UCT_SEP_PKEY_PARTITION_MASK);
        return UCS_ERR_INVALID_PARAM;
    }

    for (i = 0; i < port->attr.pkey_tbl_len; ++i) {
        if (ibv_query_pkey(dev->context, port->addr.port_num, i,
                           &pkey_be) != 0) {
            continue;
        }

        pkey = be16toh(pkey_be);
        if ((pkey & UCT_SEP_PKEY_PARTITION_MASK) == 0) {
            continue;
        }

        if (config->pkey == UCS_HEXUNITS_AUTO) {
            if (!(pkey & UCT_SEP_PKEY_MEMBERSHIP_MASK)) {
                continue;
            }
        } else if ((pkey & UCT_SEP_PKEY_PARTITION_MASK) !=
                   (wanted & UCT_SEP_PKEY_PARTITION_MASK)) {
            continue;
        }

        /* A partition may be listed as limited and as full member */
        if ((best < 0) || (pkey & UCT_SEP_PKEY_MEMBERSHIP_MASK)) {
            best            = i;
            port->addr.pkey = pkey;
        }
        if (pkey & UCT_SEP_PKEY_MEMBERSHIP_MASK) {
            break;
        }
    }

    if (best < 0) {
        if (config->pkey == UCS_HEXUNITS_AUTO) {
            ucs_error("%s: no P_Key with full membership: set UCX_SEP_PKEY to "
                      "one the port is a limited member of", port->name);
        } else {
            ucs_error("%s: P_Key 0x%x is not in the port's table: correct "
                      "UCX_SEP_PKEY", port->name, config->pkey);
        }
        return UCS_ERR_NO_ELEM;
    }

    port->pkey_index = best;
    return UCS_OK;
}

int uct_sep_port_has_gid(const uct_sep_device_t *dev, unsigned port_num,
                         const struct ibv_port_attr *attr)
{
    union ibv_gid gid;
    int i;

    if (attr->link_layer != IBV_LINK_LAYER_ETHERNET) {
        return attr->gid_tbl_len > 0;
    }

    for (i = 0; i < attr->gid_tbl_len; ++i) {
        if ((ibv_query_gid(dev->context, port_num, i, &gid) == 0) &&
            !uct_sep_gid_is_zero(gid.raw)) {
            return 1;
        }
    }

    return 0;
}

/* Take the GID's type from sysfs until kernels that can be queried by ioctl are
 * everywhere */
static int uct_sep_gid_type(const uct_sep_device_t *dev, unsigned port_num,
                            unsigned gid_index)
{
    char buf[32];

    if (ucs_read_file_str(buf, sizeof(buf), 1,
                          "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/"
                          "%u", dev->name, port_num, gid_index) <= 0) {
        return UCT_SEP_GID_TYPE_ROCE_V1;
    }

    return (strncmp(buf, "RoCE v2", 7) == 0) ? UCT_SEP_GID_TYPE_ROCE_V2 :
                                               UCT_SEP_GID_TYPE_ROCE_V1;
}

/* RoCE v2 over IPv4 reaches furthest, RoCE v1 only the same link */
static int uct_sep_gid_score(int type, const union ibv_gid *gid)
{
    return ((type == UCT_SEP_GID_TYPE_ROCE_V2) ? 2 : 0) +
           (uct_sep_gid_is_ipv4(gid->raw) ? 1 : 0);
}

/* Whether the network interface of a GID can be used from here. It may be down,
 * or in the network namespace of another container, and still be in the table.
 * Only trying tells: an address handle to oneself, as UCX does
 * (uct_ib_device_test_roce_gid_index). */
static int uct_sep_port_try_gid(const uct_sep_port_info_t *port,
                                struct ibv_pd *pd, const union ibv_gid *gid,
                                unsigned gid_index)
{
    struct ibv_ah_attr attr = {};
    struct ibv_ah *ah;

    attr.port_num       = port->addr.port_num;
    attr.is_global      = 1;
    attr.grh.dgid       = *gid;
    attr.grh.sgid_index = gid_index;
    attr.grh.hop_limit  = UINT8_MAX;
    attr.grh.flow_label = 1;

    ah = ibv_create_ah(pd, &attr);
    if (ah == NULL) {
        ucs_debug("%s: ibv_create_ah() with GID index %u failed: %m",
                  port->name, gid_index);
        return 0;
    }

    ibv_destroy_ah(ah);
    return 1;
}

static void
uct_sep_port_set_gid(uct_sep_port_info_t *port, const union ibv_gid *gid,
                     unsigned gid_index, int type)
{
    port->addr.gid        = *gid;
    port->addr.gid_index  = gid_index;
    port->addr.is_roce_v2 = (type == UCT_SEP_GID_TYPE_ROCE_V2);
}

/* The best GID for which @a pd is NULL or an address handle can be created */
static int uct_sep_port_best_gid(const uct_sep_device_t *dev,
                                 uct_sep_port_info_t *port,
                                 const uct_sep_port_config_t *config,
                                 struct ibv_pd *pd)
{
    int best_score = -1;
    union ibv_gid gid;
    int i, type, score;

    for (i = 0; i < port->attr.gid_tbl_len; ++i) {
        if ((config->gid_index != UCS_ULUNITS_AUTO) &&
            (config->gid_index != (unsigned long)i)) {
            continue;
        }

        if ((ibv_query_gid(dev->context, port->addr.port_num, i, &gid) != 0) ||
            uct_sep_gid_is_zero(gid.raw)) {
            continue;
        }

        type  = uct_sep_gid_type(dev, port->addr.port_num, i);
        score = uct_sep_gid_score(type, &gid);
        if ((score > best_score) &&
            ((pd == NULL) || uct_sep_port_try_gid(port, pd, &gid, i))) {
            best_score = score;
            uct_sep_port_set_gid(port, &gid, i, type);
        }
    }

    return best_score >= 0;
}

static ucs_status_t
uct_sep_port_find_roce_gid(const uct_sep_device_t *dev, struct ibv_pd *pd,
                           uct_sep_port_info_t *port,
                           const uct_sep_port_config_t *config)
{
    int is_auto = (config->gid_index == UCS_ULUNITS_AUTO);

    if (is_auto && uct_sep_port_best_gid(dev, port, config, pd)) {
        return UCS_OK;
    }

    if (!uct_sep_port_best_gid(dev, port, config, NULL)) {
        ucs_error("%s: no GID to send from%s", port->name,
                  is_auto ? ": is the network interface up?" :
                            " at that index: correct UCX_SEP_GID_INDEX");
        return UCS_ERR_NO_ELEM;
    }

    if (is_auto) {
        ucs_warn("%s: no address handle can be created with any of the port's "
                 "GIDs, connections will probably fail: is its network "
                 "interface up, and in this network namespace? Using index %u, "
                 "set UCX_SEP_GID_INDEX for another one", port->name,
                 port->addr.gid_index);
    }
    return UCS_OK;
}

static ucs_status_t
uct_sep_port_find_ib_gid(const uct_sep_device_t *dev, uct_sep_port_info_t *port,
                         const uct_sep_port_config_t *config)
{
    unsigned index = (config->gid_index == UCS_ULUNITS_AUTO) ?
                     0 : config->gid_index;

    if ((ibv_query_gid(dev->context, port->addr.port_num, index,
                       &port->addr.gid) != 0) ||
        uct_sep_gid_is_zero(port->addr.gid.raw)) {
        if ((config->gid_index != UCS_ULUNITS_AUTO) ||
            port->addr.force_global) {
            ucs_error("%s: no GID at index %u: correct UCX_SEP_GID_INDEX",
                      port->name, index);
            return UCS_ERR_NO_ELEM;
        }
        memset(&port->addr.gid, 0, sizeof(port->addr.gid));
    }

    port->addr.gid_index = index;
    return UCS_OK;
}

static ucs_status_t
uct_sep_port_set_qos(uct_sep_port_info_t *port,
                     const uct_sep_port_config_t *config)
{
    unsigned long traffic_class;

    traffic_class = config->traffic_class;
    if (traffic_class == UCS_ULUNITS_AUTO) {
        traffic_class = port->addr.is_roce_v2 ? UCT_SEP_ROCE_V2_TRAFFIC_CLASS :
                                                0;
    }
    if (traffic_class > UINT8_MAX) {
        ucs_error("%s: UCX_SEP_TRAFFIC_CLASS=%lu, should be between 0 and %u",
                  port->name, traffic_class, UINT8_MAX);
        return UCS_ERR_INVALID_PARAM;
    }
    port->addr.traffic_class = traffic_class;

    if (config->hop_limit > UINT8_MAX) {
        ucs_error("%s: UCX_SEP_HOP_LIMIT=%u, should be between 0 and %u",
                  port->name, config->hop_limit, UINT8_MAX);
        return UCS_ERR_INVALID_PARAM;
    }
    port->addr.hop_limit = config->hop_limit;
    return UCS_OK;
}

/* Latency and signal rate per lane, see IBA "PortInfo", LinkSpeedActive; the
 * encoding is 8/10 up to QDR and 64/66 from there on */
static void uct_sep_port_estimate(uct_sep_port_info_t *port)
{
    static const struct {
        uint8_t speed;
        double  latency;
        double  gbps;
    } speeds[] = {
        {1,   5000e-9, 2.5 * 0.8},
        {2,   2500e-9, 5.0 * 0.8},
        {4,   1300e-9, 10.0 * 0.8},
        {8,   700e-9,  10.3125 * 64 / 66},
        {16,  700e-9,  14.0625 * 64 / 66},
        {32,  600e-9,  25.78125 * 64 / 66},
        {64,  600e-9,  51.5625 * 64 / 66},
        {128, 600e-9,  100.0 * 64 / 66}
    };
    static const uint8_t widths[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12,
                                     [16] = 2};
    unsigned width   = 1;
    double gbps      = speeds[0].gbps;
    size_t mtu       = 128ul << port->attr.active_mtu;
    size_t overhead  = UCT_SEP_IB_PKT_OVERHEAD;
    unsigned i;

    port->latency = speeds[0].latency;
    for (i = 0; i < ucs_static_array_size(speeds); ++i) {
        if (speeds[i].speed == port->attr.active_speed) {
            port->latency = speeds[i].latency;
            gbps          = speeds[i].gbps;
        }
    }

    if ((port->attr.active_width < ucs_static_array_size(widths)) &&
        (widths[port->attr.active_width] != 0)) {
        width = widths[port->attr.active_width];
    }

    if (port->addr.is_roce) {
        port->latency += 200e-9;
        overhead       = UCT_SEP_ROCE_PKT_OVERHEAD;
    }

    port->bandwidth = (gbps * 1e9 / 8) * width * mtu / (mtu + overhead);
}

ucs_status_t uct_sep_port_open(const uct_sep_device_t *dev, struct ibv_pd *pd,
                               unsigned port_num,
                               const uct_sep_port_config_t *config,
                               uct_sep_port_info_t *port_p)
{
    ucs_status_t status;
    int ret;

    memset(port_p, 0, sizeof(*port_p));
    ucs_snprintf_safe(port_p->name, sizeof(port_p->name), "%s:%u", dev->name,
                      port_num);

    ret = ibv_query_port(dev->context, port_num, &port_p->attr);
    if (ret != 0) {
        ucs_error("ibv_query_port(%s) failed: %s", port_p->name, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    port_p->addr.port_num     = port_num;
    port_p->addr.is_roce      = (port_p->attr.link_layer ==
                                 IBV_LINK_LAYER_ETHERNET);
    port_p->addr.lid          = port_p->attr.lid;
    port_p->addr.lmc          = port_p->attr.lmc;
    port_p->addr.force_global = config->is_global ||
                                (port_p->attr.flags & IBV_QPF_GRH_REQUIRED);

    status = port_p->addr.is_roce ?
             uct_sep_port_find_roce_gid(dev, pd, port_p, config) :
             uct_sep_port_find_ib_gid(dev, port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_port_find_pkey(dev, port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_ar_init_sl(dev, config, port_p);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_port_set_qos(port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_subnet_init_prefix(dev, config, port_p);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_path_init_bits(config, port_p);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_path_init_count(dev, config, port_p);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_port_estimate(port_p);
    return UCS_OK;
}
