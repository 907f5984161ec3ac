/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_op_done.h>

#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/base/uct_iface.h>
#include <endian.h>
#include <string.h>


/* In all of these the operation is released first: the callback may want to use
 * it for its next one */

static UCS_F_ALWAYS_INLINE void
uct_sep_op_finish(uct_sep_op_list_t *list, ucs_queue_elem_t *elem,
                  ucs_status_t status)
{
    uct_completion_t *comp = uct_sep_op(elem)->comp;

    uct_sep_op_list_push(list, elem);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

/* What a free descriptor is like: sep_op.h */
static UCS_F_ALWAYS_INLINE void
uct_sep_op_finish_desc(uct_sep_iface_t *iface, ucs_queue_elem_t *elem,
                       ucs_status_t status)
{
    uct_sep_op_t *op = uct_sep_op(elem);

    op->handler = uct_sep_op_release_desc;
    op->ep      = NULL;
    uct_sep_op_finish(&iface->tx.free_descs, elem, status);
}

/* Where a result is that did not come with the completion */
static UCS_F_ALWAYS_INLINE const void *uct_sep_op_buffer(uct_sep_op_t *op)
{
    return uct_sep_desc_buffer(ucs_derived_of(op, uct_sep_desc_t));
}

void uct_sep_op_complete(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe,
                         ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_completion_t *comp = uct_sep_op(elem)->comp;

    uct_sep_op_list_push(&iface->tx.free_ops, elem);
    uct_invoke_completion(comp, status);
}

void uct_sep_op_complete_flush(uct_sep_iface_t *iface,
                               const struct mlx5_cqe64 *cqe,
                               ucs_queue_elem_t *elem, ucs_status_t status)
{
    /* A cancelling flush has done its job. Any other one reports that
     * operations before it have failed. */
    if (ucs_unlikely(status != UCS_OK) && (status == UCS_ERR_CANCELED)) {
        status = UCS_OK;
    }
    uct_sep_op_finish(&iface->tx.free_ops, elem, status);
}

void uct_sep_op_release_desc(uct_sep_iface_t *iface,
                             const struct mlx5_cqe64 *cqe,
                             ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_sep_op_list_push(&iface->tx.free_descs, elem);
}

void uct_sep_op_complete_desc(uct_sep_iface_t *iface,
                              const struct mlx5_cqe64 *cqe,
                              ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_sep_op_finish_desc(iface, elem, status);
}

void uct_sep_op_complete_get_bcopy(uct_sep_iface_t *iface,
                                   const struct mlx5_cqe64 *cqe,
                                   ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_sep_op_t *op = uct_sep_op(elem);

    if ((status == UCS_OK) && (op->unpack_cb != NULL)) {
        op->unpack_cb(op->arg,
                      uct_sep_cqe_has_data(cqe) ? uct_sep_cqe_data(cqe) :
                                                  uct_sep_op_buffer(op),
                      op->length);
    }
    uct_sep_op_finish_desc(iface, elem, status);
}

/* Extended atomics of 4 bytes return the old value in big endian, all of 8
 * bytes in host order: atomic_req_8B_endianness_mode is about the latter
 * only, and about memory. In a completion it is always big endian (UCX,
 * rc_mlx5_iface.c: treat the response as big-endian when it arrives in the
 * CQE). */
#define UCT_SEP_OP_DEFINE_FETCH(_name, _type, _cqe_to_host, _memory_to_host) \
    void uct_sep_op_complete_##_name(uct_sep_iface_t *iface, \
                                     const struct mlx5_cqe64 *cqe, \
                                     ucs_queue_elem_t *elem, \
                                     ucs_status_t status) \
    { \
        uct_sep_op_t *op = uct_sep_op(elem); \
\
        if ((status == UCS_OK) && (op->result != NULL)) { \
            *(_type*)op->result = \
                    uct_sep_cqe_has_data(cqe) ? \
                            _cqe_to_host(*(const _type*)uct_sep_cqe_data( \
                                    cqe)) : \
                            _memory_to_host(*(const _type*)uct_sep_op_buffer( \
                                    op)); \
        } \
        uct_sep_op_finish(&iface->tx.free_small, elem, status); \
    }

UCT_SEP_OP_DEFINE_FETCH(fetch32, uint32_t, be32toh, be32toh)
UCT_SEP_OP_DEFINE_FETCH(fetch64, uint64_t, be64toh, )

void uct_sep_op_keep_result(uct_sep_op_t *op, const struct mlx5_cqe64 *cqe)
{
    const void *data = uct_sep_cqe_data(cqe);

    if (op->handler == uct_sep_op_complete_get_bcopy) {
        memcpy((void*)uct_sep_op_buffer(op), data, op->length);
    } else if ((op->handler == uct_sep_op_complete_fetch32) &&
               (op->result != NULL)) {
        *(uint32_t*)op->result = be32toh(*(const uint32_t*)data);
        op->result             = NULL;
    } else if ((op->handler == uct_sep_op_complete_fetch64) &&
               (op->result != NULL)) {
        *(uint64_t*)op->result = be64toh(*(const uint64_t*)data);
        op->result             = NULL;
    }
}
