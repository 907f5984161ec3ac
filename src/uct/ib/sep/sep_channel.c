/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_channel.h"

#include <ucs/debug/log.h>
#include <string.h>


const char *uct_sep_category_names[] = {
    [UCT_SEP_CATEGORY_MPI_EVERYWHERE] = "mpi_everywhere",
    [UCT_SEP_CATEGORY_2XDYNAMIC]      = "2xdynamic",
    [UCT_SEP_CATEGORY_DYNAMIC]        = "dynamic",
    [UCT_SEP_CATEGORY_SHARED_DYNAMIC] = "shared_dynamic",
    [UCT_SEP_CATEGORY_STATIC]         = "static",
    [UCT_SEP_CATEGORY_MPI_THREADS]    = "mpi_threads",
    [UCT_SEP_CATEGORY_AUTO]           = "auto",
    [UCT_SEP_CATEGORY_LAST]           = NULL
};

/* A category without a row is known by name only */
static const uct_sep_category_ops_t *uct_sep_categories[] = {
    [UCT_SEP_CATEGORY_DYNAMIC] = &uct_sep_category_dynamic,
    [UCT_SEP_CATEGORY_AUTO]    = &uct_sep_category_dynamic,
    [UCT_SEP_CATEGORY_LAST]    = NULL
};


ucs_status_t uct_sep_channel_init(uct_sep_channel_t *channel, uct_sep_md_t *md,
                                  uct_sep_category_t category, const char *name)
{
    ucs_status_t status;

    memset(channel, 0, sizeof(*channel));
    if ((category >= UCT_SEP_CATEGORY_LAST) ||
        (uct_sep_categories[category] == NULL)) {
        ucs_error("%s: sharing category \"%s\" is not available in this "
                  "version: set UCX_SEP_CATEGORY=dynamic", name,
                  (category < UCT_SEP_CATEGORY_LAST) ?
                  uct_sep_category_names[category] : "unknown");
        return UCS_ERR_UNSUPPORTED;
    }

    channel->ops = uct_sep_categories[category];
    status       = channel->ops->init(channel, md);
    if (status != UCS_OK) {
        ucs_error("%s: no resources for a worker of sharing category \"%s\": "
                  "%s (see UCX_SEP_CATEGORY)", name,
                  uct_sep_category_names[category], ucs_status_string(status));
    }

    return status;
}

void uct_sep_channel_cleanup(uct_sep_channel_t *channel, uct_sep_md_t *md)
{
    channel->ops->cleanup(channel, md);
}
