/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SWITCH_CONTROL_H_
#define MLX5SIM_SWITCH_CONTROL_H_

#include <poll.h>

/*
 * Commands to a switch that runs. Each is a message of words, and has one for
 * an answer: 'error: ' and a reason, or else text.
 */

enum {
    MLX5SIM_CONTROL_FDS = 17 /* the socket, and those who are connected */
};

/** Write down what to wait for.
 *  @param listen_fd  Socket for commands, or -1.
 *  @param fds        MLX5SIM_CONTROL_FDS entries.
 *  @return number of entries. */
unsigned mlx5sim_control_poll(int listen_fd, struct pollfd *fds);

/** Do what is asked for, and answer.
 *  @param fds  From mlx5sim_control_poll() and poll(). */
void mlx5sim_control_progress(const struct pollfd *fds, unsigned num_fds);

/** Give another process a command, and print its answer.
 *  @param path  Socket, or NULL: of the cluster in which this runs.
 *  @return exit status. */
int mlx5sim_control_call(const char *path, int num_words, char **words);

#endif
