/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef BENCH_PEER_STAGE_H_
#define BENCH_PEER_STAGE_H_

/*
 * Stages of a process that gets more and more peers, and what it has then, in
 * lines
 *
 *   pid PID
 *   STAGE ENDPOINTS HEAP MAPPED ANONYMOUS
 *
 * in bytes: in use on the heap, as malloc rounds it up; mapped apart from the
 * heap; and of both, what was ever touched and is the process's own. Callgrind
 * writes the instructions between two stages, of all threads, to a file that is
 * named STAGE.ENDPOINTS by the one that ends there.
 */
typedef struct peer_stage {
    const char *command;  /**< Run at each stage, for the counters of the
                               device; may be NULL */
    const char *prefix;   /**< It writes to files PREFIX.STAGE.ENDPOINTS */
} peer_stage_t;


/** Call it first, when there is one thread: the heap is what is in use then. */
void peer_stage_init(void);


/** Say who this is, and count from here on. Call it when no other thread has
 *  anything to do. Nothing stops it again: callgrind forgets then that a thread
 *  is in a signal handler, as UCX's often is while it rings a doorbell of the
 *  software device, and fails when that returns (an assertion, sigNum). */
void peer_stage_start(void);


/** Print a stage, run the command, count from here on. */
void peer_stage_report(const peer_stage_t *stage, const char *name,
                       unsigned endpoints);


/** Whether there is a stage at so many endpoints of @a total. */
static inline int peer_stage_is(unsigned endpoints, unsigned total)
{
    return ((endpoints & (endpoints - 1)) == 0) || (endpoints == total);
}

#endif
