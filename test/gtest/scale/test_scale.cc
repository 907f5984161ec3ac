/* SPDX-License-Identifier: BSD-3-Clause */

#include <scale/scale_world.h>

#include <common/seed.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

using scale::params;
using scale::results;
using scale::traffic;

namespace scale {

inline void PrintTo(const traffic_name &value, std::ostream *os)
{
    *os << value.name;
}

} // namespace scale

namespace {

/* Each message arrives once, those to a peer in order, and no more queue pairs
 * are held than there may be */
void expect_right(const params &how, const results &got)
{
    EXPECT_TRUE(got.is_done) << got.messages << " messages after " << got.time
                             << " ns";
    EXPECT_EQ(0u, got.lost);
    EXPECT_EQ(0u, got.disordered);
    EXPECT_EQ(0u, got.failures);
    if (how.node > 0) {
        /* Some still hold what others leave when these take their shares */
        EXPECT_LT(got.max_node, 2 * how.node);
    }
    if (how.budget > 0) {
        EXPECT_LE(got.max_qps, how.budget + got.exceeded);
    }
}

/* One that has many peers. What is lost is repeated after long times, for which
 * all call progress: they do so more seldom than usual. */
params one_sender(traffic kind, unsigned budget, uint64_t messages)
{
    params how;

    how.kind     = kind;
    how.poll     = 50 * 1000;
    how.peers    = 400;
    how.budget   = budget;
    how.messages = messages;
    return how;
}

/* One another's peers */
params many_senders(traffic kind, unsigned budget, uint64_t messages)
{
    params how = one_sender(kind, budget, messages);

    how.senders = 12;
    return how;
}

class test_scale_random :
    public ::testing::TestWithParam<scale::traffic_name> {
protected:
    /* As it is meant to be, and with worse networks */
    static void run(params how)
    {
        for (unsigned percent : {0, 1, 10}) {
            SCOPED_TRACE(testing::Message() << "loss of " << percent << " %");
            how.loss = percent / 100.0;
            how.seed = seed::get(percent);
            expect_right(how, scale::run(how));
        }
    }
};

TEST_P(test_scale_random, one_reaches_all)
{
    for (unsigned budget : {2, 16}) {
        SCOPED_TRACE(testing::Message() << "budget " << budget);
        run(one_sender(GetParam().kind, budget, (budget == 2) ? 40 : 300));
    }
}

TEST_P(test_scale_random, all_reach_all)
{
    for (unsigned budget : {2, 8}) {
        SCOPED_TRACE(testing::Message() << "budget " << budget);
        run(many_senders(GetParam().kind, budget, (budget == 2) ? 10 : 60));
    }
}

/* Processes of a node, each of which may hold what others leave */
TEST_P(test_scale_random, processes_of_a_node_share_an_account)
{
    for (unsigned share : {2, 8}) {
        SCOPED_TRACE(testing::Message() << "share " << share);
        params how = many_senders(GetParam().kind, 0, (share == 2) ? 10 : 60);

        how.node = share * how.senders;
        run(how);
    }
}

/* What is under way is waited for, however long that takes: datagrams are
 * faster than messages here */
TEST_P(test_scale_random, slow_messages_are_not_lost)
{
    for (auto how : {one_sender(GetParam().kind, 8, 200),
                     many_senders(GetParam().kind, 4, 30)}) {
        how.slow = 0.2;
        run(how);
    }
}

INSTANTIATE_TEST_SUITE_P(
        , test_scale_random, ::testing::ValuesIn(scale::traffic_names),
        [](const ::testing::TestParamInfo<scale::traffic_name> &info) {
            return std::string(info.param.name);
        });

TEST(test_scale, the_same_seed_does_the_same)
{
    params how    = one_sender(traffic::zipf, 16, 300);
    results first = scale::run(how), second = scale::run(how);

    EXPECT_EQ(first.time, second.time);
    EXPECT_EQ(first.packets, second.packets);
    EXPECT_EQ(first.connects, second.connects);
    how.seed = 2;
    EXPECT_NE(first.time, scale::run(how).time);
}

/* Peers that fit connect once, whatever their steps are */
TEST(test_scale, nobody_is_given_up_without_need)
{
    for (auto how : {one_sender(traffic::stencil, 27, 1000),
                     many_senders(traffic::alltoall, 12, 100)}) {
        results got     = scale::run(how);
        uint64_t budget = how.budget;

        expect_right(how, got);
        EXPECT_EQ(0u, got.asked);
        EXPECT_LE(got.connects, (how.senders == 1) ? (budget - 1) :
                                (budget * (budget - 1) / 2));
    }
}

/* Connections per message */
double connects_per_message(traffic kind, unsigned budget)
{
    uint64_t connects = 0, messages = 0;

    for (uint64_t seed : {1, 2, 3}) {
        params how = one_sender(kind, budget, 4000);
        results got;

        how.loss = 0;
        how.poll = 2 * 1000;
        how.seed = seed;
        got      = scale::run(how);
        expect_right(how, got);
        connects += got.connects;
        messages += got.messages;
    }
    return static_cast<double>(connects) / messages;
}

/*
 * Two sets that don't fit together. It would be 0.064 if new connections were
 * not kept, or 0.062 if those that are used were not.
 */
TEST(test_scale, two_sets_of_peers_do_not_steal_from_each_other)
{
    EXPECT_LT(connects_per_message(traffic::sets, 16), 0.053);
}

/*
 * It would be 0.223 if peers that have refused were asked again at once, or
 * 0.247 if those that are used were not kept.
 */
TEST(test_scale, those_that_are_used_stay)
{
    EXPECT_LT(connects_per_message(traffic::hot, 128), 0.211);
}

/*
 * Who never stops sending gives way to those who wait, as who has a lock may be
 * one of them. It used to keep his connection until one was made beyond the
 * budget, a second later.
 */
TEST(test_scale, who_never_stops_sending_gives_way)
{
    params how = many_senders(traffic::lock, 8, 2500);
    results got;

    how.senders = 24;
    how.poll    = 2 * 1000;
    how.latency = 250 * 1000;
    how.window  = 1;
    how.loss    = 0;
    got         = scale::run(how);
    expect_right(how, got);
    EXPECT_EQ(0u, got.exceeded);
    EXPECT_LE(got.max_qps, how.budget);
    EXPECT_LT(got.per_message(got.connects), 0.05);
}

/* A peer costs little until something is sent to it, and not much more when its
 * queue pair has been given up. The tables are at their worst: they double when
 * there are more than 394. */
TEST(test_scale, a_peer_without_a_queue_pair_is_small)
{
    params how = one_sender(traffic::alltoall, 16, 395);
    results got;

    how.peers = 395;
    got       = scale::run(how);
    expect_right(how, got);
    EXPECT_LE(got.unused, 128);
    EXPECT_LE(got.evicted, 384);
}

} // namespace
