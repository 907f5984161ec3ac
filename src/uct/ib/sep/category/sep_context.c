/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_account.h>
#include "sep_context.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>


/* The lowest slot that no open context uses */
static unsigned uct_sep_context_free_slot(uct_sep_md_t *md)
{
    uct_sep_context_t *own;
    unsigned slot = 0;

    /* The list is sorted by slot */
    ucs_list_for_each(own, &md->contexts, list) {
        if (own->slot != slot) {
            break;
        }
        ++slot;
    }
    return slot;
}

static void uct_sep_context_insert(uct_sep_md_t *md, uct_sep_context_t *own)
{
    uct_sep_context_t *other;

    own->slot = uct_sep_context_free_slot(md);
    ucs_list_for_each(other, &md->contexts, list) {
        if (other->slot > own->slot) {
            ucs_list_insert_before(&other->list, &own->list);
            return;
        }
    }
    ucs_list_add_tail(&md->contexts, &own->list);
}

ucs_status_t uct_sep_context_open(uct_sep_md_t *md, uct_sep_context_t **own_p)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    uct_sep_context_t *own;

    own = ucs_calloc(1, sizeof(*own), "sep_context");
    if (own == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    own->context = ibv_open_device(md->dev.context->device);
    if (own->context == NULL) {
        ucs_debug("%s: ibv_open_device() failed: %m", md->dev.name);
        goto err_free;
    }

    uct_sep_account_add(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    own->pd = ibv_alloc_pd(own->context);
    if (own->pd == NULL) {
        ucs_debug("%s: ibv_alloc_pd() failed: %m", md->dev.name);
        goto err_close;
    }

    uct_sep_uuars_init(&own->uuars, own->context);
    if (own->uuars.is_dynamic != md->uuars.is_dynamic) {
        /* libmlx5 opens contexts even if no page is left to arm their
         * completion queues on; such queues can't be created */
        ucs_debug("%s: no UAR page for a context", md->dev.name);
        goto err_dealloc;
    }

    ucs_list_head_init(&own->mrs);

    pthread_mutex_lock(&md->own_lock);
    uct_sep_context_insert(md, own);
    pthread_mutex_unlock(&md->own_lock);

    *own_p = own;
    return UCS_OK;

err_dealloc:
    uct_sep_uuars_cleanup(&own->uuars);
    ibv_dealloc_pd(own->pd);
err_close:
    uct_sep_account_remove(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    ibv_close_device(own->context);
err_free:
    ucs_free(own);
    return status;
}

static uct_sep_mem_keys_t *
uct_sep_context_find_keys(uct_sep_mem_keys_t **keys_p, unsigned *slot_p)
{
    uct_sep_mem_keys_t *keys;

    for (;;) {
        keys = *keys_p;
        if (keys == NULL) {
            keys = ucs_calloc(1, sizeof(*keys), "sep_mem_keys");
            if (keys == NULL) {
                return NULL;
            }
            memset(keys->lkeys, 0xff, sizeof(keys->lkeys)); /* Invalid */
            __atomic_store_n(keys_p, keys, __ATOMIC_RELEASE);
        }
        if (*slot_p < UCT_SEP_MEM_KEYS) {
            return keys;
        }
        *slot_p -= UCT_SEP_MEM_KEYS;
        keys_p   = &keys->next;
    }
}

/* With own_lock held */
static void uct_sep_context_release_mr(uct_sep_own_mr_t *own_mr,
                                       uct_sep_mem_keys_t *keys, unsigned slot)
{
    size_t length = own_mr->mr->length;
    int ret;

    keys->lkeys[slot] = UCT_SEP_INVALID_LKEY;
    keys->mrs[slot]   = NULL;
    ucs_list_del(&own_mr->list);

    uct_sep_account_remove(own_mr->mr->context, UCT_SEP_ACCOUNT_MR, length);
    ret = ibv_dereg_mr(own_mr->mr);
    if (ret != 0) {
        ucs_warn("ibv_dereg_mr(of a worker's context) failed: %s",
                 strerror(ret));
    }
    ucs_free(own_mr);
}

uint32_t uct_sep_context_make_lkey(uct_sep_context_t *own, uct_sep_md_t *md,
                                   uct_sep_mem_t *mem)
{
    uint32_t lkey = uct_sep_context_lkey(own, mem);
    unsigned slot = own->slot;
    uct_sep_mem_keys_t *keys;
    uct_sep_own_mr_t *own_mr;

    if (lkey != UCT_SEP_INVALID_LKEY) {
        return lkey;
    }

    pthread_mutex_lock(&md->own_lock);

    keys   = uct_sep_context_find_keys(&mem->keys, &slot);
    own_mr = ucs_malloc(sizeof(*own_mr), "sep_own_mr");
    if ((keys == NULL) || (own_mr == NULL)) {
        ucs_error("%s: no memory for a local key", md->dev.name);
        goto err_free;
    }

    own_mr->mr = ibv_reg_mr(own->pd, mem->mr->addr, mem->mr->length,
                            IBV_ACCESS_LOCAL_WRITE |
                            (md->relaxed_ordering ?
                             IBV_ACCESS_RELAXED_ORDERING : 0));
    if (own_mr->mr == NULL) {
        ucs_error("%s: ibv_reg_mr(address=%p, length=%zu) in a worker's "
                  "context failed: %m%s", md->dev.name, mem->mr->addr,
                  mem->mr->length, (errno == ENOMEM) ?
                  ". Please check max locked memory (ulimit -l), or set "
                  "UCX_SEP_CATEGORY=dynamic" : "");
        goto err_free;
    }

    uct_sep_account_add(own_mr->mr->context, UCT_SEP_ACCOUNT_MR,
                        own_mr->mr->length);
    own_mr->mem  = mem;
    own_mr->slot = own->slot;
    ucs_list_add_tail(&own->mrs, &own_mr->list);
    lkey              = own_mr->mr->lkey;
    keys->mrs[slot]   = own_mr;
    keys->lkeys[slot] = lkey;

    pthread_mutex_unlock(&md->own_lock);
    return lkey;

err_free:
    ucs_free(own_mr);
    pthread_mutex_unlock(&md->own_lock);
    return UCT_SEP_INVALID_LKEY;
}

void uct_sep_context_release_mem(uct_sep_md_t *md, uct_sep_mem_t *mem)
{
    uct_sep_mem_keys_t *keys, *next;
    unsigned i;

    if (mem->keys == NULL) {
        return;
    }

    pthread_mutex_lock(&md->own_lock);
    for (keys = mem->keys; keys != NULL; keys = next) {
        for (i = 0; i < UCT_SEP_MEM_KEYS; ++i) {
            if (keys->mrs[i] != NULL) {
                uct_sep_context_release_mr(keys->mrs[i], keys, i);
            }
        }
        next = keys->next;
        ucs_free(keys);
    }
    mem->keys = NULL;
    pthread_mutex_unlock(&md->own_lock);
}

void uct_sep_context_close(uct_sep_md_t *md, uct_sep_context_t *own)
{
    uct_sep_mem_keys_t *keys;
    uct_sep_own_mr_t *own_mr;
    unsigned slot;
    int ret;

    pthread_mutex_lock(&md->own_lock);
    while (!ucs_list_is_empty(&own->mrs)) {
        own_mr = ucs_list_head(&own->mrs, uct_sep_own_mr_t, list);
        slot   = own->slot;
        keys   = uct_sep_context_find_keys(&own_mr->mem->keys, &slot);
        uct_sep_context_release_mr(own_mr, keys, slot);
    }
    ucs_list_del(&own->list);
    pthread_mutex_unlock(&md->own_lock);

    uct_sep_uuars_cleanup(&own->uuars);
    ret = ibv_dealloc_pd(own->pd);
    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_pd(of a worker's context) failed: %s",
                 md->dev.name, strerror(ret));
    }

    uct_sep_account_remove(own->context, UCT_SEP_ACCOUNT_CONTEXT, 0);
    if (ibv_close_device(own->context) != 0) {
        ucs_warn("%s: ibv_close_device(of a worker) failed: %m", md->dev.name);
    }
    ucs_free(own);
}
