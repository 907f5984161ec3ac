/* SPDX-License-Identifier: BSD-3-Clause */

extern "C" {
#include <sim/sched/pace.h>
}

#include <gtest/gtest.h>

namespace {

/* Deferred execution that only waits, and a machine that wakes it late */
class test_pace : public testing::Test {
protected:
    /* @return whether the next round came without a pause */
    bool round(uint64_t late)
    {
        uint64_t next = mlx5sim_pace_pause(&m_pace, m_now);

        if (next == m_now) {
            return true;
        }
        EXPECT_EQ(m_now + MLX5SIM_PACE_NS, next);
        m_now = next + late;
        mlx5sim_pace_wake(&m_pace, next, m_now);
        return false;
    }

    unsigned rounds_without_pause()
    {
        unsigned count = 0;

        while (round(0)) {
            ++count;
        }
        return count;
    }

    mlx5sim_pace_t m_pace = {};
    uint64_t       m_now  = 1000000000;
};

} // namespace


TEST_F(test_pace, every_round_pauses_if_it_is_woken_in_time)
{
    for (unsigned i = 0; i < 1000; ++i) {
        EXPECT_FALSE(round(i % MLX5SIM_PACE_LATE_NS));
    }
}

/* It did one round in each time slice of others */
TEST_F(test_pace, rounds_that_were_missed_follow_without_pauses)
{
    EXPECT_FALSE(round(3000000));
    EXPECT_EQ(3000000u / MLX5SIM_PACE_NS, rounds_without_pause());
    EXPECT_EQ(0u, rounds_without_pause());
}

TEST_F(test_pace, a_stopped_process_does_not_make_up_for_all_of_it)
{
    EXPECT_FALSE(round(1000000000000ul));
    EXPECT_EQ((unsigned)MLX5SIM_PACE_MAX_OWED, rounds_without_pause());
}

/* Waiting for a peer is no pause: that is as long as it is */
TEST_F(test_pace, other_sleeps_owe_nothing)
{
    uint64_t next = mlx5sim_pace_pause(&m_pace, m_now);

    m_now += 5000000;
    mlx5sim_pace_wake(&m_pace, next - 1, m_now);
    EXPECT_EQ(0u, rounds_without_pause());
}
