/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_HELPER_H_
#define MLX5SIM_HELPER_H_

#include <sim/objs/obj.h>

/*
 * One thread per process that uses the device, asleep on the kick word of the
 * process' slot. It runs send queues that had to wait: for a receive buffer,
 * for a peer that is not connected yet, or because another process moved the QP
 * to the error state. In deferred execution it runs all of them, in rounds: in
 * each it visits all QPs, in an order that chance chooses. A round in which all
 * of them only wait takes some time. In stepped execution the program makes the
 * rounds, and the thread does nothing.
 */

/** Start the helper thread of this process. @return 0 or -1/errno. */
int mlx5sim_helper_start(void);

/** A child of fork() does not have it. */
void mlx5sim_helper_forget(void);

/** Put @a qp of this process under the helper's care / take it away, before it
 *  is withdrawn. @return 0, or -1 without memory. */
int mlx5sim_helper_add_qp(mlx5sim_qp_obj_t *qp);
void mlx5sim_helper_remove_qp(mlx5sim_qp_obj_t *qp);

/** Wait until others are done with what they are doing to this process' QPs
 *  now, and the helper thread with what it is doing for them. */
void mlx5sim_helper_quiesce(void);

/** Stepped execution: make a round. Time passes only here: as much as in a
 *  round that waits, or until the first timer when nothing but timers runs. To
 *  be called by one thread at a time.
 *  @return Whether there is something under way, or -1 with errno EINVAL if
 *          execution is not stepped. */
int mlx5sim_helper_step(void);

/** Stepped execution: rounds, time, and numbers of QPs start over. Nothing may
 *  be under way, and this process be the only one of the instance. */
void mlx5sim_helper_restart(void);

#endif
