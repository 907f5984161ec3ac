/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_account.h>
#include "sep_td.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>


static void uct_sep_td_dealloc(uct_sep_md_t *md, uct_sep_td_pair_t *pair,
                               unsigned index)
{
    int ret;

    uct_sep_account_remove(md->dev.context, UCT_SEP_ACCOUNT_TD, 0);
    ret = ibv_dealloc_td(pair->td[index]);
    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_td() failed: %s", md->dev.name,
                 strerror(ret));
    }
}

static void uct_sep_td_dealloc_pd(uct_sep_md_t *md, uct_sep_td_pair_t *pair,
                                  unsigned index)
{
    int ret = ibv_dealloc_pd(pair->pd[index]);

    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_pd(parent domain) failed: %s", md->dev.name,
                 strerror(ret));
    }
}

static ucs_status_t
uct_sep_td_alloc_domains(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    struct ibv_td_init_attr attr = {};
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        pair->td[i] = ibv_alloc_td(md->dev.context, &attr);
        if (pair->td[i] == NULL) {
            status = ((errno == EOPNOTSUPP) || (errno == EPERM)) ?
                     UCT_SEP_TD_ERR_NONE : UCS_ERR_NO_RESOURCE;
            ucs_debug("%s: ibv_alloc_td() failed: %m", md->dev.name);
            goto err;
        }
        uct_sep_account_add(md->dev.context, UCT_SEP_ACCOUNT_TD, 0);
    }

    return UCS_OK;

err:
    if (i > 0) {
        uct_sep_td_dealloc(md, pair, 0);
    }
    return status;
}

static ucs_status_t
uct_sep_td_alloc_pds(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    struct ibv_parent_domain_init_attr attr = {};
    unsigned i;

    attr.pd = md->pd;
    for (i = 0; i < 2; ++i) {
        attr.td     = pair->td[i];
        pair->pd[i] = ibv_alloc_parent_domain(md->dev.context, &attr);
        if (pair->pd[i] == NULL) {
            ucs_error("%s: ibv_alloc_parent_domain() failed: %m",
                      md->dev.name);
            goto err;
        }
    }

    return UCS_OK;

err:
    if (i > 0) {
        uct_sep_td_dealloc_pd(md, pair, 0);
    }
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t uct_sep_td_pair_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p)
{
    uct_sep_td_pair_t *pair;
    ucs_status_t status;

    pair = ucs_calloc(1, sizeof(*pair), "sep_td_pair");
    if (pair == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    status = uct_sep_td_alloc_domains(md, pair);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_sep_td_alloc_pds(md, pair);
    if (status != UCS_OK) {
        goto err_dealloc;
    }

    *pair_p = pair;
    return UCS_OK;

err_dealloc:
    uct_sep_td_dealloc(md, pair, 0);
    uct_sep_td_dealloc(md, pair, 1);
err_free:
    ucs_free(pair);
err:
    return status;
}

void uct_sep_td_pair_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair)
{
    uct_sep_td_dealloc_pd(md, pair, 0);
    uct_sep_td_dealloc_pd(md, pair, 1);
    /* In the order in which they are to be given out again */
    uct_sep_td_dealloc(md, pair, 0);
    uct_sep_td_dealloc(md, pair, 1);
    ucs_free(pair);
}

ucs_status_t uct_sep_td_half_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p,
                                 unsigned *index_p)
{
    uct_sep_td_pair_t *pair;
    ucs_status_t status;

    if (!ucs_list_is_empty(&md->half_pairs)) {
        pair     = ucs_list_extract_head(&md->half_pairs, uct_sep_td_pair_t,
                                         list);
        *index_p = (pair->free_mask == 1) ? 0 : 1;
        pair->free_mask = 0;
    } else {
        status = uct_sep_td_pair_get(md, &pair);
        if (status != UCS_OK) {
            return status;
        }

        *index_p        = 0;
        pair->free_mask = 1 << 1;
        ucs_list_add_tail(&md->half_pairs, &pair->list);
    }

    *pair_p = pair;
    return UCS_OK;
}

void uct_sep_td_half_put(uct_sep_md_t *md, uct_sep_td_pair_t *pair,
                         unsigned index)
{
    if (pair->free_mask == 0) {
        pair->free_mask = 1u << index;
        ucs_list_add_tail(&md->half_pairs, &pair->list);
    } else {
        ucs_list_del(&pair->list);
        uct_sep_td_pair_put(md, pair);
    }
}

ucs_status_t uct_sep_td_common_get(uct_sep_md_t *md, uct_sep_td_pair_t **pair_p)
{
    ucs_status_t status;

    if ((md->common_refcount == 0) && md->uuars.is_dynamic) {
        status = uct_sep_td_pair_get(md, &md->common_pair);
        if (status == UCT_SEP_TD_ERR_NONE) {
            md->common_pair = NULL;
        } else if (status != UCS_OK) {
            return status;
        }
    }

    ++md->common_refcount;
    *pair_p = md->common_pair;
    return UCS_OK;
}

void uct_sep_td_common_put(uct_sep_md_t *md)
{
    if ((--md->common_refcount == 0) && (md->common_pair != NULL)) {
        uct_sep_td_pair_put(md, md->common_pair);
        md->common_pair = NULL;
    }
}
