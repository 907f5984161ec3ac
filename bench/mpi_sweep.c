/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages between two ranks, and collectives, by size. See
 * contrib/bench-apps.sh.
 *
 *   mpi_sweep time  ITERATIONS OPERATION:BYTES...
 *   mpi_sweep count ITERATIONS OPERATION:BYTES...
 *
 * time: prints metrics, see mpi_job.h.
 * count: callgrind counts what measure_*() of rank 0 do, and writes a file for
 * each batch of an operation, named by the description OPERATION:BYTES:BATCH.
 * "calls OPERATION:BYTES:BATCH CALLS" is printed for each. How often a rank
 * polls in vain depends on the others, so rank 0 is the last that comes to
 * anything: the ranks are led by a barrier that does not use MPI.
 *
 * All data are compared.
 */

#include "mpi/mpi_job.h"

#include <valgrind/callgrind.h>

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define SWEEP_WINDOW     64
#define SWEEP_WARMUP     8
#define SWEEP_BATCHES    3
#define SWEEP_MAX_RANKS  64
#define SWEEP_TAG        1

/* Time of a processor in which a rank does whatever it can do alone */
#define SWEEP_ALONE_NS   300000

/* A function of its own for callgrind, which is not left by a jump */
#define SWEEP_MEASURE __attribute__((noinline, noclone))
#define SWEEP_KEEP(_value) \
    __asm__ volatile("" : "+r"(_value))


/* Memory of all ranks */
typedef struct sweep_shared {
    pthread_barrier_t barrier;
    pid_t             pids[SWEEP_MAX_RANKS];
    _Atomic uint64_t  done[SWEEP_MAX_RANKS];   /* Steps that are over */
} sweep_shared_t;

static struct {
    sweep_shared_t *shared;
    int            iterations;
    size_t         size;
    uint64_t       number;      /* Of the step or collective */
    job_buffer_t   in;
    job_buffer_t   out;
    job_buffer_t   window[SWEEP_WINDOW];
    MPI_Request    requests[SWEEP_WINDOW];
} sweep;

typedef struct sweep_op {
    const char *name;
    void       (*count)(const struct sweep_op *op);
    void       (*time)(const struct sweep_op *op);
    int        messages;                /* In a window, 0: a collective */
    int        (*call)(void);
    void       (*fill)(void);
    void       (*check)(void);
} sweep_op_t;


/*
 * Meeting without MPI
 */

static void sweep_share(void)
{
    pthread_barrierattr_t attr;
    char name[64];
    int fd;

    mpi_job_part("shared memory");
    snprintf(name, sizeof(name), "/sep-mpi-sweep.%d", (int)getpid());
    MPI_JOB_CALL(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD));
    MPI_JOB_CHECK(mpi_job.size <= SWEEP_MAX_RANKS, "%d ranks, at most %d",
                  mpi_job.size, SWEEP_MAX_RANKS);

    fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    MPI_JOB_CHECK((fd >= 0) && (ftruncate(fd, sizeof(*sweep.shared)) == 0),
                  "%s: %s", name, strerror(errno));
    sweep.shared = mmap(NULL, sizeof(*sweep.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    MPI_JOB_CHECK(sweep.shared != MAP_FAILED, "%s: %s", name, strerror(errno));
    close(fd);

    sweep.shared->pids[mpi_job.rank] = getpid();
    if (mpi_job.rank == 0) {
        pthread_barrierattr_init(&attr);
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&sweep.shared->barrier, &attr, mpi_job.size);
        pthread_barrierattr_destroy(&attr);
    }
    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    if (mpi_job.rank == 0) {
        shm_unlink(name);
    }
}

static void sweep_meet(void)
{
    pthread_barrier_wait(&sweep.shared->barrier);
}

/* A step, or a collective, is over for this rank */
static void sweep_done(void)
{
    sweep.shared->done[mpi_job.rank] = ++sweep.number;
}

/* Nanoseconds of a processor that a rank has had */
static uint64_t sweep_cpu_time(int rank)
{
    struct timespec now = {0};
    clockid_t clock;

    if ((clock_getcpuclockid(sweep.shared->pids[rank], &clock) != 0) ||
        (clock_gettime(clock, &now) != 0)) {
        mpi_job_fail("no clock of rank %d", rank);
    }
    return (now.tv_sec * 1000000000ull) + now.tv_nsec;
}

/* Let the other ranks go as far in a step as they get without this one, however
 * busy the machine is. */
static void sweep_let_others_wait(void)
{
    const struct timespec nap = {.tv_nsec = 50000};
    uint64_t start[SWEEP_MAX_RANKS];
    int turn, rank;

    /* Twice, as the second may have waited for the last */
    for (turn = 0; turn < 2; ++turn) {
        for (rank = 1; rank < mpi_job.size; ++rank) {
            start[rank] = sweep_cpu_time(rank);
        }
        for (rank = 1; rank < mpi_job.size; ++rank) {
            while ((sweep.shared->done[rank] <= sweep.number) &&
                   (sweep_cpu_time(rank) < (start[rank] + SWEEP_ALONE_NS))) {
                nanosleep(&nap, NULL);
            }
        }
    }
}


/*
 * What is counted
 */

static SWEEP_MEASURE int
measure_isend(const job_buffer_t *buffer, size_t size, MPI_Request *request)
{
    int ret = MPI_Isend(buffer->data, size, MPI_BYTE, 1, SWEEP_TAG,
                        MPI_COMM_WORLD, request);

    SWEEP_KEEP(ret);
    return ret;
}

static SWEEP_MEASURE int
measure_irecv(const job_buffer_t *buffer, size_t size, MPI_Request *request)
{
    int ret = MPI_Irecv(buffer->data, size, MPI_BYTE, 1, SWEEP_TAG,
                        MPI_COMM_WORLD, request);

    SWEEP_KEEP(ret);
    return ret;
}

static SWEEP_MEASURE int measure_wait(MPI_Request *request)
{
    int ret = MPI_Wait(request, MPI_STATUS_IGNORE);

    SWEEP_KEEP(ret);
    return ret;
}

static SWEEP_MEASURE int measure_collective(const sweep_op_t *op)
{
    int ret = op->call();

    SWEEP_KEEP(ret);
    return ret;
}

static void sweep_start_counting(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

static void sweep_end_counting(const char *name, int batch, int calls)
{
    char text[128];

    snprintf(text, sizeof(text), "%s:%zu:%d", name, sweep.size, batch);
    CALLGRIND_DUMP_STATS_AT(text);
    CALLGRIND_STOP_INSTRUMENTATION;
    printf("calls %s %d\n", text, calls);
    fflush(stdout);
}


/*
 * Two ranks
 */

static void sweep_fill_window(int window, uint64_t number)
{
    int i;

    for (i = 0; i < window; ++i) {
        mpi_job_fill_data(&sweep.window[i], sweep.size, mpi_job.rank,
                          1 - mpi_job.rank, (number * window) + i);
        mpi_job_sent(sweep.size);
    }
}

static void sweep_check_window(int window, uint64_t number)
{
    int i;

    for (i = 0; i < window; ++i) {
        mpi_job_check_data(&sweep.window[i], sweep.size, 1 - mpi_job.rank,
                           mpi_job.rank, (number * window) + i);
    }
}

static void sweep_isend_window(int window)
{
    int i;

    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(MPI_Isend(sweep.window[i].data, sweep.size, MPI_BYTE,
                               1 - mpi_job.rank, SWEEP_TAG, MPI_COMM_WORLD,
                               &sweep.requests[i]));
    }
}

static void sweep_irecv_window(int window)
{
    int i;

    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(MPI_Irecv(sweep.window[i].data, sweep.size, MPI_BYTE,
                               1 - mpi_job.rank, SWEEP_TAG, MPI_COMM_WORLD,
                               &sweep.requests[i]));
    }
}

/* Windows are answered by one byte. Without it, somebody who only sends would
 * not see what the transport has to say. */
static void sweep_send_answer(void)
{
    MPI_JOB_CALL(MPI_Send(sweep.out.data, 1, MPI_BYTE, 1 - mpi_job.rank,
                          SWEEP_TAG, MPI_COMM_WORLD));
    mpi_job_sent(1);
}

static void sweep_recv_answer(void)
{
    MPI_JOB_CALL(MPI_Recv(sweep.out.data, 1, MPI_BYTE, 1 - mpi_job.rank,
                          SWEEP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The window goes from rank 0 to rank 1, which has posted its receives. Where
 * a message goes alone, rank 1 has answered a rendezvous when rank 0 waits for
 * it; those of a window are too short for that. */
static void sweep_count_send(int window, uint64_t number)
{
    MPI_Request answer;
    int i;

    if (mpi_job.rank == 1) {
        sweep_irecv_window(window);
        sweep_meet();
        mpi_job_wait_all(window, sweep.requests);
        sweep_check_window(window, number);
        if (window > 1) {
            sweep_send_answer();
        }
        sweep_done();
        return;
    }

    sweep_fill_window(window, number);
    sweep_meet();
    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(measure_isend(&sweep.window[i], sweep.size,
                                   &sweep.requests[i]));
    }
    if (window == 1) {
        sweep_let_others_wait();
    }
    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(measure_wait(&sweep.requests[i]));
    }
    if (window > 1) {
        sweep_let_others_wait();
        MPI_JOB_CALL(measure_irecv(&sweep.out, 1, &answer));
        MPI_JOB_CALL(measure_wait(&answer));
    }
    sweep_done();
}

/* And back, to receives of rank 0 */
static void sweep_count_recv(int window, uint64_t number)
{
    MPI_Request answer;
    int i;

    if (mpi_job.rank == 1) {
        sweep_fill_window(window, number);
        sweep_meet();
        sweep_isend_window(window);
        mpi_job_wait_all(window, sweep.requests);
        sweep_done();
        if (window > 1) {
            sweep_recv_answer();
        }
        return;
    }

    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(measure_irecv(&sweep.window[i], sweep.size,
                                   &sweep.requests[i]));
    }
    sweep_meet();
    sweep_let_others_wait();
    for (i = 0; i < window; ++i) {
        MPI_JOB_CALL(measure_wait(&sweep.requests[i]));
    }
    sweep_check_window(window, number);
    if (window > 1) {
        MPI_JOB_CALL(measure_isend(&sweep.out, 1, &answer));
        MPI_JOB_CALL(measure_wait(&answer));
        mpi_job_sent(1);
    }
    sweep_done();
}

/* Half of the time that there and back takes */
static double sweep_time_pingpong(int iterations)
{
    void *data            = sweep.window[0].data;
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    int i, turn;

    for (i = 0; i < iterations; ++i) {
        for (turn = 0; turn < 2; ++turn) {
            if (mpi_job.rank == turn) {
                MPI_JOB_CALL(MPI_Send(data, sweep.size, MPI_BYTE,
                                      1 - mpi_job.rank, SWEEP_TAG,
                                      MPI_COMM_WORLD));
                mpi_job_sent(sweep.size);
            } else {
                MPI_JOB_CALL(MPI_Recv(data, sweep.size, MPI_BYTE,
                                      1 - mpi_job.rank, SWEEP_TAG,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
        }
        mpi_job_timer_tick(&timer);
    }
    return timer.best / 2;
}

typedef void (*sweep_step_t)(int window, uint64_t number);

static void sweep_ping_and_pong(int window, uint64_t number)
{
    sweep_count_send(window, number);
    sweep_count_recv(window, number);
}

static void sweep_count_steps(const char *name, sweep_step_t step, int window)
{
    int batch, i;

    /* Connections are made while both progress */
    sweep_time_pingpong(SWEEP_WARMUP);
    for (i = 0; i < SWEEP_WARMUP; ++i) {
        step(window, i);
    }
    for (batch = 0; batch < SWEEP_BATCHES; ++batch) {
        if (mpi_job.rank == 0) {
            sweep_start_counting();
        }
        for (i = 0; i < sweep.iterations; ++i) {
            step(window, i);
        }
        if (mpi_job.rank == 0) {
            sweep_end_counting(name, batch, sweep.iterations * window);
        }
    }
}

static void sweep_count_messages(const sweep_op_t *op)
{
    MPI_JOB_CHECK(mpi_job.size == 2, "%d ranks instead of 2", mpi_job.size);
    if (op->messages == 1) {
        sweep_count_steps("pingpong", sweep_ping_and_pong, 1);
    } else {
        sweep_count_steps("rate_send", sweep_count_send, op->messages);
        sweep_count_steps("rate_recv", sweep_count_recv, op->messages);
    }
}

/* Of a message, in windows that one message answers */
static double sweep_time_windows(int iterations, int window)
{
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    int i, k;

    for (i = 0; i < iterations; ++i) {
        if (mpi_job.rank == 0) {
            sweep_isend_window(window);
            mpi_job_wait_all(window, sweep.requests);
            sweep_recv_answer();
            for (k = 0; k < window; ++k) {
                mpi_job_sent(sweep.size);
            }
        } else {
            sweep_irecv_window(window);
            mpi_job_wait_all(window, sweep.requests);
            sweep_send_answer();
        }
        mpi_job_timer_tick(&timer);
    }
    return timer.best / window;
}

static void sweep_check_messages(int window)
{
    if (mpi_job.rank == 0) {
        sweep_fill_window(window, 0);
        sweep_isend_window(window);
        mpi_job_wait_all(window, sweep.requests);
    } else {
        sweep_irecv_window(window);
        mpi_job_wait_all(window, sweep.requests);
        sweep_check_window(window, 0);
    }
}

static void sweep_time_messages(const sweep_op_t *op)
{
    double seconds;

    MPI_JOB_CHECK(mpi_job.size == 2, "%d ranks instead of 2", mpi_job.size);
    sweep_check_messages(op->messages);
    seconds = (op->messages == 1) ?
              sweep_time_pingpong(sweep.iterations) :
              sweep_time_windows((sweep.iterations / op->messages) + 1,
                                 op->messages);
    sweep_check_messages(op->messages);
    if (mpi_job.rank == 0) {
        mpi_job_metric(op->name, sweep.size, seconds * 1e6, "us");
    }
}


/*
 * Collectives
 */

static job_buffer_t sweep_block(const job_buffer_t *buffer, int rank)
{
    return (job_buffer_t){.data   = buffer->data + (rank * sweep.size),
                          .length = sweep.size};
}

static void sweep_check_block(int block, int source, int target)
{
    uint64_t seed  = job_pattern_seed(source, target, sweep.number);
    uint8_t *data  = sweep_block(&sweep.out, block).data;
    size_t offset  = job_pattern_mismatch(data, sweep.size, seed);

    MPI_JOB_CHECK(offset == sweep.size, "block of rank %d: byte %zu of %zu is "
                  "wrong", source, offset, sweep.size);
}

static int sweep_barrier_call(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

static void sweep_barrier_fill(void)
{
}

/* Whether one can leave it before the last has come is for time to tell */
static void sweep_barrier_check(void)
{
}

/* Each rank in turn */
static int sweep_bcast_root(void)
{
    return sweep.number % mpi_job.size;
}

static int sweep_bcast_call(void)
{
    return MPI_Bcast(sweep.out.data, sweep.size, MPI_BYTE, sweep_bcast_root(),
                     MPI_COMM_WORLD);
}

static void sweep_bcast_fill(void)
{
    int root = sweep_bcast_root();

    memset(sweep.out.data, 0, sweep.size);
    if (mpi_job.rank == root) {
        job_pattern_fill(sweep.out.data, sweep.size,
                         job_pattern_seed(root, 0, sweep.number));
    }
}

static void sweep_bcast_check(void)
{
    sweep_check_block(0, sweep_bcast_root(), 0);
}

static int sweep_allreduce_call(void)
{
    return MPI_Allreduce(sweep.in.data, sweep.out.data,
                         sweep.size / sizeof(uint32_t), MPI_UINT32_T, MPI_SUM,
                         MPI_COMM_WORLD);
}

static uint32_t sweep_allreduce_part(int rank, size_t i)
{
    return job_pattern_word(job_pattern_seed(rank, 0, sweep.number), i);
}

static void sweep_allreduce_fill(void)
{
    uint32_t *in = (uint32_t*)sweep.in.data;
    size_t i;

    for (i = 0; i < (sweep.size / sizeof(*in)); ++i) {
        in[i] = sweep_allreduce_part(mpi_job.rank, i);
    }
    memset(sweep.out.data, 0, sweep.size);
}

static void sweep_allreduce_check(void)
{
    const uint32_t *out = (const uint32_t*)sweep.out.data;
    uint32_t sum;
    size_t i;
    int rank;

    for (i = 0; i < (sweep.size / sizeof(*out)); ++i) {
        for (rank = 0, sum = 0; rank < mpi_job.size; ++rank) {
            sum += sweep_allreduce_part(rank, i);
        }
        MPI_JOB_CHECK(out[i] == sum, "sum %zu is %u instead of %u", i, out[i],
                      sum);
    }
}

static int sweep_alltoall_call(void)
{
    return MPI_Alltoall(sweep.in.data, sweep.size, MPI_BYTE, sweep.out.data,
                        sweep.size, MPI_BYTE, MPI_COMM_WORLD);
}

static void sweep_alltoall_fill(void)
{
    int rank;

    for (rank = 0; rank < mpi_job.size; ++rank) {
        job_pattern_fill(sweep_block(&sweep.in, rank).data, sweep.size,
                         job_pattern_seed(mpi_job.rank, rank, sweep.number));
    }
    memset(sweep.out.data, 0, sweep.size * mpi_job.size);
}

static void sweep_alltoall_check(void)
{
    int rank;

    for (rank = 0; rank < mpi_job.size; ++rank) {
        sweep_check_block(rank, rank, mpi_job.rank);
    }
}

static int sweep_allgather_call(void)
{
    return MPI_Allgather(sweep.in.data, sweep.size, MPI_BYTE, sweep.out.data,
                         sweep.size, MPI_BYTE, MPI_COMM_WORLD);
}

static void sweep_allgather_fill(void)
{
    job_pattern_fill(sweep.in.data, sweep.size,
                     job_pattern_seed(mpi_job.rank, 0, sweep.number));
    memset(sweep.out.data, 0, sweep.size * mpi_job.size);
}

static void sweep_allgather_check(void)
{
    int rank;

    for (rank = 0; rank < mpi_job.size; ++rank) {
        sweep_check_block(rank, rank, 0);
    }
}

/* What must have left the ranks for a collective: with a broadcast, that is
 * what the others receive */
static void sweep_collective_sent(const sweep_op_t *op)
{
    if ((op->call != sweep_bcast_call) ||
        (mpi_job.rank != sweep_bcast_root())) {
        mpi_job_sent(sweep.size);
    }
}

/* A collective with all that belongs to it; rank 0 comes last */
static void sweep_step_collective(const sweep_op_t *op)
{
    op->fill();
    sweep_meet();
    if (mpi_job.rank == 0) {
        sweep_let_others_wait();
        MPI_JOB_CALL(measure_collective(op));
    } else {
        MPI_JOB_CALL(op->call());
    }
    op->check();
    sweep_collective_sent(op);
    sweep_done();
}

static void sweep_count_collective(const sweep_op_t *op)
{
    int batch, i;

    for (i = 0; i < SWEEP_WARMUP; ++i) {
        op->fill();
        MPI_JOB_CALL(op->call());
        op->check();
        ++sweep.number;
    }
    for (batch = 0; batch < SWEEP_BATCHES; ++batch) {
        sweep_meet();
        if (mpi_job.rank == 0) {
            sweep_start_counting();
        }
        for (i = 0; i < sweep.iterations; ++i) {
            sweep_step_collective(op);
        }
        if (mpi_job.rank == 0) {
            sweep_end_counting(op->name, batch, sweep.iterations);
        }
    }
}

static void sweep_time_collective(const sweep_op_t *op)
{
    mpi_job_timer_t timer;
    int i;

    for (i = 0; i < SWEEP_WARMUP; ++i) {
        op->fill();
        MPI_JOB_CALL(op->call());
        op->check();
        ++sweep.number;
    }

    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    timer = mpi_job_timer_start(sweep.iterations);
    for (i = 0; i < sweep.iterations; ++i) {
        MPI_JOB_CALL(op->call());
        sweep_collective_sent(op);
        mpi_job_timer_tick(&timer);
    }
    if (mpi_job.rank == 0) {
        mpi_job_metric(op->name, sweep.size, timer.best * 1e6, "us");
    }
}

static const sweep_op_t sweep_ops[] = {
    {.name     = "pingpong",
     .count    = sweep_count_messages,
     .time     = sweep_time_messages,
     .messages = 1},
    {.name     = "rate",
     .count    = sweep_count_messages,
     .time     = sweep_time_messages,
     .messages = SWEEP_WINDOW},
#define SWEEP_COLLECTIVE(_name) \
    {.name  = #_name, \
     .count = sweep_count_collective, \
     .time  = sweep_time_collective, \
     .call  = sweep_##_name##_call, \
     .fill  = sweep_##_name##_fill, \
     .check = sweep_##_name##_check}
    SWEEP_COLLECTIVE(barrier),
    SWEEP_COLLECTIVE(bcast),
    SWEEP_COLLECTIVE(allreduce),
    SWEEP_COLLECTIVE(alltoall),
    SWEEP_COLLECTIVE(allgather)
};

#define SWEEP_NUM_OPS  (sizeof(sweep_ops) / sizeof(sweep_ops[0]))


static void sweep_run(const char *word, bool is_count)
{
    const sweep_op_t *op = NULL;
    const char *colon    = strchr(word, ':');
    size_t length        = (colon == NULL) ? 0 : colon - word;
    size_t total, known;
    int i;

    for (known = 0; known < SWEEP_NUM_OPS; ++known) {
        if ((length == strlen(sweep_ops[known].name)) &&
            !strncmp(word, sweep_ops[known].name, length)) {
            op = &sweep_ops[known];
        }
    }
    MPI_JOB_CHECK(op != NULL, "'%s' is no operation with a size", word);

    mpi_job_part(op->name);
    sweep.size = strtoul(colon + 1, NULL, 10);
    total      = sweep.size * mpi_job.size;
    sweep.in   = job_buffer_alloc(total);
    sweep.out  = job_buffer_alloc(total + 1);
    for (i = 0; i < op->messages; ++i) {
        sweep.window[i] = job_buffer_alloc(sweep.size);
    }

    if (is_count) {
        op->count(op);
    } else {
        op->time(op);
    }

    for (i = 0; i < op->messages; ++i) {
        job_buffer_free(&sweep.window[i]);
    }
    job_buffer_free(&sweep.in);
    job_buffer_free(&sweep.out);
}

int main(int argc, char **argv)
{
    int none = 1;
    bool is_count;
    int i;

    mpi_job_init(&none, &argv, "mpi_sweep", MPI_THREAD_SINGLE, 2);
    MPI_JOB_CHECK((argc > 3) && (!strcmp(argv[1], "count") ||
                                 !strcmp(argv[1], "time")) &&
                  (atoi(argv[2]) > 0),
                  "usage: mpi_sweep time|count ITERATIONS OPERATION:BYTES...");
    is_count         = !strcmp(argv[1], "count");
    sweep.iterations = atoi(argv[2]);
    sweep_share();
    for (i = 3; i < argc; ++i) {
        sweep_run(argv[i], is_count);
    }
    return mpi_job_finish();
}
