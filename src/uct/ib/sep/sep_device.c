/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_device.h"
#include "sep_account.h"

#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>


#define UCT_SEP_PKEY_MEMBERSHIP_MASK  0x8000
#define UCT_SEP_PKEY_PARTITION_MASK   0x7fff

/* Differentiated services code point 26 with ECN, usual for RoCE v2 fabrics */
#define UCT_SEP_ROCE_V2_TRAFFIC_CLASS 106

/* Bytes around the payload of a packet: LRH, BTH, RETH, ICRC, VCRC and frame
 * delimiters on InfiniBand (IBA chapters 5 and 9); Ethernet, IPv6, UDP, BTH,
 * RETH, ICRC, FCS, preamble and gap on RoCE v2 */
#define UCT_SEP_IB_PKT_OVERHEAD       (8 + 12 + 16 + 4 + 2 + 2)
#define UCT_SEP_ROCE_PKT_OVERHEAD     (14 + 40 + 8 + 12 + 16 + 4 + 4 + 20)

/* Firmware command QUERY_HCA_CAP, mlx5 PRM "Query HCA Capabilities": sizes, the
 * offset of the capabilities in the reply, and the operation modifier for the
 * current atomic capabilities (type 3) */
#define UCT_SEP_CMD_OP_QUERY_HCA_CAP     0x100
#define UCT_SEP_QUERY_HCA_CAP_IN_LEN     16
#define UCT_SEP_QUERY_HCA_CAP_OUT_LEN    (16 + 4096)
#define UCT_SEP_QUERY_HCA_CAP_OUT_CAPS   16
#define UCT_SEP_HCA_CAP_ATOMIC_CUR       ((3 << 1) | 1)

/* mlx5 PRM "Atomic Capabilities": byte offsets of
 * atomic_req_8B_endianness_mode (2 high bits; 1 is host order),
 * atomic_operations and atomic_size_qp (bit set of sizes in bytes) */
#define UCT_SEP_ATOMIC_CAPS_8B_MODE      8
#define UCT_SEP_ATOMIC_CAPS_OPERATIONS   18
#define UCT_SEP_ATOMIC_CAPS_SIZE_QP      22

/* compare-swap, fetch-add and the masked ones of both */
#define UCT_SEP_ATOMIC_OPERATIONS_ALL    0xf

/* What QUERY_HCA_CAP says of atomics */
typedef struct {
    unsigned operations;
    unsigned sizes;
    int      host_order8;
} uct_sep_hca_atomics_t;

enum {
    UCT_SEP_GID_TYPE_ROCE_V1,
    UCT_SEP_GID_TYPE_ROCE_V2
};


int uct_sep_device_is_usable(struct ibv_device *ibv_device)
{
    char path[IBV_SYSFS_PATH_MAX + sizeof("/dev/infiniband/")];

    if (!mlx5dv_is_supported(ibv_device)) {
        return 0;
    }

    ucs_snprintf_safe(path, sizeof(path), "/dev/infiniband/%s",
                      ibv_device->dev_name);
    if (access(path, R_OK | W_OK) != 0) {
        ucs_debug("%s: %s is not accessible: %m", ibv_device->name, path);
        return 0;
    }

    return 1;
}

/* A field of the reply, big endian */
static unsigned uct_sep_hca_cap_get16(const uint8_t *reply, size_t offset)
{
    return (reply[offset] << 8) | reply[offset + 1];
}

/* Ask the firmware which extended (masked) atomics there are: verbs has no word
 * for them. Needs a context with DEVX, which libmlx5 asks for at each open. */
static int uct_sep_device_query_atomics(struct ibv_context *context,
                                        uct_sep_hca_atomics_t *caps_p)
{
    uint8_t cmd[UCT_SEP_QUERY_HCA_CAP_IN_LEN]    = {0};
    uint8_t reply[UCT_SEP_QUERY_HCA_CAP_OUT_LEN] = {0};
    const uint8_t *caps = reply + UCT_SEP_QUERY_HCA_CAP_OUT_CAPS;
    int ret;

    cmd[0] = UCT_SEP_CMD_OP_QUERY_HCA_CAP >> 8;
    cmd[1] = UCT_SEP_CMD_OP_QUERY_HCA_CAP & 0xff;
    cmd[7] = UCT_SEP_HCA_CAP_ATOMIC_CUR;
    ret    = mlx5dv_devx_general_cmd(context, cmd, sizeof(cmd), reply,
                                     sizeof(reply));
    if (ret != 0) {
        ucs_debug("%s: QUERY_HCA_CAP(ATOMIC) failed: %s, extended atomics are "
                  "not used", ibv_get_device_name(context->device),
                  strerror(ret));
        return 0;
    }

    caps_p->operations  = uct_sep_hca_cap_get16(caps,
                                                UCT_SEP_ATOMIC_CAPS_OPERATIONS);
    caps_p->sizes       = uct_sep_hca_cap_get16(caps,
                                                UCT_SEP_ATOMIC_CAPS_SIZE_QP);
    caps_p->host_order8 = (caps[UCT_SEP_ATOMIC_CAPS_8B_MODE] >> 6) == 1;
    return 1;
}

static void uct_sep_device_init_atomics(uct_sep_device_t *dev)
{
    const uint64_t logical = UCS_BIT(UCT_ATOMIC_OP_AND) |
                             UCS_BIT(UCT_ATOMIC_OP_OR) |
                             UCS_BIT(UCT_ATOMIC_OP_XOR);
    const uint64_t ops     = logical | UCS_BIT(UCT_ATOMIC_OP_ADD);
    const uint64_t fops    = ops | UCS_BIT(UCT_ATOMIC_OP_SWAP) |
                             UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    const struct ibv_pci_atomic_caps *pci = &dev->attr.pci_atomic_caps;
    enum ibv_atomic_cap cap               = dev->attr.orig_attr.atomic_cap;
    uct_sep_hca_atomics_t ext;

    /* The kernel reports a device that returns old values of 8 bytes in big
     * endian as one without atomics */
    if (cap == IBV_ATOMIC_NONE) {
        return;
    }

    dev->atomic64.op_flags  = UCS_BIT(UCT_ATOMIC_OP_ADD);
    dev->atomic64.fop_flags = UCS_BIT(UCT_ATOMIC_OP_ADD) |
                              UCS_BIT(UCT_ATOMIC_OP_CSWAP);

    /* Atomic with respect to the processor, too, if they are atomics on PCIe;
     * fetch-add and compare-swap are what all are made of */
    dev->atomic_cap = ((cap == IBV_ATOMIC_GLOB) ||
                       (pci->fetch_add & pci->compare_swap &
                        IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP)) ?
                      UCT_IFACE_FLAG_ATOMIC_CPU : UCT_IFACE_FLAG_ATOMIC_DEVICE;

    if (!uct_sep_device_query_atomics(dev->context, &ext) ||
        !ucs_test_all_flags(ext.operations, UCT_SEP_ATOMIC_OPERATIONS_ALL)) {
        return;
    }

    if (ext.sizes & sizeof(uint32_t)) {
        dev->atomic32.op_flags  = ops;
        dev->atomic32.fop_flags = fops;
    }

    if ((ext.sizes & sizeof(uint64_t)) && ext.host_order8) {
        dev->atomic64.op_flags  = ops;
        dev->atomic64.fop_flags = fops;
    }
}

ucs_status_t
uct_sep_device_open(uct_sep_device_t *dev, struct ibv_device *ibv_device)
{
    int ret;

    memset(dev, 0, sizeof(*dev));

    dev->context = ibv_open_device(ibv_device);
    if (dev->context == NULL) {
        ucs_diag("ibv_open_device(%s) failed: %m",
                 ibv_get_device_name(ibv_device));
        return UCS_ERR_IO_ERROR;
    }

    ret = ibv_query_device_ex(dev->context, NULL, &dev->attr);
    if (ret != 0) {
        ucs_error("ibv_query_device_ex(%s) failed: %s",
                  ibv_get_device_name(ibv_device), strerror(ret));
        ibv_close_device(dev->context);
        return UCS_ERR_IO_ERROR;
    }

    dev->name = ibv_get_device_name(dev->context->device);
    uct_sep_account_add(dev->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    uct_sep_device_init_atomics(dev);
    return UCS_OK;
}

void uct_sep_device_close(uct_sep_device_t *dev)
{
    uct_sep_account_remove(dev->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    if (ibv_close_device(dev->context) != 0) {
        ucs_warn("ibv_close_device() failed: %m");
    }
}

int uct_sep_device_port_is_active(const uct_sep_device_t *dev,
                                  unsigned port_num)
{
    struct ibv_port_attr attr;
    int ret;

    ret = ibv_query_port(dev->context, port_num, &attr);
    if (ret != 0) {
        ucs_debug("ibv_query_port(%s:%u) failed: %s", dev->name, port_num,
                  strerror(ret));
        return 0;
    }

    if (attr.state != IBV_PORT_ACTIVE) {
        ucs_debug("%s:%u is not active (state %d)", dev->name, port_num,
                  attr.state);
        return 0;
    }

    return (attr.link_layer == IBV_LINK_LAYER_UNSPECIFIED) ||
           (attr.link_layer == IBV_LINK_LAYER_INFINIBAND) ||
           (attr.link_layer == IBV_LINK_LAYER_ETHERNET);
}

unsigned
uct_sep_device_find_port(const uct_sep_device_t *dev, const char *dev_name)
{
    size_t length = strlen(dev->name);
    unsigned long port_num;
    char *end;

    if ((strncmp(dev_name, dev->name, length) != 0) ||
        (dev_name[length] != ':')) {
        return 0;
    }

    port_num = strtoul(dev_name + length + 1, &end, 10);
    if ((*end != '\0') || (port_num > dev->attr.orig_attr.phys_port_cnt)) {
        return 0;
    }

    return port_num;
}

static ucs_status_t
uct_sep_port_find_pkey(const uct_sep_device_t *dev, uct_sep_port_info_t *port,
                       const uct_sep_port_config_t *config)
{
    uint16_t wanted = config->pkey;
    int best        = -1;
    __be16 pkey_be;
    uint16_t pkey;
    int i;

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

static int uct_sep_gid_is_zero(const union ibv_gid *gid)
{
    return (gid->global.subnet_prefix == 0) && (gid->global.interface_id == 0);
}

static int uct_sep_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/* The GID's type is only in sysfs, until kernels that know the query by ioctl
 * are everywhere */
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

/* RoCE v2 over IPv4 reaches furthest, and RoCE v1 only the same link */
static int uct_sep_gid_score(int type, const union ibv_gid *gid)
{
    return ((type == UCT_SEP_GID_TYPE_ROCE_V2) ? 2 : 0) +
           (uct_sep_gid_is_ipv4(gid) ? 1 : 0);
}

static ucs_status_t
uct_sep_port_find_roce_gid(const uct_sep_device_t *dev,
                           uct_sep_port_info_t *port,
                           const uct_sep_port_config_t *config)
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
            uct_sep_gid_is_zero(&gid)) {
            continue;
        }

        type  = uct_sep_gid_type(dev, port->addr.port_num, i);
        score = uct_sep_gid_score(type, &gid);
        if (score > best_score) {
            best_score            = score;
            port->addr.gid        = gid;
            port->addr.gid_index  = i;
            port->addr.is_roce_v2 = (type == UCT_SEP_GID_TYPE_ROCE_V2);
        }
    }

    if (best_score < 0) {
        ucs_error("%s: no GID to send from%s", port->name,
                  (config->gid_index == UCS_ULUNITS_AUTO) ?
                  ": is the network interface up?" :
                  " at that index: correct UCX_SEP_GID_INDEX");
        return UCS_ERR_NO_ELEM;
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
        uct_sep_gid_is_zero(&port->addr.gid)) {
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
    unsigned max_sl = port->addr.is_roce ? 7 : 15;
    unsigned long traffic_class;

    port->addr.sl = (config->sl == UCS_ULUNITS_AUTO) ? 0 : config->sl;
    if ((config->sl != UCS_ULUNITS_AUTO) && (config->sl > max_sl)) {
        ucs_error("%s: UCX_SEP_SL=%lu, should be between 0 and %u", port->name,
                  config->sl, max_sl);
        return UCS_ERR_INVALID_PARAM;
    }

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

    if (config->path_bits >= (1u << port->attr.lmc)) {
        ucs_error("%s: UCX_SEP_LID_PATH_BITS=%u, should be less than %u (LMC "
                  "is %u)", port->name, config->path_bits, 1u << port->attr.lmc,
                  port->attr.lmc);
        return UCS_ERR_INVALID_PARAM;
    }
    port->addr.src_path_bits = config->path_bits;
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

ucs_status_t uct_sep_device_open_port(const uct_sep_device_t *dev,
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
    port_p->addr.force_global = config->is_global ||
                                (port_p->attr.flags & IBV_QPF_GRH_REQUIRED);

    status = port_p->addr.is_roce ?
             uct_sep_port_find_roce_gid(dev, port_p, config) :
             uct_sep_port_find_ib_gid(dev, port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_port_find_pkey(dev, port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_port_set_qos(port_p, config);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_port_estimate(port_p);
    return UCS_OK;
}
