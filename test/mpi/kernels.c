/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Communication of well-known kernels, with short messages: a halo exchange, an
 * all-to-all, conjugate gradients and a sort of integers. The last two exchange
 * as CG and IS of the NAS parallel benchmarks do (D. Bailey et al., 1991), the
 * code is another. Results are compared with what they have to be.
 *
 *   kernels [halo|alltoall|cg|is] [--quick]
 */

#include "mpi_job.h"

#include <math.h>

#define KERNELS_ROWS   8    /* of a rank's part of the grid */
#define KERNELS_COLS   32
#define KERNELS_BLOCK  64   /* unknowns of a rank */
#define KERNELS_FAR    17   /* distance of the far neighbours in the matrix */
#define KERNELS_KEYS   512  /* of a rank */
#define KERNELS_BITS   16   /* of a key */
#define KERNELS_TAG    7


static void *kernels_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    MPI_JOB_CHECK(memory != NULL, "out of memory: %zu of %zu bytes", count,
                  size);
    return memory;
}

static void kernels_metric(const char *name, mpi_job_timer_t *timer)
{
    if (mpi_job.rank == 0) {
        mpi_job_metric(name, 0, timer->best * 1e6, "us");
    }
}

/** Exchange with one partner. */
static void kernels_swap(const void *send, void *recv, int count,
                         MPI_Datatype type, size_t size, int partner)
{
    MPI_JOB_CALL(MPI_Sendrecv(send, count, type, partner, KERNELS_TAG, recv,
                              count, type, partner, KERNELS_TAG,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    mpi_job_sent(count * size);
}

/*
 * Halo exchange: a grid, periodic both ways, each point the average of its four
 * neighbours. Rows are distributed.
 */

typedef double kernels_row_t[KERNELS_COLS];


/** One row of the next step. */
static void kernels_average(kernels_row_t next, const kernels_row_t above,
                            const kernels_row_t row, const kernels_row_t below)
{
    int c;

    for (c = 0; c < KERNELS_COLS; ++c) {
        next[c] = (above[c] + below[c] + row[(c + 1) % KERNELS_COLS] +
                   row[(c + KERNELS_COLS - 1) % KERNELS_COLS]) / 4;
    }
}

static double kernels_initial(int row, int col)
{
    return (row * 7 + col * 13) % 101;
}

/** The whole grid, without anybody's help; the result is in @a grid. */
static void kernels_halo_alone(kernels_row_t *grid, int rows, int steps)
{
    kernels_row_t *next = kernels_alloc(rows, sizeof(*next));
    int r, s;

    for (s = 0; s < steps; ++s) {
        for (r = 0; r < rows; ++r) {
            kernels_average(next[r], grid[(r + rows - 1) % rows], grid[r],
                            grid[(r + 1) % rows]);
        }
        memcpy(grid, next, rows * sizeof(*next));
    }
    free(next);
}

static void kernels_halo(int steps)
{
    int rows              = KERNELS_ROWS * mpi_job.size;
    int up                = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    int down              = (mpi_job.rank + 1) % mpi_job.size;
    kernels_row_t *whole  = kernels_alloc(rows, sizeof(*whole));
    kernels_row_t *mine   = kernels_alloc(KERNELS_ROWS + 2, sizeof(*mine));
    kernels_row_t *next   = kernels_alloc(KERNELS_ROWS + 2, sizeof(*next));
    mpi_job_timer_t timer = mpi_job_timer_start(steps);
    MPI_Request requests[4];
    int r, c, s;

    mpi_job_part("halo exchange");
    for (r = 0; r < rows; ++r) {
        for (c = 0; c < KERNELS_COLS; ++c) {
            whole[r][c] = kernels_initial(r, c);
        }
    }
    memcpy(mine[1], whole[mpi_job.rank * KERNELS_ROWS],
           KERNELS_ROWS * sizeof(*mine));

    for (s = 0; s < steps; ++s) {
        MPI_JOB_CALL(MPI_Irecv(mine[0], KERNELS_COLS, MPI_DOUBLE, up, 1,
                               MPI_COMM_WORLD, &requests[0]));
        MPI_JOB_CALL(MPI_Irecv(mine[KERNELS_ROWS + 1], KERNELS_COLS, MPI_DOUBLE,
                               down, 2, MPI_COMM_WORLD, &requests[1]));
        MPI_JOB_CALL(MPI_Isend(mine[KERNELS_ROWS], KERNELS_COLS, MPI_DOUBLE,
                               down, 1, MPI_COMM_WORLD, &requests[2]));
        MPI_JOB_CALL(MPI_Isend(mine[1], KERNELS_COLS, MPI_DOUBLE, up, 2,
                               MPI_COMM_WORLD, &requests[3]));
        mpi_job_sent(sizeof(*mine));
        mpi_job_sent(sizeof(*mine));
        mpi_job_wait_all(4, requests);
        for (r = 1; r <= KERNELS_ROWS; ++r) {
            kernels_average(next[r], mine[r - 1], mine[r], mine[r + 1]);
        }
        memcpy(mine, next, (KERNELS_ROWS + 2) * sizeof(*mine));
        mpi_job_timer_tick(&timer);
    }

    kernels_halo_alone(whole, rows, steps);
    for (r = 0; r < KERNELS_ROWS; ++r) {
        for (c = 0; c < KERNELS_COLS; ++c) {
            MPI_JOB_CHECK(mine[r + 1][c] ==
                          whole[mpi_job.rank * KERNELS_ROWS + r][c],
                          "point %d, %d is %g after %d steps, not %g", r, c,
                          mine[r + 1][c], steps,
                          whole[mpi_job.rank * KERNELS_ROWS + r][c]);
        }
    }

    kernels_metric("halo", &timer);
    free(next);
    free(mine);
    free(whole);
}

/*
 * All-to-all
 */

static void kernels_alltoall(int iterations)
{
    int size              = mpi_job.size;
    uint64_t *send        = kernels_alloc(size, sizeof(*send));
    uint64_t *recv        = kernels_alloc(size, sizeof(*recv));
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    int i, peer;

    mpi_job_part("all-to-all");
    for (i = 0; i < iterations; ++i) {
        for (peer = 0; peer < size; ++peer) {
            send[peer] = job_pattern_seed(mpi_job.rank, peer, i);
        }
        MPI_JOB_CALL(MPI_Alltoall(send, 1, MPI_UINT64_T, recv, 1, MPI_UINT64_T,
                                  MPI_COMM_WORLD));
        for (peer = 0; peer < size; ++peer) {
            MPI_JOB_CHECK(recv[peer] == job_pattern_seed(peer, mpi_job.rank, i),
                          "word %d from rank %d is wrong", i, peer);
            if (peer != mpi_job.rank) {
                mpi_job_sent(sizeof(*send));
            }
        }
        mpi_job_timer_tick(&timer);
    }

    kernels_metric("alltoall", &timer);
    free(recv);
    free(send);
}

/*
 * Conjugate gradients: each rank has the columns of its unknowns, and computes
 * a part of each element of the product. The parts are added in exchanges with
 * partners of all distances, by halves; what a rank has then belongs to the one
 * whose bits are in reverse order, with which it is exchanged.
 */

/** @return A rank with its bits in reverse order. */
static int kernels_reverse(int rank)
{
    int result = 0, bit;

    for (bit = 1; bit < mpi_job.size; bit <<= 1) {
        result = (result << 1) | !!(rank & bit);
    }
    return result;
}

static double kernels_dot(const double *a, const double *b)
{
    double sum = 0, total;
    int i;

    for (i = 0; i < KERNELS_BLOCK; ++i) {
        sum += a[i] * b[i];
    }
    MPI_JOB_CALL(MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM,
                               MPI_COMM_WORLD));
    return total;
}

/** Product of the matrix, in which each unknown has two neighbours on each
 *  side, and a distributed vector. */
static void kernels_multiply(const double *x, double *y)
{
    static const int offsets[] = {-KERNELS_FAR, -1, 0, 1, KERNELS_FAR};
    int length                 = KERNELS_BLOCK * mpi_job.size;
    double *part               = kernels_alloc(length, sizeof(*part));
    double *other              = kernels_alloc(length, sizeof(*other));
    int first = 0, i, k, row, partner, bit, keep;

    for (i = 0; i < KERNELS_BLOCK; ++i) {
        for (k = 0; k < 5; ++k) {
            row = mpi_job.rank * KERNELS_BLOCK + i + offsets[k];
            if ((row >= 0) && (row < length)) {
                part[row] += (offsets[k] == 0) ? 5 * x[i] : -x[i];
            }
        }
    }

    for (bit = 1; bit < mpi_job.size; bit <<= 1) {
        length /= 2;
        partner = mpi_job.rank ^ bit;
        keep    = first + ((mpi_job.rank & bit) ? length : 0);
        kernels_swap(&part[(keep == first) ? first + length : first], other,
                     length, MPI_DOUBLE, sizeof(double), partner);
        first = keep;
        for (i = 0; i < length; ++i) {
            part[first + i] += other[i];
        }
    }

    partner = kernels_reverse(mpi_job.rank);
    if (partner == mpi_job.rank) {
        memcpy(y, &part[first], KERNELS_BLOCK * sizeof(*y));
    } else {
        kernels_swap(&part[first], y, KERNELS_BLOCK, MPI_DOUBLE, sizeof(double),
                     partner);
    }
    free(other);
    free(part);
}

static void kernels_cg(int iterations)
{
    double x[KERNELS_BLOCK], r[KERNELS_BLOCK], p[KERNELS_BLOCK],
           q[KERNELS_BLOCK];
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    double rho            = 0;
    double alpha, last;
    int i, k;

    mpi_job_part("conjugate gradients");
    MPI_JOB_CHECK((mpi_job.size & (mpi_job.size - 1)) == 0,
                  "the number of ranks is not a power of two: %d",
                  mpi_job.size);
    for (k = 0; k < iterations; ++k) {
        /* The solution is 1 everywhere */
        if ((k % 50) == 0) {
            for (i = 0; i < KERNELS_BLOCK; ++i) {
                x[i] = 1;
            }
            kernels_multiply(x, r);
            memcpy(p, r, sizeof(p));
            memset(x, 0, sizeof(x));
            rho = kernels_dot(r, r);
        }

        kernels_multiply(p, q);
        alpha = kernels_dot(p, q);
        alpha = (alpha > 0) ? rho / alpha : 0;
        for (i = 0; i < KERNELS_BLOCK; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        last = rho;
        rho  = kernels_dot(r, r);
        for (i = 0; i < KERNELS_BLOCK; ++i) {
            p[i] = r[i] + ((last > 0) ? rho / last : 0) * p[i];
        }

        if ((k % 50) == 49) {
            for (i = 0; i < KERNELS_BLOCK; ++i) {
                MPI_JOB_CHECK(fabs(x[i] - 1) < 1e-6, "unknown %d is %.9g", i,
                              x[i]);
            }
        }
        mpi_job_timer_tick(&timer);
    }
    kernels_metric("cg", &timer);
}

/*
 * Sort of integers by buckets: how many keys there are for whom, the keys, and
 * a sort of those that have come.
 */

static int kernels_compare(const void *a, const void *b)
{
    return *(const int*)a - *(const int*)b;
}

/** Check that keys are in order, in this rank and behind those of the ones
 *  before, and that none was lost. */
static void kernels_check_sorted(const int *keys, int count, int64_t sum)
{
    int64_t mine[2] = {count, 0}, all[2], expected;
    int last        = (count > 0) ? keys[count - 1] : -1;
    int largest     = -1, i;

    for (i = 0; i < count; ++i) {
        MPI_JOB_CHECK((i == 0) || (keys[i - 1] <= keys[i]),
                      "key %d is before a smaller one", i);
        mine[1] += keys[i];
    }

    MPI_JOB_CALL(MPI_Exscan(&last, &largest, 1, MPI_INT, MPI_MAX,
                            MPI_COMM_WORLD));
    MPI_JOB_CHECK((mpi_job.rank == 0) || (count == 0) || (largest <= keys[0]),
                  "a key of a rank before this one is %d, ours begin with %d",
                  largest, keys[0]);
    MPI_JOB_CALL(MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM,
                               MPI_COMM_WORLD));
    MPI_JOB_CALL(MPI_Allreduce(&sum, &expected, 1, MPI_INT64_T, MPI_SUM,
                               MPI_COMM_WORLD));
    MPI_JOB_CHECK((all[0] == (int64_t)KERNELS_KEYS * mpi_job.size) &&
                  (all[1] == expected), "keys were lost: %" PRId64 " are left",
                  all[0]);
}

static void kernels_sort(int iterations)
{
    int size              = mpi_job.size;
    int *keys             = kernels_alloc(KERNELS_KEYS, sizeof(*keys));
    int *sorted           = kernels_alloc(KERNELS_KEYS, sizeof(*sorted));
    int *counts           = kernels_alloc(4 * size, sizeof(*counts));
    int *starts           = counts + size;
    int *arriving         = counts + 2 * size, *places = counts + 3 * size;
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    uint64_t state        = 12345 + mpi_job.rank;
    int i, k, to, total, *recv, *next;
    int64_t sum;

    mpi_job_part("sort of integers");
    next = kernels_alloc(size, sizeof(*next));
    for (k = 0; k < iterations; ++k) {
        memset(counts, 0, size * sizeof(*counts));
        sum = 0;
        for (i = 0; i < KERNELS_KEYS; ++i) {
            state   = state * 6364136223846793005ull + 1442695040888963407ull;
            keys[i] = state >> (64 - KERNELS_BITS);
            sum    += keys[i];
            ++counts[((int64_t)keys[i] * size) >> KERNELS_BITS];
        }

        for (i = 0, total = 0; i < size; ++i) {
            starts[i] = next[i] = total;
            total              += counts[i];
        }
        for (i = 0; i < KERNELS_KEYS; ++i) {
            to                 = ((int64_t)keys[i] * size) >> KERNELS_BITS;
            sorted[next[to]++] = keys[i];
        }

        MPI_JOB_CALL(MPI_Alltoall(counts, 1, MPI_INT, arriving, 1, MPI_INT,
                                  MPI_COMM_WORLD));
        for (i = 0, total = 0; i < size; ++i) {
            places[i] = total;
            total    += arriving[i];
        }
        recv = kernels_alloc(total + 1, sizeof(*recv));
        MPI_JOB_CALL(MPI_Alltoallv(sorted, counts, starts, MPI_INT, recv,
                                   arriving, places, MPI_INT, MPI_COMM_WORLD));
        for (i = 0; i < size; ++i) {
            if (i != mpi_job.rank) {
                mpi_job_sent(sizeof(int));
                mpi_job_sent(counts[i] * sizeof(int));
            }
        }
        qsort(recv, total, sizeof(*recv), kernels_compare);
        if ((k % 20) == 0) {
            kernels_check_sorted(recv, total, sum);
        }
        free(recv);
        mpi_job_timer_tick(&timer);
    }

    kernels_metric("is", &timer);
    free(next);
    free(counts);
    free(sorted);
    free(keys);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void       (*run)(int iterations);
        int        iterations;
    } kernels[] = {
        {"halo", kernels_halo, 2000},
        {"alltoall", kernels_alltoall, 2000},
        {"cg", kernels_cg, 500},
        {"is", kernels_sort, 500}
    };
    const char *only = NULL;
    bool is_known    = false;
    int share;
    size_t i;

    if ((argc > 1) && (argv[1][0] != '-')) {
        only    = argv[1];
        argv[1] = argv[0];
        ++argv;
        --argc;
    }

    mpi_job_init(&argc, &argv, "kernels", MPI_THREAD_SINGLE, 2);
    /* Ranks that wait for a processor take long, and each iteration is like the
     * one before */
    share = (mpi_job.quick || (mpi_job.size > sysconf(_SC_NPROCESSORS_ONLN))) ?
            10 : 1;
    for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); ++i) {
        if ((only == NULL) || !strcmp(only, kernels[i].name)) {
            kernels[i].run(kernels[i].iterations / share);
            is_known = true;
        }
    }
    MPI_JOB_CHECK(is_known, "there is no kernel '%s'", only);
    return mpi_job_finish();
}
