/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/category/sep_channel.h>
#include <uct/ib/sep/category/sep_sharing.h>

#include <ucs/debug/log.h>

/*
 * "mpi_everywhere": each worker sends through a device context of its own, as
 * processes do. The first worker of a memory domain uses the domain's. There
 * are no thread domains: the driver gives its low-latency uUARs to the first
 * queue pairs, and no other worker rings any of them.
 */

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) ucs_status_t
uct_sep_channel_context_init(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    ucs_status_t status;

    channel->use    = UCT_SEP_UUAR_ALONE;
    channel->cm_use = UCT_SEP_UUAR_DRIVER; /* From other threads, too */

    if (uct_sep_sharing_claim_uuars(md->sharing, 1) == UCS_OK) {
        channel->has_claim = 1;
        channel->pd        = md->pd;
        channel->cm_pd     = md->pd;
        return UCS_OK;
    }

    status = uct_sep_context_open(md, &channel->own);
    if (status != UCS_OK) {
        return status;
    }

    if (channel->own->uuars.num_low_lat == 0) {
        ucs_error("%s: MLX5_NUM_LOW_LAT_UUARS=0 leaves no uUAR for connecting: "
                  "set it to 1 at least", md->dev.name);
        uct_sep_context_close(md, channel->own);
        return UCS_ERR_UNSUPPORTED;
    }

    channel->uuars = &channel->own->uuars;
    channel->pd    = channel->own->pd;
    channel->cm_pd = channel->own->pd;
    return UCS_OK;
}

static UCT_SEP_REQUIRES(uct_sep_sharing_mutex) void
uct_sep_channel_context_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    if (channel->own != NULL) {
        uct_sep_context_close(md, channel->own);
    }
}

const uct_sep_category_ops_t uct_sep_category_context = {
    .init    = uct_sep_channel_context_init,
    .cleanup = uct_sep_channel_context_cleanup
};
