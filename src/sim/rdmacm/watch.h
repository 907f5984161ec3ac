/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_WATCH_H_
#define MLX5SIM_RDMACM_WATCH_H_

/*
 * A thread that finds out when the other side of a connection, or of a request,
 * has been killed or does not answer. It sleeps while this process has neither.
 */

/** Start the thread, unless it runs. @return 0, or -1 with errno. */
int mlx5sim_cm_watch_start(void);

/** This process has a connection or a request now. */
void mlx5sim_cm_watch_wake(void);

#endif
