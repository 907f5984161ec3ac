/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_ADDR_H
#define UCT_SEP_HUB_ADDR_H

#include <uct/ib/sep/port/sep_addr_def.h>

/**
 * @file sep_hub_addr.h
 *
 * What of a hub others get to see: the address of an interface on it, and what
 * precedes messages to it. Big endian and without padding, as all that goes
 * over the wire.
 */

/** First byte of the address. */
#define UCT_SEP_HUB_ADDR_VERSION  (UCT_SEP_ADDR_HUB_FLAG | UCT_SEP_ADDR_VERSION)


/** Where a message goes: in front of the data of every active message. */
typedef struct uct_sep_hub_route {
    __be16 worker;    /**< Index of the interface in its hub */
    __be16 reserved;  /**< Zero */
    __be32 id;        /**< Random id of the interface, since others may have
                           had its index before */
} UCS_S_PACKED uct_sep_hub_route_t;

static_assert(sizeof(uct_sep_hub_route_t) == sizeof(uint64_t),
              "takes the place of the header of a short message");


/** Address of an interface on a hub. */
typedef struct uct_sep_hub_addr {
    uint8_t              version;   /**< UCT_SEP_HUB_ADDR_VERSION */
    uct_sep_hub_route_t  route;
    uct_sep_iface_addr_t iface;     /**< Of the hub: what is connected to */
} UCS_S_PACKED uct_sep_hub_addr_t;

/* As UCX's connection manager has room for it (@ref uct_sep_iface_addr_t), if
 * the client does not send its id: that is 8 bytes, and there is one path */
static_assert(sizeof(uct_sep_hub_addr_t) == 20, "hub address size");

#endif
