/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/open/sep_iface_open.h>
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/eager/sep_eager_stats.h>
#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/ep/sep_link.h>
#include <uct/ib/sep/iface/sep_bufs.h>
#include <uct/ib/sep/iface/sep_config.h>
#include <uct/ib/sep/iface/sep_credits.h>
#include <uct/ib/sep/iface/sep_event.h>
#include <uct/ib/sep/iface/sep_postlist.h>
#include <uct/ib/sep/iface/sep_stack.h>
#include <uct/ib/sep/open/sep_api_dv.h>
#include <uct/ib/sep/open/sep_open.h>
#include <uct/ib/sep/open/sep_select.h>
#include <uct/ib/sep/port/sep_path.h>
#include <uct/ib/sep/progress/sep_progress.h>
#include <uct/ib/sep/verbs/sep_verbs.h>

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>


/* Software overhead of an operation; less than half of that of rc_mlx5 */
#define UCT_SEP_OVERHEAD       20e-9


/* Decides between otherwise equal transports; higher than any of UCX's */
#define UCT_SEP_PRIORITY       60


static const uct_sep_api_t *uct_sep_iface_apis[] = {
    [UCT_SEP_API_DV]    = &uct_sep_api_dv,
    [UCT_SEP_API_VERBS] = &uct_sep_api_verbs,
    [UCT_SEP_API_WR]    = &uct_sep_api_wr
};


static ucs_status_t
uct_sep_iface_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    uct_sep_iface_t *iface      = ucs_derived_of(tl_iface, uct_sep_iface_t);
    const uct_sep_md_t *md      = uct_sep_iface_md(iface);
    const uct_sep_device_t *dev = &md->dev;
    const uct_sep_ops_t *tx_ops = iface->tx.ops;
    size_t max_zcopy            = uct_sep_config_max_zcopy(iface);
    size_t mtu                  = 128ul << iface->config.path_mtu;
    size_t am_max               = uct_sep_config_max_am(
                                          iface->config.seg_size -
                                          sizeof(uct_sep_am_hdr_t));

    uct_sep_compat_iface_query(&iface->super, attr);

    attr->dev_num_paths   = iface->port.addr.num_paths;
    attr->device_addr_len = sizeof(uct_sep_device_addr_t);
    attr->iface_addr_len  = sizeof(uct_sep_iface_addr_t);
    attr->ep_addr_len     = 0;

    attr->cap.flags       = tx_ops->cap_flags | dev->atomic_cap |
                            UCT_SEP_COMPAT_FLAG_INTER_NODE |
                            UCT_IFACE_FLAG_PENDING |
                            UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                            UCT_IFACE_FLAG_CB_SYNC |
                            UCT_IFACE_FLAG_EP_CHECK |
                            UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                            UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                            UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM;
    if (!uct_sep_eager_is_enabled(iface)) {
        /* A message in a ring is a write, and may overtake another one */
        attr->cap.flags  |= UCT_SEP_COMPAT_FLAG_PUT_AM_ORDER;
    }
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD;

    attr->cap.put.max_short       = ucs_min(tx_ops->put_max_inl,
                                            iface->config.tx_max_inline);
    attr->cap.put.max_bcopy       = iface->config.seg_size;
    attr->cap.put.min_zcopy       = 0;
    attr->cap.put.max_zcopy       = max_zcopy;
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;
    attr->cap.put.max_iov         = tx_ops->rma_max_iov;

    attr->cap.get.max_bcopy       = iface->config.seg_size;
    attr->cap.get.min_zcopy       = uct_sep_iface_min_get_zcopy(iface);
    attr->cap.get.max_zcopy       = iface->config.max_get_zcopy;
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;
    attr->cap.get.max_iov         = tx_ops->rma_max_iov;

    attr->cap.am.max_short        = ucs_min(tx_ops->am_max_inl -
                                            sizeof(uct_sep_am_hdr_t),
                                            iface->config.tx_max_inline);
    attr->cap.am.max_bcopy        = am_max;
    attr->cap.am.min_zcopy        = 0;
    attr->cap.am.max_zcopy        = am_max;
    attr->cap.am.max_hdr          = UCT_SEP_AM_ZCOPY_MAX_HDR;
    attr->cap.am.opt_zcopy_align  = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu        = mtu;
    attr->cap.am.max_iov          = UCT_SEP_AM_MAX_IOV;

    attr->cap.atomic32.op_flags   = dev->atomic32.op_flags &
                                    tx_ops->atomic32;
    attr->cap.atomic32.fop_flags  = dev->atomic32.fop_flags &
                                    tx_ops->atomic32;
    attr->cap.atomic64.op_flags   = dev->atomic64.op_flags &
                                    tx_ops->atomic64;
    attr->cap.atomic64.fop_flags  = dev->atomic64.fop_flags &
                                    tx_ops->atomic64;

    uct_sep_open_drop_unusable(attr);

    attr->latency             = ucs_linear_func_make(iface->port.latency +
                                                     md->far_latency, 0);
    attr->bandwidth.shared    = ucs_min(iface->port.bandwidth, md->pci_bw);
    attr->bandwidth.dedicated = 0;
    attr->overhead            = UCT_SEP_OVERHEAD;
    attr->priority            = UCT_SEP_PRIORITY;
    return UCS_OK;
}

static ucs_status_t uct_sep_iface_get_device_address(uct_iface_h tl_iface,
                                                     uct_device_addr_t *addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    uct_sep_cm_get_device_address(iface->conn.cm, (void*)addr);
    return UCS_OK;
}

static ucs_status_t
uct_sep_iface_get_address(uct_iface_h tl_iface, uct_iface_addr_t *addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    uct_sep_cm_get_address(iface->conn.cm, (void*)addr);
    return UCS_OK;
}

static int uct_sep_iface_check_kind(uct_iface_h tl_iface,
                                    const uct_iface_addr_t *iface_addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    return uct_sep_addr_check_kind(iface->port.name, 0, iface_addr);
}

static int uct_sep_iface_is_reachable(const uct_iface_h tl_iface,
                                      const uct_device_addr_t *dev_addr,
                                      const uct_iface_addr_t *iface_addr)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    return ((iface_addr == NULL) ||
            uct_sep_iface_check_kind(tl_iface, iface_addr)) &&
           uct_sep_cm_is_reachable(iface->conn.cm, dev_addr, iface_addr);
}

double uct_sep_iface_path_ratio(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    return uct_sep_path_ratio(&iface->port);
}

static void
uct_sep_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);

    if (flags & UCT_PROGRESS_RECV) {
        /* May be called from the async thread, but has an effect only once, and
         * never while the main thread progresses what this enables */
        uct_sep_compat_async_block(iface->super.worker->async);
        uct_sep_srq_fill(&iface->srq, iface->config.rx_queue_fill);
        uct_sep_compat_async_unblock(iface->super.worker->async);
    }

    uct_base_iface_progress_enable(tl_iface, flags);
}

/* All has completed, but relaxed writes may still be on a peer's PCIe */
static void uct_sep_iface_order_puts(uct_sep_iface_t *iface)
{
    uct_sep_txwq_t *txwq;

    if (iface->config.has_fence && uct_sep_rkey_is_order_relaxed()) {
        ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
            uct_sep_txwq_set_strict(txwq);
        }
    }
}

ucs_status_t uct_sep_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                 uct_completion_t *comp)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    unsigned count         = 0;
    uct_sep_txwq_t *txwq;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_sep_postlist_ring_any(iface);

    if (iface->tx.cq_credits < 0) {
        uct_sep_credits_stall(iface);
    }

    ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
        if (!uct_sep_txwq_is_empty(txwq)) {
            ++count;
            if (uct_sep_txwq_has_credits(txwq) && (iface->tx.cq_credits >= 0)) {
                uct_sep_credits_signal_last(iface, txwq);
            }
        }
    }

    if ((count > 0) || (iface->conn.num_pending > 0)) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
        return UCS_INPROGRESS;
    }

    uct_sep_iface_order_puts(iface);
    UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    return UCS_OK;
}

ucs_status_t uct_sep_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_txwq_t *txwq;

    uct_sep_postlist_ring_any(iface);
    if (iface->config.has_fence) {
        ucs_list_for_each(txwq, &iface->conn.active, conn.list) {
            uct_sep_txwq_set_fence(txwq);
        }
    }

    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}

/*
 * Init and cleanup
 */

static ucs_status_t
uct_sep_iface_init_cq(uct_sep_iface_t *iface,
                      const uct_sep_iface_config_t *config)
{
    uct_sep_md_t *md = uct_sep_iface_md(iface);
    unsigned tx_len  = config->tx.cq_len + UCT_SEP_CQ_HEADROOM;
    int is_shared    = config->cq_sharing > 1;
    int is_own       = iface->channel.own != NULL;
    ucs_status_t status;

    uct_sep_cq_member_init_none(&iface->cq_member);
    uct_sep_cq_init_none(&iface->own_cq);
    status = uct_sep_cq_init(&iface->cq, md->dev.context,
                             config->rx.queue_len +
                             ((is_shared || is_own) ? UCT_SEP_CQ_HEADROOM :
                                                      tx_len),
                             uct_sep_rx_mode_stride(iface->config.rx_mode),
                             iface->api->cq_create, iface->port.name);
    if (status != UCS_OK) {
        return status;
    }

    if (is_shared) {
        status = uct_sep_cq_member_init(&iface->cq_member, md,
                                        iface->channel.pd->context,
                                        config->cq_sharing, tx_len,
                                        iface->port.name);
    } else if (is_own) {
        status = uct_sep_cq_init(&iface->own_cq, iface->channel.own->context,
                                 tx_len, UCT_SEP_CQ_STRIDE_64,
                                 iface->api->cq_create, iface->port.name);
    }
    if (status != UCS_OK) {
        uct_sep_cq_cleanup(&iface->cq);
    }

    return status;
}

static void uct_sep_iface_cleanup_cq(uct_sep_iface_t *iface)
{
    if (uct_sep_iface_shares_cq(iface)) {
        uct_sep_cq_member_cleanup(&iface->cq_member, uct_sep_iface_md(iface));
    }
    if (iface->own_cq.cq != NULL) {
        uct_sep_cq_cleanup(&iface->own_cq);
    }
    uct_sep_cq_cleanup(&iface->cq);
}

static ucs_status_t
uct_sep_iface_init_cm(uct_sep_iface_t *iface,
                      const uct_sep_iface_config_t *config)
{
    uct_sep_cm_params_t params = {};

    params.ibv_context  = iface->channel.cm_pd->context;
    params.pd           = (iface->channel.own != NULL) ?
                          iface->channel.own->pd : uct_sep_iface_md(iface)->pd;
    params.qp_pd        = iface->channel.cm_pd;
    params.uuars        = iface->channel.uuars;
    params.uuar_use     = iface->channel.cm_use;
    params.addr_flags   = (iface->channel.own != NULL) ?
                          UCT_SEP_IFACE_ADDR_FLAG_SPLIT : 0;
    params.port         = iface->port.addr;
    params.pkey_index   = iface->port.pkey_index;
    params.async        = iface->super.worker->async;
    params.ops          = &uct_sep_link_cm_ops;
    params.arg          = iface;
    params.timeout      = config->cm.timeout;
    params.retry_count  = config->cm.retry_count;
    params.rx_queue_len = config->cm.rx_queue_len;
    params.max_half_open = config->cm.max_pending;
    params.keepalive    = config->cm.keepalive;
    params.name         = iface->port.name;

    return uct_sep_link_open(iface, &params);
}

/* All connections go; their outstanding operations are cancelled */
static void uct_sep_iface_cleanup_cm(uct_sep_iface_t *iface)
{
    uct_sep_postlist_ring_any(iface);
    uct_sep_link_close(iface);
    uct_sep_event_cleanup(iface);
}

static UCS_CLASS_DECLARE_DELETE_FUNC(uct_sep_iface_t, uct_iface_t);

/* Operations that do not depend on how work requests are posted */
static uct_iface_ops_t uct_sep_iface_ops = {
    UCT_SEP_OPS_COMMON,
    .ep_pending_add           = uct_sep_ep_pending_add,
    .ep_pending_purge         = uct_sep_ep_pending_purge,
    .ep_flush                 = uct_sep_ep_flush,
    .ep_fence                 = uct_sep_ep_fence,
    .ep_check                 = uct_sep_ep_check,
    .ep_create                = uct_sep_ep_create,
    .ep_destroy               = uct_sep_ep_destroy,
    .iface_flush              = uct_sep_iface_flush,
    .iface_fence              = uct_sep_iface_fence,
    .iface_progress_enable    = uct_sep_iface_progress_enable,
    .iface_progress           = uct_sep_progress_buf, /* Until another one is
                                                         chosen */
    .iface_event_fd_get       = uct_sep_event_fd_get,
    .iface_event_arm          = uct_sep_progress_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_sep_iface_t),
    .iface_query              = uct_sep_iface_query,
    .iface_get_device_address = uct_sep_iface_get_device_address,
    .iface_get_address        = uct_sep_iface_get_address,
    .iface_is_reachable       = uct_sep_iface_is_reachable
};

void uct_sep_iface_show(uct_sep_iface_t *iface, uct_iface_h tl_iface)
{
    uct_sep_eager_stats_vfs_init(iface, tl_iface);
    if (iface->throttle.dev != NULL) {
        ucs_vfs_obj_add_ro_file(tl_iface, ucs_vfs_show_primitive,
                                &iface->throttle.held, UCS_VFS_TYPE_I32,
                                "throttle/withheld");
    }
}

static void uct_sep_iface_vfs_refresh(uct_iface_h tl_iface)
{
    uct_sep_iface_show(ucs_derived_of(tl_iface, uct_sep_iface_t), tl_iface);
}

static const uct_sep_compat_iface_ops_t uct_sep_iface_compat_ops = {
    .check_kind      = uct_sep_iface_check_kind,
    .ep_is_connected = uct_sep_ep_is_connected,
    .path_ratio      = uct_sep_iface_path_ratio,
    .vfs_refresh     = uct_sep_iface_vfs_refresh
};

UCT_SEP_COMPAT_INTERNAL_OPS(uct_sep_iface_internal_ops,
                            &uct_sep_iface_compat_ops);

UCS_CLASS_INIT_FUNC(uct_sep_iface_t, uct_md_h tl_md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_sep_iface_config_t *config = ucs_derived_of(tl_config,
                                                     uct_sep_iface_config_t);
    uct_sep_md_t *md                     = ucs_derived_of(tl_md, uct_sep_md_t);
    ucs_status_t status;
    unsigned port_num;

    status = uct_sep_open_check(params);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_sep_iface_ops,
                              &uct_sep_iface_internal_ops, tl_md, worker,
                              params, tl_config UCS_STATS_ARG(
                                      (params->field_mask &
                                       UCT_IFACE_PARAM_FIELD_STATS_ROOT) ?
                                      params->stats_root : NULL)
                              UCS_STATS_ARG(params->mode.device.dev_name));

    port_num = uct_sep_device_find_port(&md->dev, params->mode.device.dev_name);
    if (port_num == 0) {
        ucs_error("%s is not a port of device %s, which has %u",
                  params->mode.device.dev_name, md->dev.name,
                  md->dev.attr.orig_attr.phys_port_cnt);
        status = UCS_ERR_NO_DEVICE;
        goto err;
    }

    status = uct_sep_port_open(&md->dev, md->pd, port_num, &config->port,
                               &self->port);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_sep_config_apply(self, config);
    if (status != UCS_OK) {
        goto err;
    }

    self->api = uct_sep_iface_apis[config->api];
    status    = self->api->init(self, config);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_sep_qp_table_init(&self->qps);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the table of queue pairs",
                  self->port.name);
        goto err_cleanup_api;
    }

    status = uct_sep_channel_init(&self->channel, md, config->category,
                                  self->port.name);
    if (status != UCS_OK) {
        goto err_cleanup_qps;
    }

    if ((config->api != UCT_SEP_API_DV) &&
        (self->channel.use == UCT_SEP_UUAR_DRIVER) &&
        uct_sep_td_common_is_lent(md)) {
        /* There is no page for a queue pair, and libmlx5 does not lock that of
         * another worker: connections would fail */
        ucs_error("%s: the device or the process has no UAR page left for a "
                  "worker with UCX_SEP_API=%s: use fewer workers, or "
                  "UCX_SEP_API=dv", self->port.name, self->api->name);
        status = UCS_ERR_NO_RESOURCE;
        goto err_cleanup_channel;
    }

    /* Queue pairs will tell if one has no BlueFlame, or a shared uUAR */
    uct_sep_select_ops(self, config->tx.post,
                       self->channel.use == UCT_SEP_UUAR_DRIVER);

    uct_sep_config_apply_inline(self, config);
    status = uct_sep_iface_init_cq(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_channel;
    }
    uct_sep_stack_init(self);
    uct_sep_stack_set(self, UCT_SEP_STACK_POLL, self->api->progress(self));
    uct_sep_eager_init(self, uct_sep_progress_eager);
    uct_sep_link_init(self);
    uct_sep_event_init(self);

    status = uct_sep_bufs_init_tx(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_cq;
    }

    status = uct_sep_bufs_init_rx(self, params, config);
    if (status != UCS_OK) {
        goto err_cleanup_tx;
    }

    status = uct_sep_iface_init_cm(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_rx;
    }

    status = uct_sep_progress_throttle_init(self);
    if (status != UCS_OK) {
        goto err_cleanup_cm;
    }

    if (self->config.postlist > 1) {
        uct_sep_stack_set(self, UCT_SEP_STACK_LISTS, uct_sep_postlist_progress);
    }

    ucs_debug("%s: opened interface %p, category %s, lid %u, path MTU %u",
              self->port.name, (void*)self,
              uct_sep_category_names[self->channel.category],
              self->port.addr.lid, 128u << self->config.path_mtu);
    return UCS_OK;

err_cleanup_cm:
    uct_sep_iface_cleanup_cm(self);
err_cleanup_rx:
    uct_sep_bufs_cleanup_rx(self);
err_cleanup_tx:
    uct_sep_bufs_cleanup_tx(self);
err_cleanup_cq:
    uct_sep_iface_cleanup_cq(self);
err_cleanup_channel:
    uct_sep_channel_cleanup(&self->channel, md);
err_cleanup_qps:
    uct_sep_qp_table_cleanup(&self->qps);
err_cleanup_api:
    self->api->cleanup(self);
err:
    return status;
}

static UCS_CLASS_CLEANUP_FUNC(uct_sep_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_sep_progress_throttle_cleanup(self);
    uct_sep_iface_cleanup_cm(self);
    uct_sep_eager_cleanup(self);
    uct_sep_bufs_cleanup_rx(self);
    uct_sep_bufs_cleanup_tx(self);
    uct_sep_iface_cleanup_cq(self);
    uct_sep_channel_cleanup(&self->channel, uct_sep_iface_md(self));
    uct_sep_qp_table_cleanup(&self->qps);
    self->api->cleanup(self);
}

UCS_CLASS_DEFINE(uct_sep_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_sep_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_sep_iface_t, uct_iface_t);

ucs_status_t uct_sep_iface_open(uct_md_h md, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                const uct_iface_config_t *config,
                                uct_iface_h *iface_p)
{
    return UCS_CLASS_NEW_FUNC_NAME(uct_sep_iface_t)(md, worker, params, config,
                                                    iface_p);
}
