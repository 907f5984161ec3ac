/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Message rate of threads, each with a communicator of its own: rank 0 sends
 * windows of short messages, rank 1 receives them and answers each window with
 * one message. See contrib/bench-endpoints.sh.
 *
 *   mpi_rate [-t THREADS] [-w WINDOW] [-s BYTES] [-n WINDOWS]
 *
 * Prints "rate THREADS MESSAGES SECONDS MESSAGES-PER-SECOND". callgrind counts
 * what measure_send() and measure_recv() do, for each window of messages.
 */

#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_MAX_THREADS  64
#define RATE_MAX_WINDOW   1024


typedef struct rate_thread {
    pthread_t thread;
    MPI_Comm  comm;
    char      *buffer;
} rate_thread_t;


static struct {
    int               threads;
    int               window;
    int               bytes;
    int               windows;
    int               rank;
    pthread_barrier_t start;
} rate = {.threads = 4, .window = 64, .bytes = 8, .windows = 100};


/* One window of messages, until the sender may reuse its memory */
static void __attribute__((noinline))
measure_send(rate_thread_t *self, MPI_Request *requests, MPI_Status *statuses)
{
    int i;

    for (i = 0; i < rate.window; ++i) {
        MPI_Isend(self->buffer + (i * rate.bytes), rate.bytes, MPI_BYTE, 1, 0,
                  self->comm, &requests[i]);
    }
    MPI_Waitall(rate.window, requests, statuses);
}

/* One window of messages, until the last has come */
static void __attribute__((noinline))
measure_recv(rate_thread_t *self, MPI_Request *requests, MPI_Status *statuses)
{
    int i;

    for (i = 0; i < rate.window; ++i) {
        MPI_Irecv(self->buffer + (i * rate.bytes), rate.bytes, MPI_BYTE, 0, 0,
                  self->comm, &requests[i]);
    }
    MPI_Waitall(rate.window, requests, statuses);
}

static void rate_answer(rate_thread_t *self)
{
    char answer = 0;

    if (rate.rank == 0) {
        MPI_Recv(&answer, 1, MPI_BYTE, 1, 1, self->comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&answer, 1, MPI_BYTE, 0, 1, self->comm);
    }
}

static void *rate_main(void *arg)
{
    MPI_Request requests[RATE_MAX_WINDOW];
    MPI_Status statuses[RATE_MAX_WINDOW];
    rate_thread_t *self = arg;
    int i;

    /* Connects, and touches all memory */
    rate_answer(self);
    MPI_Barrier(self->comm);
    pthread_barrier_wait(&rate.start);

    for (i = 0; i < rate.windows; ++i) {
        if (rate.rank == 0) {
            measure_send(self, requests, statuses);
        } else {
            measure_recv(self, requests, statuses);
        }
        rate_answer(self);
    }
    return NULL;
}

static int rate_parse(int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "t:w:s:n:")) != -1) {
        switch (c) {
        case 't':
            rate.threads = atoi(optarg);
            break;
        case 'w':
            rate.window = atoi(optarg);
            break;
        case 's':
            rate.bytes = atoi(optarg);
            break;
        case 'n':
            rate.windows = atoi(optarg);
            break;
        default:
            return -1;
        }
    }
    return ((rate.threads < 1) || (rate.threads > RATE_MAX_THREADS) ||
            (rate.window < 1) || (rate.window > RATE_MAX_WINDOW) ||
            (rate.bytes < 0) || (rate.windows < 1)) ? -1 : 0;
}

int main(int argc, char **argv)
{
    static rate_thread_t threads[RATE_MAX_THREADS];
    int i, size, provided;
    double start, seconds;
    long messages;

    if (rate_parse(argc, argv) != 0) {
        fprintf(stderr, "usage: %s [-t THREADS] [-w WINDOW] [-s BYTES] "
                "[-n WINDOWS]; up to %d threads, windows of up to %d\n",
                argv[0], RATE_MAX_THREADS, RATE_MAX_WINDOW);
        return 2;
    }

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rate.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((provided < MPI_THREAD_MULTIPLE) || (size != 2)) {
        fprintf(stderr, "%s: needs MPI_THREAD_MULTIPLE (has level %d) and 2 "
                "ranks (has %d)\n", argv[0], provided, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    pthread_barrier_init(&rate.start, NULL, rate.threads + 1);
    for (i = 0; i < rate.threads; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
        threads[i].buffer = calloc(rate.window, rate.bytes + 1);
        if ((threads[i].buffer == NULL) ||
            (pthread_create(&threads[i].thread, NULL, rate_main,
                            &threads[i]) != 0)) {
            fprintf(stderr, "%s: no memory or no thread\n", argv[0]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }

    pthread_barrier_wait(&rate.start);
    start = MPI_Wtime();
    for (i = 0; i < rate.threads; ++i) {
        pthread_join(threads[i].thread, NULL);
    }
    seconds = MPI_Wtime() - start;

    if (rate.rank == 0) {
        messages = (long)rate.threads * rate.windows * rate.window;
        printf("rate %d %ld %.6f %.0f\n", rate.threads, messages, seconds,
               messages / seconds);
    }
    for (i = 0; i < rate.threads; ++i) {
        MPI_Comm_free(&threads[i].comm);
        free(threads[i].buffer);
    }
    pthread_barrier_destroy(&rate.start);
    MPI_Finalize();
    return 0;
}
