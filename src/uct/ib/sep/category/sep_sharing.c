/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


static uct_sep_sharing_t *uct_sep_sharing_create(const uct_sep_md_t *md)
{
    uct_sep_sharing_t *sharing;

    sharing = ucs_calloc(1, sizeof(*sharing), "sep_sharing");
    if (sharing == NULL) {
        ucs_error("%s: no memory for what workers share", md->dev.name);
        return NULL;
    }

    uct_sep_sharing_mutex_init(&sharing->lock, NULL);
    ucs_list_head_init(&sharing->half_pairs);
    ucs_list_head_init(&sharing->lenders);
    ucs_list_head_init(&sharing->contexts);
    uct_sep_cq_groups_mutex_init(&sharing->group_lock, NULL);
    ucs_list_head_init(&sharing->cq_groups);
    return sharing;
}

/* Nobody else knows it any more */
static UCT_SEP_NO_LOCK_ANALYSIS void
uct_sep_sharing_destroy(uct_sep_sharing_t *sharing)
{
    ucs_assert(ucs_list_is_empty(&sharing->half_pairs));
    ucs_assert(ucs_list_is_empty(&sharing->lenders));
    ucs_assert(ucs_list_is_empty(&sharing->contexts));
    ucs_assert(ucs_list_is_empty(&sharing->cq_groups));
    ucs_assert(sharing->common_pair == NULL);
    ucs_assert(sharing->uuar_claims == 0);
    uct_sep_cq_groups_mutex_destroy(&sharing->group_lock);
    uct_sep_sharing_mutex_destroy(&sharing->lock);
    ucs_free(sharing);
}

ucs_status_t uct_sep_sharing_get(uct_sep_md_t *md)
{
    ucs_status_t status = UCS_OK;

    uct_sep_own_mutex_lock(&md->own_lock);
    if (md->sharing == NULL) {
        md->sharing = uct_sep_sharing_create(md);
    }
    if (md->sharing == NULL) {
        status = UCS_ERR_NO_MEMORY;
    } else {
        ++md->sharing->refcount;
    }
    uct_sep_own_mutex_unlock(&md->own_lock);
    return status;
}

void uct_sep_sharing_put(uct_sep_md_t *md)
{
    uct_sep_own_mutex_lock(&md->own_lock);
    if (--md->sharing->refcount == 0) {
        uct_sep_sharing_destroy(md->sharing);
        md->sharing = NULL;
    }
    uct_sep_own_mutex_unlock(&md->own_lock);
}

ucs_status_t
uct_sep_sharing_claim_uuars(uct_sep_sharing_t *sharing, int is_alone)
{
    if ((sharing->uuar_claims < 0) ||
        (is_alone && (sharing->uuar_claims > 0))) {
        return UCS_ERR_BUSY;
    }

    sharing->uuar_claims = is_alone ? -1 : (sharing->uuar_claims + 1);
    return UCS_OK;
}

void uct_sep_sharing_unclaim_uuars(uct_sep_sharing_t *sharing)
{
    sharing->uuar_claims = (sharing->uuar_claims < 0) ?
                           0 : (sharing->uuar_claims - 1);
}
