/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_COMPAT_MD_H
#define UCT_SEP_COMPAT_MD_H

#include <uct/ib/sep/compat/sep_compat_ucs.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_md.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/sys.h>

BEGIN_C_DECLS

/**
 * @file sep_compat_md.h
 *
 * One face of what differs in memory domains and components from version to
 * version of UCX; see sep_compat_ucs.h.
 */


/** What a memory domain says of itself. All else follows from that it registers
 *  host memory. */
typedef struct uct_sep_compat_md_caps {
    int                    is_cached;   /**< It has a registration cache: nobody
                                             else needs one for it */
    size_t                 rkey_packed_size;
    ucs_linear_func_t      reg_cost;
    const ucs_sys_cpuset_t *local_cpus;
    const char             *component;  /**< Together with guid: which device */
    uint64_t               guid;
} uct_sep_compat_md_caps_t;


/** What uct_md_ops_t::query fills. */
#ifdef SEP_UCX_MD_ATTR_V2
typedef uct_md_attr_v2_t uct_sep_compat_md_attr_t;
#else
typedef uct_md_attr_t    uct_sep_compat_md_attr_t;
#endif


/** Answer uct_md_ops_t::query. */
void uct_sep_compat_md_attr_fill(const uct_sep_compat_md_caps_t *caps,
                                 uct_sep_compat_md_attr_t *attr_p);


/** What uct_md_ops_t::mem_reg is given, and the flags in it. */
#ifdef SEP_UCX_MEM_REG_PARAMS
typedef const uct_md_mem_reg_params_t *uct_sep_compat_mem_reg_arg_t;
#  define uct_sep_compat_mem_reg_flags(_arg) \
    UCT_MD_MEM_REG_FIELD_VALUE(_arg, flags, FIELD_FLAGS, 0)
#else
typedef unsigned uct_sep_compat_mem_reg_arg_t;
#  define uct_sep_compat_mem_reg_flags(_arg) (_arg)
#endif


/** Parameters of uct_md_ops_t::mkey_pack between the memory handle and the
 *  parameters' structure. */
#ifdef SEP_UCX_MKEY_PACK_RANGE
#  define UCT_SEP_COMPAT_MKEY_PACK_RANGE void *address, size_t length,
#else
#  define UCT_SEP_COMPAT_MKEY_PACK_RANGE
#endif


/** Flags of uct_md_ops_t::mkey_pack: UCX tells a wrong parameter by the absence
 *  of all of them, where there are two, when memory is invalidated. */
#ifdef SEP_UCX_MD_FLAG_INVALIDATE_RMA
#  define UCT_SEP_COMPAT_MKEY_INVALIDATE \
    (UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA | \
     UCT_MD_MKEY_PACK_FLAG_INVALIDATE_AMO)
#else
#  define UCT_SEP_COMPAT_MKEY_INVALIDATE 0
#endif


/** What uct_md_ops_t::mem_query fills. */
#ifdef SEP_UCX_MEM_QUERY_V2
typedef uct_md_mem_attr_v2_t uct_sep_compat_mem_attr_t;
#else
typedef uct_md_mem_attr_t    uct_sep_compat_mem_attr_t;
#endif


/** Answer uct_md_ops_t::mem_query for host memory. */
ucs_status_t uct_sep_compat_mem_query(uct_md_h md, const void *address,
                                      size_t length,
                                      uct_sep_compat_mem_attr_t *attr_p);


/** Initialisers of uct_md_ops_t for operations that only some versions have. A
 *  domain neither knows socket addresses, nor attaches to memory of others, nor
 *  describes memory to accelerators. */
#ifdef SEP_UCX_MD_NO_SOCKADDR
#  define UCT_SEP_COMPAT_MD_OPS_SOCKADDR
#else
#  define UCT_SEP_COMPAT_MD_OPS_SOCKADDR \
    .is_sockaddr_accessible = \
            UCT_SEP_COMPAT_STUB(uct_md_is_sockaddr_accessible_func_t, \
                                ucs_empty_function_return_zero_int),
#endif
#ifdef SEP_UCX_MD_MEM_ATTACH
#  define UCT_SEP_COMPAT_MD_OPS_ATTACH \
    UCT_SEP_COMPAT_UNSUPPORTED(mem_attach, uct_md_mem_attach_func_t),
#else
#  define UCT_SEP_COMPAT_MD_OPS_ATTACH
#endif
#ifdef SEP_UCX_MD_MEM_ELEM_PACK
#  define UCT_SEP_COMPAT_MD_OPS_ELEM \
    UCT_SEP_COMPAT_UNSUPPORTED(mem_elem_pack, uct_md_mem_elem_pack_func_t),
#else
#  define UCT_SEP_COMPAT_MD_OPS_ELEM
#endif
#define UCT_SEP_COMPAT_MD_OPS \
    UCT_SEP_COMPAT_MD_OPS_SOCKADDR \
    UCT_SEP_COMPAT_MD_OPS_ATTACH \
    UCT_SEP_COMPAT_MD_OPS_ELEM


/** Parameters of uct_component_t::rkey_unpack between the buffer and the
 *  result. Nothing in them concerns us. */
#ifdef SEP_UCX_RKEY_UNPACK_PARAMS
#  define UCT_SEP_COMPAT_RKEY_UNPACK_PARAMS \
    const uct_rkey_unpack_params_t *params,
#  define UCT_SEP_COMPAT_RKEY_UNPACK_NO_PARAMS NULL,
#else
#  define UCT_SEP_COMPAT_RKEY_UNPACK_PARAMS
#  define UCT_SEP_COMPAT_RKEY_UNPACK_NO_PARAMS
#endif


/** Initialisers of uct_component_t for what only some versions have. A remote
 *  key is its value, so UCT's comparison of values will do. */
#ifdef SEP_UCX_RKEY_COMPARE
#  define UCT_SEP_COMPAT_COMPONENT_OPS .rkey_compare = uct_base_rkey_compare,
#else
#  define UCT_SEP_COMPAT_COMPONENT_OPS
#endif

END_C_DECLS

#endif
