/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RAW_H_
#define MLX5SIM_RAW_H_

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * For descriptors of the device's own, in place of functions that preload/
 * interposes. If the program has closed a channel of the connection manager
 * without close(), those would take our descriptor for it, and take the
 * manager's lock, which comes before all others.
 */

/** write(2). */
static inline ssize_t mlx5sim_raw_write(int fd, const void *buf, size_t size)
{
    return syscall(SYS_write, fd, buf, size);
}

/** close(2). */
static inline void mlx5sim_raw_close(int fd)
{
    (void)syscall(SYS_close, fd);
}

#endif
