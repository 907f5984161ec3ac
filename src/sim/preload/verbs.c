/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What keeps libibverbs on the code paths we want.
 */

#include <sim/instance/instance.h>
#include <sim/libc/real.h>
#include <sim/preload/device.h>
#include <sim/preload/export.h>

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>


/* With RDMA netlink it would ask the kernel for devices and not look at sysfs:
 * pretend a kernel without it. */
MLX5SIM_EXPORT int socket(int domain, int type, int protocol)
{
    if (__builtin_expect((domain == AF_NETLINK) && (protocol == NETLINK_RDMA),
                         0) && !mlx5sim_instance_is_disabled()) {
        errno = EPROTONOSUPPORT;
        return -1;
    }

    return REAL(socket)(domain, type, protocol);
}

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
