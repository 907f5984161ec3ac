/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <common/service.h>
#include <sim/config/identity.h>
#include <sim/instance/instance.h>
#include <sim/net/net.h>
#include <sim/objs/port.h>
#include <sim/objs/proc.h>
#include <sim/objs/store.h>
#include <sim/queue/batch.h>
#include <sim/reap/reap.h>
#include <sim/sched/park.h>
#include <sim/server/conflict.h>
#include <sim/server/incoming.h>
#include <sim/server/mads.h>
#include <sim/server/requester.h>
#include <sim/server/socket.h>
#include <sim/uverbs/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * mlx5sim-wire: carries the packets of an instance to other nodes, and executes
 * those that come from there. It is a process of its own, so that a node
 * answers as an adapter does, whatever its programs are doing, and so that a
 * program that is killed leaves nothing half done on the wire.
 */

#define MLX5SIM_WIRE_NS         1000000000ul
#define MLX5SIM_WIRE_REAP_NS    MLX5SIM_WIRE_NS /* looks for the dead */
#define MLX5SIM_WIRE_RUNG_BATCH 1024            /* doorbells at a time */
#define MLX5SIM_WIRE_FORWARDS   64              /* datagrams at a time */
#define MLX5SIM_WIRE_FIFO_SIZE  (1 << 18)       /* a number of each QP, and that
                                                   of QP 1, which is none of
                                                   theirs */

_Static_assert(MLX5SIM_WIRE_FIFO_SIZE >= MLX5SIM_MAX_QPS * sizeof(uint32_t),
               "a doorbell could get lost");


static void mlx5sim_wire_usage(FILE *out)
{
    fputs("Usage: mlx5sim-wire [--dir DIR] [--pid-file FILE]\n"
          "\n"
          "Connect the software mlx5 device of this node with those of other "
          "nodes: its\n"
          "ports send and receive packets on the network interfaces that "
          "MLX5SIM_WIRE\n"
          "names, RoCE v2 or InfiniBand in UDP. One runs in each node, from "
          "before its\n"
          "first program to SIGTERM. It needs CAP_NET_RAW in its network "
          "namespace, and\n"
          "UDP port 4791 (RoCE) or 14791 (InfiniBand).\n"
          "\n"
          "  --dir DIR        directory of the instance (default: "
          "$MLX5SIM_DIR, or\n"
          "                   /dev/shm/mlx5sim.UID)\n"
          "  --pid-file FILE  is written when it is ready, removed at the "
          "end\n"
          "  --help           this text\n", out);
}

/* @return the descriptor, or -1 after a message */
static int mlx5sim_wire_open_rung(const char *dir)
{
    char path[PATH_MAX];
    int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", dir, MLX5SIM_NET_RUNG);
    if ((mkfifo(path, 0600) == 0) || (errno == EEXIST)) {
        fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    }
    if ((fd < 0) || (fcntl(fd, F_SETPIPE_SZ, MLX5SIM_WIRE_FIFO_SIZE) < 0)) {
        fprintf(stderr, "mlx5sim-wire: %s: %s\n", path, strerror(errno));
        return -1;
    }

    return fd;
}

static int mlx5sim_wire_open_socket(const char *dir)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd;

    if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir,
                 MLX5SIM_NET_SOCKET) >= (int)sizeof(addr.sun_path)) {
        fprintf(stderr, "mlx5sim-wire: %s: too long for a socket's path; "
                "choose a shorter MLX5SIM_DIR\n", dir);
        return -1;
    }

    (void)unlink(addr.sun_path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if ((fd < 0) ||
        (bind(fd, (struct sockaddr*)&addr, sizeof(addr)) != 0)) {
        fprintf(stderr, "mlx5sim-wire: %s: %s\n", addr.sun_path,
                strerror(errno));
        return -1;
    }

    return fd;
}

/* Queue pairs that processes have rung */
static int mlx5sim_wire_take_rung(int fd)
{
    uint32_t qpns[MLX5SIM_WIRE_RUNG_BATCH];
    ssize_t size = read(fd, qpns, sizeof(qpns));
    ssize_t i;

    for (i = 0; i < size / (ssize_t)sizeof(qpns[0]); ++i) {
        if (qpns[i] == MLX5SIM_NET_CM) {
            mlx5sim_mads_wake();
        } else {
            mlx5sim_requester_wake(qpns[i]);
        }
    }

    return size > 0;
}

/* Datagrams of processes */
static int mlx5sim_wire_take_datagrams(int fd)
{
    uint8_t packet[MLX5SIM_ROCE_MAX];
    unsigned i;
    ssize_t size;

    for (i = 0; i < MLX5SIM_WIRE_FORWARDS; ++i) {
        size = recv(fd, packet, sizeof(packet), 0);
        if (size <= 0) {
            break;
        }
        mlx5sim_socket_forward(packet, size);
    }

    return i > 0;
}

/* Whether a packet is to a port of this node */
static int mlx5sim_wire_is_ours(const mlx5sim_config_t *config, unsigned dev,
                                unsigned port, const mlx5sim_roce_path_t *path)
{
    return path->is_ib ?
           mlx5sim_port_has_lid(config, dev, port, path->dlid) :
           mlx5sim_port_has_gid(config, dev, port, path->route.dgid);
}

static void mlx5sim_wire_take(unsigned dev, unsigned port,
                              const uint8_t *packet, unsigned length)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    mlx5sim_roce_path_t path;
    const uint8_t *payload;
    mlx5sim_roce_t roce;
    unsigned payload_length;

    if ((mlx5sim_roce_decode(packet, length, &path, &roce, &payload,
                             &payload_length) != MLX5SIM_ROCE_VALID) ||
        (path.is_ib != (config->link != MLX5SIM_LINK_ROCE))) {
        ++mlx5sim_socket_counters()->refused;
        return;
    }

    if (!mlx5sim_wire_is_ours(config, dev, port, &path)) {
        return; /* another host's: the interface sees more than its own */
    }

    mlx5sim_port_received(dev, port, 1, mlx5sim_socket_bytes(length));

    if (mlx5sim_mads_is(&roce)) {
        if (mlx5sim_mads_take(dev, port, &path, &roce, payload,
                              payload_length) != 0) {
            ++mlx5sim_socket_counters()->refused;
        }
    } else if ((roce.opcode >= MLX5SIM_BTH_READ_FIRST) &&
        (roce.opcode <= MLX5SIM_BTH_ATOMIC_ACK)) {
        mlx5sim_requester_hear(&path, &roce, payload, payload_length);
    } else if (roce.opcode != MLX5SIM_BTH_CNP) {
        mlx5sim_incoming_take(&path, &roce, payload, payload_length);
    }
}

/* Until the next one has something to do */
static void mlx5sim_wire_wait(struct pollfd *fds, unsigned num_fds,
                              uint64_t until, const sigset_t *mask)
{
    uint64_t now       = mlx5sim_now_ns();
    uint64_t wait      = (until > now) ? (until - now) : 0;
    struct timespec ts = {wait / MLX5SIM_WIRE_NS, wait % MLX5SIM_WIRE_NS};

    (void)ppoll(fds, num_fds, &ts, mask);
}

static void mlx5sim_wire_run(int rung_fd, int socket_fd, const sigset_t *mask)
{
    struct pollfd fds[MLX5SIM_NETIFS_MAX + 2];
    unsigned num_fds = mlx5sim_socket_poll(fds);
    uint64_t reap    = 0;
    uint64_t now, next, mads;
    int is_busy;

    fds[num_fds++] = (struct pollfd){rung_fd, POLLIN, 0};
    fds[num_fds++] = (struct pollfd){socket_fd, POLLIN, 0};
    while (!sep_service_ends()) {
        mlx5sim_batch_open();
        is_busy  = mlx5sim_wire_take_rung(rung_fd);
        is_busy |= mlx5sim_socket_receive(mlx5sim_wire_take);
        is_busy |= mlx5sim_wire_take_datagrams(socket_fd);
        is_busy |= mlx5sim_incoming_progress();
        now      = mlx5sim_now_ns();
        next     = mlx5sim_requester_progress(now);
        mads     = mlx5sim_mads_progress(now);
        mlx5sim_socket_flush();
        mlx5sim_batch_close();
        if (now >= reap) {
            mlx5sim_conflict_take();
            mlx5sim_proc_reap_dead();
            mlx5sim_mads_wake(); /* for ids of those who were killed */
            mads = 0;
            reap = now + MLX5SIM_WIRE_REAP_NS;
        }
        next = (next < reap) ? next : reap;
        next = (next < mads) ? next : mads;
        mlx5sim_wire_wait(fds, num_fds, is_busy ? 0 : next, mask);
    }
}

static void mlx5sim_wire_report(void)
{
    const mlx5sim_socket_counters_t *count = mlx5sim_socket_counters();

    if (mlx5sim_instance_config()->log < MLX5SIM_LOG_LEVEL_INFO) {
        return;
    }

    fprintf(stderr, "mlx5sim-wire: %lu packets sent, %lu not sent, %lu "
            "received, %lu of them refused\n", count->sent, count->unsent,
            count->received, count->refused);
}

/* One per instance. @return 0, or -1 after a message */
static int mlx5sim_wire_register(void)
{
    uint32_t tag         = atomic_load(&mlx5sim_store->wire_tag);
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(tag);

    if ((proc != NULL) && !mlx5sim_proc_is_gone(proc)) {
        fprintf(stderr, "mlx5sim-wire: process %d serves this instance "
                "already\n", (int)atomic_load(&proc->pid));
        return -1;
    }

    return 0;
}

/* @return 0, or -1 after a message */
static int mlx5sim_wire_write_pid(const char *path)
{
    FILE *file = fopen(path, "we");
    int ret    = (file != NULL) ? fprintf(file, "%d\n", (int)getpid()) : -1;

    if ((file == NULL) || (fclose(file) != 0) || (ret < 0)) {
        fprintf(stderr, "mlx5sim-wire: %s: %s\n", path, strerror(errno));
        return -1;
    }

    return 0;
}

static int mlx5sim_wire_serve(const char *pid_file, const sigset_t *mask)
{
    int rung_fd, socket_fd;
    const char *dir;

    dir = mlx5sim_instance_dir();
    if (dir == NULL) {
        return -1;
    }

    if (!mlx5sim_config_has_wire(mlx5sim_instance_config())) {
        fprintf(stderr, "mlx5sim-wire: the instance %s has no wire; create it "
                "with the names of network interfaces in MLX5SIM_WIRE\n", dir);
        return -1;
    }

    if ((mlx5sim_attach() != 0) || (mlx5sim_wire_register() != 0) ||
        (mlx5sim_socket_open() != 0) || (mlx5sim_conflict_open() != 0)) {
        return -1;
    }

    rung_fd   = mlx5sim_wire_open_rung(dir);
    socket_fd = mlx5sim_wire_open_socket(dir);
    if ((rung_fd < 0) || (socket_fd < 0)) {
        return -1;
    }

    sep_service_hurry();
    atomic_store(&mlx5sim_store->wire_tag, mlx5sim_self_tag);
    if ((pid_file != NULL) && (mlx5sim_wire_write_pid(pid_file) != 0)) {
        return -1;
    }

    /* Doorbells that another one has left unread: all queue pairs are looked
     * at anyhow */
    while (mlx5sim_wire_take_rung(rung_fd)) {
    }
    mlx5sim_requester_resume();
    mlx5sim_wire_run(rung_fd, socket_fd, mask);
    atomic_store(&mlx5sim_store->wire_tag, 0);
    if (pid_file != NULL) {
        (void)unlink(pid_file);
    }
    mlx5sim_wire_report();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},
        {"pid-file", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    const char *pid_file = NULL;
    sigset_t mask;
    int opt;

    while ((opt = getopt_long(argc, argv, "d:p:h", options, NULL)) != -1) {
        switch (opt) {
        case 'd':
            setenv("MLX5SIM_DIR", optarg, 1);
            break;
        case 'p':
            pid_file = optarg;
            break;
        case 'h':
            mlx5sim_wire_usage(stdout);
            return 0;
        default:
            mlx5sim_wire_usage(stderr);
            return 2;
        }
    }

    if (optind < argc) {
        mlx5sim_wire_usage(stderr);
        return 2;
    }

    sep_service_signals(&mask);
    return (mlx5sim_wire_serve(pid_file, &mask) == 0) ? 0 : 1;
}
