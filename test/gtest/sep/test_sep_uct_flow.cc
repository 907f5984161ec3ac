/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/count_alloc.h>
#include <sep/test_sep_stranger.h>
#include <sep/test_sep_uct.h>

#include <poll.h>

#include <atomic>
#include <cstring>
#include <thread>

using namespace sep_uct_test;

namespace {

/* Long enough for anything: whoever waits that long has lost an event */
const int wakeup_timeout_ms = 1000 * patience::seconds();

class test_sep_uct_flow : public test_sep_uct_mode {
protected:
    ucs_status_t send(uct_ep_h ep, uint64_t seq)
    {
        return uct_ep_am_short(ep, 1, seq, NULL, 0);
    }

    uint64_t received_seq(uint64_t index)
    {
        message received = m_peer->received(index);
        uint64_t seq;

        EXPECT_LE(sizeof(seq), received.data.size());
        memcpy(&seq, received.data.data(), sizeof(seq));
        return seq;
    }

    /* Connect by a first message; the peer forgets it */
    void connect(uct_ep_h ep, unsigned iface = 0)
    {
        ASSERT_EQ(UCS_OK, retry([&]() { return send(ep, 0); }));
        flush();
        m_local->wait([&]() { return m_peer->num_received(iface) > 0; });
        m_peer->release(iface);
    }
};

TEST_P(test_sep_uct_flow, an_unused_endpoint_has_no_queue_pair)
{
    std::vector<uct_ep_h> eps;

    for (int i = 0; i < 100; ++i) {
        eps.push_back(m_local->connect(m_peer->addr()));
        EXPECT_EQ(UCS_OK, uct_ep_flush(eps.back(), 0, NULL));
    }
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_local->iface(), 0, NULL));
    EXPECT_EQ(0u, m_local->num_qps());
    EXPECT_EQ(0u, m_peer->num_qps());
    EXPECT_GE(1u, m_local->num_links()); /* A hub has one endpoint of them */
}

TEST_P(test_sep_uct_flow, an_unconnected_endpoint_is_small)
{
    if (m_local->is_on_hub()) {
        GTEST_SKIP() << "what a worker's endpoint is in addition to the hub's";
    }

    /* Just after the table of connections has doubled: its worst */
    const long count = 800;
    address remote   = m_peer->addr();

    /* Each to another interface, so that each needs a connection object and
     * a place in the table of these. Nobody answers at these addresses. */
    count_alloc allocated;
    for (long i = 0; i < count; ++i) {
        auto *addr = (uct_sep_iface_addr_t*)remote.iface.data();
        uct_sep_iface_addr_pack(uct_sep_iface_addr_qpn(addr), i + 1, 0, addr);
        m_local->connect(remote);
    }

    /* All that was really allocated */
    EXPECT_GE(allocated.bytes(), count * (long)sizeof(uct_sep_ep_t));
    EXPECT_LT(allocated.bytes(), count * 112);
    RecordProperty("bytes", std::to_string(allocated.bytes() / count));
}

/* It has the address only, and knows as well as others whom it is for */
TEST_P(test_sep_uct_flow, an_unused_endpoint_has_no_connection)
{
    if (m_local->is_on_hub()) {
        GTEST_SKIP() << "the hub's workers share an endpoint";
    }

    auto is_to = [&](const address &to) {
        return uct_sep_ep_is_connected(ep(),
                                       (const uct_device_addr_t*)&to.dev[0],
                                       (const uct_iface_addr_t*)&to.iface[0]);
    };
    auto expect_address = [&]() {
        EXPECT_TRUE(is_to(m_peer->addr()));
        EXPECT_FALSE(is_to(m_local->addr()));
    };

    expect_address();
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), 0, NULL));
    EXPECT_EQ(UCS_OK, uct_ep_flush(ep(), UCT_FLUSH_FLAG_CANCEL, NULL));
    EXPECT_EQ(UCS_OK, uct_ep_fence(ep(), 0));
    uct_ep_pending_purge(ep(), NULL, NULL);
    m_local->destroy(m_local->connect(m_local->addr()));
    EXPECT_EQ(0u, m_local->num_links());

    connect(ep());
    EXPECT_EQ(1u, m_local->num_links());
    expect_address();
}

/* As one that was used before */
TEST_P(test_sep_uct_flow, an_unused_endpoint_is_connected_by_its_peer)
{
    m_peer->send(m_local->addr(), 1, 8);
    ASSERT_TRUE(m_local->wait([&]() {
        return (m_local->messages.size() == 1) &&
               uct_sep_ep_can_send(m_local->sep_ep(ep()));
    }));
    EXPECT_EQ(UCS_OK, send(ep(), 0));
    flush();
    EXPECT_EQ(1u, m_local->num_qps());
    EXPECT_EQ(1u, m_local->num_links());
}

/* Whichever of them is used, and whichever is destroyed first */
TEST_P(test_sep_uct_flow, two_unused_endpoints_share_a_connection)
{
    if (m_local->is_on_hub()) {
        GTEST_SKIP() << "the hub's workers share an endpoint";
    }

    start(settings(), 2);
    for (unsigned used : {0, 1}) {
        uct_ep_h eps[] = {ep(used), m_local->connect(m_peer->addr(used))};

        EXPECT_EQ(used + 1, m_local->num_links());
        connect(eps[used], used);
        EXPECT_EQ(UCS_OK, send(eps[!used], 1));
        flush();
        EXPECT_EQ(m_local->sep_ep(eps[0])->link, m_local->sep_ep(eps[1])->link);
        EXPECT_EQ(used + 1, m_local->num_qps());
    }

    for (unsigned first : {0, 1}) {
        uct_ep_h eps[] = {m_local->connect(m_local->addr()),
                          m_local->connect(m_local->addr())};

        EXPECT_EQ(3u, m_local->num_links());
        m_local->destroy(eps[first]);
        EXPECT_EQ(3u, m_local->num_links());
        m_local->destroy(eps[!first]);
        EXPECT_EQ(2u, m_local->num_links());
    }
}

TEST_P(test_sep_uct_flow, all_endpoints_and_both_directions_share_a_connection)
{
    uct_ep_h second = m_local->connect(m_peer->addr());

    connect(ep());
    ASSERT_EQ(UCS_OK, retry([&]() { return send(second, 0); }));
    m_peer->send(m_local->addr(), 10, 100);
    m_local->wait([&]() { return m_local->messages.size() == 10; });
    flush();
    EXPECT_EQ(1u, m_local->num_qps());
    EXPECT_EQ(1u, m_peer->num_qps());
}

TEST_P(test_sep_uct_flow, endpoints_with_pending_requests_take_turns)
{
    static const unsigned num_reqs = 20;
    uct_ep_h other                 = m_local->connect(m_peer->addr());
    pending_req reqs[2][num_reqs];
    std::vector<int> order;

    for (unsigned i = 0; i < num_reqs; ++i) {
        for (int e = 0; e < 2; ++e) {
            reqs[e][i].func = [&, e]() {
                ucs_status_t status = send(e ? other : ep(), 0);
                if (status == UCS_OK) {
                    order.push_back(e);
                }
                return status;
            };
        }
    }
    /* All of the first, then all of the second */
    for (int e = 0; e < 2; ++e) {
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(e ? other : ep(), 0));
        for (unsigned i = 0; i < num_reqs; ++i) {
            ASSERT_EQ(UCS_OK, uct_ep_pending_add(e ? other : ep(),
                                                 &reqs[e][i].req, 0));
        }
    }
    m_local->wait([&]() { return order.size() == 2 * num_reqs; });
    for (unsigned i = 0; i < num_reqs; ++i) {
        EXPECT_NE(order[i * 2], order[i * 2 + 1]) << i;
    }
    flush();
}

TEST_P(test_sep_uct_flow, receiving_goes_on_when_kept_descriptors_come_back)
{
    /* No more buffers than there are receives */
    start({{"RX_QUEUE_LEN", "16"}, {"RX_MAX_BUFS", "17"},
           {"RNR_TIMEOUT", "0.01ms"}, {"EAGER", "n"}});
    m_peer->send(m_local->addr(), 100, 64, 9);
    for (unsigned total = 0; total < 100;) {
        expect_errors hide; /* UCX warns that the pool is empty */

        m_local->wait([&]() { return !m_local->descs.empty(); });
        for (unsigned i = 0; i < 50; ++i) {
            m_local->progress(); /* Until all buffers are kept, maybe */
        }
        total += m_local->descs.size();
        m_local->release_descs();
    }
}

/* It is for the worker to destroy a queue pair that could receive already, and
 * can't send. The device's event that it has given back its receives would wake
 * the worker as well, so it is not read here. */
TEST_P(test_sep_uct_flow, a_connection_that_fails_wakes_a_sleeping_worker)
{
    auto self = entity::create(all_settings(), {{"ASYNC_EVENTS", "n"}});
    sep_cm_test::stranger peer;
    uct_sep_conn_msg_t msg = {};
    uct_sep_peer_addr_t to;
    struct pollfd pfd = {-1, POLLIN, 0};
    expect_errors hide;

    ASSERT_TRUE(self != nullptr);
    if (self->is_on_hub()) {
        GTEST_SKIP() << "the hub's connections wake its workers";
    }

    address addr = self->addr();
    memcpy(&to.dev, addr.dev.data(), sizeof(to.dev));
    memcpy(&to.iface, addr.iface.data(), sizeof(to.iface));
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(self->iface(), &pfd.fd));
    self->wait([&]() {
        return uct_iface_event_arm(self->iface(), UCT_EVENT_SEND_COMP |
                                                  UCT_EVENT_RECV) == UCS_OK;
    });

    ASSERT_EQ(0, setenv("MLX5SIM_FAIL", "modify_qp_rts", 1));
    peer.send(to, peer.req(to, peer.addr()));
    ASSERT_TRUE(patience::until([&]() { return peer.receive(&msg); }));
    unsetenv("MLX5SIM_FAIL");
    ASSERT_EQ(UCT_SEP_CONN_MSG_REJ, msg.type);

    ASSERT_EQ(1, poll(&pfd, 1, wakeup_timeout_ms));
    self->wait([&]() { return self->num_qps() == 0; });
}

/* Whoever asks for connections decides how often that fails */
TEST_P(test_sep_uct_flow, requests_that_fail_do_not_fill_the_log)
{
    const unsigned count = 100, lines = 7; /* 1, 2, 4... 64 */
    auto self            = entity::create(all_settings());
    sep_cm_test::stranger peer;
    uct_sep_conn_msg_t msg = {};
    uct_sep_peer_addr_t to;
    expect_errors hide;

    ASSERT_TRUE(self != nullptr);
    if (self->is_on_hub()) {
        GTEST_SKIP() << "its address is another one";
    }

    address addr = self->addr();
    memcpy(&to.dev, addr.dev.data(), sizeof(to.dev));
    memcpy(&to.iface, addr.iface.data(), sizeof(to.iface));
    ASSERT_EQ(0, setenv("MLX5SIM_FAIL", "qp:1+", 1));
    for (unsigned i = 0; i < count; ++i) {
        peer.send(to, peer.req(to, peer.addr(peer.id(i))));
        EXPECT_TRUE(patience::until([&]() { return peer.receive(&msg); }));
        if (HasFailure()) {
            break;
        }
    }
    /* Or there are no queue pairs for other tests, either */
    unsetenv("MLX5SIM_FAIL");
    EXPECT_EQ(lines, hide.count(UCS_LOG_LEVEL_ERROR,
                                "could not create a queue pair"));
}

TEST_P(test_sep_uct_flow, an_idle_interface_is_not_woken)
{
    struct pollfd pfd;

    connect(ep());
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(m_local->iface(), &pfd.fd));
    m_local->wait([&]() {
        return uct_iface_event_arm(m_local->iface(), UCT_EVENT_SEND_COMP |
                                                     UCT_EVENT_RECV) == UCS_OK;
    });
    pfd.events = POLLIN;
    EXPECT_EQ(0, poll(&pfd, 1, 0));
    EXPECT_EQ(0u, m_local->progress());
}

TEST_P(test_sep_uct_flow, workers_in_threads_do_not_disturb_each_other)
{
    static const unsigned num_threads = 8, count = 300;
    address to = m_peer->addr();
    std::vector<std::thread> threads;
    std::atomic<unsigned> done{0};

    /* They open, connect, send and close all at the same time */
    for (unsigned t = 0; t < num_threads; ++t) {
        threads.emplace_back([&, t]() {
            std::unique_ptr<entity> self = entity::create(all_settings());
            ASSERT_TRUE(self != nullptr);
            uct_ep_h ep = self->connect(to);

            for (uint64_t seq = 0; seq < count; ++seq) {
                self->wait([&]() {
                    return uct_ep_am_short(ep, 1, (t * count) + seq, NULL, 0) ==
                           UCS_OK;
                });
            }
            EXPECT_TRUE(self->flush());
            ++done;
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    ASSERT_EQ(num_threads, done);
    m_local->wait([&]() {
        return m_peer->num_received() == num_threads * count;
    });

    std::vector<uint64_t> next(num_threads, 0);
    for (unsigned i = 0; i < num_threads * count; ++i) {
        uint64_t seq = received_seq(i);
        ASSERT_EQ(next[seq / count]++, seq % count);
    }
}

INSTANTIATE_TEST_SUITE_P(api, test_sep_uct_flow,
                         ::testing::ValuesIn(api_modes()), mode_name);
INSTANTIATE_TEST_SUITE_P(category, test_sep_uct_flow,
                         ::testing::Values(mode{"mpi_threads",
                                                {{"CATEGORY", "mpi_threads"}}}),
                         mode_name);

} // namespace
