# SPDX-License-Identifier: BSD-3-Clause
#
# What UCX's private headers look like. They change from release to release; the
# transport looks only at the macros that are defined here, and only in
# src/uct/ib/sep/compat/. A macro that is not defined means what UCX 1.13 has, so
# that a build in that version's own tree needs none of them.

# SEP_UCX_DEFINE(MACRO, RESULT, DESCRIPTION)
# Notes for the summary what was found.
m4_define([SEP_UCX_DEFINE], [
    AS_IF([test "x$2" = xyes],
          [AC_DEFINE([SEP_UCX_$1], [1], [$3])
           AS_VAR_APPEND([sep_ucx_api], [" m4_tolower([$1])"])])
])

# SEP_UCX_CHECK(MACRO, WHAT, HEADERS, BODY)
# Set sep_cv_ucx_<macro> to whether a function with this body compiles without a
# warning.
m4_define([SEP_UCX_CHECK], [
    AC_CACHE_CHECK([whether UCX $2], [sep_cv_ucx_]m4_tolower([$1]),
        [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([$3], [$4])],
                           [AS_VAR_SET([sep_cv_ucx_]m4_tolower([$1]), [yes])],
                           [AS_VAR_SET([sep_cv_ucx_]m4_tolower([$1]), [no])])])
])

# SEP_UCX_TRY(MACRO, WHAT, HEADERS, BODY, DESCRIPTION)
# Define SEP_UCX_<MACRO> if it does.
m4_define([SEP_UCX_TRY], [
    SEP_UCX_CHECK([$1], [$2], [$3], [$4])
    SEP_UCX_DEFINE([$1], [$[sep_cv_ucx_]m4_tolower([$1])], [$5])
])

# SEP_UCX_TRY_NOT(MACRO, WHAT, HEADERS, BODY, DESCRIPTION)
# Define SEP_UCX_<MACRO> if it does not.
m4_define([SEP_UCX_TRY_NOT], [
    SEP_UCX_CHECK([$1], [$2], [$3], [$4])
    AS_IF([test "x$[sep_cv_ucx_]m4_tolower([$1])" = xno],
          [sep_result=yes], [sep_result=no])
    SEP_UCX_DEFINE([$1], [$sep_result], [$5])
])

# SEP_UCX_TRY_MEMBER(MACRO, TYPE.MEMBER, DESCRIPTION)
m4_define([SEP_UCX_TRY_MEMBER], [
    AC_CHECK_MEMBER([$2], [sep_result=yes], [sep_result=no],
                    [SEP_UCX_HEADERS])
    SEP_UCX_DEFINE([$1], [$sep_result], [$3])
])

# SEP_UCX_TRY_NO_MEMBER(MACRO, TYPE.MEMBER, DESCRIPTION)
m4_define([SEP_UCX_TRY_NO_MEMBER], [
    AC_CHECK_MEMBER([$2], [sep_result=no], [sep_result=yes],
                    [SEP_UCX_HEADERS])
    SEP_UCX_DEFINE([$1], [$sep_result], [$3])
])

# Each of these has existed in all versions, so none is asked for.
m4_define([SEP_UCX_HEADERS], [[
#include <ucs/config/parser.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/memory/rcache.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
]])

# SEP_UCX_API(CPPFLAGS)
# With these flags UCX's private headers are found.
AC_DEFUN([SEP_UCX_API], [
    sep_ucx_api=
    sep_save_CPPFLAGS=$CPPFLAGS
    sep_save_CFLAGS=$CFLAGS
    CPPFLAGS="$1 $CPPFLAGS"
    # Only what is wrong with types counts; a test neither initializes nor uses.
    CFLAGS="-Werror=incompatible-pointer-types -Werror=int-conversion $CFLAGS"
    AS_VAR_APPEND([CFLAGS], [" -Werror=implicit-function-declaration"])

    AC_CACHE_CHECK([whether UCX's private headers compile],
        [sep_cv_ucx_headers],
        [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([SEP_UCX_HEADERS])],
                           [sep_cv_ucx_headers=yes],
                           [sep_cv_ucx_headers=no])])
    AS_IF([test $sep_cv_ucx_headers = no],
          [AC_MSG_ERROR(m4_normalize([
               UCX's private headers do not compile, see config.log]))])

    # libucs
    SEP_UCX_TRY([PTR_ARITH], [has ucs/sys/ptr_arith.h],
        [#include <ucs/sys/ptr_arith.h>], [],
        [UCX has arithmetic of pointers in a header of its own])
    SEP_UCX_TRY([DBL_AUTO], [calls automatic numbers UCS_CONFIG_DBL_AUTO],
        [SEP_UCX_HEADERS], [return UCS_CONFIG_DBL_IS_AUTO(1.0);],
        [UCX has UCS_CONFIG_DBL_IS_AUTO])
    SEP_UCX_TRY([CONFIG_ENTRY], [fills options from a list's entry],
        [SEP_UCX_HEADERS],
        [ucs_config_global_list_entry_t entry;
         return ucs_config_parser_fill_opts(0, &entry, "", 0);],
        [ucs_config_parser_fill_opts() takes an entry])
    SEP_UCX_TRY([CPU_MODEL_ORDER], [knows the order of writes by processor],
        [#include <ucs/arch/cpu.h>],
        [return ucs_cpu_model_prefer_relaxed_order(ucs_arch_get_cpu_vendor(),
                                                   ucs_arch_get_cpu_model());],
        [UCX has ucs_cpu_model_prefer_relaxed_order])
    SEP_UCX_TRY([CALLBACKQ_NO_FLAGS], [adds callbacks without flags],
        [SEP_UCX_HEADERS],
        [ucs_callbackq_t *queue = 0;
         ucs_callback_t cb      = 0;
         return ucs_callbackq_add_safe(queue, cb, queue);],
        [ucs_callbackq_add_safe() has three arguments])
    SEP_UCX_TRY([MPOOL_PARAMS], [has ucs_mpool_params_t],
        [SEP_UCX_HEADERS],
        [ucs_mpool_params_t params;
         ucs_mpool_t mp;
         return ucs_mpool_init(&params, &mp);],
        [ucs_mpool_init() takes a structure])
    SEP_UCX_TRY([RCACHE_CONFIG], [has the registration cache's configuration],
        [SEP_UCX_HEADERS],
        [ucs_rcache_config_t config;
         ucs_rcache_params_t params;
         ucs_config_field_t *table = ucs_config_rcache_table;
         ucs_rcache_set_params(&params, &config);
         return table != 0;],
        [The configuration of a registration cache is libucs'])
    SEP_UCX_TRY([RCACHE_GET_ALIGNMENT],
        [takes the alignment when a region is looked for],
        [SEP_UCX_HEADERS],
        [ucs_rcache_region_t *region;
         return ucs_rcache_get(0, 0, (size_t)1, (size_t)16, 0, 0, &region);],
        [ucs_rcache_get() takes an alignment])

    # Memory domains
    SEP_UCX_TRY([MD_ATTR_V2], [asks domains for uct_md_attr_v2_t],
        [SEP_UCX_HEADERS],
        [uct_md_query_func_t query;
         uct_md_attr_v2_t attr;
         return query(0, &attr);],
        [uct_md_ops_t::query fills uct_md_attr_v2_t])
    SEP_UCX_TRY_MEMBER([MD_ATTR_CACHE], [uct_md_attr_v2_t.cache_mem_types],
        [UCP caches registered memory if a domain says so])
    SEP_UCX_TRY_MEMBER([MD_ATTR_GLOBAL_ID], [uct_md_attr_v2_t.global_id],
        [uct_md_attr_v2_t has global_id])
    SEP_UCX_TRY_MEMBER([MD_ATTR_REG_ALIGNMENT],
        [uct_md_attr_v2_t.reg_alignment],
        [uct_md_attr_v2_t has reg_alignment])
    SEP_UCX_TRY_MEMBER([MD_ATTR_REQUIRED_MEM_FLAGS],
        [uct_md_attr_v2_t.required_mem_flags],
        [uct_md_attr_v2_t has required_mem_flags])
    SEP_UCX_TRY([MD_FLAG_INVALIDATE_RMA], [tells kinds of invalidation apart],
        [SEP_UCX_HEADERS],
        [return (UCT_MD_FLAG_INVALIDATE_RMA | UCT_MD_FLAG_INVALIDATE_AMO) != 0;],
        [There are UCT_MD_FLAG_INVALIDATE_RMA and _AMO])
    SEP_UCX_TRY([MEM_REG_PARAMS], [registers memory with parameters],
        [SEP_UCX_HEADERS],
        [uct_md_mem_reg_func_t reg;
         uct_md_mem_reg_params_t params;
         uct_mem_h memh;
         return reg(0, 0, (size_t)1, &params, &memh);],
        [uct_md_ops_t::mem_reg takes a structure])
    SEP_UCX_TRY([MKEY_PACK_RANGE], [packs keys of a part of a region],
        [SEP_UCX_HEADERS],
        [uct_md_mkey_pack_func_t pack;
         uct_md_mkey_pack_params_t params;
         return pack(0, 0, 0, (size_t)1, &params, 0);],
        [uct_md_ops_t::mkey_pack takes address and length])
    SEP_UCX_TRY([MEM_QUERY_V2], [asks for uct_md_mem_attr_v2_t],
        [SEP_UCX_HEADERS],
        [uct_md_mem_query_func_t query;
         uct_md_mem_attr_v2_t attr;
         return query(0, 0, (size_t)1, &attr);],
        [uct_md_ops_t::mem_query fills uct_md_mem_attr_v2_t])
    SEP_UCX_TRY_MEMBER([MEM_DMABUF], [uct_md_mem_attr_t.dmabuf_fd],
        [Domains can be asked for memory as a file])
    SEP_UCX_TRY_MEMBER([MD_MEM_ATTACH], [uct_md_ops_t.mem_attach],
        [Domains can attach to exported memory])
    SEP_UCX_TRY_MEMBER([MD_MEM_ELEM_PACK], [uct_md_ops_t.mem_elem_pack],
        [Domains describe memory to accelerators])
    SEP_UCX_TRY_NO_MEMBER([MD_NO_SOCKADDR],
        [uct_md_ops_t.is_sockaddr_accessible],
        [Domains know nothing of socket addresses])

    # Components
    SEP_UCX_TRY_MEMBER([RKEY_COMPARE], [uct_component_t.rkey_compare],
        [Components compare remote keys])
    SEP_UCX_TRY([RKEY_UNPACK_PARAMS], [unpacks keys with parameters],
        [SEP_UCX_HEADERS],
        [uct_component_rkey_unpack_func_t unpack;
         uct_rkey_unpack_params_t params;
         uct_rkey_t rkey;
         void *handle;
         return unpack(0, 0, &params, &rkey, &handle);],
        [uct_component_t::rkey_unpack takes a structure])

    # Interfaces and endpoints
    SEP_UCX_TRY_MEMBER([MPOOL_GROW], [uct_iface_mpool_config_t.grow_factor],
        [Pools of interfaces grow by a factor])
    SEP_UCX_TRY_NOT([NO_BASE_OPS], [has uct_base_iface_internal_ops],
        [SEP_UCX_HEADERS],
        [return uct_base_iface_internal_ops.iface_estimate_perf != 0;],
        [libuct does not export the defaults of internal operations])
    SEP_UCX_TRY_MEMBER([EP_CONNECT_V2],
        [uct_iface_internal_ops_t.ep_connect_to_ep_v2],
        [Internal operations have ep_connect_to_ep_v2])
    SEP_UCX_TRY_MEMBER([IS_REACHABLE_V2],
        [uct_iface_internal_ops_t.iface_is_reachable_v2],
        [Internal operations have iface_is_reachable_v2])
    SEP_UCX_TRY_MEMBER([REACHABLE_INFO],
        [uct_iface_is_reachable_params_t.info_string],
        [uct_iface_is_reachable_v2() gives a reason])
    SEP_UCX_TRY_MEMBER([REACHABLE_SCOPE],
        [uct_iface_is_reachable_params_t.scope],
        [uct_iface_is_reachable_v2() has a scope])
    SEP_UCX_TRY_MEMBER([REACHABLE_LENGTHS],
        [uct_iface_is_reachable_params_t.device_addr_length],
        [uct_iface_is_reachable_v2() is told how long addresses are])
    SEP_UCX_TRY_MEMBER([EP_IS_CONNECTED],
        [uct_iface_internal_ops_t.ep_is_connected],
        [Internal operations have ep_is_connected])
    SEP_UCX_TRY_MEMBER([EP_GET_DEVICE_EP],
        [uct_iface_internal_ops_t.ep_get_device_ep],
        [Internal operations have ep_get_device_ep])
    SEP_UCX_TRY_MEMBER([MEM_ELEMENT_PACK],
        [uct_iface_internal_ops_t.iface_mem_element_pack],
        [Internal operations have iface_mem_element_pack])
    SEP_UCX_TRY_MEMBER([IFACE_QUERY_V2],
        [uct_iface_internal_ops_t.iface_query_v2],
        [Internal operations have iface_query_v2])
    SEP_UCX_TRY([IFACE_BASE_QUERY_V2], [has uct_iface_base_query_v2()],
        [SEP_UCX_HEADERS],
        [uct_iface_attr_v2_t attr;
         return uct_iface_base_query_v2(0, &attr);],
        [libuct exports uct_iface_base_query_v2])
    SEP_UCX_TRY_MEMBER([PUT_SGL],
        [uct_iface_internal_ops_t.ep_put_sgl_zcopy],
        [Internal operations have ep_put_sgl_zcopy])
    SEP_UCX_TRY_MEMBER([PERF_PATH_BANDWIDTH],
        [uct_perf_attr_t.path_bandwidth],
        [uct_perf_attr_t has path_bandwidth])
    SEP_UCX_TRY_MEMBER([CTL_DEVICE], [uct_iface_attr_t.ctl_device],
        [uct_iface_attr_t has ctl_device])
    SEP_UCX_TRY([KEEPALIVE_NO_COMP], [checks only flags of keepalive],
        [SEP_UCX_HEADERS],
        [unsigned flags = 0;
         UCT_EP_KEEPALIVE_CHECK_PARAM(flags);
         return 0;],
        [UCT_EP_KEEPALIVE_CHECK_PARAM has one argument])

    CPPFLAGS=$sep_save_CPPFLAGS
    CFLAGS=$sep_save_CFLAGS
])
