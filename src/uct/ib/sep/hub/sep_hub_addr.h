/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_HUB_ADDR_H
#define UCT_SEP_HUB_ADDR_H

#include <uct/ib/sep/port/sep_addr_def.h>
#include <string.h>

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
    __be16  worker;       /**< Number of the interface in its hub. When it has
                               gone, nobody gets it again before all others had
                               their turn. */
    uint8_t reserved[6];  /**< Zero */
} UCS_S_PACKED uct_sep_hub_route_t;

static_assert(sizeof(uct_sep_hub_route_t) == sizeof(uint64_t),
              "takes the place of the header of a short message");


/** Address of an interface on a hub. */
typedef struct uct_sep_hub_addr {
    uct_sep_iface_addr_t iface;   /**< Of the hub, what is connected to, but for
                                       UCT_SEP_HUB_ADDR_VERSION */
    __be16               worker;  /**< As in the route */
} UCS_S_PACKED uct_sep_hub_addr_t;

/* As the connection managers of UCX 1.13 and 1.16 to 1.22 have room for it
 * (@ref uct_sep_iface_addr_t): there is one path */
static_assert(sizeof(uct_sep_hub_addr_t) == 13, "hub address size");


/** @return Address of the hub's own interface. */
static inline uct_sep_iface_addr_t
uct_sep_hub_addr_iface(const uct_sep_hub_addr_t *addr)
{
    uct_sep_iface_addr_t iface = addr->iface;

    iface.version &= ~UCT_SEP_ADDR_HUB_FLAG;
    return iface;
}


/** @return uct_sep_hub_route_t of messages to an interface. */
static inline uint64_t uct_sep_hub_addr_route(const uct_sep_hub_addr_t *addr)
{
    uct_sep_hub_route_t route = {.worker = addr->worker};
    uint64_t word;

    memcpy(&word, &route, sizeof(word));
    return word;
}

#endif
