/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Puts and gets of every size between all pairs of PEs: blocking,
 * non-blocking, strided, single elements, with fence and quiet.
 */

#include "shmem_job.h"

#define PUT_GET_SLOT  ((1ul << 20) + 64)    /* Room for the byte behind */


static const size_t put_get_sizes[] = {
    1, 2, 4, 8, 15, 64, 65, 200, 1024, 4096, 8191, 8192, 16384, 65536, 262144,
    1048576
};

#define PUT_GET_NUM_SIZES  (sizeof(put_get_sizes) / sizeof(put_get_sizes[0]))


/** Everybody writes its slot at everybody, all read back what lies there. */
static void put_get_all_pairs(bool nbi)
{
    uint8_t *slots = shmem_job_alloc(PUT_GET_SLOT * shmem_job.num_pes);
    uint8_t *local = malloc(PUT_GET_SLOT * shmem_job.num_pes);
    size_t stride  = job_stride(shmem_job.num_pes);
    size_t s, size;
    uint8_t *mine;
    int pe;

    shmem_job_part(nbi ? "put_nbi and get_nbi" : "put and get");
    for (s = stride - 1; s < PUT_GET_NUM_SIZES; s += stride) {
        size = put_get_sizes[s];
        for (pe = 0; pe < shmem_job.num_pes; ++pe) {
            mine = local + (PUT_GET_SLOT * pe);
            job_pattern_fill(mine, size, job_pattern_seed(shmem_job.pe, pe, s));
            if (nbi) {
                shmem_putmem_nbi(slots + (PUT_GET_SLOT * shmem_job.pe), mine,
                                 size, pe);
            } else {
                shmem_putmem(slots + (PUT_GET_SLOT * shmem_job.pe), mine, size,
                             pe);
                /* A blocking put has taken its data away */
                memset(mine, 0, size);
            }
            shmem_job_sent(pe, size);
        }

        shmem_barrier_all();
        for (pe = 0; pe < shmem_job.num_pes; ++pe) {
            shmem_job_check_data(slots + (PUT_GET_SLOT * pe), size, pe,
                                 shmem_job.pe, s);
        }

        memset(local, JOB_GUARD_BYTE, PUT_GET_SLOT * shmem_job.num_pes);
        for (pe = 0; pe < shmem_job.num_pes; ++pe) {
            mine = local + (PUT_GET_SLOT * pe);
            if (nbi) {
                shmem_getmem_nbi(mine, slots + (PUT_GET_SLOT * shmem_job.pe),
                                 size, pe);
            } else {
                shmem_getmem(mine, slots + (PUT_GET_SLOT * shmem_job.pe), size,
                             pe);
                shmem_job_check_data(mine, size, shmem_job.pe, pe, s);
            }
            shmem_job_sent(pe, size);
        }

        shmem_quiet();
        for (pe = 0; pe < shmem_job.num_pes; ++pe) {
            shmem_job_check_data(local + (PUT_GET_SLOT * pe), size,
                                 shmem_job.pe, pe, s);
        }
        shmem_barrier_all();
    }

    free(local);
    shmem_free(slots);
}

/** Many small non-blocking puts under way at once, one quiet. */
static void put_get_flood(void)
{
    const int count  = shmem_job.quick ? 500 : 4000;
    int next         = (shmem_job.pe + 1) % shmem_job.num_pes;
    int prev         = (shmem_job.pe + shmem_job.num_pes - 1) %
                       shmem_job.num_pes;
    uint64_t *target = shmem_job_alloc(count * sizeof(*target));
    uint64_t *source = malloc(count * sizeof(*source));
    uint64_t *back   = calloc(count, sizeof(*back));
    uint64_t expected;
    int i;

    shmem_job_part("many put_nbi, one quiet");
    for (i = 0; i < count; ++i) {
        source[i] = job_pattern_word(shmem_job.pe, i);
        shmem_uint64_put_nbi(&target[i], &source[i], 1, next);
        shmem_job_sent(next, sizeof(*source));
    }
    shmem_quiet();

    for (i = 0; i < count; ++i) {
        shmem_uint64_get_nbi(&back[i], &target[i], 1, next);
        shmem_job_sent(next, sizeof(*source));
    }
    shmem_quiet();
    shmem_barrier_all();

    for (i = 0; i < count; ++i) {
        expected = job_pattern_word(prev, i);
        SHMEM_JOB_CHECK(target[i] == expected, "element %d put by PE %d is "
                        "0x%" PRIx64 ", expected 0x%" PRIx64, i, prev,
                        target[i], expected);
        SHMEM_JOB_CHECK(back[i] == source[i], "element %d got back from PE %d "
                        "is 0x%" PRIx64 ", expected 0x%" PRIx64, i, next,
                        back[i], source[i]);
    }

    shmem_barrier_all();
    free(back);
    free(source);
    shmem_free(target);
}

/** Elements of all widths, and strided ones. */
static void put_get_elements(void)
{
    const int count = 40;
    int next        = (shmem_job.pe + 1) % shmem_job.num_pes;
    int prev        = (shmem_job.pe + shmem_job.num_pes - 1) %
                      shmem_job.num_pes;
    char *bytes     = shmem_job_alloc(count);
    short *shorts   = shmem_job_alloc(count * sizeof(*shorts));
    int *ints       = shmem_job_alloc(count * sizeof(*ints));
    double *doubles = shmem_job_alloc(count * sizeof(*doubles));
    int source[40], i, expected;

    shmem_job_part("p and g of single elements");
    for (i = 0; i < count; ++i) {
        shmem_char_p(&bytes[i], (shmem_job.pe * 50) + i, next);
        shmem_short_p(&shorts[i], (shmem_job.pe * 1000) + i, next);
        shmem_double_p(&doubles[i], (shmem_job.pe * 1000) + i + 0.5, next);
        shmem_job_sent(next, 1);
        shmem_job_sent(next, sizeof(*shorts));
        shmem_job_sent(next, sizeof(*doubles));
        source[i] = (shmem_job.pe * 1000) + i;
    }
    shmem_barrier_all();

    for (i = 0; i < count; ++i) {
        SHMEM_JOB_CHECK((bytes[i] == (char)((prev * 50) + i)) &&
                        (shorts[i] == (short)((prev * 1000) + i)) &&
                        (doubles[i] == (prev * 1000) + i + 0.5),
                        "element %d is %d, %d, %g", i, bytes[i], shorts[i],
                        doubles[i]);
        SHMEM_JOB_CHECK(shmem_short_g(&shorts[i], next) ==
                        (short)((shmem_job.pe * 1000) + i),
                        "element %d read from PE %d is %d", i, next,
                        shmem_short_g(&shorts[i], next));
        shmem_job_sent(next, sizeof(*shorts));
    }

    shmem_job_part("iput and iget");
    shmem_int_iput(ints, source, 4, 2, count / 4, next);
    shmem_job_sent(next, sizeof(*ints));
    shmem_barrier_all();
    for (i = 0; i < count; ++i) {
        expected = ((i % 4) || (i / 4 >= count / 4)) ?
                   (int)0xa5a5a5a5 : ((prev * 1000) + (i / 2));
        SHMEM_JOB_CHECK(ints[i] == expected, "element %d is %d, expected %d", i,
                        ints[i], expected);
    }
    shmem_int_iget(source, ints, 1, 4, count / 4, next);
    shmem_job_sent(next, sizeof(*ints));
    for (i = 0; i < count / 4; ++i) {
        expected = (shmem_job.pe * 1000) + (i * 2);
        SHMEM_JOB_CHECK(source[i] == expected, "element %d read is %d, "
                        "expected %d", i, source[i], expected);
    }

    shmem_barrier_all();
    shmem_free(doubles);
    shmem_free(ints);
    shmem_free(shorts);
    shmem_free(bytes);
}

/** A flag put after the data and a fence must not be seen before it. */
static void put_get_fence(void)
{
    const int rounds = shmem_job.quick ? 20 : 60;
    const size_t max = 40000;
    int next         = (shmem_job.pe + 1) % shmem_job.num_pes;
    int prev         = (shmem_job.pe + shmem_job.num_pes - 1) %
                       shmem_job.num_pes;
    uint8_t *data    = shmem_job_alloc(max + 64);
    long *flag       = shmem_job_alloc(2 * sizeof(*flag));
    uint8_t *source  = malloc(max);
    size_t size;
    int i;

    shmem_job_part("data, fence, flag");
    flag[0] = flag[1] = 0;
    shmem_barrier_all();
    for (i = 1; i <= rounds; ++i) {
        size = (i * 997) % max;
        job_pattern_fill(source, size, job_pattern_seed(shmem_job.pe, next, i));
        shmem_putmem(data, source, size, next);
        shmem_fence();
        shmem_long_p(&flag[0], i, next);
        shmem_job_sent(next, size);
        shmem_job_sent(next, sizeof(*flag));

        shmem_long_wait_until(&flag[0], SHMEM_CMP_EQ, i);
        shmem_job_check_data(data, size, prev, shmem_job.pe, i);
        memset(data, JOB_GUARD_BYTE, size);

        /* Only now may the sender overwrite it */
        shmem_long_p(&flag[1], i, prev);
        shmem_job_sent(prev, sizeof(*flag));
        shmem_long_wait_until(&flag[1], SHMEM_CMP_GE, i);
    }

    shmem_barrier_all();
    free(source);
    shmem_free(flag);
    shmem_free(data);
}

static void put_get_timing(void)
{
    int iterations = shmem_job.quick ? 200 : 600;
    long *cell     = shmem_job_alloc(sizeof(*cell));
    double best    = 0;
    double start   = 0;
    double now;
    int i, batch;

    shmem_job_part("timing");
    cell[0] = 0;
    shmem_barrier_all();
    if (shmem_job.num_pes > 2) {
        iterations = 30;
    }

    /* The fastest of some batches, see mpi_job_timer_t */
    batch = iterations / 10;
    if (shmem_job.pe < 2) {
        for (i = 1; i <= iterations; ++i) {
            if ((i % batch) == 0) {
                now   = shmem_job_time();
                best  = (start == 0) ? 1 : (now - start < best) ? now - start :
                        best;
                start = now;
            }
            if (shmem_job.pe == 0) {
                shmem_long_p(&cell[0], i, 1);
            }
            shmem_long_wait_until(&cell[0], SHMEM_CMP_EQ, i);
            SHMEM_JOB_CHECK(*(volatile long*)&cell[0] == i,
                            "message %d of the ping-pong is %ld", i, cell[0]);
            if (shmem_job.pe == 1) {
                shmem_long_p(&cell[0], i, 0);
            }
            shmem_job_sent(!shmem_job.pe, sizeof(*cell));
        }
        if (shmem_job.pe == 0) {
            shmem_job_metric("put", sizeof(*cell), best * 1e6 / (2 * batch),
                             "us");
        }
    }

    shmem_barrier_all();
    shmem_free(cell);
}

int main(int argc, char **argv)
{
    shmem_job_init(argc, argv, "put_get");

    put_get_all_pairs(false);
    put_get_all_pairs(true);
    put_get_flood();
    put_get_elements();
    put_get_fence();
    put_get_timing();
    return shmem_job_finish();
}
