/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/md/sep_own_keys.h>
#include <uct/ib/sep/md/sep_md.h>
#include <uct/ib/sep/base/sep_account.h>

#include <uct/base/uct_iface.h>
#include <ucm/api/ucm.h>
#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/sys.h>
#include <errno.h>
#include <string.h>


/* What others may do */
#define UCT_SEP_MD_REMOTE_ACCESS \
    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
     IBV_ACCESS_REMOTE_ATOMIC)

/* Remote keys of users' memory carry all rights: the same region serves puts,
 * gets and atomics, and the registration cache should not split by access
 * rights */
#define UCT_SEP_MD_ACCESS  (IBV_ACCESS_LOCAL_WRITE | UCT_SEP_MD_REMOTE_ACCESS)


/* Registered memory in the cache */
typedef struct uct_sep_rcache_region {
    ucs_rcache_region_t super;
    uct_sep_mem_t       mem;
} uct_sep_rcache_region_t;


static ucs_status_t
uct_sep_md_query(uct_md_h tl_md, uct_sep_compat_md_attr_t *attr)
{
    uct_sep_md_t *md              = ucs_derived_of(tl_md, uct_sep_md_t);
    uct_sep_compat_md_caps_t caps = {
        .is_cached        = md->rcache != NULL,
        .rkey_packed_size = uct_sep_rkey_packed_size(md->relaxed_ordering),
        .reg_cost         = md->reg_cost,
        .local_cpus       = &md->local_cpus,
        .component        = tl_md->component->name,
        .guid             = md->dev.attr.orig_attr.sys_image_guid
    };

    uct_sep_compat_md_attr_fill(&caps, attr);
    return UCS_OK;
}

/* @param account  Bytes to account for: those of the memory, or 0 if another
 *                 region has them already */
static struct ibv_mr *
uct_sep_mem_make_mr(uct_sep_md_t *md, void *address, size_t length, int access,
                    size_t account, unsigned flags)
{
    struct ibv_mr *mr = ibv_reg_mr(md->pd, address, length, access);

    if (mr == NULL) {
        uct_md_log_mem_reg_error(flags,
                                 "%s: ibv_reg_mr(address=%p, length=%zu) "
                                 "failed: %m%s", md->dev.name, address, length,
                                 (errno == ENOMEM) ?
                                 ". Please check max locked memory (ulimit -l)"
                                 : "");
        return NULL;
    }

    uct_sep_account_add(mr->context, UCT_SEP_ACCOUNT_MR, account);
    return mr;
}

/* @param account  As for uct_sep_mem_make_mr() */
static void
uct_sep_mem_free_mr(uct_sep_md_t *md, struct ibv_mr *mr, size_t account)
{
    uint32_t lkey = mr->lkey;
    int ret;

    uct_sep_account_remove(mr->context, UCT_SEP_ACCOUNT_MR, account);
    ret = ibv_dereg_mr(mr);
    if (ret != 0) {
        ucs_warn("%s: ibv_dereg_mr(lkey=0x%x) failed: %s", md->dev.name, lkey,
                 strerror(ret));
    }
}

/* Of what has just failed */
static ucs_status_t uct_sep_mem_error(void)
{
    return (errno == ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
}

/* With one key */
static ucs_status_t
uct_sep_mem_init(uct_sep_md_t *md, void *address, size_t length, int access,
                 unsigned flags, uct_sep_mem_t *mem)
{
    mem->mr = uct_sep_mem_make_mr(md, address, length, access, length, flags);
    if (mem->mr == NULL) {
        return uct_sep_mem_error();
    }

    mem->lkey       = mem->mr->lkey;
    mem->rkey       = mem->mr->rkey;
    mem->relaxed_mr = NULL;
    mem->keys       = NULL;
    mem->is_packed  = 0;
    return UCS_OK;
}

/*
 * With relaxed ordering there are two keys. What is written through the local
 * one, messages and results, is looked at after its completion, which overtakes
 * nothing. What peers write may be looked at without a completion, in an order
 * that fences make: these use the strict remote key, sep_strict.h.
 */
static ucs_status_t uct_sep_mem_register(uct_sep_md_t *md, void *address,
                                         size_t length, unsigned flags,
                                         uct_sep_mem_t *mem)
{
    ucs_status_t status;

    status = uct_sep_mem_init(md, address, length, UCT_SEP_MD_ACCESS, flags,
                              mem);
    if (status != UCS_OK) {
        return status;
    }

    if (md->relaxed_ordering) {
        mem->relaxed_mr = uct_sep_mem_make_mr(md, address, length,
                                              UCT_SEP_MD_ACCESS |
                                              IBV_ACCESS_RELAXED_ORDERING,
                                              0, flags);
        if (mem->relaxed_mr == NULL) {
            status = uct_sep_mem_error();
            uct_sep_mem_free_mr(md, mem->mr, mem->mr->length);
            return status;
        }
        mem->lkey = mem->relaxed_mr->lkey;
        mem->rkey = mem->relaxed_mr->rkey;
    }

    ucs_trace("%s: registered %p..%p lkey 0x%x rkey 0x%x", md->dev.name,
              address, UCS_PTR_BYTE_OFFSET(address, length), mem->lkey,
              mem->rkey);
    return UCS_OK;
}

static void uct_sep_mem_deregister(uct_sep_md_t *md, uct_sep_mem_t *mem)
{
    uct_sep_own_keys_release_mem(md, mem);
    if (mem->relaxed_mr != NULL) {
        uct_sep_mem_free_mr(md, mem->relaxed_mr, 0);
    }
    uct_sep_mem_free_mr(md, mem->mr, mem->mr->length);
}

ucs_status_t uct_sep_mem_reg_own(uct_sep_md_t *md, void *address, size_t length,
                                 int access, uct_sep_mem_t **mem_p)
{
    uct_sep_mem_t *mem;
    ucs_status_t status;

    mem = ucs_malloc(sizeof(*mem), "sep_own_mem");
    if (mem == NULL) {
        ucs_error("%s: no memory for a memory handle", md->dev.name);
        return UCS_ERR_NO_MEMORY;
    }

    if (md->relaxed_ordering && !(access & UCT_SEP_MD_REMOTE_ACCESS)) {
        access |= IBV_ACCESS_RELAXED_ORDERING;
    }

    status = uct_sep_mem_init(md, address, length, access, 0, mem);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }

    *mem_p = mem;
    return UCS_OK;
}

void uct_sep_mem_dereg_own(uct_sep_md_t *md, uct_sep_mem_t *mem)
{
    uct_sep_mem_deregister(md, mem);
    ucs_free(mem);
}

static ucs_status_t
uct_sep_mem_reg(uct_md_h tl_md, void *address, size_t length,
                uct_sep_compat_mem_reg_arg_t arg, uct_mem_h *memh_p)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);
    unsigned flags   = uct_sep_compat_mem_reg_flags(arg);
    ucs_status_t status;
    uct_sep_mem_t *mem;

    mem = ucs_malloc(sizeof(*mem), "sep_mem");
    if (mem == NULL) {
        uct_md_log_mem_reg_error(flags, "%s: no memory for a memory handle",
                                 md->dev.name);
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_sep_mem_register(md, address, length, flags, mem);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }

    *memh_p = mem;
    return UCS_OK;
}

/* Whether the caller wants to hear when the remote key can't be used any
 * more */
static int uct_sep_mem_is_invalidated(const uct_md_mem_dereg_params_t *params)
{
    return UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
           UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
}

/* A key can be invalidated anyhow; but a caller that forgets to say so
 * beforehand would find out with other transports only */
static ucs_status_t
uct_sep_mem_check_dereg(const uct_md_mem_dereg_params_t *params)
{
    const uct_sep_mem_t *mem;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);

    mem = params->memh;
    if (ENABLE_PARAMS_CHECK && (UCT_SEP_COMPAT_MKEY_INVALIDATE != 0) &&
        uct_sep_mem_is_invalidated(params) && !mem->is_packed) {
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

static void uct_sep_mem_invalidate_done(void *arg)
{
    uct_invoke_completion(arg, UCS_OK);
}

static ucs_status_t
uct_sep_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);
    ucs_status_t status;

    status = uct_sep_mem_check_dereg(params);
    if (status != UCS_OK) {
        return status;
    }

    uct_sep_mem_deregister(md, params->memh);
    ucs_free(params->memh);
    if (uct_sep_mem_is_invalidated(params)) {
        uct_invoke_completion(params->comp, UCS_OK);
    }
    return UCS_OK;
}

static ucs_status_t
uct_sep_mem_rcache_reg(uct_md_h tl_md, void *address, size_t length,
                       uct_sep_compat_mem_reg_arg_t arg, uct_mem_h *memh_p)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);
    unsigned flags   = uct_sep_compat_mem_reg_flags(arg);
    ucs_rcache_region_t *region;
    ucs_status_t status;

    status = uct_sep_compat_rcache_get(md->rcache, address, length,
                                       UCT_SEP_RCACHE_ALIGN,
                                       PROT_READ | PROT_WRITE, &flags, &region);
    if (status != UCS_OK) {
        return status;
    }

    *memh_p = &ucs_derived_of(region, uct_sep_rcache_region_t)->mem;
    return UCS_OK;
}

static ucs_status_t uct_sep_mem_rcache_dereg(
        uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);
    uct_sep_rcache_region_t *region;
    ucs_status_t status;

    status = uct_sep_mem_check_dereg(params);
    if (status != UCS_OK) {
        return status;
    }

    region = ucs_container_of(params->memh, uct_sep_rcache_region_t, mem);
    if (uct_sep_mem_is_invalidated(params)) {
        /* Nobody can get it any more; called when all users have let go of it,
         * which invalidates the remote key */
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_sep_mem_invalidate_done,
                                     params->comp);
    }
    ucs_rcache_region_put(md->rcache, &region->super);
    return UCS_OK;
}

static ucs_status_t
uct_sep_mkey_pack(uct_md_h tl_md, uct_mem_h memh,
                  UCT_SEP_COMPAT_MKEY_PACK_RANGE
                  const uct_md_mkey_pack_params_t *params, void *rkey_buffer)
{
    uct_sep_mem_t *mem = memh;

    if (ENABLE_PARAMS_CHECK &&
        (params->field_mask & UCT_MD_MKEY_PACK_FIELD_FLAGS) &&
        (params->flags & UCT_SEP_COMPAT_MKEY_INVALIDATE)) {
        mem->is_packed = 1;
    }

    uct_sep_rkey_pack(mem->mr->rkey, mem->rkey, rkey_buffer);
    return UCS_OK;
}

static ucs_status_t
uct_sep_rcache_mem_reg(void *context, ucs_rcache_t *rcache, void *arg,
                       ucs_rcache_region_t *rregion, uint16_t rcache_flags)
{
    uct_sep_rcache_region_t *region = ucs_derived_of(rregion,
                                                     uct_sep_rcache_region_t);
    unsigned flags                  = *(unsigned*)arg;

    if (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) {
        flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    }

    return uct_sep_mem_register(context, (void*)rregion->super.start,
                                rregion->super.end - rregion->super.start,
                                flags, &region->mem);
}

static void uct_sep_rcache_mem_dereg(void *context, ucs_rcache_t *rcache,
                                     ucs_rcache_region_t *rregion)
{
    uct_sep_rcache_region_t *region = ucs_derived_of(rregion,
                                                     uct_sep_rcache_region_t);

    uct_sep_mem_deregister(context, &region->mem);
}

static void uct_sep_rcache_dump(void *context, ucs_rcache_t *rcache,
                                ucs_rcache_region_t *rregion, char *buf,
                                size_t max)
{
    uct_sep_rcache_region_t *region = ucs_derived_of(rregion,
                                                     uct_sep_rcache_region_t);

    ucs_snprintf_safe(buf, max, "lkey 0x%x rkey 0x%x", region->mem.lkey,
                      region->mem.rkey);
}

void uct_sep_md_vfs_init(uct_md_h tl_md)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);

    uct_sep_account_vfs_init(md, md->dev.context);
}

static void uct_sep_md_close(uct_md_h tl_md)
{
    uct_sep_md_t *md = ucs_derived_of(tl_md, uct_sep_md_t);
    int ret;

    if (md->rcache != NULL) {
        ucs_rcache_destroy(md->rcache);
    }

    uct_sep_uuars_cleanup(&md->uuars);

    ret = ibv_dealloc_pd(md->pd);
    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_pd() failed: %s", md->dev.name,
                 strerror(ret));
    }

    uct_sep_async_cleanup(&md->async);
    uct_sep_device_close(&md->dev);
    ucs_assert(md->sharing == NULL);
    uct_sep_own_mutex_destroy(&md->own_lock);
    ucs_free(md);
}

/* Registered memory is pinned: there is nothing to prefetch */
static ucs_status_t
uct_sep_mem_advise(uct_md_h tl_md, uct_mem_h memh, void *addr, size_t length,
                   unsigned advice)
{
    return (advice == UCT_MADV_WILLNEED) ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

#define UCT_SEP_MD_OPS(_mem_reg, _mem_dereg) \
    { \
        .close              = uct_sep_md_close, \
        .query              = uct_sep_md_query, \
        .mem_reg            = _mem_reg, \
        .mem_dereg          = _mem_dereg, \
        .mem_query          = uct_sep_compat_mem_query, \
        .mem_advise         = uct_sep_mem_advise, \
        .mkey_pack          = uct_sep_mkey_pack, \
        UCT_SEP_COMPAT_MD_OPS \
        UCT_SEP_COMPAT_UNSUPPORTED(detect_memory_type, \
                                   uct_md_detect_memory_type_func_t) \
    }

static uct_md_ops_t uct_sep_md_ops =
        UCT_SEP_MD_OPS(uct_sep_mem_reg, uct_sep_mem_dereg);
static uct_md_ops_t uct_sep_md_rcache_ops =
        UCT_SEP_MD_OPS(uct_sep_mem_rcache_reg, uct_sep_mem_rcache_dereg);

static ucs_status_t
uct_sep_md_init_rcache(uct_sep_md_t *md, const uct_sep_md_config_t *config)
{
    static const ucs_rcache_ops_t ops = {
        .mem_reg     = uct_sep_rcache_mem_reg,
        .mem_dereg   = uct_sep_rcache_mem_dereg,
        .dump_region = uct_sep_rcache_dump
    };
    ucs_rcache_params_t params;
    ucs_status_t status;

    md->super.ops = &uct_sep_md_ops;
    if (!md->use_rcache) {
        return UCS_OK;
    }

    uct_sep_compat_rcache_params(&config->rcache, ucs_get_page_size(), &params);
    params.region_struct_size = sizeof(uct_sep_rcache_region_t);
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = md;
    params.ops                = &ops;
    status = ucs_rcache_create(&params, md->dev.name, NULL, &md->rcache);
    if (status == UCS_OK) {
        md->super.ops = &uct_sep_md_rcache_ops;
        md->reg_cost  = ucs_linear_func_make(
                uct_sep_compat_rcache_overhead(&config->rcache), 0);
        return UCS_OK;
    }

    md->rcache = NULL;
    if (config->rcache_enable == UCS_YES) {
        ucs_error("%s: could not create the registration cache: %s. Set "
                  "UCX_SEP_RCACHE=n to do without", md->dev.name,
                  ucs_status_string(status));
        return status;
    }

    ucs_debug("%s: no registration cache: %s", md->dev.name,
              ucs_status_string(status));
    return UCS_OK;
}

static ucs_status_t uct_sep_md_init_fork(const uct_sep_md_config_t *config)
{
    int ret;

    if (config->fork_init == UCS_NO) {
        return UCS_OK;
    }

    ret = ibv_fork_init();
    if (ret == 0) {
        return UCS_OK;
    }

    if (config->fork_init == UCS_YES) {
        ucs_error("ibv_fork_init() failed: %s. Set UCX_SEP_FORK_INIT=try to "
                  "continue", strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    ucs_debug("ibv_fork_init() failed: %s", strerror(ret));
    return UCS_OK;
}

static ucs_status_t
uct_sep_md_create(uct_component_t *component, struct ibv_device *ibv_device,
                  const uct_sep_md_config_t *config, uct_md_h *md_p)
{
    ucs_status_t status;
    uct_sep_md_t *md;

    md = ucs_calloc(1, sizeof(*md), "sep_md");
    if (md == NULL) {
        ucs_error("no memory for a memory domain on %s",
                  ibv_get_device_name(ibv_device));
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_sep_device_open(&md->dev, ibv_device);
    if (status != UCS_OK) {
        goto err_free;
    }

    md->super.component = component;
    md->pd              = ibv_alloc_pd(md->dev.context);
    if (md->pd == NULL) {
        ucs_error("%s: ibv_alloc_pd() failed: %m", md->dev.name);
        status = UCS_ERR_IO_ERROR;
        goto err_close;
    }

    status = uct_sep_md_init_config(md, config);
    if (status != UCS_OK) {
        goto err_dealloc_pd;
    }

    status = uct_sep_async_init(&md->async, md->dev.context,
                                config->async_events, 1);
    if (status != UCS_OK) {
        goto err_dealloc_pd;
    }

    status = uct_sep_md_init_rcache(md, config);
    if (status != UCS_OK) {
        goto err_cleanup_async;
    }

    uct_sep_uuars_init(&md->uuars, md->dev.context);
    uct_sep_own_mutex_init(&md->own_lock, NULL);
    *md_p = &md->super;
    return UCS_OK;

err_cleanup_async:
    uct_sep_async_cleanup(&md->async);
err_dealloc_pd:
    ibv_dealloc_pd(md->pd);
err_close:
    uct_sep_device_close(&md->dev);
err_free:
    ucs_free(md);
    return status;
}

ucs_status_t
uct_sep_md_open(uct_component_t *component, const char *md_name,
                const uct_md_config_t *uct_config, uct_md_h *md_p)
{
    const uct_sep_md_config_t *config = ucs_derived_of(uct_config,
                                                       uct_sep_md_config_t);
    struct ibv_device **list;
    ucs_status_t status;
    int i, count;

    status = uct_sep_md_init_fork(config);
    if (status != UCS_OK) {
        return status;
    }

    list = ibv_get_device_list(&count);
    if (list == NULL) {
        ucs_debug("ibv_get_device_list() failed: %m");
        return UCS_ERR_NO_DEVICE;
    }

    status = UCS_ERR_NO_DEVICE;
    for (i = 0; i < count; ++i) {
        if ((strcmp(ibv_get_device_name(list[i]), md_name) == 0) &&
            uct_sep_device_is_usable(list[i])) {
            status = uct_sep_md_create(component, list[i], config, md_p);
            break;
        }
    }

    ibv_free_device_list(list);
    return status;
}
