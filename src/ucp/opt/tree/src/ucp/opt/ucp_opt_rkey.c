/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_rkey.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_proxy_ep.h>
#include <ucp/core/ucp_rkey.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/rma/rma.h>
#include <ucs/datastruct/hlist.h>


/* Where a small put goes. */
typedef struct {
    ucp_lane_index_t lane;
    uct_rkey_t       rkey;
    ssize_t          max; /* no more than 0 if there is no such put */
} ucp_opt_put_t;


static void ucp_opt_put_select_v1(ucp_ep_h ep, ucp_rkey_h rkey,
                                  ucp_opt_put_t *put_p)
{
    if ((rkey->cache.ep_cfg_index == ep->cfg_index) &&
        (rkey->cache.rma_lane != UCP_NULL_LANE) &&
        (rkey->cache.rma_proto_index == UCP_RKEY_BASIC_PROTO)) {
        put_p->lane = rkey->cache.rma_lane;
        put_p->rkey = rkey->cache.rma_rkey;
        put_p->max  = ucp_ep_config(ep)->rma[put_p->lane].max_put_short;
    }
}

static void ucp_opt_put_select_v2(ucp_ep_h ep, ucp_rkey_h rkey,
                                  ucp_opt_put_t *put_p)
{
    const ucp_rkey_config_t *config = ucp_rkey_config(ep->worker, rkey);

    if ((config->key.ep_cfg_index == ep->cfg_index) &&
        (config->put_short.lane != UCP_NULL_LANE)) {
        put_p->lane = config->put_short.lane;
        put_p->rkey = ucp_rkey_get_tl_rkey(rkey, config->put_short.rkey_index);
        /* Where the type of memory has to be detected first, this is -1. */
        put_p->max  = config->put_short.max_length_unknown_mem;
    }
}

void ucp_opt_rkey_prepare(ucp_ep_h ep, ucp_rkey_h rkey)
{
    ucp_context_h context = ep->worker->context;
    ucp_opt_rkey_t *opt   = &rkey->opt;
    ucp_opt_put_t put     = {.max = 0};
    uct_ep_h uct_ep;

    if (opt->ep != NULL) {
        return;
    }

    if (!(context->opt & UCP_OPT_RKEY) ||
        (ep->worker->flags & UCP_WORKER_FLAG_THREAD_MULTI)) {
        opt->ep = UCP_OPT_RKEY_NEVER;
        return;
    }

    if (context->config.ext.proto_enable) {
        ucp_opt_put_select_v2(ep, rkey, &put);
    } else {
        ucp_opt_put_select_v1(ep, rkey, &put);
    }

    if (put.max <= 0) {
        return;
    }

    UCS_ASYNC_BLOCK(&ep->worker->async);
    /* A lane that is being connected is about to be replaced. */
    uct_ep = ep->uct_eps[put.lane];
    if ((uct_ep != NULL) && !ucp_proxy_ep_test(uct_ep) &&
        !(ep->flags & UCP_EP_FLAG_FAILED)) {
        opt->max_put   = put.max;
        opt->put_ep    = uct_ep;
        opt->put_short = uct_ep->iface->ops.ep_put_short;
        opt->put_rkey  = put.rkey;
        opt->ep        = ep;
        ucs_hlist_add_tail(&ucp_ep_ext_control(ep)->opt_rkeys, &opt->list);
    }
    UCS_ASYNC_UNBLOCK(&ep->worker->async);
}

int ucp_opt_rkey_is_current(ucp_rkey_h rkey)
{
    ucp_ep_h ep = rkey->opt.ep;
    ucp_lane_index_t lane;

    for (lane = 0; lane < ucp_ep_num_lanes(ep); ++lane) {
        if (ep->uct_eps[lane] == rkey->opt.put_ep) {
            return 1;
        }
    }

    return 0;
}

void ucp_opt_rkey_forget(ucp_rkey_h rkey)
{
    ucp_ep_h ep = rkey->opt.ep;

    if ((ep == NULL) || (ep == UCP_OPT_RKEY_NEVER)) {
        return;
    }

    UCS_ASYNC_BLOCK(&ep->worker->async);
    /* It may have been taken off meanwhile. */
    if (rkey->opt.ep != NULL) {
        ucs_hlist_del(&ucp_ep_ext_control(ep)->opt_rkeys, &rkey->opt.list);
        rkey->opt.ep = NULL;
    }
    UCS_ASYNC_UNBLOCK(&ep->worker->async);
}

void ucp_opt_ep_lanes_changed(ucp_ep_h ep)
{
    ucp_opt_rkey_t *opt;

    UCS_ASYNC_BLOCK(&ep->worker->async);
    ucs_hlist_for_each_extract(opt, &ucp_ep_ext_control(ep)->opt_rkeys, list) {
        opt->ep = NULL;
    }
    UCS_ASYNC_UNBLOCK(&ep->worker->async);
}
