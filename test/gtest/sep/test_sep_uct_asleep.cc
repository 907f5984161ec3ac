/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/conn/sep_cm.h>
#include <uct/ib/sep/ep/sep_link.h>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

using namespace sep_uct_test;

namespace {

/*
 * Workers that make no progress and have no endpoints, as those of OpenSHMEM's
 * main threads while others use contexts: peers with a budget of queue pairs
 * connect, write, give up the connection, and connect again. The device
 * executes at once, or some time later.
 */
class test_sep_uct_asleep : public ::testing::TestWithParam<const char*> {
protected:
    static constexpr unsigned NUM_TURNS = 12;

    struct target {
        std::unique_ptr<entity> e;
        std::unique_ptr<memory> mem;
        uct_rkey_bundle_t       rkey;
        uct_ep_h                ep = nullptr;
    };

    bool has_device()
    {
        return on_device({{"MLX5SIM_EXEC", GetParam()}});
    }

    /* The sender has room for one connection of its own. Where a ring could
     * hold messages, the thread has to see. */
    void open(const settings &sender = {{"MAX_QPS", "2"}, {"EAGER", "n"}},
              const settings &first  = {{"EAGER", "n"}},
              const settings &second = {{"EAGER", "n"}})
    {
        m_sender = entity::create(sender);
        ASSERT_NE(nullptr, m_sender);
        for (auto &t : m_targets) {
            t.e = entity::create(*m_sender,
                                 (&t == &m_targets[0]) ? first : second);
            ASSERT_NE(nullptr, t.e);
            t.mem = std::make_unique<memory>(m_sender->md(), 64);
            bytes packed = t.mem->packed_rkey();
            ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_sender->component(),
                                              packed.data(), &t.rkey));
            t.ep = m_sender->connect(t.e->addr());
            ASSERT_NE(nullptr, t.ep);
        }
    }

    void TearDown() override
    {
        for (auto &t : m_targets) {
            if (t.ep != nullptr) {
                m_sender->destroy(t.ep);
                uct_rkey_release(m_sender->component(), &t.rkey);
            }
            t.mem.reset();
            t.e.reset();
        }
        m_sender.reset();
    }

    /* The thread is needed to see completions that libibverbs has */
    void expect_qps(target &t, unsigned most)
    {
        if (!t.e->is_verbs()) {
            EXPECT_GE(most, t.e->num_qps());
        }
    }

    /* Those that wait for the thread */
    unsigned num_left(target &t)
    {
        ucs_async_context_t *async = t.e->sep()->super.worker->async;

        UCS_ASYNC_BLOCK(async);
        unsigned count = t.e->sep()->conn.num_left;
        UCS_ASYNC_UNBLOCK(async);
        return count;
    }

    /* How often it has asked again for a connection */
    uint64_t num_retries()
    {
        uct_sep_cm_stats_t stats;

        uct_sep_cm_get_stats(m_sender->sep()->conn.cm, &stats);
        return stats.tx_retries;
    }

    /* Only the sender progresses; whether it has been posted */
    bool try_put(target &t, uint64_t value)
    {
        ucs_status_t status;

        m_sender->progress();
        status = uct_ep_put_short(t.ep, &value, sizeof(value), t.mem->va(),
                                  t.rkey.rkey);
        EXPECT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE))
                << ucs_status_string(status);
        return status == UCS_OK;
    }

    void put(target &t, uint64_t value)
    {
        volatile uint64_t *word = reinterpret_cast<uint64_t*>(t.mem->ptr());
        bool is_posted          = false;

        ASSERT_TRUE(m_sender->wait([&]() {
            is_posted = is_posted || try_put(t, value);
            m_sender->progress();
            return (is_posted && (*word == value)) || HasFailure();
        })) << value;
    }

    void say(target &t, uint64_t value)
    {
        ASSERT_TRUE(m_sender->wait([&]() {
            m_sender->progress();
            return uct_ep_am_short(t.ep, 1, value, nullptr, 0) == UCS_OK;
        }));
    }

    /* All messages, in order */
    void hear(target &t, uint64_t count)
    {
        ASSERT_TRUE(t.e->wait([&]() {
            m_sender->progress();
            t.e->progress();
            return (t.e->messages.size() >= count) && (t.e->num_qps() <= 1);
        })) << t.e->messages.size() << " messages, " << t.e->num_qps()
            << " queue pairs";
        ASSERT_EQ(count, t.e->messages.size());
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t value;

            memcpy(&value, t.e->messages[i].data.data(), sizeof(value));
            EXPECT_EQ(i + 1, value);
        }
    }

    std::unique_ptr<entity> m_sender;
    target                  m_targets[2];
};

/* Nobody knows of the connections that are made while it sleeps */
TEST_P(test_sep_uct_asleep, connections_come_and_go_while_a_worker_sleeps)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open());
    for (unsigned turn = 1; turn <= NUM_TURNS; ++turn) {
        for (auto &t : m_targets) {
            ASSERT_NO_FATAL_FAILURE(put(t, turn));
            /* One is perhaps being flushed */
            expect_qps(t, 2);
        }
    }
    EXPECT_EQ(0u, m_sender->sep()->conn.budget.num_exceeded);
    EXPECT_LT(NUM_TURNS, m_sender->sep()->conn.budget.num_asked);
}

/* Its thread knows of the first connection: that stays until it is awake */
TEST_P(test_sep_uct_asleep, one_that_is_known_is_left_to_the_thread)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open());
    for (auto &t : m_targets) {
        ASSERT_NO_FATAL_FAILURE(put(t, 100));
        ASSERT_TRUE(t.e->wait([&]() {
            t.e->progress();
            return !ucs_list_is_empty(&t.e->sep()->conn.active);
        }));
    }
    for (unsigned turn = 1; turn <= NUM_TURNS; ++turn) {
        for (auto &t : m_targets) {
            ASSERT_NO_FATAL_FAILURE(put(t, turn));
            expect_qps(t, 3);
        }
    }
    EXPECT_EQ(0u, m_sender->sep()->conn.budget.num_exceeded);

    for (auto &t : m_targets) {
        EXPECT_EQ(1u, num_left(t));
        ASSERT_TRUE(t.e->wait([&]() {
            t.e->progress();
            return t.e->num_qps() <= 1;
        }));
        EXPECT_EQ(0u, num_left(t));
        EXPECT_TRUE(t.e->failures.empty());
    }
}

/* What they have said is heard when it wakes up, in order */
TEST_P(test_sep_uct_asleep, messages_of_connections_that_are_gone_are_heard)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open());
    for (uint64_t turn = 1; turn <= NUM_TURNS; ++turn) {
        for (auto &t : m_targets) {
            ASSERT_NO_FATAL_FAILURE(say(t, turn));
            if (turn == 1) {
                ASSERT_TRUE(t.e->wait([&]() {
                    t.e->progress();
                    return t.e->messages.size() == 1;
                }));
            }
        }
    }
    for (auto &t : m_targets) {
        /* Their numbers are in the completion queue */
        EXPECT_LE(NUM_TURNS - 1, t.e->num_qps());
        ASSERT_NO_FATAL_FAILURE(hear(t, NUM_TURNS));
    }
}

/* Its thread and the async thread end connections at the same time */
TEST_P(test_sep_uct_asleep, who_dozes_hears_all)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open());

    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (auto &t : m_targets) {
        threads.emplace_back([&]() {
            for (unsigned turn = 0; !is_over; ++turn) {
                t.e->progress();
                usleep((turn % 8) * 100);
            }
        });
    }
    for (uint64_t turn = 1; (turn <= 8 * NUM_TURNS) && !HasFailure(); ++turn) {
        for (auto &t : m_targets) {
            say(t, turn);
            if (turn % 2) {
                put(t, turn);
            }
        }
    }
    is_over = true;
    for (auto &thread : threads) {
        thread.join();
    }
    for (auto &t : m_targets) {
        ASSERT_NO_FATAL_FAILURE(hear(t, 8 * NUM_TURNS));
    }
}

/* A worker that has no room: who is refused is let in later. It can give up its
 * connection as others can, and the next time it does not wait as long. */
TEST_P(test_sep_uct_asleep, as_many_are_let_in_as_the_last_time)
{
    if (!has_device()) {
        return;
    }

    const settings often = {{"EAGER", "n"}, {"CM_TIMEOUT", "1ms"},
                            {"CM_RETRY_COUNT", "40"}};
    settings limited     = often;
    limited.push_back({"MAX_QPS", "4"}); /* 2 of the sender, 2 of the target */
    ASSERT_NO_FATAL_FAILURE(open(limited, limited, often));

    target &t = m_targets[0];
    if (t.e->is_verbs()) {
        GTEST_SKIP() << "all queue pairs wait for the thread";
    }

    std::vector<std::unique_ptr<entity>> others;
    for (unsigned i = 0; i < 2; ++i) {
        others.push_back(entity::create(*m_sender, often));
        ASSERT_NE(nullptr, others[i]);
        uct_ep_h ep = others[i]->connect(t.e->addr());
        ASSERT_TRUE(others[i]->wait([&]() {
            others[i]->progress();
            return uct_ep_am_short(ep, 1, 0, nullptr, 0) == UCS_OK;
        }));
    }

    ucs_async_context_t *async  = t.e->sep()->super.worker->async;
    uct_sep_ep_budget_t &budget = t.e->sep()->conn.budget;
    auto look_back              = [&]() {
        UCS_ASYNC_BLOCK(async);
        budget.looked -= budget.patience / 16;
        UCS_ASYNC_UNBLOCK(async);
    };

    m_sender->sep()->conn.budget.patience = ucs_time_from_sec(100000);
    UCS_ASYNC_BLOCK(async);
    budget.patience = ucs_time_from_sec(100000);
    budget.let_in   = 3;
    UCS_ASYNC_UNBLOCK(async);
    for (uint64_t turn = 1; turn <= 3; ++turn) {
        uint64_t retries = num_retries();
        ASSERT_TRUE(m_sender->wait([&]() {
            EXPECT_FALSE(try_put(t, turn));
            return (num_retries() >= retries + 3) || HasFailure();
        })) << "is refused at first, and asks again";
        look_back();
        ASSERT_NO_FATAL_FAILURE(put(t, turn));
        EXPECT_EQ(3u, t.e->num_links());

        ASSERT_NO_FATAL_FAILURE(put(m_targets[1], turn));
        ASSERT_TRUE(m_sender->wait([&]() { return t.e->num_links() == 2; }))
                << "nobody but the thread would end it";
    }
    UCS_ASYNC_BLOCK(async);
    EXPECT_EQ(3u, budget.num_exceeded);
    EXPECT_EQ(budget.head, budget.tail);
    UCS_ASYNC_UNBLOCK(async);
    while (!others.empty()) {
        others.pop_back();
    }
}

/* It is closed without having been awake */
TEST_P(test_sep_uct_asleep, who_never_wakes_up_leaves_nothing)
{
    if (!has_device()) {
        return;
    }
    ASSERT_NO_FATAL_FAILURE(open());
    for (auto &t : m_targets) {
        ASSERT_NO_FATAL_FAILURE(say(t, 1));
        ASSERT_TRUE(t.e->wait([&]() {
            t.e->progress();
            return t.e->messages.size() == 1;
        }));
    }
    for (uint64_t turn = 2; turn <= NUM_TURNS; ++turn) {
        for (auto &t : m_targets) {
            ASSERT_NO_FATAL_FAILURE(say(t, turn));
        }
    }
    for (auto &t : m_targets) {
        EXPECT_LE(2u, t.e->num_qps());
    }
}

INSTANTIATE_TEST_SUITE_P(, test_sep_uct_asleep,
                         ::testing::Values("sync", "deferred"),
                         [](const ::testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

} // namespace
