/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/defer.h>

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* With the address of a handler: that it wants more arguments, and that it is
 * called once only. No address in user space has these bits. */
#define MLX5SIM_DEFER_INFO     (1ull << 63)
#define MLX5SIM_DEFER_ONCE     (1ull << 62)
#define MLX5SIM_DEFER_ADDRESS  (MLX5SIM_DEFER_ONCE - 1)

typedef void (*mlx5sim_defer_info_t)(int, siginfo_t*, void*);

__thread mlx5sim_defer_thread_t mlx5sim_defer_thread;

/* The program's handlers, with the bits above; 0: none yet */
static _Atomic uint64_t mlx5sim_defer_handlers[_NSIG];


MLX5SIM_EARLY void mlx5sim_defer_set(sigset_t *set_p)
{
    sigfillset(set_p);
    sigdelset(set_p, SIGSEGV);
    sigdelset(set_p, SIGILL);
    sigdelset(set_p, SIGFPE);
    sigdelset(set_p, SIGTRAP);
    sigdelset(set_p, SIGABRT);
    sigdelset(set_p, SIGBUS);
}

/* The kernel's sets have 64 signals */
static void mlx5sim_defer_mask(uint64_t mask)
{
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* Signals that are blocked in the calling thread while it is in the device */
static uint64_t mlx5sim_defer_all(void)
{
    sigset_t set;
    uint64_t mask;

    mlx5sim_defer_set(&set);
    memcpy(&mask, &set, sizeof(mask));
    return mask;
}

static void mlx5sim_defer_call(int sig, siginfo_t *info, void *context)
{
    static const struct sigaction dfl = {.sa_handler = SIG_DFL};
    uint64_t handler = atomic_load(&mlx5sim_defer_handlers[sig]);
    void *function   = (void*)(uintptr_t)(handler & MLX5SIM_DEFER_ADDRESS);

    if (handler & MLX5SIM_DEFER_ONCE) {
        REAL(sigaction)(sig, &dfl, NULL);
    }
    if (handler & MLX5SIM_DEFER_INFO) {
        ((mlx5sim_defer_info_t)function)(sig, info, context);
    } else {
        ((sighandler_t)function)(sig);
    }
}

/* The kernel's handler */
static void mlx5sim_defer_handler(int sig, siginfo_t *info, void *context)
{
    mlx5sim_defer_thread_t *self = &mlx5sim_defer_thread;
    ucontext_t *uc               = context;
    uint64_t mask;

    if (!self->is_inside) {
        mlx5sim_defer_call(sig, info, context);
        return;
    }

    memcpy(&self->mask, &uc->uc_sigmask, sizeof(self->mask));
    self->info = *info;
    self->sig  = sig;
    mask       = self->mask | mlx5sim_defer_all();
    memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

/* Have it come again, for this thread, as it can't be called from here */
static void mlx5sim_defer_send(int sig, siginfo_t *info)
{
    pid_t pid = getpid();
    pid_t tid = syscall(SYS_gettid);

    if (syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info) != 0) {
        /* too many wait already: without what is known about it */
        (void)syscall(SYS_tgkill, pid, tid, sig);
    }
}

/* Apart, as getcontext() may return twice for all that the compiler knows */
static void __attribute__((noinline))
mlx5sim_defer_call_here(int sig, siginfo_t *info)
{
    ucontext_t context;

    (void)getcontext(&context);
    mlx5sim_defer_call(sig, info, &context);
}

/* All signals are still blocked, so those that came later stay behind */
void mlx5sim_defer_run(void)
{
    mlx5sim_defer_thread_t self = mlx5sim_defer_thread;
    struct sigaction action;
    uint64_t mask;

    mlx5sim_defer_thread.sig = 0;
    if ((REAL(sigaction)(self.sig, NULL, &action) != 0) ||
        (action.sa_sigaction != mlx5sim_defer_handler) ||
        (action.sa_flags & SA_ONSTACK)) {
        mlx5sim_defer_send(self.sig, &self.info);
    } else {
        memcpy(&mask, &action.sa_mask, sizeof(mask));
        if (!(action.sa_flags & SA_NODEFER)) {
            mask |= 1ull << (self.sig - 1);
        }
        mlx5sim_defer_mask(self.mask | mask);
        mlx5sim_defer_call_here(self.sig, &self.info);
    }
    mlx5sim_defer_mask(self.mask);
}

/* What the program has asked for, given what the kernel says */
static MLX5SIM_EARLY void
mlx5sim_defer_tell(uint64_t handler, struct sigaction *action)
{
    if (action->sa_sigaction != mlx5sim_defer_handler) {
        return;
    }

    action->sa_handler =
            (sighandler_t)(uintptr_t)(handler & MLX5SIM_DEFER_ADDRESS);
    if (!(handler & MLX5SIM_DEFER_INFO)) {
        action->sa_flags &= ~SA_SIGINFO;
    }
    if (handler & MLX5SIM_DEFER_ONCE) {
        action->sa_flags |= SA_RESETHAND;
    }
}

static MLX5SIM_EARLY uint64_t
mlx5sim_defer_wrap(const struct sigaction *action, struct sigaction *ours_p)
{
    uint64_t handler = (uintptr_t)action->sa_handler;

    *ours_p = *action;
    if ((action->sa_handler == SIG_DFL) || (action->sa_handler == SIG_IGN)) {
        return 0;
    }

    if (action->sa_flags & SA_SIGINFO) {
        handler |= MLX5SIM_DEFER_INFO;
    }
    if (action->sa_flags & SA_RESETHAND) {
        handler |= MLX5SIM_DEFER_ONCE;
    }
    ours_p->sa_sigaction = mlx5sim_defer_handler;
    ours_p->sa_flags    |= SA_SIGINFO;
    ours_p->sa_flags    &= ~SA_RESETHAND;
    return handler;
}

MLX5SIM_EARLY int
mlx5sim_defer_sigaction(int sig, const struct sigaction *action,
                        struct sigaction *old_p)
{
    uint64_t handler = 0, old_handler;
    struct sigaction ours;

    if ((sig <= 0) || (sig >= _NSIG) || (sig == SIGKILL) || (sig == SIGSTOP)) {
        return REAL(sigaction)(sig, action, old_p);
    }

    if (action != NULL) {
        handler = mlx5sim_defer_wrap(action, &ours);
        action  = &ours;
    }

    /* No lock, as handlers may call this and children inherit it. Of threads
     * that set the same signal at once, one has set the handler and perhaps
     * another one the mask. */
    old_handler = atomic_load(&mlx5sim_defer_handlers[sig]);
    if (handler != 0) {
        atomic_store(&mlx5sim_defer_handlers[sig], handler);
    }
    if (REAL(sigaction)(sig, action, old_p) != 0) {
        return -1;
    }

    if (old_p != NULL) {
        mlx5sim_defer_tell(old_handler, old_p);
    }
    return 0;
}
