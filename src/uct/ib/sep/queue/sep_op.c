/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_op.h>
#include <uct/ib/sep/compat/sep_compat_iface.h>

#include <uct/base/uct_iface.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <ucs/arch/cpu.h>


const struct mlx5_cqe64 uct_sep_op_no_cqe = {};

ucs_status_t uct_sep_op_mpool_init(ucs_mpool_t *mp)
{
    return uct_sep_compat_mpool_init(mp, sizeof(uct_sep_op_t), 0,
                                     UCS_SYS_CACHE_LINE_SIZE, 128, UINT_MAX,
                                     "sep_op");
}

void uct_sep_op_list_drain(uct_sep_op_list_t *list)
{
    while (list->head != NULL) {
        ucs_mpool_put_inline(uct_sep_op_list_pop(list));
    }
}

void uct_sep_txwq_purge(uct_sep_iface_t *iface, uct_sep_txwq_t *txwq,
                        ucs_status_t status)
{
    ucs_queue_elem_t *elem;

    while (!ucs_queue_is_empty(&txwq->outstanding)) {
        elem = ucs_queue_pull_non_empty(&txwq->outstanding);
        uct_sep_op(elem)->handler(iface, &uct_sep_op_no_cqe, elem, status);
    }
}

/* Handler of an operation whose user is being told: no longer needed, but not
 * to be released yet */
static void uct_sep_op_leave(uct_sep_iface_t *iface,
                             const struct mlx5_cqe64 *cqe,
                             ucs_queue_elem_t *elem, ucs_status_t status)
{
    uct_sep_op(elem)->ep = NULL;
}

/* Handler of an operation of any pool whose user has been told */
static void uct_sep_op_drop(uct_sep_iface_t *iface,
                            const struct mlx5_cqe64 *cqe,
                            ucs_queue_elem_t *elem, ucs_status_t status)
{
    ucs_mpool_put_inline(uct_sep_op(elem));
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
            op->handler = uct_sep_op_drop;
            op->comp    = NULL;
            op->ep      = NULL;
        }
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }
}
