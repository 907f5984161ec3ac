/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages between the two workers of a pair, for programs in which threads
 * have a pair each.
 */

#include "ucp_pair.h"

#include <string.h>


#define UCP_OPS_TAG    5
#define UCP_OPS_WARMUP 200
#define UCP_OPS_WINDOW 32 /* puts between two flushes */


typedef struct ucp_ops_op {
    const char *name;
    int        is_put;
    size_t     length;
} ucp_ops_op_t;


static const ucp_ops_op_t ucp_ops[] = {
    {"put_8",   1, 8},
    {"put_64k", 1, 65536},
    {"tag_8",   0, 8},
    {"tag_8k",  0, 8192},
    {"tag_64k", 0, 65536},
    {NULL}
};

static const ucp_request_param_t ucp_ops_no_param = {.op_attr_mask = 0};


/* NULL if there is none of this name. */
static const ucp_ops_op_t *ucp_ops_find(const char *name)
{
    const ucp_ops_op_t *op;

    for (op = ucp_ops; op->name != NULL; ++op) {
        if (!strcmp(name, op->name)) {
            return op;
        }
    }

    return NULL;
}

static ucs_status_t ucp_ops_put(ucp_pair_t *pair, size_t length)
{
    ucs_status_ptr_t request;

    request = ucp_put_nbx(pair->ep[0], pair->buffer[0], length,
                          (uintptr_t)pair->buffer[1], pair->rkey,
                          &ucp_ops_no_param);
    ucp_worker_progress(pair->worker[0]);
    return ucp_pair_wait(pair, request);
}

static ucs_status_t ucp_ops_tag(ucp_pair_t *pair, size_t length)
{
    ucs_status_ptr_t send, recv;
    ucs_status_t status;

    recv   = ucp_tag_recv_nbx(pair->worker[1], pair->buffer[1], length,
                              UCP_OPS_TAG, (ucp_tag_t)-1, &ucp_ops_no_param);
    send   = ucp_tag_send_nbx(pair->ep[0], pair->buffer[0], length, UCP_OPS_TAG,
                              &ucp_ops_no_param);
    status = ucp_pair_wait(pair, send);
    return (status == UCS_OK) ? ucp_pair_wait(pair, recv) : status;
}

/* A message, from the call until both sides have completed it. */
static inline ucs_status_t
ucp_ops_message(ucp_pair_t *pair, const ucp_ops_op_t *op)
{
    return op->is_put ? ucp_ops_put(pair, op->length) :
                        ucp_ops_tag(pair, op->length);
}

static ucs_status_t ucp_ops_warm_up(ucp_pair_t *pair, const ucp_ops_op_t *op)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < UCP_OPS_WARMUP) && (status == UCS_OK); ++i) {
        status = ucp_ops_message(pair, op);
    }

    status = (status == UCS_OK) ? ucp_pair_flush(pair) : status;
    /* What connecting has left to be done */
    for (i = 0; i < UCP_OPS_WARMUP; ++i) {
        ucp_pair_progress(pair);
    }

    return status;
}
