/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <common/service.h>
#include <sim/switch/control.h>
#include <sim/switch/forward.h>

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * mlx5sim-switch: an Ethernet switch between the nodes of a cluster, which
 * makes the faults that a network has. It knows nothing of the device.
 */

#define MLX5SIM_SWITCH_NS 1000000000ul


static void mlx5sim_switch_usage(FILE *out)
{
    fputs(
"Usage: mlx5sim-switch [OPTION...] --port NAME=FD... [--listen FD]\n"
"       mlx5sim-switch [--control SOCKET] COMMAND...\n"
"\n"
"The first one is what mlx5sim-cluster --switch starts: a switch between TAP\n"
"interfaces, or whatever gives and takes a frame with read and write. It\n"
"forwards frames, learns where addresses are, and makes faults until SIGTERM.\n"
"\n"
"  --port NAME=FD    a port: NODE:INTERFACE, and its descriptor\n"
"  --listen FD       socket on which it takes commands (SOCK_SEQPACKET)\n"
"  --loss N          of 1000 frames from a port to another one, N are lost\n"
"  --reorder N       ... N are overtaken by the 1 to 4 behind them, or wait\n"
"                    2 ms if there are none\n"
"  --duplicate N     ... N come twice\n"
"  --corrupt N       ... of N a bit behind the UDP header is changed\n"
"  --delay T         each one comes so much later (200us, 1ms)\n"
"  --jitter T        ... and at most so much more, so that some "
"overtake others\n"
"  --seed N          another number is another choice of these frames (1)\n"
"  --all             these faults are of all frames, not of RoCE v2 only\n"
"\n"
"Which frames have faults depends on the seed, the ports, and the "
"number of the\n"
"frame among those from one to the other: nothing else. The second "
"usage tells\n"
"that switch something else:\n"
"\n"
"  loss N, reorder N, duplicate N, corrupt N, delay T, jitter T, seed N,\n"
"  all on, all off              as the options\n"
"  link NODE[:INTERFACE] down   no frame goes to it or comes from it\n"
"  link NODE[:INTERFACE] up\n"
"  partition A,B C,D            no frame goes from one group to "
"another; nodes\n"
"                               without a name here are a group, too\n"
"  heal                         there is one group again\n"
"  stat                         settings and counts of each port, as "
"JSON; the\n"
"                               switch prints them at its end, too\n"
"\n"
"  --control SOCKET  default: the switch of the cluster in which this "
"runs\n"
"  --help            this text\n", out);
}

static uint64_t mlx5sim_switch_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * MLX5SIM_SWITCH_NS) + ts.tv_nsec;
}

static void mlx5sim_switch_run(int listen_fd, const sigset_t *mask)
{
    static struct pollfd fds[MLX5SIM_SWITCH_PORTS + MLX5SIM_CONTROL_FDS];
    unsigned num_ports = mlx5sim_switch.num_ports;
    uint64_t now, next, wait;
    unsigned i, num_fds;
    struct timespec ts;

    for (i = 0; i < num_ports; ++i) {
        fds[i] = (struct pollfd){mlx5sim_switch.ports[i].fd, POLLIN, 0};
        (void)fcntl(fds[i].fd, F_SETFL, O_NONBLOCK);
    }

    while (!sep_service_ends()) {
        now     = mlx5sim_switch_now();
        next    = mlx5sim_switch_progress(now);
        num_fds = num_ports + mlx5sim_control_poll(listen_fd, fds + num_ports);
        wait    = (next == UINT64_MAX) ? 3600 * MLX5SIM_SWITCH_NS :
                                         (next - now);
        ts      = (struct timespec){wait / MLX5SIM_SWITCH_NS,
                                    wait % MLX5SIM_SWITCH_NS};
        if (ppoll(fds, num_fds, &ts, mask) <= 0) {
            continue;
        }

        now = mlx5sim_switch_now();
        for (i = 0; i < num_ports; ++i) {
            if (fds[i].revents & POLLIN) {
                mlx5sim_switch_receive(i, now);
            } else if (fds[i].revents != 0) {
                fds[i].fd = -1; /* its interface has gone with its node */
            }
        }
        mlx5sim_control_progress(fds + num_ports, num_fds - num_ports);
    }
}

/* NAME=FD. @return 0, or -1 after a message */
static int mlx5sim_switch_add_port(const char *word)
{
    mlx5sim_switch_port_t *port =
            &mlx5sim_switch.ports[mlx5sim_switch.num_ports];
    const char *equals = strchr(word, '=');

    if ((mlx5sim_switch.num_ports == MLX5SIM_SWITCH_PORTS) ||
        (equals == NULL) || (equals == word) ||
        (equals - word >= MLX5SIM_SWITCH_NAME_MAX) ||
        (strpbrk(word, "\"\\") != NULL) ||
        (sscanf(equals + 1, "%d", &port->fd) != 1)) {
        fprintf(stderr, "mlx5sim-switch: --port %s: it must be NODE:INTERFACE="
                "DESCRIPTOR, with short names, %d times at most\n", word,
                MLX5SIM_SWITCH_PORTS);
        return -1;
    }

    memcpy(port->name, word, equals - word);
    ++mlx5sim_switch.num_ports;
    return 0;
}

static int mlx5sim_switch_serve(int listen_fd)
{
    sigset_t mask;

    if (mlx5sim_switch_start() != 0) {
        fprintf(stderr, "mlx5sim-switch: no memory for %u ports\n",
                mlx5sim_switch.num_ports);
        return 1;
    }

    sep_service_signals(&mask);
    signal(SIGPIPE, SIG_IGN);
    sep_service_hurry();
    mlx5sim_switch_run(listen_fd, &mask);
    mlx5sim_switch_print(stderr);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"all", no_argument, NULL, 'a'},
        {"control", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {"listen", required_argument, NULL, 'l'},
        {"port", required_argument, NULL, 'p'},
        {"corrupt", required_argument, NULL, 's'},
        {"delay", required_argument, NULL, 's'},
        {"duplicate", required_argument, NULL, 's'},
        {"jitter", required_argument, NULL, 's'},
        {"loss", required_argument, NULL, 's'},
        {"reorder", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0}
    };
    const char *control = NULL;
    int listen_fd       = -1;
    const char *wrong;
    int opt, index;

    while ((opt = getopt_long(argc, argv, "+h", options, &index)) != -1) {
        switch (opt) {
        case 'a':
            mlx5sim_switch.is_all = 1;
            break;
        case 'c':
            control = optarg;
            break;
        case 'h':
            mlx5sim_switch_usage(stdout);
            return 0;
        case 'l':
            listen_fd = atoi(optarg);
            break;
        case 'p':
            if (mlx5sim_switch_add_port(optarg) != 0) {
                return 2;
            }
            break;
        case 's':
            wrong = mlx5sim_switch_set(&mlx5sim_switch.rates,
                                       options[index].name, optarg);
            if (wrong != NULL) {
                fprintf(stderr, "mlx5sim-switch: --%s %s: %s\n",
                        options[index].name, optarg, wrong);
                return 2;
            }
            break;
        default:
            mlx5sim_switch_usage(stderr);
            return 2;
        }
    }

    if ((mlx5sim_switch.num_ports > 0) && (optind == argc)) {
        return mlx5sim_switch_serve(listen_fd);
    }

    if ((mlx5sim_switch.num_ports > 0) || (optind == argc)) {
        mlx5sim_switch_usage(stderr);
        return 2;
    }

    return mlx5sim_control_call(control, argc - optind, argv + optind);
}
