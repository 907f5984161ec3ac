/* SPDX-License-Identifier: BSD-3-Clause */

#include "bench_check.h"
#include "ucp_pair.h"

#include <stdio.h>


static const ucp_request_param_t ucp_pair_no_param = {.op_attr_mask = 0};


static ucs_status_t ucp_pair_open_context(ucp_pair_t *pair)
{
    ucp_params_t params = {
        .field_mask        = UCP_PARAM_FIELD_FEATURES |
                             UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features          = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
                             UCP_FEATURE_TAG | UCP_FEATURE_AM,
        .mt_workers_shared = pair->is_shared
    };
    ucp_config_t *config;
    ucs_status_t status;

    BENCH_CHECK_RETURN(ucp_config_read(NULL, NULL, &config));
    status = ucp_init(&params, config, &pair->context);
    ucp_config_release(config);
    BENCH_CHECK_RETURN(status);
    return UCS_OK;
}

static ucs_status_t ucp_pair_open_side(ucp_pair_t *pair, int side)
{
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_mem_map_params_t mem_params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length     = UCP_PAIR_BUFFER_SIZE,
        .flags      = UCP_MEM_MAP_ALLOCATE
    };
    ucp_mem_attr_t mem_attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

    BENCH_CHECK_RETURN(ucp_worker_create(pair->context, &worker_params,
                                         &pair->worker[side]));
    BENCH_CHECK_RETURN(ucp_mem_map(pair->context, &mem_params,
                                   &pair->memh[side]));
    BENCH_CHECK_RETURN(ucp_mem_query(pair->memh[side], &mem_attr));
    pair->buffer[side] = mem_attr.address;
    return UCS_OK;
}

static ucs_status_t ucp_pair_connect(ucp_pair_t *pair, int side)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;

    BENCH_CHECK_RETURN(ucp_worker_get_address(pair->worker[!side], &address,
                                              &length));
    params.address = address;
    status         = ucp_ep_create(pair->worker[side], &params,
                                   &pair->ep[side]);
    ucp_worker_release_address(pair->worker[!side], address);
    BENCH_CHECK_RETURN(status);
    return UCS_OK;
}

static ucs_status_t ucp_pair_open_sides(ucp_pair_t *pair)
{
    size_t size;
    int side;

    for (side = 0; side < 2; ++side) {
        BENCH_CHECK_RETURN(ucp_pair_open_side(pair, side));
    }

    for (side = 0; side < 2; ++side) {
        BENCH_CHECK_RETURN(ucp_pair_connect(pair, side));
    }

    /* When both have been flushed, both are connected. */
    BENCH_CHECK_RETURN(ucp_pair_flush(pair));

    BENCH_CHECK_RETURN(ucp_rkey_pack(pair->context, pair->memh[1],
                                     &pair->packed_rkey, &size));
    BENCH_CHECK_RETURN(ucp_ep_rkey_unpack(pair->ep[0], pair->packed_rkey,
                                          &pair->rkey));
    return UCS_OK;
}

ucs_status_t ucp_pair_open(ucp_pair_t *pair)
{
    BENCH_CHECK_RETURN(ucp_pair_open_context(pair));
    return ucp_pair_open_sides(pair);
}

ucs_status_t ucp_pair_open_beside(ucp_pair_t *pair, const ucp_pair_t *other)
{
    pair->context  = other->context;
    pair->is_guest = 1;
    return ucp_pair_open_sides(pair);
}

void ucp_pair_progress(ucp_pair_t *pair)
{
    ucp_worker_progress(pair->worker[0]);
    ucp_worker_progress(pair->worker[1]);
}

ucs_status_t ucp_pair_wait(ucp_pair_t *pair, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_pair_progress(pair);
    }

    ucp_request_free(request);
    return status;
}

ucs_status_t ucp_pair_flush(ucp_pair_t *pair)
{
    ucs_status_t status = UCS_OK;
    int side;

    for (side = 0; (side < 2) && (status == UCS_OK); ++side) {
        status = ucp_pair_wait(pair, ucp_ep_flush_nbx(pair->ep[side],
                                                      &ucp_pair_no_param));
    }

    return status;
}

void ucp_pair_close(ucp_pair_t *pair)
{
    ucs_status_ptr_t request[2];
    int side;

    ucp_rkey_destroy(pair->rkey);
    ucp_rkey_buffer_release(pair->packed_rkey);
    for (side = 0; side < 2; ++side) {
        request[side] = ucp_ep_close_nbx(pair->ep[side], &ucp_pair_no_param);
    }

    for (side = 0; side < 2; ++side) {
        ucp_pair_wait(pair, request[side]);
    }

    for (side = 0; side < 2; ++side) {
        ucp_mem_unmap(pair->context, pair->memh[side]);
        ucp_worker_destroy(pair->worker[side]);
    }

    if (!pair->is_guest) {
        ucp_cleanup(pair->context);
    }
}
