/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Signal handlers: SIGBUS is the device's, and SIGTRAP while it steps threads;
 * other handlers of them get what is not for the device. Handlers of other
 * signals may ring doorbells, whatever they block.
 */

#include <sim/doorbell/trap.h>
#include <sim/libc/real.h>
#include <sim/preload/export.h>

#include <signal.h>
#include <stddef.h>


/* sa_sigaction is the same word */
static MLX5SIM_EARLY void mlx5sim_sigaction_note(int sig, sighandler_t handler)
{
    if ((handler != SIG_DFL) && (handler != SIG_IGN)) {
        mlx5sim_trap_note_handler(sig);
    }
}

MLX5SIM_EXPORT MLX5SIM_EARLY int
sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction changed;

    if (act != NULL) {
        mlx5sim_sigaction_note(sig, act->sa_handler);
        changed = *act;
        sigdelset(&changed.sa_mask, SIGBUS);
        sigdelset(&changed.sa_mask, SIGTRAP);
        act     = &changed;
    }

    if (!mlx5sim_trap_is_installed(sig)) {
        return REAL(sigaction)(sig, act, old);
    }

    mlx5sim_trap_set_user(sig, act, old);
    return 0;
}

MLX5SIM_EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;

    if (!mlx5sim_trap_is_installed(sig)) {
        mlx5sim_sigaction_note(sig, handler);
        return REAL(signal)(sig, handler);
    }

    sigaction(sig, &act, &old);
    return old.sa_handler;
}
