/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_wire.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>


int sep_perf_wire_read(int fd, void *data, size_t length)
{
    char *next = data;
    ssize_t count;

    while (length > 0) {
        count = read(fd, next, length);
        if ((count < 0) && (errno == EINTR)) {
            continue;
        } else if (count <= 0) {
            return -1;
        }
        next   += count;
        length -= count;
    }
    return 0;
}

int sep_perf_wire_write(int fd, const void *data, size_t length)
{
    const char *next = data;
    ssize_t count;

    while (length > 0) {
        count = send(fd, next, length, MSG_NOSIGNAL);
        if ((count < 0) && (errno == EINTR)) {
            continue;
        } else if (count <= 0) {
            return -1;
        }
        next   += count;
        length -= count;
    }
    return 0;
}

int sep_perf_wire_command(int fd, int wait)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    uint8_t command;

    if (poll(&pfd, 1, wait ? -1 : 0) <= 0) {
        return 0;
    }
    return (sep_perf_wire_read(fd, &command, 1) == 0) ? command : -1;
}

/* A process of its own: what it takes of the device is not counted */
static int sep_perf_peer_fork(const sep_perf_options_t *options,
                              sep_perf_serve_t serve, sep_perf_peer_t *peer)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        perror("sep_perf: socketpair");
        return -1;
    }

    fflush(NULL);
    peer->pid = fork();
    if (peer->pid < 0) {
        perror("sep_perf: fork");
        close(fds[0]);
        close(fds[1]);
        return -1;
    }
    if (peer->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        _exit((serve(fds[1], options) == 0) ? 0 : 1);
    }
    close(fds[1]);
    peer->fd = fds[0];
    return 0;
}

static int sep_perf_resolve(const char *host, const char *port, int flags,
                            struct addrinfo **list_p)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    int ret               = getaddrinfo(host, port, &hints, list_p);

    if (ret != 0) {
        fprintf(stderr, "sep_perf: %s:%s: %s\n", (host != NULL) ? host : "",
                port, gai_strerror(ret));
        return -1;
    }
    return 0;
}

/* Small messages go back and forth, and a machine that has gone ends the
 * connection */
static void sep_perf_set_options(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static int sep_perf_peer_connect(const char *address, sep_perf_peer_t *peer)
{
    struct addrinfo *list, *next;
    char host[256];
    char *port;
    int fd = -1;

    snprintf(host, sizeof(host), "%s", address);
    port = strrchr(host, ':');
    if (port == NULL) {
        return -1;
    }
    *port++ = '\0';
    if (sep_perf_resolve(host, port, 0, &list) != 0) {
        return -1;
    }

    for (next = list; next != NULL; next = next->ai_next) {
        fd = socket(next->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if ((fd >= 0) &&
            (connect(fd, next->ai_addr, next->ai_addrlen) == 0)) {
            break;
        }
        if (fd >= 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        fprintf(stderr, "sep_perf: --host %s: %s: is sep_perf --listen running "
                "there?\n", address, strerror(errno));
        return -1;
    }
    sep_perf_set_options(fd);
    peer->fd  = fd;
    peer->pid = 0;
    return 0;
}

int sep_perf_peer_start(const sep_perf_options_t *options,
                        sep_perf_serve_t serve, sep_perf_peer_t *peer_p)
{
    return (options->host != NULL) ?
           sep_perf_peer_connect(options->host, peer_p) :
           sep_perf_peer_fork(options, serve, peer_p);
}

void sep_perf_peer_stop(sep_perf_peer_t *peer)
{
    const uint8_t command = SEP_PERF_COMMAND_QUIT;

    sep_perf_wire_write(peer->fd, &command, 1);
    close(peer->fd);
    if (peer->pid > 0) {
        waitpid(peer->pid, NULL, 0);
    }
}

/* Of a process that serves one connection. @return Its exit status */
static int sep_perf_peer_serve(int fd, const sep_perf_options_t *options,
                               sep_perf_serve_t serve)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_DFL);
    if (poll(&pfd, 1, SEP_PERF_HELLO_TIMEOUT * 1000) == 0) {
        fprintf(stderr, "sep_perf: --listen %s: somebody has connected and "
                "said nothing for %d s, and was left\n", options->listen,
                SEP_PERF_HELLO_TIMEOUT);
        return 1;
    }

    return (serve(fd, options) == 0) ? 0 : 1;
}

int sep_perf_peer_listen(const sep_perf_options_t *options,
                         sep_perf_serve_t serve)
{
    int on = 1;
    struct addrinfo *list;
    int listener, fd;
    pid_t pid;

    if (sep_perf_resolve(NULL, options->listen, AI_PASSIVE, &list) != 0) {
        return -1;
    }
    listener = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0) {
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if ((listener < 0) ||
        (bind(listener, list->ai_addr, list->ai_addrlen) != 0) ||
        (listen(listener, 4) != 0)) {
        fprintf(stderr, "sep_perf: --listen %s: %s\n", options->listen,
                strerror(errno));
        freeaddrinfo(list);
        return -1;
    }
    freeaddrinfo(list);

    /* A process for each, which leaves nothing behind, and for which nobody
     * waits: who says nothing must not keep others waiting */
    signal(SIGCHLD, SIG_IGN);
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        sep_perf_set_options(fd);
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            close(listener);
            _exit(sep_perf_peer_serve(fd, options, serve));
        } else if (pid < 0) {
            perror("sep_perf: fork");
        }
        close(fd);
    }
    perror("sep_perf: accept");
    return -1;
}

void sep_perf_pattern_fill(uint8_t *data, size_t length, unsigned number)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = sep_perf_pattern(number, i);
    }
}

uint64_t sep_perf_sum(const uint8_t *data, size_t length)
{
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i < length; ++i) {
        sum += data[i] * (i + 1);
    }
    return sum;
}

uint64_t sep_perf_pattern_sum(size_t length, unsigned number)
{
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i < length; ++i) {
        sum += sep_perf_pattern(number, i) * (i + 1);
    }
    return sum;
}
