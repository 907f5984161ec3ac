/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets: their numbers, how many a message has, and the part of a plan that
 * one of them is.
 */

#include <sim/engine/engine.h>
#include <sim/engine/packet.h>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

/* Lists of both sides, as (address, length) */
typedef std::vector<std::pair<uint64_t, uint32_t>> list_t;

void put(const list_t &list, mlx5sim_seg_t *segs, unsigned *num_p)
{
    *num_p = 0;
    for (auto &item : list) {
        segs[(*num_p)++] = {item.first, item.second, 7, nullptr};
    }
}

list_t get(const mlx5sim_seg_t *segs, unsigned num)
{
    list_t list;

    for (unsigned i = 0; i < num; ++i) {
        EXPECT_EQ(7u, segs[i].lkey);
        EXPECT_EQ(nullptr, segs[i].inl);
        list.push_back({segs[i].addr, segs[i].length});
    }
    return list;
}

} // namespace

TEST(test_engine_packet, numbers_wrap)
{
    EXPECT_EQ(0u, mlx5sim_psn_add(0xffffff, 1));
    EXPECT_EQ(4u, mlx5sim_psn_add(0xfffffe, 6));
    EXPECT_EQ(1u, mlx5sim_psn_ahead(0, 0xffffff));
    EXPECT_EQ(0xffffffu, mlx5sim_psn_ahead(0xffffff, 0));
    EXPECT_FALSE(mlx5sim_psn_before(5, 5));
    EXPECT_TRUE(mlx5sim_psn_before(4, 5));
    EXPECT_TRUE(mlx5sim_psn_before(0xffffff, 0));
    EXPECT_FALSE(mlx5sim_psn_before(0, 0xffffff));
    /* the half that is ahead, and the half that is behind */
    EXPECT_FALSE(mlx5sim_psn_before(0x7fffff, 0));
    EXPECT_TRUE(mlx5sim_psn_before(0x800000, 0));
}

TEST(test_engine_packet, messages_are_cut_at_the_mtu)
{
    mlx5sim_qp_t qp = {};

    for (unsigned mtu = 1; mtu <= 5; ++mtu) {
        unsigned size = 128u << mtu;

        qp.path_mtu = mtu;
        EXPECT_EQ(size, mlx5sim_qp_mtu(&qp));
        EXPECT_EQ(1u, mlx5sim_packet_count(&qp, 0));
        EXPECT_EQ(1u, mlx5sim_packet_count(&qp, 1));
        EXPECT_EQ(1u, mlx5sim_packet_count(&qp, size));
        EXPECT_EQ(2u, mlx5sim_packet_count(&qp, size + 1));
        EXPECT_EQ((1u << 31) / size, mlx5sim_packet_count(&qp, 1u << 31));
    }
}

TEST(test_engine_packet, a_plan_is_cut_on_both_sides)
{
    static mlx5sim_plan_t whole, part;

    put({{1000, 10}, {2000, 0}, {3000, 300}, {5000, 90}}, whole.src,
        &whole.num_src);
    put({{7000, 350}, {8000, 50}}, whole.dst, &whole.num_dst);
    whole.length = 400;

    auto cut = [&](uint64_t offset, uint64_t length) {
        memcpy(&part, &whole, sizeof(part));
        mlx5sim_plan_cut(&part, offset, length);
        EXPECT_EQ(length, part.length);
    };

    cut(0, 400);
    EXPECT_EQ((list_t{{7000, 350}, {8000, 50}}), get(part.dst, part.num_dst));
    cut(0, 10);
    EXPECT_EQ((list_t{{1000, 10}}), get(part.src, part.num_src));
    EXPECT_EQ((list_t{{7000, 10}}), get(part.dst, part.num_dst));
    cut(5, 256);
    EXPECT_EQ((list_t{{1005, 5}, {3000, 251}}), get(part.src, part.num_src));
    EXPECT_EQ((list_t{{7005, 256}}), get(part.dst, part.num_dst));
    cut(10, 300);
    EXPECT_EQ((list_t{{3000, 300}}), get(part.src, part.num_src));
    cut(309, 91);
    EXPECT_EQ((list_t{{3299, 1}, {5000, 90}}), get(part.src, part.num_src));
    EXPECT_EQ((list_t{{7309, 41}, {8000, 50}}), get(part.dst, part.num_dst));
}

TEST(test_engine_packet, inline_data_are_cut_too)
{
    static mlx5sim_plan_t plan;
    char data[100];

    plan.src[0]  = {0, 60, 0, data};
    plan.src[1]  = {0, 40, 0, data + 60};
    plan.num_src = 2;
    put({{7000, 100}}, plan.dst, &plan.num_dst);
    plan.length  = 100;
    mlx5sim_plan_cut(&plan, 50, 20);
    ASSERT_EQ(2u, plan.num_src);
    EXPECT_EQ(data + 50, plan.src[0].inl);
    EXPECT_EQ(10u, plan.src[0].length);
    EXPECT_EQ(data + 60, plan.src[1].inl);
    EXPECT_EQ(10u, plan.src[1].length);
    EXPECT_EQ((list_t{{7050, 20}}), get(plan.dst, plan.num_dst));
}
