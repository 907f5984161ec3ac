/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The application kernels of test/kernels on OpenSHMEM: each thread has a
 * context that is private to it.
 *
 *   --no-finalize   end without shmem_finalize(), on one node. Open MPI (4.1.4,
 *                   5.0.7) leaves remote keys of contexts behind, for which UCX
 *                   would end the program there, if it has assertions as
 *                   Debian's 1.13.1 has
 */

#include "shmem_job.h"

#include "../kernels/all.h"

static shmem_ctx_t shmem_app_contexts[APP_MAX_THREADS];


static void shmem_app_fail(const char *message)
{
    shmem_job_fail("%s", message);
}

static void shmem_app_attach(size_t length)
{
    app.memory = shmem_job_alloc(length);
}

static void shmem_app_detach(void)
{
    shmem_free(app.memory);
}

static void shmem_app_open(int thread)
{
    int ret = shmem_ctx_create(SHMEM_CTX_PRIVATE, &shmem_app_contexts[thread]);

    APP_CHECK(ret == 0, "thread %d: shmem_ctx_create returned %d", thread, ret);
}

static void shmem_app_close(int thread)
{
    shmem_ctx_quiet(shmem_app_contexts[thread]);
    shmem_ctx_destroy(shmem_app_contexts[thread]);
}

static void shmem_app_get(int thread, void *local, int rank, size_t offset,
                          size_t length)
{
    shmem_ctx_getmem_nbi(shmem_app_contexts[thread], local, app.memory + offset,
                         length, rank);
}

static void shmem_app_put(int thread, const void *local, int rank,
                          size_t offset, size_t length)
{
    shmem_ctx_putmem_nbi(shmem_app_contexts[thread], app.memory + offset, local,
                         length, rank);
}

static void shmem_app_fence(int thread)
{
    shmem_ctx_fence(shmem_app_contexts[thread]);
}

static void shmem_app_flush(int thread)
{
    shmem_ctx_quiet(shmem_app_contexts[thread]);
}

/** There is no other call that lets a context connect. */
static void shmem_app_progress(int thread)
{
    shmem_ctx_quiet(shmem_app_contexts[thread]);
}

/** With some transports, others connect to what the main thread has. */
static void shmem_app_idle(void)
{
    static long zero;

    shmem_long_test(&zero, SHMEM_CMP_NE, 0);
}

static const app_ops_t shmem_app_ops = {
    .name     = "shmem",
    .fail     = shmem_app_fail,
    .attach   = shmem_app_attach,
    .detach   = shmem_app_detach,
    .open     = shmem_app_open,
    .close    = shmem_app_close,
    .get      = shmem_app_get,
    .put      = shmem_app_put,
    .fence    = shmem_app_fence,
    .flush    = shmem_app_flush,
    .progress = shmem_app_progress,
    .idle     = shmem_app_idle,
    .barrier  = shmem_barrier_all
};

static int shmem_app_option(const char *option, const char *value)
{
    if (strcmp(option, "--no-finalize")) {
        return 0;
    }
    shmem_job.no_finalize = true;
    return 1;
}

int main(int argc, char **argv)
{
    app_parse(argc, argv, shmem_app_option);
    shmem_job_init_thread(1, argv, APP_NAME, SHMEM_THREAD_MULTIPLE);
    shmem_job_part("kernels");
    app.ops       = &shmem_app_ops;
    app.rank      = shmem_job.pe;
    app.num_ranks = shmem_job.num_pes;
    app_run();
    shmem_job.counts[0] += app.messages;
    shmem_job.counts[1] += app.bytes;
    shmem_job.counts[2] += app.checks;
    return shmem_job_finish();
}
