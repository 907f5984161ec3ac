/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_addr_rdmacm.h>

#include <endian.h>
#include <string.h>


/* First byte of such an address: UCT_IB_ADDRESS_FLAG_xx of UCX's ib_device.h */
enum {
    /* Always set, as rdmacm packs both; what they are about comes last */
    UCT_SEP_RDMACM_FLAG_GID_INDEX = 1 << 0,
    UCT_SEP_RDMACM_FLAG_PATH_MTU  = 1 << 1,
    /* Never set, as rdmacm does not pack it */
    UCT_SEP_RDMACM_FLAG_PKEY      = 1 << 2,
    UCT_SEP_RDMACM_FLAG_ETH       = 1 << 3,
    /* On InfiniBand, what follows the LID; on Ethernet, bits 5 and 6 are the
     * version of RoCE, which is "any" */
    UCT_SEP_RDMACM_FLAG_SUBNET16  = 1 << 4,
    UCT_SEP_RDMACM_FLAG_SUBNET64  = 1 << 5,
    UCT_SEP_RDMACM_FLAG_IF_ID     = 1 << 6
};

/* Not one of ours: of these with the first two bits, RoCE version 2 has the
 * third, and version 1 the last */
static int uct_sep_device_addr_is_rdmacm(uint8_t flags)
{
    const uint8_t always = UCT_SEP_RDMACM_FLAG_GID_INDEX |
                           UCT_SEP_RDMACM_FLAG_PATH_MTU;
    const uint8_t never  = UCT_SEP_RDMACM_FLAG_PKEY |
                           UCT_SEP_DEVICE_ADDR_FLAG_ROCE_V1;

    return (flags & (always | never)) == always;
}

/* Of an address with an interface id, which is followed by what there is of the
 * subnet: nothing of UCT_IB_LINK_LOCAL_PREFIX, and the last 16 bits of
 * UCT_IB_SITE_LOCAL_PREFIX (UCX's ib_device.h; IBA 4.1.1) */
static void uct_sep_rdmacm_gid(uint8_t flags, const uint8_t *bytes,
                               uint8_t *gid)
{
    const uint8_t *subnet = bytes + 8;

    gid[0] = 0xfe;
    gid[1] = 0x80;
    memcpy(gid + 8, bytes, 8);

    if (flags & UCT_SEP_RDMACM_FLAG_SUBNET16) {
        gid[1] = 0xc0;
        memcpy(gid + 6, subnet, 2);
    } else if (flags & UCT_SEP_RDMACM_FLAG_SUBNET64) {
        memcpy(gid, subnet, 8);
    }
}

void uct_sep_device_addr_read(const uct_sep_port_t *port,
                              const uct_device_addr_t *dev_addr,
                              uct_sep_device_addr_t *addr_p)
{
    const uint8_t *bytes = (const uint8_t*)dev_addr;
    uint8_t flags        = *bytes++;
    uint16_t lid;

    if (!uct_sep_device_addr_is_rdmacm(flags)) {
        memcpy(addr_p, dev_addr, sizeof(*addr_p));
        return;
    }

    memset(addr_p, 0, sizeof(*addr_p)); /* No P_Key, so it is hearsay */
    if (flags & UCT_SEP_RDMACM_FLAG_ETH) {
        addr_p->flags = uct_sep_device_addr_roce_flags(port->is_roce_v2, bytes);
        memcpy(addr_p->gid, bytes, sizeof(addr_p->gid));
        return;
    }

    memcpy(&lid, bytes, sizeof(lid));
    addr_p->lid = htobe16(lid);
    if (flags & UCT_SEP_RDMACM_FLAG_IF_ID) {
        addr_p->flags = UCT_SEP_DEVICE_ADDR_FLAG_GID;
        uct_sep_rdmacm_gid(flags, bytes + sizeof(lid), addr_p->gid);
    }
}
