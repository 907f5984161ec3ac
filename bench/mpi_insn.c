/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Puts of 8 bytes and flushes of MPI's, so that callgrind can count the
 * instructions of each, library by library. Rank 0 measures, rank 1 has the
 * window. To be run by contrib/bench-layers.sh.
 *
 *   mpi_insn [CALLS]
 *
 * Rank 0 prints "operation calls" for each operation.
 *
 * While an operation is measured, doorbells are only noted down, as sim_uar.h
 * says. A put rings when it returns. A flush waits inside the library for what
 * it has rung for itself, so this program has a ucp_worker_progress() in front
 * of UCP's: it lets the device act before the worker looks, outside of what is
 * counted. To be linked with --export-dynamic.
 */

#include "sim_uar.h"

#include <valgrind/callgrind.h>

#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


#define MPI_INSN_CALLS   64
#define MPI_INSN_WARMUP  200 /* more than a queue's signalling period */
#define MPI_INSN_TARGET  1

/* As in ucp_insn.c: a function of its own, which is not left by a jump. */
#define MPI_INSN_MEASURE __attribute__((noinline, noclone, unused))


typedef unsigned (*mpi_insn_progress_func_t)(void *worker);

static struct {
    MPI_Win                  win;
    uint64_t                 value;
    mpi_insn_progress_func_t progress;
    int                      is_measuring;
} mpi_insn;


/* Time enough for the device of the other process to acknowledge */
static void mpi_insn_pause(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    nanosleep(&pause, NULL);
}

static void mpi_insn_begin(void)
{
    sim_uar_suspend();
    mpi_insn.is_measuring = 1;
}

static void mpi_insn_end(void)
{
    mpi_insn.is_measuring = 0;
    sim_uar_resume();
}

/* UCP's own, which Open MPI loads only when it starts */
static void mpi_insn_find_progress(void)
{
    void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);

    if (ucp != NULL) {
        mpi_insn.progress = (mpi_insn_progress_func_t)dlsym(
                ucp, "ucp_worker_progress");
    }
    if (mpi_insn.progress == NULL) {
        fprintf(stderr, "mpi_insn: there is no libucp.so.0\n");
        abort();
    }
}

/* UCP's is called from here. */
unsigned ucp_worker_progress(void *worker)
{
    if (mpi_insn.progress == NULL) {
        mpi_insn_find_progress();
    }
    if (!mpi_insn.is_measuring) {
        return mpi_insn.progress(worker);
    }

    CALLGRIND_TOGGLE_COLLECT;
    sim_uar_resume();
    mpi_insn_pause();
    sim_uar_suspend();
    CALLGRIND_TOGGLE_COLLECT;
    return mpi_insn.progress(worker);
}

static inline void __attribute__((always_inline)) mpi_insn_put(void)
{
    MPI_Put(&mpi_insn.value, 1, MPI_UINT64_T, MPI_INSN_TARGET, 0, 1,
            MPI_UINT64_T, mpi_insn.win);
}

static MPI_INSN_MEASURE void measure_put(void)
{
    mpi_insn_put();
    __asm__ volatile("");
}

static MPI_INSN_MEASURE void measure_flush(void)
{
    MPI_Win_flush(MPI_INSN_TARGET, mpi_insn.win);
    __asm__ volatile("");
}

static void mpi_insn_run_put(int is_measured)
{
    ++mpi_insn.value;
    if (is_measured) {
        mpi_insn_begin();
        measure_put();
        mpi_insn_end();
    } else {
        mpi_insn_put();
    }
    MPI_Win_flush(MPI_INSN_TARGET, mpi_insn.win);
}

static void mpi_insn_run_flush(int is_measured)
{
    ++mpi_insn.value;
    mpi_insn_put();
    mpi_insn_pause();
    if (is_measured) {
        mpi_insn_begin();
        measure_flush();
        mpi_insn_end();
    } else {
        MPI_Win_flush(MPI_INSN_TARGET, mpi_insn.win);
    }
}

static void mpi_insn_measure(const char *name, void (*run)(int is_measured),
                             int calls)
{
    int i;

    for (i = 0; i < MPI_INSN_WARMUP; ++i) {
        run(0);
    }
    if (sim_uar_find() < 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    for (i = 0; i < calls; ++i) {
        run(1);
    }
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
    printf("%s %d\n", name, calls);
}

static void mpi_insn_check(void)
{
    uint64_t value = 0;

    MPI_Get(&value, 1, MPI_UINT64_T, MPI_INSN_TARGET, 0, 1, MPI_UINT64_T,
            mpi_insn.win);
    MPI_Win_flush(MPI_INSN_TARGET, mpi_insn.win);
    if (value != mpi_insn.value) {
        fprintf(stderr, "mpi_insn: wrote %lu, read %lu\n",
                (unsigned long)mpi_insn.value, (unsigned long)value);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    int calls       = (argc > 1) ? atoi(argv[1]) : MPI_INSN_CALLS;
    uint64_t memory = 0;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((size != 2) || (calls < 1)) {
        fprintf(stderr, "usage: mpi_insn [CALLS], by two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    MPI_Win_create(&memory, sizeof(memory), sizeof(memory), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &mpi_insn.win);
    MPI_Win_lock_all(0, mpi_insn.win);
    if (rank == 0) {
        mpi_insn_measure("put_8", mpi_insn_run_put, calls);
        mpi_insn_measure("flush_one_put", mpi_insn_run_flush, calls);
        mpi_insn_check();
    }
    MPI_Win_unlock_all(mpi_insn.win);
    MPI_Win_free(&mpi_insn.win);
    MPI_Finalize();
    return 0;
}
