/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/queue/cq.h>
#include <sim/check/report.h>
#include <sim/objs/clock.h>
#include <sim/objs/mem.h>
#include <sim/objs/pcie.h>
#include <sim/objs/shared.h>
#include <sim/objs/store.h>
#include <sim/queue/batch.h>
#include <sim/queue/chan.h>
#include <sim/trace/trace.h>

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#define MLX5SIM_CI_MASK      0xffffffu  /* doorbell record and arm: 24 bits */
#define MLX5SIM_CQE_OWNER    0x1
#define MLX5SIM_CQE_TAIL     4u   /* WQE counter, signature, opcode and owner:
                                   * where one place is written again and again,
                                   * they are read at once */
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
    return cq->collapsed ?
           cq->buf :
           cq->buf + (uint64_t)(pi & (cq->num_cqes - 1)) * cq->cqe_size;
}

/* Whether the only place that is used holds CQE @a pi. Its owner bit is also
 * that of the CQE before, so the whole tail is compared. */
static int mlx5sim_cq_place_valid(const mlx5sim_cq_t *cq, uint32_t pi)
{
    mlx5sim_proc_t *proc = mlx5sim_cq_proc(cq);
    uint32_t tail;

    return (proc != NULL) && ((cq->writing >> 32) == pi) &&
           (mlx5sim_mem_read(proc, cq->buf + cq->cqe_size - sizeof(tail), &tail,
                             sizeof(tail)) == 0) &&
           (tail == (uint32_t)cq->writing);
}

/* Whether slot @a pi holds a CQE of that lap */
static int mlx5sim_cq_slot_valid(const mlx5sim_cq_t *cq, uint32_t pi)
{
    mlx5sim_proc_t *proc = mlx5sim_cq_proc(cq);
    uint8_t op_own;

    if (cq->collapsed) {
        return mlx5sim_cq_place_valid(cq, pi);
    }

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

/* Completions that are held back */
static uint32_t mlx5sim_cq_held(const mlx5sim_cq_t *cq)
{
    return (cq->held_pi == cq->pi) ? cq->held : 0;
}

/* The slots of completions that are visible are taken, and what was in them is
 * not held back any more: one store for both */
static void mlx5sim_cq_advance(mlx5sim_cq_t *cq, uint32_t count)
{
    cq->pi  += count;
    atomic_thread_fence(memory_order_release);
    cq->held = 0;
}

/* The completion in slot @a pi was not written */
static void mlx5sim_cq_unclaim(mlx5sim_claim_t *claim, uint32_t pi)
{
    if (claim->cq_pi == pi) {
        claim->pushing = 0;
    }
}

void mlx5sim_cq_lock(mlx5sim_cq_t *cq)
{
    mlx5sim_qp_obj_t *qp;
    uint32_t held;

    if (mlx5sim_lock(&cq->lock) == 0) {
        return;
    }

    /* Somebody died in here. If the CQE became visible, the consumer may have
     * taken it: that slot is gone, and so are those of the block of which it is
     * the title. If not, the next CQE goes there. */
    held = mlx5sim_cq_held(cq);
    if (mlx5sim_cq_slot_valid(cq, cq->pi)) {
        mlx5sim_cq_advance(cq, (held > 0) ? held : 1);
        held = 0;
    }
    cq->held = held;

    if (cq->pusher != 0) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, cq->pusher - 1);
        mlx5sim_cq_unclaim(&qp->claim, cq->pi + held);
        mlx5sim_cq_unclaim(&qp->wire_claim, cq->pi + held);
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

/* Under the lock */
static void mlx5sim_cq_trace(mlx5sim_cq_t *cq, const mlx5sim_proc_t *proc)
{
    uint32_t ci, count;

    if (cq->ignore_overrun || (mlx5sim_cq_read_ci(cq, proc, &ci) != 0)) {
        return; /* without overruns it need not be kept */
    }

    count         = (ci - cq->ci_traced) & MLX5SIM_CI_MASK;
    cq->ci_traced = ci;
    if (count > 0) {
        mlx5sim_trace_poll(cq, count);
    }
}

void mlx5sim_cq_trace_polled(mlx5sim_cq_t *cq)
{
    mlx5sim_cq_lock(cq);
    mlx5sim_cq_trace(cq, mlx5sim_proc_self());
    mlx5sim_unlock(&cq->lock);
}

/* Entries that the driver has not taken, as of the last consumer index read.
 * Marks of a resize are taken at once, but reach the doorbell record with the
 * next poll. */
static uint32_t mlx5sim_cq_used(const mlx5sim_cq_t *cq)
{
    uint32_t marks = (cq->ci_cache == cq->mark_ci) ? cq->marks : 0;

    return (cq->pi + mlx5sim_cq_held(cq) - cq->ci_cache - marks) &
           MLX5SIM_CI_MASK;
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

/* The same if the ring is shared. @return whether it is */
static int mlx5sim_cq_write_shared(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                                   const uint8_t *bytes,
                                   const struct iovec *local,
                                   const struct iovec *remote, unsigned num)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (!mlx5sim_shared_write(proc, &cq->shared,
                                  (uintptr_t)remote[i].iov_base,
                                  local[i].iov_base, local[i].iov_len)) {
            return 0;
        }
    }

    return mlx5sim_shared_write(proc, &cq->shared, mlx5sim_cq_slot(cq, cq->pi),
                                bytes, cq->cqe_size);
}

/* Write a CQE into another process, after @a num other pieces of @a length
 * bytes in all; there is room for two more. */
static int mlx5sim_cq_write_pieces(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                                   uint8_t *bytes, struct iovec *local,
                                   struct iovec *remote, unsigned num,
                                   size_t length)
{
    uint64_t addr = mlx5sim_cq_slot(cq, cq->pi);
    size_t head   = cq->cqe_size - MLX5SIM_CQE_TAIL;

    if (mlx5sim_cq_write_shared(cq, proc, bytes, local, remote, num)) {
        return 0;
    }

    /* the end is a piece of its own: pieces are written in order, bytes within
     * a piece need not be */
    local[num]      = (struct iovec){bytes, head};
    local[num + 1]  = (struct iovec){bytes + head, MLX5SIM_CQE_TAIL};
    remote[num]     = (struct iovec){(void*)(uintptr_t)addr, head};
    remote[num + 1] = (struct iovec){(void*)(uintptr_t)(addr + head),
                                     MLX5SIM_CQE_TAIL};
    return mlx5sim_mem_writev(proc, local, num + 2, remote, num + 2,
                              length + cq->cqe_size);
}

static int mlx5sim_cq_write(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                            uint8_t *bytes)
{
    size_t head = cq->cqe_size - MLX5SIM_CQE_TAIL;
    struct iovec local[2], remote[2];
    uint32_t tail;
    uint8_t *slot;

    if (atomic_load(&cq->o.owner) == mlx5sim_self_tag) {
        slot = (uint8_t*)(uintptr_t)mlx5sim_cq_slot(cq, cq->pi);
        memcpy(slot, bytes, head);
        memcpy(&tail, bytes + head, sizeof(tail));
        __atomic_store_n((uint32_t*)(slot + head), tail, __ATOMIC_RELEASE);
        return 0;
    }

    return mlx5sim_cq_write_pieces(cq, proc, bytes, local, remote, 0, 0);
}

/* Count completions that have become visible, and say so if they are waited
 * for. */
static void mlx5sim_cq_written(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                               uint32_t count, unsigned pieces, int solicited)
{
    cq->cqes += count;
    atomic_fetch_add_explicit(&proc->c.cqes, count, memory_order_relaxed);
    mlx5sim_pcie_written(proc, pieces);

    if (solicited) {
        cq->sol_pi = cq->pi;
    }

    if ((cq->armed == 1) || ((cq->armed == 2) && solicited)) {
        mlx5sim_cq_notify(cq);
    }
}

/* Write a block of @a count completions: its arrays, and the title at last.
 * With CQEs of 128 bytes both are in the second halves of their slots, where
 * uct_ib_mlx5_get_cqe() of UCX looks for them. */
static int mlx5sim_cq_write_block(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                                  uint32_t count)
{
    uint32_t second = cq->cqe_size - MLX5SIM_ZIP_CQE;
    struct iovec local[MLX5SIM_ZIP_MAX / MLX5SIM_ZIP_ARRAY + 3], *piece = local;
    struct iovec remote[MLX5SIM_ZIP_MAX / MLX5SIM_ZIP_ARRAY + 3];
    unsigned owner     = !!(cq->pi & cq->num_cqes);
    unsigned num       = mlx5sim_zip_arrays(count);
    size_t length      = 0;
    uint8_t title[128] = {0};
    unsigned i, slot, bytes;

    for (i = 0; i < num; ++i, ++piece) {
        slot            = mlx5sim_zip_array(count, i, &bytes);
        piece->iov_base = cq->zip.mini[i * MLX5SIM_ZIP_ARRAY];
        piece->iov_len  = bytes;
        length         += bytes;
        remote[i]       = (struct iovec){
                (void*)(uintptr_t)(mlx5sim_cq_slot(cq, cq->pi + slot) + second),
                bytes};
    }

    mlx5sim_zip_title(&cq->zip, count, owner, title + second);
    if (atomic_load(&cq->o.owner) == mlx5sim_self_tag) {
        for (i = 0; i < num; ++i) {
            memcpy(remote[i].iov_base, local[i].iov_base, local[i].iov_len);
        }
        return mlx5sim_cq_write(cq, proc, title);
    }

    return mlx5sim_cq_write_pieces(cq, proc, title, local, remote, num, length);
}

/* Write what is held back. @return 0, or -1 if the owner is gone */
static int mlx5sim_cq_release(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc)
{
    uint32_t held = mlx5sim_cq_held(cq);

    if (held == 0) {
        return 0;
    }

    if (mlx5sim_cq_write_block(cq, proc, held) != 0) {
        cq->held = 0;
        return -1;
    }

    mlx5sim_cq_advance(cq, held);
    if (held > 1) {
        atomic_fetch_add_explicit(&proc->c.cqes_compressed, held,
                                  memory_order_relaxed);
    }
    mlx5sim_cq_written(cq, proc, held, 1 + mlx5sim_zip_arrays(held),
                       mlx5sim_zip_is_solicited(&cq->zip));
    return 0;
}

void mlx5sim_cq_settle(mlx5sim_cq_t *cq)
{
    mlx5sim_proc_t *proc;

    mlx5sim_cq_lock(cq);
    proc = mlx5sim_cq_proc(cq);
    if (proc != NULL) {
        (void)mlx5sim_cq_release(cq, proc);
    }
    mlx5sim_unlock(&cq->lock);
}

/* Whether a completion can be held back with those that are, and was stored as
 * the next of them. A CQ that is armed waits for this one. Blocks end where the
 * ring does: the kernel's mlx5e_cqes_update_owner() is prepared for others,
 * but uct_ib_mlx5_iface_cqe_unzip() of UCX 1.13 is not. */
static int mlx5sim_cq_hold(mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe)
{
    uint32_t held  = mlx5sim_cq_held(cq);
    uint32_t index = cq->pi & (cq->num_cqes - 1);

    return cq->compressed && (cq->armed == 0) &&
           (index + held < cq->num_cqes) &&
           mlx5sim_zip_put(&cq->zip, held, cqe) && mlx5sim_batch_join(cq);
}

/* Note which claim the completion in slot @a pi is of, in this order: see
 * mlx5sim_cq_lock() */
static void
mlx5sim_cq_claim(mlx5sim_cq_t *cq, mlx5sim_claim_t *claim, uint32_t pi)
{
    if (claim == NULL) {
        return;
    }

    claim->cq_pi   = pi;
    atomic_thread_fence(memory_order_release);
    cq->pusher     = mlx5sim_obj_index(MLX5SIM_OBJ_QP, claim) + 1;
    atomic_thread_fence(memory_order_release);
    claim->pushing = 1;
    atomic_thread_fence(memory_order_release);
}

/* Write a completion, or hold it back. @return 0, or -1 if the owner is gone */
static int mlx5sim_cq_put(mlx5sim_cq_t *cq, mlx5sim_proc_t *proc,
                          const mlx5sim_cqe_t *cqe, mlx5sim_claim_t *claim)
{
    int is_held = mlx5sim_cq_hold(cq, cqe);
    uint8_t bytes[128];
    uint32_t held, tail;

    if (!is_held && (mlx5sim_cq_held(cq) > 0)) {
        if (mlx5sim_cq_release(cq, proc) != 0) {
            return -1;
        }
        is_held = mlx5sim_cq_hold(cq, cqe);
    }

    held = mlx5sim_cq_held(cq);
    mlx5sim_cq_claim(cq, claim, cq->pi + held);
    if (is_held) {
        cq->holder  = mlx5sim_self_tag;
        if (held == 0) {
            cq->held = 0;
            atomic_thread_fence(memory_order_release);
            cq->held_pi = cq->pi;
        }
        atomic_thread_fence(memory_order_release);
        cq->held   = held + 1;
        atomic_thread_fence(memory_order_release);
        cq->pusher = 0;
        return 0;
    }

    mlx5sim_cqe_build(cqe, cq->cqe_size, !!(cq->pi & cq->num_cqes), bytes);
    if (cq->collapsed) {
        memcpy(&tail, bytes + cq->cqe_size - sizeof(tail), sizeof(tail));
        cq->writing = ((uint64_t)cq->pi << 32) | tail;
        atomic_thread_fence(memory_order_release);
    }
    if (mlx5sim_cq_write(cq, proc, bytes) != 0) {
        cq->pusher = 0;
        return -1;
    }

    mlx5sim_cq_advance(cq, 1);
    atomic_thread_fence(memory_order_release);
    cq->pusher = 0;
    mlx5sim_cq_written(cq, proc, 1, 1,
                       cqe->solicited || (cqe->syndrome != 0));
    return 0;
}

int mlx5sim_cq_push(mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe,
                    mlx5sim_claim_t *claim)
{
    mlx5sim_proc_t *proc = mlx5sim_cq_proc(cq);
    mlx5sim_cqe_t stamped;
    int room, ret = -1;

    if (proc == NULL) {
        return -1;
    }

    mlx5sim_cq_lock(cq);

    if (cq->overrun) {
        goto out_unlock;
    }

    room = mlx5sim_cq_has_room(cq, proc);
    if (room < 0) {
        goto out_unlock;
    } else if (room == 0) {
        (void)mlx5sim_cq_release(cq, proc);
        cq->overrun = 1;
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_OVERRUN, cq, "%u CQEs are not polled",
                          cq->num_cqes);
        mlx5sim_async_event(&cq->o, IBV_EVENT_CQ_ERR);
        goto out_unlock;
    }

    stamped           = *cqe;
    stamped.timestamp = mlx5sim_clock_now();
    ret               = mlx5sim_cq_put(cq, proc, &stamped, claim);
    if (mlx5sim_trace_is_on()) {
        mlx5sim_cq_trace(cq, proc);
        mlx5sim_trace_cqe(cq, &stamped);
    }

out_unlock:
    mlx5sim_unlock(&cq->lock);
    return ret;
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
    mlx5sim_shared_end(&cq->shared);
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

void mlx5sim_cq_share(mlx5sim_cq_t *cq)
{
    mlx5sim_shared_begin(cq->buf, (uint64_t)cq->num_cqes * cq->cqe_size,
                         &cq->shared);
}

void mlx5sim_cq_unshare(mlx5sim_cq_t *cq)
{
    mlx5sim_cq_lock(cq);
    mlx5sim_shared_end(&cq->shared);
    mlx5sim_unlock(&cq->lock);
}

void mlx5sim_cq_arm(mlx5sim_cq_t *cq, uint32_t sn_cmd_ci)
{
    uint32_t ci  = sn_cmd_ci & MLX5SIM_CI_MASK;
    int sol_only = !!(sn_cmd_ci & MLX5SIM_ARM_SOLICITED);
    uint32_t pending, sol_pending, record;

    mlx5sim_cq_lock(cq);
    if (mlx5sim_trace_is_on()) {
        mlx5sim_cq_trace(cq, mlx5sim_proc_self());
        mlx5sim_trace_arm(cq);
    }
    (void)mlx5sim_cq_release(cq, mlx5sim_proc_self());

    /* not the consumer index: threads may arm a CQ at the same time */
    record = be32toh(((volatile uint32_t*)(uintptr_t)cq->db)[1]);
    if ((record ^ sn_cmd_ci) >> MLX5SIM_ARM_SN_SHIFT) {
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_ARM, cq, "armed with 0x%x, arm record "
                          "0x%x", sn_cmd_ci, record);
    }

    /* the index of the next CQE to be read (mlx5_arm_cq() of libmlx5), which
     * can't be further behind than the ring is long. Who arms with the index
     * of someone who does not poll misses events on an adapter (UCX issue
     * 11728) */
    pending = (cq->pi - ci) & MLX5SIM_CI_MASK;
    if (pending > cq->num_cqes) {
        mlx5sim_report_cq(MLX5SIM_CHK_CQ_ARM, cq, "armed with consumer index "
                          "0x%x, producer index is 0x%x", ci,
                          cq->pi & MLX5SIM_CI_MASK);
        pending = 0;
    }

    sol_pending = (cq->sol_pi - ci) & MLX5SIM_CI_MASK;
    cq->arm_sn  = (sn_cmd_ci >> MLX5SIM_ARM_SN_SHIFT) & 0x3;
    /* a wish for the next CQE stays (IBTA C11-31 and C11-32) */
    cq->armed   = (sol_only && (cq->armed != 1)) ? 2 : 1;

    /* a CQE the application has not seen yet fires at once */
    if ((!sol_only && (pending != 0)) ||
        (sol_only && (sol_pending != 0) && (sol_pending <= pending))) {
        mlx5sim_cq_notify(cq);
    }

    mlx5sim_unlock(&cq->lock);
}
