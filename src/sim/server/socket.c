/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/server/socket.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/objs/port.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MLX5SIM_SOCKET_ROCE     4791    /* port, of RoCE v2: IBTA annex A17 */
#define MLX5SIM_SOCKET_BATCH    32      /* packets in a system call */
/* What ports count: with Ethernet's header; of InfiniBand without IPv4 and UDP
 * around it, and without the VCRC */
#define MLX5SIM_SOCKET_ETHERNET 14
#define MLX5SIM_SOCKET_AROUND_IB (20 + 8 + 2)
#define MLX5SIM_SOCKET_BUFFER   (8 << 20) /* bytes, if that is permitted */

/* Offsets in the IP header */
#define MLX5SIM_SOCKET_IPV4_PROTOCOL 9
#define MLX5SIM_SOCKET_IPV6_NEXT     6
#define MLX5SIM_SOCKET_UDP_DPORT     2

typedef struct mlx5sim_socket {
    int      packet_fd;
    int      raw_fds[2];  /* IPv4, IPv6 */
    unsigned dev;
    unsigned port;
    unsigned ifindex;
} mlx5sim_socket_t;

/* Packets to be sent by one raw socket, which is all of them in general */
typedef struct mlx5sim_socket_batch {
    int                     fd;
    unsigned                num;
    struct mmsghdr          messages[MLX5SIM_SOCKET_BATCH];
    struct iovec            pieces[MLX5SIM_SOCKET_BATCH];
    struct sockaddr_storage to[MLX5SIM_SOCKET_BATCH];
    uint8_t                 packets[MLX5SIM_SOCKET_BATCH][MLX5SIM_ROCE_MAX];
} mlx5sim_socket_batch_t;

static mlx5sim_socket_t mlx5sim_sockets[MLX5SIM_NETIFS_MAX];
static unsigned mlx5sim_num_sockets;
static mlx5sim_socket_batch_t mlx5sim_socket_out;
static mlx5sim_socket_counters_t mlx5sim_socket_count;


mlx5sim_socket_counters_t *mlx5sim_socket_counters(void)
{
    return &mlx5sim_socket_count;
}

/* UDP port of packets */
static unsigned mlx5sim_socket_udp_port(void)
{
    return (mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE) ?
           MLX5SIM_SOCKET_ROCE : MLX5SIM_ROCE_IB_PORT;
}

static int mlx5sim_socket_error(const char *what, const char *netif)
{
    int is_permission = (errno == EPERM) || (errno == EACCES);

    fprintf(stderr, "mlx5sim-wire: %s: %s: %s%s\n", netif, what,
            strerror(errno), is_permission ?
            "; it needs CAP_NET_RAW in its network namespace: start it as root "
            "of a container, or with unshare -r" : "");
    return -1;
}

/* UDP to the port of packets, by IPv4 or IPv6 */
static int mlx5sim_socket_filter(int fd)
{
    unsigned udp_port         = mlx5sim_socket_udp_port();
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MLX5SIM_SOCKET_IPV4_PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 9),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, MLX5SIM_SOCKET_UDP_DPORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 5, 6),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 5),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MLX5SIM_SOCKET_IPV6_NEXT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
                 sizeof(struct ip6_hdr) + MLX5SIM_SOCKET_UDP_DPORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
        BPF_STMT(BPF_RET | BPF_K, 0)
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                      sizeof(program));
}

static void mlx5sim_socket_enlarge(int fd)
{
    int size = MLX5SIM_SOCKET_BUFFER;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
}

static int mlx5sim_socket_open_packet(const mlx5sim_netif_t *netif,
                                      mlx5sim_socket_t *sock)
{
    struct sockaddr_ll addr = {.sll_family   = AF_PACKET,
                               .sll_protocol = htons(ETH_P_ALL)};
    int on                  = 1;

    sock->ifindex    = if_nametoindex(netif->name);
    addr.sll_ifindex = sock->ifindex;
    sock->packet_fd  = socket(AF_PACKET,
                              SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock->packet_fd < 0) {
        return mlx5sim_socket_error("packet socket", netif->name);
    }

    mlx5sim_socket_enlarge(sock->packet_fd);
    if ((setsockopt(sock->packet_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on,
                    sizeof(on)) != 0) ||
        (mlx5sim_socket_filter(sock->packet_fd) != 0) ||
        (bind(sock->packet_fd, (struct sockaddr*)&addr, sizeof(addr)) != 0)) {
        return mlx5sim_socket_error("packet socket", netif->name);
    }

    return 0;
}

static int mlx5sim_socket_open_raw(const mlx5sim_netif_t *netif,
                                   mlx5sim_socket_t *sock)
{
    static const int families[] = {AF_INET, AF_INET6};
    static const int levels[]   = {IPPROTO_IP, IPPROTO_IPV6};
    static const int options[]  = {IP_HDRINCL, IPV6_HDRINCL};
    int on                      = 1;
    unsigned i;
    int fd;

    for (i = 0; i < 2; ++i) {
        fd = socket(families[i], SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
        if ((fd < 0) && (errno == EAFNOSUPPORT)) {
            sock->raw_fds[i] = -1;
            continue;
        }

        if ((fd < 0) ||
            (setsockopt(fd, levels[i], options[i], &on, sizeof(on)) != 0) ||
            (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netif->name,
                        strlen(netif->name) + 1) != 0)) {
            return mlx5sim_socket_error("raw socket", netif->name);
        }
        sock->raw_fds[i] = fd;
    }

    return 0;
}

/* Nobody else may have the port, and the kernel is not to answer that nobody
 * has it. What comes here was received by the packet sockets. */
static int mlx5sim_socket_reserve(void)
{
    unsigned udp_port           = mlx5sim_socket_udp_port();
    struct sock_filter none     = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program   = {1, &none};
    struct sockaddr_in addr     = {.sin_family = AF_INET,
                                   .sin_port   = htons(udp_port)};
    struct sockaddr_in6 addr6   = {.sin6_family = AF_INET6,
                                   .sin6_port   = htons(udp_port)};
    const struct sockaddr *to[] = {(void*)&addr, (void*)&addr6};
    const socklen_t lengths[]   = {sizeof(addr), sizeof(addr6)};
    int on                      = 1;
    unsigned i;
    int fd;

    for (i = 0; i < 2; ++i) {
        fd = socket(to[i]->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if ((fd < 0) && (errno == EAFNOSUPPORT)) {
            continue;
        }

        if (i == 1) {
            (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                         sizeof(program));
        if ((fd < 0) || (bind(fd, to[i], lengths[i]) != 0)) {
            fprintf(stderr, "mlx5sim-wire: UDP port %u: %s%s\n",
                    udp_port, strerror(errno),
                    (errno == EADDRINUSE) ?
                    ": another mlx5sim-wire or a tunnel of rdma_rxe has it; "
                    "end that (ss -ulnp shows it), or take another network "
                    "namespace" : "");
            return -1;
        }
    }

    return 0;
}

int mlx5sim_socket_open(void)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    const mlx5sim_netif_t *netif;
    mlx5sim_socket_t *sock;
    unsigned dev, port;

    if (mlx5sim_socket_reserve() != 0) {
        return -1;
    }

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            netif      = mlx5sim_port_netif(config, dev, port);
            sock       = &mlx5sim_sockets[mlx5sim_num_sockets++];
            sock->dev  = dev;
            sock->port = port;
            if ((mlx5sim_socket_open_packet(netif, sock) != 0) ||
                (mlx5sim_socket_open_raw(netif, sock) != 0)) {
                return -1;
            }
        }
    }

    return 0;
}

unsigned mlx5sim_socket_poll(struct pollfd *fds)
{
    unsigned i;

    for (i = 0; i < mlx5sim_num_sockets; ++i) {
        fds[i] = (struct pollfd){mlx5sim_sockets[i].packet_fd, POLLIN, 0};
    }

    return mlx5sim_num_sockets;
}

int mlx5sim_socket_receive(mlx5sim_socket_take_t take)
{
    static uint8_t packets[MLX5SIM_SOCKET_BATCH][MLX5SIM_ROCE_MAX];
    struct mmsghdr messages[MLX5SIM_SOCKET_BATCH];
    struct iovec pieces[MLX5SIM_SOCKET_BATCH];
    const mlx5sim_socket_t *sock;
    int found = 0;
    unsigned i;
    int j, num;

    for (i = 0; i < MLX5SIM_SOCKET_BATCH; ++i) {
        memset(&messages[i], 0, sizeof(messages[i]));
        pieces[i] = (struct iovec){packets[i], sizeof(packets[i])};
        messages[i].msg_hdr.msg_iov    = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }

    for (i = 0; i < mlx5sim_num_sockets; ++i) {
        sock = &mlx5sim_sockets[i];
        num  = recvmmsg(sock->packet_fd, messages, MLX5SIM_SOCKET_BATCH, 0,
                        NULL);
        for (j = 0; j < num; ++j) {
            ++mlx5sim_socket_count.received;
            take(sock->dev, sock->port, packets[j], messages[j].msg_len);
        }
        found |= num > 0;
    }

    return found;
}

void mlx5sim_socket_flush(void)
{
    mlx5sim_socket_batch_t *out = &mlx5sim_socket_out;
    unsigned done               = 0;
    int ret;

    while (done < out->num) {
        ret = sendmmsg(out->fd, out->messages + done, out->num - done, 0);
        if (ret > 0) {
            mlx5sim_socket_count.sent += ret;
            done                      += ret;
        } else if (errno != EINTR) {
            ++mlx5sim_socket_count.unsent; /* lost, as a network may do */
            ++done;
        }
    }

    out->num = 0;
}

/* Room for a packet. @return NULL if there is no way to send it */
static uint8_t *mlx5sim_socket_room(const mlx5sim_socket_t *sock, int is_ipv6,
                                    const void *to)
{
    mlx5sim_socket_batch_t *out = &mlx5sim_socket_out;
    struct sockaddr_in6 *addr6;
    struct sockaddr_in *addr;
    struct msghdr *header;

    if (sock->raw_fds[is_ipv6] < 0) {
        return NULL;
    }

    if ((out->num == MLX5SIM_SOCKET_BATCH) ||
        ((out->num > 0) && (out->fd != sock->raw_fds[is_ipv6]))) {
        mlx5sim_socket_flush();
    }

    out->fd = sock->raw_fds[is_ipv6];
    header  = &out->messages[out->num].msg_hdr;
    memset(header, 0, sizeof(*header));
    memset(&out->to[out->num], 0, sizeof(out->to[out->num]));
    if (is_ipv6) {
        addr6                = (struct sockaddr_in6*)&out->to[out->num];
        addr6->sin6_family   = AF_INET6;
        addr6->sin6_scope_id = sock->ifindex;
        memcpy(&addr6->sin6_addr, to, sizeof(addr6->sin6_addr));
        header->msg_namelen  = sizeof(*addr6);
    } else {
        addr                = (struct sockaddr_in*)&out->to[out->num];
        addr->sin_family    = AF_INET;
        memcpy(&addr->sin_addr, to, sizeof(addr->sin_addr));
        header->msg_namelen = sizeof(*addr);
    }
    header->msg_name   = &out->to[out->num];
    header->msg_iov    = &out->pieces[out->num];
    header->msg_iovlen = 1;
    return out->packets[out->num];
}

unsigned mlx5sim_socket_bytes(unsigned length)
{
    return (mlx5sim_instance_config()->link == MLX5SIM_LINK_ROCE) ?
           (length + MLX5SIM_SOCKET_ETHERNET) :
           (length - MLX5SIM_SOCKET_AROUND_IB);
}

/* What mlx5sim_socket_room() gave has been filled, for a port */
static void mlx5sim_socket_filled(unsigned dev, unsigned port, unsigned length)
{
    mlx5sim_socket_batch_t *out = &mlx5sim_socket_out;

    mlx5sim_port_sent(dev, port, 1, mlx5sim_socket_bytes(length));
    out->pieces[out->num] = (struct iovec){out->packets[out->num], length};
    ++out->num;
}

void mlx5sim_socket_send(unsigned dev, unsigned port,
                         const mlx5sim_roce_path_t *path,
                         const mlx5sim_roce_t *packet, const void *payload,
                         unsigned length)
{
    int is_ipv6       = !path->is_ib && !mlx5sim_route_is_ipv4(&path->route);
    unsigned i        = dev * mlx5sim_instance_config()->ports + port - 1;
    const uint8_t *to = path->is_ib ? path->to :
                        path->route.dgid + (is_ipv6 ? 0 : 12);
    uint8_t *room;

    room = mlx5sim_socket_room(&mlx5sim_sockets[i], is_ipv6, to);
    if (room != NULL) {
        mlx5sim_socket_filled(dev, port,
                              mlx5sim_roce_encode_net(path, packet, payload,
                                                      length, room));
    }
}

/* Find the port whose interface has an address.
 * @return 1, or 0 if there is none */
static int mlx5sim_socket_find(const uint8_t gid[16], unsigned *dev_p,
                               unsigned *port_p)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    uint16_t host                  = (gid[14] << 8) | gid[15];

    return (config->link == MLX5SIM_LINK_ROCE) ?
           mlx5sim_gid_find(config, gid, dev_p, port_p) :
           mlx5sim_lid_find(config, host << config->lmc, dev_p, port_p);
}

void mlx5sim_socket_forward(const uint8_t *packet, unsigned length)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int is_ipv6                    = (packet[0] >> 4) == 6;
    uint8_t gid[16]                = {[10] = 0xff, [11] = 0xff};
    unsigned dev, port;
    uint8_t *room;

    if (length < (is_ipv6 ? sizeof(struct ip6_hdr) : sizeof(struct ip))) {
        return;
    }

    if (is_ipv6) {
        memcpy(gid, packet + offsetof(struct ip6_hdr, ip6_src), 16);
    } else {
        memcpy(gid + 12, packet + offsetof(struct ip, ip_src), 4);
    }

    if (!mlx5sim_socket_find(gid, &dev, &port) || (length > MLX5SIM_ROCE_MAX)) {
        return;
    }

    room = mlx5sim_socket_room(
            &mlx5sim_sockets[dev * config->ports + port - 1], is_ipv6,
            packet + (is_ipv6 ? offsetof(struct ip6_hdr, ip6_dst) :
                                offsetof(struct ip, ip_dst)));
    if (room != NULL) {
        memcpy(room, packet, length);
        mlx5sim_socket_filled(dev, port, length);
    }
}
