/* SPDX-License-Identifier: BSD-3-Clause */

/* What the switch decides, and the queue of frames that it delays. */

#include <gtest/gtest.h>

extern "C" {
#include <sim/switch/fault.h>
#include <sim/switch/heap.h>
}

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

const size_t BTH    = 42;
const size_t LENGTH = 1082;

mlx5sim_switch_rates_t all_rates(uint64_t seed)
{
    mlx5sim_switch_rates_t rates = {};
    rates.seed      = seed;
    rates.loss      = 20;
    rates.reorder   = 30;
    rates.duplicate = 40;
    rates.corrupt   = 50;
    rates.delay     = 1000;
    rates.jitter    = 500;
    return rates;
}

mlx5sim_switch_fate_t decide(const mlx5sim_switch_rates_t &rates, unsigned from,
                             unsigned to, uint64_t number)
{
    mlx5sim_switch_fate_t fate = {};
    mlx5sim_switch_decide(&rates, from, to, number, BTH, LENGTH, &fate);
    return fate;
}

std::vector<bool> losses(uint64_t seed, unsigned from, unsigned to)
{
    std::vector<bool> lost;
    for (unsigned i = 0; i < 10000; ++i) {
        lost.push_back(decide(all_rates(seed), from, to, i).lost);
    }
    return lost;
}

/* An Ethernet frame of a datagram */
std::vector<uint8_t> frame(bool is_ipv6, unsigned protocol, unsigned dport)
{
    std::vector<uint8_t> bytes(LENGTH);
    size_t udp = 14 + (is_ipv6 ? 40 : 20);
    bytes[12]  = is_ipv6 ? 0x86 : 0x08;
    bytes[13]  = is_ipv6 ? 0xdd : 0x00;
    bytes[14]  = is_ipv6 ? 0x60 : 0x45;
    bytes[14 + (is_ipv6 ? 6 : 9)] = protocol;
    bytes[udp + 2]                = dport >> 8;
    bytes[udp + 3]                = dport & 0xff;
    return bytes;
}

size_t find(const std::vector<uint8_t> &bytes)
{
    return mlx5sim_switch_find_bth(bytes.data(), bytes.size());
}

} // namespace


TEST(test_switch, the_same_frames_have_the_same_faults)
{
    EXPECT_EQ(losses(1, 0, 1), losses(1, 0, 1));
    EXPECT_NE(losses(1, 0, 1), losses(2, 0, 1));
    EXPECT_NE(losses(1, 0, 1), losses(1, 1, 0));
    EXPECT_NE(losses(1, 0, 1), losses(1, 0, 2));
}

TEST(test_switch, rates_are_of_a_thousand)
{
    const unsigned num = 100000;
    unsigned lost = 0, reordered = 0, duplicate = 0, corrupt = 0, both = 0;

    for (unsigned i = 0; i < num; ++i) {
        mlx5sim_switch_fate_t fate = decide(all_rates(7), 0, 1, i);
        lost      += fate.lost;
        reordered += fate.overtaken > 0;
        duplicate += fate.duplicate;
        both      += fate.lost && (fate.bit != MLX5SIM_SWITCH_NO_BIT);
        EXPECT_LE(fate.overtaken, (uint32_t)MLX5SIM_SWITCH_HOLD);
        for (uint64_t delay : fate.delay) {
            EXPECT_GE(delay, 1000u);
            EXPECT_LE(delay, 1500u);
        }
        if (fate.bit != MLX5SIM_SWITCH_NO_BIT) {
            ++corrupt;
            EXPECT_GE(fate.bit, BTH * 8);
            EXPECT_LT(fate.bit, LENGTH * 8);
        }
    }

    EXPECT_NEAR(lost, num * 0.02, 300);
    EXPECT_NEAR(reordered, num * 0.03, 300);
    EXPECT_NEAR(duplicate, num * 0.04, 300);
    EXPECT_NEAR(corrupt, num * 0.05, 300);
    EXPECT_NEAR(both, num * 0.02 * 0.05, 50); /* one says nothing of another */
}

TEST(test_switch, a_rate_is_part_of_a_greater_one)
{
    mlx5sim_switch_rates_t less = all_rates(1), none = {}, always = {};
    less.loss   = 5;
    always.loss = MLX5SIM_SWITCH_PER;

    for (unsigned i = 0; i < 10000; ++i) {
        if (decide(less, 0, 1, i).lost) {
            EXPECT_TRUE(decide(all_rates(1), 0, 1, i).lost);
        }
        EXPECT_FALSE(decide(none, 0, 1, i).lost);
        EXPECT_TRUE(decide(always, 0, 1, i).lost);
        EXPECT_EQ(decide(none, 0, 1, i).delay[0], 0u);
    }
}

TEST(test_switch, finds_packets_between_devices_only)
{
    EXPECT_EQ(find(frame(false, 17, 4791)), 42u);
    EXPECT_EQ(find(frame(true, 17, 4791)), 62u);
    EXPECT_EQ(find(frame(false, 17, 14791)), 42u); /* InfiniBand */
    EXPECT_EQ(find(frame(false, 17, 4790)), 0u);
    EXPECT_EQ(find(frame(false, 6, 4791)), 0u);
    EXPECT_EQ(find(frame(true, 6, 4791)), 0u);

    std::vector<uint8_t> bytes = frame(false, 17, 4791);
    bytes[21] = 1; /* not the first fragment */
    EXPECT_EQ(find(bytes), 0u);
    bytes    = frame(false, 17, 4791);
    bytes[14] = 0x46; /* an option in front of UDP */
    EXPECT_EQ(find(bytes), 0u);
    bytes[12] = 0; /* neither IPv4 nor IPv6 */
    EXPECT_EQ(find(bytes), 0u);
    bytes = frame(false, 17, 4791);
    for (size_t length = 0; length < 54; ++length) {
        bytes.resize(length);
        EXPECT_EQ(find(bytes), 0u);
    }
}

TEST(test_switch, settings_have_limits_and_units)
{
    mlx5sim_switch_rates_t rates = {};

    EXPECT_EQ(mlx5sim_switch_set(&rates, "loss", "10"), nullptr);
    EXPECT_EQ(mlx5sim_switch_set(&rates, "delay", "200us"), nullptr);
    EXPECT_EQ(mlx5sim_switch_set(&rates, "seed", "77"), nullptr);
    EXPECT_EQ(rates.loss, 10u);
    EXPECT_EQ(rates.delay, 200000u);
    EXPECT_EQ(rates.seed, 77u);
    EXPECT_EQ(mlx5sim_switch_set(&rates, "delay", "0"), nullptr);
    EXPECT_EQ(rates.delay, 0u);
    for (const char *value : {"", "-1", "1001", "1x", " 1"}) {
        EXPECT_STRNE(mlx5sim_switch_set(&rates, "loss", value), nullptr);
    }
    for (const char *value : {"", "5", "-1us", "1m", "11s", "us"}) {
        EXPECT_STRNE(mlx5sim_switch_set(&rates, "jitter", value), nullptr);
    }
    EXPECT_STREQ(mlx5sim_switch_set(&rates, "lose", "1"), "");
    EXPECT_EQ(rates.loss, 10u);
    EXPECT_EQ(rates.jitter, 0u);
}

TEST(test_switch, frames_leave_when_they_are_due)
{
    auto heap = std::make_unique<mlx5sim_switch_heap_t>();
    std::vector<mlx5sim_switch_frame_t*> frames;
    uint64_t last = 0, order = 0;

    for (unsigned i = 0; i < 1000; ++i) {
        auto *next = (mlx5sim_switch_frame_t*)calloc(1, sizeof(*frames[0]));
        next->due  = 100 + ((i * 7919) % 97);
        frames.push_back(next);
        ASSERT_EQ(mlx5sim_switch_heap_push(heap.get(), next), 0);
    }
    mlx5sim_switch_heap_hasten(heap.get(), frames[500], 50);
    EXPECT_EQ(mlx5sim_switch_heap_pop(heap.get(), 49), nullptr);
    EXPECT_EQ(mlx5sim_switch_heap_pop(heap.get(), 50), frames[500]);
    EXPECT_EQ(mlx5sim_switch_heap_pop(heap.get(), 99), nullptr);
    for (unsigned i = 1; i < 1000; ++i) {
        mlx5sim_switch_frame_t *next = mlx5sim_switch_heap_pop(heap.get(), 200);
        ASSERT_NE(next, nullptr);
        /* those of the same time in the order in which they came */
        EXPECT_TRUE((next->due > last) ||
                    ((next->due == last) && (next->order > order)));
        last  = next->due;
        order = next->order;
    }
    EXPECT_EQ(mlx5sim_switch_heap_pop(heap.get(), UINT64_MAX), nullptr);
    for (auto *next : frames) {
        free(next);
    }
}
