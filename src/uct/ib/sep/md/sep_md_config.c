/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/device/sep_pci.h>
#include <uct/ib/sep/port/sep_port.h>

#include <ucs/arch/cpu.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <string.h>

/*
 * Configuration of a memory domain: the variables, and how they apply to a
 * device.
 */

static UCS_CONFIG_DEFINE_ARRAY(uct_sep_pci_bws, sizeof(ucs_config_bw_spec_t),
                               UCS_CONFIG_TYPE_BW_SPEC);

/* Where a setting is, and its type, UCS_CONFIG_TYPE_xx */
#define UCT_SEP_MD_CONFIG(_member, _type) \
    ucs_offsetof(uct_sep_md_config_t, _member), UCS_CONFIG_TYPE_##_type

ucs_config_field_t uct_sep_md_config_table[] = {
    {"", "", NULL, UCT_SEP_MD_CONFIG(super, TABLE(uct_md_config_table))},

    {"REG_METHODS", "rcache,odp,direct",
     "Ways to register memory in the order of preference.\n"
     "  rcache - in a cache, see also RCACHE\n"
     "  direct - each time\n"
     "  odp    - on-demand paging, which this transport does not have: the\n"
     "           next one is taken",
     UCT_SEP_MD_CONFIG(reg_methods, STRING_ARRAY)},

    {"RCACHE", "try",
     "Enable the memory registration cache, if REG_METHODS prefers it. try is\n"
     "n with UCX 1.16 and later, where UCP has a cache (see RCACHE_ENABLE).",
     UCT_SEP_MD_CONFIG(rcache_enable, TERNARY)},

    UCT_SEP_COMPAT_RCACHE_FIELDS(ucs_offsetof(uct_sep_md_config_t, rcache),
                                 UCS_PP_MAKE_STRING(UCT_SEP_RCACHE_ALIGN)),

    {"FORK_INIT", "try",
     "Make memory registration safe for processes that fork, by calling\n"
     "ibv_fork_init().",
     UCT_SEP_MD_CONFIG(fork_init, TERNARY)},

    {"MEM_REG_OVERHEAD", "16us",
     "Estimation of the time one memory registration takes.",
     UCT_SEP_MD_CONFIG(reg_cost.c, TIME)},

    {"MEM_REG_GROWTH", "0.06ns",
     "Estimation of the time that each byte adds to that.",
     UCT_SEP_MD_CONFIG(reg_cost.m, TIME)},

    {"PCI_RELAXED_ORDERING", "auto",
     "Let what a device writes into local memory, received messages, results\n"
     "of gets, and puts by peers, overtake each other on the way to memory:\n"
     "faster on some systems. Fences keep puts in order. auto is what is best\n"
     "for the processor.",
     UCT_SEP_MD_CONFIG(relaxed_ordering, ON_OFF_AUTO)},

    {"PCI_BW", "",
     "Payload that devices' PCIe links can carry, as <device>:<bandwidth> or\n"
     "<device>:auto, separated by commas. For devices not listed the system\n"
     "is asked. Limits the bandwidth of the device's ports.",
     UCT_SEP_MD_CONFIG(pci_bw, ARRAY(uct_sep_pci_bws))},

    {"PREFER_NEAREST_DEVICE", "y",
     "Report a higher latency for a device if the process may run on\n"
     "processors that are not near it.",
     UCT_SEP_MD_CONFIG(prefer_nearest, BOOL)},

    {"ETH_PAUSE_ON", "y",
     "Whether Ethernet is lossless, by pause frames. If not, RoCE ports are\n"
     "not offered.",
     UCT_SEP_MD_CONFIG(eth_pause, BOOL)},

    {"SUBNET_PREFIX", "",
     "Offer only InfiniBand ports of this subnet, such as fe80:0:0:0. Empty\n"
     "is all.",
     UCT_SEP_MD_CONFIG(subnet_prefix, STRING)},

    {"ASYNC_EVENTS", "y",
     "Read asynchronous events of the device: they are logged, a device that\n"
     "has failed is noticed, and queue pairs are not destroyed before they\n"
     "have given back the receives that they had taken.",
     UCT_SEP_MD_CONFIG(async_events, BOOL)},

    {NULL}
};


static ucs_status_t
uct_sep_md_init_reg_method(uct_sep_md_t *md, const uct_sep_md_config_t *config)
{
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    int use_rcache      = 0;
    const char *method;
    unsigned i;

    for (i = 0; i < config->reg_methods.count; ++i) {
        method = config->reg_methods.rmtd[i];
        if (!strcmp(method, "odp")) {
            ucs_debug("%s: no on-demand paging, looking further in "
                      "UCX_SEP_REG_METHODS", md->dev.name);
        } else if (!strcmp(method, "direct") || !strcmp(method, "rcache")) {
            /* The first one counts, but all have to be valid */
            if ((status != UCS_OK) &&
                !(!strcmp(method, "rcache") &&
                  (config->rcache_enable == UCS_NO))) {
                use_rcache = !strcmp(method, "rcache");
                status     = UCS_OK;
            }
        } else {
            ucs_error("%s: UCX_SEP_REG_METHODS has \"%s\", should be of "
                      "rcache, odp and direct", md->dev.name, method);
            return UCS_ERR_INVALID_PARAM;
        }
    }

    if (status != UCS_OK) {
        ucs_error("%s: UCX_SEP_REG_METHODS has no way to register memory%s: "
                  "add direct", md->dev.name,
                  (config->reg_methods.count == 0) ? "" :
                  " that is there and not switched off (there is no on-demand "
                  "paging)");
        return status;
    }

    if (!use_rcache && (config->rcache_enable == UCS_YES)) {
        ucs_error("%s: UCX_SEP_RCACHE=y, but UCX_SEP_REG_METHODS prefers "
                  "another way: set UCX_SEP_RCACHE=try, or put rcache first",
                  md->dev.name);
        return UCS_ERR_INVALID_PARAM;
    }

    /* Where UCP has a cache, a second one would have nothing to do */
    md->use_rcache = use_rcache &&
                     ((config->rcache_enable == UCS_YES) ||
                      !UCT_SEP_COMPAT_UCP_HAS_RCACHE);
    return UCS_OK;
}

static int uct_sep_md_config_pci_bw(const uct_sep_md_config_t *config,
                                    const char *name, double *bw_p)
{
    unsigned i;

    for (i = 0; i < config->pci_bw.count; ++i) {
        if (!strcmp(config->pci_bw.device[i].name, name)) {
            *bw_p = config->pci_bw.device[i].bw;
            return !UCT_SEP_COMPAT_BW_IS_AUTO(*bw_p);
        }
    }
    return 0;
}

ucs_status_t
uct_sep_md_init_config(uct_sep_md_t *md, const uct_sep_md_config_t *config)
{
    ucs_sys_cpuset_t affinity;
    ucs_status_t status;

    status = uct_sep_md_init_reg_method(md, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_subnet_filter_parse(config->subnet_prefix,
                                         &md->subnet_filter);
    if (status != UCS_OK) {
        return status;
    }

    if (!uct_sep_md_config_pci_bw(config, md->dev.name, &md->pci_bw)) {
        md->pci_bw = uct_sep_pci_bw(&md->dev);
    }

    uct_sep_pci_local_cpus(&md->dev, &md->local_cpus);
    md->far_latency = 0;
    if (config->prefer_nearest && (ucs_sys_getaffinity(&affinity) == 0)) {
        md->far_latency = uct_sep_pci_distance(&md->local_cpus, &affinity);
    }

    md->reg_cost         = config->reg_cost;
    md->eth_pause        = config->eth_pause;
    md->relaxed_ordering = (config->relaxed_ordering == UCS_CONFIG_ON) ||
                           ((config->relaxed_ordering == UCS_CONFIG_AUTO) &&
                            uct_sep_compat_cpu_prefers_relaxed_order());
    return UCS_OK;
}

int uct_sep_md_offers_port(const uct_sep_md_t *md, unsigned port_num)
{
    struct ibv_port_attr attr;

    if (!uct_sep_device_port_is_active(&md->dev, port_num, &attr) ||
        !uct_sep_subnet_filter_match(&md->subnet_filter, &md->dev, port_num,
                                     &attr)) {
        return 0;
    }

    if (!uct_sep_port_has_gid(&md->dev, port_num, &attr)) {
        ucs_debug("%s:%u has no GID: RoCE is off, or it has no network "
                  "interface", md->dev.name, port_num);
        return 0;
    }

    if (!md->eth_pause && (attr.link_layer == IBV_LINK_LAYER_ETHERNET)) {
        ucs_debug("%s:%u: not used on a lossy network (UCX_SEP_ETH_PAUSE_ON=n)",
                  md->dev.name, port_num);
        return 0;
    }

    return 1;
}
