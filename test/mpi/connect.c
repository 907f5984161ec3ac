/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What connecting costs: each rank sends its first message to the next one on
 * each of I communicators, which MPI libraries spread over as many interfaces.
 *
 *   --interfaces I   communicators (default 4)
 *   --all            to all other ranks, not only to the next one
 *
 * Prints the time of MPI_Init_thread(), that until all first messages have come
 * after it, and the most memory that a rank has then. Pauses after that, see
 * mpi_job_pause().
 */

#include "mpi_job.h"

#include <time.h>

#define CONNECT_MAX_INTERFACES  64
#define CONNECT_SIZE            64


static double connect_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/** @return Memory of this process that is in use and its own, KiB. */
static long connect_memory(void)
{
    char line[128];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");

    MPI_JOB_CHECK(file != NULL, "/proc/self/status: %s", strerror(errno));
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "RssAnon: %ld kB", &value) == 1) {
            break;
        }
    }
    fclose(file);
    MPI_JOB_CHECK(value > 0, "/proc/self/status has no RssAnon");
    return value;
}

/** First messages to the ranks behind this one, all at once, and from those in
 *  front of it. */
static void connect_first_messages(MPI_Comm comm, int index, int num_peers)
{
    MPI_Request *requests = calloc(2 * num_peers, sizeof(*requests));
    job_buffer_t *send    = calloc(num_peers, sizeof(*send));
    job_buffer_t *recv    = calloc(num_peers, sizeof(*recv));
    int i, next, prev;

    for (i = 0; i < num_peers; ++i) {
        next    = (mpi_job.rank + i + 1) % mpi_job.size;
        prev    = (mpi_job.rank + mpi_job.size - i - 1) % mpi_job.size;
        send[i] = job_buffer_alloc(CONNECT_SIZE);
        recv[i] = job_buffer_alloc(CONNECT_SIZE);
        mpi_job_fill_data(&send[i], CONNECT_SIZE, mpi_job.rank, next, index);
        MPI_JOB_CALL(MPI_Irecv(recv[i].data, CONNECT_SIZE, MPI_BYTE, prev, 0,
                               comm, &requests[2 * i]));
        MPI_JOB_CALL(MPI_Isend(send[i].data, CONNECT_SIZE, MPI_BYTE, next, 0,
                               comm, &requests[(2 * i) + 1]));
        mpi_job_sent(CONNECT_SIZE);
    }
    for (i = 0; i < 2 * num_peers; ++i) {
        MPI_JOB_CALL(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }

    for (i = 0; i < num_peers; ++i) {
        prev = (mpi_job.rank + mpi_job.size - i - 1) % mpi_job.size;
        mpi_job_check_data(&recv[i], CONNECT_SIZE, prev, mpi_job.rank, index);
        job_buffer_free(&recv[i]);
        job_buffer_free(&send[i]);
    }
    free(recv);
    free(send);
    free(requests);
}

static int connect_parse(int *argc, char **argv, bool *to_all_p)
{
    int i, left = 1, interfaces = 4;

    for (i = 1; i < *argc; ++i) {
        if (!strcmp(argv[i], "--interfaces") && (i + 1 < *argc)) {
            interfaces = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--all")) {
            *to_all_p = true;
        } else {
            argv[left++] = argv[i];
        }
    }
    *argc = left;
    if ((interfaces < 1) || (interfaces > CONNECT_MAX_INTERFACES)) {
        fprintf(stderr, "FAIL connect: --interfaces: from 1 to %d are "
                "possible\n", CONNECT_MAX_INTERFACES);
        exit(EXIT_FAILURE);
    }
    return interfaces;
}

/** Print the greatest value of all ranks. */
static void connect_metric(const char *name, int interfaces, double value,
                           const char *unit)
{
    double most;

    MPI_JOB_CALL(MPI_Reduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, 0,
                            MPI_COMM_WORLD));
    if (mpi_job.rank == 0) {
        mpi_job_metric(name, interfaces, most, unit);
    }
}

int main(int argc, char **argv)
{
    bool to_all    = false;
    int interfaces = connect_parse(&argc, argv, &to_all);
    double start   = connect_now();
    MPI_Comm comm[CONNECT_MAX_INTERFACES];
    double started, done;
    long memory;
    int i;

    mpi_job_init(&argc, &argv, "connect", MPI_THREAD_MULTIPLE, 2);
    started = connect_now();

    mpi_job_part("first messages");
    for (i = 0; i < interfaces; ++i) {
        MPI_JOB_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
        connect_first_messages(comm[i], i, to_all ? mpi_job.size - 1 : 1);
    }
    done   = connect_now();
    memory = connect_memory();

    connect_metric("init", interfaces, (started - start) * 1e3, "ms");
    connect_metric("first", interfaces, (done - started) * 1e3, "ms");
    connect_metric("memory", interfaces, memory / 1024.0, "MB");
    mpi_job_pause();

    for (i = 0; i < interfaces; ++i) {
        MPI_JOB_CALL(MPI_Comm_free(&comm[i]));
    }
    return mpi_job_finish();
}
