/* SPDX-License-Identifier: BSD-3-Clause */

extern "C" {
#include <sim/exec/iov.h>
}

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace {

/* Addresses are not looked at */
class test_iov : public testing::Test {
protected:
    using pieces = std::vector<std::pair<uint64_t, size_t>>;

    /* Segments of 64 bytes apart, of these lengths */
    static unsigned fill(mlx5sim_seg_t *segs, uint64_t addr,
                         const std::vector<uint32_t> &lengths)
    {
        for (uint32_t length : lengths) {
            *segs++ = {addr, length, 0, nullptr};
            addr   += 64;
        }
        return lengths.size();
    }

    void make(const std::vector<uint32_t> &src,
              const std::vector<uint32_t> &dst)
    {
        m_plan.num_src = fill(m_plan.src, 0x1000, src);
        m_plan.num_dst = fill(m_plan.dst, 0x2000, dst);
    }

    static pieces list(const iovec *iov, unsigned num)
    {
        pieces all;

        for (unsigned i = 0; i < num; ++i) {
            all.emplace_back((uintptr_t)iov[i].iov_base, iov[i].iov_len);
        }
        return all;
    }

    void expect(const pieces &src, const pieces &dst)
    {
        for (auto side : {MLX5SIM_SIDE_REQUESTER, MLX5SIM_SIDE_RESPONDER}) {
            iovec from[MLX5SIM_IOV_MAX], to[MLX5SIM_IOV_MAX];
            unsigned num_from, num_to;

            m_plan.src_side = side;
            mlx5sim_iov_plan(&m_plan, from, &num_from, to, &num_to);
            EXPECT_EQ(src, list(from, num_from)) << "from side " << side;
            EXPECT_EQ(dst, list(to, num_to)) << "from side " << side;
        }
    }

    mlx5sim_plan_t m_plan = {};
};

/* Of whatever is written, and to whichever side: programs poll on it */
TEST_F(test_iov, the_last_byte_is_copied_last)
{
    make({8}, {8});
    expect({{0x1000, 8}}, {{0x2000, 7}, {0x2007, 1}});

    make({2}, {2});
    expect({{0x1000, 2}}, {{0x2000, 1}, {0x2001, 1}});

    make({1}, {1});
    expect({{0x1000, 1}}, {{0x2000, 1}});
}

TEST_F(test_iov, only_the_last_of_several_pieces_is_split)
{
    make({5, 7}, {3, 9});
    expect({{0x1000, 5}, {0x1040, 7}},
           {{0x2000, 3}, {0x2040, 8}, {0x2048, 1}});

    make({5, 1}, {5, 1});
    expect({{0x1000, 5}, {0x1040, 1}}, {{0x2000, 5}, {0x2040, 1}});
}

/* An empty segment is not the one with the last byte */
TEST_F(test_iov, empty_segments_are_left_out)
{
    make({0, 8, 0}, {0, 4, 0, 4, 0});
    expect({{0x1040, 8}}, {{0x2040, 4}, {0x20c0, 3}, {0x20c3, 1}});

    make({0}, {0});
    expect({}, {});
}

/* A work request of the most segments, and a GRH in front of it */
TEST_F(test_iov, the_longest_lists_have_room)
{
    std::vector<uint32_t> lengths(MLX5SIM_MAX_SGE + 1, 2);
    iovec from[MLX5SIM_IOV_MAX], to[MLX5SIM_IOV_MAX];
    unsigned num_from, num_to;

    make(lengths, lengths);
    mlx5sim_iov_plan(&m_plan, from, &num_from, to, &num_to);
    EXPECT_EQ(MLX5SIM_MAX_SGE + 1u, num_from);
    EXPECT_EQ((unsigned)MLX5SIM_IOV_MAX, num_to);
    EXPECT_EQ(1u, to[num_to - 1].iov_len);
}

/* Data in the work request itself */
TEST_F(test_iov, inline_data_come_from_where_they_are)
{
    char data[8];

    make({64, 8}, {72});
    m_plan.src[1].inl = data;
    expect({{0x1000, 64}, {(uintptr_t)data, 8}},
           {{0x2000, 71}, {0x2047, 1}});
}

} /* namespace */
