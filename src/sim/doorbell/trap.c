/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/doorbell/trap.h"
#include "sim/insn/insn.h"
#include "sim/uar/window.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MLX5SIM_EXPORT __attribute__((visibility("default")))
/* ThreadSanitizer installs handlers before it can bear instrumented code */
#define MLX5SIM_TRAP_EARLY __attribute__((no_sanitize("thread")))

/* A copy loop has a handful of instructions between two stores; what follows a
 * single 8-byte doorbell is not worth interpreting. */
#define MLX5SIM_TRAP_MAX_GAP  12
#define MLX5SIM_TRAP_MAX_RING 8
#define MLX5SIM_TRAP_BF_MASK  0xff
#define MLX5SIM_TRAP_BF       0x800
#define MLX5SIM_TRAP_ARM      0x20
/* BlueFlame copies are of whole blocks (PRM: WQEBB); longer ones come in parts */
#define MLX5SIM_TRAP_BLOCK    64

typedef int (*mlx5sim_sigaction_func_t)(int, const struct sigaction*,
                                        struct sigaction*);
typedef int (*mlx5sim_sigmask_func_t)(int, const sigset_t*, sigset_t*);

/* Stores of one signal, gathered into registers */
typedef struct {
    mlx5sim_insn_run_t run;
    uintptr_t          page;
    unsigned           num;
    mlx5sim_doorbell_t rings[MLX5SIM_TRAP_MAX_RING];
} mlx5sim_trap_t;

static struct sigaction mlx5sim_trap_user;
static pthread_mutex_t mlx5sim_trap_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_trap_installed;
static int mlx5sim_trap_valgrind;

/* First half of a doorbell that was written as two words in two signals */
static __thread mlx5sim_doorbell_t mlx5sim_trap_partial;


MLX5SIM_TRAP_EARLY static void *mlx5sim_trap_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

MLX5SIM_TRAP_EARLY static int
mlx5sim_trap_sigaction(int sig, const struct sigaction *act,
                       struct sigaction *old)
{
    static mlx5sim_sigaction_func_t func;

    if (func == NULL) {
        func = (mlx5sim_sigaction_func_t)mlx5sim_trap_next("sigaction");
    }
    return func(sig, act, old);
}

/* Bytes of the WQE that BlueFlame will carry, as far as one can tell by now */
static unsigned mlx5sim_trap_expected(const mlx5sim_doorbell_t *db)
{
    unsigned ds;

    if ((db->offset < MLX5SIM_TRAP_BF) || (db->length < 8)) {
        return 8;
    }

    if (!db->known) {
        return MLX5SIM_TRAP_BLOCK;
    }

    /* mlx5_wqe_ctrl_seg.qpn_ds: 16-byte units in the low bits, copied in whole
     * blocks of 64 */
    ds = db->data[7] & 0x3f;
    return (((ds * 16) + 63) & ~63u) > sizeof(db->data) ?
           sizeof(db->data) : (((ds * 16) + 63) & ~63u);
}

static void mlx5sim_trap_store(void *arg, uintptr_t addr, const void *data,
                               unsigned length)
{
    mlx5sim_trap_t *trap   = arg;
    uint32_t offset        = addr - trap->page;
    mlx5sim_doorbell_t *db = (trap->num > 0) ? &trap->rings[trap->num - 1] :
                                               NULL;

    /* glibc's memcpy of 64 bytes stores all of them twice on some machines */
    if ((db != NULL) && (data != NULL) && (offset >= db->offset) &&
        (offset + length <= db->offset + db->length) &&
        (memcmp(db->data + (offset - db->offset), data, length) == 0)) {
        return;
    }

    /* the next bytes of the register written last? */
    if ((db == NULL) || (offset != db->offset + db->length) ||
        (db->length + length > sizeof(db->data)) ||
        ((offset & MLX5SIM_TRAP_BF_MASK) == 0)) {
        db         = &trap->rings[trap->num++];
        db->page   = trap->page;
        db->offset = offset;
        db->length = 0;
        db->known  = 1;
    }

    if (data != NULL) {
        memcpy(db->data + db->length, data, length);
    } else {
        db->known = 0;
    }
    db->length += length;

    if (trap->num == MLX5SIM_TRAP_MAX_RING) {
        trap->run.stop = MLX5SIM_INSN_STOP_NOW;
    } else if (((db->offset == MLX5SIM_TRAP_ARM) && (db->length >= 8)) ||
               ((db->length > 8) &&
                (db->length >= mlx5sim_trap_expected(db)))) {
        trap->run.stop = MLX5SIM_INSN_STOP_SOON;
    }
}

static void mlx5sim_trap_ring(mlx5sim_uar_t *uar, mlx5sim_trap_t *trap)
{
    mlx5sim_doorbell_t *partial = &mlx5sim_trap_partial;
    mlx5sim_doorbell_t *db;
    unsigned i;

    for (i = 0; i < trap->num; ++i) {
        db = &trap->rings[i];
        if (!db->known) {
            mlx5sim_doorbell_ring(uar, db);
        } else if ((partial->length != 0) &&
                   (db->offset == partial->offset + partial->length)) {
            memcpy(partial->data + partial->length, db->data, 4);
            partial->length = 8;
            mlx5sim_doorbell_ring(uar, partial);
            partial->length = 0;
        } else if (db->length < 8) {
            *partial = *db;
        } else if ((db->offset >= MLX5SIM_TRAP_BF) &&
                   (db->offset & MLX5SIM_TRAP_BF_MASK)) {
            /* rest of a BlueFlame copy whose start was rung already */
        } else {
            mlx5sim_doorbell_ring(uar, db);
        }
    }
}

static int mlx5sim_trap_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    static mlx5sim_sigmask_func_t func;

    if (func == NULL) {
        func = (mlx5sim_sigmask_func_t)mlx5sim_trap_next("pthread_sigmask");
    }
    return func(how, set, old);
}

/* Not a doorbell: what would have happened without us */
static void mlx5sim_trap_chain(int sig, siginfo_t *info, void *context)
{
    struct sigaction user = mlx5sim_trap_user;
    struct sigaction dfl  = {.sa_handler = SIG_DFL};
    int is_sent           = info->si_code <= 0;
    ucontext_t *uc        = context;
    sigset_t mask;

    if (!(user.sa_flags & SA_SIGINFO) &&
        ((user.sa_handler == SIG_DFL) || (user.sa_handler == SIG_IGN))) {
        if (is_sent && (user.sa_handler == SIG_IGN)) {
            return;
        }

        /* an access repeats and ends the process */
        mlx5sim_trap_sigaction(sig, &dfl, NULL);
        if (is_sent) {
            raise(sig);
        }
        return;
    }

    if (user.sa_flags & SA_RESETHAND) {
        mlx5sim_trap_user = dfl;
    }

    /* the signals it wants blocked, not ours; it may ring doorbells, too */
    sigorset(&mask, &uc->uc_sigmask, &user.sa_mask);
    sigdelset(&mask, SIGBUS);
    mlx5sim_trap_sigmask(SIG_SETMASK, &mask, NULL);

    if (user.sa_flags & SA_SIGINFO) {
        user.sa_sigaction(sig, info, context);
    } else {
        user.sa_handler(sig);
    }
}

static void mlx5sim_trap_handler(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    mlx5sim_insn_window_t avoid[2];
    mlx5sim_trap_t trap;
    mlx5sim_uar_t *uar;
    ucontext_t *uc = context;

    memset(&trap.run, 0, sizeof(trap.run));
    uar = (info->si_code > 0) ?
          mlx5sim_window_find((uintptr_t)info->si_addr, &trap.run.window, avoid,
                              &trap.run.num_avoid) : NULL;
    if (uar == NULL) {
        mlx5sim_trap_chain(sig, info, context);
        errno = saved_errno;
        return;
    }

    trap.page          = trap.run.window.lo;
    trap.num           = 0;
    trap.run.avoid     = avoid;
    trap.run.vec_valid = !mlx5sim_trap_valgrind;
    trap.run.max_gap   = MLX5SIM_TRAP_MAX_GAP;
    trap.run.store_cb  = mlx5sim_trap_store;
    trap.run.arg       = &trap;
    if (mlx5sim_insn_run(uc, &trap.run) != MLX5SIM_INSN_OK) {
        const uint8_t *ip = (const uint8_t*)uc->uc_mcontext.gregs[REG_RIP];

        fprintf(stderr, "mlx5sim: cannot interpret the instruction at %p that "
                "accessed UAR address %p: %02x %02x %02x %02x %02x %02x %02x "
                "%02x %02x %02x; please report it\n", (void*)ip, info->si_addr,
                ip[0], ip[1], ip[2], ip[3], ip[4], ip[5], ip[6], ip[7], ip[8],
                ip[9]);
        abort();
    }

    atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.traps, 1,
                              memory_order_relaxed);
    mlx5sim_trap_ring(uar, &trap);
    errno = saved_errno;
}

int mlx5sim_trap_install(void)
{
    struct sigaction action = {.sa_sigaction = mlx5sim_trap_handler,
                               .sa_flags     = SA_SIGINFO | SA_RESTART};
    const char *preload     = getenv("LD_PRELOAD");
    int ret                 = 0;

    /* No asynchronous handler may run while the locks of the store are held: it
     * could ring a doorbell itself. Faults of our own stay fatal. */
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSEGV);
    sigdelset(&action.sa_mask, SIGILL);
    sigdelset(&action.sa_mask, SIGFPE);
    sigdelset(&action.sa_mask, SIGTRAP);
    sigdelset(&action.sa_mask, SIGABRT);

    pthread_mutex_lock(&mlx5sim_trap_mutex);
    if (!mlx5sim_trap_installed) {
        mlx5sim_trap_valgrind = (preload != NULL) &&
                                (strstr(preload, "vgpreload") != NULL);
        ret = mlx5sim_trap_sigaction(SIGBUS, &action, &mlx5sim_trap_user);
        mlx5sim_trap_installed = (ret == 0);
    }
    pthread_mutex_unlock(&mlx5sim_trap_mutex);

    return ret;
}

void mlx5sim_trap_fork_child(void)
{
    pthread_mutex_init(&mlx5sim_trap_mutex, NULL);
}

/* The application keeps the handler it wants, we keep the signal. Handlers of
 * other signals may ring doorbells, whatever they block. */
MLX5SIM_EXPORT MLX5SIM_TRAP_EARLY int
sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction changed, saved;

    if (act != NULL) {
        changed = *act;
        sigdelset(&changed.sa_mask, SIGBUS);
        act     = &changed;
    }

    if ((sig != SIGBUS) || !mlx5sim_trap_installed) {
        return mlx5sim_trap_sigaction(sig, act, old);
    }

    pthread_mutex_lock(&mlx5sim_trap_mutex);
    saved = mlx5sim_trap_user;
    if (act != NULL) {
        mlx5sim_trap_user = *act;
    }
    pthread_mutex_unlock(&mlx5sim_trap_mutex);

    if (old != NULL) {
        *old = saved;
    }
    return 0;
}

MLX5SIM_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
    static sighandler_t (*func)(int, sighandler_t);
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;

    if ((sig != SIGBUS) || !mlx5sim_trap_installed) {
        if (func == NULL) {
            func = (sighandler_t (*)(int, sighandler_t))mlx5sim_trap_next(
                    "signal");
        }
        return func(sig, handler);
    }

    sigaction(sig, &act, &old);
    return old.sa_handler;
}
