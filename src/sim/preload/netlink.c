/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Netlink of RDMA devices, for iproute2's rdma: its sockets are of a protocol
 * that processes talk to each other by, and the answer to what is sent to the
 * kernel comes from here.
 */

#include <sim/instance/instance.h>
#include <sim/libc/real.h>
#include <sim/preload/export.h>
#include <sim/preload/nldev.h>

#include <errno.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic int mlx5sim_netlink_is_used;


/* libibverbs would ask the kernel for devices by it and not look at sysfs: to
 * its sockets, which libnl makes, pretend a kernel without it. Those of libmnl,
 * which rdma has, are kept across exec(). */
MLX5SIM_EXPORT int socket(int domain, int type, int protocol)
{
    if (__builtin_expect((domain != AF_NETLINK) || (protocol != NETLINK_RDMA),
                         1) || mlx5sim_instance_is_disabled()) {
        return REAL(socket)(domain, type, protocol);
    }

    if (type & SOCK_CLOEXEC) {
        errno = EPROTONOSUPPORT;
        return -1;
    }

    mlx5sim_netlink_is_used = 1;
    return REAL(socket)(domain, type, NETLINK_USERSOCK);
}

/* Whether it is such a socket, and what is sent is for the kernel */
static int mlx5sim_netlink_is_ours(int fd, const struct sockaddr *to,
                                   socklen_t size)
{
    const struct sockaddr_nl *nl = (const void*)to;
    socklen_t length             = sizeof(int);
    int domain, protocol;

    return (to != NULL) && (size == sizeof(*nl)) &&
           (nl->nl_family == AF_NETLINK) && (nl->nl_pid == 0) &&
           (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0) &&
           (domain == AF_NETLINK) &&
           (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) ==
            0) && (protocol == NETLINK_USERSOCK);
}

/* Each message by itself: there is no room for more where they are read.
 * @return 0, or -1 with errno */
static int mlx5sim_netlink_answer(int fd, const struct nlmsghdr *request)
{
    struct sockaddr_nl to = {0};
    socklen_t size        = sizeof(to);
    int ret               = -1;
    const struct nlmsghdr *msg;
    size_t length, done;
    uint8_t *buf;
    int from;

    if (getsockname(fd, (void*)&to, &size) != 0) {
        return -1;
    }

    from = REAL(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
    if (from < 0) {
        return -1;
    }

    buf = malloc(MLX5SIM_NLDEV_MAX);
    if (buf != NULL) {
        length = mlx5sim_nldev_answer(request, to.nl_pid, buf);
        ret    = 0;
        for (done = 0; (ret == 0) && (done < length);
             done += NLMSG_ALIGN(msg->nlmsg_len)) {
            msg = (const void*)(buf + done);
            ret = (REAL(sendto)(from, msg, msg->nlmsg_len, 0, (void*)&to,
                                size) < 0) ? -1 : 0;
        }
        free(buf);
    }
    REAL(close)(from);
    return ret;
}

MLX5SIM_EXPORT ssize_t sendto(int fd, const void *buf, size_t size, int flags,
                              const struct sockaddr *to, socklen_t to_size)
{
    const struct nlmsghdr *request = buf;

    if (__builtin_expect(!mlx5sim_netlink_is_used, 1) ||
        !mlx5sim_netlink_is_ours(fd, to, to_size)) {
        return REAL(sendto)(fd, buf, size, flags, to, to_size);
    }

    if ((size < NLMSG_HDRLEN) || (request->nlmsg_len < NLMSG_HDRLEN) ||
        (request->nlmsg_len > size)) {
        errno = EINVAL;
        return -1;
    }
    return (mlx5sim_netlink_answer(fd, request) == 0) ? (ssize_t)size : -1;
}
