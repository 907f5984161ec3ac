/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_WC_H_
#define MLX5SIM_WC_H_

#include <sim/doorbell/ring.h>
#include <sim/objs/obj.h>

#include <signal.h>
#include <ucontext.h>

/*
 * Write-combining buffers (MLX5SIM_WC). UAR pages with BlueFlame are mapped
 * write-combining: the processor may keep what a thread stores there until the
 * thread executes an instruction that orders stores, and no other order is
 * guaranteed (SDM 3A, 12.3; mlx5sim_insn_orders_stores()). Here the stores of a
 * thread wait for that, too: the thread is single-stepped by the trap flag, and
 * before each instruction it is decided whether they become visible now. They
 * do at the latest after a number of instructions that the seed chooses.
 *
 * Two stores whose order is not guaranteed, and should be, are reported when
 * the second one is made, whether or not it would have gone wrong this time.
 *
 * An interrupt empties the buffers, too. So asynchronous signals wait while a
 * thread is stepped, and end that.
 */

/** @param max  Instructions a store may be kept for; 0: the mode is off. */
void mlx5sim_wc_init(unsigned max);

/** Whether the mode is on. */
int mlx5sim_wc_enabled(void);

/** A store is about to be looked at. To be called at the beginning of the
 *  handler, with the context as the kernel made it. */
void mlx5sim_wc_enter(const ucontext_t *uc);

/** Keep a doorbell, or ring it if the page is not write-combining. */
void mlx5sim_wc_store(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db);

/** The end of a handler that has called @ref mlx5sim_wc_enter: decide what
 *  becomes visible before the thread goes on, and whether it is stepped. */
void mlx5sim_wc_leave(ucontext_t *uc);

/** SIGTRAP has come: if the trap flag raised it, the thread has executed one
 *  more instruction. @return 0 if that was not for us. */
int mlx5sim_wc_step(const siginfo_t *info, ucontext_t *uc);

/** Make all that the thread has stored visible; it is in a signal handler, or
 *  about to enter one. */
void mlx5sim_wc_interrupt(void);

/** Make the lock usable in a child of fork(). */
void mlx5sim_wc_fork_child(void);

#endif
