/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/hub/sep_hub_ops.h>

#include <uct/base/uct_iov.inl>
#include <ucs/datastruct/mpool.inl>
#include <ucs/debug/log.h>
#include <string.h>

/*
 * Data path of category mpi_threads: the core's operations under the hub's
 * lock, with a descriptor if somebody waits for completion.
 */

#define UCT_SEP_HUB_EP_DECL(_tl_ep, _iface, _ep, _core) \
    uct_sep_hub_ep_t *_ep       = ucs_derived_of(_tl_ep, \
                                                 uct_sep_hub_ep_t); \
    uct_sep_hub_iface_t *_iface = uct_sep_hub_ep_iface(_ep); \
    uct_ep_h UCS_V_UNUSED _core = &_ep->peer->ep->super.super


#define UCT_SEP_HUB_EP_STAT_NO_RES(_ep) \
    UCS_STATS_UPDATE_COUNTER((_ep)->super.stats, UCT_EP_STAT_NO_RES, 1)


/* Take the lock, or return if something has to be sent before */
#define UCT_SEP_HUB_EP_BEGIN(_iface, _ep) \
    uct_sep_hub_lock((_iface)->hub); \
    if (ucs_unlikely((_ep)->is_blocked) && !uct_sep_hub_ep_unblock(_ep)) { \
        uct_sep_hub_unlock((_iface)->hub); \
        UCT_SEP_HUB_EP_STAT_NO_RES(_ep); \
        return UCS_ERR_NO_RESOURCE; \
    }


/* Release the lock, whatever the core's result */
static UCS_F_ALWAYS_INLINE UCT_SEP_RELEASES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_ep_end(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep,
                   ucs_status_t status)
{
    if (ucs_likely(!UCS_STATUS_IS_ERR(status))) {
        uct_sep_hub_ep_mark(ep);
    } else if (status == UCS_ERR_NO_RESOURCE) {
        UCT_SEP_HUB_EP_STAT_NO_RES(ep);
    }
    uct_sep_hub_unlock(iface->hub);
    return status;
}

/* End a call on the core with an operation that has a completion of ours */
static UCS_F_ALWAYS_INLINE UCT_SEP_RELEASES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_ep_end_op(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep,
                      uct_sep_hub_op_t *op, ucs_status_t status)
{
    if (ucs_unlikely((status != UCS_INPROGRESS) && (op != NULL))) {
        uct_sep_hub_op_cancel(iface->hub, op);
    }
    return uct_sep_hub_ep_end(iface, ep, status);
}

/* Get an operation if there is a completion; or release the lock and return */
#define UCT_SEP_HUB_EP_GET_OP(_iface, _mp, _ep, _user, _op) \
    { \
        _op = uct_sep_hub_op_get(_mp, _ep, _user); \
        if (ucs_unlikely((_op) == NULL)) { \
            uct_sep_hub_unlock((_iface)->hub); \
            return UCS_ERR_NO_MEMORY; \
        } \
    }

/*
 * Buffered sends. The user packs without the lock, when there seems to be room.
 * If there is none left afterwards, the message is kept: the user packs only
 * once.
 */

static size_t uct_sep_hub_ep_copy_put(void *dest, void *arg)
{
    const uct_sep_hub_packed_t *packed = arg;

    memcpy(dest, packed->data, packed->length);
    return packed->length;
}

static size_t uct_sep_hub_ep_copy_am(void *dest, void *arg)
{
    const uct_sep_hub_packed_t *packed = arg;

    memcpy(dest, &packed->route, sizeof(packed->route));
    memcpy(UCS_PTR_BYTE_OFFSET(dest, sizeof(packed->route)), packed->data,
           packed->length);
    return sizeof(packed->route) + packed->length;
}

static UCT_SEP_REQUIRES(uct_sep_hub_mutex) ucs_status_t
uct_sep_hub_ep_post_packed(uct_sep_hub_ep_t *ep, uct_sep_hub_packed_t *packed)
{
    uct_ep_h core = &ep->peer->ep->super.super;
    ssize_t ret;

    if (packed->is_put) {
        ret = uct_ep_put_bcopy(core, uct_sep_hub_ep_copy_put, packed,
                               packed->remote_addr, packed->rkey);
    } else {
        ret = uct_ep_am_bcopy(core, packed->am_id, uct_sep_hub_ep_copy_am,
                              packed, packed->flags);
    }

    if (ret < 0) {
        return (ucs_status_t)ret;
    }

    uct_sep_hub_ep_mark(ep);
    return UCS_OK;
}

void uct_sep_hub_ep_drop_packed(uct_sep_hub_ep_t *ep)
{
    if (ep->packed != NULL) {
        --uct_sep_hub_ep_iface(ep)->num_packed;
        ucs_mpool_put_inline(ep->packed);
        ep->packed = NULL;
    }
}

int uct_sep_hub_ep_send_packed(uct_sep_hub_ep_t *ep)
{
    if (ucs_likely(ep->packed == NULL)) {
        return 1;
    }

    if (uct_sep_hub_ep_post_packed(ep, ep->packed) == UCS_ERR_NO_RESOURCE) {
        return 0;
    }

    /* If it could not be sent because the endpoint has failed, the user learns
     * of it as of all operations under way */
    uct_sep_hub_ep_drop_packed(ep);
    if (ep->is_fenced) {
        ep->is_fenced = 0;
        (void)uct_ep_fence(&ep->peer->ep->super.super, 0);
    }
    return 1;
}

/* Whether there is room; finds out what can be done if not */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_sep_hub_ep_check_room(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep)
{
    uct_sep_ep_t *core_ep  = ep->peer->ep;
    ucs_status_t status    = UCS_OK;

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    if (ucs_unlikely((core_ep->txwq->credits |
                      iface->hub->core->tx.cq_credits) < 0)) {
        status = uct_sep_ep_no_credits(core_ep);
    }
    uct_sep_hub_unlock(iface->hub);
    if (ucs_unlikely(status == UCS_ERR_NO_RESOURCE)) {
        UCT_SEP_HUB_EP_STAT_NO_RES(ep);
    }
    return status;
}

static ssize_t
uct_sep_hub_ep_send_bcopy(uct_sep_hub_iface_t *iface, uct_sep_hub_ep_t *ep,
                          uct_pack_callback_t pack_cb, void *arg,
                          const uct_sep_hub_packed_t *params)
{
    uct_sep_hub_packed_t *packed;
    ucs_status_t status;
    ssize_t length;

    status = uct_sep_hub_ep_check_room(iface, ep);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    packed = ucs_mpool_get_inline(&iface->pack_mp);
    if (ucs_unlikely(packed == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    *packed        = *params;
    length         = pack_cb(packed->data, arg);
    packed->length = length;

    uct_sep_hub_lock(iface->hub);
    /* The user may have sent something while packing */
    status = uct_sep_hub_ep_send_packed(ep) ?
             uct_sep_hub_ep_post_packed(ep, packed) : UCS_ERR_NO_RESOURCE;
    if (ucs_unlikely((status == UCS_ERR_NO_RESOURCE) &&
                     (ep->packed == NULL))) {
        ep->packed     = packed;
        ep->is_blocked = 1;
        ++iface->num_packed;
        if (ucs_list_is_empty(&ep->sched) &&
            (uct_sep_hub_wait(iface->hub, ep) != UCS_OK)) {
            ucs_list_add_tail(&iface->mail.ready, &ep->sched);
            uct_sep_hub_mail_notify(iface);
        }
        uct_sep_hub_unlock(iface->hub);
        return length;
    }
    uct_sep_hub_unlock(iface->hub);

    ucs_mpool_put_inline(packed);
    return ucs_likely(status == UCS_OK) ? length : (ssize_t)status;
}

static ssize_t
uct_sep_hub_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                         void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    uct_sep_hub_packed_t params = {
        .is_put      = 1,
        .remote_addr = remote_addr,
        .rkey        = rkey
    };

    ssize_t length;

    length = uct_sep_hub_ep_send_bcopy(iface, ep, pack_cb, arg, &params);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(length, &ep->super, PUT, BCOPY, length);
    return length;
}

static ssize_t
uct_sep_hub_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                        uct_pack_callback_t pack_cb, void *arg,
                        unsigned flags)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    uct_sep_hub_packed_t params = {
        .am_id = id,
        .flags = flags,
        .route = ep->route
    };

    ssize_t length;

    UCT_CHECK_AM_ID(id);
    length = uct_sep_hub_ep_send_bcopy(iface, ep, pack_cb, arg, &params);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(length, &ep->super, AM, BCOPY, length);
    return length;
}

/*
 * Put and get
 */

static ucs_status_t
uct_sep_hub_ep_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length,
                         uint64_t remote_addr, uct_rkey_t rkey)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    ucs_status_t status;

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    status = uct_sep_hub_ep_end(iface, ep,
                                uct_ep_put_short(core, buffer, length,
                                                 remote_addr, rkey));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, SHORT, length);
    return status;
}

#define UCT_SEP_HUB_EP_DEFINE_RMA_ZCOPY(_op, _stat) \
    static ucs_status_t \
    uct_sep_hub_ep_##_op##_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, \
                                 size_t iovcnt, uint64_t remote_addr, \
                                 uct_rkey_t rkey, uct_completion_t *comp) \
    { \
        UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core); \
        uct_sep_hub_op_t *op = NULL; \
        ucs_status_t status; \
        \
        UCT_SEP_HUB_EP_BEGIN(iface, ep); \
        if (comp != NULL) { \
            UCT_SEP_HUB_EP_GET_OP(iface, &iface->hub->op_mp, ep, comp, op); \
        } \
        status = uct_sep_hub_ep_end_op(iface, ep, op, \
                uct_ep_##_op##_zcopy(core, iov, iovcnt, remote_addr, rkey, \
                                     (op == NULL) ? NULL : &op->comp)); \
        UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, _stat, ZCOPY, \
                                     uct_iov_total_length(iov, iovcnt)); \
        return status; \
    }

UCT_SEP_HUB_EP_DEFINE_RMA_ZCOPY(put, PUT)
UCT_SEP_HUB_EP_DEFINE_RMA_ZCOPY(get, GET)

static void uct_sep_hub_iface_finish_get(uct_sep_hub_op_t *op)
{
    if (op->get.unpack_cb != NULL) {
        op->get.unpack_cb(op->get.arg, op + 1, op->length);
    }
}

/* Into a buffer of the hub's, from which the user's thread unpacks */
static ucs_status_t
uct_sep_hub_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                         void *arg, size_t length, uint64_t remote_addr,
                         uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    ucs_status_t status;
    uct_sep_hub_op_t *op;
    uct_iov_t iov;

    UCT_CHECK_LENGTH(length, 0, iface->hub->config.seg_size, "get_bcopy");

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    UCT_SEP_HUB_EP_GET_OP(iface, &iface->hub->get_mp, ep, comp, op);
    op->finish        = uct_sep_hub_iface_finish_get;
    op->length        = length;
    op->get.unpack_cb = unpack_cb;
    op->get.arg       = arg;
    iov.buffer        = op + 1;
    iov.length        = length;
    iov.memh          = op->memh;
    iov.stride        = 0;
    iov.count         = 1;
    status            = uct_sep_hub_ep_end_op(iface, ep, op,
                                              uct_ep_get_zcopy(core, &iov, 1,
                                                               remote_addr,
                                                               rkey,
                                                               &op->comp));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, BCOPY, length);
    return status;
}

/*
 * Active messages: the route takes the place of the core's header
 */

/* There may be no source if there is nothing to copy */
static UCS_F_ALWAYS_INLINE void
uct_sep_hub_iface_copy(void *dest, const void *src, size_t length)
{
    if (length > 0) {
        memcpy(dest, src, length);
    }
}

static ucs_status_t
uct_sep_hub_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                        const void *payload, unsigned length)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    char data[UCT_SEP_AM_MAX_INL];
    ucs_status_t status;

    UCT_CHECK_LENGTH(sizeof(header) + length, 0,
                     sizeof(data) - sizeof(uct_sep_am_short_hdr_t), "am_short");

    memcpy(data, &header, sizeof(header));
    uct_sep_hub_iface_copy(data + sizeof(header), payload, length);

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    status = uct_sep_hub_ep_end(iface, ep,
                                uct_ep_am_short(core, id, ep->route, data,
                                                sizeof(header) + length));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, SHORT,
                                 sizeof(header) + length);
    return status;
}

static ucs_status_t
uct_sep_hub_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t *iov,
                            size_t iovcnt)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    char data[UCT_SEP_AM_MAX_INL];
    size_t length = 0;
    ucs_status_t status;
    size_t i;

    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0,
                     sizeof(data) - sizeof(uct_sep_am_short_hdr_t),
                     "am_short_iov");

    for (i = 0; i < iovcnt; ++i) {
        uct_sep_hub_iface_copy(data + length, iov[i].buffer,
                               uct_iov_get_length(&iov[i]));
        length += uct_iov_get_length(&iov[i]);
    }

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    status = uct_sep_hub_ep_end(iface, ep,
                                uct_ep_am_short(core, id, ep->route, data,
                                                length));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, SHORT, length);
    return status;
}

static ucs_status_t
uct_sep_hub_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header,
                        unsigned header_length, const uct_iov_t *iov,
                        size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core);
    uct_sep_hub_op_t *op = NULL;
    char data[UCT_SEP_AM_MAX_INL];
    ucs_status_t status;

    UCT_CHECK_LENGTH(header_length, 0,
                     UCT_SEP_AM_ZCOPY_MAX_HDR - sizeof(ep->route),
                     "am_zcopy header");

    memcpy(data, &ep->route, sizeof(ep->route));
    uct_sep_hub_iface_copy(data + sizeof(ep->route), header, header_length);

    UCT_SEP_HUB_EP_BEGIN(iface, ep);
    if (comp != NULL) {
        UCT_SEP_HUB_EP_GET_OP(iface, &iface->hub->op_mp, ep, comp, op);
    }
    status = uct_sep_hub_ep_end_op(iface, ep, op,
                                   uct_ep_am_zcopy(core, id, data,
                                                   sizeof(ep->route) +
                                                   header_length, iov, iovcnt,
                                                   flags, (op == NULL) ? NULL :
                                                          &op->comp));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, ZCOPY,
                                 header_length +
                                 uct_iov_total_length(iov, iovcnt));
    return status;
}

/*
 * Atomics. The core writes what a fetching one returns to the operation, which
 * lives long enough; the user's thread copies it.
 */

static void uct_sep_hub_iface_finish_fetch(uct_sep_hub_op_t *op)
{
    if (op->result != NULL) {
        memcpy(op->result, &op->value, op->length);
    }
}

#define UCT_SEP_HUB_EP_STAT_ATOMIC(_status, _ep) \
    if (!UCS_STATUS_IS_ERR(_status)) { \
        UCT_TL_EP_STAT_ATOMIC(&(_ep)->super); \
    }

#define UCT_SEP_HUB_EP_DEFINE_ATOMIC_POST(_bits) \
    static ucs_status_t \
    uct_sep_hub_ep_atomic##_bits##_post(uct_ep_h tl_ep, unsigned opcode, \
                                        uint##_bits##_t value, \
                                        uint64_t remote_addr, \
                                        uct_rkey_t rkey) \
    { \
        UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core); \
        ucs_status_t status; \
        \
        UCT_SEP_HUB_EP_BEGIN(iface, ep); \
        status = uct_sep_hub_ep_end(iface, ep, \
                uct_ep_atomic##_bits##_post(core, opcode, value, remote_addr, \
                                            rkey)); \
        UCT_SEP_HUB_EP_STAT_ATOMIC(status, ep); \
        return status; \
    }

/* One that returns the old value to op->value; its parameters, and what of them
 * the core gets before the completion */
#define UCT_SEP_HUB_EP_DEFINE_FETCHING(_name, _params, ...) \
    static ucs_status_t uct_sep_hub_ep_##_name _params \
    { \
        UCT_SEP_HUB_EP_DECL(tl_ep, iface, ep, core); \
        uct_sep_hub_op_t *op; \
        ucs_status_t status; \
        \
        UCT_SEP_HUB_EP_BEGIN(iface, ep); \
        UCT_SEP_HUB_EP_GET_OP(iface, &iface->hub->op_mp, ep, comp, op); \
        op->finish = uct_sep_hub_iface_finish_fetch; \
        op->length = sizeof(*result); \
        op->result = result; \
        status = uct_sep_hub_ep_end_op(iface, ep, op, \
                uct_ep_##_name(core, __VA_ARGS__, &op->comp)); \
        UCT_SEP_HUB_EP_STAT_ATOMIC(status, ep); \
        return status; \
    }

#define UCT_SEP_HUB_EP_DEFINE_ATOMIC_FETCH(_bits) \
    UCT_SEP_HUB_EP_DEFINE_FETCHING( \
            atomic##_bits##_fetch, \
            (uct_ep_h tl_ep, unsigned opcode, uint##_bits##_t value, \
             uint##_bits##_t *result, uint64_t remote_addr, uct_rkey_t rkey, \
             uct_completion_t *comp), \
            opcode, value, (uint##_bits##_t*)&op->value, remote_addr, rkey)

#define UCT_SEP_HUB_EP_DEFINE_ATOMIC_CSWAP(_bits) \
    UCT_SEP_HUB_EP_DEFINE_FETCHING( \
            atomic_cswap##_bits, \
            (uct_ep_h tl_ep, uint##_bits##_t compare, uint##_bits##_t swap, \
             uint64_t remote_addr, uct_rkey_t rkey, uint##_bits##_t *result, \
             uct_completion_t *comp), \
            compare, swap, remote_addr, rkey, (uint##_bits##_t*)&op->value)

UCT_SEP_HUB_EP_DEFINE_ATOMIC_POST(32)
UCT_SEP_HUB_EP_DEFINE_ATOMIC_POST(64)
UCT_SEP_HUB_EP_DEFINE_ATOMIC_FETCH(32)
UCT_SEP_HUB_EP_DEFINE_ATOMIC_FETCH(64)
UCT_SEP_HUB_EP_DEFINE_ATOMIC_CSWAP(32)
UCT_SEP_HUB_EP_DEFINE_ATOMIC_CSWAP(64)


const uct_sep_ops_t uct_sep_hub_ops = {
    UCT_SEP_OPS_FOREACH_EP(UCT_SEP_OPS_INIT, hub)
};
