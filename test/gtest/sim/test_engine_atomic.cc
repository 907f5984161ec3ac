/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/test_engine.h>

#include <common/seed.h>

#include <endian.h>
#include <random>

/* Atomics against a bit by bit reference, and against the operations that UCX
 * builds from them */

class test_engine_atomic : public testing::Test {
protected:
    static mlx5sim_wqe_t make(unsigned size, bool is_cas, uint64_t swap_add,
                              uint64_t compare, uint64_t swap_mask,
                              uint64_t compare_mask)
    {
        mlx5sim_wqe_t wqe;

        memset(&wqe, 0, sizeof(wqe));
        wqe.atomic_size         = size;
        wqe.atomic.is_cas       = is_cas;
        wqe.atomic.swap_add     = swap_add;
        wqe.atomic.compare      = compare;
        wqe.atomic.swap_mask    = swap_mask;
        wqe.atomic.compare_mask = compare_mask;
        return wqe;
    }

    static mlx5sim_wqe_t make_cas(unsigned size, uint64_t swap,
                                  uint64_t compare, uint64_t swap_mask,
                                  uint64_t compare_mask)
    {
        return make(size, true, swap, compare, swap_mask, compare_mask);
    }

    static mlx5sim_wqe_t make_add(unsigned size, uint64_t add,
                                  uint64_t boundary)
    {
        return make(size, false, add, 0, UINT64_MAX, boundary);
    }

    static uint64_t compute(const mlx5sim_wqe_t &wqe, uint64_t old)
    {
        return mlx5sim_atomic_compute(&wqe, old);
    }

    /** The old value, which comes back in memory or in a completion. */
    template<typename F>
    static void expect_old_value(int is_in_cqe, const F &to_host64)
    {
        uint8_t out[9];

        for (unsigned size : {4, 8}) {
            uint64_t old      = truncate(size, 0x1122334455667788ull);
            uint64_t result   = 0;
            mlx5sim_wqe_t wqe = make_add(size, 1, 0);

            memset(out, 0xee, sizeof(out));
            mlx5sim_atomic_result(&wqe, old, is_in_cqe, out);
            memcpy(&result, out, size);
            EXPECT_EQ(old, (size == 4) ? be32toh(result) : to_host64(result));
            EXPECT_EQ(0xee, out[size]);
        }
    }

    /** Full adder per bit, the carry is dropped above a boundary bit. */
    static uint64_t reference_add(unsigned size, uint64_t old, uint64_t add,
                                  uint64_t boundary)
    {
        uint64_t result = 0;
        unsigned carry  = 0;

        for (unsigned i = 0; i < size * 8; ++i) {
            unsigned sum = ((old >> i) & 1) + ((add >> i) & 1) + carry;
            result      |= uint64_t(sum & 1) << i;
            carry        = ((boundary >> i) & 1) ? 0 : sum >> 1;
        }
        return result;
    }

    static uint64_t reference_cas(unsigned size, uint64_t old, uint64_t swap,
                                  uint64_t compare, uint64_t swap_mask,
                                  uint64_t compare_mask)
    {
        uint64_t result = 0;

        for (unsigned i = 0; i < size * 8; ++i) {
            if (((compare_mask >> i) & 1) &&
                (((old >> i) & 1) != ((compare >> i) & 1))) {
                return old;
            }
        }
        for (unsigned i = 0; i < size * 8; ++i) {
            uint64_t from = ((swap_mask >> i) & 1) ? swap : old;
            result       |= ((from >> i) & 1) << i;
        }
        return result;
    }

    static uint64_t truncate(unsigned size, uint64_t value)
    {
        return (size == 4) ? uint32_t(value) : value;
    }
};


TEST_F(test_engine_atomic, plain_operations)
{
    EXPECT_EQ(12u, compute(make_add(8, 5, 0), 7));
    EXPECT_EQ(0u, compute(make_add(8, 1, 0), UINT64_MAX));
    EXPECT_EQ(9u, compute(make_cas(8, 9, 7, UINT64_MAX, UINT64_MAX), 7));
    EXPECT_EQ(8u, compute(make_cas(8, 9, 7, UINT64_MAX, UINT64_MAX), 8));
}

TEST_F(test_engine_atomic, carry_of_4_byte_add_stays_in_4_bytes)
{
    EXPECT_EQ(0u, compute(make_add(4, 1, 0), 0xffffffff));
    EXPECT_EQ(0x7fffffffu, compute(make_add(4, 0xffffffff, 0), 0x80000000));
}

TEST_F(test_engine_atomic, fields_of_a_masked_add_do_not_carry)
{
    /* two fields of 16 bits and one of 32 */
    EXPECT_EQ(0x0000000100000000ull,
              compute(make_add(8, 0x0000000100010001ull,
                               0x8000000080008000ull),
                      0x00000000ffffffffull));
}

/* uct_rc_mlx5_iface_common_atomic_data() of UCX */
TEST_F(test_engine_atomic, operations_that_ucx_builds_on_random_values)
{
    std::mt19937_64 random(seed::get());

    for (int i = 0; i < (int)seed::cases(1000); ++i) {
        for (unsigned size : {4, 8}) {
            uint64_t old   = truncate(size, random());
            uint64_t value = truncate(size, random());
            uint64_t ones  = truncate(size, UINT64_MAX);

            EXPECT_EQ(old & value,
                      compute(make_cas(size, value, 0,
                                       truncate(size, ~value), 0), old));
            EXPECT_EQ(old | value,
                      compute(make_cas(size, value, 0, value, 0), old));
            EXPECT_EQ(old ^ value, compute(make_add(size, value, ones), old));
            EXPECT_EQ(value, compute(make_cas(size, value, 0, ones, 0), old));
            EXPECT_EQ(truncate(size, old + value),
                      compute(make_add(size, value, 0), old));
            EXPECT_EQ(value,
                      compute(make_cas(size, value, old, ones, ones), old));
            EXPECT_EQ(old, compute(make_cas(size, value, old ^ 1, ones, ones),
                                   old));
        }
    }
}

TEST_F(test_engine_atomic, random_masks_match_the_reference)
{
    std::mt19937_64 random(seed::get());

    for (int i = 0; i < (int)seed::cases(20000); ++i) {
        unsigned size     = (i & 1) ? 4 : 8;
        uint64_t old      = truncate(size, random());
        uint64_t operand  = truncate(size, random());
        uint64_t boundary = truncate(size, random() & random());
        uint64_t swapmask = truncate(size, random());
        /* make half of the comparisons succeed */
        uint64_t cmpmask  = truncate(size, random());
        uint64_t compare  = (i & 2) ? truncate(size, random()) :
                                      (old & cmpmask) |
                                      truncate(size, random() & ~cmpmask);

        ASSERT_EQ(reference_add(size, old, operand, boundary),
                  compute(make_add(size, operand, boundary), old));
        ASSERT_EQ(reference_cas(size, old, operand, compare, swapmask, cmpmask),
                  compute(make_cas(size, operand, compare, swapmask, cmpmask),
                          old));
    }
}

TEST_F(test_engine_atomic, old_value_returns_in_host_order_but_for_4_bytes)
{
    expect_old_value(0, [](uint64_t value) { return value; });
}

TEST_F(test_engine_atomic, old_value_in_a_completion_is_big_endian)
{
    expect_old_value(1, [](uint64_t value) { return be64toh(value); });
}
