/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PROC_H_
#define MLX5SIM_PROC_H_

#include <sim/objs/obj.h>

/*
 * Processes that use the device: their slots in the store, whether they live,
 * and how their helper threads are woken.
 */

/** Give this process a slot. @return 0 or -1/errno. */
int mlx5sim_proc_attach(void);

/** Forget this process' slot without touching the objects (child of fork). */
void mlx5sim_proc_forget(void);

/** When a process was started, in clock ticks since the machine was: its pid
 *  and this name it for ever (proc(5), /proc/PID/stat, field 22). 0 if there is
 *  none or it only waits for its parent to notice that it ended, and also if
 *  only its first thread has ended. */
uint64_t mlx5sim_proc_start_time(pid_t pid);

/** Whether there is a process, other than one that only waits for its parent to
 *  notice that it ended. */
int mlx5sim_proc_exists(pid_t pid);

/** Keep the calling thread as the one by whose end others learn at once,
 *  without a system call, that this process has gone: it has to live as
 *  long. */
void mlx5sim_proc_live(mlx5sim_proc_t *proc);

/** Whether the thread of mlx5sim_proc_live() has ended, by exit, exec or a
 *  signal: the pid may be another process' soon. Costs a load. */
static inline int mlx5sim_proc_is_gone(const mlx5sim_proc_t *proc)
{
    return mlx5sim_lock_is_orphan(&proc->life);
}

/** A thread of a process, by which its memory and descriptors are reached: the
 *  first one, whose number the process has, may have ended by pthread_exit(),
 *  and the kernel finds neither by it then. */
static inline pid_t mlx5sim_proc_thread(const mlx5sim_proc_t *proc)
{
    pid_t tid = mlx5sim_lock_owner(&proc->life);

    return (tid != 0) ? tid : proc->pid;
}

/** Whether the process still runs (same pid and start time). */
int mlx5sim_proc_alive(const mlx5sim_proc_t *proc);

/** Wake the helper thread of a process. */
void mlx5sim_proc_kick(mlx5sim_proc_t *proc);

/** Ask the owner of @a qp to look at its send queue soon. */
void mlx5sim_qp_kick(mlx5sim_qp_obj_t *qp);

#endif
