/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_PERF_RUN_H
#define SEP_PERF_RUN_H

#include <tools/perf/sep_perf_options.h>

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The threads and what they do, whatever they do it with: post messages as long
 * as so many are outstanding, and poll for completions.
 */

struct sep_perf_thread;

/** What differs between levels. */
typedef struct sep_perf_api {
    /** Post messages together; each calls sep_perf_thread_next().
     *  @return 0, 1 if there was no room for any, or -1 after a message. */
    int (*post)(struct sep_perf_thread *thread, unsigned count);

    /** Poll once; what has completed is told by sep_perf_thread_done().
     *  @return 0, or -1 after a message. */
    int (*poll)(struct sep_perf_thread *thread);
} sep_perf_api_t;


/** What a run is for. */
typedef enum {
    SEP_PERF_WARM,    /**< Nothing: what is new has happened once */
    SEP_PERF_RATE,    /**< As the row says; contrib/bench-perf.sh counts here */
    SEP_PERF_LATENCY  /**< One after the other, each timed */
} sep_perf_phase_t;


/** Threads. */
typedef struct sep_perf_group {
    const sep_perf_api_t   *api;
    const sep_perf_row_t   *row;
    int                    turns;
    int                    pin;
    int                    is_serial; /**< They run one after the other */
    unsigned               turn;      /**< Who runs then; atomic */
    sep_perf_phase_t       phase;
    int                    is_shared; /**< Completions of a thread may be polled
                                           by others */
    struct sep_perf_thread *threads;
    pthread_barrier_t      barrier;
    int                    failed;    /**< Nobody goes on; atomic */
} sep_perf_group_t;


/** A thread. */
typedef struct sep_perf_thread {
    sep_perf_group_t  *group;
    unsigned          index;
    void              *priv;        /**< The level's */
    unsigned          postlist;
    unsigned          signal;
    unsigned          depth;
    unsigned          covered;      /**< Messages since one asked for a
                                         completion */
    uint64_t          posted;
    uint64_t          limit;        /**< When so many are posted, the last one
                                         asks for a completion */
    uint64_t          total;
    uint64_t          done __attribute__((aligned(64))); /**< Atomic */
    double            begin __attribute__((aligned(64))); /**< Seconds */
    double            end;
    double            *samples;     /**< Times of messages, seconds; NULL:
                                         none are taken */
    pthread_t         id;
} __attribute__((aligned(64))) sep_perf_thread_t;


/** What the threads took, in seconds. */
typedef struct sep_perf_times {
    double rate;                 /**< Messages of all per second */
    double mean, median, p99;    /**< Of a message, if samples are taken */
} sep_perf_times_t;


/** @return Messages that have completed, whoever has seen that. */
static inline uint64_t sep_perf_thread_get_done(const sep_perf_thread_t *thread)
{
    return __atomic_load_n(&thread->done, __ATOMIC_RELAXED);
}


/** Next message. @return 0, or for how many its completion stands. */
static inline unsigned sep_perf_thread_next(sep_perf_thread_t *thread)
{
    unsigned covered = ++thread->covered;

    ++thread->posted;
    if ((covered < thread->signal) && (thread->posted != thread->limit)) {
        return 0;
    }
    thread->covered = 0;
    return covered;
}


/** Messages have completed: no LOCKed instruction if nobody else polls. */
static inline void
sep_perf_thread_done(sep_perf_thread_t *thread, unsigned count)
{
    if (thread->group->is_shared) {
        __atomic_fetch_add(&thread->done, count, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(&thread->done, thread->done + count, __ATOMIC_RELAXED);
    }
}


/** @return Processors that the process may use. */
unsigned sep_perf_num_cpus(void);


/** Make threads, which do not run yet. @return 0, or -1 after a message. */
int sep_perf_group_init(sep_perf_group_t *group, const sep_perf_api_t *api,
                        const sep_perf_options_t *options,
                        const sep_perf_row_t *row, int is_shared);

void sep_perf_group_cleanup(sep_perf_group_t *group);


/** Have each thread send so many messages. @return 0, or -1 after a message. */
int sep_perf_group_run(sep_perf_group_t *group, uint64_t messages,
                       sep_perf_phase_t phase, sep_perf_times_t *times_p);

#ifdef __cplusplus
}
#endif

#endif
