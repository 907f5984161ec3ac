/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An endpoint per thread: each thread has a context that is private to it,
 * which a library gives a worker of its own. All put, get and add at the same
 * time to the same PE; then threads come and go with new contexts.
 */

#include "shmem_job.h"

#include <pthread.h>

#define CONTEXTS_MAX_THREADS  8
#define CONTEXTS_SIZE         20000


static const size_t contexts_sizes[] = {8, 100, 1024, 8000, CONTEXTS_SIZE};

#define CONTEXTS_NUM_SIZES \
    (sizeof(contexts_sizes) / sizeof(contexts_sizes[0]))


typedef struct contexts_thread {
    pthread_t thread;
    int       index;        /**< In its PE */
    int       round;        /**< Of coming and going */
    int       steps;
    uint8_t   *slot;        /**< Symmetric, of this thread's index */
    long      *sum;         /**< Likewise */
    long      added;        /**< To the sum of the next PE */
} contexts_thread_t;


static int contexts_next(void)
{
    return (shmem_job.pe + 1) % shmem_job.num_pes;
}

/** Number for contents: unique to thread, round and step. */
static uint64_t contexts_sequence(const contexts_thread_t *self, int step)
{
    return ((uint64_t)self->index << 48) | ((uint64_t)self->round << 32) | step;
}

static void contexts_step(contexts_thread_t *self, shmem_ctx_t ctx,
                          uint8_t *local, int step)
{
    uint64_t sequence = contexts_sequence(self, step);
    size_t size       = contexts_sizes[step % CONTEXTS_NUM_SIZES];
    int next          = contexts_next();
    long add          = 1 + (step * 1000) + self->index;

    job_pattern_fill(local, size,
                     job_pattern_seed(shmem_job.pe, next, sequence));
    shmem_ctx_putmem_nbi(ctx, self->slot, local, size, next);
    shmem_ctx_quiet(ctx);
    shmem_job_sent(next, size);

    memset(local, JOB_GUARD_BYTE, size);
    shmem_ctx_getmem(ctx, local, self->slot, size, next);
    shmem_job_check_data(local, size, shmem_job.pe, next, sequence);
    memset(local, JOB_GUARD_BYTE, size);

    shmem_ctx_long_atomic_add(ctx, self->sum, add, next);
    self->added += add;
    shmem_job_sent(next, sizeof(add));
}

static void *contexts_main(void *arg)
{
    contexts_thread_t *self = arg;
    uint8_t *local          = malloc(CONTEXTS_SIZE + 1);
    shmem_ctx_t ctx;
    int step, ret;

    SHMEM_JOB_CHECK(local != NULL, "out of memory");
    memset(local, JOB_GUARD_BYTE, CONTEXTS_SIZE + 1);
    ret = shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);
    SHMEM_JOB_CHECK(ret == 0, "thread %d: shmem_ctx_create returned %d",
                    self->index, ret);
    for (step = 0; step < self->steps; ++step) {
        contexts_step(self, ctx, local, step);
    }

    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    free(local);
    return NULL;
}

/** Run threads once. */
static void contexts_run(contexts_thread_t *threads, int count, int steps,
                         int round)
{
    int i, ret;

    for (i = 0; i < count; ++i) {
        threads[i].steps = steps;
        threads[i].round = round;
        ret = pthread_create(&threads[i].thread, NULL, contexts_main,
                             &threads[i]);
        SHMEM_JOB_CHECK(ret == 0, "pthread_create: %s", strerror(ret));
    }
    for (i = 0; i < count; ++i) {
        ret = pthread_join(threads[i].thread, NULL);
        SHMEM_JOB_CHECK(ret == 0, "pthread_join: %s", strerror(ret));
    }
}

/** All PEs added the same to their next one's sums. */
static void contexts_check_sums(contexts_thread_t *threads, int count)
{
    int i;

    shmem_barrier_all();
    for (i = 0; i < count; ++i) {
        SHMEM_JOB_CHECK(*threads[i].sum == threads[i].added,
                        "thread %d: sum is %ld, expected %ld", i,
                        *threads[i].sum, threads[i].added);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    static contexts_thread_t threads[CONTEXTS_MAX_THREADS];
    uint8_t *slots;
    double start;
    long *sums;
    int i, count, round;

    shmem_job_init_thread(argc, argv, "contexts", SHMEM_THREAD_MULTIPLE);
    slots = shmem_job_alloc((size_t)CONTEXTS_SIZE * CONTEXTS_MAX_THREADS);
    sums  = shmem_job_alloc(sizeof(*sums) * CONTEXTS_MAX_THREADS);
    memset(sums, 0, sizeof(*sums) * CONTEXTS_MAX_THREADS);
    for (i = 0; i < CONTEXTS_MAX_THREADS; ++i) {
        threads[i].index = i;
        threads[i].slot  = slots + ((size_t)CONTEXTS_SIZE * i);
        threads[i].sum   = &sums[i];
    }
    shmem_barrier_all();

    shmem_job_part("all threads at once");
    for (count = 2; count <= CONTEXTS_MAX_THREADS; count *= 2) {
        start = shmem_job_time();
        contexts_run(threads, count, shmem_job.quick ? 10 : 30, count);
        if (shmem_job.pe == 0) {
            shmem_job_metric("endpoints", count,
                             (shmem_job_time() - start) * 1e3, "ms");
        }
        contexts_check_sums(threads, CONTEXTS_MAX_THREADS);
    }

    shmem_job_part("threads that come and go");
    for (round = 0; round < (shmem_job.quick ? 3 : 10); ++round) {
        contexts_run(threads, 4, 2, 100 + round);
    }
    contexts_check_sums(threads, CONTEXTS_MAX_THREADS);

    shmem_free(sums);
    shmem_free(slots);
    return shmem_job_finish();
}
