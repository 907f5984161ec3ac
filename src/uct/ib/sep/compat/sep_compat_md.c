/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_md.h>

#include <limits.h>
#include <string.h>


/* Deregistered memory can't be accessed any more, be it by puts, gets or
 * atomics: its key is gone */
#ifdef SEP_UCX_MD_FLAG_INVALIDATE_RMA
#  define UCT_SEP_COMPAT_MD_INVALIDATE \
    (UCT_MD_FLAG_INVALIDATE | UCT_MD_FLAG_INVALIDATE_RMA | \
     UCT_MD_FLAG_INVALIDATE_AMO)
#else
#  define UCT_SEP_COMPAT_MD_INVALIDATE UCT_MD_FLAG_INVALIDATE
#endif

#define UCT_SEP_COMPAT_MD_FLAGS \
    (UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY | \
     UCT_MD_FLAG_ADVISE | UCT_SEP_COMPAT_MD_INVALIDATE)


#ifdef SEP_UCX_MD_ATTR_GLOBAL_ID
static void
uct_sep_compat_md_global_id(const uct_sep_compat_md_caps_t *caps, char *id_p)
{
    size_t length = strnlen(caps->component, UCT_COMPONENT_NAME_MAX);

    UCS_STATIC_ASSERT(sizeof(caps->guid) <=
                      (UCT_MD_GLOBAL_ID_MAX - UCT_COMPONENT_NAME_MAX));
    memcpy(id_p, caps->component, length);
    memcpy(id_p + length, &caps->guid, sizeof(caps->guid));
}
#endif

/* Zero is right for what is not set here: no types of memory that are allocated
 * or detected by a domain, registered later or without it, or passed as a
 * file */
void uct_sep_compat_md_attr_fill(const uct_sep_compat_md_caps_t *caps,
                                 uct_sep_compat_md_attr_t *attr_p)
{
#ifdef SEP_UCX_MD_ATTR_V2
    uct_md_attr_v2_t *cap    = attr_p;
    uint64_t field_mask      = attr_p->field_mask;
#else
    typeof(attr_p->cap) *cap = &attr_p->cap;
#endif

    memset(attr_p, 0, sizeof(*attr_p));
#ifdef SEP_UCX_MD_ATTR_V2
    attr_p->field_mask       = field_mask;
#endif
    cap->flags               = UCT_SEP_COMPAT_MD_FLAGS;
    cap->max_reg             = ULONG_MAX;
    cap->max_alloc           = ULONG_MAX; /* Allocated by others, no limit
                                             here */
    cap->reg_mem_types       = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    cap->access_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr_p->rkey_packed_size = caps->rkey_packed_size;
    attr_p->reg_cost         = caps->reg_cost;
    ucs_sys_cpuset_copy(&attr_p->local_cpus, caps->local_cpus);
#ifdef SEP_UCX_MD_ATTR_CACHE
    attr_p->cache_mem_types = caps->is_cached ? 0 :
                              UCS_BIT(UCS_MEMORY_TYPE_HOST);
#endif
#ifdef SEP_UCX_MD_ATTR_GLOBAL_ID
    uct_sep_compat_md_global_id(caps, attr_p->global_id);
#endif
#ifdef SEP_UCX_MD_ATTR_REG_ALIGNMENT
    attr_p->reg_alignment = 1;
#endif
#ifdef SEP_UCX_MD_ATTR_REQUIRED_MEM_FLAGS
    attr_p->required_mem_flags = UCS_MEM_FLAG_REGISTRABLE;
#endif
}


#ifdef SEP_UCX_MEM_QUERY_V2
#  define UCT_SEP_COMPAT_MEM_FIELD(_name) UCT_MD_MEM_ATTR_V2_FIELD_ ## _name
#else
#  define UCT_SEP_COMPAT_MEM_FIELD(_name) UCT_MD_MEM_ATTR_FIELD_ ## _name
#endif

ucs_status_t uct_sep_compat_mem_query(uct_md_h md, const void *address,
                                      size_t length,
                                      uct_sep_compat_mem_attr_t *attr_p)
{
    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(MEM_TYPE)) {
        attr_p->mem_type = UCS_MEMORY_TYPE_HOST;
    }

    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(SYS_DEV)) {
        attr_p->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }

    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(BASE_ADDRESS)) {
        attr_p->base_address = (void*)address;
    }

    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(ALLOC_LENGTH)) {
        attr_p->alloc_length = length;
    }

#ifdef SEP_UCX_MEM_DMABUF
    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(DMABUF_FD)) {
        attr_p->dmabuf_fd = UCT_DMABUF_FD_INVALID;
    }

    if (attr_p->field_mask & UCT_SEP_COMPAT_MEM_FIELD(DMABUF_OFFSET)) {
        attr_p->dmabuf_offset = 0;
    }
#endif

    /* Of uct_md_mem_attr_v2_t::mem_flags, uct_md_mem_query_v2() has set what is
     * right for host memory */
    return UCS_OK;
}
