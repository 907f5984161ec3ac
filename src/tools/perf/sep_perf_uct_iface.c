/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_uct_iface.h>
#include <tools/perf/sep_perf_wire.h>

#include <uct/ib/sep/module/sep_tl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


int sep_perf_uct_fail(const char *what, ucs_status_t status)
{
    fprintf(stderr, "sep_perf: %s: %s\n", what, ucs_status_string(status));
    return -1;
}

/* Whether the memory domain that is open has the transport, on the device that
 * the user names */
static int sep_perf_uct_md_has(sep_perf_uct_md_t *md, const char *device,
                               unsigned port)
{
    char name[UCT_DEVICE_NAME_MAX];
    uct_tl_resource_desc_t *tls;
    unsigned count, i;
    const char *end;
    int found = 0;

    if (uct_md_query_tl_resources(md->md, &tls, &count) != UCS_OK) {
        return 0;
    }
    snprintf(name, sizeof(name), ":%u", port);
    for (i = 0; (i < count) && !found; ++i) {
        end   = strrchr(tls[i].dev_name, ':');
        found = (strcmp(tls[i].tl_name, md->tl) == 0) &&
                ((end == NULL) || (strcmp(end, name) == 0)) &&
                ((device == NULL) ||
                 (strncmp(tls[i].dev_name, device, strlen(device)) == 0));
        if (found) {
            snprintf(md->device, sizeof(md->device), "%s", tls[i].dev_name);
        }
    }
    uct_release_tl_resource_list(tls);
    return found;
}

static int sep_perf_uct_find_md(sep_perf_uct_md_t *md, const char *device,
                                unsigned port)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_md_config_t *config;
    int found = 0;
    unsigned i;

    if ((uct_component_query(md->component, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0)) {
        return 0;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    if ((attr.md_resources == NULL) ||
        (uct_component_query(md->component, &attr) != UCS_OK) ||
        (uct_md_config_read(md->component, NULL, NULL, &config) != UCS_OK)) {
        free(attr.md_resources);
        return 0;
    }

    for (i = 0; (i < attr.md_resource_count) && !found; ++i) {
        if (uct_md_open(md->component, attr.md_resources[i].md_name, config,
                        &md->md) == UCS_OK) {
            found = sep_perf_uct_md_has(md, device, port);
            if (!found) {
                uct_md_close(md->md);
            }
        }
    }
    uct_config_release(config);
    free(attr.md_resources);
    return found;
}

int sep_perf_uct_md_open(sep_perf_uct_md_t *md, const char *tl,
                         const char *device, unsigned port)
{
    uct_component_h *components;
    unsigned count, i;
    int found = 0;

    memset(md, 0, sizeof(*md));
    md->tl = tl;
    /* Our transport is part of this program; to name it is what links it in */
    if (ucs_list_is_empty(&uct_sep_component.tl_list)) {
        return -1; /* sep_abi.h has printed why */
    }
    if (uct_query_components(&components, &count) != UCS_OK) {
        return -1;
    }
    for (i = 0; (i < count) && !found; ++i) {
        md->component = components[i];
        found         = sep_perf_uct_find_md(md, device, port);
    }
    uct_release_component_list(components);
    if (!found) {
        fprintf(stderr, "sep_perf: there is no %s on port %u of %s: neither an "
                "adapter nor the software device (mlx5sim-run sep_perf), or "
                "this UCX does not have it\n", tl, port,
                (device == NULL) ? "any device" : device);
        return -1;
    }
    return (uct_md_query(md->md, &md->attr) == UCS_OK) ? 0 : -1;
}

/* A short message has a header in front of the data */
static ucs_status_t sep_perf_uct_receive(void *arg, void *data, size_t length,
                                         unsigned flags)
{
    sep_perf_uct_inbox_t *inbox = arg;
    uint8_t first, wrong = 0;
    const uint8_t *bytes;
    size_t i;

    if (length >= inbox->bytes) {
        bytes = (const uint8_t*)data + (length - inbox->bytes);
        first = (inbox->threads == 1) ?
                sep_perf_pattern(0, inbox->received % SEP_PERF_UCT_AM_SHIFTS) :
                (inbox->bytes > 0) ? bytes[0] : 0;
        for (i = 0; i < inbox->bytes; ++i) {
            wrong |= bytes[i] ^ (uint8_t)(first + sep_perf_pattern(0, i) -
                                          sep_perf_pattern(0, 0));
        }
        inbox->good += (wrong == 0);
    }
    ++inbox->received;
    return UCS_OK;
}

int sep_perf_uct_iface_open(const sep_perf_uct_md_t *md,
                            sep_perf_uct_inbox_t *inbox,
                            sep_perf_uct_iface_t *iface)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = md->tl,
        .mode.device.dev_name = md->device
    };
    uct_iface_config_t *config;
    ucs_status_t status;

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                      &iface->async);
    if (status == UCS_OK) {
        status = uct_worker_create(iface->async, UCS_THREAD_MODE_SINGLE,
                                   &iface->worker);
    }
    if (status == UCS_OK) {
        status = uct_md_iface_config_read(md->md, md->tl, NULL, NULL, &config);
    }
    if (status == UCS_OK) {
        status = uct_iface_open(md->md, iface->worker, &params, config,
                                &iface->iface);
        uct_config_release(config);
    }
    if (status == UCS_OK) {
        status = uct_iface_query(iface->iface, &iface->attr);
    }
    if (status != UCS_OK) {
        return sep_perf_uct_fail("a worker can't be opened", status);
    }
    if ((iface->attr.device_addr_len > SEP_PERF_UCT_ADDR_MAX) ||
        (iface->attr.iface_addr_len > SEP_PERF_UCT_ADDR_MAX) ||
        (iface->attr.ep_addr_len > SEP_PERF_UCT_ADDR_MAX)) {
        fprintf(stderr, "sep_perf: %s has addresses that are too long\n",
                md->tl);
        return -1;
    }

    if (iface->attr.cap.flags & (UCT_IFACE_FLAG_AM_SHORT |
                                 UCT_IFACE_FLAG_AM_BCOPY)) {
        uct_iface_set_am_handler(iface->iface, SEP_PERF_UCT_AM_ID,
                                 sep_perf_uct_receive, inbox, 0);
    }
    uct_iface_progress_enable(iface->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return 0;
}

void sep_perf_uct_iface_close(sep_perf_uct_iface_t *iface)
{
    uct_ep_destroy(iface->ep);
    uct_iface_close(iface->iface);
    uct_worker_destroy(iface->worker);
    ucs_async_context_destroy(iface->async);
}

int sep_perf_uct_connects_ep(const sep_perf_uct_iface_t *iface)
{
    return !(iface->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE);
}

int sep_perf_uct_ep_create(sep_perf_uct_iface_t *iface,
                           const sep_perf_uct_addr_t *remote)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = iface->iface
    };
    ucs_status_t status;

    if (!sep_perf_uct_connects_ep(iface)) {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = (const uct_device_addr_t*)remote->device;
        params.iface_addr  = (const uct_iface_addr_t*)remote->iface;
    }
    status = uct_ep_create(&params, &iface->ep);
    return (status == UCS_OK) ? 0 :
           sep_perf_uct_fail("an endpoint can't be made", status);
}

int sep_perf_uct_address(const sep_perf_uct_iface_t *iface,
                         sep_perf_uct_addr_t *addr_p)
{
    ucs_status_t status;

    memset(addr_p, 0, sizeof(*addr_p));
    status = uct_iface_get_device_address(iface->iface,
                                          (uct_device_addr_t*)addr_p->device);
    if ((status == UCS_OK) && (iface->attr.iface_addr_len > 0)) {
        status = uct_iface_get_address(iface->iface,
                                       (uct_iface_addr_t*)addr_p->iface);
    }
    if ((status == UCS_OK) && sep_perf_uct_connects_ep(iface)) {
        status = uct_ep_get_address(iface->ep, (uct_ep_addr_t*)addr_p->ep);
    }
    return (status == UCS_OK) ? 0 : sep_perf_uct_fail("no address", status);
}

int sep_perf_uct_ep_connect(const sep_perf_uct_iface_t *iface,
                            const sep_perf_uct_addr_t *remote)
{
    ucs_status_t status;

    if (!sep_perf_uct_connects_ep(iface)) {
        return 0;
    }
    status = uct_ep_connect_to_ep(iface->ep,
                                  (const uct_device_addr_t*)remote->device,
                                  (const uct_ep_addr_t*)remote->ep);
    return (status == UCS_OK) ? 0 : sep_perf_uct_fail("no connection", status);
}

int sep_perf_uct_mem_alloc(const sep_perf_uct_md_t *md, size_t size,
                           uint8_t **memory_p, uct_mem_h *memh_p)
{
    size_t pages = (size + 4095) & ~4095ul;
    ucs_status_t status;

    *memory_p = aligned_alloc(4096, pages);
    if (*memory_p == NULL) {
        perror("sep_perf: memory");
        return -1;
    }
    memset(*memory_p, 0, pages);
    status = uct_md_mem_reg(md->md, *memory_p, pages, UCT_MD_MEM_ACCESS_ALL,
                            memh_p);
    return (status == UCS_OK) ? 0 :
           sep_perf_uct_fail("memory can't be registered", status);
}
