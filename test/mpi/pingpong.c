/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short messages between two ranks, as benchmarks send them: one there and one
 * back, and windows of them. Sizes end where slots of the eager channel do. All
 * data are checked, but not while the time is taken: the guards of a buffer are
 * a thousand times what is received.
 */

#include "mpi_job.h"

#define PINGPONG_TAG            1
#define PINGPONG_MAX_WINDOW     100
#define PINGPONG_LATENCY_BATCH  50   /* There and back between two checks */
#define PINGPONG_RATE_BATCH     10   /* Windows between two checks */


static const size_t pingpong_sizes[]   = {0, 8, 64, 256, 512, 1024};
static const int    pingpong_windows[] = {64, 100};

#define PINGPONG_NUM_SIZES \
    (sizeof(pingpong_sizes) / sizeof(pingpong_sizes[0]))
#define PINGPONG_NUM_WINDOWS \
    (sizeof(pingpong_windows) / sizeof(pingpong_windows[0]))


/** What a rank sends and receives between two checks. Each message has its own
 *  part of one pattern, so one in another's place is found, too. */
typedef struct pingpong_batch {
    size_t          size;           /**< Bytes of a message */
    job_buffer_t    send;
    job_buffer_t    recv;
    uint8_t         *next_send;     /**< Message that is sent next */
    uint8_t         *next_recv;     /**< Message that is received next */
    uint64_t        number;         /**< Of this batch */
    mpi_job_timer_t timer;          /**< To which a batch is an operation */
} pingpong_batch_t;


/** Batches of @a num_sent messages sent and @a num_received received. */
static void pingpong_batch_init(pingpong_batch_t *batch, size_t size,
                                int num_sent, int num_received)
{
    memset(batch, 0, sizeof(*batch));
    batch->size  = size;
    batch->send  = job_buffer_alloc(num_sent * size);
    batch->recv  = job_buffer_alloc(num_received * size);
    batch->timer = mpi_job_timer_start(1);
}

/** The time begins when both ranks are ready. */
static void pingpong_batch_begin(pingpong_batch_t *batch)
{
    mpi_job_fill_data(&batch->send, batch->send.length, mpi_job.rank,
                      1 - mpi_job.rank, batch->number);
    job_buffer_clear(&batch->recv);
    batch->next_send = batch->send.data;
    batch->next_recv = batch->recv.data;
    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    mpi_job_timer_restart(&batch->timer);
}

/** Take the time, then look at what came. */
static void pingpong_batch_end(pingpong_batch_t *batch)
{
    mpi_job_timer_tick(&batch->timer);
    mpi_job_check_data(&batch->recv, batch->recv.length, 1 - mpi_job.rank,
                       mpi_job.rank, batch->number);
    ++batch->number;
}

static void pingpong_batch_cleanup(pingpong_batch_t *batch)
{
    job_buffer_free(&batch->send);
    job_buffer_free(&batch->recv);
}

static uint8_t *pingpong_next(pingpong_batch_t *batch, uint8_t **next_p)
{
    uint8_t *data = *next_p;

    *next_p += batch->size;
    return data;
}

static void pingpong_send(pingpong_batch_t *batch)
{
    MPI_JOB_CALL(MPI_Send(pingpong_next(batch, &batch->next_send), batch->size,
                          MPI_BYTE, 1 - mpi_job.rank, PINGPONG_TAG,
                          MPI_COMM_WORLD));
    mpi_job_sent(batch->size);
}

static void pingpong_recv(pingpong_batch_t *batch)
{
    MPI_JOB_CALL(MPI_Recv(pingpong_next(batch, &batch->next_recv), batch->size,
                          MPI_BYTE, 1 - mpi_job.rank, PINGPONG_TAG,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/** Latency: half of the time that there and back takes. */
static void pingpong_latency(size_t size, int num_batches)
{
    pingpong_batch_t batch;
    int i, k;

    mpi_job_part("ping-pong");
    pingpong_batch_init(&batch, size, PINGPONG_LATENCY_BATCH,
                        PINGPONG_LATENCY_BATCH);
    for (i = 0; i < num_batches; ++i) {
        pingpong_batch_begin(&batch);
        for (k = 0; k < PINGPONG_LATENCY_BATCH; ++k) {
            if (mpi_job.rank == 0) {
                pingpong_send(&batch);
                pingpong_recv(&batch);
            } else {
                pingpong_recv(&batch);
                pingpong_send(&batch);
            }
        }
        pingpong_batch_end(&batch);
    }

    if (mpi_job.rank == 0) {
        mpi_job_metric("latency", size,
                       batch.timer.best * 1e6 / (2 * PINGPONG_LATENCY_BATCH),
                       "us");
    }
    pingpong_batch_cleanup(&batch);
}

/** A window: rank 0 sends, rank 1 answers when all have come. */
static void pingpong_window(pingpong_batch_t *batch, int window)
{
    MPI_Request requests[PINGPONG_MAX_WINDOW];
    int k;

    for (k = 0; k < window; ++k) {
        if (mpi_job.rank == 0) {
            MPI_JOB_CALL(MPI_Isend(pingpong_next(batch, &batch->next_send),
                                   batch->size, MPI_BYTE, 1, PINGPONG_TAG,
                                   MPI_COMM_WORLD, &requests[k]));
            mpi_job_sent(batch->size);
        } else {
            MPI_JOB_CALL(MPI_Irecv(pingpong_next(batch, &batch->next_recv),
                                   batch->size, MPI_BYTE, 0, PINGPONG_TAG,
                                   MPI_COMM_WORLD, &requests[k]));
        }
    }
    mpi_job_wait_all(window, requests);
    if (mpi_job.rank == 0) {
        pingpong_recv(batch);
    } else {
        pingpong_send(batch);
    }
}

/** Rate: messages of windows by the time of windows with their answers. */
static void pingpong_rate(int window, int num_batches)
{
    const size_t size = 8;
    int many          = window * PINGPONG_RATE_BATCH;
    pingpong_batch_t batch;
    int i, k;

    mpi_job_part("windows");
    pingpong_batch_init(&batch, size,
                        (mpi_job.rank == 0) ? many : PINGPONG_RATE_BATCH,
                        (mpi_job.rank == 0) ? PINGPONG_RATE_BATCH : many);
    for (i = 0; i < num_batches; ++i) {
        pingpong_batch_begin(&batch);
        for (k = 0; k < PINGPONG_RATE_BATCH; ++k) {
            pingpong_window(&batch, window);
        }
        pingpong_batch_end(&batch);
    }

    if (mpi_job.rank == 0) {
        mpi_job_metric((window == 64) ? "rate64" : "rate100", size,
                       many / batch.timer.best * 1e-6, "Mmsg/s");
    }
    pingpong_batch_cleanup(&batch);
}

int main(int argc, char **argv)
{
    size_t i;

    mpi_job_init(&argc, &argv, "pingpong", MPI_THREAD_SINGLE, 2);
    MPI_JOB_CHECK(mpi_job.size == 2, "started with %d ranks instead of 2",
                  mpi_job.size);
    for (i = 0; i < PINGPONG_NUM_SIZES; ++i) {
        pingpong_latency(pingpong_sizes[i], mpi_job.quick ? 20 : 80);
    }
    for (i = 0; i < PINGPONG_NUM_WINDOWS; ++i) {
        pingpong_rate(pingpong_windows[i], mpi_job.quick ? 10 : 40);
    }
    return mpi_job_finish();
}
