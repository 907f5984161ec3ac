/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_sep_conn_model.h"

#include "common/seed.h"


using namespace sep_conn_model;

/* Each schedule with all kinds of pairs of interfaces: with one QP per side, and
 * with two if one side or both send from a device context of their own */
class test_sep_conn_schedules : public test_conn,
                                public ::testing::WithParamInterface<split> {
protected:
    bool is_plain() const
    {
        return !GetParam().first && !GetParam().second;
    }
};

TEST_P(test_sep_conn_schedules, simultaneous_connect_keeps_one_qp_per_side)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        w.add();
        w.add();
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose);
        w.expect_connected(0, 1);
        /* Not one at a time: one ever */
        ASSERT_EQ(2u, w.num_made());
        ASSERT_EQ(1u, w.nodes[0]->find(w.nodes[1]->self)->established);
        ASSERT_EQ(1u, w.nodes[1]->find(w.nodes[0]->self)->established);
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 10u);
}

TEST_P(test_sep_conn_schedules, every_small_schedule_with_one_loss_connects)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        faults limits;
        limits.drops = 1;
        w.add();
        w.add();
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(2u, w.num_made());
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 100u);
}

TEST_P(test_sep_conn_schedules, every_small_schedule_with_a_duplicate_connects)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        faults limits;
        limits.dups = 1;
        w.add();
        w.add();
        w.starts = {{0, 1}};
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(2u, w.num_made());
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 5u);
}

TEST_P(test_sep_conn_schedules,
       every_schedule_with_loss_and_early_repeat_connects)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        faults limits;
        limits.drops   = 1;
        limits.dups    = 1;
        limits.hurries = 1;
        w.add();
        w.add();
        w.starts = {{0, 1}};
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(2u, w.num_made());
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 1000u);
}

TEST_P(test_sep_conn_schedules, every_small_schedule_after_a_qp_error_connects)
{
    exhaustive_chooser choose;
    unsigned runs = 0, resets = 0;

    do {
        world w(GetParam());
        random_chooser first(1);
        faults limits;
        limits.drops   = 1;
        limits.hurries = 1;
        node &a        = w.add();
        node &b        = w.add();
        a.start(a.conn(b.self));
        w.settle(first);

        a.reset(a.conn(b.self));
        w.starts = {{0, 1}};
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(4u, w.num_made());
        resets += b.conn(a.self).failed;
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 50u);
    EXPECT_EQ(runs, resets);
}

TEST_P(test_sep_conn_schedules, both_sides_lose_their_qp_at_once)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        random_chooser first(1);
        node &a = w.add();
        node &b = w.add();
        a.start(a.conn(b.self));
        w.settle(first);
        a.reset(a.conn(b.self));
        b.reset(b.conn(a.self));
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose);
        w.expect_connected(0, 1);
        ASSERT_EQ(4u, w.num_made()) << "one new QP per side is enough";
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 10u);
}

TEST_P(test_sep_conn_schedules, random_loss_duplication_and_reordering)
{
    uint64_t packets_lost = 0;

    for (unsigned i = 0; (i < seed::cases(4000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        world w(GetParam());
        faults limits;

        limits.drops   = choose.pick(12);
        limits.dups    = choose.pick(12);
        limits.hurries = choose.pick(12);
        packets_lost  += limits.drops;
        w.add();
        w.add();
        w.starts = {{0, 1}};
        if (choose.pick(2)) {
            w.starts.push_back({1, 0});
        }
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(2u, w.num_made()) << "loss must not cost a QP";
    }

    EXPECT_GT(packets_lost, seed::cases(1000));
}

TEST_P(test_sep_conn_schedules, three_interfaces_connect_at_random_to_all_and_themselves)
{
    for (unsigned i = 0; (i < seed::cases(2000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        world w(GetParam());
        faults limits;

        limits.drops   = choose.pick(20);
        limits.dups    = choose.pick(20);
        limits.hurries = choose.pick(20);
        for (unsigned i = 0; i < 3; ++i) {
            w.add();
            for (unsigned j = 0; j < 3; ++j) {
                w.starts.push_back({i, j});
            }
        }
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        w.expect_connected(0, 2);
        w.expect_connected(1, 2);
        for (auto &n : w.nodes) {
            ASSERT_EQ(3u, w.alive_qps(*n));
        }
        ASSERT_EQ(9u, w.num_made());
    }
}

TEST_P(test_sep_conn_schedules, random_errors_on_either_side_end_connected)
{
    uint64_t resets = 0, crossed = 0;

    for (unsigned i = 0; (i < seed::cases(6000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        world w(GetParam());
        faults limits;

        limits.drops   = choose.pick(10);
        limits.dups    = choose.pick(10);
        limits.hurries = choose.pick(10);
        limits.errors  = 1 + choose.pick(6);
        w.add();
        w.add();
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose, limits);
        use_all(w, choose);
        w.expect_connected(0, 1);
        for (auto &n : w.nodes) {
            ASSERT_EQ(1u, w.alive_qps(*n));
            for (auto &entry : n->conns) {
                resets += entry.second->failed;
            }
        }
        crossed += (w.num_made() > 6);
    }

    EXPECT_GT(resets, seed::cases(1000));
    EXPECT_GT(crossed, seed::cases(100));
}

TEST_P(test_sep_conn_schedules, random_resource_failures_leak_nothing)
{
    for (unsigned i = 0; (i < seed::cases(4000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        world w(GetParam());
        faults limits;

        limits.drops  = choose.pick(8);
        limits.dups   = choose.pick(8);
        limits.errors = choose.pick(4);
        for (unsigned i = 0; i < 2; ++i) {
            node &n            = w.add(3 + choose.pick(5));
            n.create_failures  = choose.pick(3);
            n.connect_failures = choose.pick(3);
            n.responder_create_failures  = choose.pick(3);
            n.initiator_connect_failures = choose.pick(3);
        }
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose, limits);
        for (auto &n : w.nodes) {
            n->create_failures            = 0;
            n->connect_failures           = 0;
            n->responder_create_failures  = 0;
            n->initiator_connect_failures = 0;
            n->env.max_retries  = 1000;
        }
        use_all(w, choose);
        w.expect_connected(0, 1);
        for (auto &n : w.nodes) {
            ASSERT_EQ(1u, w.alive_qps(*n));
        }
    }
}

TEST_P(test_sep_conn_schedules, peer_restarted_at_random_connects_beside_its_old_self)
{
    for (unsigned i = 0; (i < seed::cases(3000)) && !HasFailure(); ++i) {
        SCOPED_TRACE(testing::Message() << "run " << i);
        random_chooser choose(seed::get(i));
        world w(GetParam());
        faults limits;

        limits.drops = choose.pick(6);
        limits.dups  = choose.pick(6);
        w.add(6);
        w.add(6);
        w.starts = {{0, 1}, {1, 0}};
        /* Restart at any point of the exchange; its packets stay under way */
        for (size_t steps = choose.pick(12); steps > 0; --steps) {
            w.step(choose, limits);
        }
        w.starts.clear();
        w.restart(1);
        w.starts = {{1, 0}};
        w.nodes[0]->env.max_retries = 1000;
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(1u, w.alive_qps(*w.nodes[1]));
    }
}

/* Every point at which a process can go, with every order of what is under way
 * and of what its successor does */
TEST_P(test_sep_conn_schedules, a_process_killed_at_any_point_is_followed)
{
    exhaustive_chooser choose;
    unsigned runs = 0;

    do {
        world w(GetParam());
        faults limits;
        limits.kills = 1;
        w.add(6);
        w.add(6);
        w.starts = {{0, 1}};
        w.settle(choose, limits);
        if (w.nodes[1]->conns.empty()) {
            /* Killed when all was done: nobody has started since */
            w.nodes[1]->start(w.nodes[1]->conn(w.nodes[0]->self));
            w.settle(choose);
        }
        w.expect_connected(0, 1);
        ASSERT_EQ(1u, w.alive_qps(*w.nodes[1]));
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 20u);
}

/* One QP of a pair fails, and not the other */
TEST_P(test_sep_conn_schedules, every_qp_may_be_lost_in_every_small_schedule)
{
    exhaustive_chooser choose;
    unsigned runs = 0, lost_responders = 0;

    do {
        world w(GetParam());
        faults limits;
        limits.errors = 1;
        limits.dups   = 1;
        w.add();
        w.add();
        w.starts = {{0, 1}};
        w.settle(choose, limits);
        for (auto &entry : w.qps) {
            lost_responders += entry.second.is_responder &&
                               entry.second.is_error;
        }
        random_chooser last(1);
        use_all(w, last);
        w.expect_connected(0, 1);
        for (auto &n : w.nodes) {
            ASSERT_EQ(1u, w.alive_qps(*n));
        }
        ++runs;
    } while (choose.next() && !HasFailure());

    EXPECT_GT(runs, 50u);
    EXPECT_EQ(is_plain(), lost_responders == 0);
}

INSTANTIATE_TEST_SUITE_P(
        , test_sep_conn_schedules,
        ::testing::Values(split{"plain", false, false},
                          split{"both_split", true, true},
                          split{"first_split", true, false},
                          split{"second_split", false, true}),
        [](const ::testing::TestParamInfo<split> &info) {
            return std::string(info.param.name);
        });
