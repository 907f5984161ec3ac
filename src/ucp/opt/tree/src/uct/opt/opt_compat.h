/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_OPT_COMPAT_H_
#define UCT_OPT_COMPAT_H_

#include <uct/api/version.h>

/*
 * What differs between the releases of UCX that the optimisations are for, in
 * libucs and libuct. That of libucp is in ucp/opt/ucp_opt_compat.h.
 */

/** Whether this UCX is release 1.@a _minor or a later one. */
#define UCX_OPT_SINCE(_minor) (UCT_API >= UCT_VERSION(1, (_minor)))


/**
 * Read the variables UCX_OPT_* of a table of options, which
 * UCS_CONFIG_REGISTER_TABLE() has registered with the prefix "OPT_".
 */
#if UCX_OPT_SINCE(18)
#  define ucx_opt_fill(_config, _table) \
    ucs_config_parser_fill_opts(_config, UCS_CONFIG_GET_TABLE(_table), \
                                UCS_DEFAULT_ENV_PREFIX, 0)
#else
#  define ucx_opt_fill(_config, _table) \
    ucs_config_parser_fill_opts(_config, _table, UCS_DEFAULT_ENV_PREFIX, \
                                "OPT_", 0)
#endif

#endif
