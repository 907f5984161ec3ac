/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "sep_cq.inl"
#include "sep_cqe.inl"
#include "sep_iface.h"

/*
 * Receives and sends come through the same queue: an idle call looks at one
 * byte.
 */

static UCS_F_NOINLINE unsigned
uct_sep_iface_poll(uct_sep_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned count = 0;
    unsigned opcode;

    do {
        /* Before any callback: it may progress as well */
        uct_sep_cq_pop(&iface->cq);

        opcode = cqe->op_own >> 4;
        if (ucs_likely(opcode == MLX5_CQE_RESP_SEND)) {
            uct_sep_iface_handle_recv(iface, cqe);
        } else if (ucs_likely(opcode == MLX5_CQE_REQ)) {
            uct_sep_iface_handle_send(iface, cqe);
        } else {
            uct_sep_iface_handle_other(iface, cqe);
        }

        if (++count >= iface->config.max_poll) {
            break;
        }
        cqe = uct_sep_cq_peek(&iface->cq);
    } while (cqe != NULL);

    uct_sep_cq_update_ci(&iface->cq);
    if (ucs_unlikely(iface->srq.num_empty > 0)) {
        uct_sep_srq_refill(&iface->srq);
    } else {
        uct_sep_srq_publish(&iface->srq);
    }
    return count;
}

unsigned uct_sep_iface_progress(uct_iface_h tl_iface)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    struct mlx5_cqe64 *cqe;

    cqe = uct_sep_cq_peek(&iface->cq);
    if (ucs_likely(cqe == NULL)) {
        return 0;
    }

    return uct_sep_iface_poll(iface, cqe);
}
