/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PATCH_JUMP_H_
#define MLX5SIM_PATCH_JUMP_H_

#include <sim/insn/insn.h>

#include <stdint.h>

/*
 * Jumps in place of stores (patch.h). A jump leads to a page near the program,
 * where the registers are saved. There is a copy of the store, too, for what is
 * not the device's. Nothing else in the program changes: if the store has fewer
 * bytes than a jump, those that follow become a part of its displacement, so
 * that the page has to be where they say.
 */

/** In place of a store.
 *  @param cpu   State of the thread at the store, to be advanced.
 *  @param addr  Where it stores.
 *  @param stack_min  As in mlx5sim_insn_run_t.
 *  @return 0 if that is not for the device, and nothing was done. */
typedef int (*mlx5sim_patch_store_t)(mlx5sim_insn_cpu_t *cpu, uintptr_t addr,
                                     uintptr_t stack_min);

/** @return 0 if there can be no jumps here: no XSAVE, or no membarrier(). */
int mlx5sim_patch_jump_init(mlx5sim_patch_store_t store);

/** Begin to change the program at @a addr. @return 0: somebody does so. */
int mlx5sim_patch_lock(uintptr_t addr);

void mlx5sim_patch_unlock(void);

/** Whether an instruction is the copy of a store that was replaced. */
int mlx5sim_patch_jump_is_copy(uintptr_t addr);

/** Whether the program is being changed there. */
int mlx5sim_patch_is_busy(uintptr_t addr);

/**
 * Replace a store; the lock is held. Other threads may be there. They can meet
 * a breakpoint meanwhile, so SIGTRAP has to lead to a handler that waits for
 * the lock, and goes back to the instruction. If it turns out to store to other
 * memory than the device's, it comes back.
 *
 * @param number  Below MLX5SIM_INSN_MAX_MOVED, of this store only.
 * @param addr    The instruction.
 *
 * @return 0, or -1: it is as it was, and can't be replaced.
 */
int mlx5sim_patch_jump_make(unsigned number, uintptr_t addr);

#endif
