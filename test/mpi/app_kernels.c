/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The application kernels of test/kernels on MPI, with threads: each thread
 * has a communicator and a window of its own, so that an MPI library that can
 * will give each an interface of its own. All windows are of the same memory.
 *
 *   --need-interfaces   fail if it has not as many as there are threads
 */

#include "mpi_job.h"

#include "../kernels/all.h"

static struct {
    bool      need_interfaces;
    int       num_threads;       /**< Of those below */
    MPI_Comm  comms[APP_MAX_THREADS];
    MPI_Win   wins[APP_MAX_THREADS];
    bool      *touched;          /**< Ranks to flush, by thread */
} mpi_app;


static void mpi_app_fail(const char *message)
{
    mpi_job_fail("%s", message);
}

/** What a library says of its interfaces.
 *  @return Their number, 0 if that is not known. */
static int mpi_app_num_interfaces(void)
{
    int value = 0;
#ifdef MPICH
    MPI_T_cvar_handle handle;
    int index, count, provided;

    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) {
        return 0;
    }
    if ((MPI_T_cvar_get_index("MPIR_CVAR_CH4_NUM_VCIS", &index) ==
         MPI_SUCCESS) &&
        (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) ==
         MPI_SUCCESS)) {
        MPI_T_cvar_read(handle, &value);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
#elif defined(OPEN_MPI)
    /* pml/ucx has one worker, and osc/ucx another */
    value = 1;
#endif
    return value;
}

static void mpi_app_check_interfaces(void)
{
    int there = mpi_app_num_interfaces();

    if (there >= app.num_threads) {
        return;
    }
    if (mpi_app.need_interfaces) {
        mpi_job_fail("this MPI library has %d interfaces for %d threads; MPICH "
                     "has as many as MPIR_CVAR_CH4_NUM_VCIS says, if it was "
                     "built for it (contrib/build-mpich.sh)", there,
                     app.num_threads);
    }
    if (mpi_job.rank == 0) {
        printf("NOTE " APP_NAME ": no interface per thread: this MPI library "
               "has %d for %d threads\n", there, app.num_threads);
        fflush(stdout);
    }
}

static void mpi_app_attach(size_t length)
{
    int i;

    app.memory = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
    MPI_JOB_CHECK(app.memory != NULL, "out of memory: %zu bytes", length);
    memset(app.memory, 0, length);
    mpi_app.touched     = app_alloc(app.num_threads * app.num_ranks,
                                    sizeof(bool));
    mpi_app.num_threads = app.num_threads;

    /* MPICH takes interfaces in turn for communicators, and a window makes one:
     * in this order, a thread's communicator and window have the same */
    for (i = 0; i < app.num_threads; ++i) {
        MPI_JOB_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &mpi_app.comms[i]));
    }
    for (i = 0; (i < app.num_threads) && !app.two_sided; ++i) {
        MPI_JOB_CALL(MPI_Win_create(app.memory, length, 1, MPI_INFO_NULL,
                                    mpi_app.comms[i], &mpi_app.wins[i]));
        MPI_JOB_CALL(MPI_Win_lock_all(0, mpi_app.wins[i]));
    }
}

static void mpi_app_detach(void)
{
    int i;

    for (i = 0; i < mpi_app.num_threads; ++i) {
        if (!app.two_sided) {
            MPI_JOB_CALL(MPI_Win_unlock_all(mpi_app.wins[i]));
            MPI_JOB_CALL(MPI_Win_free(&mpi_app.wins[i]));
        }
    }
    for (i = 0; i < mpi_app.num_threads; ++i) {
        MPI_JOB_CALL(MPI_Comm_free(&mpi_app.comms[i]));
    }
    free(mpi_app.touched);
    free(app.memory);
}

static void mpi_app_get(int thread, void *local, int rank, size_t offset,
                        size_t length)
{
    mpi_app.touched[(thread * app.num_ranks) + rank] = true;
    MPI_JOB_CALL(MPI_Get(local, length, MPI_BYTE, rank, offset, length,
                         MPI_BYTE, mpi_app.wins[thread]));
}

static void mpi_app_put(int thread, const void *local, int rank, size_t offset,
                        size_t length)
{
    mpi_app.touched[(thread * app.num_ranks) + rank] = true;
    MPI_JOB_CALL(MPI_Put(local, length, MPI_BYTE, rank, offset, length,
                         MPI_BYTE, mpi_app.wins[thread]));
}

static void mpi_app_flush(int thread)
{
    bool *touched = &mpi_app.touched[thread * app.num_ranks];
    int rank;

    for (rank = 0; rank < app.num_ranks; ++rank) {
        if (touched[rank]) {
            MPI_JOB_CALL(MPI_Win_flush(rank, mpi_app.wins[thread]));
            touched[rank] = false;
        }
    }
}

/** As MPI_Wait(), which does not let go of the processor in between. */
static void mpi_app_wait(MPI_Request *request)
{
    int done = 0;

    for (;;) {
        MPI_JOB_CALL(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) {
            break;
        }
        sched_yield();
    }
}

static void mpi_app_exchange(int thread, const app_message_t *out, int num_out,
                             const app_message_t *in, int num_in)
{
    MPI_Request *requests = app_alloc(num_in + num_out + 1, sizeof(*requests));
    MPI_Comm comm         = mpi_app.comms[thread];
    int i;

    for (i = 0; i < num_in; ++i) {
        MPI_JOB_CALL(MPI_Irecv(in[i].data, in[i].length, MPI_BYTE, in[i].rank,
                               in[i].tag, comm, &requests[i]));
    }
    for (i = 0; i < num_out; ++i) {
        MPI_JOB_CALL(MPI_Isend(out[i].data, out[i].length, MPI_BYTE,
                               out[i].rank, out[i].tag, comm,
                               &requests[num_in + i]));
    }
    for (i = 0; i < num_in + num_out; ++i) {
        mpi_app_wait(&requests[i]);
    }
    free(requests);
}

static void mpi_app_progress(int thread)
{
    int found;

    MPI_JOB_CALL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_app.comms[thread],
                            &found, MPI_STATUS_IGNORE));
}

static void mpi_app_barrier(void)
{
    MPI_Request request;

    MPI_JOB_CALL(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    mpi_app_wait(&request);
}

static const app_ops_t mpi_app_ops = {
    .name     = "mpi",
    .fail     = mpi_app_fail,
    .attach   = mpi_app_attach,
    .detach   = mpi_app_detach,
    .get      = mpi_app_get,
    .put      = mpi_app_put,
    .fence    = mpi_app_flush,
    .flush    = mpi_app_flush,
    .exchange = mpi_app_exchange,
    .progress = mpi_app_progress,
    .barrier  = mpi_app_barrier
};

static int mpi_app_option(const char *option, const char *value)
{
    if (strcmp(option, "--need-interfaces")) {
        return 0;
    }
    mpi_app.need_interfaces = true;
    return 1;
}

int main(int argc, char **argv)
{
    app_parse(argc, argv, mpi_app_option);
    argc = 1;
    mpi_job_init(&argc, &argv, APP_NAME, MPI_THREAD_MULTIPLE, 2);
    mpi_job_part("kernels");
    app.ops       = &mpi_app_ops;
    app.rank      = mpi_job.rank;
    app.num_ranks = mpi_job.size;
    mpi_app_check_interfaces();
    app_run();
    mpi_job.messages += app.messages;
    mpi_job.bytes    += app.bytes;
    mpi_job.checks   += app.checks;
    return mpi_job_finish();
}
