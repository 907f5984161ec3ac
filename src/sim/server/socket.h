/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SOCKET_H_
#define MLX5SIM_SOCKET_H_

#include <sim/wire/roce.h>

#include <poll.h>

/*
 * Packets on the network interfaces of the node: RoCE v2, or InfiniBand in UDP
 * (wire/roce.h). They are sent by
 * raw sockets, as a UDP socket has one source port and every path has its own.
 * They are received by packet sockets, as ICRC covers the IP header, which a
 * UDP socket does not show. Both need CAP_NET_RAW in the network namespace.
 */

/** What was sent and received, packets. */
typedef struct mlx5sim_socket_counters {
    uint64_t sent;
    uint64_t unsent;    /* the kernel refused them */
    uint64_t received;
    uint64_t refused;   /* not of the link layer, with a wrong ICRC, or to
                           QP 1 and no message of the connection manager */
} mlx5sim_socket_counters_t;

/** Takes a packet, from its IP header on. */
typedef void (*mlx5sim_socket_take_t)(unsigned dev, unsigned port,
                                      const uint8_t *packet, unsigned length);

/** Open the sockets of all ports of the instance.
 *  @return 0, or -1 after a message. */
int mlx5sim_socket_open(void);

/** Descriptors to wait for. @return their number.
 *  @param fds  Room for one for each port. */
unsigned mlx5sim_socket_poll(struct pollfd *fds);

/** Take what has come for all ports, up to a number. @return whether there was
 *  something. */
int mlx5sim_socket_receive(mlx5sim_socket_take_t take);

/** Send a packet from a port, at mlx5sim_socket_flush() at the latest. */
void mlx5sim_socket_send(unsigned dev, unsigned port,
                         const mlx5sim_roce_path_t *path,
                         const mlx5sim_roce_t *packet, const void *payload,
                         unsigned length);

/** The same, of a packet as it goes over the wire, from its IP header on. */
void mlx5sim_socket_forward(const uint8_t *packet, unsigned length);

void mlx5sim_socket_flush(void);

/** What its port counts for a packet of @a length bytes from its IP header
 *  on. */
unsigned mlx5sim_socket_bytes(unsigned length);

/** Counters so far. @return the one instance, which changes. */
mlx5sim_socket_counters_t *mlx5sim_socket_counters(void);

#endif
