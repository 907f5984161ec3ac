/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/md/sep_own_keys.h>
#include <uct/ib/sep/base/sep_account.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>


static UCT_SEP_REQUIRES(uct_sep_own_mutex) uct_sep_mem_keys_t *
uct_sep_own_keys_find(uct_sep_mem_keys_t **keys_p, unsigned *slot_p)
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

static UCT_SEP_REQUIRES(uct_sep_own_mutex) void
uct_sep_own_keys_release_mr(uct_sep_own_mr_t *own_mr, uct_sep_mem_keys_t *keys,
                            unsigned slot)
{
    int ret;

    keys->lkeys[slot] = UCT_SEP_INVALID_LKEY;
    keys->mrs[slot]   = NULL;
    ucs_list_del(&own_mr->list);

    uct_sep_account_remove(own_mr->mr->context, UCT_SEP_ACCOUNT_MR, 0);
    ret = ibv_dereg_mr(own_mr->mr);
    if (ret != 0) {
        ucs_warn("ibv_dereg_mr(of a worker's context) failed: %s",
                 strerror(ret));
    }
    ucs_free(own_mr);
}

uint32_t uct_sep_own_keys_make(uct_sep_own_keys_t *own, uct_sep_md_t *md,
                               uct_sep_mem_t *mem)
{
    uint32_t lkey = uct_sep_own_keys_lkey(own, mem);
    unsigned slot = own->slot;
    uct_sep_mem_keys_t *keys;
    uct_sep_own_mr_t *own_mr;

    if (lkey != UCT_SEP_INVALID_LKEY) {
        return lkey;
    }

    uct_sep_own_mutex_lock(&md->own_lock);

    keys   = uct_sep_own_keys_find(&mem->keys, &slot);
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

    /* The bytes are those of the memory's first region */
    uct_sep_account_add(own_mr->mr->context, UCT_SEP_ACCOUNT_MR, 0);
    own_mr->mem  = mem;
    own_mr->slot = own->slot;
    ucs_list_add_tail(&own->mrs, &own_mr->list);
    lkey              = own_mr->mr->lkey;
    keys->mrs[slot]   = own_mr;
    keys->lkeys[slot] = lkey;

    uct_sep_own_mutex_unlock(&md->own_lock);
    return lkey;

err_free:
    ucs_free(own_mr);
    uct_sep_own_mutex_unlock(&md->own_lock);
    return UCT_SEP_INVALID_LKEY;
}

void uct_sep_own_keys_release_mem(uct_sep_md_t *md, uct_sep_mem_t *mem)
{
    uct_sep_mem_keys_t *keys, *next;
    unsigned i;

    if (mem->keys == NULL) {
        return;
    }

    uct_sep_own_mutex_lock(&md->own_lock);
    for (keys = mem->keys; keys != NULL; keys = next) {
        for (i = 0; i < UCT_SEP_MEM_KEYS; ++i) {
            if (keys->mrs[i] != NULL) {
                uct_sep_own_keys_release_mr(keys->mrs[i], keys, i);
            }
        }
        next = keys->next;
        ucs_free(keys);
    }
    mem->keys = NULL;
    uct_sep_own_mutex_unlock(&md->own_lock);
}

void uct_sep_own_keys_init(uct_sep_own_keys_t *own, struct ibv_pd *pd,
                           unsigned slot)
{
    own->pd   = pd;
    own->slot = slot;
    ucs_list_head_init(&own->mrs);
}

void uct_sep_own_keys_cleanup(uct_sep_own_keys_t *own)
{
    uct_sep_mem_keys_t *keys;
    uct_sep_own_mr_t *own_mr;
    unsigned slot;

    while (!ucs_list_is_empty(&own->mrs)) {
        own_mr = ucs_list_head(&own->mrs, uct_sep_own_mr_t, list);
        slot   = own->slot;
        keys   = uct_sep_own_keys_find(&own_mr->mem->keys, &slot);
        uct_sep_own_keys_release_mr(own_mr, keys, slot);
    }
}
