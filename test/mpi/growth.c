/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a job takes as it grows: each rank sends its first message to the next
 * one, and then one to every other.
 *
 *   --until init|ring|all   go so far (default: all)
 *   --until barrier         or to a first barrier, instead of a ring
 *
 * Prints the time of MPI_Init_thread(), and that from there until the first
 * message has come. Pauses when it has come so far, see mpi_job_wait().
 *
 * Callgrind, if it runs the program without instrumentation, counts from the
 * start, and writes what it has counted until the first message has come, or
 * the barrier is over, to a file named "first". Massif writes a snapshot to the
 * file whose name is that in SEP_GROWTH_HEAP and ".init", ".ring", ".all" or
 * ".finalized", at that moment.
 */

#include "mpi_job.h"

#include <time.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
/* Not to be run by these tools then */
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_DUMP_STATS_AT(_name)
#define CALLGRIND_STOP_INSTRUMENTATION
#define VALGRIND_MONITOR_COMMAND(_command) ((void)(_command))
#endif

#define GROWTH_SIZE 64

enum { GROWTH_INIT, GROWTH_BARRIER, GROWTH_RING, GROWTH_ALL };

static const char *growth_steps[] = {
    [GROWTH_INIT]    = "init",
    [GROWTH_BARRIER] = "barrier",
    [GROWTH_RING]    = "ring",
    [GROWTH_ALL]     = "all"
};


static double growth_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/* Of the heap, if massif runs this rank */
static void growth_snapshot(const char *moment)
{
    const char *prefix = getenv("SEP_GROWTH_HEAP");
    char command[1024];

    if ((prefix != NULL) && (mpi_job.rank == 0)) {
        snprintf(command, sizeof(command), "snapshot %s.%s", prefix, moment);
        VALGRIND_MONITOR_COMMAND(command);
    }
}

/* Send to one rank and receive from another one */
static void growth_exchange(int to, int from, int sequence)
{
    job_buffer_t send = job_buffer_alloc(GROWTH_SIZE);
    job_buffer_t recv = job_buffer_alloc(GROWTH_SIZE);

    mpi_job_fill_data(&send, GROWTH_SIZE, mpi_job.rank, to, sequence);
    MPI_JOB_CALL(MPI_Sendrecv(send.data, GROWTH_SIZE, MPI_BYTE, to, sequence,
                              recv.data, GROWTH_SIZE, MPI_BYTE, from, sequence,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    mpi_job_sent(GROWTH_SIZE);
    mpi_job_check_data(&recv, GROWTH_SIZE, from, mpi_job.rank, sequence);
    job_buffer_free(&recv);
    job_buffer_free(&send);
}

/* With the rank at this distance: 1 is a ring */
static void growth_shift(int distance)
{
    growth_exchange((mpi_job.rank + distance) % mpi_job.size,
                    (mpi_job.rank + mpi_job.size - distance) % mpi_job.size,
                    distance);
}

static int growth_parse(int *argc, char **argv)
{
    int i, step, left = 1, until = GROWTH_ALL;

    for (i = 1; i < *argc; ++i) {
        if (strcmp(argv[i], "--until") || (i + 1 == *argc)) {
            argv[left++] = argv[i];
            continue;
        }

        ++i;
        for (until = -1, step = GROWTH_INIT; step <= GROWTH_ALL; ++step) {
            until = strcmp(argv[i], growth_steps[step]) ? until : step;
        }
    }
    *argc = left;
    if (until < 0) {
        fprintf(stderr, "FAIL growth: --until: init, barrier, ring and all "
                "are possible\n");
        exit(EXIT_FAILURE);
    }
    return until;
}

/** Print the greatest value of all ranks. */
static void growth_metric(const char *name, double value)
{
    double most;

    MPI_JOB_CALL(MPI_Reduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, 0,
                            MPI_COMM_WORLD));
    if (mpi_job.rank == 0) {
        mpi_job_metric(name, mpi_job.size, most, "ms");
    }
}

int main(int argc, char **argv)
{
    int until       = growth_parse(&argc, argv);
    double start    = growth_now();
    double received = 0;
    double started;
    int distance, result;

    CALLGRIND_START_INSTRUMENTATION;
    mpi_job_init(&argc, &argv, "growth", MPI_THREAD_SINGLE, 2);
    started = growth_now();
    growth_snapshot("init");

    if (until == GROWTH_BARRIER) {
        mpi_job_part("barrier");
        MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
        received = growth_now();
        CALLGRIND_DUMP_STATS_AT("first");
    } else if (until >= GROWTH_RING) {
        mpi_job_part("ring");
        growth_shift(1);
        received = growth_now();
        CALLGRIND_DUMP_STATS_AT("first");
        growth_snapshot("ring");
    }
    if (until >= GROWTH_ALL) {
        mpi_job_part("all to all");
        for (distance = 2; distance < mpi_job.size; ++distance) {
            growth_shift(distance);
        }
        growth_snapshot("all");
    }

    /* Before anything that makes other connections */
    mpi_job_wait();
    growth_metric("init", (started - start) * 1e3);
    if (until >= GROWTH_BARRIER) {
        growth_metric("first", (received - started) * 1e3);
    }

    /* So that there is traffic to be found in any case */
    growth_shift(1);
    result = mpi_job_finish();
    growth_snapshot("finalized");
    return result;
}
