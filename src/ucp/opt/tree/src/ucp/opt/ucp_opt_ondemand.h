/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_ONDEMAND_H_
#define UCP_OPT_ONDEMAND_H_

#include <ucp/core/ucp_types.h>
#include <ucs/sys/compiler_def.h>
#include <uct/api/uct.h>

/*
 * Endpoints that are connected when they are used for the first time. Such an
 * endpoint has its lanes chosen, so that keys can be unpacked and thresholds
 * are known, but lanes of transports that connect endpoint to endpoint are
 * wireup proxies without a transport endpoint: no QP, no auxiliary endpoint, no
 * message to the peer. What remains to be done is in the address, of which the
 * endpoint keeps a copy. The proxies refuse every operation, as they do while
 * they connect, and the first operation that is queued then makes the endpoint
 * connect (ucp_opt_ondemand_use()); or the peer does, by its own request
 * (ucp_opt_ondemand_accept()).
 */

/** What an endpoint needs to connect later. Owned by the endpoint. */
typedef struct ucp_opt_ondemand {
    unsigned ep_init_flags; /**< as given to ucp_wireup_init_lanes() */
    char     address[];     /**< the peer's address, packed */
} ucp_opt_ondemand_t;


/** Bit of ucp_wireup_ep_t::opt: the proxy has no transport endpoint yet, and is
 *  not counted in ucp_worker_t::flush_ops_count. */
#define UCP_OPT_ONDEMAND_EP_POSTPONED (1 << 1)

/** Bit of the flags of ucp_wireup_init_lanes(): postpone connecting. */
#define UCP_OPT_ONDEMAND_INIT UCS_BIT(24)


/**
 * Whether an endpoint is to be connected when it is used. One that handles
 * failures of the peer is connected at once, because it has to notice them.
 *
 * @param [in] worker         Worker the endpoint is created on.
 * @param [in] ep_init_flags  Flags it is created with.
 *
 * @return @a ep_init_flags, with UCP_OPT_ONDEMAND_INIT or without.
 */
unsigned ucp_opt_ondemand_init_flags(ucp_worker_h worker,
                                     unsigned ep_init_flags);

/**
 * Leave a wireup proxy unconnected.
 *
 * @param [in] uct_ep  A wireup proxy that was just created.
 */
void ucp_opt_ondemand_postpone(uct_ep_h uct_ep);

/**
 * What comes after the lanes have been initialized: keep the address, or send
 * the request to connect if nothing was postponed.
 *
 * @param [in] ep              Endpoint.
 * @param [in] ep_init_flags   Flags its lanes were initialized with.
 * @param [in] address         The peer's address, packed.
 * @param [in] remote_address  @a address, unpacked.
 */
ucs_status_t
ucp_opt_ondemand_request(ucp_ep_h ep, unsigned ep_init_flags,
                         const void *address,
                         const ucp_unpacked_address_t *remote_address);

/**
 * The endpoint is used: connect it if that was postponed. If it fails, the
 * endpoint does. To be called with the async context blocked.
 *
 * @param [in] ep  Endpoint, postponed or not.
 */
void ucp_opt_ondemand_use(ucp_ep_h ep);

/**
 * The peer wants to connect: create what was postponed. To be called with the
 * async context blocked.
 *
 * @param [in] ep              Endpoint, postponed or not.
 * @param [in] remote_address  Address in the peer's request.
 */
ucs_status_t
ucp_opt_ondemand_accept(ucp_ep_h ep,
                        const ucp_unpacked_address_t *remote_address);

/**
 * A key was unpacked that needs answers of the peer (atomics in software): as
 * ucp_ep_resolve_remote_id(), but not yet if the lane of its operations is
 * postponed. They are queued there, and then the endpoint connects.
 *
 * @param [in] ep    Endpoint, postponed or not.
 * @param [in] lane  Lane for active messages.
 */
ucs_status_t ucp_opt_ondemand_resolve_remote_id(ucp_ep_h ep,
                                                ucp_lane_index_t lane);

/**
 * @param [in] wireup_ep  Wireup proxy.
 *
 * @return Nonzero if it is postponed, which means that it has nothing to flush.
 */
int ucp_opt_ondemand_is_postponed(const ucp_wireup_ep_t *wireup_ep);

/**
 * A wireup proxy is being destroyed, which takes it out of the worker's count
 * of operations: put it there if it is not.
 *
 * @param [in] wireup_ep  Wireup proxy, postponed or not.
 */
void ucp_opt_ondemand_wireup_ep_cleanup(ucp_wireup_ep_t *wireup_ep);

/**
 * A request of version 2 of the protocols fails. Many of them cannot be
 * aborted, which does not matter for endpoints that do not handle failures of
 * the peer; but one that cannot be connected when it is used has requests that
 * were never begun, and the error is for these.
 *
 * @param [in] req     Request.
 * @param [in] status  Why it failed.
 */
void ucp_opt_ondemand_abort(ucp_request_t *req, ucs_status_t status);

/**
 * The endpoint is being destroyed: release what it kept.
 *
 * @param [in] ep  Endpoint.
 */
void ucp_opt_ondemand_cleanup(ucp_ep_h ep);

#endif
