/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ATTACH_H_
#define MLX5SIM_ATTACH_H_

/*
 * Make this process a user of the device: it joins the store of the instance,
 * takes over SIGBUS and starts its helper thread. A child of fork() starts
 * afresh.
 */

/** Do it, unless it was done. @return 0, or -1 with errno. */
int mlx5sim_attach(void);

/** Whether another process did it: memory may be shared with a child of
 *  vfork(). */
int mlx5sim_attach_is_other(void);

#endif
