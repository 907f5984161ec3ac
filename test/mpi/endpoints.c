/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An endpoint per thread: T threads per rank, each with a communicator and a
 * window of its own, so that an MPI library that can will give each thread an
 * interface of its own. All of them send, put, get, accumulate and reduce at
 * the same time; before that threads come and go, with the same communicators.
 *
 *   --threads T    threads per rank (default 4)
 *   --seconds S    a mixture of everything, chosen by the thread's own sequence
 *                  of random numbers, for so long (default: a fixed number)
 *   --two-sided    no windows: libraries may open interfaces for these besides
 *
 * Pauses, see mpi_job_pause(), when the threads have done everything and still
 * exist.
 */

#include "mpi_job.h"

#include <pthread.h>

#define ENDPOINTS_MAX_THREADS   64
#define ENDPOINTS_WINDOW        8
#define ENDPOINTS_NUM_SUMS      32
#define ENDPOINTS_MAX_SIZE      20000


static const size_t endpoints_sizes[] = {8, 0, 100, 1024, 8000, 20000};

#define ENDPOINTS_NUM_SIZES \
    (sizeof(endpoints_sizes) / sizeof(endpoints_sizes[0]))


/** Memory that other ranks write: what is put, and what is added to. */
typedef struct endpoints_target {
    uint8_t  data[ENDPOINTS_MAX_SIZE];
    int64_t  sums[ENDPOINTS_NUM_SUMS];
} endpoints_target_t;


typedef struct endpoints_thread {
    pthread_t           thread;
    int                 index;        /**< In its rank */
    MPI_Comm            comm;         /**< Used by threads of this index only */
    MPI_Win             win;          /**< Likewise */
    endpoints_target_t  *target;      /**< Memory of the window */
    uint64_t            sequence;     /**< Of its messages, the same in all
                                           ranks */
    int                 round;        /**< Of coming and going */
    job_buffer_t        send[ENDPOINTS_WINDOW];
    job_buffer_t        recv[ENDPOINTS_WINDOW];
} endpoints_thread_t;


typedef struct endpoints {
    int                 num_threads;
    double              seconds;      /**< 0: a fixed number of steps */
    bool                two_sided;    /**< No windows */
    int                 next;         /**< Rank that this one sends to */
    int                 prev;         /**< Rank that sends to this one */
    atomic_int          num_done;     /**< Threads that have done all */
    atomic_bool         is_released;  /**< They may end */
    endpoints_thread_t  threads[ENDPOINTS_MAX_THREADS];
} endpoints_t;

static endpoints_t endpoints = {.num_threads = 4};


/** Message number for contents: unique to thread and position. */
static uint64_t endpoints_sequence(endpoints_thread_t *self)
{
    return ((uint64_t)self->index << 48) | self->sequence++;
}

/** Windows of non-blocking messages around the ring of ranks. */
static void endpoints_exchange(endpoints_thread_t *self)
{
    MPI_Request requests[2 * ENDPOINTS_WINDOW];
    uint64_t sequence[ENDPOINTS_WINDOW];
    size_t size;
    int w;

    for (w = 0; w < ENDPOINTS_WINDOW; ++w) {
        size                 = endpoints_sizes[(self->sequence + w) %
                                               ENDPOINTS_NUM_SIZES];
        self->send[w].length = size;
        self->recv[w].length = size;
        job_buffer_clear(&self->recv[w]);
        MPI_JOB_CALL(MPI_Irecv(self->recv[w].data, size, MPI_BYTE,
                               endpoints.prev, w, self->comm, &requests[w]));
    }

    for (w = 0; w < ENDPOINTS_WINDOW; ++w) {
        size        = self->send[w].length;
        sequence[w] = endpoints_sequence(self);
        mpi_job_fill_data(&self->send[w], size, mpi_job.rank, endpoints.next,
                          sequence[w]);
        MPI_JOB_CALL(MPI_Isend(self->send[w].data, size, MPI_BYTE,
                               endpoints.next, w, self->comm,
                               &requests[ENDPOINTS_WINDOW + w]));
        mpi_job_sent(size);
    }

    mpi_job_wait_all(2 * ENDPOINTS_WINDOW, requests);
    for (w = 0; w < ENDPOINTS_WINDOW; ++w) {
        mpi_job_check_data(&self->recv[w], self->recv[w].length, endpoints.prev,
                           mpi_job.rank, sequence[w]);
        memset(self->recv[w].data, JOB_GUARD_BYTE, self->recv[w].length);
    }
}

/** A message of the greatest length there and back, by rendezvous. */
static void endpoints_ping_pong(endpoints_thread_t *self)
{
    uint64_t sequence = endpoints_sequence(self);

    self->send[0].length = ENDPOINTS_MAX_SIZE;
    self->recv[0].length = ENDPOINTS_MAX_SIZE;
    job_buffer_clear(&self->recv[0]);
    mpi_job_fill_data(&self->send[0], ENDPOINTS_MAX_SIZE, mpi_job.rank,
                      endpoints.next, sequence);
    MPI_JOB_CALL(MPI_Sendrecv(self->send[0].data, ENDPOINTS_MAX_SIZE, MPI_BYTE,
                              endpoints.next, 99, self->recv[0].data,
                              ENDPOINTS_MAX_SIZE, MPI_BYTE, endpoints.prev, 99,
                              self->comm, MPI_STATUS_IGNORE));
    mpi_job_sent(ENDPOINTS_MAX_SIZE);
    mpi_job_check_data(&self->recv[0], ENDPOINTS_MAX_SIZE, endpoints.prev,
                       mpi_job.rank, sequence);
    memset(self->recv[0].data, JOB_GUARD_BYTE, ENDPOINTS_MAX_SIZE);
}

/** Put into the next rank's window, and get it back from there. */
static void endpoints_put(endpoints_thread_t *self)
{
    uint64_t sequence = endpoints_sequence(self);
    size_t size       = endpoints_sizes[sequence % ENDPOINTS_NUM_SIZES];
    uint64_t seed;
    size_t offset;

    self->send[0].length = size;
    self->recv[0].length = size;
    job_buffer_clear(&self->recv[0]);
    mpi_job_fill_data(&self->send[0], size, mpi_job.rank, endpoints.next,
                      sequence);
    MPI_JOB_CALL(MPI_Put(self->send[0].data, size, MPI_BYTE, endpoints.next,
                         offsetof(endpoints_target_t, data), size, MPI_BYTE,
                         self->win));
    MPI_JOB_CALL(MPI_Win_flush(endpoints.next, self->win));
    MPI_JOB_CALL(MPI_Get(self->recv[0].data, size, MPI_BYTE, endpoints.next,
                         offsetof(endpoints_target_t, data), size, MPI_BYTE,
                         self->win));
    MPI_JOB_CALL(MPI_Win_flush(endpoints.next, self->win));
    mpi_job_sent(size);
    mpi_job_check_data(&self->recv[0], size, mpi_job.rank, endpoints.next,
                       sequence);
    memset(self->recv[0].data, JOB_GUARD_BYTE, size);

    MPI_JOB_CALL(MPI_Barrier(self->comm));
    MPI_JOB_CALL(MPI_Win_sync(self->win));
    seed   = job_pattern_seed(endpoints.prev, mpi_job.rank, sequence);
    offset = job_pattern_mismatch(self->target->data, size, seed);
    MPI_JOB_CHECK(offset == size, "thread %d: byte %zu of %zu put by rank %d "
                  "is 0x%02x, expected 0x%02x", self->index, offset, size,
                  endpoints.prev, self->target->data[offset],
                  job_pattern_byte(seed, offset));
    MPI_JOB_CALL(MPI_Barrier(self->comm));
}

/** All ranks add to a sum in the window of one. */
static void endpoints_accumulate_at(endpoints_thread_t *self, int target)
{
    uint64_t sequence = endpoints_sequence(self);
    int where         = sequence % ENDPOINTS_NUM_SUMS;
    int64_t add       = sequence + mpi_job.rank;
    MPI_Aint offset   = offsetof(endpoints_target_t, sums) +
                        (where * sizeof(int64_t));
    int64_t expected, old;

    if (mpi_job.rank == target) {
        self->target->sums[where] = 0;
        MPI_JOB_CALL(MPI_Win_sync(self->win));
    }
    MPI_JOB_CALL(MPI_Barrier(self->comm));

    MPI_JOB_CALL(MPI_Accumulate(&add, 1, MPI_INT64_T, target, offset, 1,
                                MPI_INT64_T, MPI_SUM, self->win));
    MPI_JOB_CALL(MPI_Win_flush(target, self->win));
    MPI_JOB_CALL(MPI_Fetch_and_op(&add, &old, MPI_INT64_T, target, offset,
                                  MPI_SUM, self->win));
    MPI_JOB_CALL(MPI_Win_flush(target, self->win));
    mpi_job_sent(sizeof(add));
    MPI_JOB_CHECK(old >= add, "thread %d: sum was %" PRId64 " behind an "
                  "addition of %" PRId64, self->index, old, add);

    MPI_JOB_CALL(MPI_Barrier(self->comm));
    if (mpi_job.rank == target) {
        MPI_JOB_CALL(MPI_Win_sync(self->win));
        expected = 2 * ((mpi_job.size * (int64_t)sequence) +
                        (mpi_job.size * (mpi_job.size - 1) / 2));
        MPI_JOB_CHECK(self->target->sums[where] == expected,
                      "thread %d: sum is %" PRId64 ", expected %" PRId64,
                      self->index, self->target->sums[where], expected);
    }
    MPI_JOB_CALL(MPI_Barrier(self->comm));
}

static void endpoints_accumulate(endpoints_thread_t *self)
{
    /* All threads want the same target, and may poll for its lock */
    const int stride = job_stride(mpi_job.size) * job_stride(mpi_job.size);
    int target;

    for (target = 0; target < mpi_job.size; target += stride) {
        endpoints_accumulate_at(self, target);
    }
}

/** Collectives of different threads at once. */
static void endpoints_collectives(endpoints_thread_t *self)
{
    uint64_t sequence = endpoints_sequence(self);
    int root          = sequence % mpi_job.size;
    size_t size       = endpoints_sizes[sequence % ENDPOINTS_NUM_SIZES];
    job_buffer_t *buffer = &self->recv[0];
    int64_t value, expected;

    value    = sequence + mpi_job.rank;
    expected = (mpi_job.size * (int64_t)sequence) +
               (mpi_job.size * (mpi_job.size - 1) / 2);
    MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM,
                               self->comm));
    MPI_JOB_CHECK(value == expected, "thread %d: sum of all ranks is %" PRId64
                  ", expected %" PRId64, self->index, value, expected);
    mpi_job_sent(sizeof(value));

    buffer->length = size;
    if (mpi_job.rank == root) {
        mpi_job_fill_data(buffer, size, root, root, sequence);
    } else {
        job_buffer_clear(buffer);
    }
    MPI_JOB_CALL(MPI_Bcast(buffer->data, size, MPI_BYTE, root, self->comm));
    mpi_job_check_data(buffer, size, root, root, sequence);
    memset(buffer->data, JOB_GUARD_BYTE, size);
}

/** One step of what is done, the same in all ranks. */
static void endpoints_step(endpoints_thread_t *self, unsigned which)
{
    switch (which % (endpoints.two_sided ? 3 : 5)) {
    case 0:
        endpoints_exchange(self);
        break;
    case 1:
        endpoints_ping_pong(self);
        break;
    case 2:
        endpoints_collectives(self);
        break;
    case 3:
        endpoints_put(self);
        break;
    default:
        endpoints_accumulate(self);
        break;
    }
}

/** Whether one rank's time is over: all have to stop at the same step. */
static bool endpoints_is_over(endpoints_thread_t *self, double end)
{
    int over = MPI_Wtime() >= end;

    MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_MAX,
                               self->comm));
    return over;
}

/** Everything at the same time, in orders that differ among threads. */
static void *endpoints_main(void *arg)
{
    endpoints_thread_t *self = arg;
    double end               = MPI_Wtime() + endpoints.seconds;
    int i, steps, found;

    if (!endpoints.two_sided) {
        MPI_JOB_CALL(MPI_Win_lock_all(0, self->win));
    }

    if (endpoints.seconds > 0) {
        for (i = 0; ((i % 16) != 0) || !endpoints_is_over(self, end); ++i) {
            endpoints_step(self, job_pattern_seed(self->index, 0, i) >> 32);
        }
    } else {
        steps = (mpi_job.quick || (endpoints.num_threads > 4)) ? 10 : 25;
        steps = steps / job_stride(mpi_job.size);
        steps = (steps < 5) ? 5 : steps; /* Each kind at least once */
        for (i = 0; i < steps; ++i) {
            endpoints_step(self, self->index + i);
        }
    }

    /* In MPI all the time: with UCX_SEP_TX_POSTLIST, the last messages leave
     * with the next call */
    atomic_fetch_add(&endpoints.num_done, 1);
    while (!atomic_load(&endpoints.is_released)) {
        MPI_JOB_CALL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self->comm, &found,
                                MPI_STATUS_IGNORE));
        MPI_JOB_CHECK(!found, "thread %d: a message too many", self->index);
        usleep(1000);
    }

    if (!endpoints.two_sided) {
        MPI_JOB_CALL(MPI_Win_unlock_all(self->win));
    }
    return NULL;
}

/** A thread that lives for one step. */
static void *endpoints_visitor(void *arg)
{
    endpoints_thread_t *self = arg;

    endpoints_step(self, (self->index + self->round) % 3);
    return NULL;
}

static void endpoints_create(endpoints_thread_t *self, void *(*main)(void*))
{
    int ret = pthread_create(&self->thread, NULL, main, self);

    MPI_JOB_CHECK(ret == 0, "pthread_create: %s", strerror(ret));
}

static void endpoints_join(endpoints_thread_t *self)
{
    int ret = pthread_join(self->thread, NULL);

    MPI_JOB_CHECK(ret == 0, "pthread_join: %s", strerror(ret));
}

static void endpoints_open(endpoints_thread_t *self, int index)
{
    int w;

    self->index = index;
    MPI_JOB_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &self->comm));
    for (w = 0; w < ENDPOINTS_WINDOW; ++w) {
        self->send[w] = job_buffer_alloc(ENDPOINTS_MAX_SIZE);
        self->recv[w] = job_buffer_alloc(ENDPOINTS_MAX_SIZE);
    }
}

static void endpoints_open_window(endpoints_thread_t *self)
{
    MPI_JOB_CALL(MPI_Win_allocate(sizeof(*self->target), 1, MPI_INFO_NULL,
                                  self->comm, &self->target, &self->win));
    memset(self->target, 0, sizeof(*self->target));
}

static void endpoints_close(endpoints_thread_t *self)
{
    int w;

    for (w = 0; w < ENDPOINTS_WINDOW; ++w) {
        job_buffer_free(&self->recv[w]);
        job_buffer_free(&self->send[w]);
    }
    if (!endpoints.two_sided) {
        MPI_JOB_CALL(MPI_Win_free(&self->win));
    }
    MPI_JOB_CALL(MPI_Comm_free(&self->comm));
}

static void endpoints_come_and_go(int rounds)
{
    int i, round;

    mpi_job_part("threads that come and go");
    for (round = 0; round < rounds; ++round) {
        for (i = 0; i < endpoints.num_threads; ++i) {
            endpoints.threads[i].round = round;
            endpoints_create(&endpoints.threads[i], endpoints_visitor);
        }
        for (i = 0; i < endpoints.num_threads; ++i) {
            endpoints_join(&endpoints.threads[i]);
        }
    }
}

/** Take this program's options out of the command line. */
static void endpoints_parse(int *argc, char **argv)
{
    int i, left = 1;
    char *end;

    for (i = 1; i < *argc; ++i) {
        end = NULL;
        if (!strcmp(argv[i], "--two-sided")) {
            endpoints.two_sided = true;
        } else if (!strcmp(argv[i], "--threads") && (i + 1 < *argc)) {
            endpoints.num_threads = strtol(argv[++i], &end, 10);
        } else if (!strcmp(argv[i], "--seconds") && (i + 1 < *argc)) {
            endpoints.seconds = strtod(argv[++i], &end);
        } else {
            argv[left++] = argv[i];
        }
        if ((end != NULL) && (*end != '\0')) {
            endpoints.num_threads = -1;
        }
    }

    if ((endpoints.num_threads < 1) ||
        (endpoints.num_threads > ENDPOINTS_MAX_THREADS) ||
        (endpoints.seconds < 0)) {
        fprintf(stderr, "FAIL endpoints: from 1 to %d threads, and at least 0 "
                "seconds, are possible\n", ENDPOINTS_MAX_THREADS);
        exit(EXIT_FAILURE);
    }
    *argc = left;
}

int main(int argc, char **argv)
{
    double start;
    int i;

    endpoints_parse(&argc, argv);
    mpi_job_init(&argc, &argv, "endpoints", MPI_THREAD_MULTIPLE, 2);
    endpoints.next = (mpi_job.rank + 1) % mpi_job.size;
    endpoints.prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;

    mpi_job_part("communicators and windows");
    for (i = 0; i < endpoints.num_threads; ++i) {
        endpoints_open(&endpoints.threads[i], i);
    }
    /* MPICH takes interfaces in turn for communicators, and a window makes one:
     * in this order, a thread's communicator and window have the same */
    for (i = 0; (i < endpoints.num_threads) && !endpoints.two_sided; ++i) {
        endpoints_open_window(&endpoints.threads[i]);
    }

    endpoints_come_and_go(mpi_job.quick ? 2 : 5);

    mpi_job_part("all threads at once");
    start = MPI_Wtime();
    for (i = 0; i < endpoints.num_threads; ++i) {
        endpoints_create(&endpoints.threads[i], endpoints_main);
    }
    while (atomic_load(&endpoints.num_done) < endpoints.num_threads) {
        usleep(200);
    }
    if (mpi_job.rank == 0) {
        mpi_job_metric("endpoints", endpoints.num_threads,
                       (MPI_Wtime() - start) * 1e3, "ms");
    }
    mpi_job_pause();
    atomic_store(&endpoints.is_released, true);
    for (i = 0; i < endpoints.num_threads; ++i) {
        endpoints_join(&endpoints.threads[i]);
    }

    for (i = 0; i < endpoints.num_threads; ++i) {
        endpoints_close(&endpoints.threads[i]);
    }
    return mpi_job_finish();
}
