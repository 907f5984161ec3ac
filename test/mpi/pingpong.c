/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short messages between two ranks, as benchmarks send them: one there and one
 * back, and windows of them. Sizes end where slots of the eager channel do. All
 * data are checked.
 */

#include "mpi_job.h"

#define PINGPONG_MAX_SIZE    1024
#define PINGPONG_MAX_WINDOW  100
#define PINGPONG_TAG         1


static const size_t pingpong_sizes[]   = {0, 8, 64, 256, 512, 1024};
static const int    pingpong_windows[] = {64, 100};

#define PINGPONG_NUM_SIZES \
    (sizeof(pingpong_sizes) / sizeof(pingpong_sizes[0]))
#define PINGPONG_NUM_WINDOWS \
    (sizeof(pingpong_windows) / sizeof(pingpong_windows[0]))


static void pingpong_send(const job_buffer_t *buffer, size_t size,
                          uint64_t number)
{
    mpi_job_fill_data(buffer, size, mpi_job.rank, 1 - mpi_job.rank, number);
    MPI_JOB_CALL(MPI_Send(buffer->data, size, MPI_BYTE, 1 - mpi_job.rank,
                          PINGPONG_TAG, MPI_COMM_WORLD));
    mpi_job_sent(size);
}

static void pingpong_recv(const job_buffer_t *buffer, size_t size,
                          uint64_t number)
{
    MPI_JOB_CALL(MPI_Recv(buffer->data, size, MPI_BYTE, 1 - mpi_job.rank,
                          PINGPONG_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    mpi_job_check_data(buffer, size, 1 - mpi_job.rank, mpi_job.rank, number);
}

/** Latency: half of the time that there and back takes, checks included. */
static void pingpong_latency(size_t size, int iterations)
{
    job_buffer_t send     = job_buffer_alloc(size);
    job_buffer_t recv     = job_buffer_alloc(size);
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    int i;

    mpi_job_part("ping-pong");
    for (i = 0; i < iterations; ++i) {
        if (mpi_job.rank == 0) {
            pingpong_send(&send, size, i);
            pingpong_recv(&recv, size, i);
        } else {
            pingpong_recv(&recv, size, i);
            pingpong_send(&send, size, i);
        }
        mpi_job_timer_tick(&timer);
    }

    if (mpi_job.rank == 0) {
        mpi_job_metric("latency", size, timer.best * 1e6 / 2, "us");
    }
    job_buffer_free(&send);
    job_buffer_free(&recv);
}

/** Rate: windows of messages, each window answered by one. */
static void pingpong_rate(int window, int iterations)
{
    const size_t size = 8;
    job_buffer_t buffers[PINGPONG_MAX_WINDOW];
    MPI_Request requests[PINGPONG_MAX_WINDOW];
    mpi_job_timer_t timer;
    int i, k;

    mpi_job_part("windows");
    for (k = 0; k < window; ++k) {
        buffers[k] = job_buffer_alloc(size);
    }

    timer = mpi_job_timer_start(iterations);
    for (i = 0; i < iterations; ++i) {
        for (k = 0; k < window; ++k) {
            if (mpi_job.rank == 0) {
                mpi_job_fill_data(&buffers[k], size, 0, 1, i + k);
                MPI_JOB_CALL(MPI_Isend(buffers[k].data, size, MPI_BYTE, 1,
                                       PINGPONG_TAG, MPI_COMM_WORLD,
                                       &requests[k]));
                mpi_job_sent(size);
            } else {
                MPI_JOB_CALL(MPI_Irecv(buffers[k].data, size, MPI_BYTE, 0,
                                       PINGPONG_TAG, MPI_COMM_WORLD,
                                       &requests[k]));
            }
        }
        mpi_job_wait_all(window, requests);
        if (mpi_job.rank == 0) {
            pingpong_recv(&buffers[0], size, i);
        } else {
            for (k = 0; k < window; ++k) {
                mpi_job_check_data(&buffers[k], size, 0, 1, i + k);
            }
            pingpong_send(&buffers[0], size, i);
        }
        mpi_job_timer_tick(&timer);
    }

    if (mpi_job.rank == 0) {
        mpi_job_metric((window == 64) ? "rate64" : "rate100", size,
                       window / timer.best * 1e-6, "Mmsg/s");
    }
    for (k = 0; k < window; ++k) {
        job_buffer_free(&buffers[k]);
    }
}

int main(int argc, char **argv)
{
    size_t i;

    mpi_job_init(&argc, &argv, "pingpong", MPI_THREAD_SINGLE, 2);
    MPI_JOB_CHECK(mpi_job.size == 2, "started with %d ranks instead of 2",
                  mpi_job.size);
    for (i = 0; i < PINGPONG_NUM_SIZES; ++i) {
        pingpong_latency(pingpong_sizes[i], mpi_job.quick ? 1000 : 4000);
    }
    for (i = 0; i < PINGPONG_NUM_WINDOWS; ++i) {
        pingpong_rate(pingpong_windows[i], mpi_job.quick ? 100 : 400);
    }
    return mpi_job_finish();
}
