/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_COMPAT_IFACE_H
#define UCT_SEP_COMPAT_IFACE_H

#include <uct/ib/sep/compat/sep_compat_ucs.h>
#include <uct/base/uct_iface.h>
#include <ucs/sys/stubs.h>
#include <limits.h>

BEGIN_C_DECLS

/**
 * @file sep_compat_iface.h
 *
 * One face of what differs in interfaces and endpoints from version to version
 * of UCX; see sep_compat_ucs.h.
 */


/** Fields of an interface's pool in a configuration table. Pools do not grow
 *  faster and faster by default. */
#ifdef SEP_UCX_MPOOL_GROW
#  define UCT_SEP_COMPAT_MPOOL_FIELDS(_prefix, _max, _grow, _name, _offset, \
                                      _desc) \
    UCT_IFACE_MPOOL_CONFIG_FIELDS(_prefix, _max, _grow, 128m, 1.0, _name, \
                                  _offset, _desc)
#else
#  define UCT_SEP_COMPAT_MPOOL_FIELDS(_prefix, _max, _grow, _name, _offset, \
                                      _desc) \
    UCT_IFACE_MPOOL_CONFIG_FIELDS(_prefix, _max, _grow, _name, _offset, _desc)
#endif


/** Configuration of a pool that no table describes: no limit.
 *
 *  @param grow  Elements of a chunk. */
static inline uct_iface_mpool_config_t
uct_sep_compat_mpool_config(unsigned grow)
{
    uct_iface_mpool_config_t config = {};

    config.max_bufs       = UINT_MAX;
    config.bufs_grow      = grow;
#ifdef SEP_UCX_MPOOL_GROW
    config.max_chunk_size = SIZE_MAX;
    config.grow_factor    = 1.0;
#endif
    return config;
}


/**
 * ucs_mpool_init() for a pool of an interface.
 *
 * @param priv_size  Bytes behind ucs_mpool_priv().
 * @param grow       Elements of a chunk, unless configured.
 */
static inline ucs_status_t
uct_sep_compat_iface_mpool_init(ucs_mpool_t *mp, size_t priv_size,
                                size_t elem_size, size_t align_offset,
                                size_t alignment,
                                const uct_iface_mpool_config_t *config,
                                unsigned grow, ucs_mpool_ops_t *ops,
                                const char *name)
{
    unsigned per_chunk = (config->bufs_grow != 0) ? config->bufs_grow : grow;
#ifdef SEP_UCX_MPOOL_PARAMS
    ucs_mpool_params_t params;

    ucs_mpool_params_reset(&params);
    params.priv_size       = priv_size;
    params.elem_size       = elem_size;
    params.align_offset    = align_offset;
    params.alignment       = alignment;
    params.elems_per_chunk = per_chunk;
    params.max_elems       = config->max_bufs;
#  ifdef SEP_UCX_MPOOL_GROW
    params.max_chunk_size  = config->max_chunk_size;
    params.grow_factor     = config->grow_factor;
#  endif
    params.ops             = ops;
    params.name            = name;
    return ucs_mpool_init(&params, mp);
#else
    return ucs_mpool_init(mp, priv_size, elem_size, align_offset, alignment,
                          per_chunk, config->max_bufs, ops, name);
#endif
}


/** ucs_mpool_init() for a pool on the heap. */
static inline ucs_status_t
uct_sep_compat_mpool_init(ucs_mpool_t *mp, size_t elem_size,
                          size_t align_offset, size_t alignment, unsigned grow,
                          unsigned max_elems, const char *name)
{
    static ucs_mpool_ops_t ops = {ucs_mpool_chunk_malloc, ucs_mpool_chunk_free};
    uct_iface_mpool_config_t config = uct_sep_compat_mpool_config(grow);

    config.max_bufs = max_elems;
    return uct_sep_compat_iface_mpool_init(mp, 0, elem_size, align_offset,
                                           alignment, &config, grow, &ops,
                                           name);
}

/** uct_ep_check(): no flags. */
#ifdef SEP_UCX_KEEPALIVE_NO_COMP
#  define UCT_SEP_COMPAT_KEEPALIVE_CHECK(_flags, _comp) \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags)
#else
#  define UCT_SEP_COMPAT_KEEPALIVE_CHECK(_flags, _comp) \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags, _comp)
#endif


/** Start an interface's attributes: the processor controls it. */
static inline void uct_sep_compat_iface_query(uct_base_iface_t *iface,
                                              uct_iface_attr_t *attr_p)
{
    uct_base_iface_query(iface, attr_p);
#ifdef SEP_UCX_CTL_DEVICE
    attr_p->ctl_device = UCS_SYS_DEVICE_ID_UNKNOWN;
#endif
}


/** Flag of an interface that peers in other nodes can reach: UCX 1.18 and later
 *  publish no others to them (UCP_WORKER_ADDRESS_FLAG_NET_ONLY). */
#ifdef UCT_IFACE_FLAG_INTER_NODE
#  define UCT_SEP_COMPAT_FLAG_INTER_NODE UCT_IFACE_FLAG_INTER_NODE
#else
#  define UCT_SEP_COMPAT_FLAG_INTER_NODE 0
#endif


/** Flag of an interface whose active messages arrive behind earlier puts of the
 *  same endpoint: UCP of UCX 1.22 needs no fence in between then. A queue pair
 *  delivers sends behind the writes in front of them (IBTA 9.5). */
#ifdef UCT_IFACE_FLAG_PUT_AM_ORDER
#  define UCT_SEP_COMPAT_FLAG_PUT_AM_ORDER UCT_IFACE_FLAG_PUT_AM_ORDER
#else
#  define UCT_SEP_COMPAT_FLAG_PUT_AM_ORDER 0
#endif


/** What an interface tells the internal operations below. */
typedef struct uct_sep_compat_iface_ops {
    /** Whether an interface's address, of which at least one byte is there, is
     *  of our version and category. Warns. */
    int (*check_kind)(uct_iface_h iface, const uct_iface_addr_t *iface_addr);

    /**
     * Whether an endpoint sends to an interface.
     *
     * @param [in]  iface_addr  NULL: to any interface on the device.
     */
    int (*ep_is_connected)(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                           const uct_iface_addr_t *iface_addr);

    /** @return The part of the port's bandwidth that one path can have. */
    double (*path_ratio)(uct_iface_h iface);

    /** Add what UCX's virtual file system shows of an interface. */
    void (*vfs_refresh)(uct_iface_h iface);
} uct_sep_compat_iface_ops_t;


#ifdef SEP_UCX_EP_CONNECT_V2
#  define UCT_SEP_COMPAT_OP_CONNECT \
    UCT_SEP_COMPAT_UNSUPPORTED(ep_connect_to_ep_v2, \
                               uct_ep_connect_to_ep_v2_func_t),
#else
#  define UCT_SEP_COMPAT_OP_CONNECT
#endif

#ifndef SEP_UCX_NO_BASE_OPS

/* This version has few operations that need what uct_sep_compat_iface_ops_t
 * says */
#  ifdef SEP_UCX_IS_REACHABLE_V2
#    define UCT_SEP_COMPAT_OP_IS_REACHABLE \
        .iface_is_reachable_v2 = uct_base_iface_is_reachable_v2,
#  else
#    define UCT_SEP_COMPAT_OP_IS_REACHABLE
#  endif

#  define UCT_SEP_COMPAT_OPS_FUNCTIONS(_name, _ops)
#  define UCT_SEP_COMPAT_OPS(_name) \
        .iface_estimate_perf = uct_base_iface_estimate_perf, \
        UCT_SEP_COMPAT_OP_IS_REACHABLE

#else

/** Bodies of the operations; see UCX's uct_iface.h. They fall back on what is
 *  in UCT's API, as far as that says it all. */
ucs_status_t uct_sep_compat_estimate_perf(uct_iface_h iface,
                                          const uct_sep_compat_iface_ops_t *ops,
                                          uct_perf_attr_t *attr_p);

#  ifdef SEP_UCX_IS_REACHABLE_V2
int uct_sep_compat_is_reachable(uct_iface_h iface,
                                const uct_sep_compat_iface_ops_t *ops,
                                const uct_iface_is_reachable_params_t *params);

#    define UCT_SEP_COMPAT_IS_REACHABLE(_name, _ops) \
    static int \
    _name##_is_reachable(uct_iface_h iface, \
                         const uct_iface_is_reachable_params_t *params) \
    { \
        return uct_sep_compat_is_reachable(iface, _ops, params); \
    }
#    define UCT_SEP_COMPAT_OP_IS_REACHABLE(_name) \
        .iface_is_reachable_v2 = _name##_is_reachable,
#  else
#    define UCT_SEP_COMPAT_IS_REACHABLE(_name, _ops)
#    define UCT_SEP_COMPAT_OP_IS_REACHABLE(_name)
#  endif

#  ifdef SEP_UCX_EP_IS_CONNECTED
int uct_sep_compat_is_connected(uct_ep_h ep,
                                const uct_sep_compat_iface_ops_t *ops,
                                const uct_ep_is_connected_params_t *params);

#    define UCT_SEP_COMPAT_IS_CONNECTED(_name, _ops) \
    static int \
    _name##_is_connected(uct_ep_h ep, \
                         const uct_ep_is_connected_params_t *params) \
    { \
        return uct_sep_compat_is_connected(ep, _ops, params); \
    }
#    define UCT_SEP_COMPAT_OP_IS_CONNECTED(_name) \
        .ep_is_connected = _name##_is_connected,
#  else
#    define UCT_SEP_COMPAT_IS_CONNECTED(_name, _ops)
#    define UCT_SEP_COMPAT_OP_IS_CONNECTED(_name)
#  endif

#  ifdef SEP_UCX_IFACE_QUERY_V2
ucs_status_t uct_sep_compat_query_v2(uct_iface_h iface,
                                     uct_iface_attr_v2_t *attr_p);
#    define UCT_SEP_COMPAT_OP_QUERY .iface_query_v2 = uct_sep_compat_query_v2,
#  else
#    define UCT_SEP_COMPAT_OP_QUERY
#  endif

#  ifdef SEP_UCX_MEM_ELEMENT_PACK
#    define UCT_SEP_COMPAT_OP_MEM_ELEMENT \
        UCT_SEP_COMPAT_UNSUPPORTED(iface_mem_element_pack, \
                                   uct_iface_mem_element_pack_func_t),
#  else
#    define UCT_SEP_COMPAT_OP_MEM_ELEMENT
#  endif

#  ifdef SEP_UCX_EP_GET_DEVICE_EP
#    define UCT_SEP_COMPAT_OP_DEVICE_EP \
        UCT_SEP_COMPAT_UNSUPPORTED(ep_get_device_ep, \
                                   uct_ep_get_device_ep_func_t),
#  else
#    define UCT_SEP_COMPAT_OP_DEVICE_EP
#  endif

#  ifdef SEP_UCX_PUT_SGL
#    define UCT_SEP_COMPAT_OP_PUT_SGL \
        UCT_SEP_COMPAT_UNSUPPORTED(ep_put_sgl_zcopy, \
                                   uct_ep_put_sgl_zcopy_func_t),
#  else
#    define UCT_SEP_COMPAT_OP_PUT_SGL
#  endif

#  define UCT_SEP_COMPAT_OPS_FUNCTIONS(_name, _ops) \
    static ucs_status_t \
    _name##_estimate_perf(uct_iface_h iface, uct_perf_attr_t *attr_p) \
    { \
        return uct_sep_compat_estimate_perf(iface, _ops, attr_p); \
    } \
    UCT_SEP_COMPAT_IS_REACHABLE(_name, _ops) \
    UCT_SEP_COMPAT_IS_CONNECTED(_name, _ops)
#  define UCT_SEP_COMPAT_OPS(_name) \
        .iface_estimate_perf = _name##_estimate_perf, \
        UCT_SEP_COMPAT_OP_IS_REACHABLE(_name) \
        UCT_SEP_COMPAT_OP_IS_CONNECTED(_name) \
        UCT_SEP_COMPAT_OP_QUERY \
        UCT_SEP_COMPAT_OP_MEM_ELEMENT \
        UCT_SEP_COMPAT_OP_DEVICE_EP \
        UCT_SEP_COMPAT_OP_PUT_SGL

#endif

/** Operations of UCX that its API does not show: a table of this name, for an
 *  interface that UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t) is told of. */
#define UCT_SEP_COMPAT_INTERNAL_OPS(_name, _ops) \
    UCT_SEP_COMPAT_OPS_FUNCTIONS(_name, _ops) \
    static void _name##_vfs_refresh(uct_iface_h iface) \
    { \
        (_ops)->vfs_refresh(iface); \
    } \
    static uct_iface_internal_ops_t _name = { \
        .iface_vfs_refresh = _name##_vfs_refresh, \
        UCT_SEP_COMPAT_UNSUPPORTED(ep_query, uct_ep_query_func_t), \
        UCT_SEP_COMPAT_UNSUPPORTED(ep_invalidate, uct_ep_invalidate_func_t), \
        UCT_SEP_COMPAT_OP_CONNECT \
        UCT_SEP_COMPAT_OPS(_name) \
    }

END_C_DECLS

#endif
