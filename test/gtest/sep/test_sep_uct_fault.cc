/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct.h>

#include <common/seed.h>

#include <cstring>
#include <deque>
#include <random>
#include <thread>

using namespace sep_uct_test;

namespace {

/*
 * Faults at any moment, and crowds. Whatever happens: every operation ends
 * once, every endpoint that lost something is told once, nothing remains.
 */

/* A pending request which sends one message */
struct pending_message {
    pending_message(uct_ep_h ep) : ep(ep)
    {
        req.func = func;
    }

    static ucs_status_t func(uct_pending_req_t *req)
    {
        pending_message *self = ucs_container_of(req, pending_message, req);
        ucs_status_t status   = uct_ep_am_short(self->ep, 1, 0, NULL, 0);

        self->sent += (status == UCS_OK);
        return status;
    }

    uct_pending_req_t req;
    uct_ep_h          ep;
    unsigned          sent = 0;

    pending_message(const pending_message&) = delete;
};


class test_sep_uct_fault : public test_sep_uct {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
    }

    void connect()
    {
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_am_short(ep(), 1, 0, NULL, 0);
        }));
        flush();
    }

    /* Operations one after the other until there are no resources */
    unsigned post_all(const remote_memory &rmem, memory &local,
                      std::deque<completion> &comps)
    {
        uct_iov_t iov = {local.ptr(), 64, local.memh(), 0, 1};
        unsigned kind = 0;
        ucs_status_t status;

        for (;;) {
            comps.emplace_back();
            uct_completion_t *comp = &comps.back().comp;

            switch (kind++ % 4) {
            case 0:
                status = uct_ep_put_zcopy(ep(), &iov, 1, rmem.va,
                                          rmem.rkey.rkey, comp);
                break;
            case 1:
                status = uct_ep_get_zcopy(ep(), &iov, 1, rmem.va,
                                          rmem.rkey.rkey, comp);
                break;
            case 2:
                status = uct_ep_atomic64_fetch(ep(), UCT_ATOMIC_OP_ADD, 1,
                                               (uint64_t*)local.ptr(), rmem.va,
                                               rmem.rkey.rkey, comp);
                break;
            default:
                status = uct_ep_put_short(ep(), local.ptr(), 8, rmem.va,
                                          rmem.rkey.rkey);
                break;
            }
            if (status != UCS_INPROGRESS) {
                comps.pop_back();
            }
            if (UCS_STATUS_IS_ERR(status)) {
                EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
                return kind - 1;
            }
        }
    }

    /* Everything is over, and each operation has ended once */
    void expect_ended(const std::deque<completion> &comps)
    {
        m_local->wait([&]() { return !m_local->failures.empty(); });
        flush();
        for (auto &comp : comps) {
            ASSERT_EQ(1u, comp.calls);
        }
        EXPECT_EQ(1u, m_local->failures.size());
        m_local->wait([&]() { return m_local->num_qps() == 0; });
    }
};

TEST_F(test_sep_uct_fault, a_peer_killed_while_connecting_is_reported_once)
{
    for (unsigned steps = 0; steps < 16; ++steps) {
        start(hasty);
        pending_message request(ep());

        if (uct_ep_am_short(ep(), 1, 0, NULL, 0) == UCS_ERR_NO_RESOURCE) {
            ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &request.req, 0));
        }
        /* The peer progresses all the time: each number of steps finds the
         * handshake somewhere else */
        for (unsigned i = 0; i < steps * steps; ++i) {
            m_local->progress();
        }
        m_peer->kill();

        if (m_local->failures.empty() && (request.sent == 0)) {
            m_local->wait([&]() {
                return !m_local->failures.empty() || (request.sent > 0);
            });
        }
        if (m_local->failures.empty()) {
            /* Connected before the end came: found out by whatever is next */
            uct_ep_am_short(ep(), 1, 0, NULL, 0);
            m_local->wait([&]() { return !m_local->failures.empty(); });
        }
        EXPECT_EQ(1u, m_local->failures.size()) << steps;
        uct_ep_pending_purge(ep(), [](uct_pending_req_t*, void*) {}, NULL);
        flush();
        m_local->wait([&]() { return m_local->num_qps() == 0; });
    }
}

TEST_F(test_sep_uct_fault, an_idle_peer_that_is_killed_costs_nothing_until_used)
{
    start(impatient);
    connect();
    m_peer->kill();
    for (unsigned i = 0; i < 1000; ++i) {
        m_local->progress();
    }
    EXPECT_TRUE(m_local->failures.empty());
    flush();

    completion comp;
    ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
        ucs_status_t status = uct_ep_am_short(ep(), 1, 0, NULL, 0);
        return (status == UCS_OK) ? uct_ep_flush(ep(), 0, &comp.comp) : status;
    }));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(wait(comp)));
    m_local->wait([&]() { return m_local->failures.size() == 1; });
}

TEST_F(test_sep_uct_fault, ten_thousand_operations_end_when_the_peer_is_killed)
{
    settings config = impatient;

    config.push_back({"TX_QUEUE_LEN", "32768"});
    config.push_back({"TX_CQ_LEN", "32768"});
    config.push_back({"RX_QUEUE_LEN", "64"});
    config.push_back({"RX_MAX_BUFS", "128"});
    config.push_back({"FC_ENABLE", "n"});
    config.push_back({"EAGER", "n"});
    start(config);

    memory local(m_local->md(), 4096);
    std::deque<completion> comps;
    remote_memory rmem = m_peer->expose(4096, 5);
    unsigned count;

    connect();
    /* A receiver that is not ready holds up all that comes behind */
    m_peer->freeze();
    for (count = 0; count < 256; ++count) {
        if (uct_ep_am_short(ep(), 1, 0, NULL, 0) != UCS_OK) {
            break;
        }
    }
    EXPECT_GE(count, 64u);
    count = post_all(rmem, local, comps);
    EXPECT_GE(count, 10000u);
    for (auto &comp : comps) {
        ASSERT_EQ(0u, comp.calls);
    }
    m_peer->kill();
    expect_ended(comps);
    for (auto &comp : comps) {
        ASSERT_TRUE(UCS_STATUS_IS_ERR(comp.status));
    }
}

TEST_F(test_sep_uct_fault, operations_in_flight_end_when_the_peer_is_killed)
{
    /* The moment differs from round to round */
    for (unsigned round = 0; round < 12; ++round) {
        start(impatient);

        remote_memory rmem = m_peer->expose(4096, 5);
        memory local(m_local->md(), 4096);
        std::deque<completion> comps;

        connect();
        std::thread killer([&]() {
            std::this_thread::sleep_for(std::chrono::microseconds(round * 50));
            m_peer->kill();
        });
        while (m_local->failures.empty()) {
            ucs_status_t status = uct_ep_am_short(ep(), 1, 0, NULL, 0);
            ASSERT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE) ||
                        (status == UCS_ERR_CONNECTION_RESET)) << status;
            comps.emplace_back();
            uct_iov_t iov = {local.ptr(), 64, local.memh(), 0, 1};
            status = uct_ep_put_zcopy(ep(), &iov, 1, rmem.va, rmem.rkey.rkey,
                                      &comps.back().comp);
            if (status != UCS_INPROGRESS) {
                comps.pop_back();
            }
            m_local->progress();
        }
        killer.join();
        expect_ended(comps);
    }
}

TEST_F(test_sep_uct_fault, a_queue_pair_in_error_fails_its_endpoint_only)
{
    start(impatient, 2);
    if (m_local->is_on_hub()) {
        GTEST_SKIP() << "both endpoints have the process' only queue pair";
    }

    remote_memory rmem = m_peer->expose(4096, 5);
    memory local(m_local->md(), 4096);
    std::deque<completion> comps;
    struct ibv_qp_attr attr = {};

    connect();
    ASSERT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(ep(1), 1, 0, NULL, 0);
    }));
    flush();

    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(0,
              ibv_modify_qp(ucs_derived_of(ep(), uct_sep_ep_t)->txwq->conn.qp,
                            &attr, IBV_QP_STATE));
    {
        expect_errors hide;
        post_all(rmem, local, comps);
        m_local->wait([&]() { return !m_local->failures.empty(); });
    }
    flush();
    for (auto &comp : comps) {
        EXPECT_EQ(1u, comp.calls);
    }
    ASSERT_EQ(1u, m_local->failures.size());
    EXPECT_EQ(ep(), m_local->failures[0].ep);

    /* The other connection is not concerned, and the peer can be reached again
     */
    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(ep(1), 1, 0, NULL, 0);
    }));
    uct_ep_h again = m_local->connect(m_peer->addr());
    EXPECT_EQ(UCS_OK, retry([&]() {
        return uct_ep_am_short(again, 1, 0, NULL, 0);
    }));
    flush();
    m_local->wait([&]() { return m_peer->num_received() == 2; });
}

TEST_F(test_sep_uct_fault, random_addresses_never_do_harm)
{
    start(impatient);
    address good = m_peer->addr();
    std::mt19937 random(seed::get());
    unsigned refused = 0, accepted = 0;

    {
        expect_errors hide;
        for (unsigned i = 0; i < 3000; ++i) {
            address bad      = good;
            unsigned flips   = 1 + random() % 8;
            uct_ep_h bad_ep;

            for (unsigned j = 0; j < flips; ++j) {
                bytes &part = (random() % 2) ? bad.dev : bad.iface;
                part[random() % part.size()] = random();
            }
            int reachable = uct_iface_is_reachable(
                    m_local->iface(), (uct_device_addr_t*)bad.dev.data(),
                    (uct_iface_addr_t*)bad.iface.data());
            ucs_status_t status = m_local->try_connect(bad, &bad_ep);

            ASSERT_EQ(reachable != 0, status == UCS_OK);
            if (status == UCS_OK) {
                ++accepted;
                /* Some are asked to connect, and given up while they do */
                if (random() % 4 == 0) {
                    uct_ep_am_short(bad_ep, 1, 0, NULL, 0);
                    m_local->progress();
                }
                m_local->destroy(bad_ep);
            } else {
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 100u);
    EXPECT_GT(accepted, 100u);

    /* Some of them were of the peer's interface at another port. It answers
     * these attempts as well, one at a time, so an endpoint with the good
     * address that connects in between may be left with a queue pair which the
     * peer has given up. That endpoint fails; another one works. */
    uct_ep_h good_ep = ep();
    m_local->wait([&]() {
        if (!m_local->failures.empty()) {
            m_local->failures.clear();
            good_ep = m_local->connect(good);
        }
        uct_ep_am_short(good_ep, 1, 0, NULL, 0);
        return m_peer->num_received() >= 1;
    });
}

TEST_F(test_sep_uct_fault, random_remote_keys_are_refused_or_fail_the_endpoint)
{
    start(impatient);
    memory local(m_local->md(), 4096);
    bytes good = local.packed_rkey();
    std::mt19937 random(seed::get());
    unsigned refused = 0;
    expect_errors hide;

    for (unsigned i = 0; i < 3000; ++i) {
        bytes bad = good;
        uct_rkey_bundle_t rkey;

        for (unsigned j = 0; j < 1 + random() % 4; ++j) {
            bad[random() % bad.size()] = random();
        }
        if (uct_rkey_unpack(m_local->component(), bad.data(), &rkey) !=
            UCS_OK) {
            ++refused;
            continue;
        }
        if (i % 100 == 0) {
            /* The key of something else, or of nothing, at the peer */
            uct_ep_h ep   = m_local->connect(m_peer->addr());
            uint64_t data = 0;

            ASSERT_EQ(UCS_OK, retry([&]() {
                return uct_ep_put_short(ep, &data, sizeof(data), 4096,
                                        rkey.rkey);
            }));
            m_local->failures.clear();
            m_local->wait([&]() { return !m_local->failures.empty(); });
            m_local->destroy(ep);
        }
        uct_rkey_release(m_local->component(), &rkey);
    }
    EXPECT_GT(refused, 1000u);
}

/* Every process connects to every other at once, and sends */
TEST_F(test_sep_uct_fault, sixty_four_processes_send_all_to_all)
{
    static const unsigned num_procs = 64, count = 3;
    const settings config = {{"RX_QUEUE_LEN", "256"}, {"TX_QUEUE_LEN", "32"}};
    std::vector<std::unique_ptr<peer>> peers;
    std::vector<address> addrs;

    for (unsigned i = 0; i < num_procs; ++i) {
        peers.emplace_back(new peer(1, config));
    }
    for (auto &p : peers) {
        addrs.push_back(p->addr());
    }
    for (unsigned i = 0; i < num_procs; ++i) {
        for (unsigned j = 1; j < num_procs; ++j) {
            peers[i]->send(addrs[(i + j) % num_procs], count, 32);
        }
    }
    for (auto &p : peers) {
        uint64_t received = 0;

        for (unsigned i = 0; (i < 6000) &&
                             (received < (num_procs - 1) * count); ++i) {
            received = p->num_received();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ASSERT_EQ((num_procs - 1) * count, received);
    }
    for (auto &p : peers) {
        EXPECT_EQ(0u, p->num_failures());
        EXPECT_EQ(num_procs - 1, p->num_qps());
    }
}

} // namespace
