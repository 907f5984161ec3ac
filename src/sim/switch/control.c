/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/switch/control.h>
#include <sim/switch/forward.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    MLX5SIM_CONTROL_WORDS  = 130,     /* a group of each node, and more */
    MLX5SIM_CONTROL_TEXT   = 16384,   /* bytes of a command */
    MLX5SIM_CONTROL_ANSWER = 1 << 20
};

static const char mlx5sim_control_error[] = "error: ";
static int mlx5sim_control_fds[MLX5SIM_CONTROL_FDS - 1];
static unsigned mlx5sim_control_num;


/* Say what to do with each port of a name. @return whether there is one */
static int mlx5sim_control_link(const char *name, int is_down)
{
    mlx5sim_switch_port_t *port;
    int found = 0;

    for (port = mlx5sim_switch.ports;
         port < mlx5sim_switch.ports + mlx5sim_switch.num_ports; ++port) {
        if (mlx5sim_switch_port_is(port, name)) {
            port->is_down = is_down;
            found         = 1;
        }
    }

    return found;
}

static void mlx5sim_control_heal(void)
{
    unsigned i;

    for (i = 0; i < mlx5sim_switch.num_ports; ++i) {
        mlx5sim_switch.ports[i].part = 0;
    }
}

/* Groups of names with commas between. All names are looked at first. */
static void mlx5sim_control_partition(int num_groups, char **groups, FILE *out)
{
    unsigned parts[MLX5SIM_SWITCH_PORTS] = {0};
    char *name, *next;
    int found;
    unsigned i;
    int group;

    for (group = 0; group < num_groups; ++group) {
        for (name = strtok_r(groups[group], ",", &next); name != NULL;
             name = strtok_r(NULL, ",", &next)) {
            found = 0;
            for (i = 0; i < mlx5sim_switch.num_ports; ++i) {
                if (mlx5sim_switch_port_is(&mlx5sim_switch.ports[i], name)) {
                    parts[i] = group + 1;
                    found    = 1;
                }
            }
            if (!found) {
                fprintf(out, "%sno node has the name %s\n",
                        mlx5sim_control_error, name);
                return;
            }
        }
    }

    for (i = 0; i < mlx5sim_switch.num_ports; ++i) {
        mlx5sim_switch.ports[i].part = parts[i];
    }
}

static void mlx5sim_control_set(const char *name, const char *value, FILE *out)
{
    const char *wrong = mlx5sim_switch_set(&mlx5sim_switch.rates, name, value);

    if (wrong != NULL) {
        fprintf(out, "%s%s %s: %s\n", mlx5sim_control_error, name, value,
                (*wrong != '\0') ? wrong : "no such command (try --help)");
    }
}

static void mlx5sim_control_do(int num, char **words, FILE *out)
{
    int is_on;

    if ((num == 1) && (strcmp(words[0], "stat") == 0)) {
        mlx5sim_switch_print(out);
    } else if ((num == 1) && (strcmp(words[0], "heal") == 0)) {
        mlx5sim_control_heal();
    } else if ((num >= 2) && (strcmp(words[0], "partition") == 0)) {
        mlx5sim_control_partition(num - 1, words + 1, out);
    } else if ((num == 3) && (strcmp(words[0], "link") == 0) &&
               ((is_on = strcmp(words[2], "up") == 0) ||
                (strcmp(words[2], "down") == 0))) {
        if (!mlx5sim_control_link(words[1], !is_on)) {
            fprintf(out, "%sno node has the name %s\n", mlx5sim_control_error,
                    words[1]);
        }
    } else if ((num == 2) && (strcmp(words[0], "all") == 0) &&
               ((is_on = strcmp(words[1], "on") == 0) ||
                (strcmp(words[1], "off") == 0))) {
        mlx5sim_switch.is_all = is_on;
    } else if (num == 2) {
        mlx5sim_control_set(words[0], words[1], out);
    } else {
        fprintf(out, "%sno such command (try --help)\n", mlx5sim_control_error);
    }
}

unsigned mlx5sim_control_poll(int listen_fd, struct pollfd *fds)
{
    int has_room = mlx5sim_control_num < MLX5SIM_CONTROL_FDS - 1;
    unsigned i;

    fds[0] = (struct pollfd){has_room ? listen_fd : -1, POLLIN, 0};
    for (i = 0; i < mlx5sim_control_num; ++i) {
        fds[i + 1] = (struct pollfd){mlx5sim_control_fds[i], POLLIN, 0};
    }

    return mlx5sim_control_num + 1;
}

static void mlx5sim_control_answer(int fd)
{
    static char answer[MLX5SIM_CONTROL_ANSWER];
    char text[MLX5SIM_CONTROL_TEXT];
    char *words[MLX5SIM_CONTROL_WORDS];
    int num   = 0;
    FILE *out = fmemopen(answer, sizeof(answer), "w");
    char *next;
    ssize_t size;
    long length;

    size = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if ((out != NULL) && (size > 0)) {
        text[size] = '\0';
        for (words[num] = strtok_r(text, " \n", &next);
             (words[num] != NULL) && (num < MLX5SIM_CONTROL_WORDS - 1);
             words[num] = strtok_r(NULL, " \n", &next)) {
            ++num;
        }
        mlx5sim_control_do(num, words, out);
        (void)fflush(out);
        length = ftell(out);
        /* who does not read has no answer */
        (void)send(fd, (length > 0) ? answer : "\n", (length > 0) ? length : 1,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (out != NULL) {
        fclose(out);
    }
}

void mlx5sim_control_progress(const struct pollfd *fds, unsigned num_fds)
{
    unsigned i;
    int fd;

    mlx5sim_control_num = 0;
    for (i = 1; i < num_fds; ++i) {
        if (fds[i].revents != 0) {
            mlx5sim_control_answer(fds[i].fd);
            close(fds[i].fd);
        } else {
            mlx5sim_control_fds[mlx5sim_control_num++] = fds[i].fd;
        }
    }

    if (fds[0].revents != 0) {
        fd = accept4(fds[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            mlx5sim_control_fds[mlx5sim_control_num++] = fd;
        }
    }
}

/* A path may be longer than an address of a socket can be */
static int mlx5sim_control_connect(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *name        = strrchr(path, '/');
    int fd                  = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    char dir[PATH_MAX]      = ".";
    int dir_fd, ret;

    name = (name != NULL) ? (name + 1) : path;
    if (name != path) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(name - path), path);
    }

    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if ((fd < 0) || (dir_fd < 0)) {
        return -1;
    }

    ret = snprintf(addr.sun_path, sizeof(addr.sun_path),
                   "/proc/thread-self/fd/%d/%s", dir_fd, name);
    if (ret >= (int)sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    return (connect(fd, (struct sockaddr*)&addr, sizeof(addr)) == 0) ? fd : -1;
}

int mlx5sim_control_call(const char *path, int num_words, char **words)
{
    static char answer[MLX5SIM_CONTROL_ANSWER + 1];
    const char *cluster = getenv("MLX5SIM_RUN_CLUSTER");
    char text[MLX5SIM_CONTROL_TEXT], own[PATH_MAX];
    int length = 0;
    ssize_t size;
    int i, fd;

    if ((path == NULL) && (cluster != NULL)) {
        snprintf(own, sizeof(own), "%s/switch", cluster);
        path = own;
    }
    if (path == NULL) {
        fputs("mlx5sim-switch: which switch? This runs in no cluster: say "
              "--control SOCKET (try --help)\n", stderr);
        return 2;
    }

    for (i = 0; (i < num_words) && (length < (int)sizeof(text)); ++i) {
        length += snprintf(text + length, sizeof(text) - length, "%s ",
                           words[i]);
    }

    fd = mlx5sim_control_connect(path);
    if ((fd < 0) || (length >= (int)sizeof(text)) ||
        (send(fd, text, length, MSG_NOSIGNAL) != length) ||
        ((size = recv(fd, answer, sizeof(answer) - 1, 0)) <= 0)) {
        fprintf(stderr, "mlx5sim-switch: %s: %s; a switch that runs is needed, "
                "as mlx5sim-cluster --switch starts one\n", path,
                (errno != 0) ? strerror(errno) : "it has ended");
        return 2;
    }

    answer[size] = '\0';
    if (strncmp(answer, mlx5sim_control_error,
                strlen(mlx5sim_control_error)) == 0) {
        fprintf(stderr, "mlx5sim-switch: %s",
                answer + strlen(mlx5sim_control_error));
        return 2;
    }

    fputs((answer[0] == '\n') ? "" : answer, stdout);
    return 0;
}
