/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_compat.h"
#include "ucp_opt_rkey.h"
#include "ucp_opt_rkey_class.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucs/arch/atomic.h>


/* The next number of a state of an endpoint; of all workers, as a key may be
 * used with a wrong one. */
static volatile uint64_t ucp_opt_next_state = UCP_OPT_STATE_FIRST;


static int ucp_opt_rkey_is_on(ucp_worker_h worker)
{
    return !!(worker->flags & UCP_WORKER_FLAG_OPT_RKEY);
}

static unsigned ucp_opt_state_lanes(ucp_ep_h ep)
{
    const ucp_ep_config_t *config = ucp_ep_config(ep);
    unsigned num_lanes            = config->key.num_lanes;
    unsigned lane;

    if (!(ep->worker->flags & UCP_WORKER_FLAG_OPT_FLUSH) ||
        (num_lanes > UCP_OPT_STATE_MAX_LANES) ||
        ucp_opt_ep_config_has_failover(config)) {
        return 0;
    }

    for (lane = 0; lane < num_lanes; ++lane) {
        if (ucp_opt_ep_lane(ep, lane) == NULL) {
            return 0;
        }
    }

    return num_lanes;
}

uint64_t ucp_opt_new_state(ucp_ep_h ep)
{
    uint64_t number = ucs_atomic_fadd64(&ucp_opt_next_state,
                                        UCP_OPT_STATE_NEXT);
    uint64_t state;

    /* If the lanes change while they are counted, the number is taken away */
    ep->opt_state = number;
    state         = number | ucp_opt_state_lanes(ep);
    ucs_atomic_cswap64(&ep->opt_state, number, state);
    return state;
}

void ucp_opt_rkey_prepare(ucp_ep_h ep, ucp_rkey_h rkey)
{
    ucp_opt_rkey_t *opt             = &rkey->opt;
    const ucp_opt_rkey_class_t *cls = opt->cls;
    uct_ep_h uct_ep;
    uint64_t state;

    if (ucs_unlikely(!ucp_opt_rkey_is_on(ep->worker))) {
        opt->state = UCP_OPT_RKEY_NEVER;
        return;
    }

    if ((cls == NULL) || ucs_unlikely(cls->ep_cfg_index != ep->cfg_index)) {
        cls = opt->cls = ucp_opt_rkey_class(ep, rkey);
        if (ucs_unlikely((cls == NULL) ||
                         (cls->ep_cfg_index != ep->cfg_index))) {
            return;
        }
    }

    /* If the lanes change from here on, the state is not the endpoint's any
     * more when the key has it. */
    state = ucp_opt_ep_state(ep);

    opt->state = UCP_OPT_RKEY_UNREADY;

    if (ucs_likely(cls->rma.lane != UCP_NULL_LANE)) {
        uct_ep = ucp_opt_ep_lane(ep, cls->rma.lane);
        if (ucs_unlikely((uct_ep == NULL) ||
                         (uct_ep->iface != cls->rma.iface))) {
            return;
        }

        opt->rma_ep    = uct_ep;
        opt->put_short = uct_ep->iface->ops.ep_put_short;
        opt->rma_rkey  = ucp_opt_rkey_tl(rkey, cls->rma.rkey_index);
    }

    if (cls->amo.lane != UCP_NULL_LANE) {
        uct_ep = ucp_opt_ep_lane(ep, cls->amo.lane);
        if (ucs_unlikely((uct_ep == NULL) ||
                         (uct_ep->iface != cls->amo.iface))) {
            return;
        }

        opt->amo_ep   = uct_ep;
        opt->amo_rkey = ucp_opt_rkey_tl(rkey, cls->amo.rkey_index);
    }

    /* Without a lane, the limits of a class are 0. */
    opt->max_put       = cls->max_put;
    opt->max_put_bcopy = cls->max_put_bcopy;
    opt->max_get       = cls->max_get;
    opt->amos          = cls->amos;
    opt->amo_func      = cls->amo_func;
    opt->state         = state;
}

int ucp_opt_rkey_is_current(ucp_ep_h ep, ucp_rkey_h rkey)
{
    const ucp_opt_rkey_t *opt = &rkey->opt;
    int found                 = 0;
    ucp_lane_index_t lane;

    for (lane = 0; lane < ucp_ep_num_lanes(ep); ++lane) {
        found |= (ucp_opt_ep_lane(ep, lane) == opt->rma_ep) ||
                 (ucp_opt_ep_lane(ep, lane) == opt->amo_ep);
    }

    return found;
}

int ucp_opt_rkey_resolve(ucp_ep_h ep, ucp_rkey_h rkey)
{
    const ucp_opt_rkey_class_t *cls;
    uint8_t flags;

    if (ucs_unlikely(!ucp_opt_rkey_is_on(ep->worker))) {
        return 0;
    }

    cls = ucp_opt_rkey_class_find_v1(ep, rkey);
    if (ucs_unlikely((cls == NULL) || !cls->is_resolved ||
                     (cls->has_sw && !(ep->flags & UCP_EP_FLAG_REMOTE_ID)))) {
        return 0;
    }

    flags                = rkey->cache.flags;
    rkey->cache          = cls->resolved.cache;
    rkey->cache.flags    = flags;
    rkey->opt.cls        = cls;
#if UCP_OPT_HAS_RMA_V1
    if (rkey->cache.rma_proto_index == UCP_RKEY_BASIC_PROTO) {
        rkey->cache.rma_rkey = ucp_opt_rkey_tl(rkey, cls->rma.rkey_index);
    }
#endif
    if (rkey->cache.amo_proto_index == UCP_RKEY_BASIC_PROTO) {
        rkey->cache.amo_rkey = ucp_opt_rkey_tl(rkey, cls->amo.rkey_index);
    }

    return 1;
}

void ucp_opt_rkey_resolved(ucp_ep_h ep, ucp_rkey_h rkey)
{
    if (ucp_opt_rkey_is_on(ep->worker)) {
        rkey->opt.cls = ucp_opt_rkey_class(ep, rkey);
    }
}
