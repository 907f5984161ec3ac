/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_channel.h>

#include <ucs/debug/assert.h>
#include <ucs/sys/sys.h>

/*
 * Categories with thread domains: a worker rings a uUAR of its own.
 */

/* "dynamic": the worker has a UAR page for itself. Only the connection manager
 * uses the other uUAR of the page, and other workers if there is no page left
 * for them. "2xdynamic": the same, and the page in front
 * of it is idle, so that no two workers ring on neighbouring pages. */
static unsigned uct_sep_channel_num_pairs(const uct_sep_channel_t *channel)
{
    return uct_sep_category_rows[channel->category].tds / 2;
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) ucs_status_t
uct_sep_channel_dynamic_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    unsigned last = uct_sep_channel_num_pairs(channel) - 1;
    ucs_status_t status;
    unsigned i;

    ucs_assertv_always(last < ucs_static_array_size(channel->pair), "%s",
                       uct_sep_category_names[channel->category]);
    for (i = 0; i <= last; ++i) {
        status = uct_sep_td_pair_get(md, &channel->pair[i]);
        if (status != UCS_OK) {
            while (i-- > 0) {
                uct_sep_td_pair_put(md, channel->pair[i]);
            }
            return status;
        }
    }

    channel->pd           = channel->pair[last]->pd[0];
    channel->use          = UCT_SEP_UUAR_EXCLUSIVE;
    channel->cm_pd        = channel->pair[0]->pd[(last > 0) ? 0 : 1];
    channel->cm_use       = UCT_SEP_UUAR_EXCLUSIVE;
    channel->responder_pd = channel->pd;
    uct_sep_td_pair_lend(md, channel->pair[0]);
    return UCS_OK;
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) void
uct_sep_channel_dynamic_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    unsigned i;

    uct_sep_td_pair_unlend(channel->pair[0]);
    for (i = 0; i < uct_sep_channel_num_pairs(channel); ++i) {
        uct_sep_td_pair_put(md, channel->pair[i]);
    }
}

const uct_sep_category_ops_t uct_sep_category_dynamic = {
    .init    = uct_sep_channel_dynamic_init,
    .cleanup = uct_sep_channel_dynamic_cleanup
};


/* "shared_dynamic": two workers share a page, with a uUAR each. None is left
 * for their connection managers. */
static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) ucs_status_t
uct_sep_channel_shared_dynamic_init(
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

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) void
uct_sep_channel_shared_dynamic_cleanup(
        uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    uct_sep_td_half_put(md, channel->pair[0], channel->index);
}

const uct_sep_category_ops_t uct_sep_category_shared_dynamic = {
    .init    = uct_sep_channel_shared_dynamic_init,
    .cleanup = uct_sep_channel_shared_dynamic_cleanup
};
