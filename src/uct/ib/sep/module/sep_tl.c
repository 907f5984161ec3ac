/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/module/sep_tl.h>
#include <uct/ib/sep/module/sep_abi.h>
#include <uct/ib/sep/compat/sep_compat_md.h>
#include <uct/ib/sep/hub/sep_hub_iface.h>
#include <uct/ib/sep/iface/sep_config.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/open/sep_iface_open.h>

#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/string.h>


static ucs_status_t
uct_sep_query_devices(uct_md_h tl_md, uct_tl_device_resource_t **devices_p,
                      unsigned *num_devices_p)
{
    uct_sep_md_t *md       = ucs_derived_of(tl_md, uct_sep_md_t);
    unsigned num_ports     = md->dev.attr.orig_attr.phys_port_cnt;
    unsigned num_devices   = 0;
    uct_tl_device_resource_t *devices;
    unsigned port_num;

    devices = ucs_calloc(ucs_max(num_ports, 1), sizeof(*devices),
                         "sep_devices");
    if (devices == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (port_num = 1; port_num <= num_ports; ++port_num) {
        if (uct_sep_md_offers_port(md, port_num)) {
            ucs_snprintf_zero(devices[num_devices].name,
                              sizeof(devices[num_devices].name), "%s:%u",
                              md->dev.name, port_num);
            devices[num_devices].type       = UCT_DEVICE_TYPE_NET;
            devices[num_devices].sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
            ++num_devices;
        }
    }

    *devices_p     = devices;
    *num_devices_p = num_devices;
    return UCS_OK;
}

/* What the transport's entry considers the constructor of a class */
static ucs_status_t
UCS_CLASS_NEW_FUNC_NAME(uct_sep_any)(uct_md_h md, uct_worker_h worker,
                                     const uct_iface_params_t *params,
                                     const uct_iface_config_t *tl_config,
                                     uct_iface_h *iface_p)
{
    const uct_sep_iface_config_t *config = ucs_derived_of(tl_config,
                                                     uct_sep_iface_config_t);

    if (uct_sep_category_rows[config->category].is_hub) {
        return uct_sep_hub_iface_open(md, worker, params, tl_config, iface_p);
    }

    return uct_sep_iface_open(md, worker, params, tl_config, iface_p);
}

static ucs_status_t
uct_sep_query_md_resources(uct_component_t *component,
                           uct_md_resource_desc_t **resources_p,
                           unsigned *num_resources_p)
{
    uct_md_resource_desc_t *resources;
    struct ibv_device **list;
    unsigned num_resources;
    int i, count;

    list = ibv_get_device_list(&count);
    if (list == NULL) {
        /* No kernel support for RDMA is not an error here */
        ucs_debug("ibv_get_device_list() failed: %m");
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    resources = ucs_calloc(ucs_max(count, 1), sizeof(*resources),
                           "sep_md_resources");
    if (resources == NULL) {
        ibv_free_device_list(list);
        return UCS_ERR_NO_MEMORY;
    }

    num_resources = 0;
    for (i = 0; i < count; ++i) {
        if (uct_sep_device_is_usable(list[i])) {
            ucs_snprintf_zero(resources[num_resources++].md_name,
                              UCT_MD_NAME_MAX, "%s",
                              ibv_get_device_name(list[i]));
        }
    }

    ibv_free_device_list(list);
    *resources_p     = resources;
    *num_resources_p = num_resources;
    return UCS_OK;
}

uct_component_t uct_sep_component = {
    .query_md_resources = uct_sep_query_md_resources,
    .md_open            = uct_sep_md_open,
    UCT_SEP_COMPAT_UNSUPPORTED(cm_open, uct_component_cm_open_func_t),
    .rkey_unpack        = uct_sep_rkey_unpack,
    UCT_SEP_COMPAT_UNSUPPORTED(rkey_ptr, uct_component_rkey_ptr_func_t),
    .rkey_release       = UCT_SEP_COMPAT_STUB(
                                  uct_component_rkey_release_func_t,
                                  ucs_empty_function_return_success),
    UCT_SEP_COMPAT_COMPONENT_OPS
    .name               = "sep",
    .md_config          = {
        .name           = "SEP memory domain",
        .prefix         = UCT_SEP_CONFIG_PREFIX,
        .table          = uct_sep_md_config_table,
        .size           = sizeof(uct_sep_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(&uct_sep_component),
    .flags              = 0,
    .md_vfs_init        = uct_sep_md_vfs_init
};

UCT_TL_DEFINE_ENTRY(&uct_sep_component, sep_mlx5, uct_sep_query_devices,
                    uct_sep_any, UCT_SEP_CONFIG_PREFIX,
                    uct_sep_config_table, uct_sep_iface_config_t);

/* Runs when the module is loaded. Never undone: UCT keeps components for good,
 * and the module is linked so that it stays in memory. */
static void UCS_F_CTOR uct_sep_register(void)
{
    if (uct_sep_abi_check() != UCS_OK) {
        return; /* It has printed what is wrong */
    }

    uct_component_register(&uct_sep_component);
    uct_tl_register(&uct_sep_component, &UCT_TL_NAME(sep_mlx5));
}
