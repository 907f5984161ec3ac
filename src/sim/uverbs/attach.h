/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ATTACH_H_
#define MLX5SIM_ATTACH_H_

/*
 * This process becomes one that uses the device: it joins the store of the
 * instance, takes over SIGBUS and starts its helper thread. A child of fork()
 * starts afresh.
 */

/** Do it, unless it was done. @return 0, or -1 with errno. */
int mlx5sim_attach(void);

/** Whether the process that did it is another one: memory may be shared with a
 *  child of vfork(). */
int mlx5sim_attach_is_other(void);

#endif
