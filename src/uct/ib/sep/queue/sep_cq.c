/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_shortage.h>

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <ucs/type/status.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>


/* PRM, CQ doorbell: offset in the UAR page, and the command in the first word,
 * next to bits 28-29 with the sequence number and bits 0-23 with the index */
#define UCT_SEP_CQ_DOORBELL       0x20
#define UCT_SEP_CQ_DB_REQ_NOT     (0u << 24)
#define UCT_SEP_CQ_DB_REQ_NOT_SOL (1u << 24)


static ucs_status_t uct_sep_cq_map(uct_sep_cq_t *cq, const char *name)
{
    struct mlx5dv_cq dv_cq  = {};
    struct mlx5dv_obj dv    = {};
    struct mlx5_cqe64 *cqe;
    int ret;

    dv.cq.in  = cq->cq;
    dv.cq.out = &dv_cq;
    ret = mlx5dv_init_obj(&dv, MLX5DV_OBJ_CQ);
    if (ret != 0) {
        ucs_error("%s: mlx5dv_init_obj(CQ) failed: %s", name, strerror(ret));
        return UCS_ERR_IO_ERROR;
    }

    if (dv_cq.cqe_size != cq->stride * sizeof(struct mlx5_cqe64)) {
        ucs_error("%s: completion queue has entries of %u bytes instead of "
                  "%zu: unset MLX5_CQE_SIZE", name, dv_cq.cqe_size,
                  cq->stride * sizeof(struct mlx5_cqe64));
        return UCS_ERR_UNSUPPORTED;
    }

    if ((((uintptr_t)dv_cq.buf % UCT_SEP_CQ_TURN_SIZE(cq->stride)) != 0) ||
        ((dv_cq.cqe_cnt % UCT_SEP_CQ_TURN) != 0)) {
        ucs_error("%s: unexpected layout of the completion queue: %u entries "
                  "at %p", name, dv_cq.cqe_cnt, dv_cq.buf);
        return UCS_ERR_UNSUPPORTED;
    }

    cq->start  = (struct mlx5_cqe64*)dv_cq.buf + cq->stride - 1;
    cq->end    = cq->start + (dv_cq.cqe_cnt * cq->stride);
    cq->length = dv_cq.cqe_cnt;
    cq->dbrec  = dv_cq.dbrec;
    cq->uar    = dv_cq.cq_uar;
    cq->cqn    = dv_cq.cqn;
    cq->next   = cq->start;
    cq->owner  = 0;
    cq->ci     = 0;

    /* An entry that was never written belongs to the device, so the owner bit
     * is all that has to be looked at. */
    for (cqe = cq->start; cqe < cq->end; cqe += cq->stride) {
        cqe->op_own = (MLX5_CQE_INVALID << 4) | MLX5_CQE_OWNER_MASK;
    }

    return UCS_OK;
}

ucs_status_t uct_sep_cq_create_dv(uct_sep_cq_t *cq, struct ibv_context *context,
                                  unsigned length, const char *name)
{
    struct ibv_cq_init_attr_ex attr    = {};
    struct mlx5dv_cq_init_attr dv_attr = {};
    struct ibv_cq_ex *cq_ex;
    ucs_status_t status;

    attr.cqe          = length;
    attr.channel      = cq->channel;
    attr.wc_flags     = IBV_WC_STANDARD_FLAGS;
    dv_attr.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    dv_attr.cqe_size  = cq->stride * sizeof(struct mlx5_cqe64);
    cq_ex = mlx5dv_create_cq(context, &attr, &dv_attr);
    if (cq_ex == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    cq->cq = ibv_cq_ex_to_cq(cq_ex);
    status = uct_sep_cq_map(cq, name);
    if (status != UCS_OK) {
        ibv_destroy_cq(cq->cq);
    }
    return status;
}

ucs_status_t uct_sep_cq_init(uct_sep_cq_t *cq, struct ibv_context *context,
                             unsigned length, unsigned stride,
                             uct_sep_cq_create_func_t create, const char *name)
{
    ucs_status_t status;

    memset(cq, 0, sizeof(*cq));
    cq->stride = stride;

    cq->channel = ibv_create_comp_channel(context);
    if (cq->channel == NULL) {
        ucs_error("%s: ibv_create_comp_channel() failed: %m", name);
        status = UCS_ERR_IO_ERROR;
        goto err;
    }

    status = ucs_sys_fcntl_modfl(cq->channel->fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        goto err_destroy_channel;
    }

    status = create(cq, context, length, name);
    if (status == UCS_ERR_NO_RESOURCE) {
        ucs_error("%s: could not create a completion queue of %u entries: "
                  "%m%s", name, length,
                  uct_sep_shortage_hint(
                          errno, ". Reduce UCX_SEP_RX_QUEUE_LEN or "
                          "UCX_SEP_TX_CQ_LEN; if the device has no UAR page "
                          "left, run fewer processes on it"));
        status = UCS_ERR_IO_ERROR;
    }
    if (status != UCS_OK) {
        goto err_destroy_channel;
    }

    uct_sep_account_add_cq(cq->cq);
    return UCS_OK;

err_destroy_channel:
    ibv_destroy_comp_channel(cq->channel);
err:
    return status;
}

void uct_sep_cq_cleanup(uct_sep_cq_t *cq)
{
    unsigned count;
    int ret;

    /* ibv_destroy_cq() waits until all events read were acknowledged */
    (void)uct_sep_cq_read_events(cq, &count);
    if (cq->unacked > 0) {
        ibv_ack_cq_events(cq->cq, cq->unacked);
    }

    uct_sep_account_remove_cq(cq->cq);
    ret = ibv_destroy_cq(cq->cq);
    if (ret != 0) {
        ucs_warn("ibv_destroy_cq(0x%x) failed: %s", cq->cqn, strerror(ret));
    }

    ret = ibv_destroy_comp_channel(cq->channel);
    if (ret != 0) {
        ucs_warn("ibv_destroy_comp_channel() failed: %s", strerror(ret));
    }
}

void uct_sep_cq_end_turn(uct_sep_cq_t *cq)
{
    uct_sep_cq_begin_anew(cq);
}

unsigned uct_sep_cq_count(const uct_sep_cq_t *cq)
{
    unsigned count = 0, limit = cq->length;
    unsigned middle;

    /* There is room for more */
    while (limit - count > 1) {
        middle = (count + limit) / 2;
        if (uct_sep_cq_has(cq, middle)) {
            count = middle;
        } else {
            limit = middle;
        }
    }
    return count;
}

int uct_sep_cq_may_have(const uct_sep_cq_t *cq, uint32_t qpn)
{
    const struct mlx5_cqe64 *cqe;

    for (cqe = cq->start; cqe < cq->end; cqe += cq->stride) {
        if ((mlx5dv_get_cqe_opcode((struct mlx5_cqe64*)cqe) !=
             MLX5_CQE_INVALID) &&
            ((be32toh(cqe->sop_drop_qpn) & UCT_SEP_QPN_MASK) == qpn)) {
            return 1;
        }
    }
    return 0;
}

void uct_sep_cq_arm(uct_sep_cq_t *cq, int solicited)
{
    uint32_t doorbell;

    uct_sep_cq_publish(cq);
    doorbell = ((cq->arm_sn & 3) << 28) | (uct_sep_cq_ci(cq) & 0xffffffu) |
               (solicited ? UCT_SEP_CQ_DB_REQ_NOT_SOL : UCT_SEP_CQ_DB_REQ_NOT);

    cq->dbrec[1] = htobe32(doorbell);
    /* The device compares both; the doorbell says what has been seen, so nobody
     * has to look again behind it */
    ucs_memory_bus_store_fence();
    *(volatile uint64_t*)UCS_PTR_BYTE_OFFSET(cq->uar, UCT_SEP_CQ_DOORBELL) =
            htobe64(((uint64_t)doorbell << 32) | cq->cqn);
    ucs_memory_bus_store_fence();
}

ucs_status_t uct_sep_cq_read_events(uct_sep_cq_t *cq, unsigned *count_p)
{
    struct ibv_cq *event_cq;
    void *event_context;

    *count_p = 0;
    while (ibv_get_cq_event(cq->channel, &event_cq, &event_context) == 0) {
        ++cq->arm_sn;
        ++cq->unacked;
        ++(*count_p);
    }

    if (errno != EAGAIN) {
        ucs_error("ibv_get_cq_event(0x%x) failed: %m", cq->cqn);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}
