/* SPDX-License-Identifier: BSD-3-Clause */

#include "bench_check.h"
#include "uct_pair.h"

#include <ucs/async/async_fwd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


/* Whether the memory domain that is open offers the transport; the name of the
 * device is returned if it does. */
static int uct_pair_md_has(uct_md_h md, const char *tl, const char *device,
                           char *found)
{
    uct_tl_resource_desc_t *tls;
    unsigned count, i;
    int result = 0;

    if (uct_md_query_tl_resources(md, &tls, &count) != UCS_OK) {
        return 0;
    }

    for (i = 0; (i < count) && !result; ++i) {
        if (!strcmp(tls[i].tl_name, tl) &&
            ((device == NULL) || !strcmp(tls[i].dev_name, device))) {
            snprintf(found, UCT_DEVICE_NAME_MAX, "%s", tls[i].dev_name);
            result = 1;
        }
    }

    uct_release_tl_resource_list(tls);
    return result;
}

static ucs_status_t
uct_pair_find_in_component(uct_component_h component, const char *tl,
                           const char *device, uct_pair_t *pair, char *found)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_md_config_t *config;
    ucs_status_t status;
    unsigned i;

    status = uct_component_query(component, &attr);
    if ((status != UCS_OK) || (attr.md_resource_count == 0)) {
        return UCS_ERR_NO_ELEM;
    }

    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    BENCH_CHECK_RETURN(uct_component_query(component, &attr));

    status = UCS_ERR_NO_ELEM;
    for (i = 0; i < attr.md_resource_count; ++i) {
        BENCH_CHECK_RETURN(uct_md_config_read(component, NULL, NULL, &config));
        if (uct_md_open(component, attr.md_resources[i].md_name, config,
                        &pair->md) == UCS_OK) {
            if (uct_pair_md_has(pair->md, tl, device, found)) {
                pair->component = component;
                status          = UCS_OK;
                i               = attr.md_resource_count;
            } else {
                uct_md_close(pair->md);
            }
        }
        uct_config_release(config);
    }

    free(attr.md_resources);
    return status;
}

static ucs_status_t uct_pair_find(const char *tl, const char *device,
                                  uct_pair_t *pair, char *found)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;
    uct_component_h *components;
    unsigned count, i;

    BENCH_CHECK_RETURN(uct_query_components(&components, &count));
    for (i = 0; (i < count) && (status == UCS_ERR_NO_ELEM); ++i) {
        status = uct_pair_find_in_component(components[i], tl, device, pair,
                                            found);
    }
    uct_release_component_list(components);

    if (status == UCS_ERR_NO_ELEM) {
        fprintf(stderr, "no transport %s on device %s in this UCX\n", tl,
                (device == NULL) ? "(any)" : device);
    }

    return status;
}

ucs_status_t uct_pair_add_iface(uct_pair_t *pair, int side,
                                uct_iface_h *iface_p)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_STATS_ROOT |
                                UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                UCT_IFACE_PARAM_FIELD_CPU_MASK |
                                UCT_IFACE_PARAM_FIELD_FEATURES,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = pair->tl,
        .mode.device.dev_name = pair->device,
        .features             = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT |
                                UCT_IFACE_FEATURE_GET | UCT_IFACE_FEATURE_AMO64
    };
    uct_iface_config_t *config;

    BENCH_CHECK_RETURN(uct_md_iface_config_read(pair->md, pair->tl, NULL, NULL,
                                                &config));
    BENCH_CHECK_RETURN(uct_iface_open(pair->md, pair->worker[side], &params,
                                      config, iface_p));
    uct_config_release(config);
    uct_iface_progress_enable(*iface_p, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return UCS_OK;
}

static ucs_status_t uct_pair_open_iface(uct_pair_t *pair, int side)
{
    BENCH_CHECK_RETURN(uct_worker_create(pair->async, UCS_THREAD_MODE_SINGLE,
                                         &pair->worker[side]));
    return uct_pair_add_iface(pair, side, &pair->iface[side]);
}

/* The second interface's memory is the target, and its key is what the first
 * uses. A transport that cannot register (shared memory) allocates. */
static ucs_status_t uct_pair_open_memory(uct_pair_t *pair, int side)
{
    uct_alloc_method_t method     = UCT_ALLOC_METHOD_MD;
    uct_mem_alloc_params_t params = {
        .field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                      UCT_MEM_ALLOC_PARAM_FIELD_FLAGS |
                      UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE,
        .flags      = UCT_MD_MEM_ACCESS_ALL,
        .mem_type   = UCS_MEMORY_TYPE_HOST,
        .mds        = {&pair->md, 1}
    };
    uct_allocated_memory_t memory;

    if (pair->md_attr.cap.flags & UCT_MD_FLAG_REG) {
        pair->buffer[side] = aligned_alloc(4096, UCT_PAIR_BUFFER_SIZE);
        BENCH_CHECK_RETURN(uct_md_mem_reg(pair->md, pair->buffer[side],
                                          UCT_PAIR_BUFFER_SIZE,
                                          UCT_MD_MEM_ACCESS_ALL,
                                          &pair->memh[side]));
    } else {
        BENCH_CHECK_RETURN(uct_mem_alloc(UCT_PAIR_BUFFER_SIZE, &method, 1,
                                         &params, &memory));
        pair->buffer[side] = memory.address;
        pair->memh[side]   = memory.memh;
    }

    memset(pair->buffer[side], 0, UCT_PAIR_BUFFER_SIZE);
    return UCS_OK;
}

static ucs_status_t uct_pair_open_rkey(uct_pair_t *pair)
{
    void *packed = calloc(1, pair->md_attr.rkey_packed_size + 1);

    BENCH_CHECK_RETURN(uct_md_mkey_pack(pair->md, pair->memh[1], packed));
    BENCH_CHECK_RETURN(uct_rkey_unpack(pair->component, packed, &pair->rkey));
    free(packed);
    return UCS_OK;
}

ucs_status_t uct_pair_connect_iface(uct_pair_t *pair, uct_iface_h iface,
                                    int side, unsigned path, uct_ep_h *ep_p)
{
    uct_device_addr_t *device_addr = calloc(1, pair->iface_attr.
                                               device_addr_len + 1);
    uct_iface_addr_t *iface_addr   = calloc(1, pair->iface_attr.iface_addr_len +
                                               1);
    uct_ep_params_t params         = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR |
                      UCT_EP_PARAM_FIELD_PATH_INDEX,
        .iface      = iface,
        .dev_addr   = device_addr,
        .iface_addr = iface_addr,
        .path_index = path
    };

    BENCH_CHECK_RETURN(uct_iface_get_device_address(pair->iface[side],
                                                    device_addr));
    BENCH_CHECK_RETURN(uct_iface_get_address(pair->iface[side], iface_addr));
    BENCH_CHECK_RETURN(uct_ep_create(&params, ep_p));
    free(iface_addr);
    free(device_addr);
    return UCS_OK;
}

ucs_status_t uct_pair_connect_back(uct_pair_t *pair)
{
    return (pair->ep[1] != NULL) ? UCS_OK :
           uct_pair_connect_iface(pair, pair->iface[1], 0, 0, &pair->ep[1]);
}

static ucs_status_t uct_pair_connect_to_ep(uct_pair_t *pair,
                                           uct_device_addr_t *device_addr)
{
    uct_ep_addr_t *ep_addr = calloc(1, pair->iface_attr.ep_addr_len + 1);
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE
    };
    int side;

    for (side = 0; side < 2; ++side) {
        params.iface = pair->iface[side];
        BENCH_CHECK_RETURN(uct_ep_create(&params, &pair->ep[side]));
    }

    for (side = 0; side < 2; ++side) {
        BENCH_CHECK_RETURN(uct_ep_get_address(pair->ep[!side], ep_addr));
        BENCH_CHECK_RETURN(uct_ep_connect_to_ep(pair->ep[side], device_addr,
                                                ep_addr));
    }

    free(ep_addr);
    return UCS_OK;
}

ucs_status_t uct_pair_open_md(const char *tl, const char *device,
                              uct_pair_t *pair)
{
    ucs_status_t status;

    memset(pair, 0, sizeof(*pair));
    pair->tl = tl;
    status   = uct_pair_find(tl, device, pair, pair->device);
    if (status != UCS_OK) {
        return status;
    }

    BENCH_CHECK_RETURN(uct_md_query(pair->md, &pair->md_attr));
    BENCH_CHECK_RETURN(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                                &pair->async));
    return UCS_OK;
}

ucs_status_t uct_pair_open(const char *tl, const char *device,
                           uct_pair_t *pair)
{
    uct_device_addr_t *device_addr;
    ucs_status_t status;
    int side;

    status = uct_pair_open_md(tl, device, pair);
    if (status != UCS_OK) {
        return status;
    }

    /* The one that sends is not the first worker of the process: sharing
     * categories may treat that one differently */
    for (side = 1; side >= 0; --side) {
        status = uct_pair_open_iface(pair, side);
        if (status != UCS_OK) {
            return status;
        }

        status = uct_pair_open_memory(pair, side);
        if (status != UCS_OK) {
            return status;
        }
    }

    status = uct_pair_open_rkey(pair);
    if (status != UCS_OK) {
        return status;
    }

    BENCH_CHECK_RETURN(uct_iface_query(pair->iface[0], &pair->iface_attr));

    if (pair->iface_attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) {
        return uct_pair_connect_iface(pair, pair->iface[0], 1, 0, &pair->ep[0]);
    }

    /* Both are on the same device. */
    device_addr = calloc(1, pair->iface_attr.device_addr_len + 1);
    BENCH_CHECK_RETURN(uct_iface_get_device_address(pair->iface[1],
                                                    device_addr));
    status = uct_pair_connect_to_ep(pair, device_addr);
    free(device_addr);
    return status;
}

static void uct_pair_close_memory(uct_pair_t *pair, int side)
{
    if (pair->md_attr.cap.flags & UCT_MD_FLAG_REG) {
        uct_md_mem_dereg(pair->md, pair->memh[side]);
        free(pair->buffer[side]);
    }
    /* What was allocated goes with the process. */
}

void uct_pair_close(uct_pair_t *pair)
{
    int side;

    for (side = 0; side < 2; ++side) {
        if (pair->ep[side] != NULL) {
            uct_ep_destroy(pair->ep[side]);
        }
    }

    uct_rkey_release(pair->component, &pair->rkey);
    for (side = 0; side < 2; ++side) {
        uct_iface_close(pair->iface[side]);
        uct_worker_destroy(pair->worker[side]);
        uct_pair_close_memory(pair, side);
    }

    ucs_async_context_destroy(pair->async);
    uct_md_close(pair->md);
}

ucs_status_t uct_pair_quiesce(uct_pair_t *pair)
{
    time_t deadline = time(NULL) + 10;
    ucs_status_t status;
    int side;

    for (side = 0; side < 2; ++side) {
        do {
            uct_pair_progress(pair);
            status = uct_iface_flush(pair->iface[side], 0, NULL);
            if (time(NULL) > deadline) {
                return UCS_ERR_TIMED_OUT;
            }
        } while ((status == UCS_INPROGRESS) ||
                 (status == UCS_ERR_NO_RESOURCE));
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}
