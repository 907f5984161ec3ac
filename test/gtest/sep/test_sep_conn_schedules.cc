/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_conn_model.h>

#include <common/seed.h>

#include <functional>


using namespace sep_conn_model;

/* Each schedule with all kinds of pairs of interfaces: with one QP per side,
 * and with two if one side or both send from a device context of their own */
class test_sep_conn_schedules : public test_conn,
                                public ::testing::WithParamInterface<split> {
protected:
    typedef std::vector<std::pair<size_t, size_t>> starts_t;

    static constexpr unsigned PATIENT = 1000; /* retries */

    bool is_plain() const
    {
        return !GetParam().first && !GetParam().second;
    }

    static model_conn &conn(world &w, size_t from, size_t to)
    {
        return w.nodes[from]->conn(w.nodes[to]->self);
    }

    /* Two interfaces that are about to start connections */
    static void two(world &w, const starts_t &starts,
                    unsigned max_retries = PATIENT)
    {
        w.add(max_retries);
        w.add(max_retries);
        w.starts = starts;
    }

    /* Two that are connected, always in the same way */
    static void connected_two(world &w)
    {
        random_chooser first(1);

        two(w, {});
        w.nodes[0]->start(conn(w, 0, 1));
        w.settle(first);
    }

    static void expect_none_was_replaced(const world &w)
    {
        ASSERT_EQ(2u, w.num_made());
    }

    static void expect_connected_once(const world &w)
    {
        w.expect_connected(0, 1);
        for (auto &n : w.nodes) {
            ASSERT_EQ(1u, w.alive_qps(*n));
        }
    }

    /* And nobody was told of a failure */
    static void expect_unharmed(world &w)
    {
        expect_connected_once(w);
        ASSERT_EQ(0u, conn(w, 0, 1).failed);
        ASSERT_EQ(0u, conn(w, 1, 0).failed);
    }

    /* Once for every sequence of choices, of which there must be enough */
    void every_schedule(unsigned more_than,
                        const std::function<void(world&, chooser&)> &run)
    {
        exhaustive_chooser choose;
        unsigned runs = 0;

        do {
            world w(GetParam());
            run(w, choose);
            ++runs;
        } while (choose.next() && !HasFailure());

        EXPECT_GT(runs, more_than);
    }

    /* They connect in every schedule with these faults */
    void every_schedule_connects(unsigned more_than, const starts_t &starts,
                                 const faults &limits,
                                 const std::function<void(world&)> &check)
    {
        every_schedule(more_than, [&](world &w, chooser &choose) {
            two(w, starts);
            w.settle(choose, limits);
            w.expect_connected(0, 1);
            check(w);
        });
    }

    /* So many random ones, others with each kind of pair, until one fails */
    void random_schedules(unsigned count,
                          const std::function<void(world&, chooser&)> &run)
    {
        const unsigned kind = 2 * GetParam().first + GetParam().second;

        for (unsigned i = 0; (i < seed::cases(count)) && !HasFailure(); ++i) {
            SCOPED_TRACE(testing::Message() << "run " << i);
            random_chooser choose(seed::get(4 * i + kind));
            world w(GetParam());

            run(w, choose);
        }
    }
};

TEST_P(test_sep_conn_schedules, simultaneous_connect_keeps_one_qp_per_side)
{
    every_schedule(10, [this](world &w, chooser &choose) {
        two(w, {{0, 1}, {1, 0}});
        w.settle(choose);
        w.expect_connected(0, 1);
        /* Not one at a time: one ever */
        ASSERT_EQ(2u, w.num_made());
        ASSERT_EQ(1u, w.nodes[0]->find(w.nodes[1]->self)->established);
        ASSERT_EQ(1u, w.nodes[1]->find(w.nodes[0]->self)->established);
    });
}

TEST_P(test_sep_conn_schedules, every_small_schedule_with_one_loss_connects)
{
    faults limits = {.drops = 1};
    every_schedule_connects(100, {{0, 1}, {1, 0}}, limits,
                            expect_none_was_replaced);
}

TEST_P(test_sep_conn_schedules, every_small_schedule_with_a_duplicate_connects)
{
    every_schedule_connects(5, {{0, 1}}, {.dups = 1}, expect_none_was_replaced);
}

TEST_P(test_sep_conn_schedules,
       every_schedule_with_loss_and_early_repeat_connects)
{
    faults limits = {.drops = 1, .dups = 1, .hurries = 1};
    every_schedule_connects(1000, {{0, 1}}, limits, expect_none_was_replaced);
}

TEST_P(test_sep_conn_schedules, every_small_schedule_after_a_qp_error_connects)
{
    unsigned runs = 0, resets = 0;
    every_schedule(50, [&](world &w, chooser &choose) {
        connected_two(w);
        w.nodes[0]->reset(conn(w, 0, 1));
        w.starts = {{0, 1}};
        w.settle(choose, {.drops = 1, .hurries = 1});
        w.expect_connected(0, 1);
        ASSERT_EQ(4u, w.num_made());
        resets += conn(w, 1, 0).failed;
        ++runs;
    });
    EXPECT_EQ(runs, resets);
}

TEST_P(test_sep_conn_schedules, both_sides_lose_their_qp_at_once)
{
    every_schedule(10, [this](world &w, chooser &choose) {
        connected_two(w);
        w.nodes[0]->reset(conn(w, 0, 1));
        w.nodes[1]->reset(conn(w, 1, 0));
        w.starts = {{0, 1}, {1, 0}};
        w.settle(choose);
        w.expect_connected(0, 1);
        ASSERT_EQ(4u, w.num_made()) << "one new QP per side is enough";
    });
}

TEST_P(test_sep_conn_schedules, random_loss_duplication_and_reordering)
{
    uint64_t packets_lost = 0;

    random_schedules(1000, [&](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(12), .dups = choose.pick(12),
                         .hurries = choose.pick(12)};

        packets_lost += limits.drops;
        two(w, {{0, 1}});
        if (choose.pick(2)) {
            w.starts.push_back({1, 0});
        }
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(2u, w.num_made()) << "loss must not cost a QP";
    });

    EXPECT_GT(packets_lost, seed::cases(250));
}

TEST_P(test_sep_conn_schedules,
       three_interfaces_connect_at_random_to_all_and_themselves)
{
    random_schedules(500, [](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(20), .dups = choose.pick(20),
                         .hurries = choose.pick(20)};

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
    });
}

TEST_P(test_sep_conn_schedules, random_errors_on_either_side_end_connected)
{
    uint64_t resets = 0, crossed = 0;

    random_schedules(1500, [&](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(10), .dups = choose.pick(10),
                         .hurries = choose.pick(10),
                         .errors = 1 + choose.pick(6)};
        two(w, {{0, 1}, {1, 0}});
        w.settle(choose, limits);
        use_all(w, choose);
        expect_connected_once(w);
        for (auto &n : w.nodes) {
            for (auto &entry : n->conns) {
                resets += entry.second->failed;
            }
        }
        crossed += (w.num_made() > 6);
    });

    EXPECT_GT(resets, seed::cases(250));
    EXPECT_GT(crossed, seed::cases(25));
}

TEST_P(test_sep_conn_schedules, random_resource_failures_leak_nothing)
{
    random_schedules(1000, [this](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(8), .dups = choose.pick(8),
                         .errors = choose.pick(4)};

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
            n->env.max_retries            = PATIENT;
        }
        use_all(w, choose);
        expect_connected_once(w);
    });
}

TEST_P(test_sep_conn_schedules,
       peer_restarted_at_random_connects_beside_its_old_self)
{
    random_schedules(750, [this](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(6), .dups = choose.pick(6)};
        two(w, {{0, 1}, {1, 0}}, 6);
        /* Restart at any point of the exchange; its packets stay under way */
        for (size_t steps = choose.pick(12); steps > 0; --steps) {
            w.step(choose, limits);
        }
        w.starts.clear();
        w.restart(1);
        w.starts = {{1, 0}};
        w.nodes[0]->env.max_retries = PATIENT;
        w.settle(choose, limits);
        w.expect_connected(0, 1);
        ASSERT_EQ(1u, w.alive_qps(*w.nodes[1]));
    });
}

/* Every point at which a process can go, with every order of what is under way
 * and of what its successor does */
TEST_P(test_sep_conn_schedules, a_process_killed_at_any_point_is_followed)
{
    every_schedule(20, [&](world &w, chooser &choose) {
        two(w, {{0, 1}}, 6);
        w.settle(choose, {.kills = 1});
        if (w.nodes[1]->conns.empty()) {
            /* Killed when all was done: nobody has started since */
            w.nodes[1]->start(conn(w, 1, 0));
            w.settle(choose);
        }
        w.expect_connected(0, 1);
        ASSERT_EQ(1u, w.alive_qps(*w.nodes[1]));
    });
}

/* One QP of a pair fails, and not the other */
TEST_P(test_sep_conn_schedules, every_qp_may_be_lost_in_every_small_schedule)
{
    unsigned lost_responders = 0;
    every_schedule(50, [&](world &w, chooser &choose) {
        two(w, {{0, 1}});
        w.settle(choose, {.dups = 1, .errors = 1});
        for (auto &entry : w.qps) {
            lost_responders += entry.second.is_responder &&
                               entry.second.is_error;
        }
        random_chooser last(1);
        use_all(w, last);
        expect_connected_once(w);
    });
    EXPECT_EQ(is_plain(), lost_responders == 0);
}

/* Whatever an impostor says, and whenever: who he poses as gets through */
TEST_P(test_sep_conn_schedules, an_impostor_does_not_prevent_a_connection)
{
    faults limits = {.drops = 1, .forged = 1};
    every_schedule_connects(300, {{0, 1}}, limits, expect_unharmed);
}

TEST_P(test_sep_conn_schedules, an_impostor_does_not_prevent_a_simultaneous_one)
{
    faults limits = {.forged = 1};
    every_schedule_connects(1000, {{0, 1}, {1, 0}}, limits, expect_unharmed);
}

/* He has a single packet in hand at each of two points of an exchange */
TEST_P(test_sep_conn_schedules, two_packets_of_an_impostor_prevent_nothing)
{
    every_schedule_connects(1000, {{0, 1}}, {.forged = 2}, expect_unharmed);
}

TEST_P(test_sep_conn_schedules, an_impostor_does_not_end_a_connection)
{
    every_schedule(50, [&](world &w, chooser &choose) {
        connected_two(w);
        w.settle(choose, {.hurries = 1, .forged = 2});
        expect_unharmed(w);
        ASSERT_EQ(2u, w.num_made()) << "the QPs in use were replaced";
    });
}

/* Nor a later one, by what he leaves behind */
TEST_P(test_sep_conn_schedules, after_an_impostor_a_lost_connection_comes_back)
{
    every_schedule(50, [&](world &w, chooser &choose) {
        connected_two(w);
        w.nodes[0]->reset(conn(w, 0, 1));
        w.starts = {{0, 1}};
        w.settle(choose, {.forged = 1});
        expect_connected_once(w);
    });
}

TEST_P(test_sep_conn_schedules, an_impostor_at_random_among_all_other_faults)
{
    random_schedules(1000, [this](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(8), .dups = choose.pick(8),
                         .hurries = choose.pick(8), .errors = choose.pick(4),
                         .forged = 1 + choose.pick(8)};
        two(w, {{0, 1}, {1, 0}});
        w.settle(choose, limits);
        use_all(w, choose);
        expect_connected_once(w);
    });
}

/*
 * Giving up connections in order: what is sent arrives, once and in order
 * (world::deliver), and QPs go when both sides have no use for them
 */

/* Neither side refers to the connection any more: periods pass until it is
 * gone */
static void expect_nothing_left(world &w)
{
    random_chooser last(1);
    faults limits;

    for (unsigned period = 0; period < 4; ++period) {
        for (auto &n : w.nodes) {
            for (auto &entry : n->conns) {
                model_conn &c = *entry.second;

                EXPECT_EQ(0u, c.super.refcount);
                if ((c.super.state == UCT_SEP_CONN_STATE_CONNECTED) ||
                    (c.super.state == UCT_SEP_CONN_STATE_DISCONNECTING)) {
                    n->quit(c);
                    break; /* It may be gone */
                }
            }
        }
        w.settle(last, limits);
    }
    for (auto &n : w.nodes) {
        ASSERT_EQ(0u, n->conns.size());
        ASSERT_EQ(0u, w.alive_qps(*n));
    }
}

/* Both have references to what is connected, or not */
static void connected_pair(world &w, bool first, bool second,
                           unsigned max_retries = 1000)
{
    random_chooser choose(1);

    w.forgets = true;
    w.add(max_retries);
    w.add(max_retries);
    w.starts = {{0, 1}, {1, 0}};
    w.settle(choose);
    for (size_t i = 0; i < 2; ++i) {
        if (!(i ? second : first)) {
            w.nodes[i]->leave(*w.nodes[i]->find(w.nodes[1 - i]->self));
        }
    }
}

static void leave_all(world &w)
{
    for (auto &n : w.nodes) {
        std::vector<model_conn*> used;

        for (auto &entry : n->conns) {
            if (entry.second->super.refcount > 0) {
                used.push_back(entry.second.get());
            }
        }
        for (model_conn *c : used) {
            n->leave(*c);
        }
    }
}

static void expect_all_arrived(const world &w)
{
    for (size_t i = 0; i < 2; ++i) {
        node &from = *w.nodes[i], &to = *w.nodes[1 - i];

        ASSERT_EQ(from.sent[uct_sep_iface_addr_id(&to.self.iface)],
                  to.received[uct_sep_iface_addr_id(&from.self.iface)]);
    }
}

TEST_P(test_sep_conn_schedules, a_connection_that_nobody_uses_is_given_up)
{
    every_schedule(50, [&](world &w, chooser &choose) {
        connected_pair(w, false, false);
        w.settle(choose, {.drops = 1, .dups = 1, .hurries = 1, .quits = 1});
        expect_nothing_left(w);
        ASSERT_EQ(2u, w.num_made());
    });
}

TEST_P(test_sep_conn_schedules, both_sides_give_up_at_once)
{
    every_schedule(100, [&](world &w, chooser &choose) {
        connected_pair(w, false, false);
        w.settle(choose, {.drops = 1, .dups = 1, .quits = 2});
        expect_nothing_left(w);
        ASSERT_EQ(2u, w.num_made());
    });
}

TEST_P(test_sep_conn_schedules, giving_up_crosses_connecting)
{
    unsigned kept = 0, anew = 0;
    every_schedule(100, [&](world &w, chooser &choose) {
        connected_pair(w, false, false);
        w.starts = {{1, 0}};
        w.settle(choose, {.quits = 1, .sends = 1});
        w.expect_connected(0, 1);
        expect_all_arrived(w);
        kept += (w.num_made() == 2);
        anew += (w.num_made() == 4);
        leave_all(w);
        expect_nothing_left(w);
    });
    EXPECT_GT(kept, 0u);
    EXPECT_GT(anew, 0u);
}

TEST_P(test_sep_conn_schedules, who_gives_up_may_connect_at_once)
{
    every_schedule(100, [&](world &w, chooser &choose) {
        connected_pair(w, false, false);
        w.starts = {{0, 1}};
        w.settle(choose, {.drops = 1, .quits = 1, .sends = 1});
        w.expect_connected(0, 1);
        expect_all_arrived(w);
        leave_all(w);
        expect_nothing_left(w);
    });
}

/* A copy of a request that was refused arrives when it would be agreed to, and
 * the first side is using the connection again */
TEST_P(test_sep_conn_schedules, a_late_copy_of_a_refused_request_ends_nothing)
{
    random_chooser choose(1);
    world w(GetParam());

    connected_pair(w, false, true);
    w.nodes[0]->quit(conn(w, 0, 1));
    ASSERT_EQ(1u, w.wire.size());
    auto late = w.wire[0].bytes;
    w.settle(choose);
    ASSERT_EQ(2u, conn(w, 0, 1).established) << "it was not refused";

    w.nodes[0]->start(conn(w, 0, 1));
    w.nodes[0]->send_message(conn(w, 0, 1));
    w.nodes[1]->leave(conn(w, 1, 0));
    w.nodes[1]->receive(late);
    w.settle(choose);
    w.expect_connected(0, 1);
    ASSERT_EQ(2u, w.num_made());
    expect_all_arrived(w);

    /* Later ones of the same QP count */
    w.nodes[0]->leave(conn(w, 0, 1));
    expect_nothing_left(w);
}

TEST_P(test_sep_conn_schedules, giving_up_crosses_a_lost_qp)
{
    every_schedule(50, [&](world &w, chooser &choose) {
        connected_pair(w, false, true);
        w.nodes[1]->reset(conn(w, 1, 0));
        w.starts = {{1, 0}};
        w.settle(choose, {.drops = 1, .dups = 1, .quits = 1});
        w.expect_connected(0, 1);
        leave_all(w);
        expect_nothing_left(w);
    });
}

/* At any point of the exchange */
TEST_P(test_sep_conn_schedules, nothing_is_left_of_an_interface_that_has_closed)
{
    every_schedule(20, [&](world &w, chooser &choose) {
        w.forgets = true;
        two(w, {{1, 0}}, 6);
        w.settle(choose, {.dups = 1, .closes = 1});
        ASSERT_EQ(0u, w.nodes[0]->conns.size());
        ASSERT_EQ(0u, w.alive_qps(*w.nodes[0]));
    });
}

TEST_P(test_sep_conn_schedules, an_interface_that_has_closed_fails_nobody)
{
    every_schedule(0, [&](world &w, chooser &choose) {
        connected_pair(w, true, false);
        w.nodes[1]->farewell();
        w.restart(1);
        w.settle(choose);
        model_conn &c = *w.nodes[0]->conns.begin()->second;
        ASSERT_EQ(0u, c.failed) << "who is idle is told by his next operation";
        ASSERT_EQ(1u, w.alive_qps(*w.nodes[0]));
        w.nodes[0]->leave(c);
        w.settle(choose);
        ASSERT_EQ(0u, w.nodes[0]->conns.size());
        ASSERT_EQ(0u, w.alive_qps(*w.nodes[0]));
    });
}

TEST_P(test_sep_conn_schedules, random_uses_and_ends_lose_nothing)
{
    uint64_t messages = 0, made = 0;

    random_schedules(1500, [&](world &w, chooser &choose) {
        connected_pair(w, choose.pick(2), choose.pick(2));
        for (unsigned round = 0; round < 3; ++round) {
            faults limits = {.drops = choose.pick(4), .dups = choose.pick(6),
                             .hurries = choose.pick(4), .quits = choose.pick(5),
                             .sends = choose.pick(8)};

            for (size_t i = 0; i < 2; ++i) {
                for (unsigned n = choose.pick(3); n > 0; --n) {
                    w.starts.push_back({i, 1 - i});
                    w.leaves.push_back({i, 1 - i});
                }
            }
            w.settle(choose, limits);
            expect_all_arrived(w);
        }
        messages += w.nodes[0]->sent.begin() == w.nodes[0]->sent.end() ? 0 :
                    w.nodes[0]->sent.begin()->second;
        made     += w.num_made() - 2;
        w.leaves.clear();
        leave_all(w);
        expect_nothing_left(w);
    });

    EXPECT_GT(messages, seed::cases(1500));
    EXPECT_GT(made, seed::cases(250));
}

/*
 * Connections fall asleep that have users on both sides, and are woken up
 */

static void used_pair(world &w)
{
    connected_pair(w, true, true);
    w.sleeps = true;
}

/* Both users send again, and have no use for it then */
static void expect_wakes(world &w)
{
    random_chooser last(1);

    for (size_t i = 0; i < 2; ++i) {
        w.nodes[i]->start(w.nodes[i]->conn(w.nodes[1 - i]->self));
    }
    w.settle(last);
    w.expect_connected(0, 1);
    for (size_t i = 0; i < 2; ++i) {
        w.nodes[i]->send_message(*w.nodes[i]->find(w.nodes[1 - i]->self));
    }
    w.settle(last);
    expect_all_arrived(w);
    leave_all(w);
    expect_nothing_left(w);
}

/* The first side asks the second one whether it may fall asleep */
static void ask_to_sleep(world &w, chooser &choose)
{
    used_pair(w);
    w.nodes[0]->quit(*w.nodes[0]->find(w.nodes[1]->self), choose.pick(2));
}

TEST_P(test_sep_conn_schedules, a_connection_falls_asleep_and_wakes_up)
{
    size_t slept = 0, refused = 0;
    every_schedule(50, [&](world &w, chooser &choose) {
        ask_to_sleep(w, choose);
        w.settle(choose, {.drops = 1, .dups = 1, .hurries = 1});
        slept   += (w.num_slept > 0);
        refused += (w.num_slept == 0);
        expect_wakes(w);
    });
    EXPECT_GT(slept, 0u);
    EXPECT_GT(refused, 0u);
}

TEST_P(test_sep_conn_schedules, both_sides_put_it_to_sleep_at_once)
{
    every_schedule(10, [&](world &w, chooser &choose) {
        ask_to_sleep(w, choose);
        w.nodes[1]->quit(conn(w, 1, 0), choose.pick(2));
        w.settle(choose, {.drops = 1});
        expect_wakes(w);
    });
}

TEST_P(test_sep_conn_schedules, falling_asleep_crosses_sending)
{
    every_schedule(20, [&](world &w, chooser &choose) {
        ask_to_sleep(w, choose);
        w.starts = {{0, 1}};
        w.settle(choose, {.sends = 1});
        expect_all_arrived(w);
        expect_wakes(w);
    });
}

TEST_P(test_sep_conn_schedules, falling_asleep_crosses_the_end_of_all_use)
{
    every_schedule(20, [&](world &w, chooser &choose) {
        ask_to_sleep(w, choose);
        w.leaves = {{0, 1}, {1, 0}};
        w.settle(choose, {.drops = 1});
        leave_all(w);
        expect_nothing_left(w);
    });
}

TEST_P(test_sep_conn_schedules, falling_asleep_crosses_a_lost_qp)
{
    every_schedule(5, [&](world &w, chooser &choose) {
        ask_to_sleep(w, choose);
        w.settle(choose, {.errors = 1});
        random_chooser last(1);
        use_all(w, last);
        w.expect_connected(0, 1);
    });
}

TEST_P(test_sep_conn_schedules, falling_asleep_crosses_a_close)
{
    every_schedule(5, [&](world &w, chooser &choose) {
        used_pair(w);
        for (auto &n : w.nodes) {
            n->env.max_retries = 6;
        }
        w.nodes[0]->quit(conn(w, 0, 1), choose.pick(2));
        w.settle(choose, {.closes = 1});
        leave_all(w);
        expect_nothing_left(w);
    });
}

TEST_P(test_sep_conn_schedules, random_sleep_and_use_lose_nothing)
{
    uint64_t slept = 0, messages = 0;

    random_schedules(1500, [&](world &w, chooser &choose) {
        used_pair(w);
        for (unsigned round = 0; round < 4; ++round) {
            faults limits = {.drops = choose.pick(4), .dups = choose.pick(6),
                             .hurries = choose.pick(4),
                             .evicts = choose.pick(6), .sends = choose.pick(8)};

            for (size_t i = 0; i < 2; ++i) {
                for (unsigned n = choose.pick(3); n > 0; --n) {
                    w.starts.push_back({i, 1 - i});
                }
            }
            w.settle(choose, limits);
            expect_all_arrived(w);
            messages += limits.sends;
        }
        slept += w.num_slept;
        expect_wakes(w);
    });
    EXPECT_GT(slept, seed::cases(1000));
    EXPECT_GT(messages, seed::cases(1000));
}

/* More peers than queue pairs: nobody waits for ever, and nobody has more than
 * he may have */
TEST_P(test_sep_conn_schedules, random_crowds_share_few_queue_pairs)
{
    uint64_t full = 0, slept = 0;

    random_schedules(300, [&](world &w, chooser &choose) {
        const bool is_circle = choose.pick(2);
        const unsigned num   = 3 + choose.pick(3);
        faults limits = {.drops = choose.pick(10), .dups = choose.pick(10)};
        w.is_tight   = true;
        w.sleeps     = true;
        w.forgets    = true;
        for (unsigned i = 0; i < num; ++i) {
            w.add().max_qps = is_circle ? 2 : (2 + choose.pick(2));
        }
        for (unsigned i = 0; i < num; ++i) {
            for (unsigned j = 0; j < num; ++j) {
                if (is_circle ? (j == (i + 1) % num) : (choose.pick(3) > 0)) {
                    w.starts.push_back({i, j});
                }
            }
        }
        unsigned steps = 0;
        while (w.step(choose, limits)) {
            ASSERT_LT(++steps, 100000u) << "does not come to rest";
            for (auto &n : w.nodes) {
                ASSERT_LE(w.alive_qps(*n), n->max_qps);
            }
        }
        for (auto &n : w.nodes) {
            for (auto &entry : n->conns) {
                ASSERT_EQ(0u, entry.second->to_send) << "waits for ever";
            }
            for (auto &m : w.nodes) {
                if (m != n) {
                    ASSERT_EQ(n->sent[uct_sep_iface_addr_id(&m->self.iface)],
                              m->received[uct_sep_iface_addr_id(
                                      &n->self.iface)]);
                }
            }
        }
        full  += w.num_full;
        slept += w.num_slept;
    });
    EXPECT_GT(full, seed::cases(30));
    EXPECT_GT(slept, seed::cases(200));
}

/* Strangers beyond the limit wait, and are not refused */
TEST_P(test_sep_conn_schedules, random_crowds_connect_through_a_narrow_door)
{
    uint64_t busy = 0;

    random_schedules(75, [&](world &w, chooser &choose) {
        faults limits = {.drops = choose.pick(6), .dups = choose.pick(6)};

        w.forgets    = true;
        for (unsigned i = 0; i < 12; ++i) {
            w.add(20);
            if (i > 0) {
                w.starts.push_back({i, 0});
            }
        }
        w.nodes[0]->env.max_half_open = 2;
        while (w.step(choose, limits)) {
            ASSERT_LE(w.nodes[0]->env.num_half_open, 2u);
            for (auto &p : w.wire) {
                uct_sep_conn_msg_t msg;

                if ((uct_sep_conn_msg_parse(p.bytes.data(), p.bytes.size(),
                                            &msg) == UCT_SEP_CONN_PARSE_OK) &&
                    (msg.type == UCT_SEP_CONN_MSG_REJ)) {
                    ASSERT_EQ(UCT_SEP_CONN_REJ_BUSY, msg.reason);
                    ++busy;
                }
            }
        }
        for (unsigned i = 1; i < 12; ++i) {
            w.expect_connected(0, i);
        }
    });
    EXPECT_GT(busy, seed::cases(75));
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
