/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/trap.h>
#include <sim/doorbell/clock_page.h>
#include <sim/doorbell/defer.h>
#include <sim/doorbell/gather.h>
#include <sim/doorbell/patch.h>
#include <sim/doorbell/stray.h>
#include <sim/doorbell/wc.h>
#include <sim/engine/mlx5_def.h>
#include <sim/insn/insn.h>
#include <sim/libc/real.h>
#include <sim/objs/store.h>
#include <sim/uar/dm.h>
#include <sim/uar/layout.h>
#include <sim/uar/window.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy loop has a handful of instructions between two stores; the code after
 * a single 8-byte doorbell is not worth interpreting. */
#define MLX5SIM_TRAP_MAX_GAP  12

/* Bit of a page fault's error code: it was a store (SDM 3A, 4.7, "W/R") */
#define MLX5SIM_TRAP_ERR_WRITE 0x2

/* What is known about one signal */
typedef struct {
    mlx5sim_insn_run_t run;
    mlx5sim_gather_t   gather;
} mlx5sim_trap_t;

/* A signal that is the device's */
typedef struct {
    struct sigaction user; /* what the application wants */
    int              is_installed;
} mlx5sim_trap_signal_t;

static mlx5sim_trap_signal_t mlx5sim_trap_bus;
static mlx5sim_trap_signal_t mlx5sim_trap_trap;
static pthread_mutex_t mlx5sim_trap_mutex = PTHREAD_MUTEX_INITIALIZER;
static int mlx5sim_trap_valgrind;

static MLX5SIM_EARLY mlx5sim_trap_signal_t *mlx5sim_trap_signal(int sig)
{
    return (sig == SIGBUS) ? &mlx5sim_trap_bus :
           (sig == SIGTRAP) ? &mlx5sim_trap_trap : NULL;
}


static void mlx5sim_trap_store(void *arg, uintptr_t addr, const void *data,
                               unsigned length)
{
    mlx5sim_trap_t *trap = arg;

    switch (mlx5sim_gather_add(&trap->gather, addr, data, length)) {
    case MLX5SIM_GATHER_FULL:
        trap->run.stop = MLX5SIM_INSN_STOP_NOW;
        break;
    case MLX5SIM_GATHER_WHOLE:
        trap->run.stop = MLX5SIM_INSN_STOP_SOON;
        break;
    case MLX5SIM_GATHER_MORE:
        break;
    }
}

/* Not for the device: do what would have happened without us */
static void mlx5sim_trap_chain(int sig, siginfo_t *info, void *context)
{
    struct sigaction user = mlx5sim_trap_signal(sig)->user;
    struct sigaction dfl  = {.sa_handler = SIG_DFL};
    int is_sent           = info->si_code <= 0;
    ucontext_t *uc        = context;
    sigset_t mask;

    if (!(user.sa_flags & SA_SIGINFO) &&
        ((user.sa_handler == SIG_DFL) || (user.sa_handler == SIG_IGN))) {
        if (is_sent && (user.sa_handler == SIG_IGN)) {
            return;
        }

        /* an access repeats and ends the process; a breakpoint does not */
        REAL(sigaction)(sig, &dfl, NULL);
        if (is_sent || (sig == SIGTRAP)) {
            raise(sig);
        }
        return;
    }

    if (user.sa_flags & SA_RESETHAND) {
        mlx5sim_trap_signal(sig)->user = dfl;
    }

    /* block the signals it wants blocked, not ours; it may ring doorbells,
     * too */
    sigorset(&mask, &uc->uc_sigmask, &user.sa_mask);
    sigdelset(&mask, SIGBUS);
    if (mlx5sim_trap_trap.is_installed) {
        sigdelset(&mask, SIGTRAP);
    }
    REAL(pthread_sigmask)(SIG_SETMASK, &mask, NULL);

    if (user.sa_flags & SA_SIGINFO) {
        user.sa_sigaction(sig, info, context);
    } else {
        user.sa_handler(sig);
    }
}

/* How to interpret an access to the page @a run->window */
static void mlx5sim_trap_run_set(mlx5sim_insn_run_t *run,
                                 const mlx5sim_insn_window_t *avoid)
{
    run->avoid         = avoid;
    run->vec_valid     = !mlx5sim_trap_valgrind;
    run->max_gap       = MLX5SIM_TRAP_MAX_GAP;
    /* What comes behind a fence, the store that unlocks a queue for instance,
     * must not be seen before the device has been rung. Valgrind has one thread
     * at a time, and could not go on with any flags. */
    run->stop_at_order = !mlx5sim_trap_valgrind;
}

/* Prepare to interpret a store to the page @a trap->run.window */
static void
mlx5sim_trap_begin(mlx5sim_trap_t *trap, const mlx5sim_insn_window_t *avoid)
{
    mlx5sim_gather_begin(&trap->gather, trap->run.window.lo);
    mlx5sim_trap_run_set(&trap->run, avoid);
    trap->run.store_cb = mlx5sim_trap_store;
    trap->run.arg      = trap;
}

/* @param rip  Of the instruction */
static void mlx5sim_trap_refuse(uintptr_t rip, uintptr_t addr)
{
    const uint8_t *ip = (const uint8_t*)rip;

    fprintf(stderr, "mlx5sim: cannot interpret the instruction at %p that "
            "accessed UAR address %p: %02x %02x %02x %02x %02x %02x %02x "
            "%02x %02x %02x; please report it\n", (void*)ip, (void*)addr,
            ip[0], ip[1], ip[2], ip[3], ip[4], ip[5], ip[6], ip[7], ip[8],
            ip[9]);
    abort();
}

/* The page of the clock is mapped for loads only */
static void mlx5sim_trap_no_store(void *arg, uintptr_t addr, const void *data,
                                  unsigned length)
{
    (void)arg;
    (void)addr;
    (void)data;
    (void)length;
}

/* If a load was from the page of the clock, let it have the time, and those
 * behind it: libmlx5 reads one half, the other, and the first again.
 * @return whether it was */
static int mlx5sim_trap_load(ucontext_t *uc, uintptr_t addr)
{
    mlx5sim_insn_run_t run = {0};
    mlx5sim_insn_window_t avoid[2];

    if (!mlx5sim_window_find_clock(addr, &run.window, avoid, &run.num_avoid)) {
        return 0;
    }

    mlx5sim_trap_run_set(&run, avoid);
    run.store_cb = mlx5sim_trap_no_store;
    run.load_cb  = mlx5sim_clock_page_load;
    mlx5sim_wc_enter(uc);
    if (mlx5sim_insn_run(uc, &run) != MLX5SIM_INSN_OK) {
        mlx5sim_trap_refuse(uc->uc_mcontext.gregs[REG_RIP], addr);
    }
    mlx5sim_wc_leave(uc);
    return 1;
}

static void mlx5sim_trap_handler(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    ucontext_t *uc  = context;
    uintptr_t rip   = uc->uc_mcontext.gregs[REG_RIP];
    uintptr_t rsp   = uc->uc_mcontext.gregs[REG_RSP];
    mlx5sim_insn_window_t avoid[2];
    mlx5sim_trap_t trap;
    mlx5sim_uar_t *uar;

    /* No store is taken for a load of the clock, whatever was mapped there when
     * somebody last looked: it would be lost */
    if ((info->si_code > 0) &&
        !(uc->uc_mcontext.gregs[REG_ERR] & MLX5SIM_TRAP_ERR_WRITE) &&
        mlx5sim_trap_load(uc, (uintptr_t)info->si_addr)) {
        errno = saved_errno;
        return;
    }

    memset(&trap.run, 0, sizeof(trap.run));
    uar = (info->si_code > 0) ?
          mlx5sim_window_find((uintptr_t)info->si_addr, &trap.run.window, avoid,
                              &trap.run.num_avoid) : NULL;
    if (uar == NULL) {
        if (info->si_code > 0) {
            if (mlx5sim_clock_page_fault((uintptr_t)info->si_addr) ||
                mlx5sim_dm_fault((uintptr_t)info->si_addr)) {
                errno = saved_errno;
                return;
            }
            mlx5sim_stray_explain((uintptr_t)info->si_addr);
        }
        mlx5sim_wc_interrupt();
        mlx5sim_trap_chain(sig, info, context);
        errno = saved_errno;
        return;
    }

    mlx5sim_wc_enter(uc);
    mlx5sim_trap_begin(&trap, avoid);
    if (mlx5sim_insn_run(uc, &trap.run) != MLX5SIM_INSN_OK) {
        mlx5sim_trap_refuse(rip, (uintptr_t)info->si_addr);
    }

    atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.traps, 1,
                              memory_order_relaxed);
    mlx5sim_gather_ring(&trap.gather, uar);
    mlx5sim_wc_leave(uc);
    mlx5sim_patch_count(rip, rsp);
    errno = saved_errno;
}

static void mlx5sim_trap_step(int sig, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    if (!mlx5sim_wc_step(info, context) && !mlx5sim_patch_wait(context)) {
        mlx5sim_wc_interrupt();
        mlx5sim_trap_chain(sig, info, context);
    }
    errno = saved_errno;
}

void mlx5sim_trap_defer(sigset_t *saved_p)
{
    sigset_t set;

    mlx5sim_defer_set(&set);
    REAL(pthread_sigmask)(SIG_BLOCK, &set, saved_p);
}

void mlx5sim_trap_allow(const sigset_t *saved)
{
    REAL(pthread_sigmask)(SIG_SETMASK, saved, NULL);
}

/* In place of a store that would trap. What the snapshot of the mappings does
 * not have goes to the handler, which makes a new one. */
static int mlx5sim_trap_patched(mlx5sim_insn_cpu_t *cpu, uintptr_t addr,
                                uintptr_t stack_min)
{
    mlx5sim_insn_window_t avoid[2];
    mlx5sim_trap_t trap;
    mlx5sim_uar_t *uar;

    memset(&trap.run, 0, sizeof(trap.run));
    uar = mlx5sim_window_find_known(addr, &trap.run.window, avoid,
                                    &trap.run.num_avoid);
    if (uar == NULL) {
        return 0;
    }

    mlx5sim_defer_begin();
    mlx5sim_trap_begin(&trap, avoid);
    trap.run.stack_min = stack_min;
    if (mlx5sim_insn_cpu_run(cpu, &trap.run) == MLX5SIM_INSN_OK) {
        mlx5sim_gather_ring(&trap.gather, uar);
    }
    mlx5sim_defer_end();
    return trap.run.num_insns > 0;
}

/* In place of memcpy() */
static int mlx5sim_trap_copy(uintptr_t addr, const void *data, size_t length)
{
    mlx5sim_insn_window_t avoid[2];
    mlx5sim_trap_t trap;
    mlx5sim_uar_t *uar;
    unsigned num;
    size_t done;

    if ((length > MLX5SIM_UAR_BF_BUFFER) ||
        ((uar = mlx5sim_window_find_known(addr, &trap.run.window, avoid,
                                          &num)) == NULL) ||
        (length > trap.run.window.hi - addr)) {
        return 0;
    }

    mlx5sim_defer_begin();
    mlx5sim_gather_begin(&trap.gather, trap.run.window.lo);
    for (done = 0; done < length; done += MLX5SIM_WQEBB) {
        mlx5sim_gather_add(&trap.gather, addr + done, (const char*)data + done,
                           (length - done < MLX5SIM_WQEBB) ? length - done :
                                                             MLX5SIM_WQEBB);
    }
    mlx5sim_gather_ring(&trap.gather, uar);
    mlx5sim_defer_end();
    return 1;
}

static int
mlx5sim_trap_take(int sig, void (*handler)(int, siginfo_t*, void*))
{
    struct sigaction action       = {.sa_sigaction = handler,
                                     .sa_flags     = SA_SIGINFO | SA_RESTART};
    mlx5sim_trap_signal_t *signal = mlx5sim_trap_signal(sig);
    int ret;

    mlx5sim_defer_set(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGBUS);
    ret = REAL(sigaction)(sig, &action, &signal->user);
    signal->is_installed = (ret == 0);
    return ret;
}

int mlx5sim_trap_install(unsigned wc, unsigned patch_after)
{
    const char *preload = getenv("LD_PRELOAD");
    int ret             = 0;

    pthread_mutex_lock(&mlx5sim_trap_mutex);
    if (!mlx5sim_trap_bus.is_installed) {
        mlx5sim_trap_valgrind = (preload != NULL) &&
                                (strstr(preload, "vgpreload") != NULL);
        if (mlx5sim_trap_valgrind && (wc > 0)) {
            fprintf(stderr, "mlx5sim: MLX5SIM_WC=%u has no effect: valgrind "
                    "does not have the trap flag\n", wc);
            wc = 0;
        }

        mlx5sim_wc_init(wc);
        if (mlx5sim_patch_init(((wc > 0) || mlx5sim_trap_valgrind) ?
                               0 : patch_after, mlx5sim_trap_patched,
                               mlx5sim_trap_copy) ||
            (wc > 0)) {
            ret = mlx5sim_trap_take(SIGTRAP, mlx5sim_trap_step);
        }
        if (ret == 0) {
            ret = mlx5sim_trap_take(SIGBUS, mlx5sim_trap_handler);
        }
    }
    pthread_mutex_unlock(&mlx5sim_trap_mutex);

    return ret;
}

int mlx5sim_trap_is_valgrind(void)
{
    return mlx5sim_trap_valgrind;
}

void mlx5sim_trap_fork_prepare(void)
{
    mlx5sim_patch_fork_prepare();
}

void mlx5sim_trap_fork_parent(void)
{
    mlx5sim_patch_fork_done();
}

void mlx5sim_trap_fork_child(void)
{
    pthread_mutex_init(&mlx5sim_trap_mutex, NULL);
    mlx5sim_wc_fork_child();
    mlx5sim_patch_fork_done();
}

MLX5SIM_EARLY int mlx5sim_trap_is_installed(int sig)
{
    const mlx5sim_trap_signal_t *signal = mlx5sim_trap_signal(sig);

    return (signal != NULL) && signal->is_installed;
}

void mlx5sim_trap_set_user(int sig, const struct sigaction *action,
                           struct sigaction *old_p)
{
    mlx5sim_trap_signal_t *signal = mlx5sim_trap_signal(sig);
    struct sigaction saved;

    pthread_mutex_lock(&mlx5sim_trap_mutex);
    saved = signal->user;
    if (action != NULL) {
        signal->user = *action;
    }
    pthread_mutex_unlock(&mlx5sim_trap_mutex);

    if (old_p != NULL) {
        *old_p = saved;
    }
}
