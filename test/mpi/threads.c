/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MPI_THREAD_MULTIPLE: several threads per rank send and receive at the same
 * time, each pair of threads on a communicator of its own, then all on one
 * communicator and told apart by tags. The contents name the thread, so a
 * message that reaches the wrong thread is seen.
 */

#include "mpi_job.h"

#include <pthread.h>

#define THREADS_MAX     4
#define THREADS_WINDOW  8


static const size_t threads_sizes[] = {0, 8, 64, 1000, 4096, 8192, 50000};

#define THREADS_NUM_SIZES  (sizeof(threads_sizes) / sizeof(threads_sizes[0]))


typedef struct threads_arg {
    int      index;         /**< Of this thread in its rank */
    MPI_Comm own;           /**< Used by the threads of this index only */
    MPI_Comm shared;        /**< Used by all threads */
    int      iterations;
} threads_arg_t;


/** Message number for contents: unique to thread, phase and position. */
static uint64_t threads_sequence(const threads_arg_t *arg, int phase, int i)
{
    return ((uint64_t)arg->index << 48) | ((uint64_t)phase << 40) | i;
}

/** Blocking exchange with every other rank, both directions in turn. */
static void threads_ping_pong(const threads_arg_t *arg, MPI_Comm comm,
                              int tag_base, int phase, job_buffer_t *send,
                              job_buffer_t *recv)
{
    int distance, next, prev, i;
    MPI_Status status;
    uint64_t sequence;
    size_t size;
    int count;

    for (i = 0; i < arg->iterations; ++i) {
        distance = 1 + (i % (mpi_job.size - 1));
        next     = (mpi_job.rank + distance) % mpi_job.size;
        prev     = (mpi_job.rank + mpi_job.size - distance) % mpi_job.size;
        size     = threads_sizes[(i + arg->index) % THREADS_NUM_SIZES];
        sequence = threads_sequence(arg, phase, i);

        recv->length = size;
        job_buffer_clear(recv);
        mpi_job_fill_data(send, size, mpi_job.rank, next, sequence);
        MPI_JOB_CALL(MPI_Sendrecv(send->data, size, MPI_BYTE, next,
                                  tag_base + arg->index, recv->data, size,
                                  MPI_BYTE, prev, tag_base + arg->index, comm,
                                  &status));
        mpi_job_sent(size);
        MPI_JOB_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
        MPI_JOB_CHECK((size_t)count == size,
                      "thread %d got %d bytes, expected %zu", arg->index, count,
                      size);
        mpi_job_check_data(recv, size, prev, mpi_job.rank, sequence);
        memset(recv->data, JOB_GUARD_BYTE, size);
    }
}

/** Windows of non-blocking messages both ways at once. */
static void threads_windows(const threads_arg_t *arg, int phase)
{
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    job_buffer_t send[THREADS_WINDOW], recv[THREADS_WINDOW];
    MPI_Request requests[2 * THREADS_WINDOW];
    int i, w, tag;
    size_t size;

    for (w = 0; w < THREADS_WINDOW; ++w) {
        size    = threads_sizes[w % THREADS_NUM_SIZES];
        send[w] = job_buffer_alloc(size);
        recv[w] = job_buffer_alloc(size);
    }

    for (i = 0; i < arg->iterations / THREADS_WINDOW; ++i) {
        for (w = 0; w < THREADS_WINDOW; ++w) {
            tag = (w * THREADS_MAX) + arg->index;
            job_buffer_clear(&recv[w]);
            MPI_JOB_CALL(MPI_Irecv(recv[w].data, recv[w].length, MPI_BYTE, prev,
                                   tag, arg->shared, &requests[w]));
        }
        for (w = 0; w < THREADS_WINDOW; ++w) {
            tag = (w * THREADS_MAX) + arg->index;
            mpi_job_fill_data(&send[w], send[w].length, mpi_job.rank, next,
                              threads_sequence(arg, phase,
                                               (i * THREADS_WINDOW) + w));
            MPI_JOB_CALL(MPI_Isend(send[w].data, send[w].length, MPI_BYTE, next,
                                   tag, arg->shared,
                                   &requests[THREADS_WINDOW + w]));
            mpi_job_sent(send[w].length);
        }

        mpi_job_wait_all(2 * THREADS_WINDOW, requests);
        for (w = 0; w < THREADS_WINDOW; ++w) {
            mpi_job_check_data(&recv[w], recv[w].length, prev, mpi_job.rank,
                               threads_sequence(arg, phase,
                                                (i * THREADS_WINDOW) + w));
        }
    }

    for (w = 0; w < THREADS_WINDOW; ++w) {
        job_buffer_free(&recv[w]);
        job_buffer_free(&send[w]);
    }
}

/** One thread sends while its counterpart receives, unexpected ones among
 *  them: even threads of even ranks send first. */
static void threads_one_way(const threads_arg_t *arg, int phase,
                            job_buffer_t *buffer)
{
    int partner = mpi_job.rank ^ 1;
    int half, i;
    size_t size;

    if (partner >= mpi_job.size) {
        return;
    }

    for (half = 0; half < 2; ++half) {
        for (i = 0; i < arg->iterations; ++i) {
            size           = threads_sizes[i % (THREADS_NUM_SIZES - 1)];
            buffer->length = size;
            if (((mpi_job.rank ^ arg->index ^ half) & 1) == 0) {
                mpi_job_fill_data(buffer, size, mpi_job.rank, partner,
                                  threads_sequence(arg, phase + half, i));
                MPI_JOB_CALL(MPI_Send(buffer->data, size, MPI_BYTE, partner, i,
                                      arg->own));
                mpi_job_sent(size);
            } else {
                job_buffer_clear(buffer);
                MPI_JOB_CALL(MPI_Recv(buffer->data, size, MPI_BYTE, partner, i,
                                      arg->own, MPI_STATUS_IGNORE));
                mpi_job_check_data(buffer, size, partner, mpi_job.rank,
                                   threads_sequence(arg, phase + half, i));
            }
            memset(buffer->data, JOB_GUARD_BYTE, size);
        }
    }
}

/** Collectives of different threads at once, each on its communicator. */
static void threads_collectives(const threads_arg_t *arg)
{
    int i, value, expected;

    for (i = 0; i < arg->iterations / 4; ++i) {
        value    = mpi_job.rank + i + arg->index;
        expected = (mpi_job.size * (mpi_job.size - 1) / 2) +
                   (mpi_job.size * (i + arg->index));
        MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM,
                                   arg->own));
        MPI_JOB_CHECK(value == expected, "sum %d of thread %d is %d, expected "
                      "%d", i, arg->index, value, expected);
    }
}

static void *threads_main(void *data)
{
    const threads_arg_t *arg = data;
    size_t max_size          = threads_sizes[THREADS_NUM_SIZES - 1];
    job_buffer_t send        = job_buffer_alloc(max_size);
    job_buffer_t recv        = job_buffer_alloc(max_size);

    threads_ping_pong(arg, arg->own, 0, 0, &send, &recv);
    threads_ping_pong(arg, arg->shared, 100, 1, &send, &recv);
    threads_windows(arg, 2);
    threads_one_way(arg, 3, &recv);
    threads_collectives(arg);

    job_buffer_free(&recv);
    job_buffer_free(&send);
    return NULL;
}

static void threads_run(int count)
{
    pthread_t threads[THREADS_MAX];
    threads_arg_t args[THREADS_MAX];
    MPI_Comm shared;
    double start;
    int i, ret;

    mpi_job_part((count == 2) ? "2 threads per rank" :
                 (count == 3) ? "3 threads per rank" : "4 threads per rank");
    MPI_JOB_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &shared));
    for (i = 0; i < count; ++i) {
        args[i].index      = i;
        args[i].shared     = shared;
        /* Every message of an oversubscribed core may cost a time slice */
        args[i].iterations = ((mpi_job.size > 2) || mpi_job.quick) ? 16 : 32;
        MPI_JOB_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &args[i].own));
    }

    start = MPI_Wtime();
    for (i = 0; i < count; ++i) {
        ret = pthread_create(&threads[i], NULL, threads_main, &args[i]);
        MPI_JOB_CHECK(ret == 0, "pthread_create: %s", strerror(ret));
    }

    for (i = 0; i < count; ++i) {
        ret = pthread_join(threads[i], NULL);
        MPI_JOB_CHECK(ret == 0, "pthread_join: %s", strerror(ret));
    }

    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    if (mpi_job.rank == 0) {
        mpi_job_metric("threads", count, (MPI_Wtime() - start) * 1e3, "ms");
    }

    for (i = 0; i < count; ++i) {
        MPI_JOB_CALL(MPI_Comm_free(&args[i].own));
    }
    MPI_JOB_CALL(MPI_Comm_free(&shared));
}

int main(int argc, char **argv)
{
    int count;

    mpi_job_init(&argc, &argv, "threads", MPI_THREAD_MULTIPLE, 2);

    /* 16 busy threads on a small machine prove no more than 12 */
    for (count = 2; count <= ((mpi_job.size > 2) ? 3 : THREADS_MAX); ++count) {
        threads_run(count);
    }
    return mpi_job_finish();
}
