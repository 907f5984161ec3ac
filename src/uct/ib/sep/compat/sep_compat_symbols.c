/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_symbols.h>

#include <ucs/sys/preprocessor.h>
#include <stddef.h>

/* Whether configure has defined a macro, which it does as 1: otherwise its name
 * is left */
#define UCT_SEP_COMPAT_HAS(_macro)  (UCS_PP_MAKE_STRING(_macro)[0] == '1')

const uct_sep_compat_symbol_t uct_sep_compat_symbols[] = {
    {"uct_md_mem_attach", UCT_SEP_COMPAT_HAS(SEP_UCX_MD_MEM_ATTACH)},
    {"uct_ep_is_connected", UCT_SEP_COMPAT_HAS(SEP_UCX_EP_IS_CONNECTED)},
    {"uct_rkey_compare", UCT_SEP_COMPAT_HAS(SEP_UCX_RKEY_COMPARE)},
    {"uct_rkey_unpack_v2", UCT_SEP_COMPAT_HAS(SEP_UCX_RKEY_UNPACK_PARAMS)},
    {"uct_ep_get_device_ep", UCT_SEP_COMPAT_HAS(SEP_UCX_EP_GET_DEVICE_EP)},
    {"uct_iface_query_v2", UCT_SEP_COMPAT_HAS(SEP_UCX_IFACE_QUERY_V2)},
    {"uct_md_mem_elem_pack", UCT_SEP_COMPAT_HAS(SEP_UCX_MD_MEM_ELEM_PACK)},
    {"uct_md_mem_query_v2", UCT_SEP_COMPAT_HAS(SEP_UCX_MEM_QUERY_V2)},
    {"uct_ep_put_sgl_zcopy", UCT_SEP_COMPAT_HAS(SEP_UCX_PUT_SGL)},
    /* These are of the releases in which a type changed that has no function
     * of its own: 1.15, 1.17, 1.18 */
    {"ucs_config_sscanf_uint_enum", UCT_SEP_COMPAT_HAS(SEP_UCX_CONFIG_ENTRY)},
    {"ucs_config_doc_nop", UCT_SEP_COMPAT_HAS(SEP_UCX_RCACHE_GET_ALIGNMENT)},
    {"uct_iface_fill_info_str_buf",
     UCT_SEP_COMPAT_HAS(SEP_UCX_REACHABLE_LENGTHS)},
    {NULL}
};
