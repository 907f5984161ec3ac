/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_SHMEM_JOB_H
#define SEP_TEST_SHMEM_JOB_H

#include "../jobs/job_pattern.h"

#include <shmem.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * Frame of every OpenSHMEM test program. The lines it prints are those of
 * test/mpi/mpi_job.h.
 */

typedef struct shmem_job {
    const char   *name;     /**< Program name in messages */
    const char   *part;     /**< What is being tested, in messages */
    int          pe;
    int          num_pes;
    bool         quick;
    bool         no_finalize;   /**< End without shmem_finalize() */
    _Atomic long counts[3]; /**< Messages, bytes, checks of this PE */
} shmem_job_t;

static shmem_job_t shmem_job;


/** End the whole job with a message that says what was wrong and where. */
static inline void __attribute__((noreturn, format(printf, 1, 2)))
shmem_job_fail(const char *format, ...)
{
    char message[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    fprintf(stderr, "FAIL %s: rank %d: %s: %s\n", shmem_job.name, shmem_job.pe,
            (shmem_job.part != NULL) ? shmem_job.part : "start", message);
    fflush(NULL);
    shmem_global_exit(EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

#define SHMEM_JOB_CHECK(_cond, ...) \
    do { \
        ++shmem_job.counts[2]; \
        if (!(_cond)) { \
            shmem_job_fail(__VA_ARGS__); \
        } \
    } while (0)

/** Name the part that is being tested. @a part must be a literal. */
static inline void shmem_job_part(const char *part)
{
    shmem_job.part = part;
}

/** Account for an operation of @a bytes on the memory of @a pe. */
static inline void shmem_job_sent(int pe, size_t bytes)
{
    if (pe != shmem_job.pe) {
        ++shmem_job.counts[0];
        shmem_job.counts[1] += bytes;
    }
}

/** Symmetric memory, set to the guard value; ends the job without it. */
static inline void *shmem_job_alloc(size_t size)
{
    void *memory = shmem_align(JOB_GUARD_LEN, size);

    if (memory == NULL) {
        shmem_job_fail("shmem_align of %zu bytes failed: set "
                       "SHMEM_SYMMETRIC_SIZE", size);
    }

    memset(memory, JOB_GUARD_BYTE, size);
    shmem_barrier_all();
    return memory;
}

/** Check @a size bytes, and that the one behind them was left alone. */
static inline void shmem_job_check_data(const uint8_t *data, size_t size,
                                        int source, int target,
                                        uint64_t sequence)
{
    uint64_t seed = job_pattern_seed(source, target, sequence);
    size_t bad    = job_pattern_mismatch(data, size, seed);

    SHMEM_JOB_CHECK(bad == size,
                    "%zu bytes from PE %d to PE %d: byte %zu is 0x%02x, "
                    "expected 0x%02x", size, source, target, bad, data[bad],
                    job_pattern_byte(seed, bad));
    SHMEM_JOB_CHECK(data[size] == JOB_GUARD_BYTE,
                    "%zu bytes from PE %d to PE %d: the byte behind them was "
                    "overwritten", size, source, target);
}

static inline double shmem_job_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

static inline void
shmem_job_metric(const char *name, size_t bytes, double value, const char *unit)
{
    printf("metric %s %zu %.3f %s\n", name, bytes, value, unit);
}

/** Start OpenSHMEM with thread level @a required. */
static inline void shmem_job_init_thread(int argc, char **argv,
                                         const char *name, int required)
{
    int i, provided;

    shmem_job.name = name;
    shmem_init_thread(required, &provided);
    shmem_job.pe      = shmem_my_pe();
    shmem_job.num_pes = shmem_n_pes();
    for (i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--quick")) {
            shmem_job.quick = true;
        } else {
            shmem_job_fail("unknown argument '%s'; the only one is --quick",
                           argv[i]);
        }
    }

    if (shmem_job.num_pes < 2) {
        shmem_job_fail("needs at least 2 PEs, started with %d",
                       shmem_job.num_pes);
    }

    if (provided < required) {
        shmem_job_fail("the library provides thread level %d, %d is needed",
                       provided, required);
    }
}

/** Start a program without threads. */
static inline void shmem_job_init(int argc, char **argv, const char *name)
{
    shmem_job_init_thread(argc, argv, name, SHMEM_THREAD_SINGLE);
}

/** End the process without shmem_finalize(), behind a barrier. What a PE has
 *  sent for that goes with it if it ends at once, and others would wait for
 *  ever: so it stays until all have come out of the barrier, which they tell
 *  each other past the network. All are children of one launcher. */
static inline void __attribute__((noreturn)) shmem_job_leave(void)
{
    _Atomic int *count;
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "/sep-shmem-job.%d", (int)getppid());
    fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    if ((fd < 0) || (ftruncate(fd, sizeof(*count)) != 0)) {
        shmem_job_fail("%s: %s", name, strerror(errno));
    }
    count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                 0);
    if (count == MAP_FAILED) {
        shmem_job_fail("%s: %s", name, strerror(errno));
    }

    ++*count;
    while (*count < shmem_job.num_pes) {
        shmem_quiet(); /* Progress for the others */
        usleep(100);
    }
    shm_unlink(name);
    fflush(NULL);
    _exit(EXIT_SUCCESS);
}

/** Add up the counts of all PEs, print them, end OpenSHMEM.
 *  @return Exit status of the program. */
static inline int shmem_job_finish(void)
{
    long *counts  = shmem_job_alloc(3 * sizeof(*counts));
    long total[3] = {0};
    long value;
    int pe, i;

    shmem_job_part("end");
    memcpy(counts, shmem_job.counts, sizeof(shmem_job.counts));
    shmem_barrier_all();
    if (shmem_job.pe == 0) {
        for (pe = 0; pe < shmem_job.num_pes; ++pe) {
            for (i = 0; i < 3; ++i) {
                value     = shmem_long_g(&counts[i], pe);
                total[i] += value;
            }
        }

        printf("traffic %ld %ld\n", total[0], total[1]);
        printf("PASS %s: %d ranks, %ld messages, %ld bytes, %ld checks\n",
               shmem_job.name, shmem_job.num_pes, total[0], total[1],
               total[2]);
        fflush(stdout);
    }

    shmem_barrier_all();
    if (shmem_job.no_finalize) {
        shmem_job_leave();
    }
    shmem_free(counts);
    shmem_finalize();
    return EXIT_SUCCESS;
}

#endif
