/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>


#ifdef SEP_UCX_NO_BASE_OPS

ucs_status_t uct_sep_compat_estimate_perf(uct_iface_h iface,
                                          const uct_sep_compat_iface_ops_t *ops,
                                          uct_perf_attr_t *attr_p)
{
    ucs_status_t status;

    status = uct_base_iface_estimate_perf(iface, attr_p);
    if (status != UCS_OK) {
        return status;
    }

#  ifdef SEP_UCX_PERF_PATH_BANDWIDTH
    if (attr_p->field_mask & UCT_PERF_ATTR_FIELD_PATH_BANDWIDTH) {
        attr_p->path_bandwidth.shared    *= ops->path_ratio(iface);
        attr_p->path_bandwidth.dedicated *= ops->path_ratio(iface);
    }
#  endif

    return UCS_OK;
}

static void
uct_sep_compat_say_why(const uct_iface_is_reachable_params_t *params,
                       const char *reason)
{
#  ifdef SEP_UCX_REACHABLE_INFO
    if (ucs_test_all_flags(params->field_mask,
                           UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING |
                           UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING_LENGTH) &&
        (params->info_string_length > 0)) {
        ucs_snprintf_zero(params->info_string, params->info_string_length,
                          "%s", reason);
    }
#  endif
}

#  ifdef SEP_UCX_REACHABLE_LENGTHS
/* A length of zero is that of an address which is not there */
static int
uct_sep_compat_has_our_length(uct_iface_h iface,
                              const uct_iface_is_reachable_params_t *params)
{
    uct_iface_attr_t attr;
    size_t length;

    if (uct_iface_query(iface, &attr) != UCS_OK) {
        return 0;
    }

    length = UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE_FIELD, params,
                             device_addr_length, DEVICE_ADDR_LENGTH, 0);
    if ((length != 0) && (length != attr.device_addr_len)) {
        return 0;
    }

    length = UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE_FIELD, params,
                             iface_addr_length, IFACE_ADDR_LENGTH, 0);
    return (length == 0) || (length == attr.iface_addr_len);
}
#  endif

#  ifdef SEP_UCX_IS_REACHABLE_V2
/* In UCX's older question, which the interface answers, there is no place for a
 * reason */
int uct_sep_compat_is_reachable(uct_iface_h iface,
                                const uct_sep_compat_iface_ops_t *ops,
                                const uct_iface_is_reachable_params_t *params)
{
    const uct_device_addr_t *dev_addr;
    const uct_iface_addr_t *iface_addr;

    if (!uct_iface_is_reachable_params_valid(
                params, UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR)) {
        return 0;
    }

    dev_addr   = params->device_addr;
    iface_addr = UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE_FIELD, params,
                                 iface_addr, IFACE_ADDR, NULL);

    if ((iface_addr != NULL) && !ops->check_kind(iface, iface_addr)) {
        uct_sep_compat_say_why(params, "the peer has another category or "
                                       "version of sep_mlx5");
        return 0;
    }

#    ifdef SEP_UCX_REACHABLE_LENGTHS
    if (!uct_sep_compat_has_our_length(iface, params)) {
        uct_sep_compat_say_why(params, "the peer's addresses are not as long "
                                       "as ours");
        return 0;
    }
#    endif

    if (!iface->ops.iface_is_reachable(iface, dev_addr, iface_addr)) {
        uct_sep_compat_say_why(params, "the peer is in another network or "
                                       "partition");
        return 0;
    }

#    ifdef SEP_UCX_REACHABLE_SCOPE
    return uct_iface_scope_is_reachable(iface, params);
#    else
    return 1;
#    endif
}
#  endif

#  ifdef SEP_UCX_EP_IS_CONNECTED
int uct_sep_compat_is_connected(uct_ep_h ep,
                                const uct_sep_compat_iface_ops_t *ops,
                                const uct_ep_is_connected_params_t *params)
{
    UCT_EP_IS_CONNECTED_CHECK_DEV_ADDR(params);

    return ops->ep_is_connected(
            ep, params->device_addr,
            (params->field_mask & UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR) ?
            params->iface_addr : NULL);
}
#  endif

#  ifdef SEP_UCX_IFACE_QUERY_V2
ucs_status_t uct_sep_compat_query_v2(uct_iface_h iface,
                                     uct_iface_attr_v2_t *attr_p)
{
#    ifdef SEP_UCX_IFACE_BASE_QUERY_V2
    return uct_iface_base_query_v2(iface, attr_p);
#    else
    return UCS_ERR_UNSUPPORTED;
#    endif
}
#  endif

#endif
