/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt.h"
#include "ucp_opt_compat.h"
#include "ucp_opt_eager.h"
#include "ucp_opt_rkey.h"

#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/core/ucp_worker.inl>
#include <ucp/proto/proto_common.h>
#include <ucp/proto/proto_select.inl>
#include <ucp/proto/proto_single.h>
#include <ucp/tag/eager.h>


/* Protocols that send in one piece: what the transport copies, and from
 * registered memory. */
extern ucp_proto_t ucp_eager_bcopy_single_proto;
extern ucp_proto_t ucp_am_eager_single_bcopy_proto;
extern ucp_proto_t ucp_eager_zcopy_single_proto;
extern ucp_proto_t ucp_am_eager_single_zcopy_proto;


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

/* How long messages may be for version 1 of the protocols to let the transport
 * copy them: as ucp_tag_send_req() and ucp_am_send_req() see it. */
static size_t
ucp_opt_eager_bcopy_limit_v1(const ucp_ep_msg_config_t *config,
                             const ucp_rndv_thresh_t *rma_thresh,
                             const ucp_rndv_thresh_t *am_thresh,
                             size_t hdr_size)
{
    size_t limit = ucs_min(rma_thresh->remote, am_thresh->remote);

    if (config->max_bcopy <= hdr_size) {
        return 0;
    }

    if ((config->max_zcopy != 0) && (config->max_iov > 1)) {
        limit = ucs_min(limit,
                        config->mem_type_zcopy_thresh[UCS_MEMORY_TYPE_HOST]);
    }

    return ucs_min(limit, config->max_bcopy - hdr_size + 1);
}

/* What version 2 has for messages of a length, if it is a protocol for single
 * pieces on the lane of active messages. */
static const ucp_proto_threshold_elem_t *
ucp_opt_eager_single(ucp_ep_h ep, ucp_operation_id_t op_id,
                     const ucp_proto_t *proto, size_t length)
{
    const ucp_proto_threshold_elem_t *thresh;
    const ucp_proto_single_priv_t *spriv;
    ucp_proto_select_param_t param;
    ucp_memory_info_t mem_info;

    ucp_opt_mem_info_set_host(&mem_info);
    ucp_proto_select_param_init(&param, op_id, 0, 0, UCP_DATATYPE_CONTIG,
                                &mem_info, 1);
    thresh = ucp_proto_select_lookup(ep->worker,
                                     &ucp_ep_config(ep)->proto_select,
                                     ep->cfg_index, UCP_WORKER_CFG_INDEX_NULL,
                                     &param, length);
    if ((thresh == NULL) || (thresh->proto_config.proto != proto)) {
        return NULL;
    }

    spriv = thresh->proto_config.priv;
    return (spriv->super.lane == ep->am_lane) ? thresh : NULL;
}

/* How long they may be for version 2, if messages that are a bit too long to be
 * short have such a protocol. */
static size_t
ucp_opt_eager_bcopy_limit_v2(ucp_ep_h ep, ucp_operation_id_t op_id,
                             const ucp_proto_t *proto, size_t length)
{
    const ucp_proto_threshold_elem_t *thresh;

    thresh = ucp_opt_eager_single(ep, op_id, proto, length);
    return (thresh == NULL) ? 0 :
           ucs_min(thresh->max_msg_length, SIZE_MAX - 1) + 1;
}

/* Whether the transport can send from memory registered for its lane. */
static int ucp_opt_eager_has_zcopy(ucp_ep_h ep)
{
    ucp_context_h context   = ep->worker->context;
    ucp_md_index_t md_index = ucp_ep_md_index(ep, ep->am_lane);

    return (ucp_opt_md_flags(ucp_ep_md_attr(ep, ep->am_lane)) &
            UCT_MD_FLAG_NEED_MEMH) &&
           (context->reg_md_map[UCS_MEMORY_TYPE_HOST] & UCS_BIT(md_index));
}

/* What version 1 has for messages that are neither short nor copied: as
 * ucp_request_send_start() sees it. */
static void
ucp_opt_eager_zcopy_v1(ucp_ep_h ep, ucp_opt_eager_zcopy_t *zcopy,
                       const ucp_ep_msg_config_t *config,
                       const ucp_rndv_thresh_t *rma_thresh,
                       const ucp_rndv_thresh_t *am_thresh,
                       uct_pending_callback_t func, size_t hdr_size,
                       size_t not_longer)
{
    size_t limit = ucs_min(rma_thresh->remote, am_thresh->remote);

    /* Longer than what is copied in one piece, they might be in several */
    if ((config->max_zcopy <= hdr_size) || (config->max_iov <= 1) ||
        (config->mem_type_zcopy_thresh[UCS_MEMORY_TYPE_HOST] > not_longer) ||
        (limit == 0) || !ucp_opt_eager_has_zcopy(ep)) {
        return;
    }

    zcopy->proto.func = func;
    zcopy->max_length = ucs_min(limit - 1, config->max_zcopy - hdr_size);
}

/* The same for version 2. */
static void
ucp_opt_eager_zcopy_v2(ucp_ep_h ep, ucp_opt_eager_zcopy_t *zcopy,
                       ucp_operation_id_t op_id, const ucp_proto_t *proto,
                       size_t not_longer)
{
    const ucp_proto_threshold_elem_t *thresh;

    if (!ucp_opt_eager_has_zcopy(ep)) {
        return;
    }

    thresh = ucp_opt_eager_single(ep, op_id, proto, not_longer);
    if (thresh != NULL) {
        zcopy->proto.config = &thresh->proto_config;
        zcopy->max_length   = thresh->max_msg_length;
    }
}

static void ucp_opt_eager_prepare_v1(ucp_ep_h ep, ucp_ep_config_t *config)
{
    const ucp_rndv_thresh_t *rma_thresh = &config->tag.rndv.rma_thresh;
    const ucp_rndv_thresh_t *am_thresh  = &config->tag.rndv.am_thresh;
    ucp_opt_eager_t *opt                = &ep->opt_eager;
    uint64_t features                   = ep->worker->context->config.features;

    if ((features & UCP_FEATURE_TAG) &&
        (config->tag.proto == &ucp_tag_eager_proto)) {
        opt->tag_bcopy = ucp_opt_eager_bcopy_limit_v1(
                &config->tag.eager, rma_thresh, am_thresh,
                sizeof(ucp_eager_hdr_t));
        ucp_opt_eager_zcopy_v1(ep, &opt->tag_zcopy, &config->tag.eager,
                               rma_thresh, am_thresh,
                               config->tag.proto->zcopy_single,
                               sizeof(ucp_eager_hdr_t),
                               ucs_max(opt->tag_bcopy, opt->tag_limit));
    }

    if (features & UCP_FEATURE_AM) {
        rma_thresh    = &config->rndv.rma_thresh;
        am_thresh     = &config->rndv.am_thresh;
        opt->am_bcopy = ucp_opt_eager_bcopy_limit_v1(&config->am, rma_thresh,
                                                     am_thresh,
                                                     sizeof(ucp_am_hdr_t));
        /* Since 1.22, version 1 has short ones only where a list of four
         * buffers can be sent, of which ours need none */
        if ((opt->am_limit == 0) && (config->am.max_short >= 0)) {
            opt->am_limit = ucs_min((size_t)config->am.max_short + 1,
                                    opt->am_bcopy);
        }
        ucp_opt_eager_zcopy_v1(ep, &opt->am_zcopy, &config->am, rma_thresh,
                               am_thresh, config->am_u.proto->zcopy_single,
                               sizeof(ucp_am_hdr_t),
                               ucs_max(opt->am_bcopy, opt->am_limit));
    }
}

static void ucp_opt_eager_prepare_v2(ucp_ep_h ep)
{
    ucp_opt_eager_t *opt = &ep->opt_eager;
    uint64_t features    = ep->worker->context->config.features;

    if (features & UCP_FEATURE_TAG) {
        opt->tag_bcopy = ucp_opt_eager_bcopy_limit_v2(
                ep, UCP_OP_ID_TAG_SEND, &ucp_eager_bcopy_single_proto,
                opt->tag_limit + 1);
        ucp_opt_eager_zcopy_v2(ep, &opt->tag_zcopy, UCP_OP_ID_TAG_SEND,
                               &ucp_eager_zcopy_single_proto,
                               ucs_max(opt->tag_bcopy, opt->tag_limit));
    }

    if (features & UCP_FEATURE_AM) {
        opt->am_bcopy = ucp_opt_eager_bcopy_limit_v2(
                ep, UCP_OP_ID_AM_SEND, &ucp_am_eager_single_bcopy_proto,
                opt->am_limit + 1);
        ucp_opt_eager_zcopy_v2(ep, &opt->am_zcopy, UCP_OP_ID_AM_SEND,
                               &ucp_am_eager_single_zcopy_proto,
                               ucs_max(opt->am_bcopy, opt->am_limit));
    }
}

static void ucp_opt_eager_prepare_long(ucp_ep_h ep)
{
    ucp_context_h context   = ep->worker->context;
    ucp_ep_config_t *config = ucp_ep_config(ep);

    if ((context->num_mem_type_detect_mds > 0) ||
        ucp_opt_has_progress_wrapper(context) ||
        ucp_opt_ep_config_has_failover(config)) {
        return;
    }

    ep->opt_eager.is_v2    = context->config.ext.proto_enable;
    ep->opt_eager.md_index = ucp_ep_md_index(ep, ep->am_lane);
    if (context->config.ext.proto_enable) {
        ucp_opt_eager_prepare_v2(ep);
    } else {
        ucp_opt_eager_prepare_v1(ep, config);
    }
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
    opt->is_ready  = 1;
    ucp_opt_eager_prepare_long(ep);

    /* If the lanes change in asynchronous context, either this is seen here or
     * the limits are taken away after they have been set. */
    __sync_synchronize();
    if (ucs_unlikely(*(volatile uint64_t*)&ep->opt_state != state)) {
        opt->tag_limit = 0;
        opt->am_limit  = 0;
        opt->tag_bcopy = 0;
        opt->am_bcopy  = 0;
        opt->tag_zcopy.max_length = 0;
        opt->am_zcopy.max_length  = 0;
        opt->is_ready  = 0;
    }
}

int ucp_opt_eager_is_current(ucp_ep_h ep)
{
    return (ep->am_lane != UCP_NULL_LANE) &&
           (ucp_ep_get_am_uct_ep(ep) == ep->opt_eager.uct_ep);
}
