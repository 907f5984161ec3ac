/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_DGEMM_H
#define SEP_TEST_DGEMM_H

#include "app.h"

/*
 * C = A B on global arrays: matrices in tiles, which are dealt to the
 * processes. A thread has tiles of C to compute. For each, it gets a row of
 * tiles of A and a column of tiles of B, two tiles at a time, and puts the
 * result to its owner, which is always another process.
 *
 * With messages, the thread of the same number in the owner's process sends
 * what is needed: who needs what and when is known to all.
 *
 * All elements are small integers, so results are exact.
 */

enum {
    DGEMM_A,
    DGEMM_B,
    DGEMM_C,
    DGEMM_NUM_MATRICES
};

typedef struct dgemm {
    int tiles;      /**< In a row or column of a matrix */
    int per_rank;   /**< Tiles of each matrix that a process owns */
    int per_thread; /**< Tiles of C that a thread computes */
} dgemm_t;

static dgemm_t dgemm;


static double dgemm_element(int matrix, int row, int col)
{
    return (matrix == DGEMM_A) ? ((row * 7) + (col * 3)) % 11 - 5 :
                                 ((row * 5) + (col * 13)) % 17 - 8;
}

/** c += a b, all of @a n rows and columns and @a stride apart: of tiles, and of
 *  whole matrices. */
static void dgemm_multiply(double *c, const double *a, const double *b, int n,
                           int stride)
{
    int i, j, k;

    for (i = 0; i < n; ++i) {
        for (k = 0; k < n; ++k) {
            for (j = 0; j < n; ++j) {
                c[(i * stride) + j] += a[(i * stride) + k] *
                                       b[(k * stride) + j];
            }
        }
    }
}

static size_t dgemm_tile_len(void)
{
    return (size_t)app.tile * app.tile * sizeof(double);
}

static int dgemm_owner(int tile)
{
    return tile % app.num_ranks;
}

/** Where its owner has a tile, from the beginning of app.memory. */
static size_t dgemm_offset(int matrix, int tile)
{
    return (((size_t)matrix * dgemm.per_rank) + (tile / app.num_ranks)) *
           dgemm_tile_len();
}

static double *dgemm_own_tile(int matrix, int tile)
{
    return (double*)(app.memory + dgemm_offset(matrix, tile));
}

/** The tile of C that a thread computes as its n-th: one that belongs to the
 *  process before. */
static int dgemm_task(int rank, int thread, int n)
{
    int before = (rank + app.num_ranks - 1) % app.num_ranks;

    return (((n * app.num_threads) + thread) * app.num_ranks) + before;
}

/** The tiles of A and B in a step of computing a tile of C. Each begins
 *  somewhere else, so that not all get the same. */
static void dgemm_operands(int task, int step, int *a_p, int *b_p)
{
    int row = task / dgemm.tiles;
    int col = task % dgemm.tiles;
    int k   = (row + col + step) % dgemm.tiles;

    *a_p = (row * dgemm.tiles) + k;
    *b_p = (k * dgemm.tiles) + col;
}

static size_t dgemm_prepare(void)
{
    int workers = app.num_ranks * app.num_threads;

    app.tile = (app.tile > 0) ? app.tile : 8;
    if (app.size == 0) {
        for (dgemm.tiles = 1; (dgemm.tiles * dgemm.tiles) % workers;
             ++dgemm.tiles) {
        }
        app.size = dgemm.tiles * app.tile;
    }

    if (app.size % app.tile) {
        app_fail("--size %d is no multiple of --tile %d", app.size, app.tile);
    }
    dgemm.tiles = app.size / app.tile;
    if ((dgemm.tiles * dgemm.tiles) % workers) {
        app_fail("%d tiles of C (--size %d, --tile %d) can't be dealt evenly "
                 "to %d processes of %d threads", dgemm.tiles * dgemm.tiles,
                 app.size, app.tile, app.num_ranks, app.num_threads);
    }
    if (app.num_ranks < 2) {
        app_fail("dgemm needs at least 2 processes, started with %d",
                 app.num_ranks);
    }
    dgemm.per_rank   = dgemm.tiles * dgemm.tiles / app.num_ranks;
    dgemm.per_thread = dgemm.per_rank / app.num_threads;
    return DGEMM_NUM_MATRICES * dgemm.per_rank * dgemm_tile_len();
}

static void dgemm_fill_tile(double *data, int stride, int matrix, int row,
                            int col, int n)
{
    int i, j;

    for (i = 0; i < n; ++i) {
        for (j = 0; j < n; ++j) {
            data[(i * stride) + j] = dgemm_element(matrix, row + i, col + j);
        }
    }
}

static void dgemm_setup(void)
{
    int tile, row, col, i;
    double *c;

    for (tile = app.rank; tile < dgemm.tiles * dgemm.tiles;
         tile += app.num_ranks) {
        row = tile / dgemm.tiles * app.tile;
        col = tile % dgemm.tiles * app.tile;
        dgemm_fill_tile(dgemm_own_tile(DGEMM_A, tile), app.tile, DGEMM_A, row,
                        col, app.tile);
        dgemm_fill_tile(dgemm_own_tile(DGEMM_B, tile), app.tile, DGEMM_B, row,
                        col, app.tile);
        c = dgemm_own_tile(DGEMM_C, tile);
        for (i = 0; i < app.tile * app.tile; ++i) {
            c[i] = NAN;  /* Equal to nothing */
        }
    }
}

/** Add a message to a list, or copy if both ends are here. */
static void dgemm_add(app_message_t *list, int *count, int rank, int tag,
                      void *data)
{
    list[(*count)++] = (app_message_t){rank, tag, data, dgemm_tile_len()};
}

/** Send what threads of this number need, receive what this one needs. */
static void dgemm_fetch_two_sided(int thread, int n, int step, double **in,
                                  app_message_t *messages)
{
    app_message_t *out      = messages;
    app_message_t *incoming = messages + (2 * app.num_ranks);
    int num_out = 0, num_in = 0, rank, which, tiles[2];

    for (rank = 0; rank < app.num_ranks; ++rank) {
        dgemm_operands(dgemm_task(rank, thread, n), step, &tiles[DGEMM_A],
                       &tiles[DGEMM_B]);
        for (which = DGEMM_A; which <= DGEMM_B; ++which) {
            if (rank != app.rank) {
                if (dgemm_owner(tiles[which]) == app.rank) {
                    dgemm_add(out, &num_out, rank, which,
                              dgemm_own_tile(which, tiles[which]));
                }
            } else if (dgemm_owner(tiles[which]) == app.rank) {
                memcpy(in[which], dgemm_own_tile(which, tiles[which]),
                       dgemm_tile_len());
            } else {
                dgemm_add(incoming, &num_in, dgemm_owner(tiles[which]), which,
                          in[which]);
            }
        }
    }
    app_exchange(thread, out, num_out, incoming, num_in);
}

static void dgemm_fetch_one_sided(int thread, int n, int step, double **in)
{
    int which, tiles[2];

    dgemm_operands(dgemm_task(app.rank, thread, n), step, &tiles[DGEMM_A],
                   &tiles[DGEMM_B]);
    for (which = DGEMM_A; which <= DGEMM_B; ++which) {
        app_get(thread, in[which], dgemm_owner(tiles[which]),
                dgemm_offset(which, tiles[which]), dgemm_tile_len());
    }
    app.ops->flush(thread);
}

/** Give a tile of C to its owner, the process before; with messages, take one
 *  of the process behind. */
static void dgemm_store(int thread, int n, double *c)
{
    int task = dgemm_task(app.rank, thread, n);
    int next = (app.rank + 1) % app.num_ranks;
    app_message_t out = {dgemm_owner(task), DGEMM_C, c, dgemm_tile_len()};
    app_message_t in  = {next, DGEMM_C,
                         dgemm_own_tile(DGEMM_C, dgemm_task(next, thread, n)),
                         dgemm_tile_len()};

    if (app.two_sided) {
        app_exchange(thread, &out, 1, &in, 1);
    } else {
        app_put(thread, c, out.rank, dgemm_offset(DGEMM_C, task),
                dgemm_tile_len());
        app.ops->flush(thread);
    }
}

static void dgemm_run(int thread)
{
    double *memory          = app_alloc(3, dgemm_tile_len());
    app_message_t *messages = app_alloc(2 * app.num_ranks + 2,
                                        sizeof(*messages));
    double *in[2]           = {memory, memory + (app.tile * app.tile)};
    double *c               = memory + (2 * app.tile * app.tile);
    int n, step;

    for (n = 0; n < dgemm.per_thread; ++n) {
        memset(c, 0, dgemm_tile_len());
        for (step = 0; step < dgemm.tiles; ++step) {
            if (app.two_sided) {
                dgemm_fetch_two_sided(thread, n, step, in, messages);
            } else {
                dgemm_fetch_one_sided(thread, n, step, in);
            }
            dgemm_multiply(c, in[DGEMM_A], in[DGEMM_B], app.tile, app.tile);
        }
        dgemm_store(thread, n, c);
    }
    free(messages);
    free(memory);
}

static void dgemm_verify(void)
{
    double *a = app_alloc((size_t)app.size * app.size, sizeof(*a));
    double *b = app_alloc((size_t)app.size * app.size, sizeof(*b));
    double *c = app_alloc((size_t)app.size * app.size, sizeof(*c));
    double found, expected;
    int i, j, tile;

    dgemm_fill_tile(a, app.size, DGEMM_A, 0, 0, app.size);
    dgemm_fill_tile(b, app.size, DGEMM_B, 0, 0, app.size);
    dgemm_multiply(c, a, b, app.size, app.size);
    for (i = 0; i < app.size; ++i) {
        for (j = 0; j < app.size; ++j) {
            tile = (i / app.tile * dgemm.tiles) + (j / app.tile);
            if (dgemm_owner(tile) != app.rank) {
                continue;
            }
            found    = dgemm_own_tile(DGEMM_C, tile)
                       [(i % app.tile * app.tile) + (j % app.tile)];
            expected = c[(i * app.size) + j];
            APP_CHECK(found == expected, "element %d, %d of C is %.17g, a "
                      "serial run has %.17g", i, j, found, expected);
        }
    }
    free(c);
    free(b);
    free(a);
}

static void dgemm_cleanup(void)
{
}

static const app_kernel_t dgemm_kernel = {
    .name    = "dgemm",
    .prepare = dgemm_prepare,
    .setup   = dgemm_setup,
    .run     = dgemm_run,
    .verify  = dgemm_verify,
    .cleanup = dgemm_cleanup
};

#endif
