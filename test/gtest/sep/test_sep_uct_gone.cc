/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <cstring>

using namespace sep_uct_test;

namespace {

/*
 * A server and clients that come and go, each a process. The server has no
 * endpoints: what it has for a client goes with the client.
 */
class test_sep_uct_gone : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }

        m_server = entity::create(server_config());
        ASSERT_NE(nullptr, m_server);
    }

    virtual settings server_config() const
    {
        settings config = GetParam().config;

        config.insert(config.end(), impatient.begin(), impatient.end());
        config.emplace_back("CM_KEEPALIVE", "20ms");
        return config;
    }

    /* One that sends and goes; killed, or in order */
    void serve(unsigned count, bool is_killed)
    {
        size_t before = m_server->messages.size();
        peer client(1, GetParam().config);

        client.send(m_server->addr(), count, 64);
        ASSERT_TRUE(m_server->wait([&]() {
            return m_server->messages.size() == before + count;
        }));
        if (is_killed) {
            client.kill();
        }
    }

    bool is_as_before()
    {
        return (m_server->num_qps() == 0) &&
               (m_server->num_links() == 0);
    }

    std::unique_ptr<entity> m_server;
};

} // namespace

TEST_P(test_sep_uct_gone, nothing_is_left_of_clients_that_close)
{
    for (unsigned i = 0; i < 4; ++i) {
        serve(1 + i * 200, false);
    }
    EXPECT_TRUE(m_server->wait([this]() { return is_as_before(); }));
    EXPECT_EQ(0u, m_server->failures.size());
}

TEST_P(test_sep_uct_gone, nothing_is_left_of_clients_that_are_killed)
{
    for (unsigned i = 0; i < 4; ++i) {
        serve(1 + i * 200, true);
    }
    EXPECT_TRUE(m_server->wait([this]() { return is_as_before(); }));
    EXPECT_EQ(0u, m_server->failures.size());
}

/* Neither side has endpoints any more, both live on */
TEST_P(test_sep_uct_gone, nothing_is_left_of_connections_without_endpoints)
{
    settings config = server_config();
    auto client     = entity::create(config);
    uct_ep_h ep     = client->connect(m_server->addr());

    for (unsigned round = 1; round <= 3; ++round) {
        ASSERT_TRUE(client->wait([&]() {
            m_server->progress();
            return uct_ep_am_short(ep, 1, round, nullptr, 0) == UCS_OK;
        }));
        ASSERT_TRUE(client->wait([&]() {
            m_server->progress();
            return uct_iface_flush(client->iface(), 0, nullptr) == UCS_OK;
        }));
        ASSERT_TRUE(m_server->wait([&]() {
            client->progress();
            return m_server->messages.size() == round;
        }));
        client->destroy(ep);
        ASSERT_TRUE(m_server->wait([&]() {
            client->progress();
            return is_as_before() && (client->num_qps() == 0) &&
                   (client->num_links() == 0);
        }));
        ep = client->connect(m_server->addr());
    }
    EXPECT_EQ(0u, client->failures.size() + m_server->failures.size());
}

/* Connections are given up and made again while messages are sent: all arrive,
 * and in order */
TEST_P(test_sep_uct_gone, connections_that_come_and_go_lose_nothing)
{
    const uint64_t count = 2000;
    settings config      = server_config();
    uint64_t first       = 0;

    config.back().second = "1ms";
    auto client          = entity::create(config);
    m_server             = entity::create(config);
    address addr         = m_server->addr();
    std::vector<uct_ep_h> eps;

    for (uint64_t seq = 1; seq <= count; ++seq) {
        eps.push_back(client->connect(addr));
        ASSERT_TRUE(client->wait([&]() {
            m_server->progress();
            return uct_ep_am_short(eps.back(), 1, seq, nullptr, 0) == UCS_OK;
        }));
        ASSERT_TRUE(client->wait([&]() {
            m_server->progress();
            return uct_ep_flush(eps.back(), 0, nullptr) == UCS_OK;
        }));
        client->destroy(eps.back());
        eps.pop_back();
        if (seq % 200 == 0) {
            ASSERT_TRUE(m_server->wait([&]() {
                client->progress();
                return m_server->num_qps() == 0;
            }));
        }
    }
    ASSERT_TRUE(m_server->wait([&]() {
        return m_server->messages.size() == count;
    }));
    for (uint64_t i = 0; i < count; ++i) {
        memcpy(&first, m_server->messages[i].data.data(), sizeof(first));
        ASSERT_EQ(i + 1, first) << "lost or overtaken";
    }
    EXPECT_EQ(0u, client->failures.size() + m_server->failures.size());
}

INSTANTIATE_TEST_SUITE_P(
        , test_sep_uct_gone,
        ::testing::Values(mode{"default", {}},
                          mode{"rings", {{"EAGER", "y"}}},
                          mode{"shared_cq", {{"CQ_SHARING", "2"}}},
                          mode{"own_context", {{"CATEGORY", "mpi_everywhere"}}},
                          mode{"hub", {{"CATEGORY", "mpi_threads"}}},
                          mode{"verbs", {{"API", "verbs"}}}),
        mode_name);

class test_sep_uct_gone_many : public test_sep_uct_gone {
};

TEST_P(test_sep_uct_gone_many, fifty_clients_come_and_go)
{
    for (unsigned i = 0; i < 50; ++i) {
        serve(1, i % 3 == 0);
    }
    EXPECT_TRUE(m_server->wait([this]() { return is_as_before(); }));
}

INSTANTIATE_TEST_SUITE_P(, test_sep_uct_gone_many,
                         ::testing::Values(mode{"default", {}}), mode_name);

/* Of an endpoint whose peer has closed its interface: the next operation, or
 * the one that waits for it, fails. Not before, and not without end. */
TEST(test_sep_uct_gone_peer, an_operation_after_the_peer_has_closed_fails)
{
    auto local = entity::create(impatient);
    uct_ep_h ep;

    if (local == nullptr) {
        GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
    }

    {
        auto remote = entity::create();

        ep = local->connect(remote->addr());
        ASSERT_TRUE(local->wait([&]() {
            remote->progress();
            return uct_ep_am_short(ep, 1, 1, nullptr, 0) == UCS_OK;
        }));
        ASSERT_TRUE(remote->wait([&]() {
            local->progress();
            return remote->messages.size() == 1;
        }));
        ASSERT_TRUE(local->flush());
    }

    for (unsigned i = 0; i < 1000; ++i) {
        local->progress();
    }
    EXPECT_EQ(0u, local->failures.size()) << "nothing was lost";
    EXPECT_EQ(UCS_OK, uct_ep_am_short(ep, 1, 2, nullptr, 0));
    uct_ep_flush(ep, 0, nullptr);
    EXPECT_TRUE(local->wait([&]() { return local->failures.size() == 1; }));
    local->destroy(ep);
    EXPECT_TRUE(local->wait([&]() {
        return (local->num_qps() == 0) &&
               (local->num_links() == 0);
    }));
}
