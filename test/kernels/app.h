/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_APP_H
#define SEP_TEST_APP_H

#include "../jobs/job_pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/*
 * Application kernels with an interface per thread, in two halves:
 *
 * - a kernel (dgemm.h, stencil.h) computes, knows what has to go where, and
 *   compares the result with a serial run. It knows no library;
 * - a back end (app_kernels.c of test/mpi, test/shmem and test/ucp) moves
 *   bytes. It knows no kernel.
 *
 * What is here is between them: options, threads, counts, and the order of it
 * all. A kernel is run twice, first to connect what it will use, and then to be
 * looked at: with SEP_JOB_PAUSE, processes wait before and behind the second
 * run, see app_pause(). Each process prints then
 *
 *   kernel <key>=<value> ...
 *
 * about the second run: which kernel by which back end, of what shape and size;
 * messages (puts, gets or sends to other processes) and their bytes; and the
 * seconds that it took.
 */

#define APP_MAX_THREADS  64

#define APP_NAME         "app_kernels"


/** Data for or of the thread of the same number in another process. */
typedef struct app_message {
    int    rank;        /**< The other process */
    int    tag;         /**< Tells messages of one exchange apart, from 0 on */
    void   *data;
    size_t length;
} app_message_t;


/**
 * What a back end provides. Functions with a thread are called by that thread;
 * the others by the main thread. They do not return if they fail.
 */
typedef struct app_ops {
    const char *name;

    /** Print "FAIL ...", end the job. */
    void (*fail)(const char *message);

    /** Set app.memory to memory that others can reach, of so many bytes in each
     *  process, and make what all threads' interfaces need. */
    void (*attach)(size_t length);
    void (*detach)(void);

    /** Make the thread's interface, if that is not the main thread's task. Can
     *  be NULL, as close and destroy. */
    void (*open)(int thread);
    /** Nothing will be sent any more; others still may. */
    void (*close)(int thread);
    /** Nobody sends any more. */
    void (*destroy)(int thread);

    /** Get or put: begins. The offset is from the beginning of app.memory in
     *  the other process. NULL if @a exchange is there. */
    void (*get)(int thread, void *local, int rank, size_t offset,
                size_t length);
    void (*put)(int thread, const void *local, int rank, size_t offset,
                size_t length);
    /** Puts before this are visible to the target before those behind it. */
    void (*fence)(int thread);
    /** All gets and puts of this thread are complete, there as well. */
    void (*flush)(int thread);

    /** Send and receive, and wait for all of it. */
    void (*exchange)(int thread, const app_message_t *out, int num_out,
                     const app_message_t *in, int num_in);

    /** Let the library do what it has to, while the thread waits. Can be
     *  NULL. */
    void (*progress)(int thread);
    /** Let the library do what it has to, while the main thread waits for the
     *  others. */
    void (*idle)(void);
    /** All processes have got here. */
    void (*barrier)(void);
} app_ops_t;


typedef struct app_kernel {
    const char *name;
    /** Check options, fill in defaults.
     *  @return Bytes of app.memory. */
    size_t (*prepare)(void);
    /** Before each run, and before anything comes. */
    void (*setup)(void);
    /** All that a thread does in a run. */
    void (*run)(int thread);
    /** Behind each run, when all is there. */
    void (*verify)(void);
    void (*cleanup)(void);
} app_kernel_t;


typedef struct app {
    const app_ops_t    *ops;
    const app_kernel_t *kernel;
    int                rank;
    int                num_ranks;
    int                num_threads;  /**< Of each rank */
    bool               two_sided;
    bool               quick;        /**< Less of what was not asked for */
    int                tile;         /**< DGEMM: rows and columns of a tile */
    int                size;         /**< DGEMM: of a matrix */
    int                rows;         /**< Stencil: of the grid */
    int                cols;
    int                steps;        /**< Stencil */
    uint8_t            *memory;      /**< What others can reach */
    size_t             memory_len;
    pthread_barrier_t  meeting;      /**< Of all threads of this rank */
    pthread_t          threads[APP_MAX_THREADS];
    atomic_int         phase;        /**< What threads may begin */
    atomic_int         num_arrived;  /**< Threads at the end of a phase */
    _Atomic uint64_t   messages;     /**< To other ranks, both runs */
    _Atomic uint64_t   bytes;
    _Atomic uint64_t   checks;
} app_t;

static app_t app = {.num_threads = 2};


static void __attribute__((noreturn, format(printf, 1, 2)))
app_fail(const char *format, ...)
{
    char message[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    app.ops->fail(message);
    _exit(EXIT_FAILURE);
}

/** Fail unless @a _cond holds. */
#define APP_CHECK(_cond, ...) \
    do { \
        ++app.checks; \
        if (!(_cond)) { \
            app_fail(__VA_ARGS__); \
        } \
    } while (0)


static void *app_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    APP_CHECK(memory != NULL, "out of memory: %zu of %zu bytes", count, size);
    return memory;
}

static double app_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

static void app_count(size_t length)
{
    atomic_fetch_add_explicit(&app.messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&app.bytes, length, memory_order_relaxed);
}

/*
 * For kernels: what back ends do, counted. Data of this process itself is
 * copied, as libraries of global arrays do.
 */

static void app_get(int thread, void *local, int rank, size_t offset,
                    size_t length)
{
    if (rank == app.rank) {
        memcpy(local, app.memory + offset, length);
    } else {
        app.ops->get(thread, local, rank, offset, length);
        app_count(length);
    }
}

static void app_put(int thread, const void *local, int rank, size_t offset,
                    size_t length)
{
    if (rank == app.rank) {
        memcpy(app.memory + offset, local, length);
    } else {
        app.ops->put(thread, local, rank, offset, length);
        app_count(length);
    }
}

static void app_exchange(int thread, const app_message_t *out, int num_out,
                         const app_message_t *in, int num_in)
{
    int i;

    for (i = 0; i < num_out; ++i) {
        app_count(out[i].length);
    }
    app.ops->exchange(thread, out, num_out, in, num_in);
}

/** A moment of waiting. Threads share processors, so they let go of them. */
static void app_wait(int thread)
{
    if (app.ops->progress != NULL) {
        app.ops->progress(thread);
    }
    sched_yield();
}

/** All threads of this rank have got here. */
static void app_meet(void)
{
    pthread_barrier_wait(&app.meeting);
}

/*
 * Options
 */

static const app_kernel_t *app_kernels[];


static void __attribute__((noreturn)) app_usage(const char *what)
{
    fprintf(stderr, "FAIL " APP_NAME ": %s\n"
            "usage: " APP_NAME " [dgemm|stencil] [options]\n"
            "  --threads T    of each process, 1 to %d (default 2)\n"
            "  --two-sided    send and receive, where the library has both\n"
            "  --size N       dgemm: rows and columns of a matrix\n"
            "  --tile N       dgemm: rows and columns of a tile (default 8)\n"
            "  --rows N       stencil: rows of the grid (default 8 per "
            "process)\n"
            "  --cols N       stencil: columns (default 8 per thread)\n"
            "  --steps N      stencil (default 20, with --quick 5)\n"
            "  --quick        less of what is not asked for\n",
            what, APP_MAX_THREADS);
    exit(EXIT_FAILURE);
}

/** A number from 1 on. */
static int app_parse_number(const char *option, const char *text, int max)
{
    char message[160], *end;
    long value;

    errno = 0;
    value = (text != NULL) ? strtol(text, &end, 10) : 0;
    if ((text == NULL) || (end == text) || (*end != '\0') || (errno != 0) ||
        (value < 1) || (value > max)) {
        snprintf(message, sizeof(message), "%s %s: from 1 to %d is possible",
                 option, (text != NULL) ? text : "", max);
        app_usage(message);
    }
    return value;
}

/**
 * Read the command line before the library does.
 *
 * @param [in]  more  Called with options that are not known here, and the next
 *                    word or NULL; returns how many words it took, 0: none.
 *                    Can be NULL.
 */
static void app_parse(int argc, char **argv,
                      int (*more)(const char *option, const char *value))
{
    const struct {
        const char *name;
        int        *value;
        int        max;
    } numbers[] = {
        {"--threads", &app.num_threads, APP_MAX_THREADS},
        {"--size", &app.size, 4096},
        {"--tile", &app.tile, 512},
        {"--rows", &app.rows, 65536},
        {"--cols", &app.cols, 65536},
        {"--steps", &app.steps, 100000}
    };
    char message[160];
    int i, k, taken;

    for (i = 1; i < argc; i += taken) {
        taken = 0;
        for (k = 0; (size_t)k < sizeof(numbers) / sizeof(numbers[0]); ++k) {
            if (!strcmp(argv[i], numbers[k].name)) {
                *numbers[k].value = app_parse_number(argv[i], argv[i + 1],
                                                     numbers[k].max);
                taken = 2;
            }
        }
        for (k = 0; app_kernels[k] != NULL; ++k) {
            if (!strcmp(argv[i], app_kernels[k]->name)) {
                app.kernel = app_kernels[k];
                taken      = 1;
            }
        }
        if (!strcmp(argv[i], "--two-sided")) {
            app.two_sided = true;
            taken         = 1;
        } else if (!strcmp(argv[i], "--quick")) {
            app.quick = true;
            taken     = 1;
        } else if ((taken == 0) && (more != NULL)) {
            taken = more(argv[i], argv[i + 1]);
        }
        if (taken == 0) {
            snprintf(message, sizeof(message), "unknown argument '%.80s'",
                     argv[i]);
            app_usage(message);
        }
    }
}

/*
 * The order of it all
 */

/**
 * If SEP_JOB_PAUSE names a directory, create the file NAME.RANK in it and wait
 * for the file NAME.go there: whoever started the job can look at the device.
 */
static void app_pause(const char *name)
{
    const char *dir = getenv("SEP_JOB_PAUSE");
    char path[1024];
    int fd;

    if (dir == NULL) {
        return;
    }

    snprintf(path, sizeof(path), "%s/%s.%d", dir, name, app.rank);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    APP_CHECK(fd >= 0, "SEP_JOB_PAUSE: %s: %s", path, strerror(errno));
    close(fd);

    snprintf(path, sizeof(path), "%s/%s.go", dir, name);
    while (access(path, F_OK) != 0) {
        usleep(2000);
    }
}

/** A thread has done its part, and goes on when the main thread says so. What
 *  others send meanwhile may need it. */
static void app_thread_arrive(int thread, int next)
{
    atomic_fetch_add(&app.num_arrived, 1);
    while (atomic_load(&app.phase) < next) {
        if (app.ops->progress != NULL) {
            app.ops->progress(thread);
        }
        usleep(200);
    }
}

static void *app_thread_main(void *arg)
{
    int thread = (uintptr_t)arg;

    if (app.ops->open != NULL) {
        app.ops->open(thread);
    }
    app_thread_arrive(thread, 1);
    app.kernel->run(thread);
    app_thread_arrive(thread, 2);
    app.kernel->run(thread);
    app_thread_arrive(thread, 3);
    if (app.ops->close != NULL) {
        app.ops->close(thread);
    }
    app_thread_arrive(thread, 4);
    if (app.ops->destroy != NULL) {
        app.ops->destroy(thread);
    }
    return NULL;
}

/** The main thread has nothing to do. */
static void app_sleep(void)
{
    if (app.ops->idle != NULL) {
        app.ops->idle();
    }
    usleep(100);
}

/** Wait until so many threads are at the end of a phase. */
static void app_await_threads(int count)
{
    while (atomic_load(&app.num_arrived) < count) {
        app_sleep();
    }
}

/** Wait for the end of a phase. */
static void app_end_phase(void)
{
    app_await_threads(app.num_threads);
    atomic_store(&app.num_arrived, 0);
}

static void app_next_phase(void)
{
    atomic_fetch_add(&app.phase, 1);
}

/** One line, in one write so that those of processes do not mix. */
static void app_report(uint64_t messages, uint64_t bytes, double seconds)
{
    char line[512];
    int length;

    length = snprintf(line, sizeof(line),
                      "kernel name=%s api=%s sided=%d rank=%d ranks=%d "
                      "threads=%d tile=%d size=%d rows=%d cols=%d steps=%d "
                      "messages=%" PRIu64 " bytes=%" PRIu64 " seconds=%.6f\n",
                      app.kernel->name, app.ops->name, app.two_sided ? 2 : 1,
                      app.rank, app.num_ranks, app.num_threads, app.tile,
                      app.size, app.rows, app.cols, app.steps, messages, bytes,
                      seconds);
    fflush(stdout);
    APP_CHECK(write(STDOUT_FILENO, line, length) == length,
              "standard output: %s", strerror(errno));
}

/** Say what would be taken for a result otherwise. */
static void app_note_processors(void)
{
    int wanted = app.num_ranks * app.num_threads;
    long there = sysconf(_SC_NPROCESSORS_ONLN);

    if ((app.rank == 0) && (there > 0) && (wanted > there)) {
        printf("NOTE " APP_NAME ": %d threads share %ld processors, so times "
               "are those of their scheduler\n", wanted, there);
        fflush(stdout);
    }
}

/** Run the kernel twice, after prepare() and attach(). */
static void app_run_threads(void)
{
    uint64_t messages = 0, bytes = 0;
    double start = 0, seconds;
    int i, ret, round;

    atomic_store(&app.phase, 0);
    pthread_barrier_init(&app.meeting, NULL, app.num_threads);
    /* One after the other: the first worker of a process may get what others do
     * not, and should then be of the same number everywhere */
    for (i = 0; i < app.num_threads; ++i) {
        ret = pthread_create(&app.threads[i], NULL, app_thread_main,
                             (void*)(uintptr_t)i);
        APP_CHECK(ret == 0, "pthread_create: %s", strerror(ret));
        app_await_threads(i + 1);
    }
    atomic_store(&app.num_arrived, 0);

    for (round = 0; round < 2; ++round) {
        app.kernel->setup();
        app.ops->barrier();
        if (round == 1) {
            app_pause("begin");
            messages = app.messages;
            bytes    = app.bytes;
            start    = app_time();
        }
        app_next_phase();
        app_end_phase();
        seconds = app_time() - start;
        if (round == 1) {
            app_pause("end");
            app_report(app.messages - messages, app.bytes - bytes, seconds);
        }
        app.ops->barrier();
        app.kernel->verify();
    }

    app_next_phase();
    app_end_phase();
    app.ops->barrier();
    app_next_phase();
    for (i = 0; i < app.num_threads; ++i) {
        ret = pthread_join(app.threads[i], NULL);
        APP_CHECK(ret == 0, "pthread_join: %s", strerror(ret));
    }
    pthread_barrier_destroy(&app.meeting);
}

static void app_run_kernel(void)
{
    size_t length = app.kernel->prepare();

    app.memory_len = length;
    app.ops->attach(length);
    app_run_threads();
    app.ops->detach();
    app.kernel->cleanup();
}

/**
 * Run the kernel that the options name, or all of them in each way that the
 * back end has. It has set app.ops, rank and num_ranks.
 */
static void app_run(void)
{
    int sided;
    int k;

    app_note_processors();
    if (app.kernel != NULL) {
        if (app.two_sided && (app.ops->exchange == NULL)) {
            app_fail("--two-sided: %s has one-sided operations only",
                     app.ops->name);
        }
        app_run_kernel();
        return;
    }

    for (k = 0; app_kernels[k] != NULL; ++k) {
        for (sided = 1; sided <= 2; ++sided) {
            if ((sided == 1) || (app.ops->exchange != NULL)) {
                app.kernel    = app_kernels[k];
                app.two_sided = (sided == 2);
                app_run_kernel();
            }
        }
    }
}

#endif
