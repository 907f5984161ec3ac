/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_bufs.h>
#include <uct/ib/sep/iface/sep_api.h>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/iface/sep_op_done.h>
#include <uct/ib/sep/iface/sep_pool.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <uct/base/uct_iov.inl>
#include <ucs/debug/log.h>
#include <string.h>


/* Receives posted when an interface is opened. UCP does not progress an
 * interface until something has arrived on it, so there must be some; the rest
 * is posted when progress is enabled. */
#define UCT_SEP_RX_FIRST_FILL  64

/* A huge page, and the part of it that holds no elements of a pool: the
 * registration, the chunk's header, alignment */
#define UCT_SEP_MPOOL_CHUNK    (2 * UCS_MBYTE)
#define UCT_SEP_MPOOL_OVERHEAD 4096

static void
uct_sep_bufs_init_desc(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    uct_sep_desc_t *desc   = obj;

    if (iface->channel.own == NULL) {
        uct_sep_desc_set_lkey(desc, uct_sep_mem_lkey(memh));
    } else {
        /* If this fails, whoever gets the descriptor tries again */
        uct_sep_desc_set_lkey(desc,
                              uct_sep_own_keys_make(&iface->channel.own->keys,
                                                    uct_sep_iface_md(iface),
                                                    memh));
        desc->super.result = memh;
    }
}

ucs_status_t uct_sep_bufs_make_lkeys(uct_sep_iface_t *iface,
                                     const uct_iov_t *iov, size_t iovcnt)
{
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        if ((uct_iov_get_length(&iov[i]) > 0) &&
            (uct_sep_own_keys_make(&iface->channel.own->keys,
                                       uct_sep_iface_md(iface), iov[i].memh) ==
             UCT_SEP_INVALID_LKEY)) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    return UCS_OK;
}

uct_sep_desc_t *uct_sep_bufs_get_desc(uct_sep_iface_t *iface, ucs_mpool_t *mp)
{
    uct_sep_desc_t *desc;

    UCT_TL_IFACE_GET_TX_DESC(&iface->super, mp, desc,
                             return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE));
    if (uct_sep_desc_lkey(desc) == UCT_SEP_INVALID_LKEY) {
        /* Try again to make it */
        uct_sep_bufs_init_desc(&iface->super.super, desc, desc->super.result);
        if (uct_sep_desc_lkey(desc) == UCT_SEP_INVALID_LKEY) {
            ucs_mpool_put(desc);
            return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
        }
    }

    desc->super.handler = uct_sep_op_release_desc;
    desc->super.ep      = NULL;
    return desc;
}

static void
uct_sep_bufs_init_rx_desc(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_sep_rx_desc_t *desc = obj;

    desc->lkey = uct_sep_mem_lkey(memh);
}

/*
 * How many elements to add to a pool of buffers at a time: UCT allocates these
 * in whole huge pages, so as many as fit in one and no more.
 */
static unsigned uct_sep_bufs_mpool_grow(size_t elem_size, unsigned max)
{
    size_t unit = ucs_align_up_pow2(elem_size + sizeof(ucs_mpool_elem_t),
                                    UCS_SYS_CACHE_LINE_SIZE);
    /* The data of pool and allocator come first */
    size_t count = (UCT_SEP_MPOOL_CHUNK - UCT_SEP_MPOOL_OVERHEAD) / unit;

    return ucs_max(1, ucs_min(count, max));
}

ucs_status_t
uct_sep_bufs_init_tx(uct_sep_iface_t *iface,
                     const uct_sep_iface_config_t *config)
{
    uct_iface_mpool_config_t scratch_config = uct_sep_compat_mpool_config(64);
    uct_sep_desc_t *scratch;
    ucs_status_t status;

    status = uct_sep_pool_init(iface, &iface->tx.desc_mp,
                               sizeof(uct_sep_desc_t) + iface->config.seg_size,
                               sizeof(uct_sep_desc_t), UCS_SYS_CACHE_LINE_SIZE,
                               &config->tx.mp,
                               uct_sep_bufs_mpool_grow(
                                       sizeof(uct_sep_desc_t) +
                                       iface->config.seg_size,
                                       iface->config.tx_queue_len),
                               uct_sep_bufs_init_desc, "sep_tx_desc");
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_sep_pool_init(iface, &iface->tx.small_mp,
                               sizeof(uct_sep_desc_t) + sizeof(uint64_t),
                               sizeof(uct_sep_desc_t), UCS_SYS_CACHE_LINE_SIZE,
                               &scratch_config, 64, uct_sep_bufs_init_desc,
                               "sep_atomic_desc");
    if (status != UCS_OK) {
        goto err_cleanup_desc_mp;
    }

    status = uct_sep_op_mpool_init(&iface->tx.op_mp);
    if (status != UCS_OK) {
        goto err_cleanup_small_mp;
    }

    scratch = ucs_mpool_get(&iface->tx.small_mp);
    if ((scratch != NULL) &&
        (uct_sep_desc_lkey(scratch) == UCT_SEP_INVALID_LKEY)) {
        ucs_mpool_put(scratch);
        scratch = NULL;
    }
    if (scratch == NULL) {
        ucs_error("%s: no registered memory for atomic operations",
                  iface->port.name);
        status = UCS_ERR_NO_MEMORY;
        goto err_cleanup_op_mp;
    }

    uct_sep_op_list_init(&iface->tx.free_descs);
    uct_sep_op_list_init(&iface->tx.free_small);
    uct_sep_op_list_init(&iface->tx.free_ops);
    iface->tx.scratch    = scratch;
    iface->tx.cq_credits = iface->config.cq_len;
    iface->tx.stalled    = 0;
    iface->tx.in_finish  = 0;
    uct_sep_txwq_init_idle(&iface->tx.idle);
    ucs_list_head_init(&iface->tx.unrung);
    ucs_list_head_init(&iface->tx.fc_due);
    return UCS_OK;

err_cleanup_op_mp:
    ucs_mpool_cleanup(&iface->tx.op_mp, 0);
err_cleanup_small_mp:
    ucs_mpool_cleanup(&iface->tx.small_mp, 0);
err_cleanup_desc_mp:
    ucs_mpool_cleanup(&iface->tx.desc_mp, 0);
err:
    return status;
}

void uct_sep_bufs_cleanup_tx(uct_sep_iface_t *iface)
{
    uct_sep_op_list_drain(&iface->tx.free_ops);
    uct_sep_op_list_drain(&iface->tx.free_small);
    uct_sep_op_list_drain(&iface->tx.free_descs);
    ucs_mpool_put(iface->tx.scratch);
    ucs_mpool_cleanup(&iface->tx.op_mp, 1);
    ucs_mpool_cleanup(&iface->tx.small_mp, 1);
    ucs_mpool_cleanup(&iface->tx.desc_mp, 1);
}

static void uct_sep_bufs_release_desc(uct_recv_desc_t *self, void *user_desc)
{
    uct_sep_iface_t *iface = ucs_container_of(self, uct_sep_iface_t,
                                              rx.release);

    ucs_mpool_put(UCS_PTR_BYTE_OFFSET(user_desc,
                                      -(ptrdiff_t)iface->rx.headroom_offset));
    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    }
}

ucs_status_t
uct_sep_bufs_init_rx(uct_sep_iface_t *iface, const uct_iface_params_t *params,
                     const uct_sep_iface_config_t *config)
{
    size_t headroom = (params->field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ?
                      params->rx_headroom : 0;
    uct_sep_srq_params_t srq_params;
    size_t payload_offset, align, align_offset;
    ucs_status_t status;

    /* In front of the payload are the user's headroom and, in front of that,
     * the pointer by which UCT knows how to release the descriptor. The header
     * is received into the last byte of these. Everything is aligned to 8, and
     * the header is in the cache line where the payload starts. */
    payload_offset = ucs_align_up_pow2(sizeof(uct_sep_rx_desc_t) +
                                       sizeof(uct_recv_desc_t*) + headroom,
                                       sizeof(uint64_t));

    status = uct_iface_param_am_alignment(params, iface->config.seg_size,
                                          payload_offset - sizeof(uint64_t),
                                          payload_offset, &align,
                                          &align_offset);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_sep_pool_init(iface, &iface->rx.mp,
                               payload_offset + iface->config.seg_size,
                               align_offset, align, &config->rx.mp,
                               uct_sep_bufs_mpool_grow(
                                       payload_offset + iface->config.seg_size,
                                       iface->config.rx_queue_fill),
                               uct_sep_bufs_init_rx_desc, "sep_rx_desc");
    if (status != UCS_OK) {
        goto err;
    }

    memset(&iface->count, 0, sizeof(iface->count));
    iface->rx.release.cb      = uct_sep_bufs_release_desc;
    iface->rx.headroom_offset = payload_offset - headroom;

    srq_params.pd         = uct_sep_iface_md(iface)->pd;
    srq_params.length     = iface->config.rx_queue_len;
    srq_params.hdr_offset = payload_offset - sizeof(uct_sep_am_hdr_t);
    srq_params.buf_size   = iface->config.seg_size;
    srq_params.mp         = &iface->rx.mp;
    srq_params.name       = iface->port.name;
    srq_params.ops        = iface->api->srq_ops;
    status = uct_sep_srq_init(&iface->srq, &srq_params);
    if (status != UCS_OK) {
        goto err_cleanup_mp;
    }

    uct_sep_srq_fill(&iface->srq, ucs_min(iface->config.rx_queue_fill,
                                          UCT_SEP_RX_FIRST_FILL));
    if (iface->srq.counter == 0) {
        ucs_error("%s: no registered memory for receives", iface->port.name);
        status = UCS_ERR_NO_MEMORY;
        goto err_cleanup_srq;
    }

    return UCS_OK;

err_cleanup_srq:
    uct_sep_srq_cleanup(&iface->srq);
err_cleanup_mp:
    ucs_mpool_cleanup(&iface->rx.mp, 0);
err:
    return status;
}

void uct_sep_bufs_cleanup_rx(uct_sep_iface_t *iface)
{
    uct_sep_srq_cleanup(&iface->srq);
    /* Descriptors that the application has not released are its fault; the pool
     * reports them */
    ucs_mpool_cleanup(&iface->rx.mp, 1);
}
