/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <uct/ib/sep/ep/sep_link.h>

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
    void open()
    {
        m_sender = entity::create({{"MAX_QPS", "2"}, {"EAGER", "n"}});
        ASSERT_NE(nullptr, m_sender);
        for (auto &t : m_targets) {
            t.e = entity::create(*m_sender, {{"EAGER", "n"}});
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

    /* Only the sender progresses */
    void put(target &t, uint64_t value)
    {
        volatile uint64_t *word = reinterpret_cast<uint64_t*>(t.mem->ptr());
        ucs_status_t status     = UCS_ERR_NO_RESOURCE;

        ASSERT_TRUE(m_sender->wait([&]() {
            m_sender->progress();
            if (status == UCS_ERR_NO_RESOURCE) {
                status = uct_ep_put_short(t.ep, &value, sizeof(value),
                                          t.mem->va(), t.rkey.rkey);
            }
            return (status != UCS_ERR_NO_RESOURCE) && (*word == value);
        })) << value;
        ASSERT_EQ(UCS_OK, status);
    }

    void say(target &t, uint64_t value)
    {
        ASSERT_TRUE(m_sender->wait([&]() {
            m_sender->progress();
            return uct_ep_am_short(t.ep, 1, value, nullptr, 0) == UCS_OK;
        }));
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
        EXPECT_LE(1u, t.e->sep()->conn.num_left);
        ASSERT_TRUE(t.e->wait([&]() {
            t.e->progress();
            return t.e->num_qps() <= 1;
        }));
        EXPECT_EQ(0u, t.e->sep()->conn.num_left);
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
        ASSERT_TRUE(t.e->wait([&]() {
            m_sender->progress();
            t.e->progress();
            return (t.e->messages.size() >= NUM_TURNS) &&
                   (t.e->num_qps() <= 1);
        })) << t.e->messages.size() << " messages, " << t.e->num_qps()
            << " queue pairs";
        ASSERT_EQ(NUM_TURNS, t.e->messages.size());
        for (uint64_t turn = 1; turn <= NUM_TURNS; ++turn) {
            uint64_t value;

            memcpy(&value, t.e->messages[turn - 1].data.data(), sizeof(value));
            EXPECT_EQ(turn, value);
        }
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
