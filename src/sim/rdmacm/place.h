/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_PLACE_H_
#define MLX5SIM_RDMACM_PLACE_H_

#include <sim/objs/cm.h>

#include <stddef.h>

/*
 * IP addresses and the ports of this instance that have them.
 *
 * With MLX5SIM_WIRE a port has the addresses of its network interface. Without,
 * the first port has all addresses of the machine, and each RoCE port in
 * addition those that its table of GIDs has (198.18.DEVICE.PORT).
 */

/** Length of an address, kernel addr.c rdma_addr_size(); 0 if the family is
 *  none of AF_INET, AF_INET6 and AF_IB. */
size_t mlx5sim_cm_addr_size(unsigned family);

/** Whether it is the address of nobody in particular: cma_any_addr(). */
int mlx5sim_cm_addr_is_any(const mlx5sim_cm_addr_t *addr);

/** Whether two addresses are the same, apart from their ports. */
int mlx5sim_cm_addr_is_same(const mlx5sim_cm_addr_t *a,
                            const mlx5sim_cm_addr_t *b);

/** Whether ports are of RoCE. */
int mlx5sim_cm_is_roce(void);

/** LID of the port of another node that has an address, as of MLX5SIM_WIRE with
 *  InfiniBand. @return 0: it can't have one, or the network of @a place does
 *  not have that address. */
uint16_t mlx5sim_cm_addr_lid(const mlx5sim_cm_addr_t *addr,
                             const mlx5sim_cm_place_t *place);

/** Port number, in the order of the host; 0 of AF_IB. */
uint16_t mlx5sim_cm_addr_port(const mlx5sim_cm_addr_t *addr);
void mlx5sim_cm_addr_set_port(mlx5sim_cm_addr_t *addr, uint16_t port);

/** An address as a GID: kernel, rdma_ip2gid(). */
void mlx5sim_cm_addr_gid(const mlx5sim_cm_addr_t *addr, uint8_t gid[16]);

/** The loopback address of a family. */
void mlx5sim_cm_addr_loopback(unsigned family, mlx5sim_cm_addr_t *addr_p);

/**
 * Find the port that has an address. That of 127.0.0.1 is the first one whose
 * link is up: cma_bind_loopback().
 *
 * @return 0, -EADDRNOTAVAIL if this machine does not have the address, or
 *         -ENODEV if no port does.
 */
int mlx5sim_cm_place_find(const mlx5sim_cm_addr_t *addr,
                          mlx5sim_cm_place_t *place_p);

/**
 * Find the own address from which another one is reached, as the kernel routes
 * packets of this network namespace.
 *
 * @param src_p  An address, or any with its family; its port is left alone.
 * @return 0, or -errno: there is no such way.
 */
int mlx5sim_cm_place_route(const mlx5sim_cm_addr_t *dst,
                           mlx5sim_cm_addr_t *src_p);

#endif
