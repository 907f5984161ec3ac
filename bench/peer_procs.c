/* SPDX-License-Identifier: BSD-3-Clause */

#include "peer_procs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>


#define PEER_PROCS_MAX_ARGS 64


static void __attribute__((noreturn))
peer_procs_exec(char **argv, int sock, const peer_procs_env_t *env)
{
    static char path[4096];
    char number[16];
    char *words[PEER_PROCS_MAX_ARGS + 3];
    ssize_t length;
    int count;

    for (; env->name != NULL; ++env) {
        setenv(env->name, env->value, 1);
    }

    for (count = 0; (argv[count] != NULL) && (count < PEER_PROCS_MAX_ARGS);
         ++count) {
        words[count] = argv[count];
    }
    snprintf(number, sizeof(number), "%d", sock);
    words[count++] = (char*)"-P";
    words[count++] = number;
    words[count]   = NULL;

    /* Not the link itself, which is the tool if there is one */
    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length > 0) {
        /* Behind it there may be more: valgrind has put its own there first */
        path[length] = '\0';
        execv(path, words);
    }

    fprintf(stderr, "%s can't be started again: %s\n", argv[0],
            strerror(errno));
    _exit(127);
}

static int peer_procs_add(peer_procs_t *procs, char **argv,
                          const peer_procs_env_t *env)
{
    int sock[2];
    pid_t pid;

    if (procs->count == PEER_PROCS_MAX) {
        fprintf(stderr, "more than %d processes for the peers\n",
                PEER_PROCS_MAX);
        return -1;
    }

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) != 0) {
        perror("socketpair");
        return -1;
    }

    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        perror("fork");
        return -1;
    }

    if (pid == 0) {
        /* The copy has no close-on-exec */
        peer_procs_exec(argv, dup(sock[1]), env);
    }

    close(sock[1]);
    procs->sock[procs->count] = sock[0];
    procs->pid[procs->count]  = pid;
    ++procs->count;
    return 0;
}

static void __attribute__((noreturn)) peer_procs_lost(ssize_t ret)
{
    fprintf(stderr, "the other process %s%s\n", (ret == 0) ? "has ended" :
            "can't be reached: ", (ret == 0) ? "" : strerror(errno));
    exit(1);
}

void peer_procs_send(int sock, const void *data, size_t length)
{
    size_t done = 0;
    ssize_t ret;

    while (done < length) {
        ret = send(sock, (const char*)data + done, length - done, MSG_NOSIGNAL);
        if (ret > 0) {
            done += ret;
        } else if ((ret == 0) || (errno != EINTR)) {
            peer_procs_lost(ret);
        }
    }
}

void peer_procs_recv(int sock, void *data, size_t length)
{
    size_t done = 0;
    ssize_t ret;

    while (done < length) {
        ret = recv(sock, (char*)data + done, length - done, 0);
        if (ret > 0) {
            done += ret;
        } else if ((ret == 0) || (errno != EINTR)) {
            peer_procs_lost(ret);
        }
    }
}

uint32_t peer_procs_share(unsigned peers, unsigned index)
{
    unsigned left = peers - (index * PEER_PROCS_SHARE);

    return (left < PEER_PROCS_SHARE) ? left : PEER_PROCS_SHARE;
}

void peer_procs_start(peer_procs_t *procs, char **argv,
                      const peer_procs_env_t *env, unsigned peers, void *addrs,
                      size_t length)
{
    uint32_t count;
    unsigned i;

    for (i = 0; i < peers; i += PEER_PROCS_SHARE) {
        if (peer_procs_add(procs, argv, env) != 0) {
            exit(1);
        }
    }

    for (i = 0; i < procs->count; ++i) {
        count = peer_procs_share(peers, i);
        peer_procs_send(procs->sock[i], &count, sizeof(count));
    }
    for (i = 0; i < peers; ++i) {
        peer_procs_recv(procs->sock[i / PEER_PROCS_SHARE],
                        (char*)addrs + (i * length), length);
    }
}

int peer_procs_wait(peer_procs_t *procs)
{
    int result = 0;
    unsigned i;
    int status;

    for (i = 0; i < procs->count; ++i) {
        close(procs->sock[i]);
        while ((waitpid(procs->pid[i], &status, 0) < 0) && (errno == EINTR)) {
        }
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0)) {
            fprintf(stderr, "a process of peers failed: status 0x%x\n", status);
            result = -1;
        }
    }

    procs->count = 0;
    return result;
}
