/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What keeps libibverbs on the code paths we want.
 */

#include <sim/libc/real.h>
#include <sim/preload/device.h>
#include <sim/preload/export.h>

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>


/* If opening the device fails, util/open_cdev.c of rdma-core waits five seconds
 * for udev to make a link to it in /dev/char. Our devices do not appear late:
 * let the wait fail with the errno of the open. */
MLX5SIM_EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (__builtin_expect(mlx5sim_device_error() != 0, 0) &&
        !strcmp(path, "/dev/char/")) {
        errno = mlx5sim_device_error();
        mlx5sim_device_forget_error();
        return -1;
    }

    return REAL(inotify_add_watch)(fd, path, mask);
}
