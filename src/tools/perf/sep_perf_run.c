/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_run.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Polls in vain after which a thread lets others have the processor: if there
 * are more threads than processors, the one that it waits for may not run */
#define SEP_PERF_PATIENCE  1000


static double sep_perf_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

unsigned sep_perf_num_cpus(void)
{
    cpu_set_t set;

    return (sched_getaffinity(0, sizeof(set), &set) == 0) ? CPU_COUNT(&set) : 1;
}

/* To the processors that the process may use, in turn */
static void sep_perf_thread_pin(unsigned index)
{
    cpu_set_t set, one;
    unsigned cpu, left;

    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return;
    }
    left = index % CPU_COUNT(&set);
    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set) && (left-- == 0)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
            return;
        }
    }
}

/* @return 0, or -1 if this or another thread can't go on */
static int sep_perf_thread_poll(sep_perf_thread_t *thread, unsigned *vain)
{
    uint64_t done = sep_perf_thread_get_done(thread);

    if ((thread->group->api->poll(thread) != 0) ||
        __atomic_load_n(&thread->group->failed, __ATOMIC_RELAXED)) {
        return -1;
    }
    if (sep_perf_thread_get_done(thread) != done) {
        *vain = 0;
    } else if (++*vain == SEP_PERF_PATIENCE) {
        *vain = 0;
        sched_yield();
    }
    return 0;
}

/* @return 0 or -1 */
static inline int __attribute__((always_inline))
sep_perf_thread_send(sep_perf_thread_t *thread)
{
    const sep_perf_api_t *api = thread->group->api;
    int turns                 = thread->group->turns;
    unsigned vain             = 0;
    unsigned count;
    uint64_t done;
    int ret;

    while ((done = sep_perf_thread_get_done(thread)) < thread->total) {
        if (turns && (done == thread->posted)) {
            thread->limit = (thread->total - thread->posted < thread->depth) ?
                            thread->total : thread->posted + thread->depth;
        }

        count = thread->postlist;
        if (count > (thread->limit - thread->posted)) {
            count = thread->limit - thread->posted;
        }
        if ((count > 0) &&
            ((thread->posted - done + count) <= thread->depth)) {
            ret = api->post(thread, count);
            if (ret == 0) {
                continue;
            } else if (ret < 0) {
                return -1;
            }
        }
        if (sep_perf_thread_poll(thread, &vain) != 0) {
            return -1;
        }
    }
    return 0;
}

static int __attribute__((noinline))
sep_perf_thread_warm(sep_perf_thread_t *thread)
{
    return sep_perf_thread_send(thread);
}

/* Callgrind counts in here, see contrib/bench-perf.sh: so the compiler must not
 * take it for the same as the one before */
static int __attribute__((noinline))
sep_perf_thread_rate(sep_perf_thread_t *thread)
{
    asm volatile("# what is measured");
    return sep_perf_thread_send(thread);
}

static int __attribute__((noinline))
sep_perf_thread_latency(sep_perf_thread_t *thread)
{
    unsigned vain = 0;
    uint64_t i;
    double begin;
    int ret;

    for (i = 0; i < thread->total; ++i) {
        begin = sep_perf_now();
        while ((ret = thread->group->api->post(thread, 1)) > 0) {
            if (sep_perf_thread_poll(thread, &vain) != 0) {
                return -1;
            }
        }
        if (ret < 0) {
            return -1;
        }
        while (sep_perf_thread_get_done(thread) <= i) {
            if (sep_perf_thread_poll(thread, &vain) != 0) {
                return -1;
            }
        }
        thread->samples[i] = sep_perf_now() - begin;
    }
    return 0;
}

static void *sep_perf_thread_main(void *arg)
{
    sep_perf_thread_t *thread = arg;
    sep_perf_group_t *group   = thread->group;
    int ret;

    if (group->pin) {
        sep_perf_thread_pin(thread->index);
    }
    pthread_barrier_wait(&group->barrier);
    while (group->is_serial &&
           (__atomic_load_n(&group->turn, __ATOMIC_ACQUIRE) !=
            thread->index)) {
        sched_yield();
    }
    thread->begin = sep_perf_now();
    ret           = (group->phase == SEP_PERF_LATENCY) ?
                    sep_perf_thread_latency(thread) :
                    (group->phase == SEP_PERF_RATE) ?
                    sep_perf_thread_rate(thread) :
                    sep_perf_thread_warm(thread);
    thread->end   = sep_perf_now();
    if (group->is_serial) {
        __atomic_store_n(&group->turn, thread->index + 1, __ATOMIC_RELEASE);
    }
    if (ret != 0) {
        __atomic_store_n(&group->failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int sep_perf_group_init(sep_perf_group_t *group, const sep_perf_api_t *api,
                        const sep_perf_options_t *options,
                        const sep_perf_row_t *row, int is_shared)
{
    unsigned i;

    memset(group, 0, sizeof(*group));
    group->api       = api;
    group->row       = row;
    group->turns     = options->turns;
    group->pin       = options->pin;
    group->is_serial = options->serial;
    group->is_shared = is_shared;
    group->threads   = aligned_alloc(64, row->threads *
                                         sizeof(*group->threads));
    if (group->threads == NULL) {
        perror("sep_perf: memory for threads");
        return -1;
    }

    memset(group->threads, 0, row->threads * sizeof(*group->threads));
    for (i = 0; i < row->threads; ++i) {
        group->threads[i].group = group;
        group->threads[i].index = i;
    }
    return 0;
}

void sep_perf_group_cleanup(sep_perf_group_t *group)
{
    free(group->threads);
    group->threads = NULL;
}

static void sep_perf_thread_reset(sep_perf_thread_t *thread, uint64_t messages,
                                  double *samples)
{
    const sep_perf_row_t *row = thread->group->row;

    thread->postlist = (samples != NULL) ? 1 : row->postlist;
    thread->signal   = (samples != NULL) ? 1 : row->signal;
    thread->depth    = (samples != NULL) ? 1 : row->depth;
    thread->covered  = 0;
    thread->posted   = 0;
    thread->done     = 0;
    thread->total    = messages;
    thread->limit    = messages;
    thread->samples  = samples;
}

static int sep_perf_compare(const void *a, const void *b)
{
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

static void sep_perf_summarize(const sep_perf_group_t *group, uint64_t messages,
                               double *samples, sep_perf_times_t *times)
{
    const sep_perf_thread_t *threads = group->threads;
    unsigned num_threads             = group->row->threads;
    uint64_t count                   = num_threads * messages;
    double begin                     = threads[0].begin;
    double end                       = threads[0].end;
    double sum                       = 0;
    uint64_t i;

    for (i = 1; i < num_threads; ++i) {
        begin = (threads[i].begin < begin) ? threads[i].begin : begin;
        end   = (threads[i].end > end) ? threads[i].end : end;
    }
    if (samples == NULL) {
        times->rate = count / (end - begin);
        return;
    }

    qsort(samples, count, sizeof(*samples), sep_perf_compare);
    for (i = 0; i < count; ++i) {
        sum += samples[i];
    }
    times->mean   = sum / count;
    times->median = samples[count / 2];
    times->p99    = samples[(count * 99) / 100];
}

int sep_perf_group_run(sep_perf_group_t *group, uint64_t messages,
                       sep_perf_phase_t phase, sep_perf_times_t *times_p)
{
    unsigned num_threads = group->row->threads;
    double *samples      = NULL;
    unsigned i, started;

    if (phase == SEP_PERF_LATENCY) {
        samples = calloc(num_threads * messages, sizeof(*samples));
        if (samples == NULL) {
            perror("sep_perf: memory for times");
            return -1;
        }
    }

    group->failed = 0;
    group->phase  = phase;
    group->turn   = 0;
    pthread_barrier_init(&group->barrier, NULL, num_threads);
    for (i = 0; i < num_threads; ++i) {
        sep_perf_thread_reset(&group->threads[i], messages,
                              (samples != NULL) ?
                              &samples[i * messages] : NULL);
    }
    for (started = 0; started < num_threads; ++started) {
        if (pthread_create(&group->threads[started].id, NULL,
                           sep_perf_thread_main,
                           &group->threads[started]) != 0) {
            /* Those that were started wait for it at the barrier */
            fprintf(stderr, "sep_perf: only %u of %u threads can be started\n",
                    started, num_threads);
            exit(SEP_PERF_FAILED);
        }
    }
    for (i = 0; i < num_threads; ++i) {
        pthread_join(group->threads[i].id, NULL);
    }
    pthread_barrier_destroy(&group->barrier);
    if (!group->failed) {
        sep_perf_summarize(group, messages, samples, times_p);
    }
    free(samples);
    return group->failed ? -1 : 0;
}
