/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_UCT_IFACE_H
#define SEP_PERF_UCT_IFACE_H

#include <uct/api/uct.h>
#include <ucs/async/async.h>

/*
 * What both sides of level uct have: a memory domain, interfaces with an
 * endpoint, and how these are connected. Functions return 0, or -1 after a
 * message.
 */

/** Longest address of each kind, and longest packed key, bytes. */
#define SEP_PERF_UCT_ADDR_MAX  256

/** Active message that is measured. */
#define SEP_PERF_UCT_AM_ID     3

/** How many active messages differ before they repeat: sent from one byte later
 *  each time. No power of two, so that what is left of an older message in a
 *  place that is used again is told from what should be there. */
#define SEP_PERF_UCT_AM_SHIFTS 61


/** How a side is reached. */
typedef struct sep_perf_uct_addr {
    uint8_t device[SEP_PERF_UCT_ADDR_MAX];
    uint8_t iface[SEP_PERF_UCT_ADDR_MAX];
    uint8_t ep[SEP_PERF_UCT_ADDR_MAX];
} sep_perf_uct_addr_t;


/** The peer's memory. */
typedef struct sep_perf_uct_target {
    uint64_t address;
    uint32_t failed;       /**< The peer has no resources */
    uint8_t  rkey[SEP_PERF_UCT_ADDR_MAX];
} sep_perf_uct_target_t;


/** What a process has once. */
typedef struct sep_perf_uct_md {
    const char      *tl;
    char            device[UCT_DEVICE_NAME_MAX];
    uct_component_h component;
    uct_md_h        md;
    uct_md_attr_t   attr;
} sep_perf_uct_md_t;


/** Active messages that have come. */
typedef struct sep_perf_uct_inbox {
    size_t   bytes;     /**< Data of each; 0: nothing is known of them */
    unsigned threads;   /**< That send; if one, it is known which comes next */
    uint64_t received;
    uint64_t good;      /**< Of these, those with the right data */
} sep_perf_uct_inbox_t;


/** An interface with a worker of its own, and one endpoint. */
typedef struct sep_perf_uct_iface {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            ep;
} sep_perf_uct_iface_t;


/** Say what was not possible. @return -1 */
int sep_perf_uct_fail(const char *what, ucs_status_t status);


/** Open the memory domain that has a transport.
 *  @param [out] md     Memory domain.
 *  @param [in] tl      Name of the transport; it is kept.
 *  @param [in] device  Beginning of a device's name, or NULL for any.
 *  @param [in] port    Port of the device, from 1. */
int sep_perf_uct_md_open(sep_perf_uct_md_t *md, const char *tl,
                         const char *device, unsigned port);


/** Open an interface, which polls for both directions.
 *  @param [in] md      Memory domain.
 *  @param [in] inbox   Where messages that come are checked and counted.
 *  @param [out] iface  Interface, without an endpoint. */
int sep_perf_uct_iface_open(const sep_perf_uct_md_t *md,
                            sep_perf_uct_inbox_t *inbox,
                            sep_perf_uct_iface_t *iface);


/** Close an interface and its endpoint. */
void sep_perf_uct_iface_close(sep_perf_uct_iface_t *iface);


/** @return Whether endpoints of the transport are connected with each other,
 *          and not with an interface. */
int sep_perf_uct_connects_ep(const sep_perf_uct_iface_t *iface);


/** Make the endpoint.
 *  @param [in] remote  Interface that it leads to; not used if endpoints are
 *                      connected with each other. */
int sep_perf_uct_ep_create(sep_perf_uct_iface_t *iface,
                           const sep_perf_uct_addr_t *remote);


/** Connect the endpoint, if endpoints are connected with each other. */
int sep_perf_uct_ep_connect(const sep_perf_uct_iface_t *iface,
                            const sep_perf_uct_addr_t *remote);


/** How the interface and its endpoint are reached. */
int sep_perf_uct_address(const sep_perf_uct_iface_t *iface,
                         sep_perf_uct_addr_t *addr_p);


/** Zeroed, registered memory.
 *  @param [in] size       Bytes.
 *  @param [out] memory_p  To be given to free() when it was deregistered. */
int sep_perf_uct_mem_alloc(const sep_perf_uct_md_t *md, size_t size,
                           uint8_t **memory_p, uct_mem_h *memh_p);

#endif
