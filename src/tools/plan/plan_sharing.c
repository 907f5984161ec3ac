/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/plan/plan_sharing.h>


/* uUARs of a context that the driver gives to queue pairs */
static void sep_plan_sharing_static(const sep_plan_config_t *config,
                                    sep_model_sharing_t *sharing)
{
    unsigned shared = config->total_uuars - config->low_lat_uuars;

    /* The first of the static ones has no BlueFlame, and nobody gets it as long
     * as there are others */
    if ((config->regime == SEP_PLAN_LEGACY) && (shared > 1)) {
        --shared;
    }

    sharing->uuars_dedicated = config->low_lat_uuars;
    sharing->uuars_shared    = shared;
    sharing->uuars_per_page  = 2;
}

void sep_plan_sharing(const sep_plan_config_t *config, int verbs,
                      sep_model_sharing_t *sharing_p)
{
    const uct_sep_category_row_t *row;

    sharing_p->threads_per_qp  = 1;
    sharing_p->threads_per_cq  = config->cq_sharing;
    sharing_p->uuars_dedicated = SEP_MODEL_ALL;
    sharing_p->uuars_shared    = 1;
    sharing_p->uuars_per_page  = 1;
    sharing_p->pages_adjacent  = 0;
    sharing_p->qp_lock         = 0;
    if (config->category == SEP_PLAN_NAIVE) {
        return;
    }

    row                = sep_plan_category_row(config->category);
    sharing_p->qp_lock = verbs && (row->tds == 0);
    if (row->is_hub) {
        sharing_p->threads_per_qp = SEP_MODEL_ALL;
        sharing_p->threads_per_cq = SEP_MODEL_ALL;
    } else if (row->tds > 0) {
        sharing_p->uuars_per_page = (row->tds == 1) ? 2 : 1;
        sharing_p->pages_adjacent = (row->tds <= 2);
    } else if (!row->own_context) {
        sep_plan_sharing_static(config, sharing_p);
    }
}
