/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/recv/sep_srq.inl>
#include <uct/ib/sep/base/sep_account.h>

#include <ucs/datastruct/mpool.inl>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/stubs.h>
#include <errno.h>
#include <string.h>


/* Indices have 16 bits; the PRM limits an SRQ to 2^15 work requests */
#define UCT_SEP_SRQ_MAX_LEN  (1u << 15)


static ucs_status_t
uct_sep_srq_map(uct_sep_srq_t *srq, const uct_sep_srq_params_t *params)
{
    struct mlx5dv_srq dv_srq = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj dv     = {};
    unsigned i;
    int ret;

    dv.srq.in  = srq->srq;
    dv.srq.out = &dv_srq;
    ret = mlx5dv_init_obj(&dv, MLX5DV_OBJ_SRQ);
    if (ret != 0) {
        ucs_error("%s: mlx5dv_init_obj(SRQ) failed: %s", params->name,
                  strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    /* libmlx5 links work requests in order: "tail" is the last one */
    srq->buf    = dv_srq.buf;
    srq->dbrec  = dv_srq.dbrec;
    srq->srqn   = dv_srq.srqn;
    srq->length = dv_srq.tail + 1;
    srq->shift  = ucs_ilog2(dv_srq.stride);

    if ((dv_srq.head != 0) || !ucs_is_pow2(srq->length) ||
        !ucs_is_pow2(dv_srq.stride) || (srq->length > UCT_SEP_SRQ_MAX_LEN) ||
        (dv_srq.stride < (sizeof(struct mlx5_wqe_srq_next_seg) +
                          sizeof(struct mlx5_wqe_data_seg)))) {
        ucs_error("%s: unexpected layout of the shared receive queue: head %u "
                  "tail %u stride %u", params->name, dv_srq.head, dv_srq.tail,
                  dv_srq.stride);
        return UCS_ERR_UNSUPPORTED;
    }

    for (i = 0; i < srq->length; ++i) {
        uct_sep_srq_wqe(srq, i)->next_wqe_index =
                htobe16((i + 1) & (srq->length - 1));
    }

    return UCS_OK;
}

ucs_status_t
uct_sep_srq_init(uct_sep_srq_t *srq, const uct_sep_srq_params_t *params)
{
    struct ibv_srq_init_attr attr = {};
    ucs_status_t status;

    memset(srq, 0, sizeof(*srq));
    srq->hdr_offset = params->hdr_offset;
    srq->buf_size   = params->buf_size;
    srq->mp         = params->mp;
    srq->ops        = params->ops;

    if ((params->length == 0) || (params->length >= UCT_SEP_SRQ_MAX_LEN)) {
        ucs_error("%s: UCX_SEP_RX_QUEUE_LEN=%u, should be between 1 and %u",
                  params->name, params->length, UCT_SEP_SRQ_MAX_LEN - 1);
        return UCS_ERR_INVALID_PARAM;
    }

    attr.attr.max_wr  = params->length;
    attr.attr.max_sge = 1;
    srq->srq = ibv_create_srq(params->pd, &attr);
    if (srq->srq == NULL) {
        ucs_error("%s: ibv_create_srq(max_wr=%u) failed: %m%s", params->name,
                  params->length, (errno == ENOSPC) ? "" :
                  ". Reduce UCX_SEP_RX_QUEUE_LEN");
        return UCS_ERR_IO_ERROR;
    }

    status = srq->ops->map(srq, params);
    if (status != UCS_OK) {
        goto err_destroy;
    }

    srq->descs = ucs_calloc(srq->length, sizeof(*srq->descs), "sep_srq_descs");
    srq->empty = ucs_calloc(srq->length, sizeof(*srq->empty), "sep_srq_empty");
    if ((srq->descs == NULL) || (srq->empty == NULL)) {
        ucs_error("%s: no memory for a receive queue of %u", params->name,
                  srq->length);
        status = UCS_ERR_NO_MEMORY;
        goto err_free;
    }

    srq->account = uct_sep_account_add_srq(srq->srq);
    return UCS_OK;

err_free:
    ucs_free(srq->empty);
    ucs_free(srq->descs);
    srq->ops->unmap(srq);
err_destroy:
    ibv_destroy_srq(srq->srq);
    return status;
}

void uct_sep_srq_cleanup(uct_sep_srq_t *srq)
{
    unsigned i;
    int ret;

    uct_sep_account_remove(srq->srq->context, UCT_SEP_ACCOUNT_SRQ,
                           srq->account);
    ret = ibv_destroy_srq(srq->srq);
    if (ret != 0) {
        ucs_warn("ibv_destroy_srq(0x%x) failed: %s", srq->srqn, strerror(ret));
    }

    for (i = 0; i < srq->length; ++i) {
        if (srq->descs[i] != NULL) {
            ucs_mpool_put(srq->descs[i]);
        }
    }

    ucs_free(srq->empty);
    ucs_free(srq->descs);
    srq->ops->unmap(srq);
}

void uct_sep_srq_fill(uct_sep_srq_t *srq, unsigned count)
{
    srq->ops->fill(srq, count);
}

void uct_sep_srq_refill(uct_sep_srq_t *srq)
{
    srq->ops->refill(srq);
}

/* Give a work request its buffer */
static void uct_sep_srq_set_data(uct_sep_srq_t *srq, uint16_t index,
                                 void *address, uint32_t lkey)
{
    struct mlx5_wqe_data_seg *data = (void*)(uct_sep_srq_wqe(srq, index) + 1);

    data->byte_count = htobe32(srq->buf_size);
    data->lkey       = htobe32(lkey);
    data->addr       = htobe64((uintptr_t)address);
}

/* The first work request of all */
static void uct_sep_srq_start(uct_sep_srq_t *srq, uint16_t index)
{
    srq->last = uct_sep_srq_wqe(srq, index);
}

#define UCT_SEP_SRQ(_name) uct_sep_srq_##_name
#include <uct/ib/sep/recv/sep_srq_fill.inl>

static void uct_sep_srq_append_op(uct_sep_srq_t *srq, uint16_t index)
{
    uct_sep_srq_append(srq, index);
}

const uct_sep_srq_ops_t uct_sep_srq_ops = {
    .map     = uct_sep_srq_map,
    .unmap   = (uct_sep_srq_unmap_func_t)ucs_empty_function,
    .fill    = uct_sep_srq_fill_empty,
    .refill  = uct_sep_srq_refill_empty,
    .append  = uct_sep_srq_append_op,
    .replace = uct_sep_srq_replace
};
