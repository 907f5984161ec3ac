/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_NLDEV_H_
#define MLX5SIM_NLDEV_H_

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What Linux says of RDMA devices by netlink (rdma/rdma_netlink.h,
 * drivers/infiniband/core/nldev.c), from the files that the devices have in
 * sysfs: devices, ports, their counters, and the system.
 */

/** Room for any answer, bytes. */
#define MLX5SIM_NLDEV_MAX 65536

/**
 * Answer a request.
 *
 * @param request  It, as a whole.
 * @param port     Netlink port of who asks: answers are for it.
 * @param out      MLX5SIM_NLDEV_MAX bytes for the answers, one behind the
 *                 other. What can't be answered gets an error, as from the
 *                 kernel.
 *
 * @return their length
 */
size_t mlx5sim_nldev_answer(const struct nlmsghdr *request, uint32_t port,
                            uint8_t *out);

#endif
