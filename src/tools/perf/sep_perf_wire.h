/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_WIRE_H
#define SEP_PERF_WIRE_H

#include <tools/perf/sep_perf_options.h>

#include <stdint.h>
#include <sys/types.h>

/*
 * What the process that sends and its peer say to each other, over a socket:
 * the peer is another process on this machine, or sep_perf --listen on another
 * one.
 */

#define SEP_PERF_WIRE_MAGIC  0x53455031u /* "SEP1": the version is in it */

/** Seconds for which who has connected may say nothing. */
#define SEP_PERF_HELLO_TIMEOUT 30

/** Distance of threads' data in the peer's memory. */
#define SEP_PERF_SLOT_ALIGN  64


/** What is to come; integers in the order of bytes of x86. */
typedef struct sep_perf_hello {
    uint32_t magic;
    uint32_t level;
    uint32_t op;
    uint32_t threads;
    uint32_t qps;
    uint32_t depth;     /**< Outstanding on a queue pair, of all threads */
    uint64_t bytes;
    char     tl[32];    /**< UCT transport */
} sep_perf_hello_t;


/** Commands of the process that sends: one byte. */
enum {
    SEP_PERF_COMMAND_CHECK = 'C', /**< Tell what has arrived: uint64_t for each
                                       thread, see sep_perf_check_value() */
    SEP_PERF_COMMAND_QUIT  = 'Q'
};


/** Whom to talk to. */
typedef struct sep_perf_peer {
    int   fd;
    pid_t pid;   /**< 0: on another machine */
} sep_perf_peer_t;


/** What the peer is: serves one connection. @return 0, or -1 after a
 *  message. */
typedef int (*sep_perf_serve_t)(int fd, const sep_perf_options_t *options);


/** Start or reach the peer. @return 0, or -1 after a message. */
int sep_perf_peer_start(const sep_perf_options_t *options,
                        sep_perf_serve_t serve, sep_perf_peer_t *peer_p);

void sep_perf_peer_stop(sep_perf_peer_t *peer);


/** Be the peer of others, each in a process of its own. @return Only after an
 *  error, -1, after a message. */
int sep_perf_peer_listen(const sep_perf_options_t *options,
                         sep_perf_serve_t serve);


/** Read and write all. @return 0, or -1; only reading less than that from a
 *  peer that has ended is not told. */
int sep_perf_wire_read(int fd, void *data, size_t length);
int sep_perf_wire_write(int fd, const void *data, size_t length);


/** Is there a command? @return It, 0 if there is none, or -1 if the connection
 *  has ended. */
int sep_perf_wire_command(int fd, int wait);


/** @return Bytes between two threads' data in the peer's memory. */
static inline size_t sep_perf_slot_size(size_t bytes)
{
    return (bytes + SEP_PERF_SLOT_ALIGN - 1) & ~(SEP_PERF_SLOT_ALIGN - 1ul);
}


/** Byte of a pattern that is different for each number. */
static inline uint8_t sep_perf_pattern(unsigned number, size_t i)
{
    return (uint8_t)((number * 37) + (i * 11) + 1);
}

/** Fill memory with it. */
void sep_perf_pattern_fill(uint8_t *data, size_t length, unsigned number);

/** @return Sum by which sep_perf_pattern() is told from what else may be there:
 *          of the bytes, each by its place. */
uint64_t sep_perf_sum(const uint8_t *data, size_t length);

/** @return sep_perf_sum() of the pattern. */
uint64_t sep_perf_pattern_sum(size_t length, unsigned number);

#endif
