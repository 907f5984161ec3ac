/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/device/sep_device.h>
#include <uct/ib/sep/base/sep_account.h>

#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>


/* Firmware command QUERY_HCA_CAP, mlx5 PRM "Query HCA Capabilities": sizes, the
 * offset of the capabilities in the reply, and the operation modifier for the
 * current atomic capabilities (type 3) */
#define UCT_SEP_CMD_OP_QUERY_HCA_CAP     0x100
#define UCT_SEP_QUERY_HCA_CAP_IN_LEN     16
#define UCT_SEP_QUERY_HCA_CAP_OUT_LEN    (16 + UCT_SEP_HCA_CAP_LEN)
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

/* What QUERY_HCA_CAP says about atomics */
typedef struct {
    unsigned operations;
    unsigned sizes;
    int      host_order8;
} uct_sep_hca_atomics_t;


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

ucs_status_t uct_sep_device_query_caps(struct ibv_context *context,
                                       unsigned op_mod,
                                       uint8_t caps_p[UCT_SEP_HCA_CAP_LEN])
{
    uint8_t cmd[UCT_SEP_QUERY_HCA_CAP_IN_LEN]    = {0};
    uint8_t reply[UCT_SEP_QUERY_HCA_CAP_OUT_LEN] = {0};
    int ret;

    cmd[0] = UCT_SEP_CMD_OP_QUERY_HCA_CAP >> 8;
    cmd[1] = UCT_SEP_CMD_OP_QUERY_HCA_CAP & 0xff;
    cmd[7] = op_mod;
    ret    = mlx5dv_devx_general_cmd(context, cmd, sizeof(cmd), reply,
                                     sizeof(reply));
    if (ret != 0) {
        ucs_debug("%s: QUERY_HCA_CAP(0x%x) failed: %s",
                  ibv_get_device_name(context->device), op_mod, strerror(ret));
        return UCS_ERR_UNSUPPORTED;
    }

    memcpy(caps_p, reply + UCT_SEP_QUERY_HCA_CAP_OUT_CAPS, UCT_SEP_HCA_CAP_LEN);
    return UCS_OK;
}

/* Ask the firmware which extended (masked) atomics there are: verbs can't
 * tell. None if it does not answer */
static void uct_sep_device_query_atomics(struct ibv_context *context,
                                        uct_sep_hca_atomics_t *atomics_p)
{
    uint8_t caps[UCT_SEP_HCA_CAP_LEN];

    if (uct_sep_device_query_caps(context, UCT_SEP_HCA_CAP_ATOMIC_CUR, caps) !=
        UCS_OK) {
        return;
    }

    atomics_p->operations  = uct_sep_hca_cap_get16(
                                     caps, UCT_SEP_ATOMIC_CAPS_OPERATIONS);
    atomics_p->sizes       = uct_sep_hca_cap_get16(caps,
                                                   UCT_SEP_ATOMIC_CAPS_SIZE_QP);
    atomics_p->host_order8 = (caps[UCT_SEP_ATOMIC_CAPS_8B_MODE] >> 6) == 1;
}

/* Of a set of sizes (enum ibv_pci_atomic_op_size), that of 4 or 8 bytes */
static uint64_t
uct_sep_device_pci_atomic(unsigned sizes, size_t size, uct_atomic_op_t op)
{
    return ((sizes << 2) & size) ? UCS_BIT(op) : 0;
}

/* Whether there are masked atomics of a size, which all of 4 bytes are */
static int
uct_sep_device_has_masked(const uct_sep_hca_atomics_t *atomics, size_t size)
{
    return ucs_test_all_flags(atomics->operations,
                              UCT_SEP_ATOMIC_OPERATIONS_ALL) &&
           (atomics->sizes & size);
}

/* Atomics on PCIe are atomic with respect to the processor. Only add and
 * compare-swap of the sizes that the device reports are: it makes all others,
 * those with masks as well, of a read and a write, between which the processor
 * or an atomic on PCIe may change the memory. UCX's ib transports offer the
 * same (uct_rc_mlx5_iface_common_query), and those of 4 bytes also where the
 * device does not have the work requests for them. */
static int
uct_sep_device_init_pci_atomics(uct_sep_device_t *dev,
                                const uct_sep_hca_atomics_t *atomics)
{
    const struct ibv_pci_atomic_caps *pci = &dev->attr.pci_atomic_caps;
    uint64_t add32, add64, cswap32, cswap64;

    add32   = uct_sep_device_pci_atomic(pci->fetch_add, 4, UCT_ATOMIC_OP_ADD);
    add64   = uct_sep_device_pci_atomic(pci->fetch_add, 8, UCT_ATOMIC_OP_ADD);
    cswap32 = uct_sep_device_pci_atomic(pci->compare_swap, 4,
                                        UCT_ATOMIC_OP_CSWAP);
    cswap64 = uct_sep_device_pci_atomic(pci->compare_swap, 8,
                                        UCT_ATOMIC_OP_CSWAP);
    if ((add32 | add64 | cswap32 | cswap64) == 0) {
        return 0;
    }

    if (uct_sep_device_has_masked(atomics, sizeof(uint32_t))) {
        dev->atomic32.op_flags  = add32;
        dev->atomic32.fop_flags = add32 | cswap32;
    }
    dev->atomic64.op_flags  = add64;
    dev->atomic64.fop_flags = add64 | cswap64;
    dev->atomic_cap         = UCT_IFACE_FLAG_ATOMIC_CPU;
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
    uct_sep_hca_atomics_t ext = {};

    /* The kernel reports a device that returns old values of 8 bytes in big
     * endian as one without atomics */
    if (dev->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE) {
        return;
    }

    uct_sep_device_query_atomics(dev->context, &ext);
    if (uct_sep_device_init_pci_atomics(dev, &ext)) {
        return;
    }

    dev->atomic64.op_flags  = UCS_BIT(UCT_ATOMIC_OP_ADD);
    dev->atomic64.fop_flags = UCS_BIT(UCT_ATOMIC_OP_ADD) |
                              UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    dev->atomic_cap         = UCT_IFACE_FLAG_ATOMIC_DEVICE;

    if (uct_sep_device_has_masked(&ext, sizeof(uint32_t))) {
        dev->atomic32.op_flags  = ops;
        dev->atomic32.fop_flags = fops;
    }

    if (uct_sep_device_has_masked(&ext, sizeof(uint64_t)) && ext.host_order8) {
        dev->atomic64.op_flags  = ops;
        dev->atomic64.fop_flags = fops;
    }
}

ucs_status_t
uct_sep_device_open(uct_sep_device_t *dev, struct ibv_device *ibv_device)
{
    ucs_log_level_t level;
    int ret;

    memset(dev, 0, sizeof(*dev));

    dev->context = ibv_open_device(ibv_device);
    if (dev->context == NULL) {
        /* Who may use it wants to know why it can't be used; for others, it is
         * as if it were not there */
        level = ((errno == EACCES) || (errno == EPERM)) ? UCS_LOG_LEVEL_DIAG :
                                                          UCS_LOG_LEVEL_ERROR;
        ucs_log(level, "ibv_open_device(%s) failed: %m. Does another process "
                "have the last UAR pages? Are MLX5_TOTAL_UUARS and "
                "MLX5_NUM_LOW_LAT_UUARS right, if set? See sep_info -d",
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
                                  unsigned port_num,
                                  struct ibv_port_attr *attr_p)
{
    int ret = ibv_query_port(dev->context, port_num, attr_p);

    if (ret != 0) {
        ucs_debug("ibv_query_port(%s:%u) failed: %s", dev->name, port_num,
                  strerror(ret));
        return 0;
    }

    if (attr_p->state != IBV_PORT_ACTIVE) {
        ucs_debug("%s:%u is not active (state %d)", dev->name, port_num,
                  attr_p->state);
        return 0;
    }

    return (attr_p->link_layer == IBV_LINK_LAYER_UNSPECIFIED) ||
           (attr_p->link_layer == IBV_LINK_LAYER_INFINIBAND) ||
           (attr_p->link_layer == IBV_LINK_LAYER_ETHERNET);
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
