/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TRAP_H_
#define MLX5SIM_TRAP_H_

#include <signal.h>

/*
 * Doorbells. A store to a UAR page raises SIGBUS in the storing thread, because
 * the page lies beyond the end of its file. The handler interprets the store
 * (and those that follow), finds out which register was written and runs the
 * queue, then returns behind the stores. The signal is synchronous, so the
 * handler may do whatever a function called in place of the store could do.
 *
 * With write combining (wc.h) the thread then goes on step by step, each of
 * which raises SIGTRAP. Stores that have trapped often may be replaced
 * (patch.h): the same happens then without a signal.
 */

/** Take over SIGBUS and, if stores are kept in write-combining buffers or
 *  replaced, SIGTRAP, by which threads are stepped or wait.
 *  @param wc           Value of MLX5SIM_WC.
 *  @param patch_after  Value of MLX5SIM_PATCH_AFTER.
 *  @return 0 or -1/errno. */
int mlx5sim_trap_install(unsigned wc, unsigned patch_after);

/** Whether valgrind runs the program, which is known when the signals are
 *  taken. */
int mlx5sim_trap_is_valgrind(void);

/** Whether we have taken over a signal. */
int mlx5sim_trap_is_installed(int sig);

/** Set the handler of every such signal that is not ours: the application keeps
 *  its handler, we keep the signal.
 *  @param sig     One that is installed.
 *  @param action  NULL: leave it as it is.
 *  @param old_p   What it was, unless NULL. */
void mlx5sim_trap_set_user(int sig, const struct sigaction *action,
                           struct sigaction *old_p);

/**
 * Let no signal handler of the application run in this thread until
 * @ref mlx5sim_trap_allow. It may ring a doorbell, and would wait for ever for
 * a lock of the store that its own thread holds: an adapter goes on meanwhile.
 * Signals of faults stay as they are.
 *
 * @param [out] saved_p  What to give back.
 */
void mlx5sim_trap_defer(sigset_t *saved_p);

/** Let them run again: those that came meanwhile do so at once. */
void mlx5sim_trap_allow(const sigset_t *saved);

/** Around fork(): no instruction is half replaced in the child. */
void mlx5sim_trap_fork_prepare(void);
void mlx5sim_trap_fork_parent(void);

/** The same in the child; makes the locks usable. */
void mlx5sim_trap_fork_child(void);

#endif
