/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_UCP_PAIR_H_
#define BENCH_UCP_PAIR_H_

#include <ucp/api/ucp.h>

/*
 * Two UCP workers of one process, each with an endpoint to the other.
 */

#define UCP_PAIR_BUFFER_SIZE 65536

typedef struct ucp_pair {
    int           is_shared;     /**< set before opening: the context is one of
                                      workers of several threads */
    int           is_guest;      /**< the context is that of another pair */
    ucp_context_h context;
    ucp_worker_h  worker[2];
    ucp_ep_h      ep[2];         /**< ep[i] leads from worker i to the other */
    ucp_mem_h     memh[2];
    void          *buffer[2];    /**< registered, UCP_PAIR_BUFFER_SIZE bytes */
    void          *packed_rkey;  /**< of buffer[1] */
    ucp_rkey_h    rkey;          /**< of buffer[1], for ep[0] */
} ucp_pair_t;

/** Open and connect with what the UCX_* environment variables choose.
 *  @return UCS_OK, or an error that has been reported on standard error. */
ucs_status_t ucp_pair_open(ucp_pair_t *pair);

/** The same in a context that another pair has, which has to stay open. */
ucs_status_t ucp_pair_open_beside(ucp_pair_t *pair, const ucp_pair_t *other);

/** Progress both workers once. */
void ucp_pair_progress(ucp_pair_t *pair);

/** Progress both workers until a request is completed, and release it.
 *  @param [in] request  What an ..._nbx function returned.
 *  @return Status of the operation. */
ucs_status_t ucp_pair_wait(ucp_pair_t *pair, ucs_status_ptr_t request);

/** Flush both workers. @return Status of the flush. */
ucs_status_t ucp_pair_flush(ucp_pair_t *pair);

/** Disconnect and release everything. */
void ucp_pair_close(ucp_pair_t *pair);

#endif
