/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_channel.h>

/*
 * Categories with thread domains: a worker rings a uUAR of its own.
 */

/* "dynamic": the worker has a UAR page for itself. The other uUAR of the page
 * is idle but for the connection manager. */
static ucs_status_t
uct_sep_channel_dynamic_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    ucs_status_t status;

    status = uct_sep_td_pair_get(md, &channel->pair[0]);
    if (status != UCS_OK) {
        return status;
    }

    channel->pd           = channel->pair[0]->pd[0];
    channel->use          = UCT_SEP_UUAR_EXCLUSIVE;
    channel->cm_pd        = channel->pair[0]->pd[1];
    channel->cm_use       = UCT_SEP_UUAR_EXCLUSIVE;
    channel->responder_pd = channel->pd;
    return UCS_OK;
}

static void
uct_sep_channel_dynamic_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    uct_sep_td_pair_put(md, channel->pair[0]);
}

const uct_sep_category_ops_t uct_sep_category_dynamic = {
    .init    = uct_sep_channel_dynamic_init,
    .cleanup = uct_sep_channel_dynamic_cleanup
};


/* "2xdynamic": as dynamic, and the page in front of it is idle, so that no two
 * workers ring on neighbouring pages. */
static ucs_status_t
uct_sep_channel_2xdynamic_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    ucs_status_t status;

    status = uct_sep_td_pair_get(md, &channel->pair[0]);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_td_pair_get(md, &channel->pair[1]);
    if (status != UCS_OK) {
        uct_sep_td_pair_put(md, channel->pair[0]);
        return status;
    }

    channel->pd           = channel->pair[1]->pd[0];
    channel->use          = UCT_SEP_UUAR_EXCLUSIVE;
    channel->cm_pd        = channel->pair[0]->pd[0];
    channel->cm_use       = UCT_SEP_UUAR_EXCLUSIVE;
    channel->responder_pd = channel->pd;
    return UCS_OK;
}

static void
uct_sep_channel_2xdynamic_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    uct_sep_td_pair_put(md, channel->pair[0]);
    uct_sep_td_pair_put(md, channel->pair[1]);
}

const uct_sep_category_ops_t uct_sep_category_2xdynamic = {
    .init    = uct_sep_channel_2xdynamic_init,
    .cleanup = uct_sep_channel_2xdynamic_cleanup
};


/* "shared_dynamic": two workers have a page, with a uUAR each. There is none
 * left for their connection managers. */
static ucs_status_t uct_sep_channel_shared_dynamic_init(
        uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    ucs_status_t status;

    status = uct_sep_channel_init_common(channel, md);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_td_half_get(md, &channel->pair[0], &channel->index);
    if (status != UCS_OK) {
        return status;
    }

    channel->pd           = channel->pair[0]->pd[channel->index];
    channel->use          = UCT_SEP_UUAR_EXCLUSIVE;
    channel->responder_pd = channel->pd;
    return UCS_OK;
}

static void uct_sep_channel_shared_dynamic_cleanup(
        uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    uct_sep_td_half_put(md, channel->pair[0], channel->index);
}

const uct_sep_category_ops_t uct_sep_category_shared_dynamic = {
    .init    = uct_sep_channel_shared_dynamic_init,
    .cleanup = uct_sep_channel_shared_dynamic_cleanup
};
