/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Atomic operations of 32 and 64 bits on one PE by all at once. Each result is
 * one that only an indivisible update can give.
 */

#include "shmem_job.h"


#define ATOMICS_DEFINE(_label, _type, _ctype) \
    /** fetch_inc, fetch_add: all tickets, each once. inc, add: no loss. */ \
    static void atomics_add_##_label(int owner) \
    { \
        const int rounds = shmem_job.quick ? 20 : 60; \
        int total        = rounds * shmem_job.num_pes; \
        _ctype *cell     = shmem_job_alloc(4 * sizeof(*cell)); \
        int *taken       = shmem_job_alloc(total * sizeof(*taken)); \
        _ctype ticket, previous = -1; \
        int i; \
        \
        shmem_job_part("inc and add, " #_label); \
        memset(cell, 0, 4 * sizeof(*cell)); \
        memset(taken, 0, total * sizeof(*taken)); \
        shmem_barrier_all(); \
        for (i = 0; i < rounds; ++i) { \
            ticket = (i % 2) ? \
                     shmem_##_type##_atomic_fetch_add(&cell[1], 1, owner) : \
                     shmem_##_type##_atomic_fetch_inc(&cell[1], owner); \
            shmem_job_sent(owner, sizeof(*cell)); \
            SHMEM_JOB_CHECK((ticket > previous) && (ticket >= 0) && \
                            (ticket < (_ctype)total), \
                            "ticket %ld after %ld, of %d", (long)ticket, \
                            (long)previous, total); \
            previous = ticket; \
            ticket   = shmem_int_atomic_fetch_inc(&taken[ticket], owner); \
            shmem_job_sent(owner, sizeof(*taken)); \
            SHMEM_JOB_CHECK(ticket == 0, "ticket %ld was given twice", \
                            (long)previous); \
            shmem_##_type##_atomic_inc(&cell[2], owner); \
            shmem_##_type##_atomic_add(&cell[2], 1000, owner); \
            shmem_job_sent(owner, sizeof(*cell)); \
            shmem_job_sent(owner, sizeof(*cell)); \
        } \
        \
        shmem_barrier_all(); \
        ticket = shmem_##_type##_atomic_fetch(&cell[1], owner); \
        SHMEM_JOB_CHECK(ticket == (_ctype)total, \
                        "counter is %ld, expected %d", (long)ticket, total); \
        ticket = shmem_##_type##_atomic_fetch(&cell[2], owner); \
        SHMEM_JOB_CHECK(ticket == (_ctype)total * 1001, \
                        "sum is %ld, expected %ld", (long)ticket, \
                        (long)total * 1001); \
        shmem_job_sent(owner, sizeof(*cell)); \
        shmem_job_sent(owner, sizeof(*cell)); \
        if (shmem_job.pe == owner) { \
            SHMEM_JOB_CHECK((cell[0] == 0) && (cell[3] == 0), \
                            "neighbours are %ld and %ld", (long)cell[0], \
                            (long)cell[3]); \
            for (i = 0; i < total; ++i) { \
                SHMEM_JOB_CHECK(taken[i] == 1, "ticket %d given %d times", i, \
                                taken[i]); \
            } \
        } \
        shmem_barrier_all(); \
        shmem_free(taken); \
        shmem_free(cell); \
    } \
    \
    /** Increments by compare_swap: no update may be lost. */ \
    static void atomics_compare_swap_##_label(int owner) \
    { \
        const int rounds = shmem_job.quick ? 10 : 30; \
        _ctype *cell     = shmem_job_alloc(3 * sizeof(*cell)); \
        _ctype seen = 0, expect; \
        int i, tries = 0; \
        \
        shmem_job_part("compare_swap, " #_label); \
        memset(cell, 0, 3 * sizeof(*cell)); \
        shmem_barrier_all(); \
        for (i = 0; i < rounds; ++i) { \
            do { \
                expect = seen; \
                seen   = shmem_##_type##_atomic_compare_swap(&cell[1], expect, \
                                                             expect + 1, \
                                                             owner); \
                shmem_job_sent(owner, sizeof(*cell)); \
                SHMEM_JOB_CHECK(++tries < 1000000, "%d of %d increments " \
                                "after %d tries", i, rounds, tries); \
            } while (seen != expect); \
        } \
        shmem_barrier_all(); \
        seen = shmem_##_type##_atomic_fetch(&cell[1], owner); \
        SHMEM_JOB_CHECK(seen == (_ctype)(rounds * shmem_job.num_pes), \
                        "%d increments by each of %d PEs made %ld", rounds, \
                        shmem_job.num_pes, (long)seen); \
        if (shmem_job.pe == owner) { \
            SHMEM_JOB_CHECK((cell[0] == 0) && (cell[2] == 0), \
                            "neighbours are %ld and %ld", (long)cell[0], \
                            (long)cell[2]); \
        } \
        shmem_barrier_all(); \
        shmem_free(cell); \
    } \
    \
    /** What is swapped in comes out exactly once, or is left at the end. */ \
    static void atomics_swap_##_label(int owner) \
    { \
        const int rounds = shmem_job.quick ? 10 : 30; \
        _ctype *cell     = shmem_job_alloc(3 * sizeof(*cell)); \
        long long mine   = 0; \
        _ctype sum, got; \
        int i; \
        \
        shmem_job_part("swap, " #_label); \
        memset(cell, 0, 3 * sizeof(*cell)); \
        shmem_barrier_all(); \
        for (i = 0; i < rounds; ++i) { \
            got   = (shmem_job.pe * rounds) + i + 1; \
            mine -= got; \
            got   = shmem_##_type##_atomic_swap(&cell[1], got, owner); \
            mine += got; \
            shmem_job_sent(owner, sizeof(*cell)); \
        } \
        shmem_##_type##_atomic_add(&cell[2], (_ctype)mine, owner); \
        shmem_barrier_all(); \
        sum = shmem_##_type##_atomic_fetch(&cell[2], owner); \
        got = shmem_##_type##_atomic_fetch(&cell[1], owner); \
        SHMEM_JOB_CHECK((_ctype)(sum + got) == 0, \
                        "values swapped in and out differ by %ld", \
                        (long)(sum + got)); \
        \
        shmem_job_part("set, " #_label); \
        shmem_barrier_all(); \
        if (shmem_job.pe == (owner + 1) % shmem_job.num_pes) { \
            shmem_##_type##_atomic_set(&cell[1], 12345, owner); \
            shmem_job_sent(owner, sizeof(*cell)); \
        } \
        shmem_barrier_all(); \
        got = shmem_##_type##_atomic_fetch(&cell[1], owner); \
        SHMEM_JOB_CHECK(got == 12345, "value set is %ld, expected 12345", \
                        (long)got); \
        shmem_barrier_all(); \
        shmem_free(cell); \
    }

/** Open MPI before 4.1.5 writes 8 bytes into a 4-byte variable of its own in
 *  every 32-bit compare_swap over UCX and is stopped by its stack protector,
 *  whatever the transport (open-mpi/ompi issue 11257). */
#if (OSHMEM_MAJOR_VERSION * 10000) + (OSHMEM_MINOR_VERSION * 100) + \
    OSHMEM_RELEASE_VERSION >= 40105
#define ATOMICS_HAVE_COMPARE_SWAP_32  1
#else
#define ATOMICS_HAVE_COMPARE_SWAP_32  0
#endif

ATOMICS_DEFINE(int32, int, int)
ATOMICS_DEFINE(int64, long, long)
ATOMICS_DEFINE(longlong, longlong, long long)

/** The words of which bits were set, cleared, and flipped. */
#define ATOMICS_DEFINE_CHECK(_label, _ctype) \
    static void atomics_check_##_label(const _ctype *cell, _ctype first, \
                                       _ctype second) \
    { \
        SHMEM_JOB_CHECK((cell[0] == first) && (cell[1] == second) && \
                        (cell[2] == 0), "words are 0x%llx, 0x%llx, 0x%llx", \
                        (long long)cell[0], (long long)cell[1], \
                        (long long)cell[2]); \
    }

ATOMICS_DEFINE_CHECK(uint32, uint32_t)
ATOMICS_DEFINE_CHECK(uint64, uint64_t)

/** Every PE owns one bit of a word, of as many as there are bits in. */
#define ATOMICS_DEFINE_BITS(_label, _type, _ctype) \
    static void atomics_bits_##_label(int owner) \
    { \
        const int width = 8 * sizeof(_ctype); \
        const int words = (shmem_job.num_pes + width - 1) / width; \
        _ctype *cells   = shmem_job_alloc(3 * words * sizeof(*cells)); \
        _ctype *cell    = cells + (3 * (shmem_job.pe / width)); \
        _ctype bit      = (_ctype)1 << ((shmem_job.pe * 7) % width); \
        _ctype *all     = calloc(words, sizeof(*all)); \
        _ctype old; \
        int pe, word; \
        \
        shmem_job_part("and, or and xor, " #_label); \
        for (pe = 0; pe < shmem_job.num_pes; ++pe) { \
            all[pe / width] |= (_ctype)1 << ((pe * 7) % width); \
        } \
        for (word = 0; word < words; ++word) { \
            cells[3 * word]       = 0; \
            cells[(3 * word) + 1] = ~(_ctype)0; \
            cells[(3 * word) + 2] = all[word]; \
        } \
        shmem_barrier_all(); \
        \
        old = shmem_##_type##_atomic_fetch_or(&cell[0], bit, owner); \
        SHMEM_JOB_CHECK(!(old & bit), "bit of PE %d was set before", \
                        shmem_job.pe); \
        old = shmem_##_type##_atomic_fetch_and(&cell[1], ~bit, owner); \
        SHMEM_JOB_CHECK(old & bit, "bit of PE %d was clear before", \
                        shmem_job.pe); \
        old = shmem_##_type##_atomic_fetch_xor(&cell[2], bit, owner); \
        SHMEM_JOB_CHECK(old & bit, "bit of PE %d was flipped before", \
                        shmem_job.pe); \
        shmem_job_sent(owner, sizeof(bit)); \
        shmem_job_sent(owner, sizeof(bit)); \
        shmem_job_sent(owner, sizeof(bit)); \
        shmem_barrier_all(); \
        if (shmem_job.pe == owner) { \
            for (word = 0; word < words; ++word) { \
                atomics_check_##_label(&cells[3 * word], all[word], \
                                       ~all[word]); \
            } \
        } \
        shmem_barrier_all(); \
        \
        shmem_##_type##_atomic_xor(&cell[0], bit, owner); \
        shmem_##_type##_atomic_or(&cell[1], bit, owner); \
        shmem_##_type##_atomic_or(&cell[2], bit, owner); \
        shmem_##_type##_atomic_and(&cell[2], ~bit, owner); \
        for (pe = 0; pe < 4; ++pe) { \
            shmem_job_sent(owner, sizeof(bit)); \
        } \
        shmem_barrier_all(); \
        if (shmem_job.pe == owner) { \
            for (word = 0; word < words; ++word) { \
                atomics_check_##_label(&cells[3 * word], 0, ~(_ctype)0); \
            } \
        } \
        shmem_barrier_all(); \
        free(all); \
        shmem_free(cells); \
    }

ATOMICS_DEFINE_BITS(uint32, uint32, uint32_t)
ATOMICS_DEFINE_BITS(uint64, uint64, uint64_t)

static void atomics_timing(void)
{
    int iterations = (shmem_job.num_pes > 2) ? 30 :
                     (shmem_job.quick ? 200 : 600);
    long *cell     = shmem_job_alloc(sizeof(*cell));
    int batch      = iterations / 10;
    double best    = 0;
    double start   = 0;
    double now;
    int i;

    shmem_job_part("timing");
    *cell = 0;
    shmem_barrier_all();
    if (shmem_job.pe == 0) {
        for (i = 0; i < iterations; ++i) {
            /* The fastest of some batches, see mpi_job_timer_t */
            if ((i % batch) == 0) {
                now   = shmem_job_time();
                best  = (start == 0) ? 1 : (now - start < best) ? now - start :
                        best;
                start = now;
            }
            SHMEM_JOB_CHECK(shmem_long_atomic_fetch_inc(cell, 1) == i,
                            "increment %d found another value", i);
            shmem_job_sent(1, sizeof(*cell));
        }
        shmem_job_metric("fetch_inc", sizeof(*cell), best * 1e6 / batch, "us");
    }
    shmem_barrier_all();
    shmem_free(cell);
}

int main(int argc, char **argv)
{
    int owner;

    shmem_job_init(argc, argv, "atomics");
    for (owner = 0; owner < shmem_job.num_pes; owner += shmem_job.num_pes - 1) {
        atomics_add_int32(owner);
        atomics_add_int64(owner);
        atomics_add_longlong(owner);
        if (ATOMICS_HAVE_COMPARE_SWAP_32) {
            atomics_compare_swap_int32(owner);
        }
        atomics_compare_swap_int64(owner);
        atomics_compare_swap_longlong(owner);
        atomics_swap_int32(owner);
        atomics_swap_int64(owner);
        atomics_swap_longlong(owner);
        atomics_bits_uint32(owner);
        atomics_bits_uint64(owner);
    }
    atomics_timing();
    if (!ATOMICS_HAVE_COMPARE_SWAP_32 && (shmem_job.pe == 0)) {
        printf("NOTE atomics: 32-bit compare_swap left out, it crashes in Open "
               "MPI %d.%d.%d whatever the transport (fixed in 4.1.5)\n",
               OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
               OSHMEM_RELEASE_VERSION);
    }
    return shmem_job_finish();
}
