/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PATCH_H_
#define MLX5SIM_PATCH_H_

#include <sim/doorbell/patch_call.h>
#include <sim/doorbell/patch_jump.h>

#include <ucontext.h>

/*
 * Doorbells without signals (MLX5SIM_PATCH_AFTER). A signal takes more than all
 * that the device does. So a store that has raised some is replaced by a jump
 * to the device, and memcpy() by another function for a library that copies to
 * the device by it. What can't be replaced goes on raising signals.
 */

/** @param after  Value of MLX5SIM_PATCH_AFTER; 0: nothing is replaced.
 *  @param store  Called in place of a store.
 *  @param copy   Called in place of memcpy().
 *  @return Whether anything will be replaced. If so, SIGTRAP must lead to
 *          @ref mlx5sim_patch_wait. */
int mlx5sim_patch_init(unsigned after, mlx5sim_patch_store_t store,
                       mlx5sim_patch_copy_t copy);

/** An instruction has rung by a signal. Replaces it, or the call that led to
 *  it, if that happened often enough. To be called by the handler.
 *  @param rip  The instruction.
 *  @param rsp  The thread's stack pointer there. */
void mlx5sim_patch_count(uintptr_t rip, uintptr_t rsp);

/** SIGTRAP has come: if it was for an instruction that another thread is about
 *  to replace, wait until it is, and go on there. @return 0 if not. */
int mlx5sim_patch_wait(ucontext_t *uc);

/** Around fork(): wait until nothing is being replaced, and go on. */
void mlx5sim_patch_fork_prepare(void);
void mlx5sim_patch_fork_done(void);

#endif
