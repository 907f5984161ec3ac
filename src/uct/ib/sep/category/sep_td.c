/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_shortage.h>
#include <uct/ib/sep/category/sep_td.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>


/* Release a pair, or what there is of it */
static void uct_sep_td_pair_free(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    unsigned i;
    int ret;

    for (i = 0; i < 2; ++i) {
        ret = (pair->pd[i] == NULL) ? 0 : ibv_dealloc_pd(pair->pd[i]);
        if (ret != 0) {
            ucs_warn("%s: ibv_dealloc_pd(parent domain) failed: %s",
                     md->dev.name, strerror(ret));
        }
    }

    /* In the order in which they are to be given out again */
    for (i = 0; (i < 2) && (pair->td[i] != NULL); ++i) {
        uct_sep_account_remove(md->dev.context, UCT_SEP_ACCOUNT_TD, 0);
        ret = ibv_dealloc_td(pair->td[i]);
        if (ret != 0) {
            ucs_warn("%s: ibv_dealloc_td() failed: %s", md->dev.name,
                     strerror(ret));
        }
    }
    ucs_free(pair);
}

/* Why the driver did not make something, by errno */
static ucs_status_t uct_sep_td_failed(uct_sep_md_t *md, const char *call)
{
    if ((errno == EOPNOTSUPP) || (errno == EPERM)) {
        ucs_debug("%s: %s failed: %m", md->dev.name, call);
        return UCT_SEP_TD_ERR_NONE;
    }

    if ((errno == ENOSPC) && !md->uuars.is_dynamic) {
        /* libmlx5's own limit of pages with old kernels (verbs.c,
         * mlx5_alloc_dyn_uar) */
        ucs_debug("%s: %s failed: %m", md->dev.name, call);
        return UCS_ERR_NO_RESOURCE;
    }

    switch (uct_sep_shortage_get(errno)) {
    case UCT_SEP_SHORTAGE_DEVICE:
        ucs_debug("%s: %s failed: %m", md->dev.name, call);
        return UCS_ERR_NO_RESOURCE;
    case UCT_SEP_SHORTAGE_MEMORY:
        ucs_error("%s: %s failed: %m%s", md->dev.name, call,
                  uct_sep_shortage_hint(errno, ""));
        return UCS_ERR_NO_MEMORY;
    default:
        ucs_error("%s: %s failed: %m", md->dev.name, call);
        return UCS_ERR_IO_ERROR;
    }
}

ucs_status_t uct_sep_td_pair_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p)
{
    struct ibv_parent_domain_init_attr pd_attr = {.pd = md->pd};
    struct ibv_td_init_attr td_attr            = {};
    uct_sep_td_pair_t *pair;
    ucs_status_t status;
    unsigned i;

    pair = ucs_calloc(1, sizeof(*pair), "sep_td_pair");
    if (pair == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < 2; ++i) {
        pair->td[i] = ibv_alloc_td(md->dev.context, &td_attr);
        if (pair->td[i] == NULL) {
            status = uct_sep_td_failed(md, "ibv_alloc_td()");
            goto err;
        }
        uct_sep_account_add(md->dev.context, UCT_SEP_ACCOUNT_TD, 0);
    }

    for (i = 0; i < 2; ++i) {
        pd_attr.td  = pair->td[i];
        pair->pd[i] = ibv_alloc_parent_domain(md->dev.context, &pd_attr);
        if (pair->pd[i] == NULL) {
            status = uct_sep_td_failed(md, "ibv_alloc_parent_domain()");
            goto err;
        }
    }

    pair->refcount = 1;
    *pair_p        = pair;
    return UCS_OK;

err:
    uct_sep_td_pair_free(md, pair);
    return status;
}

void uct_sep_td_pair_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    if (--pair->refcount == 0) {
        uct_sep_td_pair_free(md, pair);
    }
}

void uct_sep_td_pair_lend(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    /* The newest: what is first has most connections to make, often */
    ucs_list_add_head(&md->sharing->lenders, &pair->list);
}

void uct_sep_td_pair_unlend(uct_sep_td_pair_t *pair)
{
    ucs_list_del(&pair->list);
}

ucs_status_t uct_sep_td_half_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p,
                                 unsigned *index_p)
{
    uct_sep_td_pair_t *pair;
    ucs_status_t status;

    if (!ucs_list_is_empty(&md->sharing->half_pairs)) {
        pair     = ucs_list_extract_head(&md->sharing->half_pairs,
                                         uct_sep_td_pair_t, list);
        *index_p = (pair->free_mask == 1) ? 0 : 1;
        pair->free_mask = 0;
    } else {
        status = uct_sep_td_pair_get(md, &pair);
        if (status != UCS_OK) {
            return status;
        }

        *index_p        = 0;
        pair->free_mask = 1 << 1;
        ucs_list_add_tail(&md->sharing->half_pairs, &pair->list);
    }

    *pair_p = pair;
    return UCS_OK;
}

void uct_sep_td_half_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair,
                         unsigned index)
{
    if (pair->free_mask == 0) {
        pair->free_mask = 1u << index;
        ucs_list_add_tail(&md->sharing->half_pairs, &pair->list);
    } else {
        ucs_list_del(&pair->list);
        uct_sep_td_pair_put(md, pair);
    }
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) ucs_status_t
uct_sep_td_common_open(uct_sep_md_t *md)
{
    uct_sep_sharing_t *sharing = md->sharing;
    ucs_status_t status;

    sharing->common_pair    = NULL;
    sharing->is_common_lent = 0;
    if (!md->uuars.is_dynamic) {
        return UCS_OK;
    }

    status = uct_sep_td_pair_get(md, &sharing->common_pair);
    if (status == UCT_SEP_TD_ERR_NONE) {
        return UCS_OK;
    }

    if ((status == UCS_ERR_NO_RESOURCE) &&
        !ucs_list_is_empty(&sharing->lenders)) {
        sharing->common_pair    = ucs_list_head(&sharing->lenders,
                                                uct_sep_td_pair_t, list);
        sharing->is_common_lent = 1;
        ++sharing->common_pair->refcount;
        ucs_debug("%s: no UAR page left, workers share that of another",
                  md->dev.name);
        return UCS_OK;
    }

    return status;
}

ucs_status_t uct_sep_td_common_get(uct_sep_md_t *md, struct ibv_pd **pd_p)
{
    uct_sep_sharing_t *sharing = md->sharing;
    ucs_status_t status;

    if (sharing->common_refcount == 0) {
        status = uct_sep_td_common_open(md);
        if (status != UCS_OK) {
            return status;
        }
    }

    ++sharing->common_refcount;
    *pd_p = (sharing->common_pair == NULL) ? NULL :
            sharing->common_pair->pd[sharing->is_common_lent ? 1 : 0];
    return UCS_OK;
}

struct ibv_pd *uct_sep_td_common_spare(const uct_sep_md_t *md)
{
    const uct_sep_td_pair_t *pair = md->sharing->common_pair;

    return (pair == NULL) ? NULL : pair->pd[1];
}

int uct_sep_td_common_is_lent(const uct_sep_md_t *md)
{
    uct_sep_sharing_t *sharing = md->sharing;
    int is_lent;

    uct_sep_sharing_mutex_lock(&sharing->lock);
    is_lent = (sharing->common_pair != NULL) && sharing->is_common_lent;
    uct_sep_sharing_mutex_unlock(&sharing->lock);
    return is_lent;
}

void uct_sep_td_common_put(uct_sep_md_t *md)
{
    uct_sep_sharing_t *sharing = md->sharing;

    if ((--sharing->common_refcount == 0) && (sharing->common_pair != NULL)) {
        uct_sep_td_pair_put(md, sharing->common_pair);
        sharing->common_pair = NULL;
    }
}
