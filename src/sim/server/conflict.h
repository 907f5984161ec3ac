/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CONFLICT_H_
#define MLX5SIM_CONFLICT_H_

/*
 * Two hosts with one IPv4 address: packets of both get to one of them, and what
 * programs see is timeouts. So the network is asked as by RFC 5227, a probe of
 * ARP. It is for words on standard error only: once for each interface.
 */

/** Ask on the interfaces of all ports of the instance, and listen.
 *  @return 0, or -1 after a message. */
int mlx5sim_conflict_open(void);

/** Look at what has come, now and then, and tell of hosts with an address of
 *  this node. */
void mlx5sim_conflict_take(void);

#endif
