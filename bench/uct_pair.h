/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_UCT_PAIR_H_
#define BENCH_UCT_PAIR_H_

#include <uct/api/uct.h>


/**
 * Two interfaces of one transport in one process, each on a worker of its own
 * as if in two processes, with an endpoint from the first to the second (and,
 * for transports that connect endpoints to each other, one back).
 */
typedef struct uct_pair {
    ucs_async_context_t *async;
    uct_component_h     component;
    uct_md_h            md;
    uct_md_attr_t       md_attr;
    const char          *tl;          /**< As it was given */
    char                device[UCT_DEVICE_NAME_MAX]; /**< As it was found */
    uct_worker_h        worker[2];
    uct_iface_h         iface[2];
    uct_iface_attr_t    iface_attr;   /**< Of either interface */
    uct_ep_h            ep[2];        /**< ep[1] is NULL if it is not needed */
    uint8_t             *buffer[2];   /**< UCT_PAIR_BUFFER_SIZE bytes each,
                                           zeroed, registered */
    uct_mem_h           memh[2];
    uct_rkey_bundle_t   rkey;         /**< Of buffer[1] */
} uct_pair_t;


/** Bytes of each buffer. */
#define UCT_PAIR_BUFFER_SIZE 65536


/**
 * Find the transport, and open its memory domain and an async context: what
 * there is before any interface. Arguments and result as of @ref uct_pair_open.
 */
ucs_status_t uct_pair_open_md(const char *tl, const char *device,
                              uct_pair_t *pair);


/**
 * Open both interfaces and connect them. Connections that are made on demand
 * are not awaited: the first operations may return UCS_ERR_NO_RESOURCE.
 *
 * @param [in]  tl      Transport name, such as "rc_mlx5".
 * @param [in]  device  Device name, such as "mlx5_0:1"; NULL for the first.
 * @param [out] pair    Filled in.
 *
 * @return UCS_OK, or the first error, after a message on standard error; the
 *         process is expected to end then, and nothing is released.
 */
ucs_status_t uct_pair_open(const char *tl, const char *device,
                           uct_pair_t *pair);


/**
 * Have an endpoint in the other direction as well, if there is none: transports
 * that connect interfaces need it for sending only. It is closed with the pair.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t uct_pair_connect_back(uct_pair_t *pair);


/**
 * Open another interface, on one of the workers. Nothing closes it but the end
 * of the process.
 *
 * @param [in]  side     Of the worker.
 * @param [out] iface_p  Progressed with its worker.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t uct_pair_add_iface(uct_pair_t *pair, int side,
                                uct_iface_h *iface_p);


/**
 * Connect an interface to one of the pair's, if the transport connects
 * interfaces.
 *
 * @param [in]  iface  Any of this transport and device.
 * @param [in]  side   Of the interface to connect to.
 * @param [in]  path   Index of the path, less than dev_num_paths of its
 *                     attributes.
 *
 * @return UCS_OK, or an error after a message.
 */
ucs_status_t uct_pair_connect_iface(uct_pair_t *pair, uct_iface_h iface,
                                    int side, unsigned path, uct_ep_h *ep_p);


/** Release what uct_pair_open() made. */
void uct_pair_close(uct_pair_t *pair);


/** Progress both workers once. @return Whether anything happened. */
static inline int uct_pair_progress(uct_pair_t *pair)
{
    unsigned count = uct_worker_progress(pair->worker[0]);

    return (count + uct_worker_progress(pair->worker[1])) > 0;
}


/** Progress both workers as long as anything happens: what one call leaves to
 *  the next must not add up. */
static inline void uct_pair_drain(uct_pair_t *pair)
{
    while (uct_pair_progress(pair)) {
    }
}


/**
 * Progress until nothing is outstanding on either interface.
 *
 * @return UCS_OK, or UCS_ERR_TIMED_OUT after ten seconds, or the error of the
 *         flush.
 */
ucs_status_t uct_pair_quiesce(uct_pair_t *pair);

#endif
