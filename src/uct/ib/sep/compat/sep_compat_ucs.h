/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_COMPAT_UCS_H
#define UCT_SEP_COMPAT_UCS_H

#include <ucs/arch/cpu.h>
#include <ucs/config/parser.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/memory/rcache.h>
#include <ucs/sys/math.h>
#ifdef SEP_UCX_PTR_ARITH
#  include <ucs/sys/ptr_arith.h>
#endif
#ifdef SEP_UCX_RCACHE_CONFIG
#  include <ucs/time/time.h>
#else
#  include <uct/base/uct_md.h>
#endif

BEGIN_C_DECLS

/**
 * @file sep_compat_ucs.h
 *
 * One face of what differs in libucs from version to version of UCX. What
 * there is, SEP_UCX_xx, was found out by configure (config/m4/sep_compat.m4);
 * what is not defined is as in UCX 1.13.
 */


/** A function of ucs/sys/stubs.h as one of another type. It looks at none of
 *  its arguments; what the compiler thinks of such casts depends on whether its
 *  declaration has any. */
#define UCT_SEP_COMPAT_STUB(_type, _func) ((_type)(void (*)(void))(_func))

/** Initialiser of an operation that is refused. */
#define UCT_SEP_COMPAT_UNSUPPORTED(_op, _type) \
    ._op = UCT_SEP_COMPAT_STUB(_type, ucs_empty_function_return_unsupported)


/** Whether a bandwidth is to be found out, rather than a number. */
#ifdef SEP_UCX_DBL_AUTO
#  define UCT_SEP_COMPAT_BW_IS_AUTO(_value) UCS_CONFIG_DBL_IS_AUTO(_value)
#else
#  define UCT_SEP_COMPAT_BW_IS_AUTO(_value) UCS_CONFIG_BW_IS_AUTO(_value)
#endif


/** @return Whether the processor is fastest if a device's writes may overtake
 *          each other. */
static inline int uct_sep_compat_cpu_prefers_relaxed_order(void)
{
#ifdef SEP_UCX_CPU_MODEL_ORDER
    return ucs_cpu_model_prefer_relaxed_order(ucs_arch_get_cpu_vendor(),
                                              ucs_arch_get_cpu_model());
#else
    return ucs_cpu_prefer_relaxed_order();
#endif
}


/** Add a callback to a queue, from any thread. @return Its id. */
static inline int
uct_sep_compat_callbackq_add_safe(ucs_callbackq_t *queue, ucs_callback_t cb,
                                  void *arg)
{
#ifdef SEP_UCX_CALLBACKQ_NO_FLAGS
    return ucs_callbackq_add_safe(queue, cb, arg);
#else
    return ucs_callbackq_add_safe(queue, cb, arg, 0);
#endif
}


/**
 * Fill a structure with defaults and what the environment says.
 *
 * @param [in]  prefix  UCX_<prefix>xx are the variables.
 */
static inline ucs_status_t
uct_sep_compat_config_fill(void *config, ucs_config_field_t *table,
                           const char *prefix)
{
#ifdef SEP_UCX_CONFIG_ENTRY
    ucs_config_global_list_entry_t entry = {};

    entry.name   = prefix;
    entry.prefix = prefix;
    entry.table  = table;
    return ucs_config_parser_fill_opts(config, &entry, UCS_DEFAULT_ENV_PREFIX,
                                       0);
#else
    return ucs_config_parser_fill_opts(config, table, UCS_DEFAULT_ENV_PREFIX,
                                       prefix, 0);
#endif
}



/**
 * Configuration of a registration cache, and its fields in a table.
 *
 * @param _offset  Where the structure is.
 * @param _align   Default of RCACHE_ADDR_ALIGN, a string. Where there is no
 *                 such variable, the alignment is what
 *                 @ref uct_sep_compat_rcache_get is given.
 */
#ifdef SEP_UCX_RCACHE_CONFIG
typedef ucs_rcache_config_t    uct_sep_compat_rcache_config_t;
#  define UCT_SEP_COMPAT_RCACHE_FIELDS(_offset, _align) \
    {"", "", NULL, _offset, UCS_CONFIG_TYPE_TABLE(ucs_config_rcache_table)}
#else
typedef uct_md_rcache_config_t uct_sep_compat_rcache_config_t;
#  define UCT_SEP_COMPAT_RCACHE_FIELDS(_offset, _align) \
    {"", "RCACHE_ADDR_ALIGN=" _align, NULL, _offset, \
     UCS_CONFIG_TYPE_TABLE(uct_md_config_rcache_table)}
#endif


/** UCS_RCACHE_FLAG_NEED_LRU_LOCK of UCX 1.20.1 and later: a cache with limits
 *  does not lock its list of unused regions without it, and workers share our
 *  cache. A module for 1.20.0 is for 1.20.1, too; earlier releases do not look
 *  at the bit. */
#define UCT_SEP_COMPAT_RCACHE_FLAG_LRU_LOCK UCS_BIT(3)


/** Whether UCP has a registration cache of its own, so that a domain need not
 *  have one. It came when domains' caches went, together with what they had in
 *  common. */
#if defined(SEP_UCX_RCACHE_CONFIG) && defined(SEP_UCX_MD_ATTR_CACHE)
#  define UCT_SEP_COMPAT_UCP_HAS_RCACHE 1
#else
#  define UCT_SEP_COMPAT_UCP_HAS_RCACHE 0
#endif


/**
 * Start the parameters of a registration cache.
 *
 * @param [in]  max_alignment  Of any region.
 */
static inline void
uct_sep_compat_rcache_params(const uct_sep_compat_rcache_config_t *config,
                             size_t max_alignment,
                             ucs_rcache_params_t *params_p)
{
#ifdef SEP_UCX_RCACHE_CONFIG
    ucs_rcache_set_params(params_p, config);
#else
    uct_md_set_rcache_params(params_p, config);
#endif
#ifndef SEP_UCX_RCACHE_GET_ALIGNMENT
    params_p->max_alignment = max_alignment;
#endif
    params_p->flags |= UCT_SEP_COMPAT_RCACHE_FLAG_LRU_LOCK;
}


/** @return What looking up a region costs, seconds. */
static inline double
uct_sep_compat_rcache_overhead(const uct_sep_compat_rcache_config_t *config)
{
#ifdef SEP_UCX_RCACHE_CONFIG
    /* Not by ucs_time_units_to_sec(), which came a version later */
    return (config->overhead == UCS_TIME_AUTO) ? 180e-9 :
           ucs_time_to_sec(config->overhead);
#else
    return uct_md_rcache_overhead(config);
#endif
}


/** ucs_rcache_get(), with an alignment where it has not been configured. */
static inline ucs_status_t
uct_sep_compat_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                          size_t alignment, int prot, void *arg,
                          ucs_rcache_region_t **region_p)
{
#ifdef SEP_UCX_RCACHE_GET_ALIGNMENT
    return ucs_rcache_get(rcache, address, length, alignment, prot, arg,
                          region_p);
#else
    return ucs_rcache_get(rcache, address, length, prot, arg, region_p);
#endif
}

END_C_DECLS

#endif
