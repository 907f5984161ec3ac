/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/queue/cq.h"
#include "sim/check/report.h"
#include "sim/objs/clock.h"
#include "sim/objs/mem.h"
#include "sim/objs/pcie.h"
#include "sim/objs/store.h"
#include "sim/queue/chan.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#define MLX5SIM_CI_MASK      0xffffffu  /* doorbell record and arm: 24 bits */
#define MLX5SIM_CQE_OWNER    0x1
#define MLX5SIM_CQE_INVALID  0xf        /* opcode of a CQE never written */
/* opcode of the mark at the end of a resized ring */
#define MLX5SIM_CQE_RESIZE_CQ 0x5
#define MLX5SIM_ARM_SN_SHIFT 28
#define MLX5SIM_ARM_SOLICITED (1u << 24) /* MLX5_CQ_DB_REQ_NOT_SOL */


static mlx5sim_proc_t *mlx5sim_cq_proc(const mlx5sim_cq_t *cq)
{
    return mlx5sim_proc_by_tag(atomic_load(&cq->o.owner));
}

static uint64_t mlx5sim_cq_slot(const mlx5sim_cq_t *cq, uint32_t pi)
{
    return cq->buf + (uint64_t)(pi & (cq->num_cqes - 1)) * cq->cqe_size;
}

/* Whether slot @a pi holds a CQE of that lap */
static int mlx5sim_cq_slot_valid(const mlx5sim_cq_t *cq, uint32_t pi)
{
    mlx5sim_proc_t *proc = mlx5sim_cq_proc(cq);
    uint8_t op_own;

    if ((proc == NULL) ||
        (mlx5sim_mem_read(proc, mlx5sim_cq_slot(cq, pi) + cq->cqe_size - 1,
                          &op_own, 1) != 0)) {
        return 0;
    }

    return ((op_own >> 4) != MLX5SIM_CQE_INVALID) &&
           ((op_own & MLX5SIM_CQE_OWNER) == !!(pi & cq->num_cqes));
}

static void mlx5sim_cq_notify(mlx5sim_cq_t *cq)
{
    struct ib_uverbs_comp_event_desc desc = {.cq_handle = cq->o.user_handle};

    if (cq->chan == 0) {
        cq->armed = 0;
        return;
    }

    /* ibv_destroy_cq() waits for the acknowledgement of every event counted.
     * One that finds the channel full is tried again with the next CQE. */
    mlx5sim_unsure_begin(&cq->unsure);
    if (mlx5sim_chan_write(mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, cq->chan - 1),
                           &desc, sizeof(desc)) == 0) {
        cq->armed = 0;
        ++cq->events;
    }
    mlx5sim_unsure_end(&cq->unsure);
}

void mlx5sim_cq_lock(mlx5sim_cq_t *cq)
{
    mlx5sim_qp_obj_t *qp;

    if (mlx5sim_lock(&cq->lock) == 0) {
        return;
    }

    /* Somebody died in here. If the CQE became visible, the consumer may have
     * taken it: that slot is gone. If not, the next CQE goes there. */
    if (mlx5sim_cq_slot_valid(cq, cq->pi)) {
        ++cq->pi;
    }

    if (cq->pusher != 0) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, cq->pusher - 1);
        if (qp->claim.cq_pi == cq->pi) {
            qp->claim.pushing = 0;
        }
        cq->pusher = 0;
    }

    /* and nobody knows whether it raised the event */
    if (cq->armed != 0) {
        mlx5sim_cq_notify(cq);
    }
}

static int mlx5sim_cq_read_ci(mlx5sim_cq_t *cq, const mlx5sim_proc_t *proc,
                              uint32_t *ci_p)
{
    uint32_t ci;

    if (atomic_load(&cq->o.owner) == mlx5sim_self_tag) {
        ci = *(volatile uint32_t*)(uintptr_t)cq->db;
    } else if (mlx5sim_mem_read(proc, cq->db, &ci, sizeof(ci)) != 0) {
        return -1;
    }

    *ci_p = be32toh(ci) & MLX5SIM_CI_MASK;
    return 0;
}

/* Entries that the driver has not taken, as of the last consumer index read.
 * Marks of a resize are taken at once, but reach the doorbell record with the
 * next poll. */
static uint32_t mlx5sim_cq_used(const mlx5sim_cq_t *cq)
{
    uint32_t marks = (cq->ci_cache == cq->mark_ci) ? cq->marks : 0;

    return (cq->pi - cq->ci_cache - marks) & MLX5SIM_CI_MASK;
}

/* Whether one more CQE fits, -1 if the owner is gone. The doorbell record is
 * read only if it seems not to, as that costs a system call when the CQ is
 * another process'. With the bit "overrun ignore" of the CQ context (the kernel
 * sets it for IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) nobody looks at the consumer
 * index, and applications need not write it: UCX's release builds do not. */
static int mlx5sim_cq_has_room(mlx5sim_cq_t *cq, const mlx5sim_proc_t *proc)
{
    uint32_t used;

    if (cq->ignore_overrun) {
        return 1;
    }

    used = mlx5sim_cq_used(cq);
    if (used < cq->num_cqes) {
        return 1;
    }

    if (mlx5sim_cq_read_ci(cq, proc, &cq->ci_cache) != 0) {
        return -1;
    }

    used = mlx5sim_cq_used(cq);
    if (used > cq->num_cqes) {
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_CI, cq, "consumer index 0x%x, "
                          "producer index 0x%x", cq->ci_cache,
                          cq->pi & MLX5SIM_CI_MASK);
        cq->ci_cache = cq->pi & MLX5SIM_CI_MASK;
        return 1;
    }

    return used < cq->num_cqes;
}

static int mlx5sim_cq_write(mlx5sim_cq_t *cq, const mlx5sim_proc_t *proc,
                            uint8_t *bytes)
{
    uint64_t addr = mlx5sim_cq_slot(cq, cq->pi);
    size_t head   = cq->cqe_size - 1;
    struct iovec local[2], remote[2];
    uint8_t *own;

    if (atomic_load(&cq->o.owner) == mlx5sim_self_tag) {
        own = (uint8_t*)(uintptr_t)addr;
        memcpy(own, bytes, head);
        __atomic_store_n(&own[head], bytes[head], __ATOMIC_RELEASE);
        return 0;
    }

    /* the ownership byte is a piece of its own: pieces are written in order,
     * bytes within a piece need not be */
    local[0]  = (struct iovec){bytes, head};
    local[1]  = (struct iovec){bytes + head, 1};
    remote[0] = (struct iovec){(void*)(uintptr_t)addr, head};
    remote[1] = (struct iovec){(void*)(uintptr_t)(addr + head), 1};
    return mlx5sim_mem_writev(proc, local, 2, remote, 2, cq->cqe_size);
}

int mlx5sim_cq_push(mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe,
                    mlx5sim_claim_t *claim)
{
    mlx5sim_proc_t *proc = mlx5sim_cq_proc(cq);
    mlx5sim_cqe_t stamped;
    uint8_t bytes[128];
    int solicited, room;

    if (proc == NULL) {
        return -1;
    }

    mlx5sim_cq_lock(cq);

    if (cq->overrun) {
        goto err_unlock;
    }

    room = mlx5sim_cq_has_room(cq, proc);
    if (room < 0) {
        goto err_unlock;
    } else if (room == 0) {
        cq->overrun = 1;
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_OVERRUN, cq, "%u CQEs are not polled",
                          cq->num_cqes);
        mlx5sim_async_event(&cq->o, IBV_EVENT_CQ_ERR);
        goto err_unlock;
    }

    if (claim != NULL) {
        /* in this order: see mlx5sim_cq_lock() */
        claim->cq_pi   = cq->pi;
        atomic_thread_fence(memory_order_release);
        cq->pusher     = mlx5sim_obj_index(MLX5SIM_OBJ_QP, claim) + 1;
        atomic_thread_fence(memory_order_release);
        claim->pushing = 1;
        atomic_thread_fence(memory_order_release);
    }

    stamped           = *cqe;
    stamped.timestamp = mlx5sim_clock_now();
    mlx5sim_cqe_build(&stamped, cq->cqe_size, !!(cq->pi & cq->num_cqes), bytes);
    if (mlx5sim_cq_write(cq, proc, bytes) != 0) {
        cq->pusher = 0;
        goto err_unlock;
    }

    ++cq->pi;
    atomic_thread_fence(memory_order_release);
    cq->pusher = 0;
    ++cq->cqes;
    atomic_fetch_add_explicit(&proc->c.cqes, 1, memory_order_relaxed);
    mlx5sim_pcie_written(proc, 1);

    solicited = cqe->solicited || (cqe->syndrome != 0);
    if (solicited) {
        cq->sol_pi = cq->pi;
    }

    if ((cq->armed == 1) || ((cq->armed == 2) && solicited)) {
        mlx5sim_cq_notify(cq);
    }

    mlx5sim_unlock(&cq->lock);
    return 0;

err_unlock:
    mlx5sim_unlock(&cq->lock);
    return -1;
}

int mlx5sim_cq_resize(mlx5sim_cq_t *cq, uint64_t buf, uint32_t num_cqes,
                      uint32_t cqe_size)
{
    static const mlx5sim_cqe_t mark = {.opcode = MLX5SIM_CQE_RESIZE_CQ};
    mlx5sim_proc_t *proc            = mlx5sim_proc_self();
    int ret                         = -EINVAL;
    uint8_t bytes[128];

    mlx5sim_cq_lock(cq);

    if (cq->overrun || (mlx5sim_cq_has_room(cq, proc) != 1) ||
        (mlx5sim_cq_read_ci(cq, proc, &cq->ci_cache) != 0)) {
        goto out_unlock;
    }

    /* a CQ reports one entry less than it has */
    if (mlx5sim_cq_used(cq) >= num_cqes) {
        goto out_unlock;
    }

    mlx5sim_cqe_build(&mark, cq->cqe_size, !!(cq->pi & cq->num_cqes), bytes);
    ret = mlx5sim_cq_write(cq, proc, bytes);
    if (ret != 0) {
        ret = -EINVAL;
        goto out_unlock;
    }

    /* the driver copies the entries before the mark to behind it */
    cq->marks    = (cq->ci_cache == cq->mark_ci) ? (cq->marks + 1) : 1;
    cq->mark_ci  = cq->ci_cache;
    ++cq->pi;
    ++cq->sol_pi;
    cq->buf      = buf;
    cq->num_cqes = num_cqes;
    cq->cqe_size = cqe_size;

out_unlock:
    mlx5sim_unlock(&cq->lock);
    return ret;
}

void mlx5sim_cq_arm(mlx5sim_cq_t *cq, uint32_t sn_cmd_ci)
{
    uint32_t ci  = sn_cmd_ci & MLX5SIM_CI_MASK;
    int sol_only = !!(sn_cmd_ci & MLX5SIM_ARM_SOLICITED);
    uint32_t pending, sol_pending, record;

    mlx5sim_cq_lock(cq);

    /* not the consumer index: threads may arm a CQ at the same time */
    record = be32toh(((volatile uint32_t*)(uintptr_t)cq->db)[1]);
    if ((record ^ sn_cmd_ci) >> MLX5SIM_ARM_SN_SHIFT) {
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_ARM, cq, "armed with 0x%x, arm record "
                          "0x%x", sn_cmd_ci, record);
    }

    pending = (cq->pi - ci) & MLX5SIM_CI_MASK;
    if (pending > cq->num_cqes) {
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_ARM, cq, "armed with consumer index "
                          "0x%x, producer index is 0x%x", ci,
                          cq->pi & MLX5SIM_CI_MASK);
        pending = 0;
    }

    sol_pending = (cq->sol_pi - ci) & MLX5SIM_CI_MASK;
    cq->arm_sn  = (sn_cmd_ci >> MLX5SIM_ARM_SN_SHIFT) & 0x3;
    cq->armed   = sol_only ? 2 : 1;

    /* a CQE the application has not seen yet fires at once */
    if ((!sol_only && (pending != 0)) ||
        (sol_only && (sol_pending != 0) && (sol_pending <= pending))) {
        mlx5sim_cq_notify(cq);
    }

    mlx5sim_unlock(&cq->lock);
}
