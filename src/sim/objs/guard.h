/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_GUARD_H_
#define MLX5SIM_GUARD_H_

#include <stdint.h>

/**
 * Keep pages of this process that nobody has touched as they are: who touches
 * one waits for mlx5sim_guard_end() (linux/userfaultfd.h). Between the two the
 * pages may be replaced, and nothing that is written meanwhile is lost. Without
 * privilege, or vm.unprivileged_userfaultfd, a system call does not wait: it
 * fails with EFAULT.
 *
 * @param addr, length  Whole pages of private memory.
 * @param may_fault     Whether that will do. If not, it is not tried where the
 *                      process has a filter of system calls (seccomp(2)).
 *
 * @return what is to be given back, or -1: it can't be done here.
 */
int mlx5sim_guard_begin(uint64_t addr, uint64_t length, int may_fault);

/** Let those go on who wait. */
void mlx5sim_guard_end(int guard, uint64_t addr, uint64_t length);

#endif
