/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_pool.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <ucs/debug/log.h>


/* What a pool knows */
typedef struct {
    uct_sep_iface_t               *iface;
    uct_iface_mpool_init_obj_cb_t init_obj;
} uct_sep_pool_priv_t;


/* In front of the elements of each chunk. The interface may be gone when they
 * are released: until it is, the device can write to them. */
typedef struct {
    uct_allocated_memory_t mem;
    uct_sep_md_t           *md;
    uct_sep_mem_t          *memh;
} uct_sep_pool_chunk_t;


ucs_status_t uct_sep_pool_alloc_mem(uct_sep_iface_t *iface, size_t length,
                                    const char *name,
                                    uct_allocated_memory_t *mem_p)
{
    uct_mem_alloc_params_t params = {};

    /* No memory domain: none is to register it */
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_NAME;
    params.name       = name;
    return uct_mem_alloc(length, iface->super.config.alloc_methods,
                         iface->super.config.num_alloc_methods, &params,
                         mem_p);
}

static ucs_status_t
uct_sep_pool_chunk_alloc(ucs_mpool_t *mp, size_t *size_p, void **chunk_p)
{
    const uct_sep_pool_priv_t *priv = ucs_mpool_priv(mp);
    uct_sep_pool_chunk_t *chunk;
    uct_allocated_memory_t mem;
    ucs_status_t status;

    status = uct_sep_pool_alloc_mem(priv->iface, sizeof(*chunk) + *size_p,
                                    ucs_mpool_name(mp), &mem);
    if (status != UCS_OK) {
        return status;
    }

    chunk      = mem.address;
    chunk->mem = mem;
    chunk->md  = uct_sep_iface_md(priv->iface);
    status     = uct_sep_mem_reg_own(chunk->md, mem.address, mem.length,
                                     IBV_ACCESS_LOCAL_WRITE, &chunk->memh);
    if (status != UCS_OK) {
        uct_mem_free(&mem);
        return status;
    }

    *size_p  = mem.length - sizeof(*chunk);
    *chunk_p = chunk + 1;
    return UCS_OK;
}

static void uct_sep_pool_chunk_release(ucs_mpool_t *mp, void *elems)
{
    uct_sep_pool_chunk_t *chunk = (uct_sep_pool_chunk_t*)elems - 1;
    uct_allocated_memory_t mem  = chunk->mem;

    uct_sep_mem_dereg_own(chunk->md, chunk->memh);
    uct_mem_free(&mem);
}

static void uct_sep_pool_obj_init(ucs_mpool_t *mp, void *obj, void *elems)
{
    const uct_sep_pool_priv_t *priv = ucs_mpool_priv(mp);

    priv->init_obj(&priv->iface->super.super, obj,
                   ((uct_sep_pool_chunk_t*)elems - 1)->memh);
}

ucs_status_t
uct_sep_pool_init(uct_sep_iface_t *iface, ucs_mpool_t *mp, size_t elem_size,
                  size_t align_offset, size_t alignment,
                  const uct_iface_mpool_config_t *config, unsigned grow,
                  uct_iface_mpool_init_obj_cb_t init_obj, const char *name)
{
    static ucs_mpool_ops_t ops = {
        .chunk_alloc   = uct_sep_pool_chunk_alloc,
        .chunk_release = uct_sep_pool_chunk_release,
        .obj_init      = uct_sep_pool_obj_init
    };
    uct_sep_pool_priv_t *priv;
    ucs_status_t status;

    status = uct_sep_compat_iface_mpool_init(mp, sizeof(*priv), elem_size,
                                             align_offset, alignment, config,
                                             grow, &ops, name);
    if (status != UCS_OK) {
        return status;
    }

    priv           = ucs_mpool_priv(mp);
    priv->iface    = iface;
    priv->init_obj = init_obj;
    return UCS_OK;
}
