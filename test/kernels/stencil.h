/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_STENCIL_H
#define SEP_TEST_STENCIL_H

#include "app.h"

/*
 * 5-point stencil on a grid that is periodic both ways. Processes share its
 * rows, in one dimension; the threads of a process share the columns of these.
 * So each thread sends its part of the first and of the last row in each step,
 * no matter how many of the threads are in a process, and gets as much: to and
 * from the thread of the same number in the processes above and below. What is
 * to its left and right is in the memory of the process.
 *
 * One-sided: what is put is followed by a number behind a fence, for which the
 * other thread waits. There are two places for both, for a thread can be a step
 * ahead of its neighbours, and no more.
 *
 * Points are integers below STENCIL_MODULUS, so results are exact.
 */

#define STENCIL_MODULUS  8191.0

/** What is above a thread's part, and what is below. */
enum {
    STENCIL_ABOVE,
    STENCIL_BELOW
};

typedef struct stencil {
    int      rows;     /**< Of a process */
    int      cols;     /**< Of a thread */
    double   *grid[2]; /**< Of this process, before and after a step */
    uint64_t (*sent)[2][2]; /**< Numbers that are put, by thread */
} stencil_t;

static stencil_t stencil;


static double stencil_initial(int row, int col)
{
    return (row * 7 + col * 13) % 1021;
}

static double stencil_point(double above, double below, double left,
                            double right, double here)
{
    double sum = above + below + left + right + here;

    return sum - (STENCIL_MODULUS * floor(sum / STENCIL_MODULUS));
}

/**
 * Some points of a row of the next step.
 *
 * @param [in]  above, below  What is above and below the first of them.
 * @param [in]  row           The row they are in, all @a width of it.
 */
static void stencil_compute(double *next, const double *above,
                            const double *below, const double *row, int width,
                            int first, int count)
{
    int i, c;

    for (i = 0; i < count; ++i) {
        c       = first + i;
        next[c] = stencil_point(above[i], below[i],
                                row[(c + width - 1) % width],
                                row[(c + 1) % width], row[c]);
    }
}

/*
 * Memory that others reach: for each thread, a part of a row from above and one
 * from below, twice; and as many numbers.
 */

static size_t stencil_row_len(void)
{
    return stencil.cols * sizeof(double);
}

static size_t stencil_halo_offset(int thread, int side, int parity)
{
    return ((((size_t)thread * 2) + side) * 2 + parity) * stencil_row_len();
}

static size_t stencil_flag_offset(int thread, int side, int parity)
{
    return stencil_halo_offset(app.num_threads, 0, 0) +
           ((((size_t)thread * 2) + side) * 2 + parity) * sizeof(uint64_t);
}

static double *stencil_halo(int thread, int side, int parity)
{
    return (double*)(app.memory + stencil_halo_offset(thread, side, parity));
}

static size_t stencil_prepare(void)
{
    app.rows  = (app.rows > 0) ? app.rows : 8 * app.num_ranks;
    app.cols  = (app.cols > 0) ? app.cols : 8 * app.num_threads;
    app.steps = (app.steps > 0) ? app.steps : app.quick ? 5 : 20;
    if (app.rows % app.num_ranks) {
        app_fail("--rows %d can't be dealt evenly to %d processes", app.rows,
                 app.num_ranks);
    }
    if (app.cols % app.num_threads) {
        app_fail("--cols %d can't be dealt evenly to %d threads", app.cols,
                 app.num_threads);
    }
    if (app.num_ranks < 2) {
        app_fail("stencil needs at least 2 processes, started with %d",
                 app.num_ranks);
    }
    stencil.rows    = app.rows / app.num_ranks;
    stencil.cols    = app.cols / app.num_threads;
    stencil.grid[0] = app_alloc((size_t)stencil.rows * app.cols,
                                sizeof(double));
    stencil.grid[1] = app_alloc((size_t)stencil.rows * app.cols,
                                sizeof(double));
    stencil.sent    = app_alloc(app.num_threads, sizeof(*stencil.sent));
    return stencil_flag_offset(app.num_threads, 0, 0);
}

static void stencil_setup(void)
{
    int r, c;

    memset(app.memory, 0xff, stencil_flag_offset(0, 0, 0));
    memset(app.memory + stencil_flag_offset(0, 0, 0), 0,
           stencil_flag_offset(app.num_threads, 0, 0) -
           stencil_flag_offset(0, 0, 0));
    for (r = 0; r < stencil.rows; ++r) {
        for (c = 0; c < app.cols; ++c) {
            stencil.grid[0][(r * app.cols) + c] =
                    stencil_initial((app.rank * stencil.rows) + r, c);
        }
    }
}

/** Exchange halos. What goes to the process above is below it. */
static void stencil_halos_one_sided(int thread, int step, double *first,
                                    double *last)
{
    int parity        = step % 2;
    uint64_t *sent    = stencil.sent[thread][parity];
    const int to[2]   = {
        (app.rank + app.num_ranks - 1) % app.num_ranks,
        (app.rank + 1) % app.num_ranks
    };
    const double *rows[2] = {first, last};
    uint64_t *flag;
    int side;

    for (side = STENCIL_ABOVE; side <= STENCIL_BELOW; ++side) {
        app_put(thread, rows[side], to[side],
                stencil_halo_offset(thread, !side, parity), stencil_row_len());
    }
    app.ops->fence(thread);
    for (side = STENCIL_ABOVE; side <= STENCIL_BELOW; ++side) {
        sent[side] = step + 1;
        app_put(thread, &sent[side], to[side],
                stencil_flag_offset(thread, !side, parity), sizeof(uint64_t));
    }
    app.ops->flush(thread);

    for (side = STENCIL_ABOVE; side <= STENCIL_BELOW; ++side) {
        flag = (uint64_t*)(app.memory +
                           stencil_flag_offset(thread, side, parity));
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != (uint64_t)step + 1) {
            app_wait(thread);
        }
    }
}

static void stencil_halos_two_sided(int thread, int step, double *first,
                                    double *last)
{
    int above           = (app.rank + app.num_ranks - 1) % app.num_ranks;
    int below           = (app.rank + 1) % app.num_ranks;
    size_t length       = stencil_row_len();
    int parity          = step % 2;
    app_message_t out[] = {{above, STENCIL_BELOW, first, length},
                           {below, STENCIL_ABOVE, last, length}};
    app_message_t in[]  = {
        {above, STENCIL_ABOVE, stencil_halo(thread, STENCIL_ABOVE, parity),
         length},
        {below, STENCIL_BELOW, stencil_halo(thread, STENCIL_BELOW, parity),
         length}
    };

    app_exchange(thread, out, 2, in, 2);
}

static void stencil_run(int thread)
{
    int col = thread * stencil.cols;
    double *now, *next, *above, *below;
    int step, r;

    for (step = 0; step < app.steps; ++step) {
        now  = stencil.grid[step % 2];
        next = stencil.grid[!(step % 2)];
        if (app.two_sided) {
            stencil_halos_two_sided(thread, step, &now[col],
                                    &now[((stencil.rows - 1) * app.cols) +
                                         col]);
        } else {
            stencil_halos_one_sided(thread, step, &now[col],
                                    &now[((stencil.rows - 1) * app.cols) +
                                         col]);
        }

        for (r = 0; r < stencil.rows; ++r) {
            above = (r > 0) ? &now[((r - 1) * app.cols) + col] :
                              stencil_halo(thread, STENCIL_ABOVE, step % 2);
            below = (r + 1 < stencil.rows) ? &now[((r + 1) * app.cols) + col] :
                    stencil_halo(thread, STENCIL_BELOW, step % 2);
            stencil_compute(&next[r * app.cols], above, below,
                            &now[r * app.cols], app.cols, col, stencil.cols);
        }
        /* Neighbours in this process read what this thread has computed */
        app_meet();
    }
}

/** The whole grid, without anybody's help. */
static void stencil_verify(void)
{
    size_t points     = (size_t)app.rows * app.cols;
    double *now       = app_alloc(points, sizeof(*now));
    double *next      = app_alloc(points, sizeof(*next));
    const double *own = stencil.grid[app.steps % 2];
    double *swap, found, expected;
    int r, c, step;

    for (r = 0; r < app.rows; ++r) {
        for (c = 0; c < app.cols; ++c) {
            now[(r * app.cols) + c] = stencil_initial(r, c);
        }
    }
    for (step = 0; step < app.steps; ++step) {
        for (r = 0; r < app.rows; ++r) {
            stencil_compute(&next[r * app.cols],
                            &now[(r + app.rows - 1) % app.rows * app.cols],
                            &now[(r + 1) % app.rows * app.cols],
                            &now[r * app.cols], app.cols, 0, app.cols);
        }
        swap = now;
        now  = next;
        next = swap;
    }

    for (r = 0; r < stencil.rows; ++r) {
        for (c = 0; c < app.cols; ++c) {
            found    = own[(r * app.cols) + c];
            expected = now[(((app.rank * stencil.rows) + r) * app.cols) + c];
            APP_CHECK(found == expected, "point %d, %d is %.17g after %d "
                      "steps, a serial run has %.17g",
                      (app.rank * stencil.rows) + r, c, found, app.steps,
                      expected);
        }
    }
    free(next);
    free(now);
}

static void stencil_cleanup(void)
{
    free(stencil.sent);
    free(stencil.grid[1]);
    free(stencil.grid[0]);
}

static const app_kernel_t stencil_kernel = {
    .name    = "stencil",
    .prepare = stencil_prepare,
    .setup   = stencil_setup,
    .run     = stencil_run,
    .verify  = stencil_verify,
    .cleanup = stencil_cleanup
};

#endif
