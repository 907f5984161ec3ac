/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Collective operations with contents that tell every block of every rank
 * apart, and reductions whose results are known exactly.
 */

#include "mpi_job.h"

#include <limits.h>


/** Bytes per rank. The last ones leave the eager range. */
static const int coll_sizes[] = {1, 8, 77, 1024, 8191, 65536, 262144};

/** Elements per reduction: scalar, odd, above any short protocol. */
static const int coll_counts[] = {1, 3, 16, 1000, 30011};

#define COLL_NUM_SIZES   (sizeof(coll_sizes) / sizeof(coll_sizes[0]))
#define COLL_NUM_COUNTS  (sizeof(coll_counts) / sizeof(coll_counts[0]))


/** Blocks of a buffer: one per rank, of lengths of their own. */
typedef struct coll_blocks {
    int    *count;
    int    *offset;
    size_t total;
} coll_blocks_t;


/** Least traffic of an operation in which every rank sends @a bytes to
 *  @a peers other ranks, or has somebody do so. */
static void coll_sent(int peers, size_t bytes)
{
    int i;

    for (i = 0; i < peers; ++i) {
        mpi_job_sent(bytes);
    }
}

/** Blocks of @a size bytes, or, if @a uneven, between 0 and @a size with a gap
 *  of 3 bytes in front of each. */
static coll_blocks_t coll_blocks_create(int size, bool uneven, int salt)
{
    coll_blocks_t blocks;
    int i;

    blocks.count  = calloc(mpi_job.size, sizeof(int));
    blocks.offset = calloc(mpi_job.size, sizeof(int));
    blocks.total  = 0;
    for (i = 0; i < mpi_job.size; ++i) {
        blocks.total    += uneven ? 3 : 0;
        blocks.offset[i] = blocks.total;
        blocks.count[i]  = uneven ? (((i + salt) % 3) * size / 2) : size;
        blocks.total    += blocks.count[i];
    }

    return blocks;
}

static void coll_blocks_destroy(coll_blocks_t *blocks)
{
    free(blocks->count);
    free(blocks->offset);
}

static void coll_fill(const job_buffer_t *buffer, size_t offset, size_t length,
                      int source, int target, uint64_t sequence)
{
    job_pattern_fill(buffer->data + offset, length,
                     job_pattern_seed(source, target, sequence));
}

static void coll_check(const job_buffer_t *buffer, size_t offset, size_t length,
                       int source, int target, uint64_t sequence)
{
    uint64_t seed = job_pattern_seed(source, target, sequence);
    size_t bad    = job_pattern_mismatch(buffer->data + offset, length, seed);

    MPI_JOB_CHECK(bad == length,
                  "block of %zu bytes from rank %d for rank %d: byte %zu is "
                  "0x%02x, expected 0x%02x", length, source, target, bad,
                  buffer->data[offset + bad], job_pattern_byte(seed, bad));
    MPI_JOB_CHECK(job_buffer_check(buffer) == 0,
                  "byte at offset %td, outside of the buffer of %zu bytes, was "
                  "overwritten", job_buffer_check(buffer), buffer->length);
}

static void coll_bcast(void)
{
    job_buffer_t buffer;
    size_t s;
    int root;

    mpi_job_part("MPI_Bcast");
    for (s = 0; s < COLL_NUM_SIZES; s += mpi_job_step()) {
        for (root = 0; root < mpi_job.size; root += job_stride(mpi_job.size)) {
            buffer = job_buffer_alloc(coll_sizes[s]);
            if (mpi_job.rank == root) {
                coll_fill(&buffer, 0, coll_sizes[s], root, 0, s);
                coll_sent(mpi_job.size - 1, coll_sizes[s]);
            }
            MPI_JOB_CALL(MPI_Bcast(buffer.data, coll_sizes[s], MPI_BYTE, root,
                                   MPI_COMM_WORLD));
            coll_check(&buffer, 0, coll_sizes[s], root, 0, s);
            job_buffer_free(&buffer);
        }
    }
}

static void coll_gather_scatter(void)
{
    job_buffer_t all, one;
    coll_blocks_t blocks;
    int root, i, uneven;
    size_t s;

    mpi_job_part("MPI_Gather(v) and MPI_Scatter(v)");
    for (s = 0; s < COLL_NUM_SIZES; s += mpi_job_step()) {
        for (uneven = 0; uneven < 2; ++uneven) {
            root   = s % mpi_job.size;
            blocks = coll_blocks_create(coll_sizes[s], uneven, s);
            all    = job_buffer_alloc(blocks.total);
            one    = job_buffer_alloc(blocks.count[mpi_job.rank]);
            coll_fill(&one, 0, one.length, mpi_job.rank, root, s);
            if (uneven) {
                MPI_JOB_CALL(MPI_Gatherv(one.data, one.length, MPI_BYTE,
                                         all.data, blocks.count, blocks.offset,
                                         MPI_BYTE, root, MPI_COMM_WORLD));
            } else {
                MPI_JOB_CALL(MPI_Gather(one.data, one.length, MPI_BYTE,
                                        all.data, one.length, MPI_BYTE, root,
                                        MPI_COMM_WORLD));
            }

            if (mpi_job.rank == root) {
                for (i = 0; i < mpi_job.size; ++i) {
                    coll_check(&all, blocks.offset[i], blocks.count[i], i, root,
                               s);
                    coll_fill(&all, blocks.offset[i], blocks.count[i], root, i,
                              s + 50);
                }
            } else if (one.length > 0) {
                /* Once to the root and once from it */
                coll_sent(2, one.length);
            }

            job_buffer_clear(&one);
            if (uneven) {
                MPI_JOB_CALL(MPI_Scatterv(all.data, blocks.count, blocks.offset,
                                          MPI_BYTE, one.data, one.length,
                                          MPI_BYTE, root, MPI_COMM_WORLD));
            } else {
                MPI_JOB_CALL(MPI_Scatter(all.data, one.length, MPI_BYTE,
                                         one.data, one.length, MPI_BYTE, root,
                                         MPI_COMM_WORLD));
            }
            coll_check(&one, 0, one.length, root, mpi_job.rank, s + 50);
            job_buffer_free(&one);
            job_buffer_free(&all);
            coll_blocks_destroy(&blocks);
        }
    }
}

static void coll_allgather(void)
{
    job_buffer_t all, one;
    coll_blocks_t blocks;
    int i, uneven;
    size_t s;

    mpi_job_part("MPI_Allgather(v)");
    for (s = 0; s < COLL_NUM_SIZES; s += mpi_job_step()) {
        for (uneven = 0; uneven < 2; ++uneven) {
            blocks = coll_blocks_create(coll_sizes[s], uneven, s);
            all    = job_buffer_alloc(blocks.total);
            one    = job_buffer_alloc(blocks.count[mpi_job.rank]);
            coll_fill(&one, 0, one.length, mpi_job.rank, 0, s);
            if (uneven) {
                MPI_JOB_CALL(MPI_Allgatherv(one.data, one.length, MPI_BYTE,
                                            all.data, blocks.count,
                                            blocks.offset, MPI_BYTE,
                                            MPI_COMM_WORLD));
            } else {
                MPI_JOB_CALL(MPI_Allgather(one.data, one.length, MPI_BYTE,
                                           all.data, one.length, MPI_BYTE,
                                           MPI_COMM_WORLD));
                /* Tree algorithms carry blocks of several ranks in one */
                coll_sent(1, one.length);
            }

            for (i = 0; i < mpi_job.size; ++i) {
                coll_check(&all, blocks.offset[i], blocks.count[i], i, 0, s);
            }
            job_buffer_free(&one);
            job_buffer_free(&all);
            coll_blocks_destroy(&blocks);
        }
    }
}

static void coll_alltoall(void)
{
    job_buffer_t send, recv;
    MPI_Request request;
    int i, size, repeat;
    size_t s;

    mpi_job_part("MPI_Alltoall and MPI_Ialltoall");
    for (s = 0; s < COLL_NUM_SIZES; s += mpi_job_step()) {
        size = coll_sizes[s];
        send = job_buffer_alloc((size_t)size * mpi_job.size);
        recv = job_buffer_alloc((size_t)size * mpi_job.size);
        for (repeat = mpi_job_step() - 1; repeat < 4; ++repeat) {
            for (i = 0; i < mpi_job.size; ++i) {
                coll_fill(&send, (size_t)i * size, size, mpi_job.rank, i,
                          (s * 10) + repeat);
            }

            job_buffer_clear(&recv);
            if (repeat == 3) {
                MPI_JOB_CALL(MPI_Ialltoall(send.data, size, MPI_BYTE, recv.data,
                                           size, MPI_BYTE, MPI_COMM_WORLD,
                                           &request));
                MPI_JOB_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                MPI_JOB_CALL(MPI_Alltoall(send.data, size, MPI_BYTE, recv.data,
                                          size, MPI_BYTE, MPI_COMM_WORLD));
            }

            coll_sent(1, (size_t)size * (mpi_job.size - 1));
            for (i = 0; i < mpi_job.size; ++i) {
                coll_check(&recv, (size_t)i * size, size, i, mpi_job.rank,
                           (s * 10) + repeat);
            }
        }
        job_buffer_free(&recv);
        job_buffer_free(&send);
    }
}

/** Rank i sends ((i + 2j) mod 3) * size / 2 bytes to rank j: also none. */
static void coll_alltoallv(void)
{
    int *send_count = calloc(mpi_job.size, sizeof(int));
    int *recv_count = calloc(mpi_job.size, sizeof(int));
    int *send_offset = calloc(mpi_job.size, sizeof(int));
    int *recv_offset = calloc(mpi_job.size, sizeof(int));
    size_t send_total, recv_total, s;
    job_buffer_t send, recv;
    int i;

    mpi_job_part("MPI_Alltoallv");
    for (s = 0; s < COLL_NUM_SIZES; s += mpi_job_step()) {
        send_total = recv_total = 0;
        for (i = 0; i < mpi_job.size; ++i) {
            send_count[i]  = ((mpi_job.rank + (2 * i)) % 3) * coll_sizes[s] / 2;
            recv_count[i]  = ((i + (2 * mpi_job.rank)) % 3) * coll_sizes[s] / 2;
            send_offset[i] = send_total;
            recv_offset[i] = recv_total + 5;
            send_total    += send_count[i];
            recv_total    += recv_count[i] + 5;
        }

        send = job_buffer_alloc(send_total);
        recv = job_buffer_alloc(recv_total);
        for (i = 0; i < mpi_job.size; ++i) {
            coll_fill(&send, send_offset[i], send_count[i], mpi_job.rank, i, s);
            if ((i != mpi_job.rank) && (send_count[i] > 0)) {
                mpi_job_sent(send_count[i]);
            }
        }

        MPI_JOB_CALL(MPI_Alltoallv(send.data, send_count, send_offset, MPI_BYTE,
                                   recv.data, recv_count, recv_offset, MPI_BYTE,
                                   MPI_COMM_WORLD));
        for (i = 0; i < mpi_job.size; ++i) {
            coll_check(&recv, recv_offset[i], recv_count[i], i, mpi_job.rank,
                       s);
        }
        job_buffer_free(&recv);
        job_buffer_free(&send);
    }

    free(recv_offset);
    free(send_offset);
    free(recv_count);
    free(send_count);
}

/*
 * Reductions: element e of rank r is COLL_VALUE(r, e). The expected result is
 * computed here by the definition, in exact arithmetic: floating-point elements
 * are small integers, whose sums and products have no rounding to differ in.
 */
#define COLL_VALUE(_rank, _element) \
    ((((_rank) + 1) * 7 + ((_element) * 13) + (_rank) * (_element)) % 11)

#define COLL_SUM(_a, _b)   ((_a) + (_b))
#define COLL_PROD(_a, _b)  ((_a) * (_b))
#define COLL_MAX(_a, _b)   (((_a) > (_b)) ? (_a) : (_b))
#define COLL_MIN(_a, _b)   (((_a) < (_b)) ? (_a) : (_b))
#define COLL_BXOR(_a, _b)  ((_a) ^ (_b))
#define COLL_BOR(_a, _b)   ((_a) | (_b))
#define COLL_LAND(_a, _b)  ((_a) && (_b))

/** Result of @a _fold over ranks 0.._last of element @a _e. */
#define COLL_FOLD(_type, _fold, _last, _e) \
    ({ \
        _type _result = COLL_VALUE(0, _e); \
        int _r; \
        for (_r = 1; _r <= (_last); ++_r) { \
            _result = _fold(_result, (_type)COLL_VALUE(_r, _e)); \
        } \
        _result; \
    })

#define COLL_CHECK_RESULT(_type, _fold, _name, _data, _last, _count, _first) \
    do { \
        int _i; \
        for (_i = 0; _i < (_count); ++_i) { \
            _type _expected = COLL_FOLD(_type, _fold, _last, (_first) + _i); \
            MPI_JOB_CHECK((_data)[_i] == _expected, \
                          "%s of %d elements: element %d is %g, expected %g", \
                          _name, _count, _i, (double)(_data)[_i], \
                          (double)_expected); \
        } \
    } while (0)

/** Allreduce (also in place and non-blocking), Reduce, Scan, Exscan and
 *  Reduce_scatter_block of one type and operation. */
#define COLL_DEFINE_REDUCTION(_label, _type, _mpi_type, _mpi_op, _fold) \
    static void coll_reduce_##_label(int count) \
    { \
        size_t bytes = sizeof(_type) * count * mpi_job.size; \
        job_buffer_t in_buffer  = job_buffer_alloc(bytes); \
        job_buffer_t out_buffer = job_buffer_alloc(bytes); \
        _type *in   = (_type*)in_buffer.data; \
        _type *out  = (_type*)out_buffer.data; \
        int last    = mpi_job.size - 1; \
        MPI_Request request; \
        int i; \
        \
        mpi_job_part("reductions: " #_label); \
        for (i = 0; i < count * mpi_job.size; ++i) { \
            in[i] = COLL_VALUE(mpi_job.rank, i); \
        } \
        \
        MPI_JOB_CALL(MPI_Allreduce(in, out, count, _mpi_type, _mpi_op, \
                                   MPI_COMM_WORLD)); \
        COLL_CHECK_RESULT(_type, _fold, "MPI_Allreduce", out, last, count, 0); \
        \
        memcpy(out, in, sizeof(_type) * count); \
        MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, out, count, _mpi_type, \
                                   _mpi_op, MPI_COMM_WORLD)); \
        COLL_CHECK_RESULT(_type, _fold, "MPI_Allreduce in place", out, last, \
                          count, 0); \
        \
        job_buffer_clear(&out_buffer); \
        MPI_JOB_CALL(MPI_Iallreduce(in, out, count, _mpi_type, _mpi_op, \
                                    MPI_COMM_WORLD, &request)); \
        MPI_JOB_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE)); \
        COLL_CHECK_RESULT(_type, _fold, "MPI_Iallreduce", out, last, count, \
                          0); \
        \
        job_buffer_clear(&out_buffer); \
        MPI_JOB_CALL(MPI_Reduce(in, out, count, _mpi_type, _mpi_op, last, \
                                MPI_COMM_WORLD)); \
        if (mpi_job.rank == last) { \
            COLL_CHECK_RESULT(_type, _fold, "MPI_Reduce", out, last, count, \
                              0); \
        } \
        \
        job_buffer_clear(&out_buffer); \
        MPI_JOB_CALL(MPI_Scan(in, out, count, _mpi_type, _mpi_op, \
                              MPI_COMM_WORLD)); \
        COLL_CHECK_RESULT(_type, _fold, "MPI_Scan", out, mpi_job.rank, count, \
                          0); \
        \
        job_buffer_clear(&out_buffer); \
        MPI_JOB_CALL(MPI_Exscan(in, out, count, _mpi_type, _mpi_op, \
                                MPI_COMM_WORLD)); \
        if (mpi_job.rank > 0) { \
            COLL_CHECK_RESULT(_type, _fold, "MPI_Exscan", out, \
                              mpi_job.rank - 1, count, 0); \
        } \
        \
        job_buffer_clear(&out_buffer); \
        MPI_JOB_CALL(MPI_Reduce_scatter_block(in, out, count, _mpi_type, \
                                              _mpi_op, MPI_COMM_WORLD)); \
        COLL_CHECK_RESULT(_type, _fold, "MPI_Reduce_scatter_block", out, last, \
                          count, count * mpi_job.rank); \
        MPI_JOB_CHECK(job_buffer_check(&out_buffer) == 0, \
                      "byte at offset %td, outside of the result, was " \
                      "overwritten", job_buffer_check(&out_buffer)); \
        \
        /* Each rank's contribution leaves it at least once per operation, \
         * except the last one's, which Scan, Exscan and Reduce may keep */ \
        coll_sent((mpi_job.rank == last) ? 4 : 7, sizeof(_type)); \
        job_buffer_free(&out_buffer); \
        job_buffer_free(&in_buffer); \
    }

COLL_DEFINE_REDUCTION(int_sum, int, MPI_INT, MPI_SUM, COLL_SUM)
COLL_DEFINE_REDUCTION(int_land, int, MPI_INT, MPI_LAND, COLL_LAND)
COLL_DEFINE_REDUCTION(int64_max, int64_t, MPI_INT64_T, MPI_MAX, COLL_MAX)
COLL_DEFINE_REDUCTION(int16_min, int16_t, MPI_INT16_T, MPI_MIN, COLL_MIN)
COLL_DEFINE_REDUCTION(uint64_bxor, uint64_t, MPI_UINT64_T, MPI_BXOR, COLL_BXOR)
COLL_DEFINE_REDUCTION(uint8_bor, uint8_t, MPI_UINT8_T, MPI_BOR, COLL_BOR)
COLL_DEFINE_REDUCTION(float_sum, float, MPI_FLOAT, MPI_SUM, COLL_SUM)
COLL_DEFINE_REDUCTION(double_sum, double, MPI_DOUBLE, MPI_SUM, COLL_SUM)
COLL_DEFINE_REDUCTION(double_prod, double, MPI_DOUBLE, MPI_PROD, COLL_PROD)

static void coll_reductions(void)
{
    size_t c;

    for (c = 0; c < COLL_NUM_COUNTS; c += mpi_job_step()) {
        coll_reduce_int_sum(coll_counts[c]);
        coll_reduce_int_land(coll_counts[c]);
        coll_reduce_int64_max(coll_counts[c]);
        coll_reduce_int16_min(coll_counts[c]);
        coll_reduce_uint64_bxor(coll_counts[c]);
        coll_reduce_uint8_bor(coll_counts[c]);
        coll_reduce_float_sum(coll_counts[c]);
        coll_reduce_double_sum(coll_counts[c]);
        coll_reduce_double_prod(coll_counts[c]);
    }
}

/** The pair type, whose elements have a gap between value and index. */
static void coll_maxloc(void)
{
    struct {
        double value;
        int    rank;
    } in, out;
    int winner;

    mpi_job_part("MPI_MAXLOC and MPI_MINLOC");
    for (winner = 0; winner < mpi_job.size;
         winner += job_stride(mpi_job.size)) {
        in.value = (mpi_job.rank == winner) ? 1000 : mpi_job.rank;
        in.rank  = mpi_job.rank;
        MPI_JOB_CALL(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC,
                                   MPI_COMM_WORLD));
        MPI_JOB_CHECK((out.rank == winner) && (out.value == 1000),
                      "MPI_MAXLOC found %g at rank %d, expected 1000 at %d",
                      out.value, out.rank, winner);
        in.value = -in.value;
        MPI_JOB_CALL(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC,
                                   MPI_COMM_WORLD));
        MPI_JOB_CHECK((out.rank == winner) && (out.value == -1000),
                      "MPI_MINLOC found %g at rank %d, expected -1000 at %d",
                      out.value, out.rank, winner);
        coll_sent(2, sizeof(in.value));
    }
}

/** Nobody may leave a barrier before the last one has entered. The late one
 *  sends synchronously to everybody before it enters, so who is out and has not
 *  got that message was let out too early. */
static void coll_barrier(void)
{
    const int rounds = 2 * mpi_job.size / job_stride(mpi_job.size);
    int round, late, value, done, peer;
    MPI_Request request;

    mpi_job_part("MPI_Barrier");
    for (round = 0; round < rounds; ++round) {
        late = round % mpi_job.size;
        if (mpi_job.rank == late) {
            usleep(1000);
            for (peer = 0; peer < mpi_job.size; ++peer) {
                if (peer != late) {
                    MPI_JOB_CALL(MPI_Ssend(&round, 1, MPI_INT, peer, 0,
                                           MPI_COMM_WORLD));
                    mpi_job_sent(sizeof(round));
                }
            }
            MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
        } else {
            MPI_JOB_CALL(MPI_Irecv(&value, 1, MPI_INT, late, 0, MPI_COMM_WORLD,
                                   &request));
            MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
            MPI_JOB_CALL(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            MPI_JOB_CHECK(done, "left the barrier of round %d before rank %d "
                          "entered it", round, late);
            MPI_JOB_CHECK(value == round, "message of round %d says %d", round,
                          value);
        }
    }
}

/** Two halves of the job at once, on communicators of their own. */
static void coll_split(void)
{
    int color = mpi_job.rank % 2;
    int sum, expected = 0, i, repeat;
    MPI_Comm half, copy;

    mpi_job_part("communicators of half of the ranks");
    MPI_JOB_CALL(MPI_Comm_split(MPI_COMM_WORLD, color, -mpi_job.rank, &half));
    MPI_JOB_CALL(MPI_Comm_dup(half, &copy));
    for (i = color; i < mpi_job.size; i += 2) {
        expected += i + 1;
    }

    for (repeat = 0; repeat < 10; ++repeat) {
        sum = mpi_job.rank + 1;
        MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM,
                                   (repeat % 2) ? copy : half));
        MPI_JOB_CHECK(sum == expected, "sum of half %d is %d, expected %d",
                      color, sum, expected);
    }

    MPI_JOB_CALL(MPI_Comm_free(&copy));
    MPI_JOB_CALL(MPI_Comm_free(&half));
}

static void coll_timing(void)
{
    int iterations = (mpi_job.size > 2) ? 20 : (mpi_job.quick ? 200 : 400);
    mpi_job_timer_t timer = mpi_job_timer_start(iterations);
    double value;
    int i;

    mpi_job_part("timing");
    for (i = -10; i < iterations; ++i) {
        if (i == 0) {
            timer = mpi_job_timer_start(iterations);
        }
        value = i + mpi_job.rank;
        MPI_JOB_CALL(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM,
                                   MPI_COMM_WORLD));
        MPI_JOB_CHECK(value == (i * mpi_job.size) +
                               (mpi_job.size * (mpi_job.size - 1) / 2),
                      "sum %d is %g", i, value);
        mpi_job_timer_tick(&timer);
    }

    if (mpi_job.rank == 0) {
        mpi_job_metric("allreduce", sizeof(value), timer.best * 1e6, "us");
    }
}

int main(int argc, char **argv)
{
    mpi_job_init(&argc, &argv, "collectives", MPI_THREAD_SINGLE, 2);

    coll_barrier();
    coll_bcast();
    coll_gather_scatter();
    coll_allgather();
    coll_alltoall();
    coll_alltoallv();
    coll_reductions();
    coll_maxloc();
    coll_split();
    coll_timing();
    return mpi_job_finish();
}
