/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_MPI_JOB_H
#define SEP_TEST_MPI_JOB_H

#include "../jobs/job_pattern.h"

#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * Frame of every MPI test program: what it prints, how it fails, what it
 * counts.
 *
 * A program prints these lines, which test/jobs/main_job reads:
 *   metric <name> <bytes> <value> <unit>    a figure for the table
 *   traffic <messages> <bytes>              least that must have left the
 *                                           ranks, the transport's counters are
 *                                           compared with it
 *   PASS <program>: ...                     once, from rank 0
 *   FAIL <program>: rank <n>: ...           from the rank that saw it
 *   SKIP <program>: <reason>                from rank 0, nothing was tested
 *   NOTE <program>: <text>                  a part was left out, and why
 */

/** Exit status of a program that could not test anything (Automake's). */
#define MPI_JOB_EXIT_SKIP  77


/** State of the test program in this rank. */
typedef struct mpi_job {
    const char            *name;      /**< Program name in messages */
    const char            *part;      /**< What is being tested, in messages */
    int                   rank;       /**< In MPI_COMM_WORLD */
    int                   size;       /**< Of MPI_COMM_WORLD */
    bool                  quick;      /**< --quick: fewer iterations */
    _Atomic uint64_t      messages;   /**< Sent to other ranks by this one */
    _Atomic uint64_t      bytes;      /**< Payload of these messages */
    _Atomic uint64_t      checks;     /**< Comparisons that were made */
} mpi_job_t;

static mpi_job_t mpi_job;


/** End the whole job with a message that says what was wrong and where. */
static inline void __attribute__((noreturn, format(printf, 1, 2)))
mpi_job_fail(const char *format, ...)
{
    char message[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);

    /* One write(), so that lines of different ranks do not mix */
    fprintf(stderr, "FAIL %s: rank %d: %s: %s\n", mpi_job.name, mpi_job.rank,
            (mpi_job.part != NULL) ? mpi_job.part : "start", message);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

/** Fail unless @a _cond holds. The message is printf-style. */
#define MPI_JOB_CHECK(_cond, ...) \
    do { \
        atomic_fetch_add_explicit(&mpi_job.checks, 1, memory_order_relaxed); \
        if (!(_cond)) { \
            mpi_job_fail(__VA_ARGS__); \
        } \
    } while (0)

/** Fail unless an MPI function returned success. */
#define MPI_JOB_CALL(_call) \
    do { \
        int _mpi_job_ret = (_call); \
        if (_mpi_job_ret != MPI_SUCCESS) { \
            mpi_job_fail_call(#_call, _mpi_job_ret); \
        } \
    } while (0)


static inline void __attribute__((noreturn))
mpi_job_fail_call(const char *call, int error)
{
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(error, reason, &length);
    mpi_job_fail("%s returned %d: %s", call, error, reason);
}

/** Name the part that is being tested. @a part must be a literal. */
static inline void mpi_job_part(const char *part)
{
    mpi_job.part = part;
}

/** Step through a list of sizes: a quick run takes every other one. */
static inline int mpi_job_step(void)
{
    return mpi_job.quick ? 2 : 1;
}

/** Account for a message of @a bytes that this rank sent to another rank. */
static inline void mpi_job_sent(size_t bytes)
{
    atomic_fetch_add_explicit(&mpi_job.messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&mpi_job.bytes, bytes, memory_order_relaxed);
}

/** Check the first @a length bytes of a received buffer and its guards. */
static inline void mpi_job_check_data(const job_buffer_t *buffer, size_t length,
                                      int source, int target,
                                      uint64_t sequence)
{
    uint64_t seed    = job_pattern_seed(source, target, sequence);
    size_t offset    = job_pattern_mismatch(buffer->data, length, seed);
    ptrdiff_t guard;

    MPI_JOB_CHECK(offset == length,
                  "message %" PRIu64 " of %zu bytes from rank %d to rank %d: "
                  "byte %zu is 0x%02x, expected 0x%02x", sequence, length,
                  source, target, offset, buffer->data[offset],
                  job_pattern_byte(seed, offset));

    guard = job_buffer_check(buffer);
    MPI_JOB_CHECK(guard == 0,
                  "message %" PRIu64 " of %zu bytes from rank %d to rank %d: "
                  "byte at offset %td, outside of the receive buffer of %zu "
                  "bytes, was overwritten", sequence, length, source, target,
                  guard, buffer->length);
}

/** Fill a send buffer, see @ref mpi_job_check_data. */
static inline void mpi_job_fill_data(const job_buffer_t *buffer, size_t length,
                                     int source, int target, uint64_t sequence)
{
    job_pattern_fill(buffer->data, length,
                     job_pattern_seed(source, target, sequence));
}

/** Complete requests whose status is of no interest. MPI_STATUSES_IGNORE will
 *  not do: gcc 12 takes MPICH's value of it for an array that is too short. */
static inline void mpi_job_wait_all(int count, MPI_Request *requests)
{
    MPI_Status *statuses = calloc(count, sizeof(*statuses));

    if (statuses == NULL) {
        mpi_job_fail("out of memory: %d statuses", count);
    }

    MPI_JOB_CALL(MPI_Waitall(count, requests, statuses));
    free(statuses);
}

/** Print a figure for the table (call it on one rank). */
static inline void
mpi_job_metric(const char *name, size_t bytes, double value, const char *unit)
{
    printf("metric %s %zu %.3f %s\n", name, bytes, value, unit);
}

/** Times batches of an operation and keeps the fastest: on a machine that has
 *  other things to do, the average is that of its scheduler. */
typedef struct mpi_job_timer {
    int    batch;       /**< Operations per batch */
    int    done;        /**< Of the current one */
    double start;       /**< Of the current one */
    double best;        /**< Seconds per operation, 0: none yet */
} mpi_job_timer_t;

#define MPI_JOB_NUM_BATCHES  20

/** Time @a iterations operations. */
static inline mpi_job_timer_t mpi_job_timer_start(int iterations)
{
    mpi_job_timer_t timer = {.batch = iterations / MPI_JOB_NUM_BATCHES};

    timer.batch = (timer.batch < 1) ? 1 : timer.batch;
    timer.start = MPI_Wtime();
    return timer;
}

/** Leave out what was done since the last operation that completed a batch. */
static inline void mpi_job_timer_restart(mpi_job_timer_t *timer)
{
    timer->start = MPI_Wtime();
}

/** One operation is done. */
static inline void mpi_job_timer_tick(mpi_job_timer_t *timer)
{
    double now, each;

    if (++timer->done == timer->batch) {
        now          = MPI_Wtime();
        each         = (now - timer->start) / timer->batch;
        timer->best  = ((timer->best == 0) || (each < timer->best)) ?
                       each : timer->best;
        timer->start = now;
        timer->done  = 0;
    }
}

/** Start MPI with at least thread level @a required. A program started with
 *  fewer than @a min_ranks ranks fails: it would test nothing. */
static inline void mpi_job_init(int *argc, char ***argv, const char *name,
                                int required, int min_ranks)
{
    int provided, i;

    mpi_job.name = name;
    MPI_Init_thread(argc, argv, required, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_job.size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    for (i = 1; i < *argc; ++i) {
        if (!strcmp((*argv)[i], "--quick")) {
            mpi_job.quick = true;
        } else {
            mpi_job_fail("unknown argument '%s'; the only one is --quick",
                         (*argv)[i]);
        }
    }

    if (provided < required) {
        if (mpi_job.rank == 0) {
            printf("SKIP %s: the MPI library provides thread level %d, %d is "
                   "needed\n", name, provided, required);
        }
        MPI_Finalize();
        exit(MPI_JOB_EXIT_SKIP);
    }

    if (mpi_job.size < min_ranks) {
        mpi_job_fail("needs at least %d ranks, started with %d", min_ranks,
                     mpi_job.size);
    }
}

/** If SEP_JOB_PAUSE names a directory, create the file rank.N in it and wait
 *  for the file "go" there: whoever started the job can look at what it has
 *  taken when all ranks have come here. For one thread per rank. */
static inline void mpi_job_wait(void)
{
    const char *dir = getenv("SEP_JOB_PAUSE");
    char path[1024];
    int fd, found;

    if (dir == NULL) {
        return;
    }

    snprintf(path, sizeof(path), "%s/rank.%d", dir, mpi_job.rank);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    MPI_JOB_CHECK(fd >= 0, "SEP_JOB_PAUSE: %s: %s", path, strerror(errno));
    close(fd);

    snprintf(path, sizeof(path), "%s/go", dir);
    while (access(path, F_OK) != 0) {
        /* What this rank has sent must get there meanwhile */
        MPI_JOB_CALL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                                &found, MPI_STATUS_IGNORE));
        usleep(2000);
    }
}

/** As @ref mpi_job_wait, when all ranks have come here. */
static inline void mpi_job_pause(void)
{
    if (getenv("SEP_JOB_PAUSE") != NULL) {
        MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
        mpi_job_wait();
    }
}

/** Add up the counts of all ranks, print them, end MPI.
 *  @return Exit status of the program. */
static inline int mpi_job_finish(void)
{
    uint64_t mine[3] = {mpi_job.messages, mpi_job.bytes, mpi_job.checks};
    uint64_t total[3];

    mpi_job_part("end");
    MPI_JOB_CALL(MPI_Reduce(mine, total, 3, MPI_UINT64_T, MPI_SUM, 0,
                            MPI_COMM_WORLD));
    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    if (mpi_job.rank == 0) {
        printf("traffic %" PRIu64 " %" PRIu64 "\n", total[0], total[1]);
        printf("PASS %s: %d ranks, %" PRIu64 " messages, %" PRIu64 " bytes, "
               "%" PRIu64 " checks\n", mpi_job.name, mpi_job.size, total[0],
               total[1], total[2]);
        fflush(stdout);
    }

    MPI_JOB_CALL(MPI_Finalize());
    return EXIT_SUCCESS;
}

#endif
