/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_channel.h"
#include "sep_account.h"

#include <ucs/debug/log.h>
#include <errno.h>
#include <string.h>

/*
 * Category "dynamic": a UAR page per worker. libmlx5 gives a thread domain the
 * next free uUAR of a list which has two per page, so the first of two domains
 * allocated together has the page for itself, as long as domains of the
 * device's context come and go in pairs only.
 */

static void
uct_sep_channel_dealloc_td(uct_sep_channel_t *channel, unsigned index)
{
    int ret;

    uct_sep_account_remove(channel->td[index]->context, UCT_SEP_ACCOUNT_TD, 0);
    ret = ibv_dealloc_td(channel->td[index]);
    if (ret != 0) {
        ucs_warn("ibv_dealloc_td() failed: %s", strerror(ret));
    }
}

static ucs_status_t
uct_sep_channel_alloc_pair(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    struct ibv_td_init_attr attr = {};
    unsigned i;

    for (i = 0; i < 2; ++i) {
        channel->td[i] = ibv_alloc_td(md->dev.context, &attr);
        if (channel->td[i] == NULL) {
            ucs_error("%s: ibv_alloc_td() failed: %m%s", md->dev.name,
                      (errno == ENOMEM) ? ". The device or the context has no "
                      "UAR pages left: use fewer workers" : "");
            goto err;
        }
        uct_sep_account_add(md->dev.context, UCT_SEP_ACCOUNT_TD, 0);
    }

    return UCS_OK;

err:
    if (i > 0) {
        uct_sep_channel_dealloc_td(channel, 0);
    }
    return UCS_ERR_NO_RESOURCE;
}

static ucs_status_t
uct_sep_channel_dynamic_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    struct ibv_parent_domain_init_attr attr = {};
    ucs_status_t status;

    pthread_mutex_lock(&md->channel_lock);
    status = uct_sep_channel_alloc_pair(channel, md);
    if (status != UCS_OK) {
        goto out_unlock;
    }

    attr.pd     = md->pd;
    attr.td     = channel->td[0];
    channel->pd = ibv_alloc_parent_domain(md->dev.context, &attr);
    if (channel->pd == NULL) {
        ucs_error("%s: ibv_alloc_parent_domain() failed: %m", md->dev.name);
        status = UCS_ERR_IO_ERROR;
        goto err_dealloc_pair;
    }

    goto out_unlock;

err_dealloc_pair:
    uct_sep_channel_dealloc_td(channel, 1);
    uct_sep_channel_dealloc_td(channel, 0);
out_unlock:
    pthread_mutex_unlock(&md->channel_lock);
    return status;
}

static void
uct_sep_channel_dynamic_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    int ret;

    pthread_mutex_lock(&md->channel_lock);
    ret = ibv_dealloc_pd(channel->pd);
    if (ret != 0) {
        ucs_warn("%s: ibv_dealloc_pd(parent domain) failed: %s", md->dev.name,
                 strerror(ret));
    }

    /* Returned in the order in which they would be given out again */
    uct_sep_channel_dealloc_td(channel, 0);
    uct_sep_channel_dealloc_td(channel, 1);
    pthread_mutex_unlock(&md->channel_lock);
}

const uct_sep_category_ops_t uct_sep_category_dynamic = {
    .init    = uct_sep_channel_dynamic_init,
    .cleanup = uct_sep_channel_dynamic_cleanup
};
