/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_PEER_PROCS_H_
#define BENCH_PEER_PROCS_H_

#include <stddef.h>

/*
 * Processes that play the peers of the one that is measured: each is this
 * program once more, with a socket to the first one.
 */

/** Most of them: with the first one, they have to fit the software device. */
#define PEER_PROCS_MAX 64

typedef struct peer_procs {
    unsigned count;
    int      sock[PEER_PROCS_MAX];
    int      pid[PEER_PROCS_MAX];
} peer_procs_t;

/** A variable of the environment. */
typedef struct peer_procs_env {
    const char *name;
    const char *value;
} peer_procs_env_t;


/**
 * Start one more process, with the first process's arguments, "-P", and the
 * number of its socket. An instrumented program starts processes that are not,
 * unless its tool has been told otherwise.
 *
 * @param argv  Of main().
 * @param env   What is set in the process, up to a name that is NULL.
 *
 * @return 0, or -1 after a message.
 */
int peer_procs_add(peer_procs_t *procs, char **argv,
                   const peer_procs_env_t *env);


/** Send all. Ends the process with a message if the other one is gone. */
void peer_procs_send(int sock, const void *data, size_t length);


/** Receive exactly so much. Ends the process with a message if the other one is
 *  gone. */
void peer_procs_recv(int sock, void *data, size_t length);


/** Wait until all have ended.
 *  @return 0, or -1 after a message if one of them has failed. */
int peer_procs_wait(peer_procs_t *procs);

#endif
