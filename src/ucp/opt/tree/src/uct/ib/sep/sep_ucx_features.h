/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_UCX_FEATURES_H_
#define SEP_UCX_FEATURES_H_

#include <uct/api/version.h>

/*
 * What UCX's private headers look like, for a build in UCX's own tree. Out of
 * the tree configure finds it out (config/m4/sep_compat.m4, which says what
 * each macro means). Here the release decides: no macro means what UCX 1.13
 * has. The compiler includes this file in front of each of the transport's.
 */

/* UCX 1.18 */
#if UCT_API >= UCT_VERSION(1, 18)
#  define SEP_UCX_CALLBACKQ_NO_FLAGS         1
#  define SEP_UCX_CONFIG_ENTRY               1
#  define SEP_UCX_DBL_AUTO                   1
#  define SEP_UCX_EP_CONNECT_V2              1
#  define SEP_UCX_EP_IS_CONNECTED            1
#  define SEP_UCX_IS_REACHABLE_V2            1
#  define SEP_UCX_MD_ATTR_CACHE              1
#  define SEP_UCX_MD_ATTR_GLOBAL_ID          1
#  define SEP_UCX_MD_ATTR_REG_ALIGNMENT      1
#  define SEP_UCX_MD_ATTR_V2                 1
#  define SEP_UCX_MD_FLAG_INVALIDATE_RMA     1
#  define SEP_UCX_MD_MEM_ATTACH              1
#  define SEP_UCX_MD_NO_SOCKADDR             1
#  define SEP_UCX_MEM_DMABUF                 1
#  define SEP_UCX_MEM_REG_PARAMS             1
#  define SEP_UCX_MKEY_PACK_RANGE            1
#  define SEP_UCX_MPOOL_GROW                 1
#  define SEP_UCX_MPOOL_PARAMS               1
#  define SEP_UCX_NO_BASE_OPS                1
#  define SEP_UCX_PTR_ARITH                  1
#  define SEP_UCX_RCACHE_CONFIG              1
#  define SEP_UCX_RCACHE_GET_ALIGNMENT       1
#  define SEP_UCX_REACHABLE_INFO             1
#  define SEP_UCX_REACHABLE_LENGTHS          1
#  define SEP_UCX_REACHABLE_SCOPE            1
#  define SEP_UCX_RKEY_COMPARE               1
#endif

/* UCX 1.22 */
#if UCT_API >= UCT_VERSION(1, 22)
#  define SEP_UCX_CPU_MODEL_ORDER            1
#  define SEP_UCX_CTL_DEVICE                 1
#  define SEP_UCX_EP_GET_DEVICE_EP           1
#  define SEP_UCX_IFACE_BASE_QUERY_V2        1
#  define SEP_UCX_IFACE_QUERY_V2             1
#  define SEP_UCX_KEEPALIVE_NO_COMP          1
#  define SEP_UCX_MD_ATTR_REQUIRED_MEM_FLAGS 1
#  define SEP_UCX_MD_MEM_ELEM_PACK           1
#  define SEP_UCX_MEM_QUERY_V2               1
#  define SEP_UCX_PERF_PATH_BANDWIDTH        1
#  define SEP_UCX_PUT_SGL                    1
#  define SEP_UCX_RKEY_UNPACK_PARAMS         1
#endif

#endif
