/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/hub/sep_hub.h>
#include <uct/ib/sep/eager/sep_eager.h>
#include <uct/ib/sep/hub/sep_hub_ep.h>
#include <uct/ib/sep/iface/sep_pool.h>
#include <uct/ib/sep/open/sep_iface_open.h>
#include <uct/ib/sep/port/sep_addr_rdmacm.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>


/* The user's data is behind the route, and the user's headroom needs room for a
 * pointer in front of it, by which UCT releases the buffer */
#define UCT_SEP_HUB_HEADROOM(_user_headroom) \
    ucs_align_up_pow2(sizeof(uct_sep_hub_msg_t) + sizeof(uct_recv_desc_t*) + \
                      (_user_headroom), sizeof(uint64_t))

/* Least alignment of data behind the route with align_offset added, and of what
 * is in front of the headroom */
#define UCT_SEP_HUB_ALIGNMENT   sizeof(uint64_t)

/* All hubs of the process, few */
static uct_sep_hub_list_mutex_t uct_sep_hub_list_lock =
        UCT_SEP_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(uct_sep_hub_list);

/* Room for a setting, as text */
#define UCT_SEP_HUB_MAX_VALUE   1024

/* Number of interfaces that a route can address */
#define UCT_SEP_HUB_MAX_IFACES  (UINT16_MAX + 1)


KHASH_IMPL(uct_sep_hub_peers, const uct_sep_peer_addr_t*, uct_sep_hub_peer_t*,
           1, uct_sep_peer_addr_hash, uct_sep_peer_addr_equal)

/*
 * Called by the core
 */

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_am_handler(void *arg, void *data, size_t length, unsigned flags)
{
    const uct_sep_hub_am_t *am       = arg;
    uct_sep_hub_t *hub               = am->hub;
    const uct_sep_hub_route_t *route = data;
    uct_sep_hub_iface_t *iface       = NULL;
    uct_sep_hub_msg_t *msg;
    unsigned index;

    ucs_assert(flags & UCT_CB_PARAM_FLAG_DESC);

    if (ucs_unlikely(length < sizeof(*route))) {
        ucs_diag("%s: dropped a message without a route", hub->dev_name);
        return UCS_OK;
    }

    index = be16toh(route->worker);
    if (index < hub->num_ifaces) {
        iface = hub->ifaces[index];
    }

    if (ucs_unlikely(iface == NULL)) {
        ucs_debug("%s: dropped a message for worker %u, which has gone",
                  hub->dev_name, index);
        return UCS_OK;
    }

    msg         = UCS_PTR_BYTE_OFFSET(data, -(ptrdiff_t)hub->headroom);
    msg->length = length - sizeof(*route);
    msg->am_id  = am->am_id;
    ucs_queue_push(&iface->mail.messages, &msg->queue);
    uct_sep_hub_mail_notify(iface);
    return UCS_INPROGRESS;
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_err_handler(void *arg, uct_ep_h tl_ep, ucs_status_t status)
{
    uct_sep_hub_t *hub = arg;
    uct_sep_ep_t *ep   = ucs_derived_of(tl_ep, uct_sep_ep_t);
    uct_sep_hub_peer_t *peer;

    kh_foreach_value(&hub->peers, peer, {
        if (peer->ep == ep) {
            uct_sep_hub_peer_fail(hub, peer, status, 1);
            return UCS_OK;
        }
    })

    return UCS_OK;
}

/* Waiting endpoints have something to do */
static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_peer_wake(uct_sep_hub_peer_t *peer)
{
    uct_sep_hub_iface_t *iface;
    uct_sep_hub_ep_t *ep;

    while (!ucs_list_is_empty(&peer->waiters)) {
        ep    = ucs_list_extract_head(&peer->waiters, uct_sep_hub_ep_t,
                                      sched);
        iface = uct_sep_hub_ep_iface(ep);
        ucs_list_add_tail(&iface->mail.ready, &ep->sched);
        uct_sep_hub_mail_notify(iface);
    }
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_peer_pending(uct_pending_req_t *req)
{
    uct_sep_hub_peer_t *peer = ucs_container_of(req, uct_sep_hub_peer_t, req);

    peer->is_pending = 0;
    uct_sep_hub_peer_wake(peer);
    return UCS_OK;
}

/*
 * Operations
 */

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_peer_put(uct_sep_hub_t *hub, uct_sep_hub_peer_t *peer)
{
    if (--peer->refcount == 0) {
        ucs_list_add_tail(&hub->unused, &peer->unused);
    }
}

static uct_sep_hub_t *uct_sep_hub_of_peer(const uct_sep_hub_peer_t *peer)
{
    uct_sep_iface_t *core = ucs_derived_of(peer->ep->super.super.iface,
                                           uct_sep_iface_t);

    return core->super.err_handler_arg;
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_op_completed(uct_completion_t *comp)
{
    uct_sep_hub_op_t *op = ucs_container_of(comp, uct_sep_hub_op_t, comp);
    uct_sep_hub_iface_t *iface;

    uct_sep_hub_peer_put(uct_sep_hub_of_peer(op->peer), op->peer);
    if (op->ep == NULL) {
        ucs_mpool_put_inline(op);
        return;
    }

    op->is_done = 1;
    iface       = uct_sep_hub_ep_iface(op->ep);
    ucs_queue_push(&iface->mail.done, &op->queue);
    uct_sep_hub_mail_notify(iface);
}

uct_sep_hub_op_t *uct_sep_hub_op_get(ucs_mpool_t *mp, uct_sep_hub_ep_t *ep,
                                     uct_completion_t *user)
{
    uct_sep_hub_op_t *op = ucs_mpool_get_inline(mp);

    if (ucs_unlikely(op == NULL)) {
        return NULL;
    }

    op->comp.func   = uct_sep_hub_op_completed;
    op->comp.count  = 1;
    op->comp.status = UCS_OK;
    op->peer        = ep->peer;
    op->ep          = ep;
    op->user        = user;
    op->finish      = NULL;
    op->is_done     = 0;
    ++ep->peer->refcount;
    ++uct_sep_hub_ep_iface(ep)->num_ops;
    ucs_list_add_tail(&ep->ops, &op->list);
    return op;
}

void uct_sep_hub_op_cancel(uct_sep_hub_t *hub, uct_sep_hub_op_t *op)
{
    ucs_list_del(&op->list);
    --uct_sep_hub_ep_iface(op->ep)->num_ops;
    uct_sep_hub_peer_put(hub, op->peer);
    ucs_mpool_put_inline(op);
}

/*
 * Peers
 */

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_peer_create(uct_sep_hub_t *hub, const uct_sep_peer_addr_t *addr,
                        uct_sep_hub_peer_t **peer_p)
{
    uct_ep_params_t params;
    uct_sep_hub_peer_t *peer;
    ucs_status_t status;
    uct_ep_h tl_ep;
    khiter_t iter;
    int ret;

    peer = ucs_calloc(1, sizeof(*peer), "sep_hub_peer");
    if (peer == NULL) {
        ucs_error("%s: no memory for a peer", hub->dev_name);
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    peer->addr     = *addr;
    peer->req.func = uct_sep_hub_peer_pending;
    ucs_list_head_init(&peer->waiters);
    ucs_list_head_init(&peer->eps);

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = &hub->core->super.super;
    params.dev_addr   = (const void*)&peer->addr.dev;
    params.iface_addr = (const void*)&peer->addr.iface;
    status            = uct_ep_create(&params, &tl_ep);
    if (status != UCS_OK) {
        goto err_free;
    }

    iter = kh_put(uct_sep_hub_peers, &hub->peers, &peer->addr, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        ucs_error("%s: no memory for a peer", hub->dev_name);
        status = UCS_ERR_NO_MEMORY;
        goto err_destroy_ep;
    }

    kh_value(&hub->peers, iter) = peer;
    peer->ep                    = ucs_derived_of(tl_ep, uct_sep_ep_t);
    *peer_p                     = peer;
    return UCS_OK;

err_destroy_ep:
    uct_ep_destroy(tl_ep);
err_free:
    ucs_free(peer);
err:
    return status;
}

/* Nobody can find it any more */
static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_peer_remove(uct_sep_hub_t *hub, uct_sep_hub_peer_t *peer)
{
    khiter_t iter = kh_get(uct_sep_hub_peers, &hub->peers, &peer->addr);

    if ((iter != kh_end(&hub->peers)) &&
        (kh_value(&hub->peers, iter) == peer)) {
        kh_del(uct_sep_hub_peers, &hub->peers, iter);
    }
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_peer_destroy(uct_sep_hub_t *hub, uct_sep_hub_peer_t *peer)
{
    uct_ep_h tl_ep = &peer->ep->super.super;

    uct_sep_hub_peer_remove(hub, peer);
    uct_ep_pending_purge(tl_ep, NULL, NULL);
    uct_ep_destroy(tl_ep);
    ucs_free(peer);
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) void
uct_sep_hub_destroy_unused(uct_sep_hub_t *hub)
{
    uct_sep_hub_peer_t *peer;

    while (ucs_unlikely(!ucs_list_is_empty(&hub->unused))) {
        peer = ucs_list_extract_head(&hub->unused, uct_sep_hub_peer_t, unused);
        uct_sep_hub_peer_destroy(hub, peer);
    }
}

void uct_sep_hub_peer_fail(uct_sep_hub_t *hub, uct_sep_hub_peer_t *peer,
                           ucs_status_t status, int is_told)
{
    uct_sep_hub_iface_t *iface;
    uct_sep_hub_ep_t *ep;

    /* The next endpoint to this peer starts over */
    peer->is_failed = 1;
    uct_sep_hub_peer_remove(hub, peer);

    ucs_list_for_each(ep, &peer->eps, peer_list) {
        ep->is_failed = 1;
        ep->failure   = status;
        if (is_told && !ep->is_destroyed) {
            iface = uct_sep_hub_ep_iface(ep);
            ucs_list_add_tail(&iface->mail.failed, &ep->failed);
            uct_sep_hub_mail_notify(iface);
        }
    }
    uct_sep_hub_peer_wake(peer);
}

ucs_status_t uct_sep_hub_connect(uct_sep_hub_t *hub,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_sep_hub_addr_t *addr,
                                 uct_sep_hub_ep_t *ep)
{
    uct_sep_peer_addr_t peer_addr;
    uct_sep_hub_peer_t *peer;
    ucs_status_t status;
    khiter_t iter;

    uct_sep_device_addr_read(&hub->core->port.addr, dev_addr, &peer_addr.dev);
    peer_addr.iface = uct_sep_hub_addr_iface(addr);

    iter = kh_get(uct_sep_hub_peers, &hub->peers, &peer_addr);
    if (iter != kh_end(&hub->peers)) {
        peer = kh_value(&hub->peers, iter);
        if (peer->refcount == 0) {
            ucs_list_del(&peer->unused);
        }
    } else {
        status = uct_sep_hub_peer_create(hub, &peer_addr, &peer);
        if (status != UCS_OK) {
            return status;
        }
    }

    ++peer->refcount;
    ep->peer = peer;
    ucs_list_add_tail(&peer->eps, &ep->peer_list);
    return UCS_OK;
}

void uct_sep_hub_disconnect(uct_sep_hub_t *hub, uct_sep_hub_ep_t *ep)
{
    ucs_list_del(&ep->sched);
    ucs_list_head_init(&ep->sched);
    ucs_list_del(&ep->peer_list);
    ucs_assert(ucs_list_is_empty(&ep->ops));
    uct_sep_hub_peer_put(hub, ep->peer);
    uct_sep_hub_destroy_unused(hub);
}

ucs_status_t uct_sep_hub_wait(uct_sep_hub_t *hub, uct_sep_hub_ep_t *ep)
{
    uct_sep_hub_peer_t *peer = ep->peer;
    ucs_status_t status;

    if (!peer->is_pending) {
        status = uct_ep_pending_add(&peer->ep->super.super, &peer->req, 0);
        if (status != UCS_OK) {
            return status;
        }
        peer->is_pending = 1;
    }

    ucs_list_del(&ep->sched);
    ucs_list_add_tail(&peer->waiters, &ep->sched);
    return UCS_OK;
}

/*
 * Polling
 */

unsigned uct_sep_hub_poll(uct_sep_hub_t *hub)
{
    unsigned count = uct_worker_progress(hub->worker);

    if (ucs_unlikely(hub->core->super.progress_flags == 0)) {
        /* No worker progresses it; somebody progresses its interface without
         * the worker, as UCP does to see whether there is anything */
        count += uct_iface_progress(&hub->core->super.super);
    }

    uct_sep_hub_destroy_unused(hub);
    return count;
}

void uct_sep_hub_wake_all(uct_sep_hub_t *hub)
{
    unsigned i;

    for (i = 0; i < hub->num_ifaces; ++i) {
        if (hub->ifaces[i] != NULL) {
            uct_sep_hub_mail_notify(hub->ifaces[i]);
        }
    }
}

/*
 * Init and cleanup
 */

static void
uct_sep_hub_init_get_op(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_sep_hub_op_t *op = obj;

    op->memh = memh;
}

static ucs_status_t uct_sep_hub_init_pools(uct_sep_hub_t *hub)
{
    ucs_status_t status;

    status = uct_sep_compat_mpool_init(&hub->op_mp, sizeof(uct_sep_hub_op_t), 0,
                                       UCS_SYS_CACHE_LINE_SIZE, 128, UINT_MAX,
                                       "sep_hub_op");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_sep_pool_init(hub->core, &hub->get_mp,
                               sizeof(uct_sep_hub_op_t) + hub->config.seg_size,
                               sizeof(uct_sep_hub_op_t),
                               UCS_SYS_CACHE_LINE_SIZE, &hub->config.tx.mp, 64,
                               uct_sep_hub_init_get_op, "sep_hub_get");
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&hub->op_mp, 0);
    }
    return status;
}

static ucs_status_t
uct_sep_hub_open_core(uct_sep_hub_t *hub, uct_sep_md_t *md,
                      const uct_iface_params_t *params)
{
    uct_iface_params_t core_params      = *params;
    uct_sep_iface_config_t core_config = hub->config;
    ucs_status_t status;
    uct_iface_h tl_iface;
    unsigned id;

    /* The core's completion queue already belongs to everybody */
    core_config.cq_sharing = 1;
    /* Messages are kept until their worker looks, so they come in buffers */
    core_config.rx.inline_size = 0;

    core_params.field_mask       |= UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                    UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                    UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                                    UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
    core_params.rx_headroom       = hub->headroom;
    core_params.err_handler       = uct_sep_hub_err_handler;
    core_params.err_handler_arg   = hub;
    core_params.err_handler_flags = 0;
    if (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT) {
        /* The users' data is behind the route */
        core_params.am_alignment    = hub->alignment;
        core_params.am_align_offset = hub->align_offset +
                                      sizeof(uct_sep_hub_route_t);
        core_params.field_mask     |= UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;
    }

    status = uct_sep_iface_open(&md->super, hub->worker, &core_params,
                                &core_config.super, &tl_iface);
    if (status != UCS_OK) {
        return status;
    }

    hub->core = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_eager_set_copies(hub->core);
    for (id = 0; id < UCT_AM_ID_MAX; ++id) {
        hub->am[id].hub   = hub;
        hub->am[id].am_id = id;
        status = uct_iface_set_am_handler(tl_iface, id, uct_sep_hub_am_handler,
                                          &hub->am[id], 0);
        ucs_assert_always(status == UCS_OK);
    }
    return UCS_OK;
}

static void uct_sep_hub_init_lock(uct_sep_hub_t *hub)
{
    pthread_mutexattr_t attr;

    /* Usually held only briefly, but not while a connection is made */
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    uct_sep_hub_mutex_init(&hub->lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* Nobody else knows it any more */
static UCT_SEP_NO_LOCK_ANALYSIS void uct_sep_hub_free(uct_sep_hub_t *hub)
{
    uct_sep_hub_mutex_destroy(&hub->lock);
    kh_destroy_inplace(uct_sep_hub_peers, &hub->peers);
    ucs_free(hub->ifaces);
    ucs_free(hub);
}

static UCT_SEP_REQUIRES(uct_sep_hub_list_mutex) ucs_status_t
uct_sep_hub_create(uct_sep_md_t *md, const uct_iface_params_t *params,
                   const uct_sep_iface_config_t *config, uct_sep_hub_t **hub_p)
{
    size_t headroom = UCT_IFACE_PARAM_VALUE(params, rx_headroom, RX_HEADROOM,
                                            0);
    ucs_status_t status;
    uct_sep_hub_t *hub;

    hub = ucs_calloc(1, sizeof(*hub), "sep_hub");
    if (hub == NULL) {
        ucs_error("%s: no memory for a hub", params->mode.device.dev_name);
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    hub->alignment    = UCT_IFACE_PARAM_VALUE(params, am_alignment,
                                              AM_ALIGNMENT,
                                              UCT_SEP_HUB_ALIGNMENT);
    hub->align_offset = UCT_IFACE_PARAM_VALUE(params, am_align_offset,
                                              AM_ALIGN_OFFSET, 0ul);
    if ((hub->alignment > 0) && ucs_is_pow2(hub->alignment)) {
        /* So that it is known how far data is from what is aligned for us */
        hub->alignment = ucs_max(hub->alignment, UCT_SEP_HUB_ALIGNMENT);
    }
    hub->headroom     = UCT_SEP_HUB_HEADROOM(headroom) +
                        (-hub->align_offset % UCT_SEP_HUB_ALIGNMENT);
    ucs_strncpy_zero(hub->dev_name, params->mode.device.dev_name,
                     sizeof(hub->dev_name));
    ucs_list_head_init(&hub->unused);
    kh_init_inplace(uct_sep_hub_peers, &hub->peers);
    uct_sep_hub_init_lock(hub);

    /* The caller's settings are gone when others come */
    status = ucs_config_parser_clone_opts(config, &hub->config,
                                          uct_sep_config_table);
    if (status != UCS_OK) {
        ucs_error("%s: no memory for the settings of a hub", hub->dev_name);
        goto err_free;
    }

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_MUTEX, &hub->async);
    if (status != UCS_OK) {
        ucs_error("%s: no asynchronous context for a hub: %s", hub->dev_name,
                  ucs_status_string(status));
        goto err_free_config;
    }

    status = uct_worker_create(hub->async, UCS_THREAD_MODE_SERIALIZED,
                               &hub->worker);
    if (status != UCS_OK) {
        goto err_destroy_async;
    }

    status = uct_sep_hub_open_core(hub, md, params);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }

    status = uct_sep_hub_init_pools(hub);
    if (status != UCS_OK) {
        goto err_close_core;
    }

    ucs_list_add_tail(&uct_sep_hub_list, &hub->list);
    *hub_p = hub;
    return UCS_OK;

err_close_core:
    uct_iface_close(&hub->core->super.super);
err_destroy_worker:
    uct_worker_destroy(hub->worker);
err_destroy_async:
    ucs_async_context_destroy(hub->async);
err_free_config:
    ucs_config_parser_release_opts(&hub->config, uct_sep_config_table);
err_free:
    uct_sep_hub_free(hub);
err:
    return status;
}

static UCT_SEP_REQUIRES(uct_sep_hub_list_mutex) void
uct_sep_hub_destroy(uct_sep_hub_t *hub)
{
    uct_sep_hub_peer_t *peer;

    ucs_list_del(&hub->list);

    /* Peers that are left have operations outstanding: the core cancels them */
    uct_sep_hub_lock(hub);
    uct_sep_hub_destroy_unused(hub);
    kh_foreach_value(&hub->peers, peer, {
        ++peer->refcount;
        uct_sep_hub_peer_destroy(hub, peer);
    })
    uct_sep_hub_unlock(hub);

    /* Before the pools: until then the device can write to their memory */
    uct_iface_close(&hub->core->super.super);
    ucs_mpool_cleanup(&hub->get_mp, 1);
    ucs_mpool_cleanup(&hub->op_mp, 1);
    uct_worker_destroy(hub->worker);
    ucs_async_context_destroy(hub->async);
    ucs_config_parser_release_opts(&hub->config, uct_sep_config_table);
    uct_sep_hub_free(hub);
}

/* Whether all settings of a table are the same. As text, since the bytes of two
 * structures may differ where they have the same settings: in padding. */
static int
uct_sep_hub_is_same_config(const void *config, const void *other,
                           const ucs_config_field_t *field)
{
    char value[UCT_SEP_HUB_MAX_VALUE], other_value[UCT_SEP_HUB_MAX_VALUE];
    const void *src, *other_src;

    for (; field->name != NULL; ++field) {
        if (field->offset == UCS_CONFIG_DEPRECATED_FIELD_OFFSET) {
            continue;
        }

        src       = UCS_PTR_BYTE_OFFSET(config, field->offset);
        other_src = UCS_PTR_BYTE_OFFSET(other, field->offset);
        if (field->parser.read == ucs_config_sscanf_table) {
            if (!uct_sep_hub_is_same_config(src, other_src,
                                            field->parser.arg)) {
                return 0;
            }
            continue;
        }

        field->parser.write(value, sizeof(value), src, field->parser.arg);
        field->parser.write(other_value, sizeof(other_value), other_src,
                            field->parser.arg);
        /* UCX does not end a text that it cuts off, and a setting that was
         * cut off counts as another one (ucs_config_sprintf_string()) */
        value[sizeof(value) - 1]             = '\0';
        other_value[sizeof(other_value) - 1] = '\0';
        if ((strcmp(value, other_value) != 0) ||
            (strlen(value) + 1 >= sizeof(value))) {
            return 0;
        }
    }

    return 1;
}

/* Whether an interface can use a hub that another one has opened */
static int uct_sep_hub_is_same(const uct_sep_hub_t *hub, const uct_sep_md_t *md,
                               const uct_iface_params_t *params,
                               const uct_sep_iface_config_t *config)
{
    return (uct_sep_iface_md(hub->core) == md) &&
           (strcmp(hub->dev_name, params->mode.device.dev_name) == 0) &&
           uct_sep_hub_is_same_config(&hub->config, config,
                                      uct_sep_config_table);
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_add_front(uct_sep_hub_t *hub, uct_sep_hub_iface_t *iface)
{
    unsigned index = hub->next_index;
    unsigned num_used, length;
    uct_sep_hub_iface_t **ifaces;

    for (num_used = 0; (index < hub->num_ifaces) &&
                       (hub->ifaces[index] != NULL); ++num_used) {
        if (num_used == UCT_SEP_HUB_MAX_IFACES) {
            ucs_error("%s: there are %u workers, and can't be more",
                      hub->dev_name, num_used);
            return UCS_ERR_EXCEEDS_LIMIT;
        }
        index = (index + 1) % UCT_SEP_HUB_MAX_IFACES;
    }

    if (index >= hub->num_ifaces) {
        length = ucs_max(8, hub->num_ifaces * 2);
        ifaces = ucs_realloc(hub->ifaces, length * sizeof(*ifaces),
                             "sep_hub_ifaces");
        if (ifaces == NULL) {
            ucs_error("%s: no memory for a worker besides %u others",
                      hub->dev_name, hub->num_ifaces);
            return UCS_ERR_NO_MEMORY;
        }

        memset(ifaces + hub->num_ifaces, 0,
               (length - hub->num_ifaces) * sizeof(*ifaces));
        hub->ifaces     = ifaces;
        hub->num_ifaces = length;
    }

    hub->ifaces[index] = iface;
    hub->next_index    = (index + 1) % UCT_SEP_HUB_MAX_IFACES;
    iface->index       = index;
    return UCS_OK;
}

ucs_status_t uct_sep_hub_join(uct_sep_md_t *md,
                              const uct_iface_params_t *params,
                              const uct_sep_iface_config_t *config,
                              uct_sep_hub_iface_t *iface, uct_sep_hub_t **hub_p)
{
    ucs_status_t status;
    uct_sep_hub_t *hub;

    uct_sep_hub_list_mutex_lock(&uct_sep_hub_list_lock);
    ucs_list_for_each(hub, &uct_sep_hub_list, list) {
        if (uct_sep_hub_is_same(hub, md, params, config)) {
            goto out_add;
        }
    }

    status = uct_sep_hub_create(md, params, config, &hub);
    if (status != UCS_OK) {
        goto out_unlock;
    }

out_add:
    uct_sep_hub_lock(hub);
    status = uct_sep_hub_add_front(hub, iface);
    uct_sep_hub_unlock(hub);
    if (status == UCS_OK) {
        ++hub->refcount;
        *hub_p = hub;
    } else if (hub->refcount == 0) {
        uct_sep_hub_destroy(hub);
    }
out_unlock:
    uct_sep_hub_list_mutex_unlock(&uct_sep_hub_list_lock);
    return status;
}

int uct_sep_hub_is_aligned(const uct_sep_hub_t *hub,
                           const uct_iface_params_t *params)
{
    size_t alignment = UCT_IFACE_PARAM_VALUE(params, am_alignment, AM_ALIGNMENT,
                                             1ul);
    size_t offset    = UCT_IFACE_PARAM_VALUE(params, am_align_offset,
                                             AM_ALIGN_OFFSET, 0ul);

    return (alignment <= hub->alignment) &&
           (((offset - hub->align_offset) & (alignment - 1)) == 0);
}

void uct_sep_hub_leave(uct_sep_hub_t *hub)
{
    uct_sep_hub_list_mutex_lock(&uct_sep_hub_list_lock);
    if (--hub->refcount == 0) {
        uct_sep_hub_destroy(hub);
    }
    uct_sep_hub_list_mutex_unlock(&uct_sep_hub_list_lock);
}
