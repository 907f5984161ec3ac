/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/doorbell/wc.h>
#include <sim/check/report.h>
#include <sim/config/seed.h>
#include <sim/engine/mlx5_def.h>
#include <sim/insn/insn.h>
#include <sim/objs/store.h>
#include <sim/uar/layout.h>

#include <dlfcn.h>
#include <endian.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Stores that a thread may have in its buffers; processors have room for 4 to
 * 12 blocks */
#define MLX5SIM_WC_MAX        8

/* Frames of a stack that are remembered */
#define MLX5SIM_WC_FRAMES     16

/* What the handler itself may add to a stack */
#define MLX5SIM_WC_OWN_FRAMES 8

/* For mlx5sim_seed_draw() */
#define MLX5SIM_WC_SEED       0x5743

#define MLX5SIM_WC_TRAP_FLAG  0x100 /* RFLAGS.TF */

typedef struct {
    unsigned num;
    void     *frames[MLX5SIM_WC_FRAMES];
} mlx5sim_wc_stack_t;

/* A store that the device does not see yet */
typedef struct {
    mlx5sim_uar_t      *uar;
    mlx5sim_doorbell_t db;
    uint64_t           left; /* instructions until it does */
    mlx5sim_wc_stack_t stack;
} mlx5sim_wc_entry_t;

/* Buffers of a thread */
typedef struct mlx5sim_wc {
    pid_t              tid;
    unsigned           num;
    mlx5sim_wc_entry_t entries[MLX5SIM_WC_MAX];
    int                is_stepped;
    uint64_t           mask;  /* signals it blocks when it is not stepped */
    mlx5sim_wc_stack_t stack; /* of the store that is looked at now */
    struct mlx5sim_wc  *next; /* in mlx5sim_wc_threads */
} mlx5sim_wc_t;

/* A register of a page */
enum {
    MLX5SIM_WC_REG_ARM = MLX5SIM_UUARS_PER_UAR,
    MLX5SIM_WC_REGS
};

/* What was stored to a register so far */
typedef struct {
    uint32_t count;
    uint32_t bf_qpn;    /* QP of the last store if it was a BlueFlame copy */
    uint32_t bf_offset; /* buffer that this copy went to */
} mlx5sim_wc_reg_t;

static __thread mlx5sim_wc_t mlx5sim_wc;

static unsigned mlx5sim_wc_max;
static pthread_mutex_t mlx5sim_wc_mutex = PTHREAD_MUTEX_INITIALIZER;
static mlx5sim_wc_t *mlx5sim_wc_threads; /* those with entries */
static mlx5sim_wc_reg_t mlx5sim_wc_regs[MLX5SIM_MAX_UARS][MLX5SIM_WC_REGS];


void mlx5sim_wc_init(unsigned max)
{
    void *frames[2];

    mlx5sim_wc_max = max;
    if (max > 0) {
        mlx5sim_seed_tell();
        /* the first call loads a library */
        backtrace(frames, 2);
    }
}

int mlx5sim_wc_enabled(void)
{
    return mlx5sim_wc_max > 0;
}

void mlx5sim_wc_fork_child(void)
{
    pthread_mutex_init(&mlx5sim_wc_mutex, NULL);
    mlx5sim_wc_threads = NULL;
}

static unsigned mlx5sim_wc_reg(const mlx5sim_doorbell_t *db)
{
    unsigned reg;

    if (db->offset < MLX5SIM_UAR_OFFSET_BF) {
        return MLX5SIM_WC_REG_ARM;
    }

    reg = (db->offset - MLX5SIM_UAR_OFFSET_BF) / MLX5SIM_UAR_BF_REG;
    return (reg < MLX5SIM_UUARS_PER_UAR) ? reg : MLX5SIM_WC_REG_ARM;
}

/* The stack of the store, without the handler's part of it */
static void mlx5sim_wc_take_stack(const ucontext_t *uc,
                                  mlx5sim_wc_stack_t *stack)
{
    void *frames[MLX5SIM_WC_OWN_FRAMES + MLX5SIM_WC_FRAMES];
    void *ip = (void*)uc->uc_mcontext.gregs[REG_RIP];
    int i, num;

    stack->num       = 1;
    stack->frames[0] = ip;
    num = backtrace(frames, MLX5SIM_WC_OWN_FRAMES + MLX5SIM_WC_FRAMES);
    for (i = 0; (i < num) && (frames[i] != ip); ++i) {
    }
    while ((++i < num) && (stack->num < MLX5SIM_WC_FRAMES)) {
        stack->frames[stack->num++] = frames[i];
    }
}

static int mlx5sim_wc_append(char *text, size_t size, int length,
                             const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int mlx5sim_wc_append(char *text, size_t size, int length,
                             const char *fmt, ...)
{
    va_list ap;
    int ret;

    va_start(ap, fmt);
    ret = vsnprintf(text + length, size - length, fmt, ap);
    va_end(ap);
    return ((ret < 0) || ((size_t)ret >= size - length)) ? (int)size - 1 :
                                                           length + ret;
}

static int mlx5sim_wc_print_stack(char *text, size_t size, int length,
                                  const char *title, pid_t tid,
                                  const mlx5sim_wc_stack_t *stack)
{
    const char *file;
    Dl_info info;
    unsigned i;

    length = mlx5sim_wc_append(text, size, length,
                               "mlx5sim:   %s, thread %d:\n", title, (int)tid);
    for (i = 0; i < stack->num; ++i) {
        if (dladdr(stack->frames[i], &info) == 0) {
            memset(&info, 0, sizeof(info));
        }
        file   = (info.dli_fname != NULL) ? info.dli_fname : "?";
        file   = (strrchr(file, '/') != NULL) ? strrchr(file, '/') + 1 : file;
        length = mlx5sim_wc_append(text, size, length,
                                   "mlx5sim:     %p %s (%s+0x%zx)\n",
                                   stack->frames[i],
                                   (info.dli_sname != NULL) ? info.dli_sname :
                                                              "?",
                                   file, (size_t)((char*)stack->frames[i] -
                                                  (char*)info.dli_fbase));
    }
    return length;
}

static void mlx5sim_wc_report(mlx5sim_chk_t chk, mlx5sim_uar_t *uar,
                              const mlx5sim_doorbell_t *db, pid_t tid,
                              const mlx5sim_wc_stack_t *stack)
{
    const mlx5sim_wc_t *self = &mlx5sim_wc;
    char text[4096];
    int length;

    if (!mlx5sim_report_enabled()) {
        return;
    }

    length = mlx5sim_wc_print_stack(text, sizeof(text), 0, "kept store", tid,
                                    stack);
    mlx5sim_wc_print_stack(text, sizeof(text), length, "this store", self->tid,
                           &self->stack);
    mlx5sim_report_dump(chk, "UAR", mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar),
                        text, "%u bytes stored at offset 0x%x by thread %d at "
                        "%p, while %s stored at %p may not be visible yet",
                        db->length, db->offset, (int)self->tid,
                        self->stack.frames[0],
                        (tid == self->tid) ? "what it" : "what another thread",
                        stack->frames[0]);
}

/* Find a store to the same register that is still kept. The stores of other
 * threads come first, as they can't be waited for. The mutex is held. */
static const mlx5sim_wc_entry_t *
mlx5sim_wc_find(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db, pid_t *tid_p)
{
    const mlx5sim_wc_entry_t *entry, *found = NULL;
    const mlx5sim_wc_t *wc;
    unsigned i;

    for (wc = mlx5sim_wc_threads; wc != NULL; wc = wc->next) {
        for (i = 0; i < wc->num; ++i) {
            entry = &wc->entries[i];
            if ((entry->uar != uar) ||
                (mlx5sim_wc_reg(&entry->db) != mlx5sim_wc_reg(db))) {
                continue;
            }
            if (wc != &mlx5sim_wc) {
                *tid_p = wc->tid;
                return entry;
            }
            *tid_p = wc->tid;
            found  = entry;
        }
    }
    return found;
}

/* Compare a store with those that are kept. @return whether one of the same
 * thread is */
static int mlx5sim_wc_compare(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db)
{
    const mlx5sim_wc_entry_t *found;
    mlx5sim_wc_stack_t stack = {.num = 0};
    pid_t tid                = 0;

    pthread_mutex_lock(&mlx5sim_wc_mutex);
    found = mlx5sim_wc_find(uar, db, &tid);
    if (found != NULL) {
        stack = found->stack;
    }
    pthread_mutex_unlock(&mlx5sim_wc_mutex);

    if (found == NULL) {
        return 0;
    }

    if (tid == mlx5sim_wc.tid) {
        mlx5sim_wc_report(MLX5SIM_CHK_WC_ORDER, uar, db, tid, &stack);
        return 1;
    }

    /* Stores to arm completion queues are complete in themselves, those of
     * several threads need no order */
    if (mlx5sim_wc_reg(db) != MLX5SIM_WC_REG_ARM) {
        mlx5sim_wc_report(MLX5SIM_CHK_WC_RACE, uar, db, tid, &stack);
    }
    return 0;
}

/* Count the store; BlueFlame copies of a QP that follow each other must go to
 * different buffers. Another owner of the register may have a toggle of its
 * own. */
static uint32_t
mlx5sim_wc_count(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db)
{
    uint32_t index = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar);
    mlx5sim_wc_reg_t *reg, last;
    uint32_t qpn = 0;

    reg = &mlx5sim_wc_regs[index][mlx5sim_wc_reg(db)];
    if ((db->offset >= MLX5SIM_UAR_OFFSET_BF) &&
        (db->length > MLX5SIM_UAR_DOORBELL)) {
        memcpy(&qpn, db->data + offsetof(mlx5sim_ctrl_seg_t, qpn_ds),
               sizeof(qpn));
        qpn = be32toh(qpn) >> 8;
    }

    pthread_mutex_lock(&mlx5sim_wc_mutex);
    last           = *reg;
    reg->bf_qpn    = qpn;
    reg->bf_offset = db->offset;
    reg->count     = last.count + 1;
    pthread_mutex_unlock(&mlx5sim_wc_mutex);

    if ((qpn != 0) && (last.bf_qpn == qpn) && (last.bf_offset == db->offset)) {
        mlx5sim_report_obj(MLX5SIM_CHK_BF_BUFFER, &uar->o, "UAR", index,
                           "QP 0x%x: BlueFlame copy to offset 0x%x, as the one "
                           "before", qpn, db->offset);
    }
    return last.count;
}

/* For how many instructions a store is kept. A buffer is full after a copy of a
 * block, so it is often written out at once. */
static uint64_t mlx5sim_wc_duration(mlx5sim_uar_t *uar,
                                    const mlx5sim_doorbell_t *db,
                                    uint32_t count)
{
    uint64_t drawn = mlx5sim_seed_draw(MLX5SIM_WC_SEED,
                                       (uint64_t)mlx5sim_obj_index(
                                               MLX5SIM_OBJ_UAR, uar) *
                                       MLX5SIM_WC_REGS + mlx5sim_wc_reg(db),
                                       count);

    return ((drawn % 4) == 0) ? 0 : 1 + ((drawn / 4) % mlx5sim_wc_max);
}

static void mlx5sim_wc_link(mlx5sim_wc_t *wc)
{
    wc->next           = mlx5sim_wc_threads;
    mlx5sim_wc_threads = wc;
}

static void mlx5sim_wc_unlink(mlx5sim_wc_t *wc)
{
    mlx5sim_wc_t **p = &mlx5sim_wc_threads;

    while ((*p != NULL) && (*p != wc)) {
        p = &(*p)->next;
    }
    if (*p != NULL) {
        *p = wc->next;
    }
}

/* Make one store visible */
static void mlx5sim_wc_evict(mlx5sim_wc_t *wc, unsigned i)
{
    mlx5sim_doorbell_t db = wc->entries[i].db;
    mlx5sim_uar_t *uar    = wc->entries[i].uar;

    pthread_mutex_lock(&mlx5sim_wc_mutex);
    --wc->num;
    memmove(&wc->entries[i], &wc->entries[i + 1],
            (wc->num - i) * sizeof(wc->entries[0]));
    if (wc->num == 0) {
        mlx5sim_wc_unlink(wc);
    }
    pthread_mutex_unlock(&mlx5sim_wc_mutex);

    mlx5sim_doorbell_ring(uar, &db);
}

static void mlx5sim_wc_evict_all(mlx5sim_wc_t *wc)
{
    while (wc->num > 0) {
        mlx5sim_wc_evict(wc, 0);
    }
}

/* Make those visible that have been kept for long enough */
static void mlx5sim_wc_evict_old(mlx5sim_wc_t *wc)
{
    unsigned i = 0;

    while (i < wc->num) {
        if (wc->entries[i].left == 0) {
            mlx5sim_wc_evict(wc, i);
        } else {
            --wc->entries[i].left;
            ++i;
        }
    }
}

void mlx5sim_wc_enter(const ucontext_t *uc)
{
    mlx5sim_wc_t *wc = &mlx5sim_wc;

    if (mlx5sim_wc_max == 0) {
        return;
    }

    if (wc->tid == 0) {
        wc->tid = gettid();
    }

    /* The kernel clears the flag for signal handlers: one interrupted the
     * thread, and is what stores now */
    if (!(uc->uc_mcontext.gregs[REG_EFL] & MLX5SIM_WC_TRAP_FLAG)) {
        mlx5sim_wc_evict_all(wc);
    }
    mlx5sim_wc_take_stack(uc, &wc->stack);
}

void mlx5sim_wc_store(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db)
{
    mlx5sim_wc_t *wc = &mlx5sim_wc;
    mlx5sim_wc_entry_t *entry;
    uint32_t count;

    /* The doorbell record and the queue are compared with the store when it is
     * made: before the device sees it, the next work request may be there */
    mlx5sim_doorbell_check(uar, db);
    if ((mlx5sim_wc_max == 0) || (uar->kind == MLX5SIM_UAR_NC) || !db->known) {
        mlx5sim_doorbell_ring(uar, db);
        return;
    }

    count = mlx5sim_wc_count(uar, db);
    if (mlx5sim_wc_compare(uar, db) || (wc->num == MLX5SIM_WC_MAX)) {
        mlx5sim_wc_evict_all(wc);
    }

    pthread_mutex_lock(&mlx5sim_wc_mutex);
    if (wc->num == 0) {
        mlx5sim_wc_link(wc);
    }
    entry        = &wc->entries[wc->num++];
    entry->uar   = uar;
    entry->db    = *db;
    entry->left  = mlx5sim_wc_duration(uar, db, count);
    entry->stack = wc->stack;
    pthread_mutex_unlock(&mlx5sim_wc_mutex);
}

/* Signals that a thread blocks, of which the kernel's frame has 64 */
static void mlx5sim_wc_mask_get(const ucontext_t *uc, uint64_t *mask_p)
{
    memcpy(mask_p, &uc->uc_sigmask, sizeof(*mask_p));
}

static void mlx5sim_wc_mask_set(ucontext_t *uc, uint64_t mask)
{
    memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

static void mlx5sim_wc_step_begin(mlx5sim_wc_t *wc, ucontext_t *uc)
{
    static const int sync[] = {SIGBUS, SIGTRAP, SIGSEGV, SIGILL, SIGFPE,
                               SIGABRT};
    uint64_t mask           = ~0ul;
    unsigned i;

    if (!wc->is_stepped) {
        mlx5sim_wc_mask_get(uc, &wc->mask);
        for (i = 0; i < sizeof(sync) / sizeof(sync[0]); ++i) {
            mask &= ~(1ul << (sync[i] - 1));
        }
        mlx5sim_wc_mask_set(uc, mask);
        wc->is_stepped = 1;
    }
    uc->uc_mcontext.gregs[REG_EFL] |= MLX5SIM_WC_TRAP_FLAG;
}

static void mlx5sim_wc_step_end(mlx5sim_wc_t *wc, ucontext_t *uc)
{
    if (wc->is_stepped) {
        mlx5sim_wc_mask_set(uc, wc->mask);
        wc->is_stepped                  = 0;
        uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)MLX5SIM_WC_TRAP_FLAG;
    }
}

void mlx5sim_wc_leave(ucontext_t *uc)
{
    mlx5sim_wc_t *wc = &mlx5sim_wc;

    if (mlx5sim_wc_max == 0) {
        return;
    }

    mlx5sim_wc_evict_old(wc);
    if ((wc->num > 0) &&
        mlx5sim_insn_orders_stores(
                (const void*)uc->uc_mcontext.gregs[REG_RIP])) {
        mlx5sim_wc_evict_all(wc);
    }

    if (wc->num > 0) {
        mlx5sim_wc_step_begin(wc, uc);
    } else {
        mlx5sim_wc_step_end(wc, uc);
    }
}

/* Whether a signal waits that the thread does not block itself */
static int mlx5sim_wc_is_interrupted(const mlx5sim_wc_t *wc)
{
    uint64_t pending;
    sigset_t set;

    if (sigpending(&set) != 0) {
        return 0;
    }

    memcpy(&pending, &set, sizeof(pending));
    return (pending & ~wc->mask) != 0;
}

/* Whether it was the trap flag that raised the signal. In a virtual machine,
 * the processor's reason (DR6.BS) is lost now and then, and Linux takes the
 * trap for the instruction INT1, which no thread executes while it is stepped:
 * it orders stores. */
static int mlx5sim_wc_is_step(const siginfo_t *info, const ucontext_t *uc)
{
    return (info->si_code == TRAP_TRACE) ||
           ((info->si_code == TRAP_BRKPT) &&
            (uc->uc_mcontext.gregs[REG_EFL] & MLX5SIM_WC_TRAP_FLAG));
}

int mlx5sim_wc_step(const siginfo_t *info, ucontext_t *uc)
{
    if (!mlx5sim_wc.is_stepped || !mlx5sim_wc_is_step(info, uc)) {
        return 0;
    }

    if (mlx5sim_wc_is_interrupted(&mlx5sim_wc)) {
        mlx5sim_wc_evict_all(&mlx5sim_wc);
    }
    mlx5sim_wc_leave(uc);
    return 1;
}

void mlx5sim_wc_interrupt(void)
{
    mlx5sim_wc_evict_all(&mlx5sim_wc);
}
