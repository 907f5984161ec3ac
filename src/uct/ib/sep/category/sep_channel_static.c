/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_channel.h>

/*
 * "static": no thread domains, each queue pair rings the uUAR that the driver
 * has chosen for it. In the dynamic regime libmlx5 allocates UAR pages for that
 * up to its limit, and fails if there are none, instead of sharing those that
 * it has. Then the spare uUAR of those that are shared is taken, for as long as
 * necessary.
 */

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) ucs_status_t
uct_sep_channel_static_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    ucs_status_t status;

    status = uct_sep_channel_init_common(channel, md);
    if (status != UCS_OK) {
        return status;
    }

    channel->pd           = md->pd;
    channel->use          = UCT_SEP_UUAR_DRIVER;
    channel->responder_pd = channel->cm_pd;
    channel->spare_pd     = uct_sep_td_common_spare(md);
    return uct_sep_channel_claim_uuars(channel, md);
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) void
uct_sep_channel_static_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
}

const uct_sep_category_ops_t uct_sep_category_static = {
    .init    = uct_sep_channel_static_init,
    .cleanup = uct_sep_channel_static_cleanup
};
