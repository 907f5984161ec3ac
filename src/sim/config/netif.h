/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_NETIF_H_
#define MLX5SIM_NETIF_H_

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

struct ifaddrs;

/*
 * Network interfaces behind ports, MLX5SIM_WIRE: a port takes MAC, MTU and
 * addresses from one, so that ports of different nodes differ and are reached
 * as the addresses are.
 *
 * The LID of an InfiniBand port is the lower half of the IPv4 address, so that
 * who knows a LID knows the address: nodes that reach each other have the same
 * upper half.
 */

/** Ports of 16 devices with 2 ports. */
#define MLX5SIM_NETIFS_MAX 32

/** The smallest MTU of an interface: the smallest of InfiniBand (256) and the
 *  headers of mlx5sim_netif_ib_mtu(). */
#define MLX5SIM_NETIF_MTU_MIN (256 + 96)

/** What InfiniBand has between nodes beyond those headers, UDP among them:
 *  IPv4 20, LRH 8 and VCRC 2. */
#define MLX5SIM_NETIF_TUNNEL (20 + 8 + 2)

/** Last LID that a port may have: kernel, include/rdma/ib_verbs.h,
 *  IB_MULTICAST_LID_BASE is the one after it. */
#define MLX5SIM_LID_MAX 0xbfff

/** LMC of ports that have no LIDs. */
#define MLX5SIM_NETIF_NO_LIDS (-1)

/** Maximum length of an interface as text, with the zero at its end. */
#define MLX5SIM_NETIF_STR_MAX 128

/** An interface, as it was when the instance was created. */
typedef struct mlx5sim_netif {
    char     name[IF_NAMESIZE]; /**< "": there is none behind this port */
    uint32_t mtu;               /**< in bytes, of IP packets */
    uint8_t  mac[6];            /**< made of the address if it has none */
    uint8_t  has_ipv4;
    uint8_t  has_ipv6;
    uint8_t  ipv4[4];           /**< the first one, in network order */
    uint8_t  ipv6[16];          /**< the first one that is global */
} mlx5sim_netif_t;

/** Whether it can be the name of an interface. */
int mlx5sim_netif_is_name(const char *name);

/** Check of MLX5SIM_WIRE: up to MLX5SIM_NETIFS_MAX names with commas between
 *  them, none of them twice. @return 1 or 0. */
int mlx5sim_netif_check(const char *list);

/**
 * Find the interfaces of a list in this network namespace.
 *
 * @param list         As @ref mlx5sim_netif_check accepts it, not empty.
 * @param count        How many the list must have.
 * @param lmc          Of InfiniBand ports, or MLX5SIM_NETIF_NO_LIDS.
 * @param [out] netifs Room for that many.
 * @param [out] error  What is wrong, and what to do.
 *
 * @return 0, or -1 with errno: EINVAL if the list has more or fewer, or an
 *         interface is of no use, ENODEV if it does not exist.
 */
int mlx5sim_netif_find(const char *list, unsigned count, int lmc,
                       mlx5sim_netif_t *netifs, char *error, size_t error_size);

/**
 * Addresses of one interface: what @ref mlx5sim_netif_find does after it has
 * asked the kernel.
 *
 * @param addrs          Of getifaddrs().
 * @param [inout] netif  Name and MTU are filled.
 * @param [out] error    What is wrong, and what to do.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_netif_fill(const struct ifaddrs *addrs, mlx5sim_netif_t *netif,
                       char *error, size_t error_size);

/**
 * Whether interfaces can be behind InfiniBand ports: LIDs and MTU.
 *
 * @param addrs        Of getifaddrs().
 * @param netifs       Of @ref mlx5sim_netif_fill, @a count of them.
 * @param [out] error  What is wrong, and what to do.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_netif_check_lids(const struct ifaddrs *addrs,
                             const mlx5sim_netif_t *netifs, unsigned count,
                             unsigned lmc, char *error, size_t error_size);

/** First of the 2^lmc LIDs of an InfiniBand port.
 *  @return 0 if the interface has no IPv4 address, or one that makes LIDs that
 *  no port may have. */
unsigned mlx5sim_netif_lid(const mlx5sim_netif_t *netif, unsigned lmc);

/** IPv4 address of who has a LID, seen from an interface. */
void mlx5sim_netif_at_lid(const mlx5sim_netif_t *netif, unsigned lmc,
                          uint16_t lid, uint8_t ipv4_p[4]);

/** Largest MTU of InfiniBand in an MTU of Ethernet, as enum ibv_mtu (1: 256, 5:
 *  4096). Kernel, include/rdma/ib_addr.h, iboe_get_mtu(): less GRH 40, UDP 8,
 *  BTH 12, XRC 4, AtomicETH 28 and ICRC 4. @return 0 if none fits. */
unsigned mlx5sim_netif_ib_mtu(uint32_t mtu);

/** As text: "name mtu mac ipv4|- ipv6|-". @a buf holds
 *  MLX5SIM_NETIF_STR_MAX bytes. */
const char *mlx5sim_netif_str(const mlx5sim_netif_t *netif, char *buf);

/** The inverse. @return 0, or -1 if the text is something else. */
int mlx5sim_netif_parse(const char *text, mlx5sim_netif_t *netif_p);

#endif
