/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_eager.h"
#include "ucp_opt_rkey.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/core/ucp_worker.inl>


/* A limit for lengths that memory of any type may have. */
static size_t ucp_opt_eager_limit(ucp_ep_h ep, uint64_t feature,
                                  const ucp_memtype_thresh_t *max_short)
{
    if (!(ep->worker->context->config.features & feature) ||
        (max_short->memtype_off < 0)) {
        return 0;
    }

    return max_short->memtype_off + 1;
}

void ucp_opt_eager_prepare(ucp_ep_h ep)
{
    ucp_opt_eager_t *opt    = &ep->opt_eager;
    ucp_ep_config_t *config = ucp_ep_config(ep);
    uint64_t state          = ucp_opt_ep_state(ep);
    ucp_worker_iface_t *wiface;
    uct_ep_h uct_ep;

    if (ep->am_lane == UCP_NULL_LANE) {
        opt->state = state;
        return;
    }

    /* Not what stands in for the transport while connecting. */
    uct_ep = ucp_ep_get_am_uct_ep(ep);
    wiface = ucp_worker_iface(ep->worker,
                              config->key.lanes[ep->am_lane].rsc_index);
    if ((uct_ep == NULL) || (wiface == NULL) ||
        (uct_ep->iface != wiface->iface)) {
        return;
    }

    opt->uct_ep   = uct_ep;
    opt->am_short = uct_ep->iface->ops.ep_am_short;
    opt->state    = state;
    ucs_memory_cpu_store_fence();
    opt->tag_limit = ucp_opt_eager_limit(ep, UCP_FEATURE_TAG,
                                         &config->tag.max_eager_short);
    opt->am_limit  = ucp_opt_eager_limit(ep, UCP_FEATURE_AM,
                                         &config->am_u.max_eager_short);

    /* If the lanes change in asynchronous context, either this is seen here or
     * the limits are taken away after they have been set. */
    __sync_synchronize();
    if (ucs_unlikely(*(volatile uint64_t*)&ep->opt_state != state)) {
        opt->tag_limit = 0;
        opt->am_limit  = 0;
    }
}

int ucp_opt_eager_is_current(ucp_ep_h ep)
{
    return (ep->am_lane != UCP_NULL_LANE) &&
           (ucp_ep_get_am_uct_ep(ep) == ep->opt_eager.uct_ep);
}
