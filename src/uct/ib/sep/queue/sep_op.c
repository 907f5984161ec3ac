/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_op.h"

#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/base/uct_iface.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <endian.h>
#include <ucs/arch/cpu.h>


static UCS_F_ALWAYS_INLINE void
uct_sep_op_invoke_comp(uct_sep_op_t *op, ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    /* Released first: the callback may want to use it for its next operation */
    ucs_mpool_put_inline(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

const struct mlx5_cqe64 uct_sep_op_no_cqe = {};


/* Where a result is that did not come with the completion */
static UCS_F_ALWAYS_INLINE const void *uct_sep_op_buffer(uct_sep_op_t *op)
{
    return uct_sep_desc_buffer(ucs_derived_of(op, uct_sep_desc_t));
}

void uct_sep_op_release(uct_sep_op_t *op,
                        const struct mlx5_cqe64 *cqe,
                        ucs_status_t status)
{
    ucs_mpool_put_inline(op);
}

void uct_sep_op_complete(uct_sep_op_t *op,
                         const struct mlx5_cqe64 *cqe,
                         ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    ucs_mpool_put_inline(op);
    uct_invoke_completion(comp, status);
}

void uct_sep_op_complete_flush(uct_sep_op_t *op,
                               const struct mlx5_cqe64 *cqe,
                               ucs_status_t status)
{
    /* A cancelling flush has done its job. Any other one reports that
     * operations before it have failed. */
    uct_sep_op_invoke_comp(op, (status == UCS_ERR_CANCELED) ? UCS_OK : status);
}

void uct_sep_op_complete_get_bcopy(uct_sep_op_t *op,
                                   const struct mlx5_cqe64 *cqe,
                                   ucs_status_t status)
{
    if ((status == UCS_OK) && (op->get.unpack_cb != NULL)) {
        op->get.unpack_cb(op->get.arg,
                          uct_sep_cqe_has_data(cqe) ? uct_sep_cqe_data(cqe) :
                                                      uct_sep_op_buffer(op),
                          op->length);
    }
    uct_sep_op_invoke_comp(op, status);
}

/* Extended atomics of 4 bytes return the old value in big endian, all of 8
 * bytes in host order: atomic_req_8B_endianness_mode is about the latter
 * only, and about memory. In a completion it is always big endian (UCX,
 * rc_mlx5_iface.c: treat the response as big-endian when it arrives in the
 * CQE). */
#define UCT_SEP_OP_DEFINE_FETCH(_name, _type, _cqe_to_host, _memory_to_host) \
    void uct_sep_op_complete_##_name(uct_sep_op_t *op, \
                                     const struct mlx5_cqe64 *cqe, \
                                     ucs_status_t status) \
    { \
        if ((status == UCS_OK) && (op->result != NULL)) { \
            *(_type*)op->result = \
                    uct_sep_cqe_has_data(cqe) ? \
                            _cqe_to_host(*(const _type*)uct_sep_cqe_data( \
                                    cqe)) : \
                            _memory_to_host(*(const _type*)uct_sep_op_buffer( \
                                    op)); \
        } \
        uct_sep_op_invoke_comp(op, status); \
    }

UCT_SEP_OP_DEFINE_FETCH(fetch32, uint32_t, be32toh, be32toh)
UCT_SEP_OP_DEFINE_FETCH(fetch64, uint64_t, be64toh, )

ucs_status_t uct_sep_op_mpool_init(ucs_mpool_t *mp)
{
    static ucs_mpool_ops_t ops = {
        .chunk_alloc   = ucs_mpool_chunk_malloc,
        .chunk_release = ucs_mpool_chunk_free,
        .obj_init      = NULL,
        .obj_cleanup   = NULL,
        .obj_str       = NULL
    };

    return ucs_mpool_init(mp, 0, sizeof(uct_sep_op_t), 0,
                          UCS_SYS_CACHE_LINE_SIZE, 128, UINT_MAX, &ops,
                          "sep_op");
}

void uct_sep_txwq_purge(uct_sep_txwq_t *txwq, ucs_status_t status)
{
    uct_sep_op_t *op;

    while (!ucs_queue_is_empty(&txwq->outstanding)) {
        op = ucs_queue_pull_elem_non_empty(&txwq->outstanding, uct_sep_op_t,
                                           queue);
        op->handler(op, &uct_sep_op_no_cqe, status);
    }
}

/* Handler of an operation whose user is being told: no longer needed, but not
 * to be released yet */
static void uct_sep_op_leave(uct_sep_op_t *op,
                             const struct mlx5_cqe64 *cqe,
                             ucs_status_t status)
{
    op->ep = NULL;
}

void uct_sep_txwq_disown(uct_sep_txwq_t *txwq, uct_sep_ep_t *ep)
{
    uct_sep_op_t *head   = NULL;
    uct_sep_op_t **ptail = &head;
    uct_completion_t *comp;
    uct_sep_op_t *op;

    /* All are taken off the queue before the first completion is called, which
     * may progress and so change the queue */
    ucs_queue_for_each(op, &txwq->outstanding, queue) {
        if (op->ep == ep) {
            op->handler = uct_sep_op_leave;
            *ptail      = op;
            ptail       = &op->next;
        }
    }
    *ptail = NULL;

    while (head != NULL) {
        op   = head;
        head = op->next;
        comp = op->comp;
        if (op->ep == NULL) {
            ucs_mpool_put_inline(op);
        } else {
            op->handler = uct_sep_op_release;
            op->comp    = NULL;
            op->ep      = NULL;
        }
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }
}
