/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/count_alloc.h>
#include <sep/test_sep_stranger.h>
#include <sep/test_sep_uct.h>

#include <uct/base/uct_worker.h>

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

    uint64_t received_seq(uint64_t index, unsigned iface = 0)
    {
        message received = m_peer->received(index, iface);
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

    bool arm(unsigned events)
    {
        return uct_iface_event_arm(m_local->iface(), events) == UCS_OK;
    }

    /* There is something to wait for */
    void fall_asleep(unsigned events)
    {
        m_local->wait([&]() { return arm(events); });
    }

    /* Sleep at least once, and again if it was something else that came */
    void sleep_until(struct pollfd &pfd, unsigned events,
                     const std::function<bool()> &is_done)
    {
        do {
            ASSERT_EQ(1, poll(&pfd, 1, wakeup_timeout_ms));
            while (m_local->progress() > 0);
            m_local->wait([&]() { return is_done() || arm(events); });
        } while (!is_done());
    }

    /* Post until there are no resources; how many */
    uint64_t fill(uct_ep_h ep, uint64_t seq)
    {
        uint64_t count = 0;

        while (send(ep, seq + count) == UCS_OK) {
            ++count;
        }
        return count;
    }

    void expect_in_order(uint64_t count, unsigned iface = 0)
    {
        m_local->wait([&]() { return m_peer->num_received(iface) >= count; });
        ASSERT_EQ(count, m_peer->num_received(iface));
        for (uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(i, received_seq(i, iface));
        }
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
        auto *addr = m_local->is_on_hub() ?
                     &((uct_sep_hub_addr_t*)remote.iface.data())->iface :
                     (uct_sep_iface_addr_t*)remote.iface.data();
        addr->id   = htobe64(i + 1);
        m_local->connect(remote);
    }

    /* All that was really allocated */
    EXPECT_GE(allocated.bytes(), count * (long)sizeof(uct_sep_ep_t));
    /* That on a hub comes on top of the hub's, which all workers share */
    EXPECT_LT(allocated.bytes(), count * (m_local->is_on_hub() ? 768 : 112));
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

TEST_P(test_sep_uct_flow, operations_start_the_connection_not_pending_requests)
{
    pending_req req;
    bool done = false;

    req.func = [&]() {
        ucs_status_t status = send(ep(), 0);
        done                = (status == UCS_OK);
        return status;
    };
    ASSERT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(ep(), &req.req, 0));
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 0));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    EXPECT_TRUE(m_local->wait([&]() { return done; }));
    expect_in_order(1);
}

TEST_P(test_sep_uct_flow, pending_requests_come_after_what_was_sent)
{
    static const unsigned num_reqs = 50;
    pending_req reqs[num_reqs];
    unsigned done = 0;
    uint64_t seq;

    start({{"TX_QUEUE_LEN", "32"}});
    connect(ep());
    m_peer->freeze();
    seq = fill(ep(), 0);
    ASSERT_GT(seq, 0u);
    EXPECT_LE(seq, 32u);

    for (unsigned i = 0; i < num_reqs; ++i) {
        reqs[i].func = [&, i]() {
            ucs_status_t status = send(ep(), seq + i);
            if (status == UCS_OK) {
                EXPECT_EQ(i, done);
                ++done;
            }
            return status;
        };
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &reqs[i].req, 0));
    }
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    EXPECT_TRUE(m_local->wait([&]() { return done == num_reqs; }));
    flush();
    expect_in_order(seq + num_reqs);
}

TEST_P(test_sep_uct_flow, pending_add_is_refused_when_there_are_resources)
{
    pending_req req;

    connect(ep());
    EXPECT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(ep(), &req.req, 0));
}

TEST_P(test_sep_uct_flow, a_request_in_progress_is_called_again)
{
    pending_req req;
    unsigned calls = 0;

    start({{"TX_QUEUE_LEN", "32"}});
    connect(ep());
    m_peer->freeze();
    uint64_t seq = fill(ep(), 0);

    req.func = [&]() {
        if (calls == 3) {
            return UCS_OK;
        }
        ucs_status_t status = send(ep(), seq + calls);
        if (status != UCS_OK) {
            return status;
        }
        ++calls;
        return UCS_INPROGRESS;
    };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    m_local->wait([&]() {
        return uct_iface_flush(m_local->iface(), 0, NULL) == UCS_OK;
    });
    EXPECT_EQ(3u, calls);
    expect_in_order(seq + 3);
}

TEST_P(test_sep_uct_flow, purge_gives_back_the_requests_of_one_endpoint)
{
    uct_ep_h other = m_local->connect(m_peer->addr());
    pending_req reqs[6];
    std::vector<uct_pending_req_t*> purged;

    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 0));
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(other, 0));
    for (unsigned i = 0; i < 6; ++i) {
        ASSERT_EQ(UCS_OK, uct_ep_pending_add((i % 2) ? other : ep(),
                                             &reqs[i].req, 0));
        reqs[i].func = [&, i]() { return send((i % 2) ? other : ep(), i / 2); };
    }
    uct_ep_pending_purge(ep(), [](uct_pending_req_t *req, void *arg) {
        ((std::vector<uct_pending_req_t*>*)arg)->push_back(req);
    }, &purged);
    ASSERT_EQ(3u, purged.size());
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(&reqs[i * 2].req, purged[i]);
    }
    flush();
    expect_in_order(3);
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

TEST_P(test_sep_uct_flow, flush_completes_when_all_is_done)
{
    remote_memory rmem = m_peer->expose(4096, 3);
    uint64_t data      = 0x55aa55aa55aa55aaull;

    connect(ep());
    for (unsigned round = 0; round < 300; ++round) {
        completion comp;

        for (unsigned i = 0; i <= round % 3; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() {
                return uct_ep_put_short(ep(), &data, sizeof(data),
                                        rmem.va + i * 8, rmem.rkey.rkey);
            }));
        }
        ucs_status_t status = retry([&]() {
            return uct_ep_flush(ep(), 0, &comp.comp);
        });
        if (status == UCS_INPROGRESS) {
            ASSERT_EQ(UCS_OK, wait(comp));
        } else {
            ASSERT_EQ(UCS_OK, status);
        }
        ASSERT_EQ(UCS_OK, uct_ep_flush(ep(), 0, NULL));
    }
    EXPECT_EQ(0, memcmp(&data, m_peer->read(8, 8).data(), 8));
}

TEST_P(test_sep_uct_flow, flush_waits_for_pending_requests)
{
    pending_req req;
    bool done = false;

    req.func = [&]() {
        ucs_status_t status = send(ep(), 0);
        done                = (status == UCS_OK);
        return status;
    };
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 0));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(ep(), 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, uct_iface_flush(m_local->iface(), 0, NULL));
    flush();
    EXPECT_TRUE(done);
}

/* The flush has nothing to wait for once there is a connection, and what is
 * pending behind it waits for the flush */
TEST_P(test_sep_uct_flow, a_pending_flush_does_not_wait_for_requests_behind_it)
{
    pending_req flush_req, send_req;
    bool done = false;

    flush_req.func = [&]() {
        ucs_status_t status = uct_ep_flush(ep(), 0, NULL);

        return (status == UCS_INPROGRESS) ? UCS_OK : status;
    };
    send_req.func = [&]() {
        ucs_status_t status = send(ep(), 0);

        done = (status == UCS_OK);
        return status;
    };
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(), 0));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &flush_req.req, 0));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &send_req.req, 0));
    EXPECT_TRUE(m_local->wait([&]() { return done; }));
    if (!done) {
        uct_ep_pending_purge(ep(), NULL, NULL);
    }
}

/* There is room in the queue, and what is pending waits for something else */
TEST_P(test_sep_uct_flow,
       a_flush_comes_behind_a_message_that_waits_for_a_window)
{
    completion flushed;
    pending_req req;
    bool done = false;

    start(all_settings({{"FC_WND_SIZE", "16"}}));
    connect(ep());
    m_peer->freeze();
    m_local->wait([&]() { return send(ep(), 0) == UCS_ERR_NO_RESOURCE; });
    req.func = [&]() {
        ucs_status_t status = send(ep(), 0);

        done = (status == UCS_OK);
        return status;
    };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(), &req.req, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_ep_flush(ep(), 0, &flushed.comp));
    EXPECT_FALSE(done);
    m_peer->num_received();
    flush();
    EXPECT_TRUE(done);
    EXPECT_EQ(0u, flushed.calls);
}

TEST_P(test_sep_uct_flow, a_fence_orders_a_get_before_the_put_behind_it)
{
    const size_t length = 100;
    remote_memory rmem  = m_peer->expose(4096, 5);
    bytes before        = pattern(4096, 5);
    uint64_t data       = 0;
    memory local(m_local->md(), 4096);

    connect(ep());
    for (unsigned round = 0; round < 100; ++round) {
        uct_iov_t iov = {local.ptr(), length, local.memh(), 0, 1};
        completion comp;

        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_get_zcopy(ep(), &iov, 1, rmem.va + round * 8,
                                    rmem.rkey.rkey, &comp.comp);
        }));
        ASSERT_EQ(UCS_OK, (round % 2) ? uct_ep_fence(ep(), 0) :
                                        uct_iface_fence(m_local->iface(), 0));
        ASSERT_EQ(UCS_OK, retry([&]() {
            return uct_ep_put_short(ep(), &data, sizeof(data),
                                    rmem.va + round * 8, rmem.rkey.rkey);
        }));
        ASSERT_EQ(UCS_OK, wait(comp));
        ASSERT_EQ(0, memcmp(local.ptr(), before.data() + round * 8, length));
    }
    flush();
    EXPECT_EQ(bytes(800, 0), m_peer->read(0, 800));
}

TEST_P(test_sep_uct_flow, a_fence_costs_no_credit_that_is_not_given_back)
{
    connect(ep());
    for (unsigned i = 0; i < 2000; ++i) {
        ASSERT_EQ(UCS_OK, retry([&]() { return send(ep(), i); }));
        ASSERT_EQ(UCS_OK, uct_ep_fence(ep(), 0));
    }
    flush();
    uct_sep_txwq_t *txwq = m_local->sep_ep(ep())->txwq;
    ASSERT_EQ(UCS_OK, retry([&]() { return send(ep(), 2000); }));
    flush();
    EXPECT_EQ(txwq->bb_max, uct_sep_txwq_credits(txwq));
    EXPECT_EQ(4095, m_local->sep()->tx.cq_credits);
    expect_in_order(2001);
}

TEST_P(test_sep_uct_flow, small_queues_lose_nothing)
{
    static const unsigned count = 3000;

    /* Every resource runs out all the time: send queue, completion queue,
     * receive queue */
    start({{"TX_QUEUE_LEN", "8"}, {"TX_CQ_LEN", "8"}, {"RX_QUEUE_LEN", "4"},
           {"RNR_TIMEOUT", "0.01ms"}});
    m_peer->send(m_local->addr(), count, 64);
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, retry([&]() { return send(ep(), i); }));
    }
    flush();
    m_local->wait([&]() { return m_local->messages.size() == count; });
    expect_in_order(count);
    for (unsigned i = 0; i < count; ++i) {
        uint64_t seq;
        memcpy(&seq, m_local->messages[i].data.data(), sizeof(seq));
        ASSERT_EQ(i, seq);
    }
}

TEST_P(test_sep_uct_flow, unsignaled_work_of_many_connections_cannot_block_all)
{
    static const unsigned num_eps = 8;

    /* 8 queues could bind 8 * 7 credits without asking for a completion, and
     * there are 16 */
    start({{"TX_QUEUE_LEN", "32"}, {"TX_CQ_LEN", "16"}}, num_eps);
    for (unsigned i = 0; i < num_eps; ++i) {
        connect(ep(i), i);
    }
    for (unsigned seq = 0; seq < 200; ++seq) {
        for (unsigned i = 0; i < num_eps; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() { return send(ep(i), seq); }));
        }
    }
    flush();
    EXPECT_EQ(15, m_local->sep()->tx.cq_credits);
    for (unsigned i = 0; i < num_eps; ++i) {
        expect_in_order(200, i);
    }
}

TEST_P(test_sep_uct_flow, pending_requests_of_many_connections_are_all_sent)
{
    static const unsigned num_eps = 8, num_reqs = 40;
    std::vector<pending_req> reqs(num_eps * num_reqs);
    unsigned done = 0;

    start({{"TX_QUEUE_LEN", "16"}, {"TX_CQ_LEN", "16"}}, num_eps);
    for (unsigned i = 0; i < num_eps; ++i) {
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, send(ep(i), 0));
        for (unsigned seq = 0; seq < num_reqs; ++seq) {
            pending_req &req = reqs[i * num_reqs + seq];

            req.func = [&, i, seq]() {
                ucs_status_t status = send(ep(i), seq);
                done += (status == UCS_OK);
                return status;
            };
            ASSERT_EQ(UCS_OK, uct_ep_pending_add(ep(i), &req.req, 0));
        }
    }
    m_local->wait([&]() { return done == num_eps * num_reqs; });
    flush();
    for (unsigned i = 0; i < num_eps; ++i) {
        expect_in_order(num_reqs, i);
    }
}

TEST_P(test_sep_uct_flow, kept_descriptors_stay_intact)
{
    static const unsigned count = 500;

    /* More than there are receives: the queue gets new buffers. What comes in a
     * ring is not for keeping. */
    start({{"RX_QUEUE_LEN", "64"}, {"EAGER", "n"}});
    m_peer->send(m_local->addr(), count, 200, 9);
    m_local->wait([&]() { return m_local->descs.size() == count; });
    for (unsigned i = 0; i < count; ++i) {
        uint8_t *data = (uint8_t*)m_local->descs[i].first + 24;
        uint64_t seq  = i;
        bytes expected = pattern(200, i);

        memcpy(expected.data(), &seq, sizeof(seq));
        ASSERT_EQ(200u, m_local->descs[i].second);
        ASSERT_EQ(0, memcmp(expected.data(), data, expected.size())) << i;
    }
    m_local->release_descs();
    m_peer->send(m_local->addr(), count, 200, 9);
    m_local->wait([&]() { return m_local->descs.size() == count; });
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

TEST_P(test_sep_uct_flow, a_message_wakes_a_sleeping_receiver)
{
    int fd;

    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(m_local->iface(), &fd));
    for (unsigned round = 1; round <= 5; ++round) {
        struct pollfd pfd = {fd, POLLIN, 0};

        m_local->wait([&]() {
            return uct_iface_event_arm(m_local->iface(), UCT_EVENT_RECV) ==
                   UCS_OK;
        });
        m_peer->send(m_local->addr(), 1, 64);
        while (m_local->messages.size() < round) {
            ASSERT_EQ(1, poll(&pfd, 1, wakeup_timeout_ms));
            while (m_local->progress() > 0);
            if (m_local->messages.size() < round) {
                /* Woken by the connection */
                m_local->wait([&]() {
                    return uct_iface_event_arm(m_local->iface(),
                                               UCT_EVENT_RECV) == UCS_OK;
                });
                if (m_local->messages.size() == round) {
                    break;
                }
            }
        }
    }
}

/* It comes when the peer has buffers again */
TEST_P(test_sep_uct_flow, a_completion_wakes_a_sleeping_sender)
{
    start({{"RX_QUEUE_LEN", "16"}, {"FC_ENABLE", "n"}, {"EAGER", "n"}});
    memory local(m_local->md(), 64);
    uct_iov_t iov     = {local.ptr(), 64, local.memh(), 0, 1};
    struct pollfd pfd = {-1, POLLIN, 0};
    char header       = 0;

    connect(ep());
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(m_local->iface(), &pfd.fd));
    for (unsigned round = 0; round < 5; ++round) {
        completion comp;

        m_peer->freeze();
        for (unsigned i = 0; i < 40; ++i) {
            ASSERT_EQ(UCS_OK, retry([&]() { return send(ep(), 0); }));
        }
        ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
            return uct_ep_am_zcopy(ep(), 1, &header, 1, &iov, 1, 0,
                                   &comp.comp);
        }));
        fall_asleep(UCT_EVENT_SEND_COMP);
        EXPECT_EQ(0u, comp.calls);
        (void)m_peer->num_received();
        sleep_until(pfd, UCT_EVENT_SEND_COMP, [&]() { return comp.calls > 0; });
        EXPECT_EQ(UCS_OK, comp.status);
    }
}

/* It comes when the other side's connection manager may run */
TEST_P(test_sep_uct_flow, a_connection_wakes_a_sleeping_sender)
{
    auto remote       = entity::create(all_settings());
    struct pollfd pfd = {-1, POLLIN, 0};
    ucs_async_context_t *async;
    pending_req req;
    bool done = false;

    ASSERT_TRUE(remote != nullptr);
    async = ucs_derived_of(remote->is_on_hub() ?
                           ucs_derived_of(remote->iface(), uct_sep_hub_iface_t)
                                   ->hub->worker :
                           remote->worker(), uct_priv_worker_t)->async;
    uct_ep_h to_remote = m_local->connect(remote->addr());
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(m_local->iface(), &pfd.fd));
    req.func = [&]() {
        ucs_status_t status = send(to_remote, 0);
        done                = (status == UCS_OK);
        return status;
    };

    UCS_ASYNC_BLOCK(async);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send(to_remote, 0));
    EXPECT_EQ(UCS_OK, uct_ep_pending_add(to_remote, &req.req, 0));
    fall_asleep(UCT_EVENT_SEND_COMP);
    EXPECT_FALSE(done);
    UCS_ASYNC_UNBLOCK(async);
    ucs_async_check_miss(async);

    sleep_until(pfd, UCT_EVENT_SEND_COMP, [&]() { return done; });
    remote->wait([&]() { return !remote->messages.empty(); });
    flush();
    m_local->destroy(to_remote);
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
        peer.send(to, peer.req(to, peer.addr(1000 + i)));
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

TEST_P(test_sep_uct_flow, many_interfaces_send_to_one)
{
    static const unsigned num_senders = 8, count = 200;
    std::vector<std::unique_ptr<entity>> senders;
    std::vector<uct_ep_h> eps;
    address to = m_peer->addr();

    for (unsigned i = 0; i < num_senders; ++i) {
        senders.push_back(entity::create(all_settings()));
        ASSERT_TRUE(senders.back() != nullptr);
        eps.push_back(senders.back()->connect(to));
    }
    for (uint64_t seq = 0; seq < count; ++seq) {
        for (unsigned i = 0; i < num_senders; ++i) {
            senders[i]->wait([&]() {
                return uct_ep_am_short(eps[i], 1, (i * count) + seq, NULL, 0) ==
                       UCS_OK;
            });
        }
    }
    for (auto &sender : senders) {
        EXPECT_TRUE(sender->flush());
    }
    m_local->wait([&]() {
        return m_peer->num_received() == num_senders * count;
    });

    /* In order from each of them */
    std::vector<uint64_t> next(num_senders, 0);
    for (unsigned i = 0; i < num_senders * count; ++i) {
        uint64_t seq = received_seq(i);
        ASSERT_EQ(next[seq / count]++, seq % count);
    }
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

TEST_P(test_sep_uct_flow, an_endpoint_can_go_while_its_operations_are_under_way)
{
    remote_memory rmem = m_peer->expose(65536, 5);
    uct_ep_h other     = m_local->connect(m_peer->addr());
    memory local(m_local->md(), 65536);
    uct_iov_t iov = {local.ptr(), 65536, local.memh(), 0, 1};
    completion gone, stays;

    connect(ep());
    ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
        return uct_ep_get_zcopy(other, &iov, 1, rmem.va, rmem.rkey.rkey,
                                &gone.comp);
    }));
    ASSERT_EQ(UCS_INPROGRESS, retry([&]() {
        return uct_ep_get_zcopy(ep(), &iov, 1, rmem.va, rmem.rkey.rkey,
                                &stays.comp);
    }));
    m_local->destroy(other);
    EXPECT_EQ(1u, gone.calls);
    EXPECT_EQ(UCS_ERR_CANCELED, gone.status);
    EXPECT_EQ(UCS_OK, wait(stays));
    flush();
    EXPECT_EQ(1u, gone.calls);
}

INSTANTIATE_TEST_SUITE_P(api, test_sep_uct_flow,
                         ::testing::ValuesIn(api_modes()), mode_name);
INSTANTIATE_TEST_SUITE_P(category, test_sep_uct_flow,
                         ::testing::Values(mode{"mpi_threads",
                                                {{"CATEGORY", "mpi_threads"}}}),
                         mode_name);

} // namespace
