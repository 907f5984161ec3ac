/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ucp_opt_compat.h"
#include "ucp_opt_rkey_class.h"

#include <ucp/core/ucp_context.h>
#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_rkey.inl>
#include <ucp/core/ucp_worker.h>
#include <ucp/proto/proto_common.h>
#include <ucp/proto/proto_multi.h>
#include <ucp/proto/proto_select.inl>
#include <ucp/proto/proto_single.h>
#include <ucp/rma/rma.h>
#include <ucs/debug/memtrack_int.h>


/* Protocols that do what ucp_opt_rma.inl and ucp_opt_amo.inl do themselves. */
extern ucp_proto_t ucp_put_offload_bcopy_proto, ucp_get_offload_bcopy_proto;
extern ucp_proto_t ucp_opt_amo_proto(post, 32), ucp_opt_amo_proto(post, 64);
extern ucp_proto_t ucp_opt_amo_proto(fetch, 32), ucp_opt_amo_proto(fetch, 64);
extern ucp_proto_t ucp_opt_amo_proto(cswap, 32), ucp_opt_amo_proto(cswap, 64);


static const ucp_opt_rkey_lane_t ucp_opt_rkey_no_lane = {
    .iface      = NULL,
    .lane       = UCP_NULL_LANE,
    .rkey_index = UCP_NULL_RESOURCE
};


static ucp_opt_rkey_lane_t
ucp_opt_rkey_lane(ucp_ep_h ep, ucp_lane_index_t lane, uint8_t rkey_index)
{
    ucp_rsc_index_t rsc_index  = ucp_ep_get_rsc_index(ep, lane);
    ucp_opt_rkey_lane_t result = {
        .iface      = ucp_worker_iface(ep->worker, rsc_index)->iface,
        .lane       = lane,
        .rkey_index = rkey_index
    };

    return result;
}

/* Which UCT key a lane takes, as ucp_rkey_find_rma_lane() finds it. If it has
 * found another one, the lane is not for us. */
static ucp_opt_rkey_lane_t
ucp_opt_rkey_lane_v1(ucp_ep_h ep, ucp_rkey_h rkey, ucp_lane_index_t lane,
                     uct_rkey_t found)
{
    const ucp_ep_config_t *config = ucp_ep_config(ep);
    ucp_md_index_t dst_md         = config->key.lanes[lane].dst_md_index;
    uint8_t rkey_index;

    if (found == UCT_INVALID_RKEY) {
        return ucp_opt_rkey_lane(ep, lane, UCP_NULL_RESOURCE);
    }

    if (!(rkey->md_map & UCS_BIT(dst_md))) {
        return ucp_opt_rkey_no_lane;
    }

    rkey_index = ucs_bitmap2idx(rkey->md_map, dst_md);
    return (ucp_opt_rkey_tl(rkey, rkey_index) == found) ?
           ucp_opt_rkey_lane(ep, lane, rkey_index) : ucp_opt_rkey_no_lane;
}

/* One kind of operations. */
static void
ucp_opt_rkey_class_init_lane_v1(ucp_opt_rkey_class_t *cls, ucp_ep_h ep,
                                ucp_rkey_h rkey, uint64_t features,
                                ucp_rkey_proto_index_t proto,
                                ucp_lane_index_t lane, uct_rkey_t found,
                                ucp_opt_rkey_lane_t *lane_p)
{
    if (proto == UCP_RKEY_BASIC_PROTO) {
        *lane_p           = ucp_opt_rkey_lane_v1(ep, rkey, lane, found);
        cls->is_resolved &= (lane_p->lane != UCP_NULL_LANE);
    } else if (ep->worker->context->config.features & features) {
        cls->has_sw       = 1;
        cls->is_resolved &= (lane != UCP_NULL_LANE) &&
                            (lane == ucp_ep_config(ep)->key.am_lane);
    }
}

/* Puts and gets, which have only version 2 of the protocols in UCX 1.22. */
static void
ucp_opt_rkey_class_init_rma_v1(ucp_opt_rkey_class_t *cls, ucp_ep_h ep,
                               ucp_rkey_h rkey)
{
#if UCP_OPT_HAS_RMA_V1
    const ucp_ep_rma_config_t *rma;

    ucp_opt_rkey_class_init_lane_v1(cls, ep, rkey, UCP_FEATURE_RMA,
                                    rkey->cache.rma_proto_index,
                                    rkey->cache.rma_lane,
                                    rkey->cache.rma_rkey, &cls->rma);
    if ((cls->rma.lane == UCP_NULL_LANE) ||
        !(ep->worker->context->config.features & UCP_FEATURE_RMA)) {
        return;
    }

    rma                = &ucp_ep_config(ep)->rma[cls->rma.lane];
    cls->max_put       = ucs_max(rma->max_put_short, 0);
    cls->max_get       = (rma->get_zcopy_thresh == 0) ? 0 :
                         ucs_min(rma->max_get_bcopy, rma->get_zcopy_thresh - 1);
    cls->max_put_bcopy = (rma->put_zcopy_thresh == 0) ? 0 :
                         ucs_min(rma->max_put_bcopy, rma->put_zcopy_thresh - 1);
#endif
}

static void ucp_opt_rkey_class_init_v1(ucp_opt_rkey_class_t *cls, ucp_ep_h ep,
                                       ucp_rkey_h rkey)
{
    uint64_t features = ep->worker->context->config.features;

    cls->resolved    = *rkey;
    cls->is_resolved = 1;
    ucp_opt_rkey_class_init_rma_v1(cls, ep, rkey);
    ucp_opt_rkey_class_init_lane_v1(cls, ep, rkey,
                                    UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64,
                                    rkey->cache.amo_proto_index,
                                    rkey->cache.amo_lane,
                                    rkey->cache.amo_rkey, &cls->amo);

    if ((cls->amo.lane != UCP_NULL_LANE) && (features & UCP_FEATURE_AMO32)) {
        cls->amos |= UCP_OPT_AMO_ALL(sizeof(uint32_t));
    }
    if ((cls->amo.lane != UCP_NULL_LANE) && (features & UCP_FEATURE_AMO64)) {
        cls->amos |= UCP_OPT_AMO_ALL(sizeof(uint64_t));
    }
}

/* What has been selected for an operation on host memory. */
static const ucp_proto_threshold_elem_t *
ucp_opt_rkey_select_v2(ucp_ep_h ep, ucp_rkey_h rkey, ucp_operation_id_t op_id,
                       size_t length)
{
    ucp_worker_h worker              = ep->worker;
    ucp_proto_select_param_t param;
    ucp_memory_info_t mem_info;

    ucp_opt_mem_info_set_host(&mem_info);
    if ((op_id == UCP_OP_ID_AMO_FETCH) || (op_id == UCP_OP_ID_AMO_CSWAP)) {
        ucp_opt_select_param_init_reply(&param, op_id, UCP_DATATYPE_CONTIG,
                                        &mem_info);
    } else {
        ucp_proto_select_param_init(&param, op_id, 0, 0, UCP_DATATYPE_CONTIG,
                                    &mem_info, 1);
    }

    return ucp_proto_select_lookup(worker,
                                   &ucp_rkey_config(worker, rkey)->proto_select,
                                   ep->cfg_index, rkey->cfg_index, &param,
                                   length);
}

/* How long an operation that is copied may be, if such a protocol has been
 * selected for a certain length; 0 if not. */
static size_t
ucp_opt_rkey_max_bcopy_v2(ucp_opt_rkey_class_t *cls, ucp_ep_h ep,
                          ucp_rkey_h rkey, ucp_operation_id_t op_id,
                          const ucp_proto_t *proto, size_t length)
{
    const ucp_proto_threshold_elem_t *thresh;
    const ucp_proto_multi_lane_priv_t *lpriv;
    const ucp_proto_multi_priv_t *mpriv;

    thresh = ucp_opt_rkey_select_v2(ep, rkey, op_id, length);
    if ((thresh == NULL) || (thresh->proto_config.proto != proto)) {
        return 0;
    }

    mpriv = thresh->proto_config.priv;
    lpriv = &mpriv->lanes[0];
    if ((mpriv->num_lanes != 1) || ucp_opt_proto_has_mem_flush(lpriv)) {
        return 0;
    }

    if (cls->rma.lane == UCP_NULL_LANE) {
        cls->rma = ucp_opt_rkey_lane(ep, lpriv->super.lane,
                                     lpriv->super.rkey_index);
    }

    if ((cls->rma.lane != lpriv->super.lane) ||
        (cls->rma.rkey_index != lpriv->super.rkey_index)) {
        return 0;
    }

    return ucs_min(thresh->max_msg_length, lpriv->max_frag);
}

static void ucp_opt_rkey_class_init_amo_v2(ucp_opt_rkey_class_t *cls,
                                           ucp_ep_h ep, ucp_rkey_h rkey)
{
    const struct {
        ucp_operation_id_t op_id;
        size_t             size;
        const ucp_proto_t  *proto;
        unsigned           bit;
    } ops[] = {
        {UCP_OP_ID_AMO_POST,  4, &ucp_opt_amo_proto(post, 32),
         UCP_OPT_AMO_BIT(0, 0, 4)},
        {UCP_OP_ID_AMO_POST,  8, &ucp_opt_amo_proto(post, 64),
         UCP_OPT_AMO_BIT(0, 0, 8)},
        {UCP_OP_ID_AMO_FETCH, 4, &ucp_opt_amo_proto(fetch, 32),
         UCP_OPT_AMO_BIT(1, 0, 4)},
        {UCP_OP_ID_AMO_FETCH, 8, &ucp_opt_amo_proto(fetch, 64),
         UCP_OPT_AMO_BIT(1, 0, 8)},
        {UCP_OP_ID_AMO_CSWAP, 4, &ucp_opt_amo_proto(cswap, 32),
         UCP_OPT_AMO_BIT(1, 1, 4)},
        {UCP_OP_ID_AMO_CSWAP, 8, &ucp_opt_amo_proto(cswap, 64),
         UCP_OPT_AMO_BIT(1, 1, 8)}
    };
    uint64_t features = ep->worker->context->config.features;
    const ucp_proto_threshold_elem_t *thresh;
    const ucp_proto_single_priv_t *spriv;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(ops); ++i) {
        if (!(features & ((ops[i].size == 4) ? UCP_FEATURE_AMO32 :
                                               UCP_FEATURE_AMO64))) {
            continue;
        }

        thresh = ucp_opt_rkey_select_v2(ep, rkey, ops[i].op_id, ops[i].size);
        if ((thresh == NULL) || (thresh->proto_config.proto != ops[i].proto)) {
            continue;
        }

        spriv = thresh->proto_config.priv;
        if (cls->amo.lane == UCP_NULL_LANE) {
            cls->amo = ucp_opt_rkey_lane(ep, spriv->super.lane,
                                         spriv->super.rkey_index);
        }

        if ((cls->amo.lane == spriv->super.lane) &&
            (cls->amo.rkey_index == spriv->super.rkey_index)) {
            cls->amos |= ops[i].bit;
        }
    }
}

static void ucp_opt_rkey_class_init_v2(ucp_opt_rkey_class_t *cls, ucp_ep_h ep,
                                       ucp_rkey_h rkey)
{
    ucp_context_h context           = ep->worker->context;
    const ucp_rkey_config_t *config = ucp_rkey_config(ep->worker, rkey);

    if (ucp_opt_ep_config_has_failover(ucp_ep_config(ep))) {
        return;
    }

    if ((config->put_short.lane != UCP_NULL_LANE) &&
        (config->put_short.max_length_unknown_mem > 0)) {
        /* Where the type of memory has to be detected first, that is -1. */
        cls->rma     = ucp_opt_rkey_lane(ep, config->put_short.lane,
                                         config->put_short.rkey_index);
        cls->max_put = config->put_short.max_length_unknown_mem;
    }

    if ((context->num_mem_type_detect_mds > 0) ||
        ucp_opt_has_progress_wrapper(context)) {
        return;
    }

    if (context->config.features & UCP_FEATURE_RMA) {
        cls->max_put_bcopy =
                ucp_opt_rkey_max_bcopy_v2(cls, ep, rkey, UCP_OP_ID_PUT,
                                          &ucp_put_offload_bcopy_proto,
                                          cls->max_put + 1);
        cls->max_get =
                ucp_opt_rkey_max_bcopy_v2(cls, ep, rkey, UCP_OP_ID_GET,
                                          &ucp_get_offload_bcopy_proto, 1);
    }
    ucp_opt_rkey_class_init_amo_v2(cls, ep, rkey);
}

static ucp_opt_rkey_class_t *
ucp_opt_rkey_class_find(ucp_worker_h worker, ucp_md_map_t md_map,
                        ucp_worker_cfg_index_t cfg_index, uint8_t mem_type)
{
    ucp_opt_rkey_class_t **link_p = &worker->opt_rkey_classes;
    ucp_opt_rkey_class_t *cls;

    for (; (cls = *link_p) != NULL; link_p = &cls->next) {
        if ((cls->md_map == md_map) && (cls->cfg_index == cfg_index) &&
            (cls->mem_type == mem_type)) {
            if (ucs_unlikely(cls != worker->opt_rkey_classes)) {
                *link_p                  = cls->next;
                cls->next                = worker->opt_rkey_classes;
                worker->opt_rkey_classes = cls;
            }
            return cls;
        }
    }

    return NULL;
}

const ucp_opt_rkey_class_t *ucp_opt_rkey_class_find_v1(ucp_ep_h ep,
                                                       ucp_rkey_h rkey)
{
    return ucp_opt_rkey_class_find(ep->worker, rkey->md_map, ep->cfg_index,
                                   rkey->mem_type);
}

const ucp_opt_rkey_class_t *ucp_opt_rkey_class(ucp_ep_h ep, ucp_rkey_h rkey)
{
    ucp_worker_h worker = ep->worker;
    int is_v2           = worker->context->config.ext.proto_enable;
    ucp_worker_cfg_index_t cfg_index = is_v2 ? rkey->cfg_index : ep->cfg_index;
    ucp_opt_rkey_class_t *cls;

    cls = ucp_opt_rkey_class_find(worker, rkey->md_map, cfg_index,
                                  rkey->mem_type);
    if (ucs_likely(cls != NULL)) {
        return cls;
    }

    cls = ucs_calloc(1, sizeof(*cls), "ucp_opt_rkey_class");
    if (cls == NULL) {
        /* It is an optimisation. */
        return NULL;
    }

    cls->md_map    = rkey->md_map;
    cls->cfg_index = cfg_index;
    cls->mem_type  = rkey->mem_type;
    cls->rma       = ucp_opt_rkey_no_lane;
    cls->amo       = ucp_opt_rkey_no_lane;

    if (is_v2) {
        cls->config_key   = ucp_rkey_config(worker, rkey)->key;
        cls->ep_cfg_index = cls->config_key.ep_cfg_index;
        ucp_opt_rkey_class_init_v2(cls, ep, rkey);
    } else {
        cls->ep_cfg_index = ep->cfg_index;
        ucp_opt_rkey_class_init_v1(cls, ep, rkey);
    }

    cls->amo_func            = (cls->amos != 0) ? ucp_opt_amo_ready :
                               is_v2            ? ucp_opt_amo_am_v2 :
                                                  ucp_opt_amo_am_v1;
    cls->next                = worker->opt_rkey_classes;
    worker->opt_rkey_classes = cls;
    return cls;
}

void ucp_opt_rkey_classes_cleanup(ucp_worker_h worker)
{
    ucp_opt_rkey_class_t *cls;

    while ((cls = worker->opt_rkey_classes) != NULL) {
        worker->opt_rkey_classes = cls->next;
        ucs_free(cls);
    }
}
