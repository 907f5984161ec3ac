/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_PEER_PROCS_H_
#define BENCH_PEER_PROCS_H_

#include <stddef.h>
#include <stdint.h>

/*
 * Processes that play the peers of the one that is measured: each is this
 * program once more, with a socket to the first one.
 */

/** Most of them: with the first one, they have to fit the software device. */
#define PEER_PROCS_MAX 64

/** Peers that a process plays at most. */
#define PEER_PROCS_SHARE 128

/** What makes peers of sep_mlx5 small, so that a thousand of them have room, in
 *  an array of @ref peer_procs_env_t. Other categories may take a UAR page for
 *  each. */
#define PEER_PROCS_SEP_ENV \
    {"UCX_SEP_CATEGORY",        "static"}, \
    {"UCX_SEP_TX_QUEUE_LEN",    "64"}, \
    {"UCX_SEP_TX_CQ_LEN",       "128"}, \
    {"UCX_SEP_RX_QUEUE_LEN",    "64"}, \
    {"UCX_SEP_RX_QUEUE_FILL",   "16"}, \
    {"UCX_SEP_FC_WND_SIZE",     "16"}, \
    {"UCX_SEP_CM_RX_QUEUE_LEN", "16"}, \
    {"UCX_SEP_MAX_QPS",         "inf"} /* That is for the one measured */

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


/** @return How many of @a peers process @a index has: the last may have less
 *          than the others. */
uint32_t peer_procs_share(unsigned peers, unsigned index);


/**
 * Start processes, each with the first process's arguments, "-P", and the
 * number of its socket. Each is told how many peers it has, as a uint32_t, and
 * answers with the address of each. Ends this process with a message if one
 * can't be started or is gone. An instrumented program starts processes that
 * are not, unless its tool has been told otherwise.
 *
 * @param argv    Of main().
 * @param env     What is set in the processes, up to a name that is NULL.
 * @param peers   Peers of all processes.
 * @param addrs   Filled with their addresses.
 * @param length  Of an address, bytes.
 */
void peer_procs_start(peer_procs_t *procs, char **argv,
                      const peer_procs_env_t *env, unsigned peers, void *addrs,
                      size_t length);


/** Send all. Ends the process with a message if the other one is gone. */
void peer_procs_send(int sock, const void *data, size_t length);


/** Receive exactly so much. Ends the process with a message if the other one is
 *  gone. */
void peer_procs_recv(int sock, void *data, size_t length);


/** Wait until all have ended.
 *  @return 0, or -1 after a message if one of them has failed. */
int peer_procs_wait(peer_procs_t *procs);

#endif
