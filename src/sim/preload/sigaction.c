/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Signal handlers: SIGBUS is the device's, and SIGTRAP while it steps threads;
 * other handlers of them get what is not for the device. Handlers of other
 * signals may ring doorbells, whatever they block, but not while the device is
 * at work in their thread.
 */

#include <sim/doorbell/defer.h>
#include <sim/doorbell/trap.h>
#include <sim/libc/real.h>
#include <sim/preload/export.h>

#include <errno.h>
#include <signal.h>
#include <stddef.h>

/* Headers declare these for other standards, or for old programs only. */
sighandler_t __sysv_signal(int sig, sighandler_t handler);
sighandler_t sysv_signal(int sig, sighandler_t handler);
sighandler_t bsd_signal(int sig, sighandler_t handler);


MLX5SIM_EXPORT MLX5SIM_EARLY int
sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction changed;
    sigset_t set;

    if (act != NULL) {
        changed = *act;
        sigdelset(&changed.sa_mask, SIGBUS);
        sigdelset(&changed.sa_mask, SIGTRAP);
        act     = &changed;
    }

    if (mlx5sim_trap_is_installed(sig)) {
        mlx5sim_trap_set_user(sig, act, old);
        return 0;
    }

    mlx5sim_defer_set(&set);
    return (sigismember(&set, sig) == 1) ?
           mlx5sim_defer_sigaction(sig, act, old) :
           REAL(sigaction)(sig, act, old);
}

MLX5SIM_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;

    if (mlx5sim_trap_is_installed(sig)) {
        return (sigaction(sig, &act, &old) == 0) ? old.sa_handler : SIG_ERR;
    }

    /* the C library knows the flags, which siginterrupt() may have changed */
    if ((sigaction(sig, NULL, &old) != 0) ||
        (REAL(signal)(sig, handler) == SIG_ERR) ||
        (REAL(sigaction)(sig, NULL, &act) != 0) ||
        (sigaction(sig, &act, NULL) != 0)) {
        return SIG_ERR;
    }
    return old.sa_handler;
}

/* The C library's other ways end in its own sigaction(), and not in the one
 * above. Programs that are compiled for POSIX or ISO C, and not for GNU, call
 * __sysv_signal() where they say signal(). */
MLX5SIM_EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
    struct sigaction act = {
        .sa_handler = handler,
        .sa_flags   = SA_RESETHAND | SA_NODEFER
    };
    struct sigaction old;

    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }

    return (sigaction(sig, &act, &old) == 0) ? old.sa_handler : SIG_ERR;
}

MLX5SIM_EXPORT sighandler_t sysv_signal(int sig, sighandler_t handler)
{
    return __sysv_signal(sig, handler);
}

MLX5SIM_EXPORT sighandler_t bsd_signal(int sig, sighandler_t handler)
{
    return signal(sig, handler);
}

MLX5SIM_EXPORT sighandler_t ssignal(int sig, sighandler_t handler)
{
    return signal(sig, handler);
}

MLX5SIM_EXPORT sighandler_t sigset(int sig, sighandler_t handler)
{
    struct sigaction act = {.sa_handler = handler};
    int is_hold          = handler == SIG_HOLD;
    struct sigaction old;
    sigset_t set, mask;

    sigemptyset(&set);
    if ((handler == SIG_ERR) || (sigaddset(&set, sig) != 0)) {
        errno = EINVAL;
        return SIG_ERR;
    }

    if ((sigaction(sig, is_hold ? NULL : &act, &old) != 0) ||
        (sigprocmask(is_hold ? SIG_BLOCK : SIG_UNBLOCK, &set, &mask) != 0)) {
        return SIG_ERR;
    }
    return (sigismember(&mask, sig) == 1) ? SIG_HOLD : old.sa_handler;
}

MLX5SIM_EXPORT int sigignore(int sig)
{
    struct sigaction act = {.sa_handler = SIG_IGN};

    return sigaction(sig, &act, NULL);
}
