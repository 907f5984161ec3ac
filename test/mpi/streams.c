/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An MPIX_Stream per thread, MPICH's way to give a thread an interface by name:
 * MPIR_CVAR_CH4_RESERVE_VCIS of them are kept for streams. What goes through a
 * communicator made for a stream is not locked, and all threads send at the
 * same time here.
 *
 *   --threads T    threads per rank (default 2); as many interfaces are to be
 *                  reserved
 *
 * Pauses, see mpi_job_pause(), when the threads have done everything and still
 * exist. Skips itself with an MPI library that has no MPIX_Stream.
 */

#include "mpi_job.h"

#include <pthread.h>

#define STREAMS_MAX_THREADS  64
#define STREAMS_MAX_SIZE     20000

static int streams_num_threads = 2;


/** Take this program's options out of the command line. */
static void streams_parse(int *argc, char **argv)
{
    int i, left = 1;
    char *end;

    for (i = 1; i < *argc; ++i) {
        if (strcmp(argv[i], "--threads") || (i + 1 == *argc)) {
            argv[left++] = argv[i];
            continue;
        }
        streams_num_threads = strtol(argv[++i], &end, 10);
        if ((*end != '\0') || (streams_num_threads < 1) ||
            (streams_num_threads > STREAMS_MAX_THREADS)) {
            fprintf(stderr, "FAIL streams: from 1 to %d threads are possible\n",
                    STREAMS_MAX_THREADS);
            exit(EXIT_FAILURE);
        }
    }
    *argc = left;
}

#if defined(MPICH_NUMVERSION) && (MPICH_NUMVERSION >= 40100000)

static const size_t streams_sizes[] = {8, 0, 100, 1024, 8000, STREAMS_MAX_SIZE};

#define STREAMS_NUM_SIZES (sizeof(streams_sizes) / sizeof(streams_sizes[0]))


typedef struct streams_thread {
    pthread_t     thread;
    int           index;      /**< In its rank */
    MPIX_Stream   stream;
    MPI_Comm      comm;       /**< Of the stream */
    job_buffer_t  send;
    job_buffer_t  recv;
} streams_thread_t;

static streams_thread_t streams[STREAMS_MAX_THREADS];
static atomic_int streams_num_done;
static atomic_bool streams_is_released;


/** A message around the ring of ranks, and a sum of all. Not MPI_Sendrecv():
 *  MPICH 4.2.1 waits for ever in it on a stream's communicator. */
static void streams_step(streams_thread_t *self, int step)
{
    int next          = (mpi_job.rank + 1) % mpi_job.size;
    int prev          = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    uint64_t sequence = ((uint64_t)self->index << 48) | step;
    size_t size       = streams_sizes[step % STREAMS_NUM_SIZES];
    int64_t value     = step + mpi_job.rank;
    int64_t expected  = (mpi_job.size * (int64_t)step) +
                        (mpi_job.size * (mpi_job.size - 1) / 2);
    MPI_Request request;

    self->send.length = size;
    self->recv.length = size;
    job_buffer_clear(&self->recv);
    mpi_job_fill_data(&self->send, size, mpi_job.rank, next, sequence);
    MPI_JOB_CALL(MPI_Irecv(self->recv.data, size, MPI_BYTE, prev, 1, self->comm,
                           &request));
    MPI_JOB_CALL(MPI_Send(self->send.data, size, MPI_BYTE, next, 1,
                          self->comm));
    MPI_JOB_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    mpi_job_sent(size);
    mpi_job_check_data(&self->recv, size, prev, mpi_job.rank, sequence);
    memset(self->recv.data, JOB_GUARD_BYTE, size);

    MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM,
                               self->comm));
    mpi_job_sent(sizeof(value));
    MPI_JOB_CHECK(value == expected, "thread %d: sum of all ranks is %" PRId64
                  ", expected %" PRId64, self->index, value, expected);
}

static void *streams_main(void *arg)
{
    streams_thread_t *self = arg;
    int steps              = mpi_job.quick ? 30 : 300;
    int step;

    for (step = 0; step < steps; ++step) {
        streams_step(self, step);
    }

    atomic_fetch_add(&streams_num_done, 1);
    while (!atomic_load(&streams_is_released)) {
        usleep(1000);
    }
    return NULL;
}

static void streams_run(void)
{
    streams_thread_t *self;
    int i, ret;

    /* All ranks make them in the same order */
    mpi_job_part("streams and their communicators");
    for (i = 0; i < streams_num_threads; ++i) {
        self        = &streams[i];
        self->index = i;
        self->send  = job_buffer_alloc(STREAMS_MAX_SIZE);
        self->recv  = job_buffer_alloc(STREAMS_MAX_SIZE);
        MPI_JOB_CALL(MPIX_Stream_create(MPI_INFO_NULL, &self->stream));
        MPI_JOB_CALL(MPIX_Stream_comm_create(MPI_COMM_WORLD, self->stream,
                                             &self->comm));
    }

    mpi_job_part("all threads at once");
    for (i = 0; i < streams_num_threads; ++i) {
        ret = pthread_create(&streams[i].thread, NULL, streams_main,
                             &streams[i]);
        MPI_JOB_CHECK(ret == 0, "pthread_create: %s", strerror(ret));
    }
    while (atomic_load(&streams_num_done) < streams_num_threads) {
        usleep(200);
    }
    mpi_job_pause();
    atomic_store(&streams_is_released, true);

    for (i = 0; i < streams_num_threads; ++i) {
        self = &streams[i];
        ret  = pthread_join(self->thread, NULL);
        MPI_JOB_CHECK(ret == 0, "pthread_join: %s", strerror(ret));
        MPI_JOB_CALL(MPI_Comm_free(&self->comm));
        MPI_JOB_CALL(MPIX_Stream_free(&self->stream));
        job_buffer_free(&self->recv);
        job_buffer_free(&self->send);
    }
}

int main(int argc, char **argv)
{
    streams_parse(&argc, argv);
    mpi_job_init(&argc, &argv, "streams", MPI_THREAD_MULTIPLE, 2);
    streams_run();
    return mpi_job_finish();
}

#else

int main(int argc, char **argv)
{
    streams_parse(&argc, argv);
    mpi_job_init(&argc, &argv, "streams", MPI_THREAD_SINGLE, 1);
    if (mpi_job.rank == 0) {
        printf("SKIP streams: MPIX_Stream came with MPICH 4.1\n");
    }
    MPI_Finalize();
    return MPI_JOB_EXIT_SKIP;
}

#endif
